//! Turns that wait without a worker.

use server_records::{ClaimedTurn, IfRunning, NextTurn, TurnState, WaitingTurn, WaitsOver};
use shared_types::{
    CallWait, Epoch, ReplicaId, TurnId, WaitsFor,
    event::{CallOutcome, TurnOutcome},
};

use super::fixture::{
    AtWork, Fixture, REPLICA, Tenant, at, call_ended, end_of, heard_at, turn_ended, usual,
};
use crate::{Cancel, Placed, StoreError, database::query};

on_every_backend!(
    a_turn_that_waits_has_no_worker_and_is_taken_up_again_with_what_it_waited_for,
    the_wait_of_a_turn_is_over_with_the_end_of_its_operation_and_no_sooner,
    a_turn_that_waits_for_a_runner_goes_on_with_a_link_of_that_runner,
    a_turn_that_waits_for_another_turn_goes_on_with_the_end_of_that_turn,
    a_turn_that_waits_for_a_deleted_turn_goes_on,
    a_turn_that_waits_for_a_time_goes_on_at_that_time,
    a_call_goes_on_with_the_kind_and_the_subject_of_its_wait,
    a_wait_that_the_previous_release_wrote_is_read_with_its_operation,
    the_previous_release_reads_a_wait_for_an_operation_in_its_own_columns,
    a_wish_to_cancel_and_the_moment_end_a_wait_and_a_new_message_does_not,
    a_turn_waits_only_under_the_epoch_of_its_worker,
    the_moment_of_another_processes_turns_may_be_put_off,
    a_turn_that_waits_is_found_after_a_restart,
);

/// A turn with an operation that is placed.
async fn placed(ours: &Tenant) -> AtWork {
    let work = ours.at_work().await;
    let placed = ours
        .db
        .place_operation(ours.id, work.epoch, &work.operation, at(4));
    assert!(matches!(placed.await, Ok(Placed::New { .. })));
    work
}

fn command(work: &AtWork) -> WaitsFor {
    WaitsFor::Operation(work.operation.id)
}

fn runner(work: &AtWork) -> WaitsFor {
    WaitsFor::Runner(work.operation.id)
}

fn wait(waits_for: WaitsFor) -> CallWait {
    CallWait {
        step: 1,
        ordinal: 0,
        waits_for,
        until: at(100),
        listens_until: Some(at(50)),
    }
}

async fn park(ours: &Tenant, work: &AtWork, waits_for: WaitsFor) {
    let calls = [wait(waits_for)];
    let parked = ours.db.park_turn(ours.id, work.turn, work.epoch, &calls);
    parked.await.expect("it runs");
}

/// In the process that has let go of the turns.
fn over(seconds: i64) -> WaitsOver {
    WaitsOver {
        replica: REPLICA,
        at: at(seconds),
        of_others_at: at(0),
    }
}

/// Whether the session's worker has nothing to do but to wait; else it is to claim the turn.
async fn next_waits(ours: &Tenant, work: &AtWork, over: WaitsOver) -> bool {
    let next = ours.db.next_turn(ours.id, work.session, over).await;
    match next.expect("it answers") {
        NextTurn::Wait(_) => true,
        NextTurn::Claim { .. } => false,
        NextTurn::Nothing => panic!("the turn is left"),
    }
}

/// Whether the turn waits at this moment: the session's worker and the look for all say the same.
async fn waits(ours: &Tenant, work: &AtWork, seconds: i64) -> bool {
    let over = over(seconds);
    let waits = next_waits(ours, work, over).await;
    let woken = ours.db.turns_to_wake(over, None, 100).await;
    let woken = woken.expect("it answers");
    let is_woken = woken.iter().any(|turn| turn.turn == work.turn);
    assert_ne!(waits, is_woken);
    waits
}

async fn a_turn_that_waits_has_no_worker_and_is_taken_up_again_with_what_it_waited_for(
    fixture: Fixture,
) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = placed(&ours).await;
    park(&ours, &work, command(&work)).await;
    let row = db.turn(ours.id, work.turn).await.expect("it is there");
    let state = TurnState::Waiting {
        epoch: work.epoch,
        until: at(100),
    };
    assert_eq!(row.state, state);
    let next = db.next_turn(ours.id, work.session, over(9)).await;
    let calls = vec![wait(command(&work))];
    let turn = work.turn;
    assert_eq!(
        next.expect("it answers"),
        NextTurn::Wait(WaitingTurn {
            turn,
            calls: calls.clone()
        })
    );
    let log = db.events_after(ours.id, work.session, 0, 100).await;
    let before = log.expect("it is there").len();
    let left = db.claim_turn(
        ours.id,
        work.session,
        REPLICA,
        IfRunning::Leave,
        usual(),
        at(10),
    );
    assert_eq!(left.await.expect("it is left alone"), None);
    // Refused only where a worker has it.
    let claim = db.claim_turn(
        ours.id,
        work.session,
        REPLICA,
        IfRunning::Refuse,
        usual(),
        at(10),
    );
    let claimed = claim.await.expect("no worker has it").expect("a turn");
    assert_eq!((claimed.turn.id, claimed.waited), (turn, calls));
    assert_eq!(claimed.epoch, Epoch(work.epoch.0 + 1));
    let log = db.events_after(ours.id, work.session, 0, 100).await;
    assert_eq!(log.expect("it is there").len(), before, "it is no event");
    let ends = [
        call_ended(turn, CallOutcome::Completed),
        turn_ended(turn, TurnOutcome::Completed),
    ];
    let ended = db.append(ours.id, work.session, claimed.epoch, &ends, at(11));
    let ended = ended.await.expect("it runs");
    assert_eq!(ended.events[0].seq, before as u64 + 1);
    assert!(!waits_for_anything(&ours).await);
}

async fn waits_for_anything(ours: &Tenant) -> bool {
    let next = ours.db.next_wait_over_at(at(0)).await;
    next.expect("it answers").is_some()
}

async fn the_wait_of_a_turn_is_over_with_the_end_of_its_operation_and_no_sooner(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (work, other) = (placed(&ours).await, placed(&ours).await);
    park(&ours, &work, command(&work)).await;
    park(&ours, &other, command(&other)).await;
    assert!(waits(&ours, &work, 9).await, "its runner has a link");
    let outcome = end_of("1");
    let settled = db.settle_operation(ours.id, work.operation.id, &outcome, at(9));
    settled.await.expect("it is there");
    assert!(!waits(&ours, &work, 9).await);
    assert!(waits(&ours, &other, 9).await, "that is another one's");
}

async fn a_turn_that_waits_for_a_runner_goes_on_with_a_link_of_that_runner(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (work, other) = (placed(&ours).await, placed(&ours).await);
    for work in [&work, &other] {
        let row = db.runner(ours.id, work.runner).await.expect("it is there");
        let ended = db.link_ended(ours.id, work.runner, heard_at(row.generation, at(5), 0));
        assert!(ended.await.expect("it answers"));
        park(&ours, work, runner(work)).await;
    }
    ours.link(other.runner, at(6)).await;
    assert!(waits(&ours, &work, 9).await);
    assert!(!waits(&ours, &other, 9).await);
    let elsewhere = WaitsOver {
        replica: ReplicaId::from_u128(2),
        ..over(9)
    };
    assert!(
        next_waits(&ours, &other, elsewhere).await,
        "it is gone on with where the link is"
    );
    let outcome = end_of("lost");
    let settled = db.settle_operation(ours.id, work.operation.id, &outcome, at(9));
    settled.await.expect("it is there");
    assert!(!waits(&ours, &work, 9).await, "its operation has ended");
}

async fn a_turn_that_waits_for_another_turn_goes_on_with_the_end_of_that_turn(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (work, other) = (placed(&ours).await, placed(&ours).await);
    park(&ours, &work, WaitsFor::Turn(other.turn)).await;
    assert!(waits(&ours, &work, 9).await, "that turn runs");
    park(&ours, &other, command(&other)).await;
    assert!(waits(&ours, &work, 9).await, "that turn waits as well");
    let epoch = claim(&ours, &other).await.epoch;
    let ends = [
        call_ended(other.turn, CallOutcome::Completed),
        turn_ended(other.turn, TurnOutcome::Failed),
    ];
    let ended = db.append(ours.id, other.session, epoch, &ends, at(9)).await;
    ended.expect("it runs");
    assert!(!waits(&ours, &work, 9).await);
}

async fn a_turn_that_waits_for_a_deleted_turn_goes_on(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let work = placed(&ours).await;
    park(&ours, &work, WaitsFor::Turn(TurnId::from_u128(77))).await;
    assert!(!waits(&ours, &work, 9).await);
}

async fn a_turn_that_waits_for_a_time_goes_on_at_that_time(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let work = placed(&ours).await;
    park(&ours, &work, WaitsFor::Time).await;
    let outcome = end_of("1");
    let settled = (ours.db).settle_operation(ours.id, work.operation.id, &outcome, at(9));
    settled.await.expect("it is there");
    assert!(waits(&ours, &work, 99).await, "no operation ends it");
    assert!(!waits(&ours, &work, 100).await);
}

async fn a_call_goes_on_with_the_kind_and_the_subject_of_its_wait(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let work = placed(&ours).await;
    let kinds = [
        command(&work),
        runner(&work),
        WaitsFor::Turn(work.turn),
        WaitsFor::Time,
    ];
    for waits_for in kinds {
        let claimed = claim(&ours, &work).await;
        let calls = [wait(waits_for)];
        let parked = (ours.db).park_turn(ours.id, work.turn, claimed.epoch, &calls);
        parked.await.expect("it runs");
        assert_eq!(claim(&ours, &work).await.waited, calls);
    }
}

async fn claim(ours: &Tenant, work: &AtWork) -> ClaimedTurn {
    let (id, session) = (ours.id, work.session);
    let take = IfRunning::TakeOver;
    let claim = (ours.db).claim_turn(id, session, REPLICA, take, usual(), at(8));
    claim.await.expect("it answers").expect("a turn")
}

/// Parks the turn as the release of schema 30 does.
async fn park_in_schema_30(ours: &Tenant, work: &AtWork, awaits: &str) {
    let mut tx = ours.db.write(ours.id).await.expect("it answers");
    let parked = query("UPDATE turns SET waits_until = $1 WHERE tenant_id = $2 AND id = $3")
        .bind(at(100).as_micros())
        .bind(ours.id.to_string())
        .bind(work.turn.to_string());
    parked.execute(&mut tx).await.expect("it is there");
    let inserted = query(
        "INSERT INTO turn_waits (tenant_id, turn_id, step, ordinal, operation_id, awaits,
             waits_until, listens_until)
         VALUES ($1, $2, 1, 0, $3, $4, $5, $6)",
    )
    .bind(ours.id.to_string())
    .bind(work.turn.to_string())
    .bind(work.operation.id.to_string())
    .bind(awaits)
    .bind(at(100).as_micros())
    .bind(at(50).as_micros());
    inserted.execute(&mut tx).await.expect("the row is good");
    tx.commit().await.expect("the disk takes it");
}

async fn a_wait_that_the_previous_release_wrote_is_read_with_its_operation(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (work, away) = (placed(&ours).await, placed(&ours).await);
    park_in_schema_30(&ours, &work, "command").await;
    park_in_schema_30(&ours, &away, "runner").await;
    assert!(waits(&ours, &work, 9).await, "its runner has a link");
    assert!(!waits(&ours, &away, 9).await, "its runner has a link");
    let outcome = end_of("1");
    let settled = (ours.db).settle_operation(ours.id, work.operation.id, &outcome, at(9));
    settled.await.expect("it is there");
    assert!(!waits(&ours, &work, 9).await);
    assert_eq!(claim(&ours, &work).await.waited, [wait(command(&work))]);
    assert_eq!(claim(&ours, &away).await.waited, [wait(runner(&away))]);
}

async fn the_previous_release_reads_a_wait_for_an_operation_in_its_own_columns(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (work, away) = (placed(&ours).await, placed(&ours).await);
    park(&ours, &work, command(&work)).await;
    park(&ours, &away, runner(&away)).await;
    for (work, awaits) in [(work, "command"), (away, "runner")] {
        let mut connection = ours.db.read(ours.id).await.expect("it answers");
        let row = query(
            "SELECT operation_id, awaits FROM turn_waits WHERE tenant_id = $1 AND turn_id = $2",
        )
        .bind(ours.id.to_string())
        .bind(work.turn.to_string());
        let row = row.fetch_one(&mut connection).await.expect("it is there");
        let text = |name| row.get_text(name).expect("a text").expect("not null");
        let read = (text("operation_id"), text("awaits"));
        assert_eq!(read, (work.operation.id.to_string(), awaits.to_owned()));
    }
}

async fn a_wish_to_cancel_and_the_moment_end_a_wait_and_a_new_message_does_not(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (work, other) = (placed(&ours).await, placed(&ours).await);
    park(&ours, &work, command(&work)).await;
    park(&ours, &other, command(&other)).await;
    ours.send(work.session, "and then?").await;
    assert!(waits(&ours, &work, 99).await);
    assert!(!waits(&ours, &work, 100).await);
    let next = db.next_wait_over_at(at(99)).await.expect("it answers");
    assert_eq!(next, Some(at(100)));
    let next = db.next_wait_over_at(at(100)).await.expect("it answers");
    assert_eq!(next, None, "those that are over are not waited for");
    let cancel = db.request_cancel(
        ours.id,
        other.session,
        other.turn,
        (ours.owner, None),
        at(9),
    );
    assert!(matches!(cancel.await, Ok(Cancel::Requested { .. })));
    assert!(!waits(&ours, &other, 9).await);
}

async fn a_turn_waits_only_under_the_epoch_of_its_worker(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = placed(&ours).await;
    let calls = [wait(command(&work))];
    let newer = db.claim_turn(
        ours.id,
        work.session,
        REPLICA,
        IfRunning::TakeOver,
        usual(),
        at(5),
    );
    let newest = newer.await.expect("it answers").expect("a turn").epoch;
    let held = work.epoch;
    let late = db.park_turn(ours.id, work.turn, held, &calls).await;
    assert!(
        matches!(late, Err(StoreError::StaleEpoch { .. })),
        "{held:?}, {newest:?}"
    );
    let nothing = db.park_turn(ours.id, work.turn, newest, &[]).await;
    assert!(matches!(nothing, Err(StoreError::Conflict(_))));
    let parked = db.park_turn(ours.id, work.turn, newest, &calls).await;
    parked.expect("it runs");
    let again = db.park_turn(ours.id, work.turn, newest, &calls).await;
    assert!(matches!(again, Err(StoreError::Conflict(_))));
}

async fn the_moment_of_another_processes_turns_may_be_put_off(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = placed(&ours).await;
    park(&ours, &work, runner(&work)).await;
    let waits = async |of_others_at| {
        let over = WaitsOver {
            replica: ReplicaId::from_u128(2),
            at: at(200),
            of_others_at,
        };
        next_waits(&ours, &work, over).await
    };
    let row = db.runner(ours.id, work.runner).await.expect("it is there");
    let ended = db.link_ended(ours.id, work.runner, heard_at(row.generation, at(5), 0));
    assert!(ended.await.expect("it answers"));
    assert!(waits(at(99)).await);
    assert!(!waits(at(100)).await);
}

async fn a_turn_that_waits_is_found_after_a_restart(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let work = placed(&ours).await;
    park(&ours, &work, command(&work)).await;
    let id = ours.id;
    drop(ours);
    let fixture = fixture.reopened().await;
    let db = &fixture.db;
    let unfinished = db.unfinished_turns(None, 9).await.expect("it answers");
    assert_eq!(unfinished.len(), 1);
    let outcome = end_of("1");
    let settled = db.settle_operation(id, work.operation.id, &outcome, at(9));
    settled.await.expect("it is there");
    let woken = db.turns_to_wake(over(9), None, 9).await;
    let woken = woken.expect("it answers");
    assert_eq!((woken[0].turn, woken[0].session), (work.turn, work.session));
    let rest = db.turns_to_wake(over(9), Some(work.turn), 9).await;
    assert_eq!(rest.expect("it answers"), []);
}
