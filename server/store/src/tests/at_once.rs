//! Writers that come at the same moment: what each of them has decided still holds once all are done.

use std::sync::Arc;

use shared_types::{CredentialId, UserId};
use tokio::{sync::Barrier, task::JoinSet};

use super::fixture::{Fixture, at, link_claim, new_credential, unique};
use crate::{
    CredentialKind, KEYS_OF_USER_AT_MOST, MAX_PAGE, NewTenant, NewUser, Placed, Role, StoreError,
    columns::Columns as _,
    database::{query, retried},
};

on_every_backend!(
    an_operation_is_never_left_open_by_a_link_that_has_forgotten_it,
    keys_that_are_made_at_once_stay_within_the_bound,
    a_key_that_has_expired_takes_no_room,
    a_join_token_ends_with_the_key_that_made_it,
    no_key_outlives_its_maker_by_being_made_while_that_is_revoked,
    no_key_outlives_the_key_that_made_its_maker_either,
    of_many_bootstraps_at_once_one_makes_the_tenant,
    work_that_another_transaction_was_preferred_to_is_done_again,
    a_text_with_a_nul_is_kept_without_it_and_found_by_it,
);

async fn an_operation_is_never_left_open_by_a_link_that_has_forgotten_it(fixture: Fixture) {
    let ours = fixture.tenant().await;
    for _ in 0..20 {
        let work = Arc::new(ours.at_work().await);
        let (db, tenant) = (fixture.db.clone(), ours.id);
        let placing = {
            let (db, work) = (db.clone(), work.clone());
            tokio::spawn(async move {
                db.place_operation(tenant, work.epoch, &work.operation, at(4))
                    .await
            })
        };
        let linking = {
            let (db, work) = (db.clone(), work.clone());
            tokio::spawn(async move {
                db.link_claim(tenant, work.runner, &link_claim(2, 0), at(5))
                    .await
            })
        };
        let (placed, linked) = tokio::join!(placing, linking);
        linked.expect("no panic").expect("the runner is there");
        let placed = placed.expect("no panic").expect("the turn runs");
        let row = db.operation(tenant, work.operation.id).await;
        match placed {
            Placed::New { .. } => {
                let row = row.expect("it was placed");
                assert!(row.outcome.is_some(), "the claim settles what it forgot");
            }
            Placed::OtherIncarnation => assert!(matches!(row, Err(StoreError::NotFound))),
            other => panic!("{other:?}"),
        }
    }
}

async fn keys_that_are_made_at_once_stay_within_the_bound(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let mut making = JoinSet::new();
    for _ in 0..KEYS_OF_USER_AT_MOST + 20 {
        let (db, tenant, owner) = (fixture.db.clone(), ours.id, ours.owner);
        let key = new_credential(CredentialKind::ApiKey);
        making.spawn(async move { db.insert_credential(tenant, owner, &key, at(1)).await });
    }
    let made = making.join_all().await;
    let refused = made
        .iter()
        .filter(|it| matches!(it, Err(StoreError::Full(_))));
    assert_eq!(refused.count(), 20);
    assert_eq!(
        made.iter().filter(|it| it.is_ok()).count() as u64,
        KEYS_OF_USER_AT_MOST
    );
}

async fn a_key_that_has_expired_takes_no_room(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let make = async |expires_at, now| {
        let mut key = new_credential(CredentialKind::ApiKey);
        key.expires_at = expires_at;
        let made = fixture.db.insert_credential(ours.id, ours.owner, &key, now);
        made.await.map(drop)
    };
    for _ in 0..KEYS_OF_USER_AT_MOST {
        make(Some(at(10)), at(1)).await.expect("there is room");
    }
    assert!(matches!(make(None, at(9)).await, Err(StoreError::Full(_))));
    make(None, at(10)).await.expect("there is room again");
}

async fn a_join_token_ends_with_the_key_that_made_it(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let [key, other] = [CredentialKind::ApiKey; 2].map(new_credential);
    for made in [&key, &other] {
        let made = fixture
            .db
            .insert_credential(ours.id, ours.owner, made, at(1));
        made.await.expect("there is room");
    }
    let make = async |maker: CredentialId| {
        let mut token = ours.new_join_token("laptop");
        token.origin.credential = Some(maker);
        let made = fixture.db.create_join_token(ours.id, &token, at(2)).await;
        made.map(|()| token.hash)
    };
    let (its, anothers) = (make(key.id).await, make(other.id).await);
    let revoked = fixture
        .db
        .revoke_credential(ours.id, key.id, ours.owner, at(3))
        .await;
    revoked.expect("it is there");
    for (hash, is_good) in [(its, false), (anothers, true)] {
        let hash = hash.expect("the key holds");
        let token = fixture.db.join_token_by_hash(&hash).await;
        let token = token.expect("it answers").expect("it is there");
        assert_eq!(token.is_good(at(3)).is_ok(), is_good);
    }
    assert!(matches!(make(key.id).await, Err(StoreError::Conflict(_))));
}

async fn no_key_outlives_its_maker_by_being_made_while_that_is_revoked(fixture: Fixture) {
    let ours = fixture.tenant().await;
    for _ in 0..20 {
        let maker = new_credential(CredentialKind::ApiKey);
        let made = fixture
            .db
            .insert_credential(ours.id, ours.owner, &maker, at(1));
        made.await.expect("there is room");
        let mut child = new_credential(CredentialKind::ApiKey);
        child.made_by = Some(maker.id);
        let (db, tenant, owner) = (fixture.db.clone(), ours.id, ours.owner);
        let making = tokio::spawn(async move {
            let _ = db.insert_credential(tenant, owner, &child, at(2)).await;
        });
        let revoked = fixture
            .db
            .revoke_credential(ours.id, maker.id, ours.owner, at(2))
            .await;
        revoked.expect("it is there");
        making.await.expect("no panic");
        let left = fixture
            .db
            .list_credentials(ours.id, ours.owner, MAX_PAGE)
            .await;
        assert_eq!(left.expect("it answers"), vec![]);
    }
}

async fn no_key_outlives_the_key_that_made_its_maker_either(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let program = NewUser {
        id: UserId::from_u128(unique()),
        name: "deploy".to_owned(),
    };
    let by = ours.owner.into();
    let added = fixture
        .db
        .add_service_account(ours.id, &program, Role::Member, &by, at(1));
    added.await.expect("the name is free");
    let program = program.id;
    for _ in 0..20 {
        let [first, mut second, mut third] = [CredentialKind::ApiKey; 3].map(new_credential);
        (second.made_by, third.made_by) = (Some(first.id), Some(second.id));
        for (whose, key) in [(ours.owner, &first), (program, &second)] {
            let made = fixture.db.insert_credential(ours.id, whose, key, at(1));
            made.await.expect("there is room");
        }
        let (db, tenant) = (fixture.db.clone(), ours.id);
        let making = tokio::spawn(async move {
            let _ = db.insert_credential(tenant, program, &third, at(2)).await;
        });
        let revoked = fixture
            .db
            .revoke_credential(ours.id, first.id, ours.owner, at(2))
            .await;
        revoked.expect("it is there");
        making.await.expect("no panic");
        let left = fixture.db.list_credentials(ours.id, program, MAX_PAGE);
        assert_eq!(left.await.expect("it answers"), vec![]);
    }
}

async fn of_many_bootstraps_at_once_one_makes_the_tenant(fixture: Fixture) {
    let mut starting = JoinSet::new();
    for _ in 0..8 {
        let db = fixture.db.clone();
        let tenant = NewTenant {
            id: shared_types::TenantId::from_u128(unique()),
            name: "home".to_owned(),
        };
        let owner = NewUser {
            id: shared_types::UserId::from_u128(unique()),
            name: "me".to_owned(),
        };
        starting.spawn(async move { db.bootstrap(&tenant, &owner, at(0)).await });
    }
    let started = starting.join_all().await;
    let started: Vec<_> = started
        .into_iter()
        .map(|it| it.expect("it answers"))
        .collect();
    assert_eq!(started.iter().filter(|it| it.created).count(), 1);
    assert!(started.iter().all(|it| it.tenant == started[0].tenant));
}

/// Two that lock the same two rows in opposite order. On SQLite the second one waits for the first.
async fn work_that_another_transaction_was_preferred_to_is_done_again(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (one, other) = (ours.session().await, ours.session().await);
    let both_hold_one = Arc::new(Barrier::new(2));
    let mut working = JoinSet::new();
    for (first, second) in [(one, other), (other, one)] {
        let (db, tenant) = (fixture.db.clone(), ours.id);
        let barrier = both_hold_one.clone();
        working.spawn(async move {
            let mut is_first_try = true;
            let done: Result<(), StoreError> = retried!({
                let mut tx = db.write(tenant).await?;
                for session in [first, second] {
                    query(
                        "UPDATE sessions SET title = title || 'x' WHERE tenant_id = $1 AND id = $2",
                    )
                    .bind(tenant.to_string())
                    .bind(session.to_string())
                    .execute(&mut tx)
                    .await?;
                    if tx.is_shared() && std::mem::take(&mut is_first_try) {
                        barrier.wait().await;
                    }
                }
                tx.commit().await
            });
            done
        });
    }
    for done in working.join_all().await {
        done.expect("it is done again");
    }
    for session in [one, other] {
        let row = fixture.db.session(ours.id, session).await;
        assert_eq!(row.expect("it is there").title, "xx");
    }
}

async fn a_text_with_a_nul_is_kept_without_it_and_found_by_it(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    ours.runner("lap\0top").await;
    let found = db.find_runner(ours.id, "lap\0top").await;
    assert_eq!(found.expect("it is there").name, "lap\u{2400}top");
    let session = ours.session().await;
    ours.send(session, "a \0 b").await;
    let events = db.events_after(ours.id, session, 1, 10).await;
    let told = format!("{:?}", events.expect("it answers"));
    assert!(told.contains(r"a \0 b"), "JSON keeps it: {told}");
    let mut reading = db.read(ours.id).await.expect("it answers");
    let title = query("SELECT title FROM sessions").fetch_one(&mut reading);
    let title = title.await.expect("it is there").text("title");
    let small = query("SELECT CASE WHEN title = '' THEN 1 ELSE 0 END AS small FROM sessions");
    let small = small.fetch_one(&mut reading).await.expect("it is there");
    assert_eq!(small.count("small").expect("an integer of any size"), 0);
    assert_eq!(title.expect("a text"), "a \u{2400} b");
}
