//! What people hear of: the lists that each commit changes.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use async_trait::async_trait;
use server_records::{Change, CommitListener, Pace, SessionKey, Whose};
use shared_types::{RunnerId, SessionEvent, SessionId, TenantId, Topic};

use super::fixture::{Fixture, at, new_credential};
use crate::{CredentialKind, SessionChange, Store, announce::is_listed, database::Snapshot};

on_every_backend!(
    every_table_of_the_database_has_its_lists,
    a_commit_tells_of_the_lists_that_it_changes_and_an_undone_one_of_none,
    a_commit_that_takes_rights_away_tells_that_and_no_other_one_does,
    the_removal_of_a_runner_and_a_wish_to_stop_are_told_once,
);

/// Keeps what it hears.
#[derive(Default)]
struct Heard {
    changes: Mutex<Vec<Change>>,
    rights: Mutex<Vec<Option<TenantId>>>,
    cancels: AtomicUsize,
}

#[async_trait]
impl CommitListener for Heard {
    async fn appended(&self, _: TenantId, _: SessionId, _: Vec<SessionEvent>) {}

    fn waits_changed(&self) {}

    fn link_changed(&self, _: RunnerId) {}

    fn cancels_requested(&self) {
        self.cancels.fetch_add(1, Relaxed);
    }

    fn unclaimed(&self, _: SessionKey) {}

    fn rights_changed(&self, tenant: Option<TenantId>) {
        let mut rights = self.rights.lock().expect("no test panics with it");
        rights.push(tenant);
    }

    fn changed(&self, changes: Vec<Change>) {
        self.changes
            .lock()
            .expect("no test panics with it")
            .extend(changes);
    }
}

impl Heard {
    fn by(store: Store) -> (Store, Arc<Self>) {
        let heard = Arc::new(Self::default());
        (store.heard_by(heard.clone()), heard)
    }

    /// What it has heard since it was asked last.
    fn since(&self) -> Vec<(Topic, Whose, Pace)> {
        let changes = std::mem::take(&mut *self.changes.lock().expect("no test panics with it"));
        let told = changes.into_iter();
        told.map(|change| (change.topic, change.whose, change.pace))
            .collect()
    }

    /// The tenants whose rights it has heard of since it was asked last.
    fn rights(&self) -> Vec<Option<TenantId>> {
        std::mem::take(&mut *self.rights.lock().expect("no test panics with it"))
    }
}

async fn every_table_of_the_database_has_its_lists(fixture: Fixture) {
    let snapshot = Snapshot::of(&fixture.db).await;
    let tables = snapshot.expect("it can be read").tables().await;
    let tables = tables.expect("the catalog is there").into_iter();
    let tables: Vec<_> = tables.map(|table| table.name).collect();
    assert!(tables.len() > 20, "{tables:?}");
    let unlisted: Vec<_> = tables.iter().filter(|table| !is_listed(table)).collect();
    assert!(
        unlisted.is_empty(),
        "announce/tables.rs says which lists are made from each table, and not from {unlisted:?}"
    );
}

async fn a_commit_tells_of_the_lists_that_it_changes_and_an_undone_one_of_none(fixture: Fixture) {
    let tenant = fixture.tenant().await;
    let (store, heard) = Heard::by(fixture.db.clone());
    let session = tenant.session().await;
    assert_eq!(heard.since(), [], "another handle of the store wrote it");

    let titled = SessionChange {
        title: Some("pumps".to_owned()),
        archived: None,
    };
    let changed = store
        .change_session(tenant.id, session, &titled, at(1))
        .await;
    changed.expect("it is there");
    let of_session = Whose::OfSession(session);
    assert_eq!(heard.since(), [(Topic::Sessions, of_session, Pace::Prompt)]);
    let owner = store.reader_of(tenant.id, of_session).await;
    assert_eq!(owner.expect("the store answers"), Some(tenant.owner));

    let nothing = SessionId::from_u128(7);
    let refused = store
        .change_session(tenant.id, nothing, &titled, at(2))
        .await;
    refused.expect_err("there is no such session");
    assert_eq!(heard.since(), []);

    // What the undone work had noted is not told by the next one.
    let lost = store.write(tenant.id).await.expect("a transaction");
    drop(lost);
    let changed = store
        .change_session(tenant.id, session, &titled, at(3))
        .await;
    changed.expect("it is there");
    assert_eq!(heard.since().len(), 1);
}

async fn a_commit_that_takes_rights_away_tells_that_and_no_other_one_does(fixture: Fixture) {
    let tenant = fixture.tenant().await;
    let (store, heard) = Heard::by(fixture.db.clone());
    let key = new_credential(CredentialKind::ApiKey);
    let made = store.insert_credential(tenant.id, tenant.owner, &key, at(1));
    let key = made.await.expect("the owner is there").id;
    tenant.session().await;
    let used = store.credential_used(tenant.id, key, None, at(2)).await;
    used.expect("it is there");
    assert_eq!(heard.rights(), []);
    let revoked = store.revoke_credential(tenant.id, key, tenant.owner, at(3));
    revoked.await.expect("it is there");
    assert_eq!(heard.rights(), [Some(tenant.id)]);
}

async fn the_removal_of_a_runner_and_a_wish_to_stop_are_told_once(fixture: Fixture) {
    let tenant = fixture.tenant().await;
    let work = tenant.at_work().await;
    let placed = fixture
        .db
        .place_operation(tenant.id, work.epoch, &work.operation, at(4));
    placed.await.expect("the turn runs");
    let (store, heard) = Heard::by(fixture.db.clone());
    for now in [5, 6] {
        let cancelled = store.cancel_operation(tenant.id, work.operation.id, at(now));
        cancelled.await.expect("it is there");
    }
    assert_eq!(heard.cancels.load(Relaxed), 1);
    assert_eq!(heard.rights(), []);
    let revoked = store.revoke_runner(tenant.id, work.runner, tenant.owner, at(7));
    revoked.await.expect("it is there");
    assert_eq!(heard.rights(), [Some(tenant.id)]);
}
