//! The decision by table, and by property: whatever a turn's log holds, going on after any
//! prefix of it leads to the same log.

use proptest::prelude::*;
use shared_types::{
    CallWait, Event, OperationId, SessionEvent, Timestamp, TurnId, UserId, WaitsFor,
    event::{Awaited, CallOutcome, EventBody, Parts, ToolCall, Usage},
};

use super::*;
use crate::testing::said;
use crate::transcript::Transcript;

const TURN: TurnId = TurnId::from_u128(7);

fn input() -> Event {
    Event::InputAccepted {
        turn: TURN,
        by: UserId::from_u128(1),
        client_id: None,
        parts: Parts::text("do it".to_owned()),
        compacts: None,
        terms: crate::testing::full(),
    }
}

fn answer(step: u32, text: &str, calls: &[&str], finish: Finish) -> Event {
    let call = |name: &&str| ToolCall {
        vendor_id: "v".to_owned(),
        name: (*name).to_owned(),
        arguments: "{}".to_owned(),
        opaque: Default::default(),
    };
    Event::AnswerRecorded {
        turn: TURN,
        step,
        model: "m".to_owned(),
        origin: None,
        parts: said(text, calls.iter().map(call)),
        finish,
        usage: Usage::default(),
        estimated: 0,
        model_ms: 0,
        limit: None,
    }
}

fn ended(step: u32, ordinal: u32, text: &str) -> Event {
    Event::CallEnded {
        turn: TURN,
        step,
        ordinal,
        outcome: CallOutcome::Completed,
        parts: Parts::text(text.to_owned()),
        unplaced: false,
        task: None,
        awaits: None,
        budget_ms: 0,
        duration_ms: 0,
        overran: false,
        file: None,
        whole: None,
        findings: Vec::new(),
        tools: Vec::new(),
    }
}

fn cancel() -> Event {
    Event::CancelRequested {
        turn: TURN,
        by: UserId::from_u128(1),
        why: None,
    }
}

fn after(events: &[Event]) -> Next {
    after_with(events, &[])
}

/// The same where these calls were found to wait.
fn after_with(events: &[Event], waiting: &[WaitingCall]) -> Next {
    after_within(events, waiting, &EngineLimits::default())
}

fn after_within(events: &[Event], waiting: &[WaitingCall], limits: &EngineLimits) -> Next {
    let log: Vec<_> = (1..)
        .zip(events)
        .map(|(seq, event)| SessionEvent {
            seq,
            at: Timestamp::from_micros(0),
            body: EventBody::Known(event.clone()),
        })
        .collect();
    let transcript = Transcript::of(&log);
    let turn = transcript.turn(TURN).expect("its input is in the log");
    next(turn, waiting, limits)
}

fn end(outcome: TurnOutcome) -> Next {
    Next::End {
        outcome,
        reason: None,
    }
}

#[test]
fn each_state_of_a_turn_has_its_next_phase() {
    use Finish::{Cancelled, Complete, Length};
    let run = |pending: &[u32]| Next::RunCalls {
        step: 1,
        pending: pending.to_vec(),
    };
    let table: Vec<(Vec<Event>, Next)> = vec![
        (vec![], Next::AskModel { step: 1 }),
        (vec![cancel()], end(TurnOutcome::Cancelled)),
        (
            vec![answer(1, "hi", &[], Complete)],
            end(TurnOutcome::Completed),
        ),
        (
            vec![answer(1, "hi", &[], Length)],
            end(TurnOutcome::Completed),
        ),
        (
            vec![answer(1, "hi", &[], Cancelled)],
            end(TurnOutcome::Cancelled),
        ),
        (vec![answer(1, "", &["a", "b"], Complete)], run(&[0, 1])),
        (
            vec![answer(1, "", &["a", "b"], Complete), ended(1, 0, "x")],
            run(&[1]),
        ),
        (
            vec![answer(1, "", &["a", "b"], Complete), cancel()],
            run(&[0, 1]),
        ),
        (
            vec![answer(1, "", &["a"], Complete), ended(1, 0, "x")],
            Next::AskModel { step: 2 },
        ),
        (
            vec![answer(1, "", &["a"], Complete), cancel(), ended(1, 0, "x")],
            end(TurnOutcome::Cancelled),
        ),
    ];
    for (events, expected) in table {
        let log = [vec![input()], events].concat();
        assert_eq!(after(&log), expected, "{log:?}");
    }
}

#[test]
fn a_turn_whose_calls_only_wait_waits_for_them_until_it_is_cancelled() {
    let wait = CallWait {
        step: 1,
        ordinal: 0,
        waits_for: WaitsFor::Operation(OperationId::from_u128(1)),
        until: Timestamp::from_micros(0),
        listens_until: None,
    };
    let waiting = [WaitingCall::unseen(wait)];
    let mut log = vec![input(), answer(1, "", &["a", "b"], Finish::Complete)];
    assert_eq!(after_with(&log, &waiting), Next::Wait(waiting.to_vec()));
    log.push(cancel());
    let pending = vec![0, 1];
    assert_eq!(
        after_with(&log, &waiting),
        Next::RunCalls { step: 1, pending }
    );
}

#[test]
fn an_ended_turn_has_nothing_next_whatever_else_is_in_its_log() {
    let over = Event::TurnEnded {
        turn: TURN,
        outcome: TurnOutcome::Failed,
        reason: None,
    };
    let log = [
        input(),
        over,
        cancel(),
        answer(1, "", &["a"], Finish::Complete),
    ];
    assert_eq!(after(&log), Next::Ended(TurnOutcome::Failed));
}

#[test]
fn a_circle_of_several_calls_is_seen_and_a_changing_result_is_progress() {
    let round = |step, result: &str| {
        let asked = answer(step, "", &["a", "b"], Finish::Complete);
        [asked, ended(step, 0, "same"), ended(step, 1, result)]
    };
    let log = |results: [&str; 4]| -> Vec<Event> {
        let rounds = (1..)
            .zip(results)
            .flat_map(|(step, result)| round(step, result));
        std::iter::once(input()).chain(rounds).collect()
    };
    assert!(matches!(
        after(&log(["x"; 4])),
        Next::End {
            outcome: TurnOutcome::Failed,
            ..
        }
    ));
    assert_eq!(
        after(&log(["x", "x", "y", "x"])),
        Next::AskModel { step: 5 }
    );
    assert_eq!(after(&log(["x"; 4])[..10]), Next::AskModel { step: 4 });
}

#[test]
fn to_wait_for_a_runner_or_a_command_is_not_going_in_circles() {
    let round = |step, awaited| {
        let mut end = ended(step, 0, "same");
        if let Event::CallEnded { awaits, .. } = &mut end {
            *awaits = awaited;
        }
        [answer(step, "", &["a"], Finish::Complete), end]
    };
    let after_four = |awaited: [Option<Awaited>; 4]| {
        let rounds = (1..)
            .zip(awaited)
            .flat_map(|(step, awaited)| round(step, awaited));
        let log: Vec<_> = std::iter::once(input()).chain(rounds).collect();
        after(&log)
    };
    let (away, runs) = (Some(Awaited::Runner), Some(Awaited::Command));
    assert!(matches!(after_four([None; 4]), Next::End { .. }));
    for awaited in [[away; 4], [runs; 4], [None, None, None, away]] {
        assert_eq!(
            after_four(awaited),
            Next::AskModel { step: 5 },
            "{awaited:?}"
        );
    }
}

/// What the world would do: each step's calls by their results, then a last word.
#[derive(Debug, Clone)]
struct Plan {
    steps: Vec<Vec<u8>>,
    last: String,
    cancel_at: Option<usize>,
    /// The limit of steps.
    most: u32,
}

fn plans() -> impl Strategy<Value = Plan> {
    let steps = proptest::collection::vec(proptest::collection::vec(0..3u8, 1..4), 0..8);
    let cancel_at = proptest::option::of(1..20usize);
    (steps, "[a ]{0,2}", cancel_at, 1..12u32).prop_map(|(steps, last, cancel_at, most)| Plan {
        steps,
        last,
        cancel_at,
        most,
    })
}

/// Does what comes next until nothing does.
fn play(plan: &Plan, mut log: Vec<Event>) -> Vec<Event> {
    let limits = EngineLimits {
        max_steps: plan.most,
        ..EngineLimits::default()
    };
    let answered = |step: u32| match plan.steps.get(step as usize - 1) {
        Some(calls) => answer(step, "", &vec!["a"; calls.len()], Finish::Complete),
        None => answer(step, &plan.last, &[], Finish::Complete),
    };
    loop {
        assert!(log.len() < 500, "the turn ends");
        let missing = !log
            .iter()
            .any(|event| matches!(event, Event::CancelRequested { .. }));
        if missing && plan.cancel_at == Some(log.len()) {
            log.push(cancel());
        }
        match after_within(&log, &[], &limits) {
            Next::AskModel { step } => log.push(answered(step)),
            Next::AskForSummary { step, limit } => {
                let mut summary = answered(step);
                if let Event::AnswerRecorded { limit: reached, .. } = &mut summary {
                    *reached = Some(limit);
                }
                log.push(summary);
            }
            Next::RunCalls { step, pending } => {
                let result = plan.steps[step as usize - 1][pending[0] as usize];
                log.push(ended(step, pending[0], &result.to_string()));
            }
            Next::End { outcome, reason } => log.push(Event::TurnEnded {
                turn: TURN,
                outcome,
                reason,
            }),
            Next::Ended(_) => return log,
            Next::Wait(calls) => panic!("nothing was found to wait: {calls:?}"),
            Next::Compact { .. } => panic!("nobody asked for that"),
        }
    }
}

proptest! {
    #[test]
    fn going_on_after_any_prefix_of_a_log_leads_to_the_same_log(plan in plans()) {
        let whole = play(&plan, vec![input()]);
        for length in 1..=whole.len() {
            prop_assert_eq!(&play(&plan, whole[..length].to_vec()), &whole);
        }
    }

    #[test]
    fn a_turn_ends_once_and_with_a_result_for_every_call(plan in plans()) {
        let log = play(&plan, vec![input()]);
        let count = |wanted: &str| log.iter().filter(|event| event.kind() == wanted).count();
        let calls: usize = log.iter().map(|event| match event {
            Event::AnswerRecorded { parts, .. } => parts.calls().count(),
            _ => 0,
        }).sum();
        prop_assert_eq!((count("turn.ended"), count("call.ended")), (1, calls));
    }
}
