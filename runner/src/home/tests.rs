use std::sync::atomic::{AtomicBool, Ordering};

use shared_types::{Token, entropy::SeededEntropy};

use super::*;
use crate::testing::SmallDisk;

fn enrolled() -> EnrolledHome {
    EnrolledHome {
        servers: vec!["https://localhost:7400".into(), "https://other:7400".into()],
        allow_plain_text: false,
        runner: RunnerId::from_u128(7),
        name: "laptop".into(),
        server_identity: ServerIdentity([3; 32]),
        certificate: Some(Digest::of(b"certificate")),
        workspace: "/work".into(),
        workspaces: Vec::new(),
    }
}

#[test]
fn what_was_enrolled_reads_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = Home::within(directory.path());
    let _lock = home.lock().expect("the lock");
    assert_eq!(home.enrolled().expect("a home"), None);
    let entropy = SeededEntropy::new(1);
    let token = || Token::join([1; 32], &entropy);
    let prepared = |token: &Token| home.prepare_key(token, &entropy).expect("a key");
    let (first, second) = (token(), token());
    let lost = prepared(&first);
    let again = prepared(&first);
    assert_eq!(
        again.public(),
        lost.public(),
        "the server may know it by now"
    );
    let key = prepared(&second);
    assert_ne!(key.public(), lost.public(), "another token, another runner");
    assert!(home.key().is_err(), "a prepared key does not count yet");
    home.enrol(&enrolled()).expect("an enrolment");
    assert_eq!(home.enrolled().expect("a home"), Some(enrolled()));
    assert_eq!(home.key().expect("the key").public(), key.public());
}

#[test]
fn a_daemon_that_is_gone_is_not_taken_for_who_holds_the_folder_now() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = Home::within(directory.path());
    let mut lock = home.lock().expect("the lock");
    lock.note_daemon(true).expect("there is room");
    let daemon = home.daemon().map(|daemon| daemon.is_detached);
    assert_eq!(daemon, Some(true));
    drop(lock);
    let _lock = home.lock().expect("the lock");
    assert_eq!(home.daemon(), None);
}

#[test]
fn a_home_that_knows_its_server_by_one_address_reads_as_it_did() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = Home::within(directory.path());
    let _lock = home.lock().expect("the lock");
    home.save(&enrolled()).expect("a file");
    let path = directory.path().join("runner/runner.toml");
    let text = fs::read_to_string(&path).expect("the file");
    let list = r#"servers = ["https://localhost:7400", "https://other:7400"]"#;
    assert!(text.contains(list), "{text}");
    fs::write(&path, text.replace(list, r#"server = "https://x:1""#)).expect("a file");
    let read = home.enrolled().expect("a home").expect("an enrolment");
    assert_eq!(read.servers, ["https://x:1"]);
}

#[test]
fn a_home_serves_one_process_at_a_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = Home::within(directory.path());
    assert!(!home.is_taken());
    let lock = home.lock().expect("the lock");
    assert!(home.is_taken());
    let refused = home.lock().expect_err("a second lock").to_string();
    assert!(
        refused.contains("is used by a running gantry-runner"),
        "{refused}"
    );
    drop(lock);
    assert!(!home.is_taken());
}

#[test]
fn a_look_whether_a_home_is_taken_keeps_nobody_from_taking_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = Home::within(directory.path());
    drop(home.lock().expect("the lock"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                home.is_taken();
            }
        });
        let taken = (0..100).all(|_| home.lock().is_ok());
        is_over.store(true, Ordering::Relaxed);
        assert!(taken);
    });
}

#[test]
fn an_unknown_key_in_the_file_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = Home::within(directory.path());
    let _lock = home.lock().expect("the lock");
    home.save(&enrolled()).expect("a file");
    let path = directory.path().join("runner/runner.toml");
    let text = fs::read_to_string(&path).expect("the file");
    fs::write(&path, format!("colour = \"red\"\n{text}")).expect("a file");
    let error = home.enrolled().expect_err("a damaged file").to_string();
    assert!(error.contains("unknown field `colour`"), "{error}");
    assert!(error.contains("runner.toml"), "{error}");
}

#[test]
fn the_join_state_is_what_was_saved_last_also_where_an_earlier_runner_wrote_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = Home::within(folder.path());
    std::fs::create_dir(&home.directory).expect("a home");
    assert_eq!(home.join_state().expect("none yet"), JoinState::default());
    std::fs::write(home.directory.join(JOIN_STATE), "41\n").expect("a file");
    let alone = JoinState {
        number: 41,
        signature: Vec::new(),
    };
    assert_eq!(home.join_state().expect("a number"), alone);
    let slot = format!("42 {:08x}\n", crc32fast::hash(b"42"));
    std::fs::write(home.directory.join(JOIN_STATE), slot).expect("a file");
    assert_eq!(home.join_state().expect("a number").number, 42);
    for number in 43..=46 {
        home.save_join_state(&state(number)).expect("saved");
        assert_eq!(home.join_state().expect("a number"), state(number));
    }
}

/// A state with a signature of its own.
fn state(number: u64) -> JoinState {
    JoinState {
        number,
        signature: vec![number as u8; 64],
    }
}

#[test]
fn a_join_state_that_was_half_written_is_the_one_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = Home::within(folder.path());
    std::fs::create_dir(&home.directory).expect("a home");
    for number in [8, 9, 10] {
        home.save_join_state(&state(number)).expect("saved");
    }
    let path = home.directory.join(JOIN_STATE);
    let text = std::fs::read_to_string(&path).expect("a file");
    assert!(text.contains("10 ") && text.contains("9 "), "one of each");
    std::fs::write(&path, text.replace("10 ", "1\0 ")).expect("a file");
    assert_eq!(home.join_state().expect("a number"), state(9));
    home.save_join_state(&state(11)).expect("saved");
    assert_eq!(home.join_state().expect("a number"), state(11));
    std::fs::write(&path, text.replace(' ', "")).expect("a file");
    let damaged = home.join_state().expect_err("no number");
    assert!(damaged.to_string().contains("join-state"), "{damaged}");
}

#[test]
fn on_a_small_disk_that_is_full_the_join_state_is_still_saved() {
    let disk = SmallDisk::mount("64k");
    let home = Home::within(disk.path());
    std::fs::create_dir(&home.directory).expect("a home");
    home.save_join_state(&state(1)).expect("room");
    disk.fill();
    for number in 2..=5 {
        home.save_join_state(&state(number))
            .expect("no room is needed");
        assert_eq!(home.join_state().expect("a number"), state(number));
    }
}

#[test]
fn where_the_link_is_reads_whole_also_while_it_is_noted() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = Home::within(directory.path());
    let _lock = home.lock().expect("the lock");
    home.note_link(Some("http://one"));
    std::thread::scope(|scope| {
        let noting = scope.spawn(|| (0..1000).for_each(|_| home.note_link(Some("http://one"))));
        while !noting.is_finished() {
            assert_eq!(home.link().as_deref(), Some("http://one"));
        }
    });
    home.note_link(None);
    assert_eq!(home.link(), None);
}
