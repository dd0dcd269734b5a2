//! Every query with another tenant's ids behaves as with ids that do not exist.

use serde_json::json;

use super::fixture::{
    AtWork, Fixture, REPLICA, Tenant, at, end_of, heard_at, link_claim, new_credential, token_hash,
    turn_ended, usual,
};
use crate::{
    Actor, AuditEntry, AuditOrigin, CredentialKind, MAX_PAGE, NewJoinToken, NewSession,
    NewSignInCode, OperationState, SettingName, SettingsOf, StoreError,
};
use server_records::IfRunning;
use shared_types::{Digest, JoinTokenId, SessionId, event::TurnOutcome};

on_every_backend!(
    people_and_credentials_of_another_tenant_are_not_found,
    runners_of_another_tenant_are_not_found,
    sessions_and_turns_of_another_tenant_are_not_found,
    operations_of_another_tenant_are_not_found,
    audit_logs_are_apart_and_numbered_each_from_one,
);

macro_rules! assert_not_found {
    ($($call:expr),+ $(,)?) => {$({
        let answer = $call.await;
        assert!(matches!(answer, Err(StoreError::NotFound)), "{}: {answer:?}", stringify!($call));
    })+};
}

macro_rules! assert_empty {
    ($($call:expr),+ $(,)?) => {$({
        let answer = $call.await.expect("it answers");
        assert!(answer.is_empty(), "{}: {answer:?}", stringify!($call));
    })+};
}

async fn two(fixture: &Fixture) -> (Tenant, Tenant) {
    (fixture.tenant().await, fixture.tenant().await)
}

async fn people_and_credentials_of_another_tenant_are_not_found(fixture: Fixture) {
    let (db, (ours, theirs)) = (&fixture.db, two(&fixture).await);
    let key = new_credential(CredentialKind::ApiKey);
    db.insert_credential(theirs.id, theirs.owner, &key, at(1))
        .await
        .expect("the owner is there");
    let mine = new_credential(CredentialKind::ApiKey);
    let code = NewSignInCode {
        hash: Digest::of(b"code"),
        expires_at: at(9),
    };
    let token = NewJoinToken {
        id: JoinTokenId::from_u128(1),
        owner: theirs.owner,
        name: String::new(),
        labels: Default::default(),
        hash: token_hash(),
        expires_at: at(9),
        uses: 1,
        ephemeral: false,
        from: None,
        origin: AuditOrigin::default(),
    };
    assert_not_found!(
        db.user(ours.id, theirs.owner),
        ours.set(SettingsOf::User(theirs.owner), SettingName::Runner, None),
        db.settings(ours.id, theirs.owner, None),
        ours.set(
            SettingsOf::User(theirs.owner),
            SettingName::Steps,
            Some("9")
        ),
        db.insert_credential(ours.id, theirs.owner, &mine, at(2)),
        db.credential_used(ours.id, key.id, None, at(2)),
        db.revoke_credential(ours.id, key.id, ours.owner, at(2)),
        db.issue_sign_in_code(ours.id, theirs.owner, &code, at(2)),
        db.create_join_token(ours.id, &token, at(2)),
    );
    assert_empty!(db.list_credentials(ours.id, theirs.owner, MAX_PAGE));
    let kept = db.subject_by_hash(&key.hash).await.expect("it answers");
    assert_eq!(kept.expect("it was not revoked").last_used_at, None);
}

async fn runners_of_another_tenant_are_not_found(fixture: Fixture) {
    let (db, (ours, theirs)) = (&fixture.db, two(&fixture).await);
    let runner = theirs.runner("laptop").await;
    let link = theirs.link(runner, at(5)).await;
    assert_not_found!(
        db.runner(ours.id, runner),
        db.find_runner(ours.id, "laptop"),
        db.find_runner(ours.id, &runner.to_string()),
        db.revoke_runner(ours.id, runner, ours.owner, at(6)),
        db.link_claim(ours.id, runner, &link_claim(1, 0), at(6)),
        db.choose_first_runner(ours.id, ours.owner, runner, at(7)),
        ours.set(
            SettingsOf::Tenant,
            SettingName::Runner,
            Some(&runner.to_string())
        ),
    );
    assert_empty!(
        db.list_runners(ours.id, "", 10),
        db.sandboxes_of_runner(ours.id, runner),
    );
    let heard = db.link_heard(ours.id, runner, heard_at(link.generation, at(7), 0));
    assert!(matches!(heard.await, Err(StoreError::NotFound)));
    let ended = db.link_ended(ours.id, runner, heard_at(link.generation, at(7), 0));
    assert!(!ended.await.expect("it answers"));
    ours.runner("laptop").await;
    let row = db.runner(theirs.id, runner).await.expect("it is there");
    assert_eq!((row.last_seen_at, row.link.is_some()), (Some(at(5)), true));
}

async fn sessions_and_turns_of_another_tenant_are_not_found(fixture: Fixture) {
    let (db, (ours, theirs)) = (&fixture.db, two(&fixture).await);
    let AtWork {
        session,
        turn,
        epoch,
        ..
    } = theirs.at_work().await;
    let stolen = NewSession {
        id: SessionId::from_u128(1),
        user: theirs.owner,
        title: String::new(),
        model: "practice".to_owned(),
        chosen_model: None,
        pin: None,
        directory: String::new(),
    };
    let end = [turn_ended(turn, TurnOutcome::Completed)];
    assert_not_found!(
        db.create_session(ours.id, &stolen, u64::MAX, at(9)),
        db.session(ours.id, session),
        db.turn(ours.id, turn),
        db.fleet(ours.id, turn),
        ours.pin(session, None),
        ours.set(SettingsOf::Session(session), SettingName::Steps, Some("9")),
        db.events_after(ours.id, session, 0, 10),
        db.send_input(ours.id, session, &ours.input("hello"), at(9)),
        db.claim_turn(
            ours.id,
            session,
            REPLICA,
            IfRunning::TakeOver,
            usual(),
            at(9)
        ),
        db.request_cancel(ours.id, session, turn, (ours.owner, None), at(9)),
        db.append(ours.id, session, epoch, &end, at(9)),
    );
    assert_empty!(db.list_sessions(ours.id, theirs.owner, crate::SessionFilter::default(), 10));
    // Another tenant's turn in a session of one's own.
    let work = ours.at_work().await;
    assert_not_found!(
        db.append(ours.id, work.session, work.epoch, &end, at(9)),
        db.request_cancel(ours.id, work.session, turn, (ours.owner, None), at(9)),
    );
    let row = db.session(theirs.id, session).await.expect("it is there");
    assert_eq!((row.last_seq, row.running_turn), (3, Some(turn)));
}

async fn operations_of_another_tenant_are_not_found(fixture: Fixture) {
    let (db, (ours, theirs)) = (&fixture.db, two(&fixture).await);
    let work = theirs.at_work().await;
    db.place_operation(theirs.id, work.epoch, &work.operation, at(4))
        .await
        .expect("it is new");
    let id = work.operation.id;
    let mine = ours.at_work().await;
    let mut on_their_runner = mine.operation.clone();
    on_their_runner.place = work.operation.place.clone();
    let mut of_their_turn = mine.operation.clone();
    of_their_turn.turn = work.turn;
    assert_not_found!(
        db.place_operation(ours.id, work.epoch, &work.operation, at(9)),
        db.place_operation(ours.id, mine.epoch, &on_their_runner, at(9)),
        db.place_operation(ours.id, mine.epoch, &of_their_turn, at(9)),
        db.operation(ours.id, id),
        db.placed_operation(ours.id, id),
        db.settle_operation(ours.id, id, &end_of("1"), at(9)),
        db.cancel_operation(ours.id, id, at(9)),
    );
    assert_empty!(db.operations_of_turn(ours.id, work.turn),);
    let verdicts = db.operation_states(ours.id, work.runner, &[id]).await;
    assert_eq!(
        verdicts.expect("it answers"),
        [(id, OperationState::Unknown)]
    );
    let row = db.operation(theirs.id, id).await.expect("it is there");
    assert_eq!(row.state(), OperationState::Open);
}

async fn audit_logs_are_apart_and_numbered_each_from_one(fixture: Fixture) {
    let (db, (ours, theirs)) = (&fixture.db, two(&fixture).await);
    let entry = |subject: &str| AuditEntry {
        actor: Actor::User(ours.owner),
        kind: "sign_in.refused",
        subject: subject.to_owned(),
        detail: json!({ "address": "192.0.2.1" }),
        origin: AuditOrigin::default(),
    };
    for (tenant, subject, seq) in [(&ours, "a", 2), (&theirs, "b", 2), (&ours, "c", 3)] {
        let recorded = db.record_audit(tenant.id, entry(subject), at(5)).await;
        assert_eq!(recorded.expect("the tenant is there"), seq);
    }
    let log = db.audit_after(ours.id, 1, 10).await.expect("it answers");
    let subjects: Vec<_> = log.iter().map(|entry| entry.subject.as_str()).collect();
    assert_eq!(subjects, ["a", "c"]);
    assert_eq!(log[0].actor, ours.owner.to_string());
    assert_eq!(log[0].detail, json!({ "address": "192.0.2.1" }));
    let nowhere = shared_types::TenantId::from_u128(1);
    assert_not_found!(db.record_audit(nowhere, entry("d"), at(6)));
}
