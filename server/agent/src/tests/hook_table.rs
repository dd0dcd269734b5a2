//! The table of hooks: each event with each answer of each kind of handler, and what becomes of the turn.

use server_records::{ExtensionKind, StandingExtensions};
use shared_sandbox::{ExitCause, ExitStatus, FileFailure, Outcome, scripted::Script};
use shared_types::{
    Event, Mode, TurnId, UserId,
    event::{CallOutcome, Finish, HookEvent, Parts, Terms, TurnLimit, TurnOutcome, Usage},
};

use super::extended::{finds, says, world};
use crate::{
    Carried,
    extensions::gathered,
    testing::{Reply, TURN, World, ends, exit, registered},
};

const LS: (&str, &str) = ("Shell", r#"{"command":"ls"}"#);
const RM: (&str, &str) = ("Shell", r#"{"command":"rm -r x"}"#);
const AGENT: (&str, &str) = ("SubAgent", r#"{"description":"look","prompt":"Look."}"#);

/// The answers of a hook, in the order of the table's columns.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Says {
    Nothing,
    Allow,
    Ask,
    Deny,
    /// It fails, and lets pass what it guards.
    BreaksOpen,
    /// It fails, and refuses what it guards.
    BreaksClosed,
    /// It does not end in time, and refuses what it guards.
    HangsClosed,
}

const ANSWERS: [Says; 7] = [
    Says::Nothing,
    Says::Allow,
    Says::Ask,
    Says::Deny,
    Says::BreaksOpen,
    Says::BreaksClosed,
    Says::HangsClosed,
];

/// The events, and what becomes of the turn with each answer: it `runs` as without the hook, people are asked (`asks`),
/// the call is `refused`, the model is `told`, the turn `fails`, it goes `on` behind its last word, or the compaction is
/// put `off`.
#[rustfmt::skip]
const TABLE: [(HookEvent, [&str; 7]); 14] = {
    use HookEvent::*;
    [
        // Nothing, Allow, Ask, Deny, open, closed, hangs
        (SessionStart,       ["runs", "runs", "runs", "runs", "runs", "runs", "runs"]),
        (UserPromptSubmit,   ["runs", "runs", "runs", "fails", "runs", "fails", "fails"]),
        (PreToolUse,         ["runs", "runs", "asks", "refused", "runs", "refused", "refused"]),
        (PermissionRequest,  ["asks", "runs", "asks", "refused", "refused", "refused", "refused"]),
        (PermissionDenied,   ["refused", "refused", "refused", "refused", "refused", "refused", "refused"]),
        (PostToolUse,        ["runs", "runs", "runs", "told", "runs", "told", "told"]),
        (PostToolUseFailure, ["runs", "runs", "runs", "told", "runs", "told", "told"]),
        (PostToolBatch,      ["runs", "runs", "runs", "fails", "runs", "fails", "fails"]),
        (SubAgentStart,      ["runs", "runs", "runs", "refused", "runs", "refused", "refused"]),
        (SubAgentStop,       ["runs", "runs", "runs", "runs", "runs", "runs", "runs"]),
        (AgentStop,          ["runs", "runs", "runs", "on", "runs", "on", "on"]),
        (AgentError,         ["fails", "fails", "fails", "fails", "fails", "fails", "fails"]),
        (PreCompact,         ["runs", "runs", "runs", "off", "runs", "off", "off"]),
        (PostCompact,        ["runs", "runs", "runs", "runs", "runs", "runs", "runs"]),
    ]
};

fn json(decision: &str) -> String {
    format!(r#"{{"decision": "{decision}", "reason": "because"}}"#)
}

fn command(answer: Says) -> Script {
    match answer {
        Says::Nothing => says("", "", 0),
        Says::Allow => says(&json("allow"), "", 0),
        Says::Ask => says(&json("ask"), "", 0),
        Says::Deny => says("", "because", 2),
        Says::BreaksOpen | Says::BreaksClosed => says("", "boom", 1),
        Says::HangsClosed => Script::Hang(Vec::new()),
    }
}

/// The handler, in words of the file.
fn handler(kind: &str, answer: Says) -> String {
    let fails = match answer {
        Says::BreaksClosed | Says::HangsClosed => r#", "onFailure": "block""#,
        _ => "",
    };
    match kind {
        "http" => format!(r#"{{"type": "http", "url": "https://hooks/{answer:?}"{fails}}}"#),
        _ => format!(r#"{{"type": "command", "command": "./hook", "timeout": 1{fails}}}"#),
    }
}

fn ran() -> Script {
    ends(exit(0, ExitStatus::Code(0), ExitCause::Exited))
}

/// A turn in which the event happens once. `hook` are the operations of the hook, where it has any.
fn scene(on: HookEvent, hook: Option<&dyn Fn() -> Script>, file: &str) -> World {
    use HookEvent as On;
    let done = || Reply::says("done");
    let calls = |call| vec![Reply::calls("", [call]), done()];
    let of_hook = || hook.map(|hook| hook());
    let around = |before: Vec<Script>, behind: Vec<Script>| -> Vec<Script> {
        let found = std::iter::once(finds(&[]));
        found.chain(before).chain(of_hook()).chain(behind).collect()
    };
    let world = match on {
        On::SessionStart | On::UserPromptSubmit => {
            world(Mode::Full, vec![done()], around(vec![], vec![]))
        }
        On::PreToolUse => world(Mode::Full, calls(LS), around(vec![], vec![ran()])),
        On::PermissionRequest => world(Mode::Ask, calls(RM), around(vec![], vec![ran()])),
        On::PermissionDenied => world(Mode::Plan, calls(RM), around(vec![], vec![])),
        On::PostToolUse | On::PostToolBatch => {
            world(Mode::Full, calls(LS), around(vec![ran()], vec![]))
        }
        On::PostToolUseFailure => {
            let read = ("Read", r#"{"path":"none"}"#);
            let none = ends(Outcome::Failed(FileFailure::NotFound {
                path: "none".to_owned(),
            }));
            world(Mode::Full, calls(read), around(vec![none], vec![]))
        }
        On::SubAgentStart | On::SubAgentStop => {
            world(Mode::Full, calls(AGENT), around(vec![], vec![]))
        }
        On::AgentStop => {
            let more = (0..5).filter_map(|_| of_hook()).collect();
            world(Mode::Full, vec![done()], around(vec![], more))
        }
        On::AgentError => {
            let refused = server_llm::ModelError::Refused("no".to_owned());
            world(
                Mode::Full,
                vec![Reply::Fail(refused)],
                around(vec![], vec![]),
            )
        }
        On::PreCompact | On::PostCompact => to_compact(of_hook(), file),
        On::SlashCommand | On::SessionEnd => unreachable!("the table has none"),
    };
    world
        .log
        .register(registered(ExtensionKind::Hooks, "mine", file));
    world
}

/// A turn that a person began to compact the conversation. It looks for no extensions: an earlier turn has found them.
fn to_compact(hook: Option<Script>, file: &str) -> World {
    let world = world(
        Mode::Full,
        vec![Reply::says("old"), Reply::says("All is well.")],
        hook.into_iter().collect(),
    );
    let [_, claimed] = world
        .log
        .events()
        .try_into()
        .expect("a message and a claim");
    world.log.clear();
    let earlier = TurnId::from_u128(77);
    let input = |turn, text: &str, compacts| Event::InputAccepted {
        turn,
        by: UserId::from_u128(9),
        client_id: None,
        parts: Parts::text(text.to_owned()),
        compacts,
        terms: Terms::default(),
    };
    let standing = StandingExtensions {
        registered: vec![registered(ExtensionKind::Hooks, "mine", file)],
        trusted: Vec::new(),
    };
    let events = [
        input(earlier, &"words ".repeat(2000), None),
        Event::ExtensionsFound {
            turn: earlier,
            extensions: Box::new(gathered(&standing, &[], None)),
        },
        Event::AnswerRecorded {
            turn: earlier,
            step: 1,
            model: "scripted".to_owned(),
            origin: None,
            parts: Parts::text("old".to_owned()),
            finish: Finish::Complete,
            usage: Usage::default(),
            estimated: 0,
            model_ms: 0,
            limit: None::<TurnLimit>,
        },
        Event::TurnEnded {
            turn: earlier,
            outcome: TurnOutcome::Completed,
            reason: None,
        },
        input(TURN, "/compact", Some(String::new())),
        claimed,
    ];
    events.into_iter().for_each(|event| world.log.append(event));
    world
}

/// Carries the turn as far as it goes. A hook may take all of its time.
async fn carry(world: &World) -> Carried {
    let (engine, ports) = (world.engine(), world.ports());
    let carried = engine.run_turn(&ports, world.claim(), world.cancel.clone());
    carried.await.expect("the log takes it")
}

/// What becomes of the turn, in the table's words.
async fn becomes(on: HookEvent, mut world: World) -> &'static str {
    let is_agents = matches!(on, HookEvent::SubAgentStart | HookEvent::SubAgentStop);
    let mut carried = carry(&world).await;
    if let (true, Carried::Waits(calls)) = (is_agents, &carried) {
        world.waited = calls.iter().map(|call| call.wait.clone()).collect();
        world.log.agent_ends(0, TurnOutcome::Completed, "looked");
        carried = carry(&world).await;
    }
    let events = world.log.events();
    let was_compacted = || {
        events
            .iter()
            .any(|event| matches!(event, Event::ContextCompacted { .. }))
    };
    let call = world.ended_calls().pop();
    match carried {
        Carried::Waits(_) => "asks",
        Carried::Ended(TurnOutcome::Failed) => "fails",
        Carried::Ended(_) if on == HookEvent::AgentStop && world.model.requests().len() > 1 => "on",
        Carried::Ended(_) if on == HookEvent::PreCompact && !was_compacted() => "off",
        Carried::Ended(_) => match call {
            Some(Event::CallEnded {
                outcome: CallOutcome::Refused,
                ..
            }) => "refused",
            Some(Event::CallEnded { parts, .. }) if parts.words().contains("[a hook says: ") => {
                "told"
            }
            _ => "runs",
        },
        Carried::LetGo => "is let go of",
    }
}

#[tokio::test(start_paused = true)]
async fn each_event_heeds_the_answers_of_hooks_as_the_table_says() {
    let mut wrong = Vec::new();
    for (on, expected) in TABLE {
        for (answer, expected) in ANSWERS.into_iter().zip(expected) {
            for kind in ["command", "http"] {
                // The web keeps the time of a request itself.
                if (kind, answer) == ("http", Says::HangsClosed) {
                    continue;
                }
                let event = on.word();
                let handler = handler(kind, answer);
                let file = format!(r#"{{"hooks": {{"{event}": [{{"hooks": [{handler}]}}]}}}}"#);
                let script = || command(answer);
                let of_hook = (kind == "command").then_some(&script as &dyn Fn() -> Script);
                let found = becomes(on, scene(on, of_hook, &file)).await;
                if found != expected {
                    wrong.push(format!(
                        "{event} {kind} {answer:?}: {found}, not {expected}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The events whose input may hold a secret, and what the built-in action does there.
#[tokio::test]
async fn the_built_in_action_denies_what_holds_a_secret_and_nothing_else() {
    let secret = concat!("AKIA", "Z7QK3WJ5XN2P4RBV");
    for (command, expected) in [("ls", "runs"), (secret, "refused")] {
        let call = format!(r#"{{"command":"echo {command}"}}"#);
        let world = world(
            Mode::Full,
            vec![
                Reply::calls("", [("Shell", call.as_str())]),
                Reply::says("done"),
            ],
            vec![finds(&[]), ran()],
        );
        let file =
            r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "built_in", "name": "secrets"}]}]}}"#;
        world
            .log
            .register(registered(ExtensionKind::Hooks, "mine", file));
        assert_eq!(
            becomes(HookEvent::PreToolUse, world).await,
            expected,
            "{command}"
        );
    }
}
