use std::{path::Path, sync::Arc};

use server_records::{LinkIdentity, SessionError, SessionKey};
use shared_link::server::ReconcileVerdict;
use shared_types::{OperationId, SystemClock, event::CallOutcome};

use super::fixture::{Fixture, REPLICA, at, call_ended};
use crate::{By, Outputs, Ports, Store, database::query};

on_every_backend!(
    a_runner_keeps_what_came_to_an_end_that_this_version_cannot_read,
    the_log_of_a_session_is_read_with_the_bytes_of_each_event_until_it_is_purged,
);

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
    let ports = ports(db, folder.path());
    let who = LinkIdentity {
        tenant: ours.id,
        runner: work.runner,
        name: "laptop".to_owned(),
    };
    let verdicts = ports.links(REPLICA).verdicts(&who, &[id]).await;
    let verdict = verdicts.expect("the store answers").remove(0).1;
    assert_eq!(verdict, ReconcileVerdict::Collect);
}

async fn the_log_of_a_session_is_read_with_the_bytes_of_each_event_until_it_is_purged(
    fixture: Fixture,
) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (session, other) = (ours.session().await, ours.session().await);
    ours.send(session, "hello, ü").await;
    ours.send(other, "another session").await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ports = ports(db, folder.path());
    let rows = |session| {
        let tenant = ours.id;
        ports.log(SessionKey { tenant, session })
    };
    let log = rows(session)
        .read_from(1)
        .await
        .expect("the session is there");
    let stored = db.events_after(ours.id, session, 0, 100).await;
    let events: Vec<_> = log.iter().map(|row| row.event.clone()).collect();
    assert_eq!(events, stored.expect("the session is there"));
    for row in &log {
        let json = serde_json::to_vec(&row.event.body).expect("JSON");
        assert_eq!(row.bytes, json.len(), "as a reader counts what it appends");
    }
    let last = rows(session)
        .read_from(2)
        .await
        .expect("the session is there");
    assert_eq!(last, log[1..]);

    // Without a turn that has to end first.
    let unused = ours.session().await;
    rows(unused).read_from(1).await.expect("it is there");
    let by = By::from(ours.owner);
    let deleted = db.delete_session(ours.id, unused, &by, at(5));
    deleted.await.expect("it is there");
    let purged = db.purge_session(ours.id, unused).await;
    assert!(purged.expect("it answers"));
    let gone = rows(unused).read_from(1).await;
    assert!(matches!(gone, Err(SessionError::NotFound)), "{gone:?}");
}

fn ports(db: &Store, folder: &Path) -> Ports {
    Ports {
        store: db.clone(),
        outputs: Outputs::start(folder).expect("a folder"),
        clock: Arc::new(SystemClock::new()),
        forbids_sudo: false,
    }
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
