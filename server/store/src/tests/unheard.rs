use shared_link::server::never_started;
use shared_sandbox::Outcome;
use shared_types::{Event, Generation, OperationId, SessionId, event::CallOutcome};

use super::fixture::{AtWork, Fixture, Tenant, at, call_ended, link_claim, remembered};
use crate::{NewOperation, StoredOutcome};

on_every_backend!(
    what_a_runner_never_had_and_nobody_will_send_is_over,
    an_older_link_settles_nothing,
);

/// The operation of the `ordinal`-th call.
async fn placed(ours: &Tenant, work: &AtWork, ordinal: u32) -> OperationId {
    let operation = NewOperation {
        id: OperationId::from_u128(work.operation.id.as_u128() ^ u128::from(ordinal)),
        ordinal,
        ..work.operation.clone()
    };
    let placed = ours
        .db
        .place_operation(ours.id, work.epoch, &operation, at(4))
        .await;
    placed.expect("it is new");
    operation.id
}

async fn link(ours: &Tenant, work: &AtWork) -> Generation {
    let claim = link_claim(1, 0);
    let claimed = ours.db.link_claim(ours.id, work.runner, &claim, at(6));
    claimed.await.expect("the runner is there").generation
}

async fn settle_unheard(
    ours: &Tenant,
    work: &AtWork,
    link: Generation,
    listed: &[OperationId],
) -> Vec<(OperationId, SessionId)> {
    let mut hello = link_claim(1, 0).hello;
    hello.inventory = listed.iter().copied().map(remembered).collect();
    let settled = ours
        .db
        .settle_unheard(ours.id, work.runner, link, &hello, at(7));
    settled.await.expect("the runner is there")
}

async fn outcome(ours: &Tenant, id: OperationId) -> Option<StoredOutcome> {
    let row = ours.db.operation(ours.id, id).await;
    row.expect("it is there").outcome
}

async fn what_a_runner_never_had_and_nobody_will_send_is_over(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (work, stranger) = (ours.at_work().await, ours.at_work().await);
    let closed = placed(&ours, &work, 0).await;
    let cancelled = placed(&ours, &work, 1).await;
    let open = placed(&ours, &work, 2).await;
    let heard = placed(&ours, &work, 3).await;
    let others = placed(&ours, &stranger, 0).await;
    let end = [call_ended(work.turn, CallOutcome::Unknown)];
    db.append(ours.id, work.session, work.epoch, &end, at(5))
        .await
        .expect("it runs");
    for id in [cancelled, heard, others] {
        db.cancel_operation(ours.id, id, at(5))
            .await
            .expect("it is there");
    }

    let link = link(&ours, &work).await;
    let late = settle_unheard(&ours, &work, link, &[heard]).await;
    assert_eq!(late, [(closed, work.session)]);
    for id in [closed, cancelled] {
        let stored = outcome(&ours, id).await.expect("it is over");
        let never = Outcome::Refused(never_started());
        assert_eq!(
            (stored.decode().expect("it is ours"), stored.at),
            (never, at(7))
        );
    }
    for id in [open, heard, others] {
        assert_eq!(outcome(&ours, id).await, None);
    }
    let log = db.events_after(ours.id, work.session, 0, 20).await;
    let told = Event::OperationSettled {
        operation: closed,
        summary: format!("it was not run: {}", never_started()),
    };
    let log = log.expect("it is there");
    assert_eq!(log.last().and_then(|event| event.known()), Some(&told));
    assert_eq!(settle_unheard(&ours, &work, link, &[heard]).await, []);
}

async fn an_older_link_settles_nothing(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let work = ours.at_work().await;
    let older = link(&ours, &work).await;
    let newer = link(&ours, &work).await;
    let cancelled = placed(&ours, &work, 0).await;
    let cancel = ours.db.cancel_operation(ours.id, cancelled, at(5));
    cancel.await.expect("it is there");
    settle_unheard(&ours, &work, older, &[]).await;
    assert_eq!(outcome(&ours, cancelled).await, None, "the newer has it");
    settle_unheard(&ours, &work, newer, &[]).await;
    assert!(outcome(&ours, cancelled).await.is_some());
}
