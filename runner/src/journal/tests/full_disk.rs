//! A disk that fills up, which only root can set up; `tests/run` leaves these out for others.

use super::*;
use crate::testing::SmallDisk;

#[test]
fn on_a_small_disk_that_is_full_nothing_new_begins_but_ends_are_written() {
    let disk = SmallDisk::mount("4m");
    let folder = disk.path().join("journal");
    let mut journal = open(&folder).journal;
    journal.append(&all_accepted(0..3)).expect("room");
    disk.fill();
    let mut kept = all_accepted(0..3);
    // The rest of the room that was allocated at once.
    let refused = loop {
        let next = accepted(kept.len() as u64);
        match journal.append(std::slice::from_ref(&next)) {
            Ok(()) => kept.push(next),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, JournalError::DiskFull(_)), "{refused}");
    let ended = Record::Accepted {
        operation: 1,
        text: "e".repeat(440),
    };
    for _ in 0..512 {
        journal
            .append_end(std::slice::from_ref(&ended))
            .expect("the reserve");
        kept.push(ended.clone());
    }
    while journal.append_end(std::slice::from_ref(&ended)).is_ok() {
        kept.push(ended.clone());
    }
    // Whole, and in use again once there is room.
    disk.free();
    journal.append(&[Record::Ended(1)]).expect("room");
    kept.push(Record::Ended(1));
    drop(journal);
    let again = open(&folder);
    assert_eq!(again.repaired, None);
    assert!(again.records == kept);
}

#[test]
fn on_a_small_disk_that_is_full_the_journal_still_opens_and_keeps_its_reserve() {
    let disk = SmallDisk::mount("4m");
    let folder = disk.path().join("journal");
    drop(open(&folder));
    disk.fill();
    let mut again = open(&folder);
    again
        .journal
        .append_end(&[Record::Ended(1)])
        .expect("the reserve");
    drop(again);
    assert_eq!(open(&folder).records, [Record::Ended(1)]);
}

#[test]
fn on_a_small_disk_that_is_full_compacting_fails_and_changes_nothing() {
    let disk = SmallDisk::mount("4m");
    let folder = disk.path().join("journal");
    let mut journal = open(&folder).journal;
    let records = all_accepted(0..3000);
    journal.append(&records).expect("room");
    disk.fill();
    let refused = journal.compact(records.iter().cloned());
    assert!(
        matches!(refused, Err(JournalError::DiskFull(_))),
        "{refused:?}"
    );
    assert!(!folder.join(file::UNFINISHED).exists());
    journal
        .append_end(&[Record::Ended(1)])
        .expect("the reserve");
    drop(journal);
    assert_eq!(open(&folder).records.len(), 3001);
}

#[test]
fn on_a_small_disk_that_is_full_no_journal_begins() {
    let disk = SmallDisk::mount("128k");
    let refused = try_open(&disk.path().join("journal")).expect_err("no room");
    assert!(refused.to_string().contains("free some"), "{refused}");
}
