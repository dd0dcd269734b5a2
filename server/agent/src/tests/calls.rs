//! The hands of a turn.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use server_llm::ModelEvent;
use shared_sandbox::{
    CancelAnswer, ExitCause, ExitStatus, Globbed, NotStarted, Operation, OperationEvent, Outcome,
    OutputStream, Request, Running, Sandbox,
    scripted::{Script, ScriptedSandbox},
};
use shared_types::{
    Epoch, Event, OperationId, OperationKey, Refusal, RefusalCode,
    event::{CallOutcome, TurnOutcome},
    limits,
};

use crate::{
    Live, LogError, TurnError,
    testing::{
        EPOCH, Fault, Happened, Reply, START, TURN, World, command, content, ends, exit, output,
        text, to_its_end, written,
    },
};

const SHELL: (&str, &str) = ("Shell", r#"{"command":"sleep 1; echo hi"}"#);
const READ: (&str, &str) = ("Read", r#"{"path":"a"}"#);

fn one_call(call: (&str, &str), scripts: impl IntoIterator<Item = Script>) -> World {
    World::new([Reply::calls("", [call]), Reply::says("done")], scripts)
}

fn refuse(code: RefusalCode) -> Refusal {
    Refusal::new(code, "runner lap is offline since noon; start it")
}

#[tokio::test]
async fn the_end_of_an_operation_is_stored_with_that_of_its_call() {
    let end = exit(0, ExitStatus::Code(0), ExitCause::Exited);
    let world = one_call(SHELL, [ends(end.clone())]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let started = world.sandbox.scripted.started();
    assert_eq!(world.log.ends(), [(started[0].id, end)]);
    assert_eq!(world.sandbox.scripted.stored(), [started[0].id]);
}

#[tokio::test]
async fn a_session_with_a_directory_asks_and_is_told_everything_relative_to_it() {
    let found = Outcome::Globbed(Globbed {
        paths: vec!["src/app/main.rs".to_owned(), "README".to_owned()],
        more: false,
        unread_rules: 0,
    });
    let world = World::new(
        [
            Reply::calls("", [SHELL, ("Glob", r#"{"pattern":"**"}"#), READ]),
            Reply::says("done"),
        ],
        [
            ends(exit(0, ExitStatus::Code(0), ExitCause::Exited)),
            ends(found),
            ends(content("text")),
        ],
    );
    world.log.append(Event::SessionCreated {
        title: String::new(),
        model: "m".to_owned(),
        directory: "src/app".to_owned(),
    });
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let started = world.sandbox.scripted.started();
    let asked = started.iter().map(|operation| match &operation.request {
        Request::Exec(exec) => &exec.directory,
        Request::Glob(glob) => &glob.path,
        Request::Read(read) => &read.path,
        other => panic!("{other:?}"),
    });
    let asked: Vec<_> = asked.collect();
    assert_eq!(asked, ["src/app", "src/app", "src/app/a"]);
    let requests = world.model.requests();
    let told = format!("{requests:?}");
    assert!(told.contains("main.rs\\n../../README"), "{told}");
    assert!(requests[0].system.contains("directory \"src/app\""));
}

#[tokio::test]
async fn the_token_of_an_end_that_cannot_be_recorded_goes_back() {
    let end = exit(0, ExitStatus::Code(0), ExitCause::Exited);
    let world = one_call(SHELL, [ends(end)]);
    world.log.break_at(Fault {
        at: 2,
        stored: false,
        error: LogError::Unavailable("the disk is gone".to_owned()),
    });
    assert!(world.run().await.is_err());
    assert!(world.sandbox.scripted.stored().is_empty());
}

#[tokio::test]
async fn what_is_wrong_with_a_call_is_told_to_the_model_and_nothing_runs() {
    for (call, told) in [
        (("Shell", "{"), "not valid JSON"),
        (("Shell", "{}"), "\"command\" is missing"),
        (
            ("Shell", r#"{"command":"ls","cwd":"/"}"#),
            "no argument \"cwd\"",
        ),
        (
            ("Shell", r#"{"command":7}"#),
            "\"command\" must be a string",
        ),
        (("Bash", r#"{"command":"ls"}"#), "no tool \"Bash\""),
    ] {
        let world = one_call(call, []);
        assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
        let (outcome, text) = world.only_call();
        assert_eq!(outcome, CallOutcome::Refused);
        assert!(
            text.starts_with("not run: ") && text.contains(told),
            "{text}"
        );
        assert!(world.sandbox.scripted.started().is_empty());
    }
}

#[tokio::test]
async fn calls_above_the_limit_of_one_answer_are_refused() {
    let mut world = World::new(
        [Reply::calls("", [READ, READ, READ]), Reply::says("done")],
        [ends(content("a")), ends(content("a"))],
    );
    world.limits.max_calls = 2;
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(world.sandbox.scripted.started().len(), 2);
    assert_eq!(world.ended_calls().len(), 3);
}

#[tokio::test]
async fn an_operation_is_named_by_its_place_and_carries_epoch_effect_and_budget() {
    let call = ("Shell", r#"{"command":"ls","timeout_ms":5000}"#);
    let world = one_call(call, [command("", 0)]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let started = world.sandbox.scripted.started();
    let [operation] = started.as_slice() else {
        panic!("one operation: {started:?}")
    };
    let key = OperationKey::Call {
        turn: TURN,
        step: 1,
        ordinal: 0,
        attempt: 0,
    };
    assert_eq!((&operation.key, operation.epoch), (&key, EPOCH));
    assert_eq!(operation.effect, shared_types::Effect::Effectful);
    assert_eq!(operation.limits.run_for, limits::COMMAND_RUNS_AT_MOST);
    assert!(matches!(
        world.ended_calls()[0],
        Event::CallEnded {
            budget_ms: 5000,
            duration_ms: 5,
            overran: false,
            ..
        }
    ));
}

#[tokio::test]
async fn reads_run_beside_one_another_and_a_write_waits_for_them() {
    let write = ("Write", r#"{"path":"a","content":"hi"}"#);
    let hang = || Script::Hang(Vec::new());
    // The second read ends while the first one is still silent.
    let world = World::new(
        [Reply::calls("", [READ, READ, write, READ])],
        [
            hang(),
            ends(content("b")),
            ends(written()),
            ends(content("d")),
        ],
    );
    let running = world.spawn();
    let recorded = async {
        while world.ended_calls().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    recorded.await;
    assert!(matches!(
        world.ended_calls()[..],
        [Event::CallEnded { ordinal: 1, .. }]
    ));
    assert_eq!(world.sandbox.scripted.started().len(), 2, "the write waits");
    running.abort();
}

#[tokio::test]
async fn writes_run_in_the_order_of_the_answer() {
    let world = World::new(
        [Reply::calls("", [SHELL, SHELL, SHELL]), Reply::says("done")],
        ["a", "b", "c"].map(|text| command(text, 0)),
    );
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let order: Vec<_> = world
        .trace
        .all()
        .into_iter()
        .filter_map(|happened| match happened {
            Happened::Started(operation) => Some(("start", ordinal(&operation.key))),
            Happened::Recorded(Event::CallEnded { ordinal, .. }) => Some(("end", ordinal)),
            _ => None,
        })
        .collect();
    assert_eq!(
        order,
        [
            ("start", 0),
            ("end", 0),
            ("start", 1),
            ("end", 1),
            ("start", 2),
            ("end", 2)
        ]
    );
}

fn ordinal(key: &OperationKey) -> u32 {
    match key {
        OperationKey::Call { ordinal, .. } => *ordinal,
        OperationKey::Request(_) => panic!("the engine's keys are calls"),
    }
}

#[tokio::test]
async fn output_is_passed_on_as_it_comes_and_gaps_are_named() {
    let world = one_call(
        SHELL,
        [Script::Events(vec![
            output("hello"),
            OperationEvent::Gap {
                stream: OutputStream::Stdout,
                from: 5,
                to: 105,
            },
            OperationEvent::Ended(exit(105, ExitStatus::Code(0), ExitCause::Exited)),
        ])],
    );
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let live = world.live.all();
    assert!(matches!(&live[0], Live::Output { offset: 0, data, .. } if data == "hello"));
    assert!(matches!(
        &live[1],
        Live::Gap {
            from: 5,
            to: 105,
            ..
        }
    ));
    assert!(
        world
            .only_call()
            .1
            .contains("hello\n[… 100 bytes left out from offset 5 …]")
    );
}

#[tokio::test]
async fn the_ends_of_a_command_are_told_apart() {
    for (status, cause, outcome, told) in [
        (
            ExitStatus::Code(3),
            ExitCause::Exited,
            CallOutcome::Completed,
            "exit code 3",
        ),
        (
            ExitStatus::Signal(9),
            ExitCause::Exited,
            CallOutcome::Completed,
            "ended by signal 9",
        ),
        (
            ExitStatus::Signal(15),
            ExitCause::Timeout,
            CallOutcome::TimedOut,
            "time limit of 24 h",
        ),
        (
            ExitStatus::Signal(15),
            ExitCause::Orphaned,
            CallOutcome::Failed,
            "the runner stopped",
        ),
        (
            ExitStatus::NotStarted(NotStarted::MissingDirectory("src".to_owned())),
            ExitCause::Exited,
            CallOutcome::Failed,
            "there is no directory \"src\"",
        ),
        (
            ExitStatus::Unknown,
            ExitCause::HostReboot,
            CallOutcome::Unknown,
            "the runner's host restarted; it is not known",
        ),
        (
            ExitStatus::Unknown,
            ExitCause::SandboxStopped,
            CallOutcome::Unknown,
            "its sandbox was stopped or restarted; it is not known",
        ),
    ] {
        let world = one_call(SHELL, [ends(exit(0, status, cause))]);
        assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
        let (ended, text) = world.only_call();
        assert_eq!(ended, outcome, "{text}");
        assert!(text.contains(told), "{text}");
    }
}

#[tokio::test]
async fn a_refused_start_is_told_to_the_model_and_the_turn_goes_on() {
    let refused = Script::Refuse(refuse(RefusalCode::ForbiddenByRunnerPolicy));
    let world = one_call(SHELL, [refused]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let told =
        "not run: runner lap is offline since noon; start it; somebody has to see to that first";
    assert_eq!(world.only_call(), (CallOutcome::Refused, told.to_owned()));
    assert!(world.sandbox.scripted.stored().is_empty());
}

#[tokio::test]
async fn where_no_runner_can_be_given_a_call_the_turn_ends_with_the_one_reason() {
    let offline = Script::Refuse(refuse(RefusalCode::Unavailable));
    let calls = [READ, SHELL, SHELL, ("Shell", "{")];
    let world = World::new([Reply::calls("", calls), Reply::says("done")], [offline]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    let ended = world.ended_calls();
    let unplaced = ended.iter().filter(|event| {
        matches!(event, Event::CallEnded { unplaced: true, parts, .. }
            if parts.words() == "not run: runner lap is offline since noon; start it")
    });
    assert_eq!((ended.len(), unplaced.count()), (4, 3));
    // The calls behind the first one are not tried: each would wait for the runner.
    assert_eq!(world.sandbox.scripted.started().len(), 1);
    let told = "runner lap is offline since noon; start it";
    assert_eq!(world.end(), (TurnOutcome::Failed, told.to_owned()));
}

#[tokio::test]
async fn a_stale_epoch_at_the_sandbox_ends_this_worker_and_records_nothing() {
    let stale = refuse(RefusalCode::StaleEpoch);
    let ended = OperationEvent::Ended(Outcome::Refused(stale.clone()));
    for script in [Script::Refuse(stale), Script::Events(vec![ended])] {
        let world = one_call(SHELL, [script]);
        assert_eq!(world.run().await, Err(TurnError::StaleEpoch));
        assert!(world.ended_calls().is_empty());
    }
}

#[tokio::test]
async fn a_lost_command_is_not_run_again_and_the_model_hears_what_is_known() {
    let lost = OperationEvent::Ended(Outcome::Refused(refuse(RefusalCode::Lost)));
    let world = one_call(SHELL, [Script::Events(vec![output("half"), lost])]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let (outcome, text) = world.only_call();
    assert_eq!(outcome, CallOutcome::Unknown);
    assert!(
        text.starts_with(&format!("outcome unknown: started at {START:.0}")),
        "{text}"
    );
    // The first line says all that there is to say, and the output stands below.
    let (first, rest) = text.split_once('\n').expect("lines");
    assert!(first.ends_with("before you repeat it"), "{first}");
    assert_eq!(rest, "the last output was\nhalf");
    assert_eq!(world.sandbox.scripted.started().len(), 1);
}

#[tokio::test]
async fn a_lost_read_is_run_anew_under_another_id_and_at_most_twice() {
    let lost = || ends(Outcome::Refused(refuse(RefusalCode::Lost)));
    let world = one_call(READ, [lost(), ends(content("x\n"))]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(
        world.only_call(),
        (CallOutcome::Completed, "1\tx\n".to_owned())
    );
    let started = world.sandbox.scripted.started();
    assert_ne!(started[0].id, started[1].id);
    assert_eq!(started[0].request, started[1].request);

    let world = one_call(READ, [lost(), lost(), lost()]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(world.only_call().0, CallOutcome::Unknown);
}

#[tokio::test]
async fn a_runner_that_comes_back_is_waited_for() {
    let world = one_call(
        SHELL,
        [Script::Events(vec![
            OperationEvent::Unreachable { since: START },
            OperationEvent::Reachable,
            output("hi"),
            OperationEvent::Ended(exit(2, ExitStatus::Code(0), ExitCause::Exited)),
        ])],
    );
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(world.only_call().0, CallOutcome::Completed);
    let offline = format!("runner scripted offline since {START:.0}; waiting");
    assert_eq!(
        world.live.notices(),
        [offline.as_str(), "runner scripted is back"]
    );
}

#[tokio::test]
async fn a_runner_that_stays_away_ends_the_turn_leaves_the_outcome_unknown_and_keeps_the_operation()
{
    let gone = OperationEvent::Unreachable { since: START };
    let mut world = one_call(SHELL, [Script::Hang(vec![output("half"), gone])]);
    world.limits.parked_at_most = Duration::from_millis(1);
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    let (_, reason) = world.end();
    assert!(
        reason.starts_with("the runner went offline before it told how a call ended"),
        "{reason}"
    );
    let (outcome, text) = world.only_call();
    assert_eq!(outcome, CallOutcome::Unknown);
    assert!(text.contains(&format!(
        "runner scripted has been offline since {START:.0}"
    )));
    assert!(text.ends_with("half"));
    assert!(
        world.sandbox.scripted.stored().is_empty(),
        "its truth may still arrive"
    );
    assert_eq!(world.sandbox.scripted.left().len(), 1);
}

#[tokio::test]
async fn events_that_break_off_are_attached_to_again_without_doubling_output() {
    let broken = Script::Events(vec![output("half")]);
    let world = one_call(SHELL, [broken]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let (outcome, text) = world.only_call();
    assert_eq!(outcome, CallOutcome::Unknown);
    assert!(text.ends_with("the last output was\nhalf"), "{text}");
    let ids: Vec<_> = world
        .sandbox
        .scripted
        .started()
        .iter()
        .map(|o| o.id)
        .collect();
    assert_eq!(ids, [ids[0]; 3]);
}

#[tokio::test]
async fn a_command_that_overran_its_budget_is_marked() {
    let Outcome::Exited(mut record) = exit(0, ExitStatus::Signal(15), ExitCause::Timeout) else {
        unreachable!("it is an exit")
    };
    record.wall_ms = 120_400;
    let world = one_call(SHELL, [ends(Outcome::Exited(record))]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert!(matches!(
        world.ended_calls()[0],
        Event::CallEnded {
            budget_ms: 120_000,
            duration_ms: 120_400,
            overran: true,
            ..
        }
    ));
}

#[tokio::test]
async fn bytes_that_were_written_and_did_not_arrive_are_said_to_be_missing() {
    let ended = exit(105, ExitStatus::Code(0), ExitCause::Exited);
    let script = Script::Events(vec![output("hello"), OperationEvent::Ended(ended)]);
    let world = one_call(SHELL, [script]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let (_, text) = world.only_call();
    assert!(
        text.contains("hello\n[… 100 bytes left out from offset 5 …]"),
        "{text}"
    );
}

#[tokio::test]
async fn a_runner_that_came_back_and_then_says_nothing_is_not_called_offline() {
    let back = vec![
        OperationEvent::Unreachable { since: START },
        OperationEvent::Reachable,
    ];
    let call = ("Shell", r#"{"command":"sleep 9","timeout_ms":50}"#);
    let mut world = one_call(call, [Script::Hang(back)]);
    world.limits.parked_at_most = Duration::from_millis(1);
    world.limits.start_within = Duration::ZERO;
    world.limits.stop_within = Duration::ZERO;
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let (outcome, text) = world.only_call();
    assert_eq!(outcome, CallOutcome::Unknown);
    assert!(text.contains("did not report its end in time"), "{text}");
}

/// Takes an operation, goes away in the middle of it, and refuses from then on.
struct GoesAway {
    taken: ScriptedSandbox,
    gone: AtomicBool,
}

#[async_trait]
impl Sandbox for GoesAway {
    async fn start(&self, operation: Operation) -> Result<Running, Refusal> {
        match self.gone.swap(true, Ordering::SeqCst) {
            false => self.taken.start(operation).await,
            true => Err(refuse(RefusalCode::Unavailable)),
        }
    }

    async fn cancel(&self, operation: OperationId, epoch: Epoch) -> Result<CancelAnswer, Refusal> {
        self.taken.cancel(operation, epoch).await
    }

    async fn read(&self, operation: OperationId, from: [u64; 2]) -> Result<Running, Refusal> {
        self.taken.read(operation, from).await
    }

    async fn leave(&self, operation: OperationId) {
        self.taken.leave(operation).await;
    }
}

#[tokio::test]
async fn a_refusal_after_the_command_was_taken_is_not_told_as_not_run() {
    let world = one_call(SHELL, []);
    let mut ports = world.ports();
    ports.sandbox = Arc::new(GoesAway {
        taken: ScriptedSandbox::new([Script::Events(vec![output("half")])]),
        gone: AtomicBool::new(false),
    });
    let engine = world.engine();
    let turn = engine.run_turn(&ports, world.claim(), world.cancel.clone());
    assert_eq!(turn.await.map(to_its_end), Ok(TurnOutcome::Completed));
    let (outcome, text) = world.only_call();
    assert_eq!(outcome, CallOutcome::Unknown);
    assert!(text.ends_with("the last output was\nhalf"), "{text}");
}

#[tokio::test]
async fn a_call_that_was_shown_as_text_takes_the_text_back_runs_once_and_its_result_goes_back() {
    let Reply::Answer(answer) = Reply::calls("I look.", [SHELL]) else {
        unreachable!("it is an answer")
    };
    let said = vec![
        ModelEvent::Attempt { number: 1 },
        text(0, "I look.\n<tool_call>…</tool_call>"),
        ModelEvent::TakenBack,
    ];
    let world = World::new(
        [Reply::Events(said, answer), Reply::says("done")],
        [command("hi", 0)],
    );
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let void = Live::TakenBack {
        turn: TURN,
        step: 1,
        attempt: 1,
    };
    assert_eq!(world.live.all()[1], void);
    assert_eq!(world.sandbox.scripted.started().len(), 1);
    let requests = world.model.requests();
    let [answered, result] = &requests[1].messages[1..] else {
        panic!("an answer and a result: {requests:?}");
    };
    assert_eq!(answered.parts().words(), "I look.");
    assert!(result.parts().words().starts_with("hi"), "{result:?}");
}
