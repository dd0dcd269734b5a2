//! People with rights that are enforced: by role, by whose a thing is, and while something is under way.

use std::time::Duration;

use serde_json::json;
use shared_api::{AuditOutcome, ClientMessage, CreateKey, RoleName, ScopeName};
use shared_client::{Client, ClientError};
use tests::{
    gantry::{Answer, Gantry, eventually},
    openapi::Document,
    socket::{Heard, Socket},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_tungstenite::tungstenite::Message;

/// The code of a refusal, and its words.
fn refused<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> (String, String) {
    match answer.expect_err("it is refused") {
        ClientError::Refused(problem) => (problem.code, problem.detail),
        other => panic!("{other:?} is no refusal"),
    }
}

async fn member(gantry: &Gantry, name: &str) -> (String, Client) {
    let token = gantry.person(name, RoleName::Member).await;
    let client = gantry.client_with(Some(token.clone()));
    (token, client)
}

/// A command of this person on a runner; returns its id.
async fn exec(gantry: &Gantry, token: &str, runner: &str, script: &str) -> String {
    let exec = json!({ "runner": runner, "exec": { "argv": ["sh", "-c", script] } });
    let started = gantry.ask_as(token, "post", "/api/v1/operations", Some(exec.to_string()));
    let started = started.await;
    assert_eq!(started.status, 201, "{started:?}");
    started.body["id"].as_str().expect("an id").to_owned()
}

/// Reads until the server says goodbye; returns the code.
async fn goodbye(mut socket: Socket) -> Option<u16> {
    loop {
        if let Heard::Closed(code) = socket.next().await {
            return code;
        }
    }
}

/// The command line of every process on this machine.
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
async fn what_is_another_persons_answers_at_every_address_like_what_does_not_exist() {
    let gantry = Gantry::practice().await;
    let (bobs, bob) = member(&gantry, "bob").await;
    let wish = shared_api::CreateJoinToken::one("pc");
    let token = bob.create_join_token(&wish);
    let token = token.await.expect("a member adds runners").token;
    let mut runner = tests::gantry::Runner::enrol(gantry.url(), &token, "pc").await;
    runner.start();
    gantry.until_online("pc", true).await;
    tests::asked::propose(&runner.workspace(), "deny = [\"Shell(git push *)\"]");
    let session = bob.create_session("").await.expect("a session").id;
    let key = bob.create_key("k").await.expect("a key").entry.id;
    let wish = shared_api::CreateJoinToken::one("mac");
    let unspent = bob.create_join_token(&wish);
    let unspent = unspent.await.expect("a token").id;
    let operation = exec(&gantry, &bobs, "pc", "sleep 1000").await;
    let runner = bob.runners().await.expect("a list")[0].id;
    let asked = tests::asked::about(&bob, session, "touch asked").await.id;
    let rule = shared_api::AddPermissionRule {
        rule: "Shell(make *)".to_owned(),
        decision: shared_api::Decision::Allow,
        for_everyone: false,
    };
    let rule = bob.add_permission_rule(&rule).await.expect("it is set");
    let rule = rule.id.expect("it is stored");
    let skill = tests::asked::skill(&bob).await;
    let trust = tests::asked::trusted(&bob, session).await.id;

    let bob_is = bob.me().await.expect("bob").user.id.to_string();
    let others = [RoleName::Viewer, RoleName::Member, RoleName::Admin];
    let mut tokens = vec![(RoleName::Owner, gantry.token().to_owned())];
    for role in others {
        let name = format!("{role:?}");
        tokens.push((role, gantry.person(&name, role).await));
    }
    let document = gantry.ask("get", "/api/v1/openapi.json", None).await;
    let document = Document::new(document.body);
    let mut tried = 0;
    for operation_at in document.operations() {
        let of = |noun: &str| {
            operation_at
                .path
                .starts_with(&format!("/api/v1/{noun}/{{id}}"))
        };
        let (theirs, nothing) = match () {
            () if of("sessions") => (session.to_string(), "ses_00000000000000000000000000"),
            () if of("operations") => (operation.clone(), "op_00000000000000000000000000"),
            () if of("approvals") => (asked.to_string(), "apr_00000000000000000000000000"),
            () if of("permissions/projects") => {
                (trust.to_string(), "rul_00000000000000000000000000")
            }
            () if of("extensions") => (skill.to_string(), "ext_00000000000000000000000000"),
            () if of("permissions") => (rule.to_string(), "rul_00000000000000000000000000"),
            () if of("keys") => (key.to_string(), "crd_00000000000000000000000000"),
            () if of("join-tokens") => (unspent.to_string(), "jtk_00000000000000000000000000"),
            () if of("runners") => (runner.to_string(), "run_00000000000000000000000000"),
            () if of("service-accounts") => (bob_is.clone(), "usr_00000000000000000000000000"),
            // People see each other; sandboxes need an engine (`docker`), and accounts a model (`model_accounts`).
            () if of("people") || of("sandboxes") || of("model-accounts") => continue,
            () => {
                assert!(!operation_at.path.contains("{id}"), "{}", operation_at.path);
                continue;
            }
        };
        for (role, token) in &tokens {
            if of("runners") && matches!(role, RoleName::Owner | RoleName::Admin) {
                continue; // They see all runners.
            }
            let ask = async |id: &str| {
                let path = operation_at.path.replace("{id}", id) + &operation_at.smallest_query();
                let body = operation_at.smallest_body();
                let answer = gantry.ask_as(token, operation_at.method, &path, body);
                let Answer { status, body, .. } = answer.await;
                (status, body)
            };
            let (theirs, nothing) = (ask(&theirs).await, ask(nothing).await);
            let at = format!("{role:?}: {} {}", operation_at.method, operation_at.path);
            assert_eq!(theirs, nothing, "{at}");
            assert!(matches!(theirs.0, 403 | 404), "{at}: {theirs:?}");
            tried += 1;
        }
    }
    assert!(tried > 60, "{tried}");
    let path = format!("/api/v1/operations/{operation}/stream");
    for (_, token) in &tokens {
        assert_eq!(Socket::refused(&gantry, token, &path).await, 404);
    }
    let kept = bob.runners().await.expect("a list");
    assert_eq!(kept.len(), 1, "nobody has removed it");
    gantry
        .ask_as(
            &bobs,
            "post",
            &format!("/api/v1/operations/{operation}/cancel"),
            None,
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_runner_is_used_until_it_is_not_shared_any_more_also_in_mid_stream() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let (owner, id) = (
        gantry.client(),
        gantry.client().runners().await.expect("a list")[0].id,
    );
    let (bobs, bob) = member(&gantry, "bob").await;
    assert_eq!(bob.runners().await.expect("a list"), []);
    assert_eq!(refused(bob.use_runner("laptop").await).0, "not_found");

    let shared = owner.share_runner(id, "Bob").await.expect("it is shared");
    assert_eq!(
        (shared.owner.as_deref(), &shared.shared_with),
        (Some("owner"), &vec!["bob".to_owned()])
    );
    bob.use_runner("laptop").await.expect("it is shared");
    let (code, words) = refused(bob.remove_runner(id).await);
    assert_eq!(code, "forbidden");
    assert!(words.contains("only its owner or an admin"), "{words}");
    let mut session = gantry.talk_as(&bobs).await;
    session.say("run echo hi").await;

    let operation = exec(&gantry, &bobs, "laptop", "echo begun; sleep 1000").await;
    let at = format!("/api/v1/operations/{operation}");
    let stream = Socket::open_as(
        &gantry,
        &bobs,
        &format!("{at}/stream"),
        "OperationServerMessage",
    )
    .await;
    owner
        .unshare_runner(id, None)
        .await
        .expect("it is taken back");
    assert_eq!(goodbye(stream).await, Some(1008));
    assert_eq!(
        Socket::refused(&gantry, &bobs, &format!("{at}/stream")).await,
        403
    );
    let output = format!("{at}/output?stream=stdout&offset=0");
    let output = gantry.ask_as(&bobs, "get", &output, None).await;
    assert_eq!(output.status, 403, "what it still writes: {output:?}");
    let input = gantry
        .ask_as(
            &bobs,
            "post",
            &format!("{at}/input?offset=0"),
            Some("x".into()),
        )
        .await;
    assert_eq!(input.status, 403, "{input:?}");
    let words = input.body["detail"].as_str().expect("words");
    assert!(
        words.contains("laptop is not shared with you any more"),
        "{words}"
    );
    let told = session.say("run echo hi").await;
    let told = format!("{:?}", told.events);
    assert!(
        told.contains("is not there for this session any more"),
        "{told}"
    );
    assert_eq!(bob.runners().await.expect("a list"), []);
    let stopped = gantry
        .ask_as(&bobs, "post", &format!("{at}/cancel"), None)
        .await;
    assert_eq!(stopped.status, 202, "one's own may be stopped: {stopped:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_holds_the_last_byte_of_a_request_back_keeps_no_right_with_it() {
    let gantry = Gantry::practice().await;
    let owner = gantry.client();
    let (bobs, _) = member(&gantry, "bob").await;
    let address = gantry.url().strip_prefix("http://").expect("plain text");
    let mut connection = TcpStream::connect(address).await.expect("a connection");
    let head = format!(
        "POST /api/v1/join-tokens HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {bobs}\r\n\
         content-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{"
    );
    connection.write_all(head.as_bytes()).await.expect("sent");
    // It is asked for once more only after a second, and so long the answer has to wait for the body.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let people = owner.people().await.expect("a list");
    let bob = people.iter().find(|person| person.name == "bob");
    let removed = owner.remove_person(bob.expect("he is there").id).await;
    removed.expect("he is removed");
    connection.write_all(b"}").await.expect("sent");
    let mut answer = String::new();
    connection
        .read_to_string(&mut answer)
        .await
        .expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_is_lowered_and_a_person_who_is_removed_end_what_is_under_way() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let owner = gantry.client();
    let id = owner.runners().await.expect("a list")[0].id;
    owner
        .share_runner(id, "everyone")
        .await
        .expect("it is shared");
    let (bobs, bob) = member(&gantry, "bob").await;
    let people = owner.people().await.expect("a list");
    let bob_is = people
        .iter()
        .find(|person| person.name == "bob")
        .expect("bob")
        .id;

    let operation = exec(&gantry, &bobs, "laptop", "sleep 1000").await;
    let at = format!("/api/v1/operations/{operation}/stream");
    let stream = Socket::open_as(&gantry, &bobs, &at, "OperationServerMessage").await;
    owner
        .change_role(bob_is, RoleName::Viewer)
        .await
        .expect("it is changed");
    assert_eq!(
        goodbye(stream).await,
        Some(1008),
        "it may pass no input any more"
    );
    // Whoever connects again would be cut off again, without end.
    assert_eq!(Socket::refused(&gantry, &bobs, &at).await, 403);
    let (code, words) = refused(bob.create_session("").await);
    assert_eq!(code, "forbidden");
    assert!(words.contains("takes the role member"), "{words}");

    owner
        .change_role(bob_is, RoleName::Member)
        .await
        .expect("it is changed");
    bob.use_runner("laptop").await.expect("it is shared");
    let mut talk = gantry.talk_as(&bobs).await;
    talk.send("run echo begun; sleep 98761").await;
    talk.until_output("begun").await;
    // The shell says so before it starts it.
    eventually("it runs", async || {
        command_lines().contains("sleep\098761").then_some(())
    })
    .await;
    let mut stream = Socket::open_as(&gantry, &bobs, "/api/v1/stream", "ServerMessage").await;
    let session = talk.session();
    let subscribe = ClientMessage::Subscribe { session, after: 0 };
    let subscribe = serde_json::to_string(&subscribe).expect("JSON");
    stream.say(Message::text(subscribe)).await;
    owner.remove_person(bob_is).await.expect("he is removed");
    assert_eq!(refused(bob.me().await).0, "unauthenticated");
    assert_eq!(goodbye(stream).await, Some(1008));
    eventually("his command ends", async || {
        (!command_lines().contains("sleep\098761")).then_some(())
    })
    .await;
    let again = owner
        .invite("bob", RoleName::Member)
        .await
        .expect("the name is free");
    assert_ne!(again.person.id, bob_is, "it is another person");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_signs_in_once_and_a_newer_one_replaces_it() {
    let gantry = Gantry::practice().await;
    let (owner, stranger) = (gantry.client(), gantry.client_with(None));
    let first = owner
        .invite("Ann", RoleName::Viewer)
        .await
        .expect("she is invited");
    let second = owner
        .invite("ANN", RoleName::Member)
        .await
        .expect("she is invited again");
    assert_eq!(first.person.id, second.person.id, "it is one name");
    let wrong = stranger.sign_in(&first.code, "x").await;
    assert!(refused(wrong).1.contains("a newer one has taken its place"));
    let ann = stranger
        .sign_in(&second.code, "x")
        .await
        .expect("it is good");
    assert_eq!(
        (ann.user.name.as_str(), ann.user.role.as_str()),
        ("ann", "member")
    );
    assert!(
        refused(stranger.sign_in(&second.code, "x").await)
            .1
            .contains("used already")
    );
    assert_eq!(
        refused(owner.invite("ann", RoleName::Member).await).0,
        "conflict"
    );

    let me = owner.me().await.expect("the owner").user.id;
    for answer in [
        owner.remove_person(me).await,
        owner.change_role(me, RoleName::Admin).await.map(drop),
    ] {
        let (code, words) = refused(answer);
        assert!(
            code == "conflict" && words.contains("the last owner stays one"),
            "{words}"
        );
    }
    owner
        .change_role(ann.user.id, RoleName::Owner)
        .await
        .expect("now there are two");
    owner.remove_person(me).await.expect("one of two may leave");
    assert_eq!(refused(owner.me().await).0, "unauthenticated");
    let code = gantry.sign_in_code().await;
    let now = stranger
        .sign_in(&code, "x")
        .await
        .expect("the operator's code");
    assert_eq!(now.user.name, "ann", "she is the first owner now");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_makes_a_code_for_whom_it_names() {
    let gantry = Gantry::practice().await;
    member(&gantry, "bob").await;
    let operator = |name: &str| {
        let output = std::process::Command::new(tests::gantry::binary("gantry-server"))
            .args(["sign-in-code", "--user", name])
            .env_clear()
            .env("GANTRY_HOME", gantry.home())
            .output();
        output.expect("it starts")
    };
    let code = String::from_utf8(operator("Bob").stdout).expect("text");
    let bob = gantry
        .client_with(None)
        .sign_in(code.trim(), "second")
        .await;
    assert_eq!(bob.expect("it is good").user.name, "bob");
    let nobody = operator("zoe");
    let said = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert!(
        !nobody.status.success() && said.contains("no person zoe"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metrics_key_can_only_scrape_and_a_key_says_why_it_is_refused() {
    let gantry = Gantry::practice().await;
    let metrics = gantry.key("prometheus", &[ScopeName::Metrics]).await.key;
    let answer = gantry.ask_as(&metrics, "get", "/metrics", None).await;
    assert_eq!(answer.status, 200);
    let document = gantry.ask("get", "/api/v1/openapi.json", None).await;
    let document = Document::new(document.body);
    for operation in document.operations() {
        if operation.is_open() {
            continue;
        }
        let noun = operation.path.split('/').nth(3).expect("a noun");
        let id = match noun {
            "sessions" => "ses_00000000000000000000000000",
            "operations" => "op_00000000000000000000000000",
            "approvals" => "apr_00000000000000000000000000",
            "permissions" => "rul_00000000000000000000000000",
            "extensions" => "ext_00000000000000000000000000",
            "keys" => "crd_00000000000000000000000000",
            "join-tokens" => "jtk_00000000000000000000000000",
            "people" | "service-accounts" => "usr_00000000000000000000000000",
            "sandboxes" => "sbx_00000000000000000000000000",
            "model-accounts" => "mac_00000000000000000000000000",
            _ => "run_00000000000000000000000000",
        };
        let path = operation.path.replace("{id}", id) + &operation.smallest_query();
        // A body that says nothing wrong: the right is asked for first, or it is refused as well.
        let answer = gantry.ask_as(&metrics, operation.method, &path, operation.smallest_body());
        let answer = answer.await;
        assert!(
            matches!(answer.status, 403 | 422),
            "{} {path}: {answer:?}",
            operation.method
        );
    }
    let chat = gantry.client_with(Some(metrics)).create_session("").await;
    let (_, words) = refused(chat);
    assert!(
        words.contains("needs the scope chat, and has metrics"),
        "{words}"
    );

    let terms = |valid_for_s, from: Option<&str>| CreateKey {
        name: "k".to_owned(),
        scopes: None,
        valid_for_s,
        from: from.map(str::to_owned),
    };
    let elsewhere = gantry
        .client()
        .create_key_with(&terms(None, Some("192.0.2.0/24")))
        .await;
    let elsewhere = gantry.client_with(Some(elsewhere.expect("a key").key));
    assert!(
        refused(elsewhere.me().await)
            .1
            .contains("not for your address")
    );
    let usual = gantry
        .client()
        .create_key_with(&terms(None, Some("127.0.0.0/8")))
        .await;
    let usual = gantry.client_with(Some(usual.expect("a key").key));
    usual.create_session("").await.expect("it may chat");
    assert_eq!(refused(usual.create_key("more").await).0, "forbidden");
    let short = gantry
        .client()
        .create_key_with(&terms(Some(1), None))
        .await
        .expect("a key");
    let short = gantry.client_with(Some(short.key));
    eventually("it has expired", async || {
        let words = short.me().await.err()?.to_string();
        words.contains("this key has expired").then_some(())
    })
    .await;
    let keys = gantry.client().keys().await.expect("a list");
    assert_eq!(keys.iter().filter(|key| key.is_this).count(), 1);
    let viewer = gantry.person("vera", RoleName::Viewer).await;
    let made = gantry
        .client_with(Some(viewer))
        .create_key("k")
        .await
        .expect("a key");
    assert_eq!(made.entry.scopes, [ScopeName::Read]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_does_through_no_door_what_it_may_not_do_through_another() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let with = async |scope| {
        let key = gantry.key("narrow", &[scope]).await.key;
        gantry.client_with(Some(key))
    };
    let (chat, exec) = (with(ScopeName::Chat).await, with(ScopeName::Exec).await);
    let (code, words) = refused(chat.create_sandbox("laptop").await);
    assert_eq!(code, "forbidden");
    assert!(words.contains("needs the scope runners or exec"), "{words}");
    // A person's choice of a runner is a setting: it moves the work of all of that person's sessions.
    let (code, words) = refused(exec.use_runner("laptop").await);
    assert_eq!(code, "forbidden");
    assert!(words.contains("needs the scope chat or admin"), "{words}");
    chat.use_runner("laptop").await.expect("it may set that");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_told_in_the_audit_log_and_a_flood_of_it_in_few_lines() {
    let gantry = Gantry::practice().await;
    let session = gantry.client().create_session("").await.expect("one");
    let viewer = gantry.person("vera", RoleName::Viewer).await;
    let viewer = gantry.client_with(Some(viewer));
    for _ in 0..20 {
        assert_eq!(refused(viewer.create_session("").await).0, "forbidden");
    }
    // What vera may not even know of is refused to her as if it were nowhere, and told all the same.
    let other = viewer.session(session.id).await;
    assert_eq!(refused(other).0, "not_found");
    let nobody = gantry.client_with(None);
    nobody
        .sign_in("wrong-code", "here")
        .await
        .expect_err("it is wrong");
    let told = eventually("all three are told", async || {
        let log = gantry.client().audit(None, None, None, 100).await;
        let mut entries = log.expect("a log").entries;
        entries.retain(|entry| entry.outcome == AuditOutcome::Refused);
        (entries.len() >= 3).then_some(entries)
    })
    .await;
    let [begin, read, sign_in] = told.as_slice() else {
        panic!("one line each: {told:?}");
    };
    assert_eq!((&*begin.who, &*begin.what), ("vera", "access.refused"));
    assert_eq!(begin.detail["action"], "begin a session");
    assert_eq!(begin.detail["reason"], "the role is viewer");
    assert!(begin.credential.is_some());
    assert_eq!(read.to_id, session.id.to_string());
    assert_eq!(
        (&*sign_in.who, &*sign_in.what),
        ("system", "sign_in.refused")
    );
    assert_eq!(sign_in.detail["reason"], "unknown code");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_tells_who_did_what_from_where_to_admins_alone() {
    let gantry = Gantry::practice().await;
    let (_, bob) = member(&gantry, "bob").await;
    bob.create_key("ci").await.expect("a key");
    let owner = gantry.client();
    let log = owner
        .audit(Some(0), Some("Bob"), None, 200)
        .await
        .expect("the log");
    let did: Vec<_> = log
        .entries
        .iter()
        .map(|entry| (entry.what.as_str(), entry.to.as_str()))
        .collect();
    assert_eq!(
        did,
        [("credential.created", "test"), ("credential.created", "ci")]
    );
    for entry in &log.entries {
        assert_eq!(
            (entry.who.as_str(), entry.address.as_deref()),
            ("bob", Some("127.0.0.1"))
        );
        assert!(entry.credential.is_some());
    }
    let invited = owner
        .audit(Some(0), Some("owner"), None, 200)
        .await
        .expect("the log");
    assert!(
        invited
            .entries
            .iter()
            .any(|entry| entry.what == "person.invited" && entry.to == "bob")
    );
    let mut paged = Vec::new();
    let mut after = 0;
    loop {
        let page = owner
            .audit(Some(after), None, None, 1)
            .await
            .expect("a page");
        paged.extend(page.entries.iter().map(|entry| entry.seq));
        after = page.entries.last().map_or(after, |entry| entry.seq);
        if page.next.is_none() {
            break;
        }
    }
    let whole: Vec<u64> = (1..=after).collect();
    assert_eq!(paged, whole, "page by page it is whole");
    let printed = gantry
        .cli(&["audit", "--who", "bob", "--since", "2h"])
        .await
        .stdout;
    let printed = String::from_utf8(printed).expect("text");
    assert!(
        printed.lines().count() == 2
            && printed.contains("bob  credential.created  ci  from 127.0.0.1"),
        "{printed}"
    );
    let none = bob.audit(None, None, None, 10).await;
    assert!(refused(none).1.contains("takes the role admin"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_that_is_made_anew_keeps_its_role_unless_another_one_is_named() {
    let gantry = Gantry::practice().await;
    let table: [(&[&str], RoleName); 4] = [
        (&["vic", "--role", "viewer"], RoleName::Viewer),
        (&["Vic"], RoleName::Viewer),
        (&["vic", "--role", "admin"], RoleName::Admin),
        (&["ann"], RoleName::Member),
    ];
    for (words, role) in table {
        let words = [&["people", "invite", "--json"], words].concat();
        let invited = gantry.cli(&words).await;
        let said: serde_json::Value =
            serde_json::from_slice(&invited.stdout).expect("an invitation");
        assert_eq!(said["person"]["role"], json!(role), "{words:?}");
    }
}
