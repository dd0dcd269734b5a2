//! Files that are nearly journals.

use std::{collections::BTreeSet, fs::File, os::unix::fs::FileExt as _};

use rustix::fs::{MemfdFlags, memfd_create};
use shared_fuzz::{fuzz, stored};
use shared_link::runner::{Accepted, Record, Takes};
use shared_sandbox::{ExitCause, ExitRecord, ExitStatus, FileFailure, Outcome, StreamEnd, Written};
use shared_types::{Digest, Epoch, OperationId, Owner, SessionId};

use super::{Journal, OpenedJournal, SeededEntropy, SystemClock, file, fs, read};

/// Seeds of a run without any wish.
const SEEDS: u64 = 10_000;

/// Every so many inputs the whole journal is opened, which waits for the disk.
const OPENED: u64 = 200;

fn corpus() -> std::path::PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/corpus/journal"]
        .iter()
        .collect()
}

#[test]
fn a_file_that_is_nearly_a_journal_gives_what_was_written_or_is_damaged() {
    let written: Vec<Vec<Record>> = stored(&corpus())
        .iter()
        .filter_map(|(_, input)| Some(read_from(input)?.records))
        .collect();
    fuzz(&corpus(), SEEDS, |input, dice| {
        if let Some(contents) = read_from(input) {
            let count = contents.records.len();
            let prefix = written
                .iter()
                .any(|all| all.get(..count) == Some(&contents.records));
            assert!(prefix, "{:?} was never written", contents.records);
            assert!(contents.end.bytes + contents.torn == input.len() as u64);
        }
        // Also one whose checksums are right leads to no panic.
        read_from(&with_checksums(input));
        if dice.one_in(OPENED) {
            open_twice(input);
        }
    });
}

#[test]
fn the_stored_journals_hold_every_kind_of_record() {
    let kind = |record: &Record| {
        let value = serde_json::to_value(record).expect("JSON");
        let kinds = value.as_object().expect("a kind").keys();
        kinds.cloned().collect::<String>()
    };
    let all = stored(&corpus());
    let read = all.iter().filter_map(|(_, input)| read_from(input));
    let found: BTreeSet<String> = read.flat_map(|one| one.records).map(|r| kind(&r)).collect();
    let made: BTreeSet<String> = records().iter().map(kind).collect();
    assert_eq!(found, made, "run the ignored test that makes them");
}

#[test]
#[ignore = "writes the corpus anew, after a change of the records"]
fn write_the_corpus() {
    let folder = super::folder();
    let mut opened = open(folder.path());
    let journal = || super::content(folder.path());
    fs::create_dir_all(corpus()).expect("a folder");
    let store = |name: &str, bytes: &[u8]| {
        fs::write(corpus().join(name), bytes).expect("a file");
    };
    store("new", &journal());
    for record in records() {
        opened.journal.append(&[record]).expect("room");
    }
    let whole = journal();
    store("every-record", &whole);
    store("torn", &whole[..whole.len() - 30]);
    store("zeros", &[whole, vec![0; 512]].concat());
}

/// One of each kind.
fn records() -> Vec<Record> {
    let operation = |number| OperationId::from_u128(number);
    let owner = Owner::Session(SessionId::from_u128(3));
    let accepted = |number| {
        Record::Accepted(Accepted {
            operation: operation(number),
            sandbox: None,
            digest: Digest::of(b"request"),
            owner,
            epoch: Epoch(1),
            at: None,
            takes: Takes::default(),
            trace: None,
        })
    };
    let ended = |number, outcome| Record::Ended {
        operation: operation(number),
        outcome,
        stopped: false,
    };
    let end = StreamEnd {
        offset: 7,
        checksum: Some(5),
    };
    let exited = ExitRecord {
        status: ExitStatus::Code(0),
        cause: ExitCause::Exited,
        stdout: end,
        stderr: end,
        wall_ms: 12,
        cpu_us: 3,
        max_rss_bytes: 4096,
        tree_gone: true,
    };
    let written = Written {
        bytes: 7,
        before: None,
        after: Digest::of(b"content").into(),
    };
    let failed = FileFailure::NotFound {
        path: "a/\u{1f980}".to_owned(),
    };
    let receipt = r#"{"receipt":{"operation":"OPERATION","end":"already_exited"}}"#;
    let receipt = receipt.replace("OPERATION", &operation(1).to_string());
    vec![
        Record::Sequence(3),
        Record::Epoch {
            owner,
            epoch: Epoch(2),
            at: Some(std::time::Duration::from_millis(1234)),
        },
        accepted(1),
        accepted(2),
        accepted(3),
        ended(1, Outcome::Exited(exited)),
        ended(2, Outcome::Written(written)),
        ended(3, Outcome::Failed(failed)),
        accepted(4),
        Record::Released(operation(4)),
        serde_json::from_str(&receipt).expect("a receipt"),
    ]
}

fn open(folder: &std::path::Path) -> OpenedJournal<Record> {
    Journal::open(folder, &SystemClock::new(), &SeededEntropy::new(1)).expect("a journal")
}

fn read_from(bytes: &[u8]) -> Option<read::Contents<Record>> {
    let file = memfd_create("journal", MemfdFlags::CLOEXEC).expect("a file");
    let file = File::from(file);
    file.write_all_at(bytes, 0).expect("room");
    read::read(&file).expect("a readable disk").ok()
}

/// The same lines with the checksums that they should have.
fn with_checksums(input: &[u8]) -> Vec<u8> {
    let mut hasher = crc32fast::Hasher::new();
    let mut fixed = Vec::new();
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        let (start, end) = (
            9.min(line.len()),
            line.len() - usize::from(line.ends_with(b"\n")),
        );
        if start <= end {
            hasher.update(&line[start..end]);
            fixed.extend_from_slice(format!("{:08x} ", hasher.clone().finalize()).as_bytes());
        }
        fixed.extend_from_slice(&line[start..]);
    }
    fixed
}

/// What was repaired once needs no repair again, and gives the same.
fn open_twice(input: &[u8]) {
    let folder = super::folder();
    fs::write(folder.path().join(file::NAME), input).expect("a file");
    let first = open(folder.path());
    let (id, records) = (first.id, first.records);
    drop(first.journal);
    let second = open(folder.path());
    assert_eq!(second.repaired, None);
    assert_eq!(second.id, id);
    assert_eq!(second.records, records);
}
