//! The real server and the real runner as processes: whole turns, the start, memory, sizes.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};
use server_store::{AttemptKind, Store};
use shared_types::{Clock as _, Event, SessionEvent, SystemClock, event::TurnOutcome};
use tests::{
    gantry::{Gantry, Runner, Told, binary},
    model_server::{ModelServer, Reply},
};

use crate::{
    local,
    resident::{memory, peak_from_here},
    table::{Figure, Goal, MIB, Stopwatch, Unit, median},
};

pub(crate) const COMMAND: &str = "echo hello";
/// Text, because that is what commands write; a NUL byte costs its followers six.
const LARGE_COMMAND: &str = "yes Gantry | head -c 200000000";
/// Conversations, each one round.
const ROUNDS: usize = 5;
/// Turns of a conversation that are measured, after one that is not.
const TURNS: usize = 20;
const STARTS: usize = 20;
const IDLE_FOR: Duration = Duration::from_secs(5);

/// Everything that is measured on the real server.
pub(crate) async fn figures(watch: &Stopwatch) -> Vec<Figure> {
    let model = ModelServer::start().await;
    let mut gantry = Gantry::scripted(&model).await;
    let mut runner = gantry.runner("bench").await;
    let mut figures = turns(&gantry, &model, watch).await;
    figures.extend(large_output(&gantry, &runner, &model, watch).await);
    let _ = runner.stop().await;
    figures.push(start(&mut gantry, watch).await);

    runner.start();
    gantry.until_online("bench", true).await;
    tokio::time::sleep(IDLE_FOR).await;
    let idle = |what, pid, mebibytes| {
        let what = format!("memory of the {what}, idle for 5 s");
        let goal = Goal::AtMost(mebibytes * MIB);
        Figure::alone(what, Unit::Memory, goal, memory(pid, "VmRSS"))
    };
    figures.push(idle("server", gantry.server_pid(), 30.0));
    figures.push(idle("runner", runner.pid(), 10.0));
    figures.extend(sizes());
    figures
}

/// Whole turns, and the tool call within each.
async fn turns(gantry: &Gantry, model: &ModelServer, watch: &Stopwatch) -> Vec<Figure> {
    let mut turn = Figure::new(
        "a turn: message, model, Shell, model, answer (peer: spawn + the 2 HTTP calls)",
        Unit::Seconds,
        Goal::None,
    );
    let mut call = Figure::new(
        "a durable tool call (peer: spawn + 2 bare synced commits)",
        Unit::Seconds,
        Goal::RatioAtMost(1.3),
    );
    let here = tempfile::tempdir().expect("a temporary folder");
    let store = Store::open(&here.path().join("bench.db"))
        .await
        .expect("a database");
    let http = reqwest::Client::new();
    for _ in 0..ROUNDS {
        let mut talk = gantry.talk().await;
        let (mut ours, mut peers, mut calls, mut bare_calls) = (vec![], vec![], vec![], vec![]);
        for number in 0..=TURNS {
            model.script(replies(COMMAND));
            let (took, told) = watch.time(talk.say("go")).await;
            assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);

            let body = model.requests().pop().expect("the server has asked");
            model.script(replies(COMMAND));
            let spawn = watch
                .time_here(|| local::run(&["/usr/bin/bash", "-c", COMMAND], here.path()))
                .0;
            let asked = watch.time(ask_twice(&http, model, &body)).await.0;
            let commits = watch.time(commit_twice(&store)).await.0;
            if number > 0 {
                ours.push(took);
                peers.push(spawn + asked);
                calls.push(call_took(&told));
                bare_calls.push(spawn + commits);
            }
        }
        turn.round(median(&ours), median(&peers));
        call.round(median(&calls), median(&bare_calls));
    }
    vec![turn, call]
}

pub(crate) fn replies(command: &str) -> Vec<Reply> {
    let arguments = json!({ "command": command });
    vec![Reply::call("Shell", arguments), Reply::text("done")]
}

async fn ask_twice(http: &reqwest::Client, model: &ModelServer, body: &Value) {
    let url = format!("{}/chat/completions", model.base_url());
    for _ in 0..2 {
        let answer = http.post(&url).json(body).send().await.expect("it answers");
        answer.bytes().await.expect("it answers to the end");
    }
}

/// The smallest synced commits that the server's own database has.
async fn commit_twice(store: &Store) {
    for _ in 0..2 {
        let now = SystemClock::new().now();
        let stored = store.record_attempt(AttemptKind::Enrol, "bench", now).await;
        stored.expect("it is stored");
    }
}

/// From the record of the model's answer to the record of the call's end: the answer's commit,
/// the intent's, the exec, and the result's.
pub(crate) fn call_took(told: &Told) -> f64 {
    let at = |wanted: fn(&Event) -> bool| {
        let mut events = told.events.iter();
        let found = events.find(|event| event.known().is_some_and(wanted));
        found
            .map(|event: &SessionEvent| event.at)
            .expect("it was recorded")
    };
    let answered = at(|event| matches!(event, Event::AnswerRecorded { .. }));
    let ended = at(|event| matches!(event, Event::CallEnded { .. }));
    ended.since(answered).as_secs_f64()
}

/// 200 MB of stdout in a turn: how fast, and how much memory at most.
async fn large_output(
    gantry: &Gantry,
    runner: &Runner,
    model: &ModelServer,
    watch: &Stopwatch,
) -> Vec<Figure> {
    let what = "200 MB of stdout in a whole turn (peer: a local pipe)";
    let mut speed = Figure::new(what, Unit::BytesPerSecond, Goal::RatioAtLeast(0.3));
    let here = tempfile::tempdir().expect("a temporary folder");
    let mut talk = gantry.talk().await;
    for pid in [gantry.server_pid(), runner.pid()] {
        peak_from_here(pid);
    }
    for _ in 0..3 {
        model.script(replies(LARGE_COMMAND));
        let (ours, told) = watch.time(talk.say("go")).await;
        assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
        let words = ["/usr/bin/bash", "-c", LARGE_COMMAND];
        let (peer, bytes) = watch.time_here(|| local::drain(&words, here.path()));
        speed.round(bytes as f64 / ours, bytes as f64 / peer);
    }
    let peak = |what, pid| {
        let what = format!("memory of the {what} at most meanwhile");
        let goal = Goal::AtMost(32.0 * MIB);
        Figure::alone(what, Unit::Memory, goal, memory(pid, "VmHWM"))
    };
    let server = peak("server", gantry.server_pid());
    vec![speed, server, peak("runner", runner.pid())]
}

/// From starting the server's program to the line that says where it listens.
async fn start(gantry: &mut Gantry, watch: &Stopwatch) -> Figure {
    let what = "start to listening, existing database (peer: the program says its version)";
    let mut figure = Figure::new(what, Unit::Seconds, Goal::AtMost(0.05));
    let program = binary("gantry-server");
    let version = [program.to_str().expect("its path is text"), "--version"];
    for _ in 0..STARTS {
        let _ = gantry.stop_server().await;
        let ours = watch.time(gantry.start_server()).await.0;
        let peer = watch.time_here(|| local::run(&version, Path::new("/"))).0;
        figure.round(ours, peer);
    }
    figure
}

fn sizes() -> Vec<Figure> {
    let size = |name: &str, goal| {
        let file = std::fs::metadata(binary(name)).expect("it is built");
        Figure::alone(
            format!("size of {name}"),
            Unit::Size,
            goal,
            file.len() as f64,
        )
    };
    vec![
        size("gantry-server", Goal::AtMost(40e6)),
        size("gantry-runner", Goal::AtMost(15e6)),
        size("gantry", Goal::None),
    ]
}
