use server_records::IfRunning;
use shared_types::{OperationId, TraceContext};

use super::fixture::{Fixture, REPLICA, Tenant, at, end_of, usual};
use crate::{
    Input, NewOperation, OperationFilter,
    operation::{OperationEnding, Ran, settle},
};

on_every_backend!(
    a_turn_and_an_operation_keep_where_they_stand_in_a_trace,
    a_claim_tells_of_the_worker_that_was_lost_with_the_turn,
);

impl Tenant {
    /// Stores an end of the operation, and returns the facts for its span.
    async fn ran(&self, operation: OperationId) -> Ran {
        let mut tx = self.db.write(self.id).await.expect("it answers");
        let (end, now) = (end_of("1"), at(5));
        let ending = OperationEnding::of(&end).expect("it is short");
        let settled = settle(&mut tx, self.id, operation, &ending, now).await;
        tx.commit().await.expect("it answers");
        settled.expect("it is there").expect("it had no end").ran
    }
}

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
    let ran = ours.ran(operation.id).await;
    assert_eq!((ran.trace, ran.before), (trace(), None));
    assert_eq!(ran.kind, operation.label.kind);

    let again = NewOperation {
        id: OperationId::from_u128(1),
        attempt: 1,
        ..operation.clone()
    };
    let placed = db.place_operation(ours.id, work.epoch, &again, at(6));
    placed.await.expect("it is new");
    let ran = ours.ran(again.id).await;
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
