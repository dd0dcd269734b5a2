//! Thousands of commands through the whole system: model, engine, store, router, link, runner.

use std::cell::Cell;

use serde_json::json;
use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    gantry::{Gantry, Runner, Talk, children_of, descriptors_of, eventually, zombies_of},
    model_server::{ModelServer, Reply},
    report::report,
};
use tokio::time::Instant;

/// Conversations at a time.
const LANES: usize = 32;

/// The most commands that one answer of a model may ask for.
const COMMANDS_PER_TURN: usize = 64;

/// Exit codes that commands end with.
const CODES: usize = 100;

/// How many commands run where nobody asks for more; `make soak` asks for 10,000.
const COMMANDS: usize = LANES * COMMANDS_PER_TURN;

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_commands_end_with_their_own_exit_codes_and_leave_nothing_behind() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    let mut talks = Vec::new();
    for _ in 0..LANES {
        talks.push(gantry.talk().await);
    }
    // Whatever is opened once is open after this.
    talks = a_turn_each(&model, &runner, talks, 1).await;
    let before = Held::by(&gantry, &runner);

    let turns = commands().div_ceil(LANES * COMMANDS_PER_TURN);
    let began = Instant::now();
    for _ in 0..turns {
        talks = a_turn_each(&model, &runner, talks, COMMANDS_PER_TURN).await;
    }
    let ran = turns * LANES * COMMANDS_PER_TURN;
    let took = began.elapsed().as_secs_f64();
    report(&format!(
        "{ran} commands in {took:.1} s: {:.0} a second",
        ran as f64 / took
    ));

    let seen = Cell::new(before);
    let left = || async {
        let now = Held::by(&gantry, &runner);
        if seen.replace(now) != now {
            eprintln!("held before: {before:?}, and now: {now:?}");
        }
        let more = now.server > before.server || now.runner > before.runner;
        (!more && now.zombies == 0).then_some(())
    };
    eventually("no descriptor is left open, and no child unburied", left).await;
}

/// A turn of that many commands in every conversation at once.
async fn a_turn_each(
    model: &ModelServer,
    runner: &Runner,
    talks: Vec<Talk>,
    commands: usize,
) -> Vec<Talk> {
    let asked = model.requests().len();
    let gate = format!("after-{asked}");
    model.script(vec![calls(commands, &gate); talks.len()]);
    let talks = talks.into_iter();
    let lanes: Vec<_> = talks
        .map(|talk| tokio::spawn(lane(talk, commands)))
        .collect();
    // Replies are given in the order of requests: nobody asks a second time before all have begun.
    model.wait_for_requests(asked + lanes.len()).await;
    model.script(vec![Reply::text("done"); lanes.len()]);
    std::fs::write(runner.workspace().join(gate), "").expect("it is written");
    let mut talks = Vec::new();
    for lane in lanes {
        talks.push(lane.await.expect("every command ends as it should"));
    }
    talks
}

async fn lane(mut talk: Talk, commands: usize) -> Talk {
    let told = talk.say("go").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert_eq!(told.calls().len(), commands);
    for (number, (outcome, text)) in told.calls().into_iter().enumerate() {
        assert_eq!(outcome, CallOutcome::Completed, "{text}");
        // On a machine that is busy it is also said how long it took.
        let code = format!("[exit code {}", number % CODES);
        let rest = text.rsplit_once(&code).map(|(_, rest)| rest);
        let ended = rest.is_some_and(|rest| rest == "]" || rest.starts_with(", after "));
        assert!(ended, "{code}: {text}");
    }
    talk
}

/// The first command waits for a file of this name.
fn calls(commands: usize, gate: &str) -> Reply {
    let call = |number: usize| {
        let command = match number {
            0 => format!("while [ ! -e {gate} ]; do sleep 0.05; done"),
            number => format!("exit {}", number % CODES),
        };
        let arguments = json!({ "command": command });
        ("Shell".to_owned(), arguments.to_string())
    };
    Reply::calls("", (0..commands).map(call).collect())
}

/// What the programs hold of the system.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Held {
    server: usize,
    runner: usize,
    zombies: usize,
}

impl Held {
    fn by(gantry: &Gantry, runner: &Runner) -> Self {
        let pids = [gantry.server_pid(), runner.pid()];
        let below = children_of(runner.pid());
        let parents = pids.iter().chain(&below);
        Self {
            server: descriptors_of(gantry.server_pid()),
            runner: descriptors_of(runner.pid()),
            zombies: parents.map(|pid| zombies_of(*pid).len()).sum(),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs the tests chooses how long they soak"
)]
fn commands() -> usize {
    match std::env::var("GANTRY_EXECS") {
        Ok(count) => count.parse().expect("GANTRY_EXECS is a number"),
        Err(_) => COMMANDS,
    }
}
