//! Compaction: it keeps exactly what lives, and a death in the middle of it loses nothing.

use super::*;

/// Odd ones live.
fn live(records: &[Record]) -> Vec<Record> {
    records.iter().skip(1).step_by(2).cloned().collect()
}

#[test]
fn it_keeps_exactly_the_live_ones_and_the_id() {
    let folder = folder();
    let mut opened = open(folder.path());
    let records = all_accepted(0..1000);
    opened.journal.append(&records).expect("room");
    let before = content(folder.path()).len();
    let compacted = opened.journal.compact(live(&records).into_iter());
    compacted.expect("room");
    assert!(content(folder.path()).len() < before);
    opened.journal.append(&[Record::Ended(1)]).expect("room");
    let id = opened.id;
    drop(opened);
    let again = open(folder.path());
    let mut expected = live(&records);
    expected.push(Record::Ended(1));
    assert_eq!(again.records, expected);
    assert_eq!((again.id, again.repaired), (id, None));
}

#[test]
fn a_death_at_any_byte_of_it_leaves_the_old_one_or_the_new_one() {
    let records = all_accepted(0..20);
    let (old, id) = journal_of(&records);
    let new = folder();
    fs::write(new.path().join(file::NAME), content(old.path())).expect("a copy");
    let mut opened = open(new.path());
    let compacted = opened.journal.compact(live(&records).into_iter());
    compacted.expect("room");
    drop(opened);
    // Until the rename there is the old one, with more and more of the new one beside it.
    let unfinished = content(new.path());
    for written in 0..=unfinished.len() {
        let path = old.path().join(file::UNFINISHED);
        fs::write(path, &unfinished[..written]).expect("room");
        let again = open(old.path());
        assert_eq!(again.records, records, "{written}");
        assert_eq!((again.id, again.repaired), (id, None), "{written}");
    }
    // The rest of an interrupted one is not in the way of the next.
    let mut opened = open(old.path());
    let compacted = opened.journal.compact(live(&records).into_iter());
    compacted.expect("room");
    drop(opened);
    assert!(!old.path().join(file::UNFINISHED).exists());
    assert_eq!(open(old.path()).records, live(&records));
    // After the rename there is the new one.
    assert_eq!(open(new.path()).records, live(&records));
}

#[test]
fn it_is_wanted_when_the_journal_has_doubled() {
    let folder = folder();
    let mut journal = open(folder.path()).journal;
    let large = Record::Accepted {
        operation: 1,
        text: "x".repeat(100_000),
    };
    let fill = |journal: &mut Journal<Record>| {
        let mut appended = 0;
        while !journal.wants_compaction() {
            journal.append(std::slice::from_ref(&large)).expect("room");
            appended += 1;
        }
        appended
    };
    assert_eq!(fill(&mut journal), 11);
    let all = std::iter::repeat_n(large.clone(), 11);
    journal.compact(all).expect("room");
    // The header has to be doubled as well.
    assert_eq!(fill(&mut journal), 12);
    journal.compact(std::iter::empty()).expect("room");
    assert_eq!(fill(&mut journal), 11);
}

#[test]
fn it_is_wanted_before_a_journal_is_full_of_what_lives() {
    let folder = folder();
    let mut journal = open(folder.path()).journal;
    let large = Record::Accepted {
        operation: 1,
        text: "x".repeat(MAX_LINE_BYTES - 100),
    };
    let live = std::iter::repeat_n(large.clone(), 40);
    journal.compact(live).expect("room");
    while !journal.wants_compaction() {
        journal.append(std::slice::from_ref(&large)).expect("room");
    }
    // One that saves nothing is not wanted with every line.
    let live = std::iter::repeat_n(large, 63);
    journal.compact(live).expect("room");
    assert!(!journal.wants_compaction());
    journal.append_end(&[Record::Ended(1)]).expect("room");
    assert!(!journal.wants_compaction());
}

#[test]
fn one_that_fails_leaves_the_journal_in_use() {
    let folder = folder();
    let mut journal = open(folder.path()).journal;
    journal.append(&all_accepted(0..3)).expect("room");
    // A folder of this name cannot be removed like a file.
    fs::create_dir(folder.path().join(file::UNFINISHED)).expect("a folder");
    journal.compact(std::iter::empty()).expect_err("in the way");
    journal.append(&[Record::Ended(1)]).expect("room");
    drop(journal);
    assert_eq!(open(folder.path()).records.len(), 4);
}

#[tokio::test]
async fn what_was_waited_for_across_it_is_on_the_disk() {
    let folder = folder();
    let mut journal = open(folder.path()).journal;
    journal.append(&all_accepted(0..3)).expect("room");
    let before = journal.sync();
    journal
        .compact(all_accepted(0..3).into_iter())
        .expect("room");
    journal.append(&[Record::Ended(1)]).expect("room");
    let after = journal.sync();
    before.wait().await.expect("synced");
    after.wait().await.expect("synced");
}
