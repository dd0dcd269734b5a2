use std::process::Stdio;

use shared_api::ScopeName;
use shared_client::ClientError;
use shared_types::{Clock as _, SystemClock};
use tests::{
    gantry::{Gantry, Runner, Setup, eventually},
    openapi::Document,
    peer::{Peer, connect},
};
use tokio::io::AsyncWriteExt as _;

fn refused(error: &ClientError) -> (&str, u16) {
    match error {
        ClientError::Refused(problem) => (problem.code.as_str(), problem.status),
        other => panic!("{other:?} is no refusal"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_code_works_once_and_a_new_start_prints_none() {
    let mut gantry = Gantry::practice().await;
    gantry.stop_server().await;
    assert_eq!(gantry.start_server().await, None, "the owner is signed in");
    let wrong = gantry
        .client_with(None)
        .sign_in("00000-00000", "test")
        .await
        .expect_err("it is wrong");
    assert_eq!(refused(&wrong), ("unauthenticated", 401));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_codes_that_are_guessed_at_once_ten_are_told_why_and_the_right_one_still_signs_in() {
    let gantry = Gantry::practice().await;
    let guessing = (0..60).map(|guess| {
        let stranger = gantry.client_with(None);
        tokio::spawn(async move { stranger.sign_in(&format!("0000-{guess:04}"), "test").await })
    });
    let (mut told, mut too_many) = (0, 0);
    for guess in guessing.collect::<Vec<_>>() {
        let wrong = guess.await.expect("it ends").expect_err("all are wrong");
        match refused(&wrong) {
            ("unauthenticated", 401) => told += 1,
            ("too_many", 429) => too_many += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((told, too_many), (10, 50));

    let code = gantry.sign_in_code().await;
    let owner = gantry.client_with(None);
    let signed_in = owner.sign_in(&code, "the owner").await;
    signed_in.expect("others' wrong codes do not lock the owner out");
    let again = owner.sign_in(&code, "a thief").await;
    let again = again.expect_err("it is spent, and that is not said any more");
    assert_eq!(refused(&again), ("too_many", 429));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_code_comes_over_standard_input_and_is_refused_on_the_command_line() {
    let gantry = Gantry::practice().await;
    let code = gantry.sign_in_code().await;
    let home = tempfile::tempdir().expect("a home of another person");
    let login = async |arguments: &[&str], input: &str| {
        let mut login = gantry.terminal(&[&["login"], arguments].concat());
        login
            .env("GANTRY_HOME", home.path())
            .env_remove("GANTRY_TOKEN");
        login
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut login = login.spawn().expect("it starts");
        let mut stdin = login.stdin.take().expect("stdin is piped");
        // It may have ended without reading.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let output = login.wait_with_output().await.expect("it ends");
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8(said).expect("text"),
        )
    };
    let (done, said) = login(&[&code], "").await;
    assert!(!done && said.contains("list of processes"), "{said}");
    assert!(!said.contains(&code), "{said}");
    let (done, said) = login(&[], "").await;
    assert!(
        !done && said.contains("gantry-server sign-in-code"),
        "{said}"
    );
    let (done, said) = login(&[], &format!("{code}\n")).await;
    assert!(done && said.contains("signed in"), "{said}");
    let (done, said) = login(&["-"], &gantry.sign_in_code().await).await;
    assert!(done, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_answers_without_a_credential_but_signing_in_shared_sessions_and_the_two_probes() {
    let gantry = Gantry::practice().await;
    let http = reqwest::Client::new();
    let document = http
        .get(format!("{}/api/v1/openapi.json", gantry.url()))
        .bearer_auth(gantry.token())
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    let mut tried = 0;
    let mut open = Vec::new();
    let document = Document::new(document);
    for operation in document.operations() {
        if operation.is_open() {
            open.push(operation.path);
            continue;
        }
        let path = operation
            .path
            .replace("{id}", "ses_00000000000000000000000000");
        let method = operation.method.to_uppercase();
        for token in ["", "gantry_key_", "gantry_user_AAAA", "x"] {
            let answer = http
                .request(
                    method.parse().expect("a method"),
                    format!("{}{path}", gantry.url()),
                )
                .bearer_auth(token)
                .send()
                .await
                .expect("an answer");
            assert_eq!(answer.status(), 401, "{method} {path}");
            tried += 1;
        }
    }
    assert!(tried > 40, "the document names the routes");
    // A shared session takes the secret of its link, which is in the address.
    assert_eq!(
        open,
        [
            "/api/v1/browser/sign-in",
            "/api/v1/shared/{link}",
            "/api/v1/shared/{link}/events",
            "/api/v1/sign-in",
        ]
    );
    for path in ["/metrics", "/api/v1/openapi.json", "/api/v1/stream"] {
        assert_eq!(
            http.get(format!("{}{path}", gantry.url()))
                .send()
                .await
                .expect("an answer")
                .status(),
            401,
            "{path}"
        );
    }
    for path in ["/livez", "/readyz"] {
        assert_eq!(
            http.get(format!("{}{path}", gantry.url()))
                .send()
                .await
                .expect("an answer")
                .text()
                .await
                .expect("text"),
            "ok\n"
        );
    }
}

/// The status and the page of metrics, as this key is shown them.
async fn scrape(gantry: &Gantry, key: &str) -> (u16, String) {
    let asked = reqwest::Client::new()
        .get(format!("{}/metrics", gantry.url()))
        .bearer_auth(key)
        .send();
    let answer = asked.await.expect("an answer");
    (answer.status().as_u16(), answer.text().await.expect("text"))
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_served_to_whoever_has_a_key_and_a_revoked_key_is_worth_nothing() {
    let gantry = Gantry::practice().await;
    gantry.talk().await.say("hello").await;
    let made = gantry.key("prometheus", &[ScopeName::Metrics]).await;
    let scrape = || scrape(&gantry, &made.key);
    let (status, text) = scrape().await;
    assert_eq!(status, 200);
    assert!(
        text.contains("gantry_turns_ended_total{outcome=\"completed\"} 1"),
        "{text}"
    );
    gantry
        .client()
        .remove_key(made.entry.id)
        .await
        .expect("it is revoked");
    assert_eq!(scrape().await.0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_spent_and_empty_join_tokens_are_refused_and_enrol_nothing() {
    let gantry = Gantry::practice().await;
    let token = gantry
        .client()
        .create_join_token(&shared_api::CreateJoinToken::one(""))
        .await
        .expect("a token")
        .token;
    let other = Gantry::practice().await;
    let foreign = other
        .client()
        .create_join_token(&shared_api::CreateJoinToken::one(""))
        .await
        .expect("a token")
        .token;
    let refusals = [
        ("", "empty"),
        ("gantry_join_AAAA", "damaged"),
        ("sk-12345", "not a Gantry token"),
        (foreign.as_str(), "not the one that is expected"),
    ];
    let stranger = Runner::stranger();
    for (token, words) in refusals {
        let output = stranger.try_enrol(gantry.url(), token, "stranger").await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{token:?} enrolled");
        assert!(
            said.contains(words),
            "{token:?} should be refused with {words:?}: {said}"
        );
        assert!(
            token.is_empty() || !said.contains(token),
            "the token shows: {said}"
        );
    }
    assert!(gantry.client().runners().await.expect("a list").is_empty());
    Runner::enrol(gantry.url(), &token, "first").await;
    let output = stranger.try_enrol(gantry.url(), &token, "second").await;
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("used already"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(gantry.client().runners().await.expect("a list").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_a_runner_trusts_the_server_that_its_token_pins() {
    let gantry = Gantry::with_tls().await;
    assert!(gantry.url().starts_with("https://"));
    let runner = gantry.runner("laptop").await;
    let told = gantry.talk().await.say("run touch over-tls").await;
    assert_eq!(told.places()[0].runner_name, "laptop");
    assert!(runner.file("over-tls").is_some());
}

/// The command line of every process on this machine, whoever started it.
fn command_lines() -> String {
    let processes = std::fs::read_dir("/proc").expect("there is one");
    let lines = processes.flatten().filter_map(|process| {
        // A process that ends meanwhile has none.
        let line = std::fs::read(process.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).into_owned())
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_in_no_log_no_process_list_and_no_error() {
    let gantry = Gantry::practice().await;
    let token = gantry.join_token("laptop").await;
    let mut runner = Runner::enrol(gantry.url(), &token, "laptop").await;
    runner.start();
    gantry.until_online("laptop", true).await;
    let mut talk = gantry.talk().await;
    let turn = talk.send("run echo up; sleep 600").await;
    talk.until_output("up").await;
    let listed = command_lines();
    assert!(
        [
            "gantry-server",
            "gantry-runner",
            "gantry-supervisor",
            "sleep"
        ]
        .iter()
        .all(|program| listed.contains(program)),
        "all that runs is seen"
    );
    talk.cancel().await;
    talk.ended(turn).await;

    let stranger = Runner::stranger();
    let mut said = vec![listed, gantry.log(), runner.log()];
    let (unknown, nowhere) = (gantry.join_token("").await, "http://127.0.0.1:1");
    let damaged = format!("{}x", &unknown[..unknown.len() - 1]);
    for (server, token) in [
        (gantry.url(), &token),
        (gantry.url(), &damaged),
        (nowhere, &unknown),
    ] {
        let refused = stranger.try_enrol(server, token, "stranger").await;
        assert!(!refused.status.success());
        said.push(String::from_utf8_lossy(&refused.stderr).into_owned());
    }
    let wrong = gantry.client_with(Some(format!("{}x", gantry.token())));
    said.push(wrong.runners().await.expect_err("it is wrong").to_string());
    said.push(gantry.log());
    for said in said {
        assert!(!said.is_empty());
        for secret in [&token, &damaged, &unknown, gantry.token()] {
            assert!(!said.contains(secret), "{said}");
        }
    }
    for log in [gantry.log(), runner.log()] {
        assert!(
            !log.contains("gantry_join_") && !log.contains("gantry_user_") && !log.contains("eyJ"),
            "{log}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_a_fleet_is_on_no_command_line_and_one_for_one_machine_is_ready_to_paste() {
    let gantry = Gantry::practice().await;
    let printed = async |arguments: &[&str]| {
        let output = gantry.cli(&[&["runners", "add"], arguments].concat()).await;
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("text")
    };
    let one = printed(&["laptop"]).await;
    let enrol = format!("gantry-runner enrol --server {} ", gantry.url());
    let rest = one.trim().strip_prefix(&enrol).expect("a line to paste");
    assert!(rest.starts_with("gantry_join_"), "{one}");
    let fleet = printed(&["--uses", "2"]).await;
    let lines: Vec<&str> = fleet.lines().collect();
    let [token, line] = lines[..] else {
        panic!("a token and a line: {fleet}")
    };
    assert_eq!(line, format!("{enrol}-"));
    Runner::enrol(gantry.url(), token, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_token_gives_labels_and_is_good_only_where_it_says() {
    let gantry = Gantry::practice().await;
    let add = async |name: &str, range: &str| {
        let arguments = [
            "runners",
            "add",
            name,
            "--label",
            "zone=office",
            "--from",
            range,
        ];
        let output = gantry.cli(&arguments).await;
        let printed = String::from_utf8(output.stdout).expect("text");
        printed.split_whitespace().last().map(str::to_owned)
    };
    let elsewhere = add("far", "192.0.2.0/24").await.expect("a token");
    let stranger = Runner::stranger();
    let refused = stranger.try_enrol(gantry.url(), &elsewhere, "far").await;
    let said = String::from_utf8(refused.stderr).expect("text");
    assert!(said.contains("not for your network"), "{said}");
    let here = add("near", "127.0.0.0/8").await.expect("a token");
    Runner::enrol(gantry.url(), &here, "near").await;
    let listed = gantry.cli(&["runners", "--json"]).await.stdout;
    let listed: serde_json::Value = serde_json::from_slice(&listed).expect("one runner");
    assert_eq!(
        (&listed["name"], &listed["labels"]),
        (&"near".into(), &serde_json::json!({ "zone": "office" }))
    );
    assert_eq!(add("x", "everywhere").await, None, "that is no range");
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_join_tokens_is_slowed_down_and_locks_nobody_out() {
    let gantry = Gantry::practice().await;
    let spent = gantry.join_token("first").await;
    Runner::enrol(gantry.url(), &spent, "first").await;
    let channel = connect(gantry.url()).await;
    let mut answers = Vec::new();
    for _ in 0..12 {
        let refused = Peer::try_enrol_over(channel.clone(), spent.clone(), "").await;
        answers.push(refused.err().expect("it is spent").code());
    }
    use tonic::Code::{ResourceExhausted, Unauthenticated};
    assert_eq!(answers[..10], [Unauthenticated; 10]);
    assert_eq!(answers[10..], [ResourceExhausted; 2]);
    Peer::enrol(&gantry, "second").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_join_token_is_refused_as_expired_and_enrols_nothing() {
    let gantry = Gantry::practice().await;
    let body = serde_json::json!({ "name": "late", "valid_for_s": 1 }).to_string();
    let made = gantry.ask("POST", "/api/v1/join-tokens", Some(body)).await;
    assert_eq!(made.status, 201, "{made:?}");
    let made: shared_api::JoinToken = serde_json::from_value(made.body).expect("a join token");
    let clock = SystemClock::new();
    eventually("the token's time is over", || async {
        (clock.now() > made.expires_at).then_some(())
    })
    .await;
    let output = Runner::stranger()
        .try_enrol(gantry.url(), &made.token, "late")
        .await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("expired"),
        "{said}"
    );
    assert!(gantry.client().runners().await.expect("a list").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_token_that_was_pasted_in_the_wrong_place_is_taken_back() {
    let gantry = Gantry::practice().await;
    let say = async |arguments: &[&str]| {
        let output = gantry.cli(arguments).await;
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8(said).expect("text")
    };
    let added = say(&["runners", "add", "laptop", "--json"]).await;
    let added: serde_json::Value = serde_json::from_str(&added).expect("a join token");
    let id = added["id"].as_str().expect("an id");
    let listed = say(&["runners", "tokens"]).await;
    assert!(
        listed.contains(&id[..10]) && listed.contains("laptop"),
        "{listed}"
    );

    let removed = say(&["runners", "tokens", "remove", &id[..12]]).await;
    assert!(removed.contains(id), "{removed}");
    let token = added["token"].as_str().expect("a token");
    let stranger = Runner::stranger();
    let refused = stranger.try_enrol(gantry.url(), token, "laptop").await;
    let said = String::from_utf8(refused.stderr).expect("text");
    assert!(said.contains("expired"), "{said}");
    let listed = say(&["runners", "tokens"]).await;
    assert!(listed.contains("no machine can enrol now"), "{listed}");
    let again = say(&["runners", "tokens", "remove", id]).await;
    assert!(again.contains("no join token"), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_token_made_with_a_key_can_be_used_no_longer_than_that_one() {
    let gantry = Gantry::practice().await;
    let key = shared_api::CreateKey {
        name: "ci".to_owned(),
        scopes: Some(vec![shared_api::ScopeName::Runners]),
        valid_for_s: Some(3600),
        from: None,
    };
    let key = gantry.client().create_key_with(&key).await.expect("a key");
    let with_key = gantry.client_with(Some(key.key));
    let terms = shared_api::CreateJoinToken {
        valid_for_s: Some(24 * 3600),
        ..shared_api::CreateJoinToken::one("")
    };
    let made = with_key.create_join_token(&terms).await.expect("a token");
    assert_eq!(Some(made.expires_at), key.entry.expires_at);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_token_is_good_for_a_second_to_thirty_days_whoever_asks() {
    let gantry = Gantry::practice().await;
    let operator = |valid_for: &str| {
        std::process::Command::new(tests::gantry::binary("gantry-server"))
            .args(["join-token", "--valid-for", valid_for])
            .env_clear()
            .env("GANTRY_HOME", gantry.home())
            .output()
            .expect("it starts")
    };
    for (seconds, good) in [(0, false), (1, true), (2_592_000, true), (2_592_001, false)] {
        let body = serde_json::json!({ "valid_for_s": seconds }).to_string();
        let answer = gantry.ask("POST", "/api/v1/join-tokens", Some(body)).await;
        let printed = operator(&seconds.to_string());
        let said = String::from_utf8_lossy(&printed.stderr).into_owned();
        assert_eq!(answer.status, if good { 201 } else { 422 }, "{answer:?}");
        assert_eq!(printed.status.success(), good, "{said}");
        if !good {
            let detail = answer.body["detail"].as_str().expect("a detail");
            assert!(detail.contains("1 to 2592000"), "{detail}");
            assert!(said.contains(detail), "{said}");
        }
    }
    let printed = operator("3600");
    let token = String::from_utf8(printed.stdout).expect("text");
    Runner::enrol(gantry.url(), token.trim(), "operators").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_token_enrols_as_many_as_it_says_and_ephemeral_runners_leave_nothing_behind() {
    let gantry = Gantry::practice().await;
    let client = gantry.client();
    let terms = shared_api::CreateJoinToken {
        uses: Some(2),
        ephemeral: true,
        ..shared_api::CreateJoinToken::one("")
    };
    let token = client
        .create_join_token(&terms)
        .await
        .expect("a token")
        .token;
    let mut first = Runner::enrol(gantry.url(), &token, "first").await;
    let _second = Runner::enrol(gantry.url(), &token, "second").await;
    let third = Runner::stranger()
        .try_enrol(gantry.url(), &token, "third")
        .await;
    assert!(String::from_utf8_lossy(&third.stderr).contains("used already"));
    first.start();
    gantry.until_online("first", true).await;
    assert_eq!(first.stop().await, Some(0));
    eventually("the runner is gone", || async {
        let runners = client.runners().await.ok()?;
        runners
            .iter()
            .all(|runner| runner.name != "first")
            .then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_runner_says_of_itself_is_in_lists_and_metrics_for_as_long_as_it_is_linked() {
    let gantry = Gantry::with(Setup::with_short_links()).await;
    let key = gantry.key("prometheus", &[ScopeName::Metrics]).await.key;
    let mut runner = gantry.runner("laptop").await;
    let started = gantry.cli(&["exec", "-d", "--", "sleep", "600"]).await;
    assert!(started.status.success(), "{started:?}");
    let running = |count: u32| {
        let (gantry, key) = (&gantry, &key);
        eventually("the figures come", move || async move {
            let (_, page) = scrape(gantry, key).await;
            let line = format!("\ngantry_fleet_operations_running {count}\n");
            page.contains(&line).then_some(page)
        })
    };
    let page = running(1).await;
    assert!(
        !page.contains("\ngantry_fleet_disk_free_bytes 0\n"),
        "{page}"
    );
    let listed = gantry.cli(&["runners"]).await;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("online, 1 running"), "{listed}");
    runner.kill().await;
    running(0).await;
}
