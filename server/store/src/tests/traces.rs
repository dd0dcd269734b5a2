use shared_types::{OperationId, TraceContext};

use super::fixture::{Fixture, REPLICA, at, usual};
use crate::{IfRunning, Input, NewOperation, OperationFilter, Settled};

on_every_backend!(
    a_turn_and_an_operation_keep_where_they_stand_in_a_trace,
    a_claim_tells_of_the_worker_that_was_lost_with_the_turn,
);

fn trace() -> Option<TraceContext> {
    let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    Some(text.parse().expect("a traceparent"))
}

async fn a_turn_and_an_operation_keep_where_they_stand_in_a_trace(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    let input = Input {
        trace: trace(),
        ..ours.input("go")
    };
    let sent = db.send_input(ours.id, session, &input, at(2)).await;
    sent.expect("the session is there");
    assert_eq!(ours.claim(session).await.turn.trace, trace());

    let work = ours.at_work().await;
    let operation = NewOperation {
        trace: trace(),
        ..work.operation
    };
    let placed = db.place_operation(ours.id, work.epoch, &operation, at(4));
    placed.await.expect("it is new");
    let found = db.placed_operation(ours.id, operation.id).await;
    assert_eq!(found.expect("it is there").0.trace, trace());
    let filter = OperationFilter {
        limit: 10,
        ..OperationFilter::default()
    };
    let listed = db.operations_of_user(ours.id, ours.owner, &filter).await;
    assert_eq!(listed.expect("it answers")[0].row.trace, trace());
    let settled = db.settle_operation(ours.id, operation.id, ("{}", ""), at(5));
    let Settled::First { ran, .. } = settled.await.expect("it is there") else {
        panic!("it had no end");
    };
    assert_eq!((ran.trace, ran.before), (trace(), None));

    let again = NewOperation {
        id: OperationId::from_u128(1),
        attempt: 1,
        ..operation.clone()
    };
    let placed = db.place_operation(ours.id, work.epoch, &again, at(6));
    placed.await.expect("it is new");
    let settled = db.settle_operation(ours.id, again.id, ("{}", ""), at(7));
    let Settled::First { ran, .. } = settled.await.expect("it is there") else {
        panic!("it had no end");
    };
    assert_eq!(ran.before, Some(operation.id), "it was tried before");
}

async fn a_claim_tells_of_the_worker_that_was_lost_with_the_turn(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    ours.send(session, "go").await;
    let first = ours.claim(session).await;
    assert_eq!(first.interrupted, None);
    let again = db.claim_turn(
        ours.id,
        session,
        REPLICA,
        IfRunning::TakeOver,
        usual(),
        at(4),
    );
    let again = again.await.expect("it answers").expect("it runs");
    assert_eq!(again.interrupted, Some(first.epoch));
}
