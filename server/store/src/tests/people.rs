use shared_types::{Digest, TenantId, UserId};

use super::fixture::{Fixture, at, new_credential, token_hash};
use crate::{
    ATTEMPTS_KEPT_AT_MOST, ATTEMPTS_KEPT_FOR, AttemptKind, AuditFilter, CredentialKind,
    KEYS_OF_USER_AT_MOST, MAX_PAGE, NewSignInCode, NewTenant, NewUser, RedeemRefusal, Role,
    StoreError, database::query,
};

on_every_backend!(
    a_second_bootstrap_answers_with_the_first_tenant_and_writes_nothing,
    a_credential_is_found_by_its_hash_until_it_is_revoked,
    a_key_that_a_key_made_ends_with_it_and_what_a_sign_in_made_stays,
    the_log_is_read_backwards_and_by_the_beginning_of_a_kind,
    a_key_is_not_made_by_one_that_was_revoked,
    a_user_has_so_many_keys_and_no_more_and_may_always_sign_in,
    a_code_signs_in_exactly_once_also_when_two_race,
    a_code_is_refused_when_it_is_late_unknown_or_replaced,
    a_refused_credential_leaves_the_code_good,
    attempts_are_counted_by_kind_and_address_also_after_a_restart,
    attempts_that_are_made_at_once_stay_within_the_limit,
    only_young_attempts_are_kept_and_not_too_many,
    too_long_names_are_refused,
);

async fn a_second_bootstrap_answers_with_the_first_tenant_and_writes_nothing(fixture: Fixture) {
    let db = &fixture.db;
    let tenant = |n| NewTenant {
        id: TenantId::from_u128(n),
        name: format!("tenant {n}"),
    };
    let owner = |n| NewUser {
        id: UserId::from_u128(n),
        name: format!("owner {n}"),
    };
    assert_eq!(db.first_owner().await.expect("it answers"), None);
    let first = db.bootstrap(&tenant(1), &owner(2), at(0)).await;
    assert!(first.expect("nothing is there").created);
    let second = db.bootstrap(&tenant(3), &owner(4), at(5)).await;
    let second = second.expect("it answers");
    assert!(!second.created);
    assert_eq!((second.tenant, second.owner), (tenant(1).id, owner(2).id));
    let user = db.user(second.tenant, second.owner).await;
    assert_eq!(user.expect("it was made").role, Role::Owner);
    let other = db.tenant(tenant(3).id).await;
    assert!(matches!(other, Err(StoreError::NotFound)));
    let log = db.audit_after(second.tenant, 0, 10).await;
    let log = log.expect("it answers");
    assert_eq!(log.len(), 1);
    assert_eq!((log[0].seq, log[0].kind.as_str()), (1, "tenant.created"));
}

async fn a_credential_is_found_by_its_hash_until_it_is_revoked(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let key = new_credential(CredentialKind::ApiKey);
    db.insert_credential(ours.id, ours.owner, &key, at(1))
        .await
        .expect("the owner is there");
    db.credential_used(ours.id, key.id, None, at(9))
        .await
        .expect("the key is there");
    let found = db.subject_by_hash(&key.hash).await.expect("it answers");
    let found = found.expect("it is good");
    assert_eq!((found.tenant, found.user), (ours.id, ours.owner));
    assert_eq!(found.last_used_at, Some(at(9)));
    let subject = db.subject(ours.id, key.id).await.expect("it answers");
    assert_eq!(subject, Some(found), "by its id it is the same");
    let listed = db.list_credentials(ours.id, ours.owner, MAX_PAGE).await;
    let listed = listed.expect("it answers");
    assert_eq!((listed.len(), listed[0].id), (1, key.id));

    db.revoke_credential(ours.id, key.id, ours.owner, at(10))
        .await
        .expect("the key is there");
    let found = db.subject_by_hash(&key.hash).await.expect("it answers");
    assert_eq!(found, None);
    let listed = db.list_credentials(ours.id, ours.owner, MAX_PAGE).await;
    assert_eq!(listed.expect("it answers"), vec![]);
    let again = db.revoke_credential(ours.id, key.id, ours.owner, at(11));
    assert!(matches!(again.await, Err(StoreError::NotFound)));
    let log = db.audit_after(ours.id, 1, 10).await.expect("it answers");
    let kinds: Vec<_> = log.iter().map(|entry| entry.kind.as_str()).collect();
    assert_eq!(kinds, ["credential.created", "credential.revoked"]);
}

async fn the_log_is_read_backwards_and_by_the_beginning_of_a_kind(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    for second in 1..=4 {
        let key = new_credential(CredentialKind::ApiKey);
        db.insert_credential(ours.id, ours.owner, &key, at(second))
            .await
            .expect("its maker holds");
    }
    let read = async |before, kind: &str| {
        let filter = AuditFilter {
            before,
            kind: kind.to_owned(),
            ..AuditFilter::default()
        };
        let rows = db.audit_page(ours.id, &filter, 2).await;
        let rows = rows.expect("it answers");
        rows.iter().map(|row| row.seq).collect::<Vec<_>>()
    };
    assert_eq!(read(None, "").await, [4, 5]);
    assert_eq!(read(Some(4), "").await, [2, 3]);
    assert_eq!(read(Some(4), "credential.").await, [2, 3]);
    assert_eq!(read(Some(2), "credential.").await, Vec::<u64>::new());
    assert_eq!(read(None, "tenant.").await, [1]);
}

async fn a_key_that_a_key_made_ends_with_it_and_what_a_sign_in_made_stays(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let make = async |kind, made_by| {
        let mut made = new_credential(kind);
        made.made_by = made_by;
        let made = db
            .insert_credential(ours.id, ours.owner, &made, at(1))
            .await;
        made.expect("its maker holds").id
    };
    let terminal = make(CredentialKind::SignIn, None).await;
    let key = make(CredentialKind::ApiKey, Some(terminal)).await;
    let child = make(CredentialKind::ApiKey, Some(key)).await;
    let grandchild = make(CredentialKind::ApiKey, Some(child)).await;
    let other = make(CredentialKind::ApiKey, Some(terminal)).await;
    let held = async || {
        let listed = db.list_credentials(ours.id, ours.owner, MAX_PAGE).await;
        let mut held: Vec<_> = listed
            .expect("it answers")
            .iter()
            .map(|row| row.id)
            .collect();
        held.sort();
        held
    };
    let revoke = async |id| {
        let revoked = db.revoke_credential(ours.id, id, ours.owner, at(2)).await;
        revoked.expect("it is there");
    };
    assert_eq!(held().await, [terminal, key, child, grandchild, other]);
    revoke(terminal).await;
    assert_eq!(held().await, [key, child, grandchild, other]);
    revoke(key).await;
    assert_eq!(held().await, [other]);
    let log = db.audit_after(ours.id, 6, 10).await.expect("it answers");
    let mut told: Vec<_> = log.iter().map(|entry| entry.subject.clone()).collect();
    told.sort();
    assert_eq!(
        told,
        [terminal, key, child, grandchild].map(|id| id.to_string())
    );
}

async fn a_key_is_not_made_by_one_that_was_revoked(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let maker = new_credential(CredentialKind::ApiKey);
    let mut made = new_credential(CredentialKind::ApiKey);
    made.made_by = Some(maker.id);
    db.insert_credential(ours.id, ours.owner, &maker, at(1))
        .await
        .expect("the owner is there");
    db.revoke_credential(ours.id, maker.id, ours.owner, at(2))
        .await
        .expect("it is there");
    let late = db
        .insert_credential(ours.id, ours.owner, &made, at(3))
        .await;
    assert!(matches!(late, Err(StoreError::Conflict(_))), "{late:?}");
}

async fn a_user_has_so_many_keys_and_no_more_and_may_always_sign_in(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let make = async |kind| {
        let made = new_credential(kind);
        db.insert_credential(ours.id, ours.owner, &made, at(1))
            .await
    };
    let first = make(CredentialKind::ApiKey).await.expect("there is room");
    for _ in 1..KEYS_OF_USER_AT_MOST {
        make(CredentialKind::ApiKey).await.expect("there is room");
    }
    let full = make(CredentialKind::ApiKey).await;
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    make(CredentialKind::SignIn).await.expect("that is no key");
    db.revoke_credential(ours.id, first.id, ours.owner, at(2))
        .await
        .expect("it is there");
    make(CredentialKind::ApiKey)
        .await
        .expect("there is room again");
}

fn code(text: &str) -> NewSignInCode {
    NewSignInCode {
        hash: Digest::of(text.as_bytes()),
        expires_at: at(600),
    }
}

async fn a_code_signs_in_exactly_once_also_when_two_race(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let code = code("ABCD-EFGH");
    db.issue_sign_in_code(ours.id, ours.owner, &code, at(0))
        .await
        .expect("the owner is there");
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (db, hash) = (db.clone(), code.hash);
        let credential = new_credential(CredentialKind::SignIn);
        tries.spawn(async move { db.redeem_sign_in_code(&hash, &credential, at(1)).await });
    }
    let tries = tries.join_all().await;
    let (good, refused): (Vec<_>, Vec<_>) = tries.into_iter().partition(Result::is_ok);
    assert_eq!(good.len(), 1);
    assert!(
        refused
            .iter()
            .all(|refusal| matches!(refusal, Err(RedeemRefusal::Spent)))
    );
    let listed = db.list_credentials(ours.id, ours.owner, MAX_PAGE).await;
    assert_eq!(listed.expect("it answers").len(), 1);
}

async fn a_code_is_refused_when_it_is_late_unknown_or_replaced(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    for text in ["first", "second"] {
        db.issue_sign_in_code(ours.id, ours.owner, &code(text), at(0))
            .await
            .expect("the owner is there");
    }
    let credential = new_credential(CredentialKind::SignIn);
    for text in ["first", "never made"] {
        let hash = code(text).hash;
        let refusal = db.redeem_sign_in_code(&hash, &credential, at(1)).await;
        assert!(matches!(refusal, Err(RedeemRefusal::Unknown)));
    }
    let hash = code("second").hash;
    let late = db.redeem_sign_in_code(&hash, &credential, at(600)).await;
    assert!(matches!(late, Err(RedeemRefusal::Expired)));
    let (user, _) = db
        .redeem_sign_in_code(&hash, &credential, at(599))
        .await
        .expect("its time is not over");
    assert_eq!((user.tenant, user.id), (ours.id, ours.owner));
}

async fn a_refused_credential_leaves_the_code_good(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    db.issue_sign_in_code(ours.id, ours.owner, &code("x"), at(0))
        .await
        .expect("the owner is there");
    let mut credential = new_credential(CredentialKind::SignIn);
    credential.name = "n".repeat(64);
    let hash = code("x").hash;
    let refused = db.redeem_sign_in_code(&hash, &credential, at(1)).await;
    assert!(matches!(
        refused,
        Err(RedeemRefusal::Store(StoreError::TooLarge { .. }))
    ));
    credential.name.clear();
    db.redeem_sign_in_code(&hash, &credential, at(2))
        .await
        .expect("nothing was written the first time");
}

async fn attempts_are_counted_by_kind_and_address_also_after_a_restart(fixture: Fixture) {
    for (kind, address, seconds) in [
        (AttemptKind::SignIn, "192.0.2.1", 10),
        (AttemptKind::SignIn, "192.0.2.1", 20),
        (AttemptKind::SignIn, "192.0.2.2", 20),
        (AttemptKind::Enrol, "192.0.2.1", 20),
    ] {
        let recorded = fixture.db.record_attempt(kind, address, at(seconds));
        recorded.await.expect("it is short");
    }
    let fixture = fixture.reopened().await;
    for (since, expected) in [(0, 2), (10, 2), (11, 1), (21, 0)] {
        let count = fixture
            .db
            .count_attempts(AttemptKind::SignIn, "192.0.2.1", at(since));
        assert_eq!(count.await.expect("it answers"), expected, "since {since}");
    }
}

async fn attempts_that_are_made_at_once_stay_within_the_limit(fixture: Fixture) {
    let mut tries = tokio::task::JoinSet::new();
    for number in 0..40 {
        let db = fixture.db.clone();
        let address = if number % 4 == 0 {
            "192.0.2.2"
        } else {
            "192.0.2.1"
        };
        tries.spawn(async move {
            let tried = db.record_attempt_within(AttemptKind::Enrol, address, at(5), 10, at(6));
            (address, tried.await.expect("it answers"))
        });
    }
    let tries = tries.join_all().await;
    let let_through = |from: &str| tries.iter().filter(|tried| **tried == (from, true)).count();
    assert_eq!(
        (let_through("192.0.2.1"), let_through("192.0.2.2")),
        (10, 10)
    );
    let later = fixture
        .db
        .record_attempt_within(AttemptKind::Enrol, "192.0.2.1", at(7), 10, at(8));
    assert!(later.await.expect("it answers"), "those are old by then");
}

async fn only_young_attempts_are_kept_and_not_too_many(fixture: Fixture) {
    let (db, kind, address) = (&fixture.db, AttemptKind::SignIn, "192.0.2.1");
    let record = |seconds| db.record_attempt(kind, address, at(seconds));
    let count = || db.count_attempts(kind, address, at(0));
    record(1).await.expect("it is short");
    let kept_for = i64::try_from(ATTEMPTS_KEPT_FOR.as_secs()).expect("it is a day");
    record(kept_for + 2).await.expect("it is short");
    assert_eq!(count().await.expect("it answers"), 1);

    // As if as many as are kept had come since: the next one pushes the oldest out.
    let mut tx = db.write_any("a test").await.expect("it answers");
    query("INSERT INTO attempts (id, kind, address, at) VALUES ($1, 'enrol', 'x', $2)")
        .bind(i64::try_from(ATTEMPTS_KEPT_AT_MOST).expect("it is small") + 1)
        .bind(at(kept_for + 2).as_micros())
        .execute(&mut tx)
        .await
        .expect("the table is there");
    if tx.is_shared() {
        // SQLite counts on from the highest by itself.
        let on = "SELECT setval(pg_get_serial_sequence('attempts', 'id'), MAX(id)) FROM attempts";
        query(on).execute(&mut tx).await.expect("it counts on");
    }
    tx.commit().await.expect("the disk takes it");
    record(kept_for + 3).await.expect("it is short");
    assert_eq!(count().await.expect("it answers"), 1);
}

async fn too_long_names_are_refused(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let mut key = new_credential(CredentialKind::ApiKey);
    key.name = "n".repeat(64);
    let error = db.insert_credential(ours.id, ours.owner, &key, at(0)).await;
    let error = error.expect_err("63 bytes are the bound").to_string();
    assert!(error.contains("longer than 63 bytes"), "{error}");
    let none = db.subject_by_hash(&token_hash()).await;
    assert_eq!(none.expect("it answers"), None);
    let address = "a".repeat(64);
    let attempt = db.record_attempt(AttemptKind::Enrol, &address, at(0)).await;
    assert!(matches!(attempt, Err(StoreError::TooLarge { .. })));
}
