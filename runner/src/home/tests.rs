use shared_types::entropy::SeededEntropy;

use super::*;

fn enrolled() -> Enrolled {
    Enrolled {
        servers: vec!["https://localhost:7400".into(), "https://other:7400".into()],
        allow_plain_text: false,
        runner: RunnerId::from_u128(7),
        name: "laptop".into(),
        server_identity: ServerIdentity([3; 32]),
        certificate: Some(Digest::of(b"certificate")),
        workspace: "/work".into(),
    }
}

#[test]
fn what_was_enrolled_reads_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = Home::within(directory.path());
    let _lock = home.lock().expect("the lock");
    assert_eq!(home.enrolled().expect("a home"), None);
    let key = RunnerKey::generate(&SeededEntropy::new(1));
    home.prepare_key(&key).expect("a key");
    home.prepare_key(&key)
        .expect("a key over an unfinished one");
    assert!(home.key().is_err(), "a prepared key does not count yet");
    home.enrol(&enrolled()).expect("an enrolment");
    assert_eq!(home.enrolled().expect("a home"), Some(enrolled()));
    assert_eq!(home.key().expect("the key").public(), key.public());
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
