use std::io::Write;

use super::*;

fn file_with(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("written");
    file
}

fn fenced() -> Fate {
    Fate::Fenced {
        reason: "it is a test".to_owned(),
    }
}

#[test]
fn a_record_reads_back_with_the_room_that_was_made_for_it() {
    let file = tempfile::tempfile().expect("a file");
    make_room(&file).expect("room");
    let line = to_line("fate", &fenced()).expect("a line");
    file.write_all_at(&line, 0).expect("written");
    let fate: Fate = read("fate", &file, "fate").expect("a record");
    assert_eq!(fate, fenced());
}

#[test]
fn every_damage_is_noticed() {
    let line = to_line("fate", &fenced()).expect("a line");
    for length in 0..line.len() {
        let torn = read::<Fate>("fate", &file_with(&line[..length]), "fate");
        assert!(matches!(torn, Err(RecordError::Damaged { .. })), "{length}");
    }
    for index in 2..line.len() {
        let mut changed = line.clone();
        changed[index] ^= 1;
        assert!(read::<Fate>("fate", &file_with(&changed), "fate").is_err());
    }
}

#[test]
fn fields_of_a_neighbouring_version_are_ignored_and_a_far_one_is_refused() {
    let json = r#"{"offset":7,"checksum":null,"colour":"blue"}"#;
    let line = |version: u32| {
        let checksum = crc32fast::hash(json.as_bytes());
        format!("{version} end {checksum:08x} {json}\n")
    };
    let read = |version| read::<SpoolEnd>("end", &file_with(line(version).as_bytes()), "end");
    assert_eq!(read(VERSION + 1).expect("a neighbour").offset, 7);
    assert_eq!(read(VERSION - 1).expect("a neighbour").offset, 7);
    assert!(matches!(
        read(VERSION + 2),
        Err(RecordError::Version { .. })
    ));
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    let long = "ä".repeat(MAX_REASON_BYTES);
    let cut = reason(&format!("x{long}"));
    assert_eq!(cut.len(), MAX_REASON_BYTES - 1);
}

#[test]
fn time_that_has_passed_since_the_start_is_not_left() {
    let now = clock_gettime(ClockId::Monotonic);
    let began = u64::try_from(now.tv_sec).expect("a time") - 1;
    let minute = Duration::from_secs(60);
    let times = |began: u64| CommandTimes {
        began_ms: began * 1000,
        run_for: Some(minute),
        orphan_for: None,
        kill_grace: minute,
    };
    let left = times(began).run_left().expect("a bound");
    assert!(left < minute && !left.is_zero(), "{left:?}");
    assert_eq!(
        times(0).run_left(),
        Some(minute.saturating_sub(Duration::from_secs(began + 1)))
    );
}

#[test]
fn a_start_without_times_or_claim_is_read() {
    let line = r#"{"operation":"op_00000000000000000000000007","identity":{"supervisor":{"pid":1,"start_ticks":1,"boot_id":"b"},"kill":"sweep","cgroup":null},"child":null}"#;
    let start: StartRecord = serde_json::from_str(line).expect("a record of an earlier program");
    assert_eq!((start.times, start.claim), (None, None));
}
