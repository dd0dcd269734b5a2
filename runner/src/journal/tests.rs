//! The journal on a real disk: what was appended is there again, whatever happened in between.

mod compaction;
mod damage;
mod full_disk;
mod fuzz;

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
};

use shared_types::{SystemClock, entropy::SeededEntropy};
use tempfile::TempDir;

use super::*;

/// A record of these tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Record {
    Accepted { operation: u64, text: String },
    Ended(u64),
}

fn accepted(operation: u64) -> Record {
    Record::Accepted {
        operation,
        text: "a\nb \u{1f980} \"".repeat(operation as usize % 5),
    }
}

fn all_accepted(operations: std::ops::Range<u64>) -> Vec<Record> {
    operations.map(accepted).collect()
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn try_open(folder: &Path) -> Result<OpenedJournal<Record>, JournalError> {
    // Every journal of a test gets an id of its own.
    let seed = fs::read_dir(folder).map_or(0, Iterator::count) as u64;
    Journal::open(folder, &SystemClock::new(), &SeededEntropy::new(seed))
}

fn open(folder: &Path) -> OpenedJournal<Record> {
    try_open(folder).expect("a journal")
}

/// A folder whose journal remembers `records`, and its id.
fn journal_of(records: &[Record]) -> (TempDir, JournalId) {
    let folder = folder();
    let mut opened = open(folder.path());
    opened.journal.append(records).expect("room");
    (folder, opened.id)
}

fn content(folder: &Path) -> Vec<u8> {
    fs::read(folder.join(file::NAME)).expect("a journal")
}

#[test]
fn a_new_journal_remembers_nothing_and_belongs_to_its_owner_alone() {
    let parent = folder();
    let folder = parent.path().join("deeper/journal");
    let opened = open(&folder);
    assert_eq!(opened.records, []);
    assert_eq!(opened.repaired, None);
    let mode = |path: &Path| fs::metadata(path).expect("it exists").permissions().mode();
    assert_eq!(mode(&folder) & 0o777, 0o700);
    assert_eq!(mode(&folder.join(file::NAME)) & 0o777, 0o600);
}

#[test]
fn what_was_appended_is_there_again_in_its_order_under_the_same_id() {
    let folder = folder();
    let mut opened = open(folder.path());
    opened.journal.append(&all_accepted(0..3)).expect("room");
    opened
        .journal
        .append_end(&[Record::Ended(1)])
        .expect("room");
    // Nothing is said of its end, as by a killed daemon.
    std::mem::forget(opened.journal);
    let again = open(folder.path());
    assert_eq!(again.id, opened.id);
    assert_eq!(again.repaired, None);
    let mut expected = all_accepted(0..3);
    expected.push(Record::Ended(1));
    assert_eq!(again.records, expected);
}

#[test]
fn a_person_can_read_it() {
    let (folder, id) = journal_of(&[Record::Ended(7)]);
    let text = String::from_utf8(content(folder.path())).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains(&format!(r#"{{"format":1,"journal":"{id}","created":"#)));
    assert_eq!(
        lines[1].split_once(' ').expect("two parts").1,
        r#"{"Ended":7}"#
    );
}

#[test]
fn ten_thousand_records_are_remembered() {
    let folder = folder();
    let mut opened = open(folder.path());
    let records = all_accepted(0..10_000);
    for batch in records.chunks(7) {
        opened.journal.append(batch).expect("room");
    }
    drop(opened);
    assert!(open(folder.path()).records == records);
}

#[test]
fn a_record_that_is_too_long_is_refused_and_takes_nothing_with_it() {
    let folder = folder();
    let mut opened = open(folder.path());
    let long = Record::Accepted {
        operation: 1,
        text: "x".repeat(MAX_LINE_BYTES),
    };
    let refused = opened.journal.append(&[Record::Ended(1), long]);
    assert!(matches!(refused, Err(JournalError::TooLong { .. })));
    opened.journal.append(&[Record::Ended(2)]).expect("room");
    drop(opened);
    assert_eq!(open(folder.path()).records, [Record::Ended(2)]);
}

#[test]
fn a_full_journal_takes_only_ends_and_reads_back() {
    let folder = folder();
    let mut opened = open(folder.path());
    let large = Record::Accepted {
        operation: 1,
        text: "x".repeat(MAX_LINE_BYTES - 100),
    };
    let mut taken = 0;
    while opened.journal.append(std::slice::from_ref(&large)).is_ok() {
        taken += 1;
    }
    assert_eq!(taken, 63);
    let refused = opened.journal.append(&[large]).expect_err("it is full");
    assert!(matches!(refused, JournalError::TooLarge), "{refused}");
    opened
        .journal
        .append_end(&[Record::Ended(1)])
        .expect("room");
    drop(opened);
    let again = open(folder.path());
    assert_eq!(again.repaired, None);
    assert_eq!(again.records.len(), taken + 1);
}

#[tokio::test]
async fn whoever_asks_hears_when_it_is_on_the_disk() {
    let folder = folder();
    let mut opened = open(folder.path());
    opened.journal.sync().wait().await.expect("nothing to do");
    for number in 0..20 {
        opened.journal.append(&[accepted(number)]).expect("room");
        let (one, other) = (opened.journal.sync(), opened.journal.sync());
        one.wait().await.expect("synced");
        other.wait().await.expect("synced");
    }
    let last = opened.journal.sync();
    drop(opened);
    last.wait()
        .await
        .expect("the end of the journal waits for the disk");
}

#[test]
fn the_thread_ends_with_its_journal() {
    let folder = folder();
    let opened = open(folder.path());
    let shared = opened.journal.syncing.weak();
    drop(opened);
    assert!(shared.upgrade().is_none());
}

#[test]
fn after_a_failed_sync_nothing_is_taken_any_more() {
    let folder = folder();
    let mut opened = open(folder.path());
    // A pipe cannot be synced.
    let (_reader, writer) = std::io::pipe().expect("a pipe");
    let pipe: std::os::fd::OwnedFd = writer.into();
    opened.journal.syncing.replace(File::from(pipe));
    opened.journal.append(&[accepted(1)]).expect("room");
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let synced = opened.journal.sync();
    let error = runtime.expect("a runtime").block_on(synced.wait());
    assert!(matches!(error, Err(JournalError::Broken(_))), "{error:?}");
    let refused = opened.journal.append(&[accepted(2)]).expect_err("broken");
    assert!(
        refused.to_string().contains("do not reach the disk"),
        "{refused}"
    );
    opened
        .journal
        .append_end(&[accepted(2)])
        .expect_err("broken");
    opened
        .journal
        .compact(std::iter::empty())
        .expect_err("broken");
}

#[test]
fn a_record_that_can_neither_be_written_nor_taken_back_breaks_the_journal() {
    let folder = folder();
    let mut opened = open(folder.path());
    opened.journal.append(&[accepted(1)]).expect("room");
    // Only for reading: neither writing nor cutting works.
    opened.journal.file = File::open(folder.path().join(file::NAME)).expect("a journal");
    opened
        .journal
        .append(&[accepted(2)])
        .expect_err("not writable");
    let path = folder.path().join(file::NAME);
    opened.journal.file = File::options().write(true).open(path).expect("a journal");
    let refused = opened.journal.append(&[accepted(3)]).expect_err("broken");
    assert!(
        refused.to_string().contains("restart the runner"),
        "{refused}"
    );
    drop(opened);
    assert_eq!(open(folder.path()).records, [accepted(1)]);
}

#[test]
fn room_is_allocated_without_making_the_file_longer() {
    let (folder, _) = journal_of(&[accepted(1)]);
    let meta = fs::metadata(folder.path().join(file::NAME)).expect("a journal");
    assert!(meta.len() < 1024, "{} bytes", meta.len());
    assert!(
        meta.blocks() * 512 >= RESERVE_BYTES,
        "{} blocks",
        meta.blocks()
    );
}
