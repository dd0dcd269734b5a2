use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    gantry::{Gantry, eventually},
    model_server::{ModelServer, Reply},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_make_no_sense_are_told_to_the_model_and_run_nothing() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    let outside = runner.home().join("outside.txt");
    std::fs::write(&outside, "secret").expect("it can be written");
    let huge = format!(r#"{{"command":"{}"}}"#, "x".repeat(1024 * 1024));
    let absolute = format!(r#"{{"path":{:?}}}"#, outside.display());
    let cases = [
        ("Shell", r#"{"command": "touch ran"#, "JSON"),
        ("Shell", "{}", "command"),
        ("Shell", r#"{"command":"touch ran","sudo":true}"#, "sudo"),
        ("Shell", r#"{"command":7}"#, "command"),
        ("Shell", huge.as_str(), "131071"),
        ("Teleport", "{}", "Shell"),
        ("Read", r#"{"path":"../outside.txt"}"#, "workspace"),
        ("Read", absolute.as_str(), "workspace"),
        (
            "Write",
            r#"{"path":"a/../../ran","content":"x"}"#,
            "workspace",
        ),
        ("Grep", r#"{"pattern":"("}"#, "pattern"),
    ];
    let mut replies: Vec<Reply> = cases
        .iter()
        .map(|(name, arguments, _)| Reply::call(*name, *arguments))
        .collect();
    replies.push(Reply::text("understood"));
    model.script(replies);
    let told = gantry.talk().await.say("go").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let calls = told.calls();
    assert_eq!(calls.len(), cases.len());
    for ((outcome, text), (name, arguments, words)) in calls.into_iter().zip(cases) {
        let shown = &arguments[..arguments.len().min(60)];
        assert!(
            matches!(outcome, CallOutcome::Refused | CallOutcome::Failed),
            "{name} {shown}: {outcome:?} {text}"
        );
        assert!(
            text.contains(words),
            "{name} {shown} should say {words:?}: {text}"
        );
        assert!(
            text.len() < 2000 && !text.contains("secret"),
            "{name} {shown}: {text}"
        );
    }
    assert_eq!(runner.file("ran"), None);
    assert!(!runner.home().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_is_not_text_and_output_that_is_huge_reach_the_model_bounded() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let _runner = gantry.runner("laptop").await;
    model.script(vec![
        Reply::call("Shell", r#"{"command":"printf 'a\\377\\376b'; head -c 30000000 /dev/zero | tr '\\0' x; echo the-end"}"#),
        Reply::text("ok"),
    ]);
    let told = gantry.talk().await.say("go").await;
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(text.len() < 16 * 1024, "{} bytes", text.len());
    assert!(
        text.contains("a\u{fffd}\u{fffd}b") && text.contains("the-end"),
        "{}…",
        &text[..100]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_fails_for_good_ends_the_turn_with_its_reason_and_without_the_key() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    model.script(vec![Reply::refusal(
        401,
        r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#,
    )]);
    let told = gantry.talk().await.say("go").await;
    assert_eq!(told.outcome, TurnOutcome::Failed);
    let reason = told.reason.expect("a failure has a reason");
    assert!(
        reason.contains("OPENAI_API_KEY") || reason.contains("key"),
        "{reason}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_huge_or_empty_is_refused_and_leaves_nothing_behind() {
    let gantry = Gantry::practice().await;
    let client = gantry.client();
    let session = client.create_session("").await.expect("a session").id;
    assert!(
        client
            .send(session, &"x".repeat(300_000), "1")
            .await
            .is_err()
    );
    assert!(
        client
            .send(session, &"x".repeat(3_000_000), "2")
            .await
            .is_err()
    );
    assert!(client.send(session, "  ", "3").await.is_err());
    assert_eq!(
        client.session(session).await.expect("it is there").last_seq,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_say_nothing_or_nonsense_are_closed_and_leak_no_descriptor() {
    let gantry = Gantry::practice().await;
    let address = gantry.url().trim_start_matches("http://").to_owned();
    let descriptors = || {
        std::fs::read_dir(format!("/proc/{}/fd", gantry.server_pid()))
            .expect("it runs")
            .count()
    };
    let before = descriptors();
    for round in 0..50 {
        let mut stream = TcpStream::connect(&address).await.expect("it listens");
        let nonsense: &[u8] = if round % 2 == 0 {
            b"\x16\x03\x01 this is no HTTP at all\r\n\r\n"
        } else {
            b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        };
        stream.write_all(nonsense).await.expect("it can be written");
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
    eventually("the descriptors are closed", || async {
        (descriptors() <= before + 2).then_some(())
    })
    .await;
    let mut silent = TcpStream::connect(&address).await.expect("it listens");
    assert_eq!(
        silent
            .read(&mut [0; 8])
            .await
            .expect("it is closed in order"),
        0,
        "a silent connection is closed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_cannot_be_used_end_in_one_clear_line() {
    let home = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str], environment: &[(&str, &str)]| {
        let output = std::process::Command::new(tests::gantry::binary("gantry-server"))
            .arg("run")
            .args(arguments)
            .env_clear()
            .env("GANTRY_HOME", home.path())
            .envs(environment.iter().copied())
            .output()
            .expect("it starts");
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(said.starts_with("gantry-server: "), "{said}");
        said
    };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    let said = run(&["--listen", &taken], &[]);
    assert!(
        said.contains(&taken) && said.contains("GANTRY_LISTEN"),
        "{said}"
    );
    let said = run(
        &["--listen", "127.0.0.1:0"],
        &[("OPENAI_API_KEY", "sk-secret")],
    );
    assert!(
        said.contains("GANTRY_MODEL") && !said.contains("sk-secret"),
        "{said}"
    );
    let said = run(
        &["--listen", "127.0.0.1:0"],
        &[("OPENAI_BASE_URL", "not a url"), ("GANTRY_MODEL", "m")],
    );
    assert!(said.contains("OPENAI_BASE_URL"), "{said}");
    std::fs::write(home.path().join("gantry.toml"), "[server]\nlissten = 1\n")
        .expect("it can be written");
    let said = run(&[], &[]);
    assert!(
        said.contains("lissten") && said.contains("gantry.toml"),
        "{said}"
    );
}
