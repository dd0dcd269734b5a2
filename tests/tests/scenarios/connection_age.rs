//! Connections that have reached their greatest age: each is asked to connect again, and nothing is lost,
//! doubled or run again.

use std::process::Stdio;

use serde_json::{Value, json};
use shared_client::Followed;
use shared_types::event::CallOutcome;
use tests::{
    gantry::{Gantry, Runner, Setup, eventually},
    over_both,
    peer::Over,
    proxy::Proxy,
    socket::{Heard, Socket},
    work::{Job, Work},
};
use tokio_tungstenite::tungstenite::Message;

/// Connections that reach their age while something runs on them.
const AGES: u64 = 3;

/// The code of a close that asks to connect again (RFC 6455's registry: Service Restart).
const RESTART: Option<u16> = Some(1012);

fn short_ages() -> Setup {
    Setup {
        settings: "[connections]\nage_at_most_ms = 1000\n".to_owned(),
        ..Setup::default()
    }
}

/// The lines of the runner's log that tell of a link's age.
fn told_of_age(runner: &Runner) -> Vec<String> {
    let log = runner.log();
    let lines = log.lines().filter(|line| line.contains("greatest age"));
    lines.map(str::to_owned).collect()
}

over_both! {
    #[tokio::test(flavor = "multi_thread")]
    what_runs_and_what_is_asked_for_meanwhile_survives_the_age_of_its_link,
}

async fn what_runs_and_what_is_asked_for_meanwhile_survives_the_age_of_its_link(over: Over) {
    let gantry = Gantry::with(short_ages()).await;
    let token = gantry.join_token("laptop").await;
    let mut runner = Runner::enrol(gantry.url(), &token, "laptop").await;
    runner.options(&["--transport", over.name()]);
    runner.start();
    gantry.until_online("laptop", true).await;
    let job = Job::begin(&gantry, &runner, Work(61)).await;
    let mut talk = gantry.talk().await;
    let (before, mut calls) = (told_of_age(&runner).len(), String::new());
    let mut number = 0;
    while told_of_age(&runner).len() < before + AGES as usize {
        let command = format!("run echo {number} >> calls; echo {number}");
        let told = talk.say(&command).await;
        let [(CallOutcome::Completed, text)] = told.calls()[..] else {
            panic!("{:?}", told.calls())
        };
        let told_first = text.lines().next();
        assert_eq!(told_first, Some(number.to_string().as_str()), "{text}");
        calls += &format!("{number}\n");
        number += 1;
    }
    assert_eq!(runner.file("calls"), Some(calls), "each once and in order");
    job.finish(&runner).await;
    for line in told_of_age(&runner) {
        assert!(line.contains("INFO"), "{line}");
    }
    let asked = gantry
        .request("get", "/metrics")
        .bearer_auth(gantry.token());
    let page = asked.send().await.expect("an answer").text().await;
    let page = page.expect("text");
    let aged = page.lines().find_map(|line| {
        line.strip_prefix("gantry_links_ended_total{reason=\"aged\"} ")?
            .parse()
            .ok()
    });
    assert!(aged >= Some(AGES), "{page}");
}

/// Hears until the server asks to connect again and closes; what it said of the time, in milliseconds.
async fn asked_to_reconnect(mut socket: Socket) -> Value {
    let mut asked = None;
    loop {
        match socket.next().await {
            Heard::Text(said) => {
                assert_eq!(asked, None, "it was the last message");
                if said["type"] == "reconnect" {
                    asked = Some(said["within_ms"].clone());
                }
            }
            Heard::Binary(_) => assert_eq!(asked, None, "it was the last message"),
            Heard::Closed(code) => {
                assert_eq!(code, RESTART);
                return asked.expect("it asks before it closes");
            }
        }
    }
}

/// A stream of sessions, and one of an operation that runs on.
async fn streams(gantry: &Gantry) -> [Socket; 2] {
    let session = gantry.client().create_session("").await;
    let session = session.expect("a session").id;
    let mut sessions = Socket::open(gantry, "/api/v1/stream", "ServerMessage").await;
    let subscribe = json!({ "type": "subscribe", "session": session, "after": 0 });
    sessions.say(Message::text(subscribe.to_string())).await;
    let body = json!({ "runner": "laptop", "exec": { "argv": ["sleep", "1000"] } });
    let started = gantry.ask("post", "/api/v1/operations", Some(body.to_string()));
    let started = started.await;
    let id = started.body["id"].as_str().expect("an id");
    let path = format!("/api/v1/operations/{id}/stream");
    let operation = Socket::open(gantry, &path, "OperationServerMessage").await;
    [sessions, operation]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_reaches_its_age_asks_its_client_to_connect_again() {
    let gantry = Gantry::with(short_ages()).await;
    let _runner = gantry.runner("laptop").await;
    for socket in streams(&gantry).await {
        assert_eq!(asked_to_reconnect(socket).await, json!(500));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_asks_the_clients_of_its_streams_to_connect_again() {
    let mut gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let mut streams = streams(&gantry).await;
    for (socket, begun) in streams.iter_mut().zip(["caught_up", "operation"]) {
        while socket.hears().await["type"] != begun {}
    }
    assert_eq!(gantry.stop_server().await, Some(0));
    for socket in streams {
        assert_eq!(asked_to_reconnect(socket).await, json!(500));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_prints_each_line_once_over_the_ages_of_its_connection_and_tells_of_none() {
    let gantry = Gantry::with(short_ages()).await;
    let runner = gantry.runner("laptop").await;
    let (proxy, work) = (Proxy::before(gantry.url()).await, Work(62));
    let command = work.until_enough();
    let arguments = ["exec", "--", "sh", "-c", &command];
    let mut terminal = gantry.terminal_by_way_of(proxy.url(), &arguments);
    let terminal = terminal
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let terminal = terminal.expect("it starts");
    eventually("the work begins", || async { runner.file("effects-62") }).await;
    let made = proxy.passed().connections;
    proxy
        .until(|passed| passed.connections >= made + AGES)
        .await;
    work.is_enough(&runner.workspace());
    let lines = work.lines(&runner).await;
    let printed = terminal.wait_with_output().await.expect("it ends");
    work.is_whole(lines, &printed.stdout);
    work.had_one_effect(&runner);
    let told = String::from_utf8_lossy(&printed.stderr);
    assert!(!told.contains("connection"), "{told}");
    assert_eq!(printed.status.code(), Some(0), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_hears_everything_once_over_the_ages_of_its_connection() {
    let gantry = Gantry::with(short_ages()).await;
    let runner = gantry.runner("laptop").await;
    let (proxy, work) = (Proxy::before(gantry.url()).await, Work(63));
    let mut talk = gantry
        .talk_by_way_of(proxy.url(), shared_client::PING_EVERY)
        .await;
    let turn = talk.send(&format!("run {}", work.until_enough())).await;
    eventually("the work begins", || async { runner.file("effects-63") }).await;
    let made = proxy.passed().connections;
    proxy
        .until(|passed| passed.connections >= made + AGES)
        .await;
    work.is_enough(&runner.workspace());
    let told = talk.ended(turn).await;
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    work.is_done(&runner, text).await;
    let numbers: Vec<_> = talk
        .heard
        .iter()
        .filter_map(|item| match item {
            Followed::Event(event) => Some(event.seq),
            _ => None,
        })
        .collect();
    let all: Vec<_> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, all, "each once and in order");
    let lost = |item: &Followed| matches!(item, Followed::Lost { .. });
    assert!(!talk.heard.iter().any(lost), "none was lost");
}
