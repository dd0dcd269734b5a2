use shared_types::{
    CredentialId, Epoch, Event, SessionId, Timestamp, TurnId,
    event::{StopReason, TurnOutcome},
};

use super::fixture::{Fixture, Tenant, at, new_credential, turn_ended};
use crate::{AuditOrigin, By, CredentialKind, Input, NewCredential, ToStop, WorkItem};

on_every_backend!(
    what_was_queued_under_a_key_is_claimed_to_be_stopped_once_the_key_is_revoked,
    what_was_queued_under_a_key_is_claimed_to_be_stopped_once_the_key_has_expired,
    what_runs_under_a_key_has_to_stop_once_the_key_or_its_maker_was_revoked,
    what_a_person_has_under_way_goes_on_when_the_person_signs_out,
);

async fn credential(ours: &Tenant, made: NewCredential) -> CredentialId {
    let made = ours.db.insert_credential(ours.id, ours.owner, &made, at(1));
    made.await.expect("the owner is there").id
}

async fn send(ours: &Tenant, session: SessionId, credential: CredentialId) -> TurnId {
    let input = Input {
        credential: Some(credential),
        ..ours.input("go")
    };
    let sent = ours.db.send_input(ours.id, session, &input, at(2)).await;
    sent.expect("the session is there").turn
}

async fn to_stop(ours: &Tenant, now: Timestamp) -> Vec<ToStop> {
    let found = ours.db.work_to_stop(now).await;
    let found = found.expect("it answers").into_iter();
    found.filter(|one| one.tenant == ours.id).collect()
}

/// Why the log says that this turn is to stop.
async fn told(ours: &Tenant, session: SessionId, turn: TurnId) -> Option<StopReason> {
    let events = ours.db.events_after(ours.id, session, 0, 500).await;
    let events = events.expect("the session is there");
    assert!(
        events
            .iter()
            .map(|event| event.seq)
            .eq(1..=events.len() as u64)
    );
    events.iter().find_map(|event| match event.known() {
        Some(Event::CancelRequested { turn: of, why, .. }) if *of == turn => *why,
        _ => None,
    })
}

async fn what_was_queued_under_a_key_is_claimed_to_be_stopped_once_the_key_is_revoked(
    fixture: Fixture,
) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let key = credential(&ours, new_credential(CredentialKind::ApiKey)).await;
    let session = ours.session().await;
    let (first, second) = (
        send(&ours, session, key).await,
        send(&ours, session, key).await,
    );
    let claimed = ours.claim(session).await;
    assert_eq!((claimed.turn.id, claimed.events.len()), (first, 1));
    assert_eq!(told(&ours, session, first).await, None);
    assert_eq!(to_stop(&ours, at(2)).await, []);
    let revoked = db.revoke_credential(ours.id, key, ours.owner, at(3)).await;
    revoked.expect("it is there");
    let fleet = db.fleet(ours.id, first).await.expect("it was claimed");
    assert!(fleet.credential_ended(at(3)), "no call of it is placed");
    let (epoch, end) = (claimed.epoch, [turn_ended(first, TurnOutcome::Completed)]);
    let ended = db.append(ours.id, session, epoch, &end, at(4));
    ended.await.expect("it runs");
    let claimed = ours.claim(session).await;
    assert_eq!((claimed.turn.id, claimed.events.len()), (second, 2));
    assert_eq!(claimed.epoch, Epoch(epoch.0 + 1));
    let why = told(&ours, session, second).await;
    assert_eq!(why, Some(StopReason::CredentialRevoked));
}

async fn what_was_queued_under_a_key_is_claimed_to_be_stopped_once_the_key_has_expired(
    fixture: Fixture,
) {
    let ours = fixture.tenant().await;
    let young = NewCredential {
        expires_at: Some(at(3)),
        ..new_credential(CredentialKind::ApiKey)
    };
    let key = credential(&ours, young).await;
    let session = ours.session().await;
    let turn = send(&ours, session, key).await;
    assert_eq!(to_stop(&ours, at(2)).await, []);
    assert_eq!(to_stop(&ours, at(3)).await.len(), 1);
    ours.claim(session).await;
    let why = told(&ours, session, turn).await;
    assert_eq!(why, Some(StopReason::CredentialExpired));
    assert_eq!(to_stop(&ours, at(3)).await, [], "it is asked once");
}

async fn what_runs_under_a_key_has_to_stop_once_the_key_or_its_maker_was_revoked(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let maker = credential(&ours, new_credential(CredentialKind::ApiKey)).await;
    let of_it = NewCredential {
        made_by: Some(maker),
        ..new_credential(CredentialKind::ApiKey)
    };
    let key = credential(&ours, of_it).await;
    let session = ours.session().await;
    let turn = send(&ours, session, key).await;
    ours.claim(session).await;
    let revoked = db
        .revoke_credential(ours.id, maker, ours.owner, at(4))
        .await;
    revoked.expect("it is there");
    let expected = ToStop {
        tenant: ours.id,
        work: WorkItem::Turn(session, turn),
        why: StopReason::CredentialRevoked,
        by: ours.owner,
    };
    assert_eq!(to_stop(&ours, at(4)).await, [expected]);
    let by = (ours.owner, Some(StopReason::CredentialRevoked));
    let asked = db.request_cancel(ours.id, session, turn, by, at(5)).await;
    asked.expect("it runs");
    assert_eq!(to_stop(&ours, at(6)).await, []);
}

async fn what_a_person_has_under_way_goes_on_when_the_person_signs_out(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    for kind in [
        CredentialKind::Browser,
        CredentialKind::SignIn,
        CredentialKind::ApiKey,
    ] {
        let id = credential(&ours, new_credential(kind)).await;
        let session = ours.session().await;
        let turn = send(&ours, session, id).await;
        let by = By {
            user: ours.owner,
            origin: AuditOrigin {
                credential: Some(id),
                address: None,
            },
        };
        let ended = db.revoke_credential(ours.id, id, by, at(3)).await;
        ended.expect("it is there");
        ours.claim(session).await;
        // A key that ends itself is revoked: nobody signs in with one.
        let is_key = kind == CredentialKind::ApiKey;
        let why = is_key.then_some(StopReason::CredentialRevoked);
        assert_eq!(told(&ours, session, turn).await, why, "{kind:?}");
    }
}
