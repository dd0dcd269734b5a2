use super::*;
use crate::{SpoolPiece, SpoolReader};

const KEEP: u32 = 100;

fn scene() -> (tempfile::TempDir, Directory) {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = Directory::create(&folder.path().join("op")).expect("a directory");
    directory.create_file("out").expect("a file");
    directory.create_file("err").expect("a file");
    GapLog::create(&directory).expect("a log");
    (folder, directory)
}

/// The byte at an offset of the stream.
fn byte(offset: u64) -> u8 {
    (offset % 251) as u8
}

fn bytes(from: u64, to: u64) -> Vec<u8> {
    (from..to).map(byte).collect()
}

/// A spool with a head of 50 bytes.
fn with_head(directory: &Directory) -> Tail {
    let spool = directory.open_to_write("out").expect("a file");
    spool.write_all_at(&bytes(0, 50), 0).expect("written");
    let path = directory.path().join(Tail::file_name(SpoolStream::Out));
    Tail::create(&path, KEEP, 50).expect("a tail")
}

/// What a reader finds: bytes and where they begin.
fn found(directory: &Directory) -> Vec<(u64, Vec<u8>)> {
    let reader = SpoolReader::open(directory, SpoolStream::Out).expect("a reader");
    let (mut all, mut at) = (Vec::<(u64, Vec<u8>)>::new(), 0);
    let mut room = [0; 64];
    loop {
        match reader.read(at, &mut room).expect("a spool") {
            SpoolPiece::Bytes(length) => {
                let read = &room[..length];
                match all.last_mut() {
                    Some((from, bytes)) if *from + bytes.len() as u64 == at => {
                        bytes.extend_from_slice(read);
                    }
                    _ => all.push((at, read.to_vec())),
                }
                at += length as u64;
            }
            SpoolPiece::Gap { until } | SpoolPiece::Evicted { until } => at = until,
            SpoolPiece::Nothing => return all,
        }
    }
}

#[test]
fn the_newest_bytes_are_kept_however_they_come() {
    for step in [1, 7, 99, 100, 101, 250] {
        let (_folder, directory) = scene();
        let mut tail = with_head(&directory);
        let mut to = 50;
        while to < 1500 {
            tail.push(&bytes(to, to + step)).expect("kept");
            to += step;
            let from = 50.max(to.saturating_sub(KEEP.into()));
            assert_eq!((tail.from(), tail.length()), (from, to - from));
            let mut room = [0; KEEP as usize + 1];
            let length = tail.read(from, &mut room).expect("readable");
            assert_eq!(room[..length], bytes(from, to), "{step}, {to}");
            // At each of these moments the supervisor may be killed.
            let left = Tail::left(&directory, SpoolStream::Out).expect("readable");
            assert_eq!(left.expect("a tail").counts, tail.counts);
        }
        restore(&directory, SpoolStream::Out).expect("restored");
        let newest = bytes(to - u64::from(KEEP), to);
        let expected = [(0, bytes(0, 50)), (to - u64::from(KEEP), newest)];
        assert_eq!(found(&directory), expected, "{step}");
        restore(&directory, SpoolStream::Out).expect("restored");
        assert_eq!(found(&directory), expected, "again");
    }
}

#[test]
fn what_is_written_and_not_stated_changes_nothing_that_counts() {
    let (_folder, directory) = scene();
    let mut tail = with_head(&directory);
    tail.push(&bytes(50, 120)).expect("kept");
    tail.push(&bytes(120, 200)).expect("kept");
    // As where the supervisor is killed between the bytes and the statement.
    let unstated = vec![0xff; KEEP as usize];
    tail.at_ring(200, unstated.len(), |file, at, part| {
        file.write_all_at(&unstated[part], at)
    })
    .expect("written");
    restore(&directory, SpoolStream::Out).expect("restored");
    let expected = [(0, bytes(0, 50)), (100, bytes(100, 200))];
    assert_eq!(found(&directory), expected);
}

#[test]
fn a_tail_that_was_put_in_its_place_already_or_in_part_is_not_put_there_twice() {
    for put in [0, 30, 100] {
        let (_folder, directory) = scene();
        let mut tail = with_head(&directory);
        tail.push(&bytes(50, 400)).expect("kept");
        let mut gaps = GapLog::reopen(&directory).expect("a log");
        let gap = Gap {
            stream: SpoolStream::Out,
            offset: 50,
            length: 250,
        };
        gaps.add(gap).expect("recorded");
        let spool = directory.open_to_write("out").expect("a file");
        spool
            .write_all_at(&bytes(300, 300 + put), 300)
            .expect("written");
        restore(&directory, SpoolStream::Out).expect("restored");
        let expected = [(0, bytes(0, 50)), (300, bytes(300, 400))];
        assert_eq!(found(&directory), expected, "{put}");
        let log = GapLog::open(&directory).expect("a log");
        assert_eq!(log.gaps(SpoolStream::Out).expect("readable"), [gap]);
    }
}

#[test]
fn a_tail_that_goes_on_where_the_head_ends_leaves_no_gap() {
    let (_folder, directory) = scene();
    let mut tail = with_head(&directory);
    tail.push(&bytes(50, 90)).expect("kept");
    restore(&directory, SpoolStream::Out).expect("restored");
    assert_eq!(found(&directory), [(0, bytes(0, 90))]);
}

#[test]
fn a_file_that_makes_no_sense_is_no_tail() {
    let (_folder, directory) = scene();
    let file = directory
        .create_file(Tail::file_name(SpoolStream::Out))
        .expect("a file");
    for content in [&b""[..], b"\n", &[0xff; 600], &[0; 4096]] {
        file.write_all_at(content, 0).expect("written");
        restore(&directory, SpoolStream::Out).expect("nothing to restore");
    }
    for counts in [
        RingRange {
            keep: u64::MAX,
            start: 0,
            to: u64::MAX,
        },
        RingRange {
            keep: 10,
            start: 9,
            to: 3,
        },
        RingRange {
            keep: 0,
            start: 0,
            to: 900,
        },
    ] {
        let line = record::to_line("tail", &counts).expect("a line");
        file.set_len(0).expect("emptied");
        file.write_all_at(&line, 0).expect("written");
        let restored = restore(&directory, SpoolStream::Out);
        assert!(found(&directory).is_empty(), "{restored:?}");
    }
}
