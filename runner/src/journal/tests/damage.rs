//! Journals that a death, a disk or a person has changed.

use std::io::Write as _;

use proptest::prelude::*;

use super::*;

/// What opening makes of a journal with these bytes.
fn opened_from(bytes: &[u8]) -> (TempDir, OpenedJournal<Record>) {
    let folder = folder();
    fs::write(folder.path().join(file::NAME), bytes).expect("a file");
    let opened = open(folder.path());
    (folder, opened)
}

/// What reading makes of it, without a new journal in its place.
fn read_from(bytes: &[u8]) -> Result<read::Contents<Record>, String> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("room");
    std::io::Seek::rewind(&mut file).expect("a file");
    let read = read::read(&file).expect("a readable disk");
    read.map_err(|damaged| damaged.damage)
}

#[test]
fn an_append_torn_at_any_byte_is_cut_off_and_nothing_before_it() {
    let records = all_accepted(0..4);
    let (folder, id) = journal_of(&records);
    let whole = content(folder.path());
    let ends: Vec<usize> = line_ends(&whole);
    for length in ends[0]..whole.len() {
        let (folder, again) = opened_from(&whole[..length]);
        let kept = ends.iter().filter(|end| **end <= length).count();
        let torn = (length - ends[kept - 1]) as u64;
        assert_eq!(again.id, id, "{length}");
        assert_eq!(again.records, records[..kept - 1], "{length}");
        let cut = (torn > 0).then_some(Repair::Cut { bytes: torn });
        assert_eq!(again.repaired, cut, "{length}");
        // What comes now stands on a line of its own.
        let mut journal = again.journal;
        journal.append(&[Record::Ended(99)]).expect("room");
        drop(journal);
        let last = open(folder.path());
        assert_eq!(last.repaired, None, "{length}");
        assert_eq!(last.records.last(), Some(&Record::Ended(99)), "{length}");
    }
}

/// Where the lines end.
fn line_ends(bytes: &[u8]) -> Vec<usize> {
    let at = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    at.map(|(at, _)| at + 1).collect()
}

#[test]
fn any_changed_bit_is_noticed_and_never_gives_another_record() {
    let records = all_accepted(0..4);
    let (folder, _) = journal_of(&records);
    let whole = content(folder.path());
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            match read_from(&changed) {
                Err(_) => {}
                // Only without its end does the last line look like one that was never finished.
                Ok(contents) => {
                    assert_eq!(at, whole.len() - 1, "byte {at}, bit {bit}");
                    assert_eq!(contents.records, records[..3]);
                    assert!(contents.torn > 0);
                }
            }
        }
    }
}

#[test]
fn a_damaged_journal_is_kept_and_a_new_one_begins_with_what_stood_before_the_damage() {
    let (folder, id) = journal_of(&all_accepted(0..4));
    let mut bytes = content(folder.path());
    let at = line_ends(&bytes)[1] + 20;
    bytes[at] ^= 1;
    let (folder, again) = opened_from(&bytes);
    assert_ne!(again.id, id);
    assert_eq!(again.records, all_accepted(0..1));
    let kept = folder.path().join("journal.damaged-1");
    assert_eq!(
        again.repaired,
        Some(Repair::SetAside {
            kept: kept.clone(),
            damage: "line 3: its checksum does not fit".to_owned(),
        })
    );
    assert_eq!(fs::read(kept).expect("it is kept"), bytes);
    let new = again.id;
    drop(again);
    let third = open(folder.path());
    assert_eq!((third.id, third.repaired), (new, None));
    assert_eq!(third.records, all_accepted(0..1));
}

#[test]
fn a_line_that_is_missing_doubled_or_moved_is_damage() {
    let (folder, _) = journal_of(&all_accepted(0..6));
    let bytes = content(folder.path());
    let ends = line_ends(&bytes);
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), ends.len());
    let missing = [&lines[..3], &lines[4..]].concat().concat();
    let doubled = [&lines[..4], &lines[3..]].concat().concat();
    let moved = [&lines[..3], &[lines[4], lines[3]], &lines[5..]]
        .concat()
        .concat();
    for changed in [missing, doubled, moved] {
        let damage = read_from(&changed).expect_err("damage");
        assert!(damage.ends_with("its checksum does not fit"), "{damage}");
    }
    // The end of a journal cannot be told from a missing rest.
    let records = read_from(&bytes[..ends[4]]).expect("a journal").records;
    assert_eq!(records, all_accepted(0..4));
}

#[test]
fn zeros_at_the_end_are_cut_off() {
    let (folder, id) = journal_of(&all_accepted(0..4));
    for zeros in [1, 512, 4096, 2 * MAX_LINE_BYTES] {
        let mut bytes = content(folder.path());
        bytes.resize(bytes.len() + zeros, 0);
        let (_folder, again) = opened_from(&bytes);
        assert_eq!(again.id, id);
        assert_eq!(again.records, all_accepted(0..4));
        let bytes = zeros as u64;
        assert_eq!(again.repaired, Some(Repair::Cut { bytes }));
    }
}

#[test]
fn zeros_in_the_middle_are_damage() {
    let (folder, _) = journal_of(&all_accepted(0..40));
    let mut bytes = content(folder.path());
    bytes[512..1024].fill(0);
    let (_folder, again) = opened_from(&bytes);
    assert!(matches!(again.repaired, Some(Repair::SetAside { .. })));
}

#[test]
fn a_journal_without_a_header_or_from_another_time_is_set_aside() {
    let (folder, _) = journal_of(&[]);
    let good = String::from_utf8(content(folder.path())).expect("text");
    let after = |before: &str, json: &str| {
        let all = before.lines().map(|line| &line[9..]).collect::<String>() + json;
        format!("{before}{:08x} {json}\n", crc32fast::hash(all.as_bytes()))
    };
    let long = "x".repeat(2 * MAX_LINE_BYTES) + "\n";
    for (text, damage) in [
        (String::new(), "it has no header"),
        ("00000000 {".to_owned(), "it has no header"),
        ("\n".to_owned(), "its header: it is too short"),
        (long.clone(), "it has no header"),
        (
            after("", r#"{"format":2,"journal":7}"#),
            "it has format 2, and this runner knows format 1",
        ),
        (
            after("", r#"{"format":1,"journal":7}"#),
            "its header: this runner does not know what it says",
        ),
        (good.clone() + &long, "line 2: it is too long"),
        (
            after(&good, r#"{"Unheard":1}"#),
            "line 2: this runner does not know what it says",
        ),
        (good.clone() + &good, "line 2: its checksum does not fit"),
        (good + "\n", "line 2: it is too short"),
    ] {
        let (_folder, again) = opened_from(text.as_bytes());
        let Some(Repair::SetAside { damage: said, .. }) = again.repaired else {
            panic!("{damage}: {:?}", again.repaired);
        };
        assert_eq!(said, damage);
    }
}

#[test]
fn more_than_a_journal_may_hold_is_not_read() {
    let folder = folder();
    let file = File::create(folder.path().join(file::NAME)).expect("a file");
    file.set_len(MAX_JOURNAL_BYTES + 1).expect("a sparse file");
    let again = open(folder.path());
    assert!(matches!(again.repaired, Some(Repair::SetAside { .. })));
}

#[test]
fn so_many_damaged_journals_are_kept_and_then_a_person_is_asked() {
    let folder = folder();
    let spoil = || fs::write(folder.path().join(file::NAME), "spoilt").expect("a file");
    for number in 1..=MAX_DAMAGED {
        spoil();
        let again = open(folder.path());
        let kept = folder.path().join(format!("journal.damaged-{number}"));
        assert!(matches!(again.repaired, Some(Repair::SetAside { kept: at, .. }) if at == kept));
    }
    spoil();
    let refused = try_open(folder.path())
        .expect_err("a person is asked")
        .to_string();
    assert!(refused.contains("move them elsewhere"), "{refused}");
    assert_eq!(content(folder.path()), b"spoilt");
    fs::remove_file(folder.path().join("journal.damaged-3")).expect("moved");
    open(folder.path());
}

#[test]
fn a_death_between_setting_aside_and_beginning_anew_is_reported_again() {
    let folder = folder();
    fs::write(folder.path().join(file::NAME), "spoilt").expect("a file");
    file::set_aside(folder.path()).expect("a second name");
    let again = open(folder.path());
    assert!(matches!(again.repaired, Some(Repair::SetAside { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_mangled_journal_gives_a_prefix_or_is_damaged(
        count in 0_u64..30,
        at in any::<prop::sample::Index>(),
        removed in 0_usize..200,
        inserted in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let records = all_accepted(0..count);
        let (folder, id) = journal_of(&records);
        let mut bytes = content(folder.path());
        let at = at.index(bytes.len());
        let until = bytes.len().min(at + removed);
        bytes.splice(at..until, inserted);
        if let Ok(contents) = read_from(&bytes) {
            prop_assert_eq!(contents.header.journal, id);
            prop_assert_eq!(&contents.records[..], &records[..contents.records.len()]);
        }
    }

    #[test]
    fn garbage_is_never_a_journal(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        prop_assert!(read_from(&bytes).is_err());
    }
}
