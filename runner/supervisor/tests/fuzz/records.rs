//! The files of an operation, one at a time: the records, and what is missing in the spool.

use std::{fs, time::Duration};

use runner_supervisor::{
    CommandTimes, Directory, Fate, Gap, GapLog, KillMethod, ProcessId, ProcessIdentity, RecordFile,
    SpoolPiece, SpoolReader, SpoolStream, StartRecord,
};
use serde::Serialize;
use shared_fuzz::{Dice, fuzz, stored};
use shared_types::OperationId;
use tempfile::TempDir;

use super::{corpus, folder, frames::exit_record, store};

/// Seeds of a run without any wish.
const SEEDS: u64 = 2000;

/// Reads of one stream, at most: each gets further, and there are few gaps.
const READS: usize = 200;

/// Least that is read at once, in bytes.
const READ_BYTES: usize = 100;

/// Bytes of the stream behind the gaps.
const OUTPUT_BYTES: usize = 5000;

#[test]
fn a_record_is_read_as_it_was_written_or_not_at_all() {
    let (_folder, directory) = empty();
    let write = |input: &[u8]| {
        for name in ["fate", "exit", "ready"] {
            fs::write(directory.path().join(name), input).expect("a file");
        }
    };
    let read = || {
        let fate = directory
            .fate()
            .ok()
            .flatten()
            .map(|one| format!("{one:?}"));
        let exit = directory
            .exit()
            .ok()
            .flatten()
            .map(|one| format!("{one:?}"));
        let identity = directory.identity().ok().flatten();
        let identity = identity.map(|one| format!("{one:?}"));
        [fate, exit, identity]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    };
    let mut written = Vec::new();
    for (_, input) in stored(&corpus("records")) {
        write(&input);
        written.append(&mut read());
    }
    assert!(
        written.len() >= 4,
        "the stored ones can be read: {written:?}"
    );
    fuzz(&corpus("records"), SEEDS, |input, _| {
        write(input);
        for record in read() {
            assert!(written.contains(&record), "{record} was never written");
        }
    });
}

#[test]
fn a_spool_whose_gaps_are_mangled_is_read_to_its_end() {
    let (_folder, directory) = empty();
    for stream in SpoolStream::ALL {
        let path = directory.path().join(stream.file_name());
        fs::write(path, vec![b'x'; OUTPUT_BYTES]).expect("a file");
    }
    fuzz(&corpus("gaps"), SEEDS, |input, dice| {
        fs::write(directory.path().join("gaps"), input).expect("a file");
        for stream in SpoolStream::ALL {
            let reader = SpoolReader::open(&directory, stream).expect("a spool");
            reader.is_whole().expect("readable");
            read_to_the_end(&reader, dice);
        }
    });
}

fn read_to_the_end(reader: &SpoolReader, dice: &mut Dice) {
    let mut bytes = vec![0; READ_BYTES + dice.up_to(OUTPUT_BYTES)];
    let mut offset = 0;
    for _ in 0..READS {
        let next = match reader.read(offset, &mut bytes) {
            Ok(SpoolPiece::Bytes(length)) => {
                assert!(bytes[..length].iter().all(|byte| *byte == b'x'));
                offset + length as u64
            }
            Ok(SpoolPiece::Gap { until } | SpoolPiece::Evicted { until }) => until,
            // An offset that no file can have.
            Ok(SpoolPiece::Nothing) | Err(_) => return,
        };
        assert!(next > offset, "it stays at {offset}");
        offset = next;
    }
    panic!("it never ends");
}

/// An operation of which nothing is known.
fn empty() -> (TempDir, Directory) {
    let folder = folder();
    let directory = Directory::open(folder.path()).expect("a directory");
    (folder, directory)
}

/// A record as its file.
pub(crate) fn file_of<T: Serialize>(name: &'static str, record: &T) -> Vec<u8> {
    let (folder, directory) = empty();
    let file = RecordFile::create(&directory, name).expect("a record");
    file.write(record).expect("room");
    assert!(file.link(&directory).expect("a link"));
    fs::read(folder.path().join(name)).expect("a record")
}

/// Gaps and evictions as their file.
pub(crate) fn gaps() -> Vec<u8> {
    let (folder, directory) = empty();
    let mut log = GapLog::create(&directory).expect("a log");
    for (stream, offset, length) in [
        (SpoolStream::Out, 1000, 500),
        (SpoolStream::Err, 10, 1),
        (SpoolStream::Out, 2000, 2000),
    ] {
        let gap = Gap {
            stream,
            offset,
            length,
        };
        log.add(gap).expect("room");
    }
    log.evict(SpoolStream::Out, 100).expect("room");
    fs::read(folder.path().join("gaps")).expect("a log")
}

#[test]
#[ignore = "writes the corpus anew, after a change of the records"]
fn write_the_records() {
    let identity = ProcessIdentity {
        supervisor: ProcessId {
            pid: 12,
            start_ticks: 34,
            boot_id: "boot".to_owned(),
        },
        kill: KillMethod::Sweep,
        cgroup: None,
    };
    let started = Fate::Started(StartRecord {
        operation: OperationId::from_u128(7),
        identity: identity.clone(),
        child: None,
        times: None,
        claim: None,
    });
    let with_times = Fate::Started(StartRecord {
        operation: OperationId::from_u128(7),
        identity: identity.clone(),
        child: None,
        times: Some(CommandTimes {
            began_ms: 1_234_567,
            run_for: Some(Duration::from_secs(60)),
            orphan_for: None,
            kill_grace: Duration::from_secs(10),
        }),
        claim: Some("{\"format\":1}".to_owned()),
    });
    let fenced = Fate::Fenced {
        reason: "nobody wants it".to_owned(),
    };
    store("records", "ready", &file_of("ready", &identity));
    store("records", "started", &file_of("fate", &started));
    store(
        "records",
        "started-with-times",
        &file_of("fate", &with_times),
    );
    store("records", "fenced", &file_of("fate", &fenced));
    store("records", "exit", &file_of("exit", &exit_record()));
    store("gaps", "both-streams", &gaps());
}
