//! What a person does with a session beside talking in it: name, archive, share and delete it.

use serde_json::json;
use tests::{
    gantry::{Gantry, eventually, processes_marked},
    model_server::{ModelServer, Reply},
};

/// Its output, and when it has ended.
async fn typed(gantry: &Gantry, arguments: &[&str]) -> (bool, String) {
    let output = gantry.cli(arguments).await;
    let words = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&words).into_owned(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_renamed_and_archived_until_the_next_message() {
    let gantry = Gantry::practice().await;
    let mut talk = gantry.talk().await;
    talk.say("hello").await;
    let (renamed, words) = typed(&gantry, &["sessions", "rename", "last", "the", "build"]).await;
    assert!(renamed && words.contains("is “the build” now"), "{words}");
    let (archived, _) = typed(&gantry, &["sessions", "archive", "last"]).await;
    assert!(archived);
    assert_eq!(typed(&gantry, &["sessions", "--json"]).await.1, "");
    let (_, listed) = typed(&gantry, &["sessions", "--archived"]).await;
    assert!(listed.contains("the build"), "{listed}");
    talk.say("go on").await;
    let (_, listed) = typed(&gantry, &["sessions"]).await;
    assert!(listed.contains("the build"), "{listed}");
    let (changed, words) = typed(&gantry, &["sessions", "rename", "last", " "]).await;
    assert!(!changed && words.contains("a title has"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_the_link_reads_the_session_and_nothing_else_until_it_is_ended() {
    let gantry = Gantry::practice().await;
    let mut talk = gantry.talk().await;
    talk.say("<b>hello</b>").await;
    let (_, words) = typed(&gantry, &["sessions", "share", "last"]).await;
    let link = words.lines().find(|line| line.starts_with("http"));
    let link = link.expect("a link").to_owned();
    let stranger = reqwest::Client::new();
    let page = async || {
        let answer = stranger.get(&link).send().await.expect("it answers");
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        (status, headers, answer.text().await.expect("a page"))
    };
    let (status, headers, text) = page().await;
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("&lt;b&gt;hello&lt;/b&gt;"), "{text}");
    let policy = headers["content-security-policy"].to_str().expect("text");
    assert!(!policy.contains("script"), "{policy}");
    assert_eq!(headers["referrer-policy"], "no-referrer");

    let (address, secret) = link.split_once("/shared/").expect("a path");
    let events = format!("{address}/api/v1/shared/{secret}/events");
    let events = stranger.get(events).send().await.expect("it answers");
    assert_eq!(events.status(), 200);
    for (path, status) in [
        ("/api/v1/sessions".to_owned(), 401),
        (format!("/api/v1/sessions/{}", talk.session()), 401),
        ("/api/v1/me".to_owned(), 401),
    ] {
        let asked = gantry.ask_as(secret, "get", &path, None).await;
        assert_eq!(asked.status, status, "{path}: {asked:?}");
    }
    let (ended, words) = typed(&gantry, &["sessions", "unshare", "last"]).await;
    assert!(ended && words.contains("ended the link"), "{words}");
    let (status, _, text) = page().await;
    assert_eq!(status, 404);
    assert!(text.contains("Nothing is shared here"), "{text}");
    assert!(!gantry.log().contains(secret));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_session_stops_and_leaves_nothing_also_where_the_server_is_killed_at_once() {
    let model = ModelServer::start().await;
    let mut gantry = Gantry::scripted(&model).await;
    let _runner = gantry.runner("laptop").await;
    let marker = "GANTRY_OF_A_DELETED_SESSION=1";
    let command = format!("echo canary; {marker} sleep 86399");
    model.script(vec![
        Reply::call("Shell", json!({ "command": command, "timeout_ms": 300 })),
        Reply::call("Shell", json!({ "command": command })),
    ]);
    let mut talk = gantry.talk().await;
    talk.send("begin").await;
    let two = async || (processes_marked(marker).len() >= 2).then_some(());
    eventually("both run", two).await;
    let session = talk.session().to_string();

    let (refused, words) = typed(&gantry, &["sessions", "delete", "last"]).await;
    assert!(!refused && words.contains("--yes"), "{words}");
    let (deleted, words) = typed(&gantry, &["sessions", "delete", "last", "--yes"]).await;
    assert!(deleted, "{words}");
    gantry.kill_server().await;
    gantry.start_server().await;
    let path = format!("/api/v1/sessions/{session}");
    assert_eq!(gantry.ask("get", &path, None).await.status, 404);
    let none = async || processes_marked(marker).is_empty().then_some(());
    eventually("nothing of it runs", none).await;

    let outputs = gantry.home().join("server/output");
    let left = async || {
        let found = walk(&outputs);
        found.is_empty().then_some(())
    };
    eventually("its output is gone", left).await;
    let log = async || gantry.log().contains("was taken away").then_some(());
    eventually("its rows are gone", log).await;
    let operations = gantry.ask("get", "/api/v1/operations", None).await;
    assert_eq!(operations.body["operations"], json!([]));
    let (_, audit) = typed(&gantry, &["audit"]).await;
    assert!(audit.contains("session.deleted"), "{audit}");
}

/// Every file below.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => walk(&path),
            path => vec![path],
        })
        .collect()
}
