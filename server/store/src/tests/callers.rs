//! Operations that callers of the API asked for.

use shared_link::server::{Settlement, lost_to_revocation};
use shared_sandbox::Outcome;
use shared_types::{
    Digest, Epoch, OperationId, OperationKey, OperationScope, Owner, ReplicaId, RunnerId, SandboxId,
};

use super::fixture::{Fixture, REPLICA, Tenant, at, end_of, link_claim};
use crate::{
    AskedBy, Label, NewCallerOperation, OperationFilter, OperationState, Placed, StoreError,
};

on_every_backend!(
    an_operation_of_a_caller_is_placed_once_and_found_by_its_key,
    a_key_belongs_to_one_request_of_its_user,
    an_operation_of_a_caller_is_not_placed_on_a_runner_that_is_gone_or_under_another_epoch,
    the_end_of_a_callers_operation_closes_it,
    what_only_the_runner_keeps_is_closed_once_it_was_read_or_after_a_while,
    what_callers_have_open_is_found_again_with_its_request,
    what_a_caller_ran_is_removed_only_once_it_has_ended_and_is_closed,
    a_user_sees_what_the_user_and_the_users_sessions_asked_for_and_nothing_else,
    what_a_caller_has_open_on_a_revoked_runner_is_lost,
);

/// An operation of the tenant's owner on a runner that is linked.
pub(super) async fn asked(ours: &Tenant, runner: RunnerId, key: &str) -> NewCallerOperation {
    let call = ours.at_work().await.operation;
    let sandbox = SandboxId::derive(runner, "workspace");
    let scope = OperationScope::of(ours.id);
    let operation_key = OperationKey::Request(format!("{}/{key}", ours.owner));
    let mut place = call.place;
    (place.runner, place.sandbox) = (runner, sandbox);
    NewCallerOperation {
        id: OperationId::derive(&scope, &Owner::Sandbox(sandbox), &operation_key),
        user: ours.owner,
        credential: None,
        key: key.to_owned(),
        request: r#"{"exec":{}}"#.to_owned(),
        kept: true,
        digest: call.digest,
        place,
        incarnation: call.incarnation,
        effect: call.effect,
        start_by: call.start_by,
        deadline_at: call.deadline_at,
        label: Label {
            kind: "exec".to_owned(),
            title: format!("echo {key}"),
        },
        trace: None,
    }
}

pub(super) async fn linked(ours: &Tenant, name: &str) -> RunnerId {
    let runner = ours.runner(name).await;
    ours.link(runner, at(2)).await;
    runner
}

async fn place(
    ours: &Tenant,
    epoch: u64,
    operation: &NewCallerOperation,
) -> Result<Placed, StoreError> {
    ours.db
        .place_caller_operation(ours.id, Epoch(epoch), operation, at(4))
        .await
}

async fn an_operation_of_a_caller_is_placed_once_and_found_by_its_key(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let runner = linked(&ours, "a").await;
    let operation = asked(&ours, runner, "k").await;
    let first = place(&ours, 1, &operation).await;
    assert_eq!(first.expect("it is new"), Placed::New { event: None });
    let again = place(&ours, 1, &operation).await.expect("it is known");
    let Placed::Known(known) = again else {
        panic!("{again:?}")
    };
    assert_eq!(known.owner(), Owner::Sandbox(operation.place.sandbox));
    let (user, key) = (ours.owner, "k".to_owned());
    assert_eq!(known.asked_by, AskedBy::Caller { user, key });
    let by_key = ours.db.operation_by_key(ours.id, ours.owner, "k").await;
    assert_eq!(by_key.expect("it is there"), *known);
}

async fn a_key_belongs_to_one_request_of_its_user(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (a, b) = (linked(&ours, "a").await, linked(&ours, "b").await);
    let operation = asked(&ours, a, "k").await;
    place(&ours, 1, &operation).await.expect("it is new");
    let mut other = operation.clone();
    other.digest = Digest::of(b"something else");
    let elsewhere = asked(&ours, b, "k").await;
    for again in [other, elsewhere] {
        let placed = place(&ours, 1, &again).await;
        assert!(matches!(placed, Err(StoreError::Conflict(_))), "{placed:?}");
    }
}

async fn an_operation_of_a_caller_is_not_placed_on_a_runner_that_is_gone_or_under_another_epoch(
    fixture: Fixture,
) {
    let ours = fixture.tenant().await;
    let runner = linked(&ours, "a").await;
    let operation = asked(&ours, runner, "k").await;
    let placed = place(&ours, 2, &operation).await;
    let newest = Epoch(1);
    assert!(
        matches!(placed, Err(StoreError::StaleEpoch { newest: of_now, .. }) if of_now == newest),
        "{placed:?}"
    );
    let claim = link_claim(2, 0);
    let claimed = ours.db.link_claim(ours.id, runner, &claim, at(5)).await;
    claimed.expect("the runner is there");
    let placed = place(&ours, 1, &operation).await;
    assert!(matches!(placed, Ok(Placed::OtherIncarnation)), "{placed:?}");
}

async fn the_end_of_a_callers_operation_closes_it(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let runner = linked(&ours, "a").await;
    let operation = asked(&ours, runner, "k").await;
    place(&ours, 1, &operation).await.expect("it is new");
    let settle = async |outcome: &Outcome| {
        let settled = ours
            .db
            .settle_operation(ours.id, operation.id, outcome, at(6));
        settled.await.expect("it is there")
    };
    let first = end_of("first");
    assert_eq!(settle(&first).await, Settlement::First);
    assert_eq!(settle(&end_of("second")).await, Settlement::Already(first));
    let row = ours.db.operation(ours.id, operation.id).await;
    let row = row.expect("it is there");
    assert_eq!(
        (row.closed_at, row.state()),
        (Some(at(6)), OperationState::Settled)
    );
}

async fn what_only_the_runner_keeps_is_closed_once_it_was_read_or_after_a_while(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let runner = linked(&ours, "a").await;
    let mut ids = Vec::new();
    for key in ["read", "old", "new"] {
        let operation = NewCallerOperation {
            kept: false,
            ..asked(&ours, runner, key).await
        };
        place(&ours, 1, &operation).await.expect("it is new");
        ids.push(operation.id);
    }
    let db = &ours.db;
    for (id, ended) in ids.iter().zip([6, 7, 8]) {
        let outcome = end_of("1");
        let settled = db.settle_operation(ours.id, *id, &outcome, at(ended));
        settled.await.expect("it is there");
    }
    let closed = async || {
        let mut closed = Vec::new();
        for id in &ids {
            let row = db.operation(ours.id, *id).await.expect("it is there");
            closed.push(row.closed_at);
        }
        closed
    };
    assert_eq!(closed().await, [None, None, None]);
    let read = db.close_caller_operation(ours.id, ids[0], at(9)).await;
    read.expect("it is there");
    db.close_unread(at(8), at(10)).await.expect("it answers");
    assert_eq!(closed().await, [Some(at(9)), Some(at(10)), None]);
}

async fn what_callers_have_open_is_found_again_with_its_request(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let runner = linked(&ours, "a").await;
    let (ended, open) = (
        asked(&ours, runner, "ended").await,
        asked(&ours, runner, "open").await,
    );
    for operation in [&ended, &open] {
        place(&ours, 1, operation).await.expect("it is new");
    }
    let outcome = end_of("1");
    let end = ours.db.settle_operation(ours.id, ended.id, &outcome, at(6));
    end.await.expect("it is there");
    let found = ours.db.open_caller_operations(REPLICA, None).await;
    let [found] = &found.expect("it answers")[..] else {
        panic!("one is open")
    };
    assert_eq!((found.tenant, found.row.id), (ours.id, open.id));
    assert_eq!((&*found.request, found.epoch), (&*open.request, Epoch(1)));
    let behind = ours.db.open_caller_operations(REPLICA, Some(open.id)).await;
    assert_eq!(behind.expect("it answers"), []);
    let other = ReplicaId::from_u128(u128::MAX);
    let elsewhere = ours.db.open_caller_operations(other, None).await;
    assert_eq!(
        elsewhere.expect("it answers"),
        [],
        "its link is at another server"
    );
}

async fn what_a_caller_ran_is_removed_only_once_it_has_ended_and_is_closed(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let runner = linked(&ours, "a").await;
    let (old, new, open) = (
        asked(&ours, runner, "old").await,
        asked(&ours, runner, "new").await,
        asked(&ours, runner, "open").await,
    );
    let unread = NewCallerOperation {
        kept: false,
        ..asked(&ours, runner, "unread").await
    };
    for operation in [&old, &new, &open, &unread] {
        place(&ours, 1, operation).await.expect("it is new");
    }
    for (operation, ended) in [(&old, 6), (&unread, 6), (&new, 8)] {
        let outcome = end_of("1");
        let settled = db.settle_operation(ours.id, operation.id, &outcome, at(ended));
        settled.await.expect("it is there");
    }
    let ended = db.ended_caller_operations(at(8)).await.expect("it answers");
    let ours_ended: Vec<_> = ended
        .iter()
        .filter(|(tenant, _)| *tenant == ours.id)
        .collect();
    assert_eq!(ours_ended, [&(ours.id, old.id)]);

    for operation in [&old, &open, &unread] {
        let removed = db.remove_caller_operation(ours.id, operation.id);
        removed.await.expect("it answers");
    }
    let is_there = async |operation: &NewCallerOperation| {
        db.caller_operation(ours.id, operation.id).await.is_ok()
    };
    assert!(!is_there(&old).await);
    assert!(is_there(&new).await && is_there(&open).await && is_there(&unread).await);
}

async fn a_user_sees_what_the_user_and_the_users_sessions_asked_for_and_nothing_else(
    fixture: Fixture,
) {
    let (ours, theirs) = (fixture.tenant().await, fixture.tenant().await);
    let runner = linked(&ours, "a").await;
    let operation = asked(&ours, runner, "k").await;
    place(&ours, 1, &operation).await.expect("it is new");
    let work = ours.at_work().await;
    let call = ours
        .db
        .place_operation(ours.id, work.epoch, &work.operation, at(5));
    call.await.expect("the turn runs");
    let all = OperationFilter {
        limit: 10,
        ..OperationFilter::default()
    };
    let listed = ours.db.operations_of_user(ours.id, ours.owner, &all).await;
    let listed = listed.expect("it answers");
    let ids: Vec<_> = listed.iter().map(|one| one.row.id).collect();
    assert_eq!(ids, [work.operation.id, operation.id], "the newest first");
    assert_eq!(listed[1].label, operation.label);
    assert_eq!(listed[1].runner_name, "a");
    assert_eq!(listed[1].user_name.as_deref(), Some("owner"));
    assert_eq!(listed[0].user_name, None);
    for (tenant, user) in [(theirs.id, theirs.owner), (ours.id, theirs.owner)] {
        let seen = ours.db.operations_of_user(tenant, user, &all).await;
        assert_eq!(seen.expect("it answers"), []);
        let one = ours.db.operation_of_user(tenant, user, operation.id).await;
        assert!(matches!(one, Err(StoreError::NotFound)), "{one:?}");
    }
    let one = OperationFilter {
        prefix: operation.id.to_string(),
        open_only: true,
        runner: Some(runner),
        after: None,
        limit: 10,
    };
    let found = ours.db.operations_of_user(ours.id, ours.owner, &one).await;
    assert_eq!(found.expect("it answers"), listed[1..]);
    for (runner, of_it) in [(runner, &listed[1..]), (work.runner, &listed[..1])] {
        let there = OperationFilter {
            runner: Some(runner),
            ..all.clone()
        };
        let found = ours
            .db
            .operations_of_user(ours.id, ours.owner, &there)
            .await;
        assert_eq!(found.expect("it answers"), of_it);
    }
}

async fn what_a_caller_has_open_on_a_revoked_runner_is_lost(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let runner = linked(&ours, "a").await;
    let operation = asked(&ours, runner, "k").await;
    place(&ours, 1, &operation).await.expect("it is new");
    let late = ours
        .db
        .revoke_runner(ours.id, runner, ours.owner, at(7))
        .await;
    assert_eq!(late.expect("the runner is there"), [], "no log has grown");
    let row = ours.db.operation(ours.id, operation.id).await;
    let outcome = row.expect("it is there").outcome.expect("it is lost");
    let lost = Outcome::Refused(lost_to_revocation());
    assert_eq!(outcome.decode().expect("it is ours"), lost);
}
