//! Consent: what is asked, who answers, and what runs then.

use server_records::{RuleBy, SetRule};
use shared_consent::{Decision, Ruled};
use shared_sandbox::{Command, Consent, ExitCause, ExitStatus, Request, scripted::Script};
use shared_types::{
    ApprovalId, Event, Mode, Timestamp, UserId, WaitsFor,
    event::{Answer, CallOutcome, Parts, Question, Terms, TurnOutcome, Unanswered},
};

use crate::{
    Carried, LogError,
    testing::{Fault, Reply, START, TURN, World, ends, exit},
};

const MAKE: (&str, &str) = ("Shell", r#"{"command":"make deploy"}"#);
const LIST: (&str, &str) = ("Shell", r#"{"command":"ls"}"#);

/// A turn in this mode that makes these calls, one an answer.
fn world<'a>(mode: Mode, calls: impl IntoIterator<Item = (&'a str, &'a str)>) -> World {
    let calls = calls.into_iter().map(|call| Reply::calls("", [call]));
    let ran = || ends(exit(0, ExitStatus::Code(0), ExitCause::Exited));
    let scripts: Vec<Script> = (0..4).map(|_| ran()).collect();
    let world = World::new(calls.chain([Reply::says("done")]), scripts);
    set_terms(
        &world,
        Terms {
            mode: Some(mode),
            ..Terms::default()
        },
    );
    world
}

/// Begins the log again: the input of the turn has these terms.
pub(super) fn set_terms(world: &World, terms: Terms) {
    world.log.clear();
    world.log.append(Event::InputAccepted {
        turn: TURN,
        by: UserId::from_u128(9),
        client_id: None,
        parts: Parts::text("do it".to_owned()),
        compacts: None,
        terms,
    });
}

fn rule(decision: Decision, text: &str) -> SetRule {
    Ruled {
        rule: text.parse().expect("a rule"),
        decision,
        by: RuleBy::Operator,
    }
}

/// The questions of the log.
fn questions(world: &World) -> Vec<(ApprovalId, Question, Timestamp)> {
    let asked = |event| match event {
        Event::ApprovalAsked {
            approval,
            question,
            until,
            ..
        } => Some((approval, question, until)),
        _ => None,
    };
    world.log.events().into_iter().filter_map(asked).collect()
}

/// Runs the turn to where it waits for people; returns the question.
async fn asks(world: &mut World) -> (ApprovalId, Question, Timestamp) {
    let carried = world.spawn_carrying().await.expect("it does not panic");
    let Ok(Carried::Waits(calls)) = carried else {
        panic!("it does not wait: {carried:?}");
    };
    let asked = questions(world).pop().expect("people are asked");
    let waits: Vec<_> = calls.iter().map(|call| call.wait.waits_for).collect();
    assert_eq!(waits, [WaitsFor::Person(asked.0)]);
    world.waited = calls.into_iter().map(|call| call.wait).collect();
    asked
}

fn answer(world: &World, approval: ApprovalId, answer: Answer) {
    world.log.append(Event::ApprovalAnswered {
        turn: TURN,
        step: 1,
        ordinal: 0,
        approval,
        answer,
        by: Some(UserId::from_u128(9)),
        name: "ada".to_owned(),
    });
}

fn allowed(command: Option<&str>) -> Answer {
    Answer::Allowed {
        command: command.map(str::to_owned),
        rule: None,
        mode: None,
    }
}

/// The commands that the sandbox was given.
fn ran(world: &World) -> Vec<String> {
    let started = world.sandbox.scripted.started().into_iter();
    let scripts = started.filter_map(|operation| match operation.request {
        Request::Exec(exec) => match exec.command {
            Command::Shell(script) => Some(script),
            Command::Argv(_) => None,
        },
        _ => None,
    });
    scripts.collect()
}

#[tokio::test(start_paused = true)]
async fn a_command_waits_for_a_person_without_a_worker_and_runs_once_allowed() {
    let mut world = world(Mode::Ask, [LIST, MAKE]);
    let (approval, question, until) = asks(&mut world).await;
    let Question::Call(call) = question else {
        panic!("{question:?}");
    };
    assert_eq!(
        (call.text.as_str(), call.tool.as_str()),
        ("make deploy", "Shell")
    );
    assert_eq!(until.since(START), world.limits.answer_within);
    // Another worker asks nothing anew.
    let again = asks(&mut world).await;
    assert_eq!((again.0, questions(&world).len()), (approval, 1));
    assert_eq!(ran(&world), ["ls"], "only what reads ran");
    world.log.append(Event::ApprovalAnswered {
        turn: TURN,
        step: 2,
        ordinal: 0,
        approval,
        answer: allowed(None),
        by: Some(UserId::from_u128(9)),
        name: "ada".to_owned(),
    });
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(ran(&world), ["ls", "make deploy"]);
    let started = world.sandbox.scripted.started();
    let plan = started[1].request.digest();
    let mode = Mode::Ask;
    assert_eq!(started[0].consent, Consent::Agent(mode));
    assert_eq!(started[1].consent, Consent::Approved { mode, plan });
}

#[tokio::test(start_paused = true)]
async fn a_person_who_says_no_is_heard_and_nothing_runs() {
    let mut world = world(Mode::Ask, [MAKE]);
    let (approval, ..) = asks(&mut world).await;
    let words = Some("test it first".to_owned());
    answer(&world, approval, Answer::Denied { words });
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let (outcome, text) = world.only_call();
    assert_eq!(outcome, CallOutcome::Refused);
    assert!(text.ends_with("says: test it first"), "{text}");
    assert_eq!(ran(&world), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn where_nobody_can_be_asked_nothing_runs_and_the_model_is_told_that_nobody_refused() {
    let world = world(Mode::Ask, [MAKE]);
    set_terms(
        &world,
        Terms {
            mode: Some(Mode::Ask),
            unattended: true,
            ..Terms::default()
        },
    );
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let (outcome, text) = world.only_call();
    assert_eq!((outcome, ran(&world).len()), (CallOutcome::Refused, 0));
    assert!(text.contains("nobody can be asked here"), "{text}");
    let nobody = |event: &Event| {
        matches!(
            event,
            Event::ApprovalAnswered {
                by: None,
                answer: Answer::Unanswered {
                    because: Unanswered::NobodyThere
                },
                ..
            }
        )
    };
    assert!(world.log.events().iter().any(nobody));
}

#[tokio::test(start_paused = true)]
async fn after_the_deadline_nothing_runs() {
    let mut world = world(Mode::Ask, [MAKE]);
    let (_, _, until) = asks(&mut world).await;
    world.clock.advance(until.since(START));
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let (_, text) = world.only_call();
    assert!(
        text.contains("nobody answered before the deadline"),
        "{text}"
    );
    assert_eq!(ran(&world).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_the_person_changed_runs_as_changed_also_after_a_crash() {
    let mut world = world(Mode::Ask, [MAKE]);
    let (approval, ..) = asks(&mut world).await;
    answer(&world, approval, allowed(Some("make check")));
    let operation = world.dies_after_starting(1).await;
    world.was_placed(operation);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert!(ran(&world).iter().all(|command| command == "make check"));
    let (_, text) = world.only_call();
    assert!(
        text.starts_with("[the user had this run instead: make check]"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_denies_goes_before_a_person_who_allows_and_before_every_mode() {
    let mut asked = world(Mode::Ask, [MAKE]);
    let (approval, ..) = asks(&mut asked).await;
    answer(&asked, approval, allowed(None));
    asked
        .log
        .set_rules([rule(Decision::Deny, "Shell(make deploy)")]);
    let full = world(Mode::Full, [MAKE]);
    full.log
        .set_rules([rule(Decision::Deny, "Shell(make deploy)")]);
    for world in [&asked, &full] {
        assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
        assert_eq!(world.only_call().0, CallOutcome::Refused);
        assert_eq!(ran(world).len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_ceiling_that_the_tenant_lowers_counts_for_turns_that_have_begun() {
    let mut asked = world(Mode::Full, [MAKE]);
    asked.log.set_ceiling(Mode::Ask);
    let (approval, ..) = asks(&mut asked).await;
    answer(&asked, approval, allowed(None));
    asked.log.set_ceiling(Mode::Plan);
    assert_eq!(asked.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(asked.only_call().0, CallOutcome::Refused);
    assert_eq!(ran(&asked).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_allows_asks_nobody_also_where_only_the_message_has_it() {
    let set = world(Mode::Ask, [MAKE]);
    set.log
        .set_rules([rule(Decision::Allow, "Shell(make deploy)")]);
    let of_message = world(Mode::Ask, [MAKE]);
    set_terms(
        &of_message,
        Terms {
            mode: Some(Mode::Ask),
            unattended: true,
            allow: vec!["Shell(make deploy)".to_owned()],
            steps: None,
            ..Terms::default()
        },
    );
    for world in [set, of_message] {
        assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
        assert_eq!((ran(&world).len(), questions(&world).len()), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_stopped_while_it_waits_closes_its_question() {
    let mut world = world(Mode::Ask, [MAKE]);
    asks(&mut world).await;
    world.log.append(Event::CancelRequested {
        turn: TURN,
        by: UserId::from_u128(9),
        why: None,
    });
    assert_eq!(world.run().await, Ok(TurnOutcome::Cancelled));
    assert_eq!(world.only_call().0, CallOutcome::Cancelled);
    let closed = |event: &Event| {
        matches!(
            event,
            Event::ApprovalAnswered {
                answer: Answer::Unanswered {
                    because: Unanswered::Stopped
                },
                ..
            }
        )
    };
    assert!(world.log.events().iter().any(closed));
}

#[tokio::test(start_paused = true)]
async fn an_answer_counts_only_for_the_call_as_it_was_shown() {
    let mut world = world(Mode::Ask, [MAKE]);
    let (approval, question, until) = asks(&mut world).await;
    // The question of the log is about another request than the call makes now.
    let mut events = world.log.events();
    events.pop();
    world.log.clear();
    events.into_iter().for_each(|event| world.log.append(event));
    world.log.append(Event::ApprovalAsked {
        turn: TURN,
        step: 1,
        ordinal: 0,
        approval,
        question,
        plan: Some(shared_types::Digest::of(b"another")),
        until,
    });
    answer(&world, approval, allowed(None));
    let (anew, ..) = asks(&mut world).await;
    assert_ne!(anew, approval);
    assert_eq!(ran(&world).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn in_plan_mode_only_reading_runs_until_the_plan_is_accepted() {
    let plan = ("present_plan", r#"{"plan":"1. make deploy"}"#);
    let mut world = world(Mode::Plan, [MAKE, plan, MAKE]);
    let set = shared_types::event::TurnSettings {
        model: "scripted".to_owned(),
        language: None,
        steps: 50,
        machine: None,
        own_runner: false,
        mode: Some(Mode::Plan),
        ceiling: None,
        machine_ceiling: None,
    };
    world.log.append(Event::TurnClaimed {
        turn: TURN,
        epoch: crate::testing::EPOCH,
        replica: shared_types::ReplicaId::from_u128(1),
        choice: None,
        settings: Some(set),
    });
    let (approval, question, _) = asks(&mut world).await;
    assert_eq!(question.title(), "Plan: 1. make deploy");
    assert_eq!(ran(&world).len(), 0);
    world.log.append(Event::ApprovalAnswered {
        turn: TURN,
        step: 2,
        ordinal: 0,
        approval,
        answer: Answer::Allowed {
            command: None,
            rule: None,
            mode: Some(Mode::Full),
        },
        by: Some(UserId::from_u128(9)),
        name: "ada".to_owned(),
    });
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(ran(&world), ["make deploy"]);
    let first = &world.model.requests()[0];
    let note = first
        .messages
        .iter()
        .any(|message| message.parts().words().contains("[plan mode"));
    assert!(note, "the model knows its mode");
}

#[tokio::test(start_paused = true)]
async fn the_model_asks_the_user_and_gets_the_users_words() {
    let ask = ("ask_user", r#"{"question":"which?","choices":"red\nblue"}"#);
    let mut world = world(Mode::Full, [ask]);
    let (approval, question, _) = asks(&mut world).await;
    let choices = vec!["red".to_owned(), "blue".to_owned()];
    assert!(matches!(question, Question::Free { choices: offered, .. } if offered == choices));
    answer(
        &world,
        approval,
        Answer::Said {
            text: "green".to_owned(),
        },
    );
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(
        world.only_call(),
        (CallOutcome::Completed, "the user says: green".to_owned())
    );
}

/// Answers the newest question, where it is open.
fn allow_if_open(world: &World) {
    let events = world.log.events();
    let answered = |event: &Event| matches!(event, Event::ApprovalAnswered { .. });
    if let Some((approval, ..)) = questions(world).pop()
        && !events.iter().any(answered)
    {
        answer(world, approval, allowed(None));
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_write_fails_around_a_question_its_command_runs_once_and_only_when_allowed() {
    let writes = 5;
    for (at, stored) in (1..=writes).flat_map(|at| [(at, false), (at, true)]) {
        let world = world(Mode::Ask, [MAKE]);
        world.log.break_at(Fault {
            at,
            stored,
            error: LogError::Unavailable("the database is away".to_owned()),
        });
        let mut ended = None;
        for _ in 0..2 * writes {
            match world.spawn_carrying().await.expect("it does not panic") {
                Ok(Carried::Ended(outcome)) => {
                    ended = Some(outcome);
                    break;
                }
                Ok(Carried::Waits(_)) => {
                    assert_eq!(ran(&world).len(), 0, "write {at}: nobody agreed yet");
                    allow_if_open(&world);
                }
                Ok(Carried::LetGo) => panic!("write {at}: the turn was let go of"),
                Err(_) => world.log.mend(),
            }
        }
        let place = format!("write {at}, stored: {stored}");
        assert_eq!(ended, Some(TurnOutcome::Completed), "{place}");
        assert_eq!(questions(&world).len(), 1, "{place}");
        let started = world.sandbox.scripted.started();
        let ids: std::collections::BTreeSet<_> = started.iter().map(|one| one.id).collect();
        assert_eq!(ids.len(), 1, "{place}: {started:?}");
        let consents = started.iter().map(|one| one.consent);
        assert!(
            consents
                .clone()
                .all(|consent| matches!(consent, Consent::Approved { .. }))
        );
    }
}
