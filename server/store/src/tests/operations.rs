use serde_json::Value;
use server_records::CallEnd;
use shared_link::server::{Settlement, forgotten, lost_to_revocation};
use shared_sandbox::Outcome;
use shared_types::{
    Digest, Effect, Epoch, Event, OperationId, ReplicaId, TenantId,
    event::{CallOutcome, TurnOutcome},
};

use super::{
    fixture::{
        AtWork, Fixture, REPLICA, Tenant, at, call_ended, end_of, link_claim, remembered,
        turn_ended,
    },
    join_states::shown,
};
use crate::{
    AskedBy, By, JoinState, MAX_OUTCOME_BYTES, OperationState, Placed, RunnerChange, Store,
    StoreError,
};

on_every_backend!(
    an_intent_and_its_event_are_stored_once,
    the_same_operation_with_another_request_is_a_conflict,
    an_intent_for_a_place_that_is_not_known_writes_nothing,
    an_intent_for_a_turn_that_does_not_run_or_under_an_old_epoch_writes_nothing,
    an_outcome_is_stored_once_also_when_many_race,
    an_outcome_that_comes_after_its_call_ended_is_told_in_the_log,
    what_has_ended_does_not_go_on_in_the_background,
    the_end_of_a_call_closes_its_operations_only,
    a_cancel_of_an_operation_is_recorded_once_and_not_after_its_outcome,
    the_replica_with_the_link_finds_what_is_to_stop_over_it,
    a_runner_learns_what_to_do_with_each_operation_that_it_remembers,
    what_a_revoked_runner_has_open_is_lost_in_the_same_moment,
    nothing_is_placed_on_a_runner_that_is_revoked_or_locked,
    nothing_new_is_placed_on_a_runner_that_drains_and_what_is_there_goes_on,
    what_a_runner_forgot_is_lost_with_the_claim_of_its_link,
    what_a_runner_remembers_under_another_incarnation_is_not_lost,
    an_intent_for_a_memory_that_is_gone_writes_nothing,
    the_end_of_a_call_brings_the_outcome_of_its_operation,
    the_end_of_a_call_is_not_stored_where_its_operation_has_another_outcome,
    the_end_of_what_may_change_something_is_one_line_of_the_audit_log,
);

async fn place(ours: &Tenant, work: &AtWork) {
    let placed = ours
        .db
        .place_operation(ours.id, work.epoch, &work.operation, at(4))
        .await;
    assert!(matches!(placed, Ok(Placed::New { .. })), "{placed:?}");
}

async fn settle(ours: &Tenant, id: OperationId, words: &str, seconds: i64) -> Settlement {
    ours.db
        .settle_operation(ours.id, id, &end_of(words), at(seconds))
        .await
        .expect("the operation is there")
}

/// Another operation of the same turn, of the `ordinal`-th call.
fn sibling(work: &AtWork, ordinal: u32) -> crate::NewOperation {
    let mut operation = work.operation.clone();
    operation.id = OperationId::from_u128(u128::from(ordinal));
    operation.ordinal = ordinal;
    operation
}

async fn an_intent_and_its_event_are_stored_once(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    let operation = &work.operation;
    let placed = db
        .place_operation(ours.id, work.epoch, operation, at(4))
        .await;
    let Ok(Placed::New { event: Some(event) }) = placed else {
        panic!("it is new: {placed:?}");
    };
    let told = Event::CallPlaced {
        turn: work.turn,
        step: 1,
        ordinal: 0,
        operation: operation.id,
        place: operation.place.clone(),
    };
    assert_eq!((event.seq, event.known()), (4, Some(&told)));
    let mut again = operation.clone();
    again.deadline_at = at(9999);
    let known = db.place_operation(ours.id, work.epoch, &again, at(5)).await;
    let Ok(Placed::Known(row)) = known else {
        panic!("it is known: {known:?}");
    };
    assert_eq!(
        *row,
        db.operation(ours.id, operation.id)
            .await
            .expect("it is there")
    );
    assert_eq!((row.deadline_at, row.placed_at), (at(600), at(4)));
    assert_eq!(row.start_by.as_ref(), Some(&operation.start_by));
    assert_eq!(
        (row.runner, &row.incarnation),
        (work.runner, &operation.incarnation)
    );
    let of_turn = db.operations_of_turn(ours.id, work.turn).await;
    assert_eq!(of_turn.expect("it answers"), vec![*row.clone()]);
    let (found, place, epoch) = db
        .placed_operation(ours.id, operation.id)
        .await
        .expect("it is there");
    let name = db.runner(ours.id, work.runner).await;
    let name = name.expect("it is there").name;
    assert_eq!((found, &place.runner_name), (*row, &name));
    assert_eq!(place.sandbox, operation.place.sandbox);
    let session = db.session(ours.id, work.session).await;
    let session = session.expect("it is there");
    assert_eq!((session.last_seq, session.epoch), (4, epoch));
}

async fn the_same_operation_with_another_request_is_a_conflict(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    place(&ours, &work).await;
    let mut other = work.operation.clone();
    other.digest = Digest::of(b"make clean");
    let other = db.place_operation(ours.id, work.epoch, &other, at(5)).await;
    assert!(matches!(other, Err(StoreError::Conflict(_))));
    // Another id in the place of a call that has one: it would be a second effect.
    let mut twin = work.operation.clone();
    twin.id = OperationId::from_u128(9);
    let twin = db.place_operation(ours.id, work.epoch, &twin, at(5)).await;
    assert!(matches!(twin, Err(StoreError::Conflict(_))));
    let session = db.session(ours.id, work.session).await;
    assert_eq!(session.expect("it is there").last_seq, 4);
}

async fn an_intent_for_a_turn_that_does_not_run_or_under_an_old_epoch_writes_nothing(
    fixture: Fixture,
) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    let (old, id) = (Epoch(work.epoch.0 - 1), work.operation.id);
    let stale = db.place_operation(ours.id, old, &work.operation, at(4));
    assert!(matches!(stale.await, Err(StoreError::StaleEpoch { .. })));
    let end = [turn_ended(work.turn, TurnOutcome::Completed)];
    db.append(ours.id, work.session, work.epoch, &end, at(5))
        .await
        .expect("it runs");
    let ended = db.place_operation(ours.id, work.epoch, &work.operation, at(6));
    assert!(matches!(ended.await, Err(StoreError::Conflict(_))));
    let row = db.operation(ours.id, id).await;
    assert!(matches!(row, Err(StoreError::NotFound)));
    let session = db.session(ours.id, work.session).await;
    assert_eq!(session.expect("it is there").last_seq, 4);
}

async fn an_intent_for_a_place_that_is_not_known_writes_nothing(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    let mut nowhere = work.operation.clone();
    nowhere.place.sandbox = shared_types::SandboxId::from_u128(1);
    let refused = db.place_operation(ours.id, work.epoch, &nowhere, at(4));
    assert!(matches!(refused.await, Err(StoreError::NotFound)));
    let session = db.session(ours.id, work.session).await;
    assert_eq!(session.expect("it is there").last_seq, 3);
}

async fn an_outcome_is_stored_once_also_when_many_race(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    place(&ours, &work).await;
    let mut tries = tokio::task::JoinSet::new();
    for number in 0..8 {
        let (db, tenant, id) = (db.clone(), ours.id, work.operation.id);
        tries.spawn(async move {
            let outcome = end_of(&number.to_string());
            db.settle_operation(tenant, id, &outcome, at(5)).await
        });
    }
    let tries = tries.join_all().await.into_iter();
    let (first, already): (Vec<_>, Vec<_>) = tries
        .map(|settled| settled.expect("it is there"))
        .partition(|settled| *settled == Settlement::First);
    assert_eq!(first.len(), 1);
    let stored = db.operation(ours.id, work.operation.id).await;
    let stored = stored.expect("it is there").outcome.expect("it is stored");
    let stored = stored.decode().expect("it is ours");
    assert!(
        already
            .into_iter()
            .all(|one| one == Settlement::Already(stored.clone()))
    );
    let session = db.session(ours.id, work.session).await;
    assert_eq!(session.expect("it is there").last_seq, 4, "nothing to tell");

    let huge = "x".repeat(MAX_OUTCOME_BYTES + 1);
    let huge = end_of(&huge);
    let huge = db.settle_operation(ours.id, work.operation.id, &huge, at(6));
    assert!(matches!(huge.await, Err(StoreError::TooLarge { .. })));
}

async fn an_outcome_that_comes_after_its_call_ended_is_told_in_the_log(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    place(&ours, &work).await;
    let end = [
        call_ended(work.turn, CallOutcome::Unknown),
        turn_ended(work.turn, TurnOutcome::Completed),
    ];
    db.append(ours.id, work.session, work.epoch, &end, at(5))
        .await
        .expect("it runs");
    let settled = settle(&ours, work.operation.id, "no such file", 900).await;
    assert_eq!(settled, Settlement::First);
    let told = Event::OperationSettled {
        operation: work.operation.id,
        summary: "it was not run: no such file".to_owned(),
    };
    let log = db.events_after(ours.id, work.session, 6, 9).await;
    let log = log.expect("it is there");
    let log: Vec<_> = log.iter().map(|event| (event.seq, event.known())).collect();
    assert_eq!(log, [(7, Some(&told))]);
    let again = settle(&ours, work.operation.id, "[]", 901).await;
    assert_eq!(again, Settlement::Already(end_of("no such file")));
    let session = db.session(ours.id, work.session).await;
    assert_eq!(session.expect("it is there").last_seq, 7, "told once");
}

async fn what_has_ended_does_not_go_on_in_the_background(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    place(&ours, &work).await;
    let mut background = call_ended(work.turn, CallOutcome::Background);
    if let Event::CallEnded { task, .. } = &mut background {
        *task = Some(1);
    }
    let first = settle(&ours, work.operation.id, "{}", 900).await;
    assert_eq!(first, Settlement::First);
    let background = [background];
    let written = db.append(ours.id, work.session, work.epoch, &background, at(5));
    assert!(matches!(written.await, Err(StoreError::Conflict(_))));
    let end = [call_ended(work.turn, CallOutcome::Completed)];
    let written = db.append(ours.id, work.session, work.epoch, &end, at(5));
    written.await.expect("its end can be told");
}

async fn the_end_of_a_call_closes_its_operations_only(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    place(&ours, &work).await;
    let mut retried = sibling(&work, 5);
    (retried.ordinal, retried.attempt) = (0, 1);
    for operation in [retried, sibling(&work, 1)] {
        db.place_operation(ours.id, work.epoch, &operation, at(4))
            .await
            .expect("it is new");
    }
    let end = [call_ended(work.turn, CallOutcome::Completed)];
    db.append(ours.id, work.session, work.epoch, &end, at(5))
        .await
        .expect("it runs");
    let rows = db.operations_of_turn(ours.id, work.turn).await;
    let closed: Vec<_> = rows
        .expect("it answers")
        .into_iter()
        .map(|row| match row.asked_by {
            AskedBy::Call(call) => (call.ordinal, call.attempt, row.closed_at),
            AskedBy::Caller { .. } => panic!("a call asked"),
        })
        .collect();
    assert_eq!(
        closed,
        [(0, 0, Some(at(5))), (0, 1, Some(at(5))), (1, 0, None)]
    );
}

async fn a_cancel_of_an_operation_is_recorded_once_and_not_after_its_outcome(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    place(&ours, &work).await;
    let id = work.operation.id;
    let cancel = async |now| {
        let verdict = db.cancel_operation(ours.id, id, now).await;
        verdict.expect("the operation is there")
    };
    assert_eq!(cancel(at(5)).await, OperationState::CancelRequested);
    assert_eq!(cancel(at(6)).await, OperationState::CancelRequested);
    let row = db.operation(ours.id, id).await.expect("it is there");
    assert_eq!(row.cancel_requested_at, Some(at(5)));
    settle(&ours, id, "{}", 7).await;
    assert_eq!(cancel(at(8)).await, OperationState::Settled);

    let other = ours.at_work().await;
    place(&ours, &other).await;
    settle(&ours, other.operation.id, "{}", 5).await;
    let verdict = db.cancel_operation(ours.id, other.operation.id, at(6));
    assert_eq!(verdict.await.expect("it is there"), OperationState::Settled);
    let row = db.operation(ours.id, other.operation.id).await;
    assert_eq!(row.expect("it is there").cancel_requested_at, None);
}

async fn the_replica_with_the_link_finds_what_is_to_stop_over_it(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    place(&ours, &work).await;
    let id = work.operation.id;
    let to_stop = async |replica| {
        let to_stop = db.to_stop_over_links(replica).await;
        to_stop.expect("it answers")
    };
    assert_eq!(to_stop(REPLICA).await, []);
    db.cancel_operation(ours.id, id, at(5))
        .await
        .expect("it is there");
    assert_eq!(to_stop(REPLICA).await, [(ours.id, id)]);
    assert_eq!(to_stop(ReplicaId::from_u128(2)).await, [], "it has no link");
    settle(&ours, id, "{}", 7).await;
    assert_eq!(to_stop(REPLICA).await, []);
}

async fn a_runner_learns_what_to_do_with_each_operation_that_it_remembers(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    place(&ours, &work).await;
    for ordinal in 1..=4 {
        db.place_operation(ours.id, work.epoch, &sibling(&work, ordinal), at(4))
            .await
            .expect("it is new");
    }
    let id = |ordinal| sibling(&work, ordinal).id;
    settle(&ours, id(1), "{}", 5).await;
    for cancelled in [id(2), work.operation.id] {
        db.cancel_operation(ours.id, cancelled, at(5))
            .await
            .expect("it is there");
    }
    // The call of the first operation ends as well; that of the third ends with nothing else.
    let mut third = call_ended(work.turn, CallOutcome::Unknown);
    if let Event::CallEnded { ordinal, .. } = &mut third {
        *ordinal = 3;
    }
    let ends = [call_ended(work.turn, CallOutcome::Cancelled), third];
    db.append(ours.id, work.session, work.epoch, &ends, at(6))
        .await
        .expect("it runs");
    let asked = [id(1), id(2), work.operation.id, id(3), id(4), id(77)];
    let verdicts = db.operation_states(ours.id, work.runner, &asked).await;
    let expected = [
        OperationState::Settled,
        OperationState::CancelRequested,
        OperationState::CancelRequested,
        OperationState::Closed,
        OperationState::Open,
        OperationState::Unknown,
    ];
    let expected: Vec<_> = asked.into_iter().zip(expected).collect();
    assert_eq!(verdicts.expect("it answers"), expected);

    let stranger = ours.runner("stranger").await;
    let verdicts = db.operation_states(ours.id, stranger, &asked).await;
    let verdicts = verdicts.expect("it answers");
    assert!(
        verdicts
            .iter()
            .all(|(_, one)| *one == OperationState::Unknown)
    );
}

async fn what_a_revoked_runner_has_open_is_lost_in_the_same_moment(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    place(&ours, &work).await;
    db.place_operation(ours.id, work.epoch, &sibling(&work, 1), at(4))
        .await
        .expect("it is new");
    settle(&ours, sibling(&work, 1).id, "{}", 5).await;
    let end = [call_ended(work.turn, CallOutcome::Unknown)];
    db.append(ours.id, work.session, work.epoch, &end, at(5))
        .await
        .expect("it runs");
    let late = db
        .revoke_runner(ours.id, work.runner, ours.owner, at(6))
        .await
        .expect("it is there");
    assert_eq!(late, [(work.operation.id, work.session)]);
    let outcome = async |id| {
        let row = db.operation(ours.id, id).await.expect("it is there");
        let outcome = row.outcome.expect("it has one");
        outcome.decode().expect("it is ours")
    };
    let lost = Outcome::Refused(lost_to_revocation());
    assert_eq!(outcome(work.operation.id).await, lost);
    let first = end_of("{}");
    assert_eq!(
        outcome(sibling(&work, 1).id).await,
        first,
        "the first stays"
    );
}

async fn nothing_is_placed_on_a_runner_that_is_revoked_or_locked(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    for revoked in [true, false] {
        let work = ours.at_work().await;
        match revoked {
            true => drop(
                db.revoke_runner(ours.id, work.runner, ours.owner, at(3))
                    .await
                    .expect("it is there"),
            ),
            false => {
                let renewed = async || {
                    let renewed = db.renew_join_state(work.runner, shown(0), false, at(3));
                    renewed.await.expect("it is there")
                };
                assert_eq!(renewed().await, JoinState::Renewed(1));
                let used = db.use_join_state(ours.id, work.runner, 1).await;
                assert!(used.expect("it is there"));
                assert_eq!(renewed().await, JoinState::Locked);
            }
        }
        let placed = db.place_operation(ours.id, work.epoch, &work.operation, at(4));
        let placed = placed.await.expect("the turn runs");
        assert_eq!(placed, Placed::Barred);
        let stored = db.operation(ours.id, work.operation.id).await;
        assert!(matches!(stored, Err(StoreError::NotFound)));
    }
}

async fn nothing_new_is_placed_on_a_runner_that_drains_and_what_is_there_goes_on(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (before, after) = (ours.at_work().await, ours.at_work().await);
    place(&ours, &before).await;
    let drain = async |runner, draining| {
        let change = RunnerChange {
            draining: Some(draining),
            ..RunnerChange::default()
        };
        let by = &By::from(ours.owner);
        let changed = db.change_runner(ours.id, runner, &change, by, at(5)).await;
        changed.expect("it is there")
    };
    for runner in [before.runner, after.runner] {
        assert_eq!(drain(runner, true).await.drained, Some((ours.owner, at(5))));
    }
    let place_now = db.caller_place(ours.id, after.runner, ours.owner).await;
    let runner = place_now.expect("it is there").runner;
    assert_eq!(runner.drained_by.as_deref(), Some("owner"));
    let placed = async |work: &AtWork| {
        let placed = db.place_operation(ours.id, work.epoch, &work.operation, at(6));
        placed.await.expect("the turn runs")
    };
    assert_eq!(placed(&after).await, Placed::Draining);
    assert!(matches!(placed(&before).await, Placed::Known(_)));
    let there = db.operation(ours.id, before.operation.id).await;
    assert_eq!(there.expect("it is there").outcome, None);
    assert_eq!(drain(after.runner, false).await.drained, None);
    assert!(matches!(placed(&after).await, Placed::New { .. }));
}

/// The operations of the turn whose outcome is not known.
async fn open(db: &Store, tenant: TenantId, work: &AtWork) -> Vec<OperationId> {
    let rows = db.operations_of_turn(tenant, work.turn).await;
    let rows = rows.expect("it answers").into_iter();
    rows.filter(|row| row.outcome.is_none())
        .map(|row| row.id)
        .collect()
}

async fn what_a_runner_forgot_is_lost_with_the_claim_of_its_link(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    place(&ours, &work).await;
    db.place_operation(ours.id, work.epoch, &sibling(&work, 1), at(4))
        .await
        .expect("it is new");
    let end = [call_ended(work.turn, CallOutcome::Unknown)];
    db.append(ours.id, work.session, work.epoch, &end, at(5))
        .await
        .expect("it runs");
    let stranger = ours.at_work().await;
    place(&ours, &stranger).await;

    // A runner that comes back as it was has forgotten nothing that it does not list: what it has
    // not been sent yet may still be sent.
    let claim = async |journal, now| {
        let claim = link_claim(journal, 0);
        let claimed = db.link_claim(ours.id, work.runner, &claim, now).await;
        claimed.expect("the runner is there").late
    };
    assert_eq!(claim(1, at(6)).await, []);
    assert_eq!(open(db, ours.id, &work).await.len(), 2);

    let late = claim(2, at(7)).await;
    assert_eq!(late, [(work.operation.id, work.session)]);
    for id in [work.operation.id, sibling(&work, 1).id] {
        let row = db.operation(ours.id, id).await.expect("it is there");
        let outcome = row.outcome.expect("it is lost");
        let lost = Outcome::Refused(forgotten());
        assert_eq!(
            (outcome.decode().expect("it is ours"), outcome.at),
            (lost, at(7))
        );
    }
    let log = db.events_after(ours.id, work.session, 6, 9).await;
    let told = Event::OperationSettled {
        operation: work.operation.id,
        summary: format!("it is lost: {}", forgotten()),
    };
    let log = log.expect("it is there");
    assert_eq!(log.len(), 1, "only of the call that had ended: {log:?}");
    assert_eq!(log[0].known(), Some(&told));
    // The older journal returns: nothing is left that could be sent to it.
    assert_eq!(claim(1, at(8)).await, []);
    assert_eq!(open(db, ours.id, &work).await, []);
    let others = db.operation(ours.id, stranger.operation.id).await;
    assert_eq!(others.expect("it is there").outcome, None);
}

async fn what_a_runner_remembers_under_another_incarnation_is_not_lost(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    place(&ours, &work).await;
    db.place_operation(ours.id, work.epoch, &sibling(&work, 1), at(4))
        .await
        .expect("it is new");
    let mut claim = link_claim(1, 2);
    claim.hello.incarnation.boot = "another".to_owned();
    claim.hello.inventory = vec![remembered(sibling(&work, 1).id)];
    db.link_claim(ours.id, work.runner, &claim, at(5))
        .await
        .expect("the runner is there");
    assert_eq!(open(db, ours.id, &work).await, [sibling(&work, 1).id]);
}

async fn an_intent_for_a_memory_that_is_gone_writes_nothing(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    db.link_claim(ours.id, work.runner, &link_claim(2, 0), at(4))
        .await
        .expect("the runner is there");
    let placed = db
        .place_operation(ours.id, work.epoch, &work.operation, at(5))
        .await;
    assert_eq!(placed.expect("it answers"), Placed::OtherIncarnation);
    let found = db.operation(ours.id, work.operation.id).await;
    assert!(matches!(found, Err(StoreError::NotFound)));
    let session = db.session(ours.id, work.session).await;
    assert_eq!(session.expect("it is there").last_seq, 3);
}

async fn the_end_of_a_call_brings_the_outcome_of_its_operation(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    place(&ours, &work).await;
    let (call, end) = (call_ended(work.turn, CallOutcome::Completed), end_of("1"));
    let (session, id) = (work.session, work.operation.id);
    let end_of_call = CallEnd {
        event: &call,
        operation: id,
        outcome: &end,
    };
    db.append_end(ours.id, session, work.epoch, &end_of_call, at(5))
        .await
        .expect("it runs");
    let row = db.operation(ours.id, work.operation.id).await;
    let row = row.expect("it is there");
    let outcome = row.outcome.expect("it is stored");
    assert_eq!(outcome.decode().expect("it is ours"), end);
    assert_eq!(row.closed_at, Some(at(5)));
    let log = db.events_after(ours.id, work.session, 4, 9).await;
    let log = log.expect("it is there");
    let log: Vec<_> = log.iter().map(|event| (event.seq, event.known())).collect();
    assert_eq!(log, [(5, Some(&call))], "nothing came late");
}

async fn the_end_of_a_call_is_not_stored_where_its_operation_has_another_outcome(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    place(&ours, &work).await;
    settle(&ours, work.operation.id, "lost", 5).await;
    let call = call_ended(work.turn, CallOutcome::Completed);
    let end = async |epoch, words| {
        let end = CallEnd {
            event: &call,
            operation: work.operation.id,
            outcome: &end_of(words),
        };
        db.append_end(ours.id, work.session, epoch, &end, at(6))
            .await
    };
    let other = end(work.epoch, "done").await;
    assert!(matches!(other, Err(StoreError::Conflict(_))), "{other:?}");
    let row = db.operation(ours.id, work.operation.id).await;
    assert_eq!(row.expect("it is there").closed_at, None);
    let stale = end(shared_types::Epoch(0), "lost").await;
    assert!(matches!(stale, Err(StoreError::StaleEpoch { .. })));
    let same = end(work.epoch, "lost").await;
    same.expect("it is what is stored");
    let session = db.session(ours.id, work.session).await;
    assert_eq!(session.expect("it is there").last_seq, 5);
}

async fn the_end_of_what_may_change_something_is_one_line_of_the_audit_log(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    place(&ours, &work).await;
    let mut reading = sibling(&work, 7);
    reading.effect = Effect::Pure;
    let placed = db.place_operation(ours.id, work.epoch, &reading, at(4));
    assert!(matches!(placed.await, Ok(Placed::New { .. })));
    for id in [work.operation.id, reading.id] {
        // Whoever comes second changes nothing.
        settle(&ours, id, "{}", 5).await;
        settle(&ours, id, "{}", 6).await;
    }
    let log = db.audit_after(ours.id, 0, 100).await.expect("it answers");
    let mut ended = log.iter().filter(|row| row.kind == "operation.ended");
    let (row, second) = (ended.next().expect("it is told"), ended.next());
    assert_eq!(second, None, "what only reads is not told");
    assert_eq!(
        (row.at, &*row.subject),
        (at(5), &*work.operation.id.to_string())
    );
    assert_eq!(row.actor_name.as_deref(), Some("owner"));
    let Value::Object(detail) = &row.detail else {
        panic!("{row:?}");
    };
    assert_eq!(detail["exit"], "refused");
    assert_eq!(detail["operation"], work.operation.label.kind);
    let runner = db.runner(ours.id, work.operation.place.runner).await;
    let place = detail["place"].as_str().expect("a place");
    assert!(
        place.starts_with(&runner.expect("it is there").name),
        "{place}"
    );
}
