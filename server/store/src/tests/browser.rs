//! Cookies of browsers, tickets for streams, and service accounts.

use shared_types::{Digest, OperationId, UserId, event::TurnOutcome};

use super::{
    fixture::{Fixture, Tenant, at, new_credential, token_hash, turn_ended, unique},
    rights::invited,
};
use crate::{
    AuditOrigin, CredentialKind, CredentialRow, NewCredential, NewSignInCode, NewStreamTicket,
    NewUser, Role, StoreError, TICKETS_OF_CREDENTIAL_AT_MOST, UserKind,
};

on_every_backend!(
    a_cookie_is_replaced_once_it_was_seen_and_by_one_request_alone,
    a_copied_cookie_ends_its_credential_once_and_the_log_says_why,
    a_ticket_is_taken_once_in_time_for_its_own_stream,
    a_credential_has_so_many_tickets_and_those_that_are_over_do_not_count,
    a_service_account_is_listed_is_invited_by_nobody_and_goes_like_a_person,
    what_a_removed_persons_key_made_for_a_service_account_ends_too,
    the_work_of_a_removed_person_is_found_until_it_has_ended,
);

async fn browser(ours: &Tenant) -> (NewCredential, CredentialRow) {
    let made = new_credential(CredentialKind::Browser);
    let row = ours.db.insert_credential(ours.id, ours.owner, &made, at(1));
    let row = row.await.expect("the owner is there");
    (made, row)
}

async fn a_cookie_is_replaced_once_it_was_seen_and_by_one_request_alone(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (made, row) = browser(&ours).await;
    let first = made.second_hash.expect("it has one");
    let cookie = async || {
        let found = db.subject_by_hash(&made.hash).await.expect("it answers");
        found.expect("it holds").cookie.expect("it is a browser's")
    };
    let fresh = cookie().await;
    assert_eq!(
        (&fresh.second, fresh.made_at, fresh.taken_up_at),
        (&first, at(1), Some(at(1)))
    );
    assert_eq!(fresh.replaced, None);

    let [one, other] = [token_hash(), token_hash()];
    let (salt, other_salt) = (Digest::of(b"one"), Digest::of(b"other"));
    let (a, b) = tokio::join!(
        db.replace_cookie(ours.id, row.id, &first, &one, &salt, at(9)),
        db.replace_cookie(ours.id, row.id, &first, &other, &other_salt, at(9)),
    );
    let (a, b) = (a.expect("it answers"), b.expect("it answers"));
    assert!(a != b, "one of two requests replaces it");
    let (newest, salt) = if a { (one, salt) } else { (other, other_salt) };
    let replaced = cookie().await;
    assert_eq!(
        (&replaced.second, replaced.taken_up_at),
        (&newest, None),
        "nobody has seen it yet"
    );
    let before = replaced.replaced.expect("there is one before it");
    assert_eq!((before.second, before.salt), (first, salt));
    let next = token_hash();
    let again = db.replace_cookie(ours.id, row.id, &newest, &next, &salt, at(10));
    assert!(!again.await.expect("it answers"), "it was not seen yet");
    for seen in [at(11), at(12)] {
        let seen = db.cookie_taken_up(ours.id, row.id, &newest, seen);
        seen.await.expect("it answers");
    }
    assert_eq!(
        cookie().await.taken_up_at,
        Some(at(11)),
        "the first time counts"
    );
}

async fn a_copied_cookie_ends_its_credential_once_and_the_log_says_why(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (made, row) = browser(&ours).await;
    let origin = AuditOrigin {
        credential: Some(row.id),
        address: Some([192, 0, 2, 7].into()),
    };
    for _ in 0..2 {
        let ended = db.end_copied_cookie(ours.id, row.id, origin, at(5));
        ended.await.expect("it answers");
    }
    let found = db.subject_by_hash(&made.hash).await.expect("it answers");
    assert_eq!(found, None);
    let log = db.audit_after(ours.id, 2, 10).await.expect("it answers");
    assert_eq!(log.len(), 1, "{log:?}");
    assert_eq!(
        (log[0].kind.as_str(), log[0].actor.as_str()),
        ("credential.revoked", "system")
    );
    assert_eq!(log[0].address.as_deref(), Some("192.0.2.7"));
    assert!(log[0].detail.to_string().contains("used again"));
}

async fn a_ticket_is_taken_once_in_time_for_its_own_stream(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (_, row) = browser(&ours).await;
    let operation = Some(OperationId::from_u128(7));
    let make = async |operation| {
        let ticket = NewStreamTicket {
            credential: row.id,
            hash: token_hash(),
            operation,
            expires_at: at(31),
        };
        let made = db.insert_stream_ticket(ours.id, ours.owner, &ticket, at(1));
        made.await.expect("there is room");
        ticket.hash
    };
    let sessions = make(None).await;
    let of_operation = make(operation).await;
    for (hash, stream, when, good) in [
        (&sessions, operation, 2, false),
        (&of_operation, None, 2, false),
        (&of_operation, Some(OperationId::from_u128(8)), 2, false),
        (&of_operation, operation, 31, false),
        (&of_operation, operation, 30, true),
        (&of_operation, operation, 30, false),
        (&token_hash(), None, 2, false),
    ] {
        let taken = db.take_stream_ticket(hash, stream, at(when)).await;
        let taken = taken.expect("it answers");
        assert_eq!(
            taken,
            good.then_some((ours.id, row.id)),
            "{stream:?} at {when}"
        );
    }
    let (one, other) = tokio::join!(
        db.take_stream_ticket(&sessions, None, at(2)),
        db.take_stream_ticket(&sessions, None, at(2)),
    );
    let taken = [one, other].map(|taken| taken.expect("it answers"));
    let taken = taken.into_iter().flatten();
    assert_eq!(taken.count(), 1, "of two at once one has it");
}

async fn a_credential_has_so_many_tickets_and_those_that_are_over_do_not_count(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (_, row) = browser(&ours).await;
    let make = async |when| {
        let ticket = NewStreamTicket {
            credential: row.id,
            hash: token_hash(),
            operation: None,
            expires_at: at(when + 30),
        };
        db.insert_stream_ticket(ours.id, ours.owner, &ticket, at(when))
            .await
    };
    for _ in 0..TICKETS_OF_CREDENTIAL_AT_MOST {
        make(1).await.expect("there is room");
    }
    let full = make(30).await;
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    make(31).await.expect("the others are over");
}

async fn a_service_account_is_listed_is_invited_by_nobody_and_goes_like_a_person(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let new = |name: &str| NewUser {
        id: UserId::from_u128(unique()),
        name: name.to_owned(),
    };
    let by = ours.owner.into();
    let (deploy, other) = (new("deploy"), new("deploy"));
    let added = db.add_service_account(ours.id, &deploy, Role::Member, &by, at(1));
    let added = added.await.expect("the name is free");
    assert_eq!((added.kind, added.role), (UserKind::Service, Role::Member));
    let again = db.add_service_account(ours.id, &other, Role::Member, &by, at(1));
    assert!(matches!(again.await, Err(StoreError::Conflict(_))));
    let code = NewSignInCode {
        hash: Digest::of(b"deploy"),
        expires_at: at(600),
    };
    let invited = db.invite(ours.id, &other, Role::Member, &code, &by, at(2));
    let invited = invited.await.expect_err("it is no person");
    assert!(invited.to_string().contains("service account"), "{invited}");
    let people = db.people(ours.id, "", 10).await.expect("it answers");
    let kinds: Vec<_> = people.iter().map(|person| person.user.kind).collect();
    assert_eq!(kinds, [UserKind::Service, UserKind::Person]);

    let mut key = new_credential(CredentialKind::ApiKey);
    key.maker = Some(ours.owner);
    let made = db.insert_credential(ours.id, deploy.id, &key, at(3));
    made.await.expect("the account is there");
    let log = db.audit_after(ours.id, 0, 100).await.expect("it answers");
    let last = log.last().expect("the key");
    assert_eq!(
        last.actor,
        ours.owner.to_string(),
        "who made it, not whose it is"
    );
    assert_eq!(last.detail["user"], deploy.id.to_string());
    db.remove_person(ours.id, deploy.id, &by, at(4))
        .await
        .expect("it is there");
    let found = db.subject_by_hash(&key.hash).await.expect("it answers");
    assert_eq!(found, None);
}

async fn what_a_removed_persons_key_made_for_a_service_account_ends_too(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (by, ann) = (ours.owner.into(), invited(&ours, "ann", Role::Admin).await);
    let deploy = NewUser {
        id: UserId::from_u128(unique()),
        name: "deploy".to_owned(),
    };
    let added = db.add_service_account(ours.id, &deploy, Role::Member, &by, at(1));
    added.await.expect("the name is free");
    let make = async |kind, user, made_by| {
        let mut made = new_credential(kind);
        (made.made_by, made.maker) = (made_by, Some(ann));
        let row = db.insert_credential(ours.id, user, &made, at(2)).await;
        (row.expect("the user is there").id, made.hash)
    };
    let (terminal, _) = make(CredentialKind::SignIn, ann, None).await;
    let (key, _) = make(CredentialKind::ApiKey, ann, Some(terminal)).await;
    let (of_key, by_key) = make(CredentialKind::ApiKey, deploy.id, Some(key)).await;
    let (_, by_hand) = make(CredentialKind::ApiKey, deploy.id, Some(terminal)).await;
    let removed = db.remove_person(ours.id, ann, &by, at(3)).await;
    removed.expect("somebody else is an owner");
    let holds = async |hash| {
        db.subject_by_hash(hash)
            .await
            .expect("it answers")
            .is_some()
    };
    assert!(!holds(&by_key).await && holds(&by_hand).await);
    let log = db.audit_after(ours.id, 0, 100).await.expect("it answers");
    let ended = log
        .iter()
        .find(|entry| entry.subject == of_key.to_string() && entry.kind == "credential.revoked");
    assert_eq!(ended.expect("it is told").detail["with"], ann.to_string());
}

async fn the_work_of_a_removed_person_is_found_until_it_has_ended(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let ann = invited(&ours, "ann", Role::Owner).await;
    let work = ours.at_work().await;
    let found = async || {
        let found = db.removed_at_work().await.expect("it answers");
        found.contains(&(ours.id, ours.owner))
    };
    assert!(!found().await, "nobody was removed");
    let by = ann.into();
    let removed = db.remove_person(ours.id, ours.owner, &by, at(9));
    removed.await.expect("ann is an owner");
    assert!(found().await);
    let end = [turn_ended(work.turn, TurnOutcome::Cancelled)];
    let ended = db.append(ours.id, work.session, work.epoch, &end, at(10));
    ended.await.expect("it runs");
    assert!(!found().await);
}
