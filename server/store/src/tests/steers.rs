//! Messages that come while a turn works.

use server_records::{IfRunning, TurnState};
use shared_types::{
    CallWait, Epoch, Event, SessionEvent, SessionId, TurnId, WaitsFor, WhileWorking,
    event::{Parts, StopReason, TurnOutcome},
    limits::MAX_MESSAGE_BYTES,
};

use super::fixture::{Fixture, REPLICA, Tenant, at, turn_ended, unique, usual};
use crate::{Input, Sent, StoreError, UNTAKEN_STEERS_AT_MOST};

on_every_backend!(
    a_steer_joins_the_turn_that_works_and_starts_one_where_none_does,
    the_same_steer_twice_is_one_also_when_many_race,
    a_turn_does_not_complete_before_its_steers_are_taken,
    a_steer_that_comes_after_the_end_starts_a_turn,
    an_end_and_a_steer_that_race_see_each_other,
    steers_that_a_failed_turn_did_not_take_start_the_next_turn,
    steers_are_bounded_in_number_and_in_bytes,
    a_turn_that_is_being_stopped_and_one_that_compacts_are_not_joined,
    an_interrupt_stops_the_turn_that_works_and_queues_its_own,
);

/// A message, with the effect on a turn that works.
fn message(ours: &Tenant, text: &str, while_working: WhileWorking) -> Input {
    Input {
        while_working,
        ..ours.input(text)
    }
}

async fn steer(ours: &Tenant, session: SessionId, text: &str) -> Result<Sent, StoreError> {
    let input = message(ours, text, WhileWorking::Steer);
    ours.db.send_input(ours.id, session, &input, at(5)).await
}

/// A session with a turn that runs.
async fn working(ours: &Tenant) -> (SessionId, TurnId, Epoch) {
    let session = ours.session().await;
    let turn = ours.send(session, "begin").await;
    let claimed = ours.claim(session).await;
    (session, turn, claimed.epoch)
}

async fn log(ours: &Tenant, session: SessionId) -> Vec<SessionEvent> {
    let log = ours.db.events_after(ours.id, session, 0, 500).await;
    let log = log.expect("the session is there");
    assert!(log.iter().map(|event| event.seq).eq(1..=log.len() as u64));
    log
}

async fn append(
    ours: &Tenant,
    (session, epoch): (SessionId, Epoch),
    event: Event,
) -> Result<Option<u64>, StoreError> {
    let events = [event];
    let appended = ours.db.append(ours.id, session, epoch, &events, at(6));
    appended.await.map(|appended| appended.turns_left)
}

fn taken(turn: TurnId, through: u32) -> Event {
    Event::SteersTaken {
        turn,
        step: 2,
        through,
        into: None,
    }
}

async fn a_steer_joins_the_turn_that_works_and_starts_one_where_none_does(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let idle = ours.session().await;
    let first = steer(&ours, idle, "begin").await.expect("there is room");
    assert!(!first.steered);
    let queued = steer(&ours, idle, "more").await.expect("there is room");
    assert!(!queued.steered, "no worker has taken the first one");

    let claimed = ours.claim(idle).await;
    let joined = steer(&ours, idle, "use tabs").await.expect("there is room");
    assert_eq!((joined.turn, joined.steered), (first.turn, true));
    let waits = [CallWait {
        step: 1,
        ordinal: 0,
        waits_for: WaitsFor::Time,
        until: at(600),
        listens_until: None,
    }];
    let parked = ours
        .db
        .park_turn(ours.id, first.turn, claimed.epoch, &waits);
    parked.await.expect("it runs");
    steer(&ours, idle, "and no dots")
        .await
        .expect("it works still");
    let steers = ours.db.steers(ours.id, first.turn, 1).await;
    let steers = steers.expect("it answers");
    assert_eq!(
        steers.iter().map(|event| event.known()).collect::<Vec<_>>(),
        [Some(&Event::InputSteered {
            turn: first.turn,
            number: 2,
            by: ours.owner,
            client_id: None,
            parts: Parts::text("and no dots"),
        })]
    );
    assert_eq!(log(&ours, idle).await.last(), steers.last());
}

async fn the_same_steer_twice_is_one_also_when_many_race(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (session, turn, epoch) = working(&ours).await;
    let mut input = message(&ours, "use tabs", WhileWorking::Steer);
    input.client_id = Some("c1".to_owned());
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (db, tenant, input) = (ours.db.clone(), ours.id, input.clone());
        tries.spawn(async move { db.send_input(tenant, session, &input, at(2)).await });
    }
    let sent = tries.join_all().await.into_iter();
    let sent: Vec<_> = sent.map(|sent| sent.expect("it is accepted")).collect();
    assert_eq!(sent.iter().filter(|one| one.event.is_some()).count(), 1);
    let answer = |sent: &Sent| (sent.turn, sent.steered, sent.seq);
    assert!(sent.iter().all(|one| answer(one) == (turn, true, 4)));

    append(&ours, (session, epoch), taken(turn, 1))
        .await
        .expect("it runs");
    let end = turn_ended(turn, TurnOutcome::Completed);
    append(&ours, (session, epoch), end)
        .await
        .expect("all is taken");
    let again = ours.db.send_input(ours.id, session, &input, at(9)).await;
    assert_eq!(answer(&again.expect("it is known")), (turn, true, 4));
}

async fn a_turn_does_not_complete_before_its_steers_are_taken(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (session, turn, epoch) = working(&ours).await;
    steer(&ours, session, "use tabs")
        .await
        .expect("there is room");
    let before = log(&ours, session).await;
    let end = turn_ended(turn, TurnOutcome::Completed);
    let refused = append(&ours, (session, epoch), end.clone()).await;
    assert!(
        matches!(refused, Err(StoreError::UntakenSteers)),
        "{refused:?}"
    );
    let too_many = append(&ours, (session, epoch), taken(turn, 2)).await;
    assert!(matches!(too_many, Err(StoreError::Conflict(_))));
    assert_eq!(log(&ours, session).await, before, "nothing was recorded");
    append(&ours, (session, epoch), taken(turn, 1))
        .await
        .expect("it runs");
    let left = append(&ours, (session, epoch), end).await;
    assert_eq!(left.expect("all is taken"), Some(0));
}

async fn a_steer_that_comes_after_the_end_starts_a_turn(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (session, turn, epoch) = working(&ours).await;
    let end = turn_ended(turn, TurnOutcome::Completed);
    append(&ours, (session, epoch), end).await.expect("it runs");
    let sent = steer(&ours, session, "use tabs").await;
    let sent = sent.expect("there is room");
    assert!(!sent.steered && sent.turn != turn);
    assert_eq!(ours.claim(session).await.turn.id, sent.turn);
}

async fn an_end_and_a_steer_that_race_see_each_other(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (mut steered, mut started) = (0, 0);
    for _ in 0..20 {
        let (session, turn, epoch) = working(&ours).await;
        let end = [turn_ended(turn, TurnOutcome::Completed)];
        let ending = ours.db.append(ours.id, session, epoch, &end, at(6));
        let (sent, ended) = tokio::join!(steer(&ours, session, "use tabs"), ending);
        let sent = sent.expect("there is room");
        match (sent.steered, ended) {
            (true, Err(StoreError::UntakenSteers)) => steered += 1,
            (false, Ok(_)) => started += 1,
            other => panic!("one of them missed the other: {other:?}"),
        }
    }
    assert_eq!(steered + started, 20);
}

async fn steers_that_a_failed_turn_did_not_take_start_the_next_turn(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (session, turn, epoch) = working(&ours).await;
    for text in ["one", "two", "three"] {
        steer(&ours, session, text).await.expect("there is room");
    }
    append(&ours, (session, epoch), taken(turn, 1))
        .await
        .expect("it runs");
    let end = turn_ended(turn, TurnOutcome::Failed);
    let left = append(&ours, (session, epoch), end).await;
    assert_eq!(left.expect("a failure waits for nothing"), Some(1));
    let next = ours.claim(session).await.turn.id;
    let log = log(&ours, session).await;
    let known: Vec<_> = log.iter().rev().filter_map(SessionEvent::known).collect();
    let mut parts = Parts::text("two");
    parts.0.extend(Parts::text("three").0);
    assert_eq!(
        known[1..3],
        [
            &Event::SteersTaken {
                turn,
                step: 0,
                through: 3,
                into: Some(next),
            },
            &Event::InputAccepted {
                turn: next,
                by: ours.owner,
                client_id: None,
                parts,
                compacts: None,
                terms: shared_types::event::Terms::default(),
            },
        ]
    );

    for outcome in [TurnOutcome::Cancelled, TurnOutcome::Interrupted] {
        let (session, turn, epoch) = working(&ours).await;
        steer(&ours, session, "one").await.expect("there is room");
        let left = append(&ours, (session, epoch), turn_ended(turn, outcome)).await;
        assert_eq!(left.expect("a stop waits for nothing"), Some(0));
    }
}

async fn steers_are_bounded_in_number_and_in_bytes(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (session, turn, epoch) = working(&ours).await;
    for _ in 0..UNTAKEN_STEERS_AT_MOST {
        steer(&ours, session, "more").await.expect("there is room");
    }
    let before = log(&ours, session).await;
    let full = steer(&ours, session, "one too many").await;
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    assert_eq!(log(&ours, session).await, before, "nothing was written");
    let all = taken(turn, UNTAKEN_STEERS_AT_MOST as u32);
    append(&ours, (session, epoch), all).await.expect("it runs");
    let long = steer(&ours, session, &"x".repeat(MAX_MESSAGE_BYTES)).await;
    long.expect("there is room again");
    let full = steer(&ours, session, "x").await;
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
}

async fn a_turn_that_is_being_stopped_and_one_that_compacts_are_not_joined(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (session, turn, _) = working(&ours).await;
    let mut wish = message(&ours, "/compact", WhileWorking::Steer);
    wish.compacts = Some(String::new());
    let sent = ours.db.send_input(ours.id, session, &wish, at(5)).await;
    assert!(!sent.expect("there is room").steered, "it is for no model");
    let cancel = ours
        .db
        .request_cancel(ours.id, session, turn, (ours.owner, None), at(5));
    cancel.await.expect("it runs");
    let late = steer(&ours, session, "use tabs").await;
    assert!(!late.expect("there is room").steered);

    let session = ours.session().await;
    wish.turn = TurnId::from_u128(unique());
    let sent = ours.db.send_input(ours.id, session, &wish, at(5));
    sent.await.expect("there is room");
    ours.claim(session).await;
    let sent = steer(&ours, session, "use tabs").await;
    assert!(
        !sent.expect("there is room").steered,
        "nothing reads it there"
    );
}

async fn an_interrupt_stops_the_turn_that_works_and_queues_its_own(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (session, turn, _) = working(&ours).await;
    let mut input = message(&ours, "no, this", WhileWorking::Interrupt);
    input.client_id = Some("c1".to_owned());
    for _ in 0..2 {
        let sent = ours.db.send_input(ours.id, session, &input, at(5)).await;
        let sent = sent.expect("there is room");
        assert_eq!((sent.turn, sent.steered), (input.turn, false));
    }
    let log = log(&ours, session).await;
    assert_eq!(log.len(), 5);
    assert_eq!(
        log[4].known(),
        Some(&Event::CancelRequested {
            turn,
            by: ours.owner,
            why: Some(StopReason::InterruptedByMessage),
        })
    );
    let stopped = ours.db.turn(ours.id, turn).await.expect("it is there");
    assert_eq!(stopped.cancel_requested_at, Some(at(5)));

    let idle = ours.session().await;
    let input = message(&ours, "begin", WhileWorking::Interrupt);
    let sent = ours.db.send_input(ours.id, idle, &input, at(5)).await;
    let row = ours
        .db
        .turn(ours.id, sent.expect("there is room").turn)
        .await;
    assert_eq!(row.expect("it is there").state, TurnState::Queued);
    let claim = ours
        .db
        .claim_turn(ours.id, idle, REPLICA, IfRunning::Refuse, usual(), at(6));
    let claimed = claim.await.expect("it answers").expect("it waits");
    assert_eq!(claimed.turn.cancel_requested_at, None);
}
