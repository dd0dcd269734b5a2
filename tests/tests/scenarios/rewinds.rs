//! Going back to before an earlier message: the conversation, and the files that the agent changed since.

use serde_json::{Value, json};
use shared_api::{CommandDone, Rewind};
use shared_types::{TurnId, event::TurnOutcome};
use tests::{
    gantry::{Gantry, Runner, Talk},
    model_server::{ModelServer, Reply},
};

use super::api::Api;

fn edit(path: &str, old: &str, new: &str) -> Reply {
    Reply::call("Edit", json!({ "path": path, "old": old, "new": new }))
}

fn write(path: &str, content: &str) -> Reply {
    Reply::call("Write", json!({ "path": path, "content": content }))
}

fn read(path: &str) -> Reply {
    Reply::call("Read", json!({ "path": path }))
}

/// A turn in which the model does this.
async fn work(model: &ModelServer, talk: &mut Talk, message: &str, calls: Vec<Reply>) -> TurnId {
    model.script(calls);
    model.script(vec![Reply::text(format!("done with: {message}"))]);
    let turn = talk.send(message).await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    turn
}

/// Has the model answer a message, and returns its request.
async fn request(model: &ModelServer, talk: &mut Talk, message: &str) -> Value {
    work(model, talk, message, Vec::new()).await;
    model.requests().pop().expect("there is a request")
}

fn put(runner: &Runner, name: &str, content: &str) {
    std::fs::write(runner.workspace().join(name), content).expect("it can be written");
}

fn content(runner: &Runner, name: &str) -> Option<String> {
    std::fs::read_to_string(runner.workspace().join(name)).ok()
}

/// Runs a command in the session.
async fn run(gantry: &Gantry, talk: &Talk, line: &str) -> (u16, Value) {
    let path = format!("/api/v1/sessions/{}/commands", talk.session());
    let body = json!({ "line": line }).to_string();
    let answer = gantry.ask("post", &path, Some(body)).await;
    (answer.status, answer.body)
}

/// The rows of the table in a command's answer.
fn rows(done: &Value) -> Vec<Vec<String>> {
    let done: CommandDone = serde_json::from_value(done.clone()).expect("an answer");
    let tables = done.shown.into_iter().filter_map(|shown| match shown {
        shared_api::Shown::Table(table) => Some(table.rows),
        shared_api::Shown::Text(_) => None,
    });
    tables.flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_back_with_its_files_and_a_restart_changes_nothing() {
    const POEM: &str = "roses are red\nviolets are blue\n";
    let model = ModelServer::start().await;
    let mut gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    put(&runner, "poem", POEM);
    let mut talk = gantry.talk().await;
    work(&model, &mut talk, "read it", vec![read("poem")]).await;
    let paint = vec![
        edit("poem", "red", "heliotrope"),
        edit("poem", "blue\n", ""),
        write("new", "heliotrope"),
        edit("new", "trope", "graph"),
    ];
    let first_gone = model.requests().len();
    let turn = work(&model, &mut talk, "paint it in heliotrope", paint).await;
    let more = vec![edit("poem", "heliotrope", "heliotropes")];
    work(&model, &mut talk, "more heliotrope", more).await;
    assert_eq!(
        content(&runner, "poem").as_deref(),
        Some("roses are heliotropes\nviolets are ")
    );

    let (_, listed) = run(&gantry, &talk, "/rewind").await;
    let listed = rows(&listed);
    let of_each: Vec<_> = listed
        .iter()
        .map(|row| [&*row[0], &row[2], &row[3]])
        .collect();
    assert_eq!(
        of_each,
        [
            ["1", "read it", "2"],
            ["2", "paint it in heliotrope", "2"],
            ["3", "more heliotrope", "1"]
        ]
    );

    let path = format!("/api/v1/sessions/{}/rewind", talk.session());
    let body = json!({ "turn": turn, "files": true });
    let mut answers = Vec::new();
    for _ in 0..2 {
        let request = gantry.request("post", &path).bearer_auth(gantry.token());
        let request = request.header("Idempotency-Key", "back").json(&body);
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), 200);
        answers.push(answer.json::<Value>().await.expect("JSON"));
    }
    assert_eq!(answers[0], answers[1], "it went back once");
    assert_eq!(
        answers[0],
        json!({
            "text": "paint it in heliotrope",
            "files": [
                { "path": "new", "runner": "laptop", "restored": true },
                { "path": "poem", "runner": "laptop", "restored": true },
            ],
        })
    );
    assert_eq!(content(&runner, "poem").as_deref(), Some(POEM));
    assert_eq!(content(&runner, "new"), None);
    let again = gantry.ask("post", &path, Some(body.to_string())).await;
    assert_eq!(again.status, 409, "{again:?}");

    // What was read before counts: the file is as it was then.
    let calls = vec![edit("poem", "red", "pink")];
    work(&model, &mut talk, "paint it in pink", calls).await;
    assert_eq!(
        content(&runner, "poem").as_deref(),
        Some("roses are pink\nviolets are blue\n")
    );
    let before = request(&model, &mut talk, "go on").await;
    gantry.kill_server().await;
    gantry.start_server().await;
    gantry.until_online("laptop", true).await;
    let after = request(&model, &mut talk, "go on again").await;
    for request in [&before, &after] {
        assert!(request.to_string().contains("read it"), "{request:#}");
        assert!(!request.to_string().contains("helio"), "{request:#}");
    }
    let said = |request: &Value| request["messages"].as_array().expect("a list").clone();
    assert_eq!(said(&after)[..said(&before).len()], said(&before)[..]);
    let kept = &said(&model.requests()[first_gone]);
    assert_eq!(said(&after)[..kept.len() - 1], kept[..kept.len() - 1]);

    let context = gantry.client().context(talk.session()).await;
    let changes = context.expect("a report").changes;
    assert!(
        changes
            .iter()
            .any(|change| change.what.contains("went back to before")),
        "{changes:?}"
    );
    let shown = gantry.cli(&["show", &talk.session().to_string()]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("went back to before \"paint it in heliotrope\""),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_something_else_changed_stays_and_is_named() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let mut runner = gantry.runner("laptop").await;
    for name in ["by-hand", "between", "unknown", "known"] {
        put(&runner, name, "one\ntwo\n");
    }
    let mut talk = gantry.talk().await;
    let calls = vec![
        read("by-hand"),
        edit("by-hand", "one", "1"),
        write("unknown", "new"),
        read("known"),
        write("known", "new"),
        read("between"),
        edit("between", "one", "1"),
        Reply::call("Shell", json!({ "command": "echo three >> between" })),
        read("between"),
        edit("between", "two", "2"),
    ];
    work(&model, &mut talk, "change them", calls).await;
    put(&runner, "by-hand", "my own\n");

    runner.stop().await;
    gantry.until_online("laptop", false).await;
    let (status, refused) = run(&gantry, &talk, "/rewind 1").await;
    assert!(matches!(status, 409 | 503), "{refused}");
    let log = gantry.client().session(talk.session()).await;
    let seq = log.expect("it is there").last_seq;
    runner.start();
    gantry.until_online("laptop", true).await;
    assert_eq!(content(&runner, "known").as_deref(), Some("new"));

    let (status, done) = run(&gantry, &talk, "/rewind 1 files").await;
    assert_eq!(status, 200, "{done}");
    let unchanged = gantry.client().session(talk.session()).await;
    assert_eq!(
        unchanged.expect("it is there").last_seq,
        seq,
        "nothing went back"
    );
    let reasons: Vec<_> = rows(&done).into_iter().map(|row| row[2].clone()).collect();
    assert_eq!(
        reasons,
        [
            "left as it is: changed by something else between two calls",
            "left as it is: changed since by something else",
            "as it was",
            "left as it is: the content before is not known",
        ]
    );
    assert_eq!(content(&runner, "by-hand").as_deref(), Some("my own\n"));
    assert_eq!(content(&runner, "known").as_deref(), Some("one\ntwo\n"));
    assert_eq!(content(&runner, "unknown").as_deref(), Some("new"));
    assert_eq!(
        content(&runner, "between").as_deref(),
        Some("1\n2\nthree\n")
    );

    // What is done is not done again, and the conversation goes back all the same.
    let (status, done) = run(&gantry, &talk, "/rewind 1 both").await;
    assert_eq!(status, 200, "{done}");
    assert_eq!(done["draft"], "change them");
    assert_eq!(rows(&done).len(), 4, "{done}");
    let after = request(&model, &mut talk, "hello").await;
    assert!(!after.to_string().contains("change them"), "{after:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_conversation_goes_back_under_a_turn_that_works() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let _runner = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    work(&model, &mut talk, "hello", Vec::new()).await;
    let command = json!({ "command": "echo begun; sleep 1000" });
    model.script(vec![Reply::call("Shell", command)]);
    let turn = talk.send("wait").await;
    talk.until_output("begun").await;
    for line in ["/rewind 1", "/rewind 2 files"] {
        let (status, refused) = run(&gantry, &talk, line).await;
        assert_eq!(status, 409, "{refused}");
        let words = refused["detail"].as_str().expect("words");
        assert!(words.contains("stop it first: /stop"), "{words}");
    }
    talk.cancel().await;
    talk.ended(turn).await;
    let (status, done) = run(&gantry, &talk, "/rewind 2 conversation").await;
    assert_eq!(status, 200, "{done}");
    for line in ["/rewind 2", "/rewind x", "/rewind 1 everything"] {
        let (status, refused) = run(&gantry, &talk, line).await;
        assert_eq!(status, 422, "{line}: {refused}");
    }
    let unattended = json!({ "line": "/rewind 1", "terms": { "unattended": true } });
    let path = format!("/api/v1/sessions/{}/commands", talk.session());
    let refused = gantry
        .ask("post", &path, Some(unattended.to_string()))
        .await;
    assert_eq!(refused.status, 422, "{refused:?}");

    let client = gantry.client();
    let nothing = Rewind {
        turn,
        conversation: false,
        files: false,
    };
    assert!(client.rewind(talk.session(), &nothing).await.is_err());
}

/// The endpoint answers as the document says.
pub(super) async fn goes_back(api: &mut Api<'_>, gantry: &Gantry) {
    let mut talk = gantry.talk().await;
    let turn = talk.send("hello").await;
    talk.ended(turn).await;
    let id = talk.session().to_string();
    let path = "/api/v1/sessions/{id}/rewind";
    let body = json!({ "turn": turn, "conversation": true, "files": true });
    let went = api.call("post", path, &id, Some(body)).await;
    assert_eq!(went, json!({ "text": "hello", "files": [] }));
}
