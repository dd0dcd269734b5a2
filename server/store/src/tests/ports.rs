use std::sync::Arc;

use server_records::LinkIdentity;
use shared_link::server::Verdict;
use shared_types::{OperationId, SystemClock, event::CallOutcome};

use super::fixture::{Fixture, REPLICA, at, call_ended};
use crate::{Outputs, Ports, Store, database::query};

on_every_backend!(a_runner_keeps_what_came_to_an_end_that_this_version_cannot_read,);

async fn a_runner_keeps_what_came_to_an_end_that_this_version_cannot_read(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    let id = work.operation.id;
    let placed = db.place_operation(ours.id, work.epoch, &work.operation, at(4));
    placed.await.expect("it is new");
    let end = [call_ended(work.turn, CallOutcome::Unknown)];
    db.append(ours.id, work.session, work.epoch, &end, at(5))
        .await
        .expect("it runs");
    end_in_unknown_words(db, id).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ports = Ports {
        store: db.clone(),
        outputs: Outputs::start(folder.path()).expect("a folder"),
        clock: Arc::new(SystemClock::new()),
        forbids_sudo: false,
    };
    let who = LinkIdentity {
        tenant: ours.id,
        runner: work.runner,
        name: "laptop".to_owned(),
    };
    let verdicts = ports.links(REPLICA).verdicts(&who, &[id]).await;
    let verdict = verdicts.expect("the store answers").remove(0).1;
    assert_eq!(verdict, Verdict::Collect);
}

/// Stores an end as a newer version of this program might.
async fn end_in_unknown_words(db: &Store, id: OperationId) {
    let mut tx = db.write_any("a test").await.expect("it answers");
    query("UPDATE operations SET outcome = $1, outcome_at = 1 WHERE id = $2")
        .bind(r#"{"of a newer version":{}}"#)
        .bind(id.to_string())
        .execute(&mut tx)
        .await
        .expect("it is there");
    tx.commit().await.expect("it answers");
}
