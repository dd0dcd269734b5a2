//! Messages that are sent while an agent works: they join its turn, or take its place.

use serde_json::Value;
use shared_api::MessageAccepted;
use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    gantry::{Gantry, Talk, processes_marked},
    model_server::{ModelServer, Reply},
};

/// Sends it from a terminal that does not watch.
async fn send(gantry: &Gantry, talk: &Talk, text: &str, how: &str) -> MessageAccepted {
    let session = talk.session().to_string();
    let sent = gantry.cli(&["send", &session, text, how, "--json"]).await;
    let shown = String::from_utf8_lossy(&sent.stdout);
    serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{error}: {sent:?}"))
}

/// The last messages of the last request, each with its speaker.
fn last_sent<const N: usize>(model: &ModelServer) -> [(String, String); N] {
    let requests = model.requests();
    let last = requests.last().expect("it was asked");
    let messages = last["messages"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let last = messages[messages.len() - N..].iter();
    let last: Vec<_> = last
        .map(|message| (text(&message["role"]), text(&message["content"])))
        .collect();
    last.try_into().expect("there are so many")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_in_mid_command_is_read_by_the_agent_behind_the_result() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    let build = r#"{"command":"echo half; until [ -e go ]; do sleep 0.1; done; echo whole"}"#;
    model.script(vec![Reply::call("Shell", build), Reply::text("with tabs")]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("build").await;
    talk.until_output("half").await;
    let sent = send(&gantry, &talk, "use tabs", "--steer").await;
    assert_eq!((sent.turn, sent.steered), (turn, true));
    std::fs::write(runner.workspace().join("go"), "").expect("it is written");
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert_eq!(told.answer(), "with tabs");
    // An answer in name only stands between the two, because some servers refuse a message behind a result.
    let [(tool, result), _, said] = last_sent(&model);
    assert_eq!(tool, "tool");
    assert!(result.starts_with("half\nwhole\n"), "{result}");
    assert_eq!(said, ("user".to_owned(), "use tabs".to_owned()));

    let session = talk.session().to_string();
    let shown = gantry.cli(&["show", &session]).await;
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("use tabs"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_in_mid_command_stops_it_and_the_next_turn_knows_what_was_done() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let _runner = gantry.runner("laptop").await;
    let marker = format!("MARKER=interrupt-{}", std::process::id());
    let build = format!(r#"{{"command":"{marker} bash -c 'echo half; sleep 1000; :'"}}"#);
    model.script(vec![
        Reply::call("Shell", &build),
        Reply::text("this it is"),
    ]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("build").await;
    talk.until_output("half").await;
    let sent = send(&gantry, &talk, "no, this", "--interrupt").await;
    assert!(!sent.steered);
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Interrupted);
    assert_eq!(told.calls()[0].0, CallOutcome::Cancelled);
    let left = processes_marked(&marker);
    assert!(left.is_empty(), "processes {left:?} outlived the interrupt");
    let told = talk.ended(sent.turn).await;
    assert_eq!(told.answer(), "this it is");
    let [(tool, result), _, said] = last_sent(&model);
    assert_eq!(tool, "tool");
    assert!(result.starts_with("half\n[stopped"), "{result}");
    assert_eq!(said, ("user".to_owned(), "no, this".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_typed_during_a_turn_joins_it_and_an_interrupt_takes_its_place() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    let build = r#"{"command":"echo half; until [ -e go ]; do sleep 0.1; done"}"#;
    let forever = r#"{"command":"echo on and on; sleep 1000"}"#;
    model.script(vec![
        Reply::call("Shell", build),
        Reply::call("Shell", forever),
        Reply::text("this it is"),
    ]);
    let screen = gantry.screen(&["chat"]);
    screen.until_shown("/help").await;
    screen.type_in("build\r");
    screen.until_shown("half").await;
    screen.type_in("use tabs\r");
    screen.until_shown("↳ use tabs").await;
    std::fs::write(runner.workspace().join("go"), "").expect("it is written");
    screen.until_shown("the agent has read it").await;
    screen.until_shown("on and on").await;
    screen.type_in("/interrupt no, this\r");
    screen.until_shown("■ interrupted").await;
    screen.until_shown("this it is").await;
    let [_, said] = last_sent(&model);
    assert_eq!(said, ("user".to_owned(), "no, this".to_owned()));
}
