//! A conversation that is compacted, with what must outlive that: the same request after a death of the server, the
//! instructions of a folder, and the list of what is to be done.

use std::sync::Arc;

use serde_json::{Value, json};
use shared_types::{
    Event,
    event::{CompactedBecause, TurnOutcome},
};
use tests::{
    gantry::{Gantry, Runner, Setup, Told, eventually},
    model_server::{ModelServer, Reply, Step},
};

/// More turns than fit the window.
const MANY: usize = 60;

/// The summary that the model writes.
const SUMMARY: &str = "The parts are counted. The word is heliotrope.";

async fn with_small_window(model: &ModelServer) -> (Gantry, Runner) {
    model.summarizes(SUMMARY);
    let gantry = Gantry::with(Setup {
        model: Some(model.base_url()),
        settings: "[model]\nwindow = 8192\n".to_owned(),
        ..Setup::default()
    })
    .await;
    let runner = gantry.runner("laptop").await;
    (gantry, runner)
}

fn instruct(runner: &Runner, text: &str) {
    let file = runner.workspace().join("AGENTS.md");
    std::fs::write(file, text).expect("it can be written");
}

/// A command that writes a good part of the window, and the end of its turn.
fn work() -> Vec<Reply> {
    let command = json!({ "command": "seq 1000 1199" });
    vec![Reply::call("Shell", command), Reply::text("done")]
}

/// Why each compaction of a turn was made.
fn compacted(told: &Told) -> Vec<CompactedBecause> {
    let events = told.events.iter().filter_map(|event| match event.known()? {
        Event::ContextCompacted {
            because, summary, ..
        } => {
            assert_eq!(summary, SUMMARY);
            Some(*because)
        }
        _ => None,
    });
    events.collect()
}

fn last(requests: &[Value]) -> &Value {
    requests.last().expect("there is a request")
}

/// The text of the last message of the user.
fn last_said(request: &Value) -> String {
    let messages = request["messages"].as_array().expect("messages");
    let of_user = messages.iter().rfind(|message| message["role"] == "user");
    of_user.expect("the user said something")["content"].to_string()
}

fn count(request: &Value, words: &str) -> usize {
    request.to_string().matches(words).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_behind_a_compaction_sends_the_same_request_again() {
    let model = ModelServer::start().await;
    let (mut gantry, runner) = with_small_window(&model).await;
    instruct(&runner, "Use tabs.\n");
    let mut talk = gantry.talk().await;
    let held = || Reply::Raw(vec![Step::Hold(Arc::default())]);
    model.replies_after_summary(held());
    let mut turn = None;
    for number in 0..MANY {
        model.script(work());
        let sent = talk.send(&format!("count part {number}")).await;
        let is_held = eventually("the turn is held, or about to end", || async {
            match (model.has_replied_after_summary(), model.replies_left()) {
                (true, _) => Some(true),
                (false, 0) => Some(false),
                (false, _) => None,
            }
        })
        .await;
        if is_held {
            turn = Some(sent);
            break;
        }
        let told = talk.ended(sent).await;
        assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    }
    let turn = turn.expect("the window is full before all turns are sent");
    let before = model.asked();
    gantry.kill_server().await;
    gantry.start_server().await;
    gantry.until_online("laptop", true).await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert_eq!(compacted(&told), [CompactedBecause::NearWindow]);
    assert_eq!(told.calls().len(), 1, "{:?}", told.calls());

    let after = model.asked();
    let [.., wish, unanswered] = &before[..] else {
        panic!("two requests")
    };
    assert!(wish.is_wish() && !unanswered.is_wish());
    let again = &after[before.len()];
    assert_eq!(unanswered.body.to_string(), again.body.to_string());
    assert!(again.body.to_string().contains("heliotrope"));
    assert_eq!(count(&again.body, "Use tabs."), 1, "{:#}", again.body);
    let wishes = after.iter().filter(|asked| asked.is_wish()).count();
    assert_eq!(wishes, 1, "nothing is summarized twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_is_told_the_instructions_of_a_folder_and_their_change_in_mid_session() {
    let model = ModelServer::start().await;
    let (gantry, runner) = with_small_window(&model).await;
    instruct(&runner, "Use tabs.\n");
    let mut talk = gantry.talk().await;
    for _ in 0..2 {
        model.script(work());
        talk.say("count").await;
    }
    for request in model.requests() {
        assert_eq!(count(&request, "Use tabs."), 1, "they are sent once");
    }
    instruct(&runner, "Use spaces.\n");
    model.script(work());
    let told = talk.say("count on").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let said = last_said(last(&model.requests()));
    assert!(
        said.contains("Use spaces.") && said.ends_with("count on\""),
        "{said}"
    );
    std::fs::remove_file(runner.workspace().join("AGENTS.md")).expect("it is there");
    model.script(work());
    talk.say("and on").await;
    let said = last_said(last(&model.requests()));
    assert!(
        said.contains("the instructions in AGENTS.md do not count any more"),
        "{said}"
    );

    // What a person asks for: the conversation is short then, and the server says what fills it.
    let client = gantry.client();
    let full = client.context(talk.session()).await.expect("it is told");
    let id = client.new_client_id();
    let asked = client.compact(talk.session(), "the word", &id).await;
    let turn = asked.expect("it is accepted").turn;
    let told = talk.ended(turn).await;
    assert_eq!(compacted(&told), [CompactedBecause::Asked]);
    let short = client.context(talk.session()).await.expect("it is told");
    assert!(short.tokens < full.tokens, "{full:?} {short:?}");
    assert_eq!(full.window, Some(8192));
    assert_eq!(short.changes.len(), full.changes.len() + 1, "{short:?}");
    let last = short.changes.last().map(|change| change.what.as_str());
    let is_told = last.is_some_and(|what| what.starts_with("compacted from"));
    assert!(is_told, "{short:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_session_of_the_same_folder_finds_the_list_of_what_is_to_be_done() {
    let model = ModelServer::start().await;
    let (mut gantry, _runner) = with_small_window(&model).await;
    let list = json!({ "list": "[x] sow\n[ ] water" });
    model.script(vec![Reply::call("todo_write", list), Reply::text("done")]);
    let told = gantry.talk().await.say("plan the garden").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    gantry.kill_server().await;
    gantry.start_server().await;
    gantry.until_online("laptop", true).await;
    model.script(vec![Reply::text("done")]);
    let told = gantry.talk().await.say("go on").await;
    let said = last_said(last(&model.requests()));
    assert!(
        said.contains("left this to-do list") && said.contains("[ ] water"),
        "{said}"
    );
    let mut found = told.events.iter().filter_map(|event| match event.known()? {
        Event::TodoChanged { found, items, .. } => Some((*found, items.len())),
        _ => None,
    });
    assert_eq!(found.next(), Some((true, 2)));
}
