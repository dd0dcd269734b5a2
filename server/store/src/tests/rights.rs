//! Roles, removal and sharing.

use shared_types::{Digest, Epoch, RunnerId, UserId, event::StopReason};

use super::{
    callers::{asked, linked},
    fixture::{Fixture, Tenant, at, end_of, new_credential, unique},
};
use crate::{
    CredentialKind, NewCallerOperation, NewSignInCode, NewUser, Placed, Role, SharedWith,
    StoreError, WorkItem,
};

on_every_backend!(
    of_two_owners_who_go_at_once_one_stays,
    what_a_removed_person_had_is_worth_nothing_and_the_name_is_free,
    a_runner_is_seen_by_its_owner_and_by_whom_it_is_shared_with,
    a_turn_is_told_how_its_user_stands_to_its_runner_by_now,
    what_runs_where_its_user_has_no_right_any_more_is_marked_and_nothing_new_is_placed,
    what_is_placed_while_a_runner_is_unshared_is_refused_or_marked,
);

pub(super) async fn invited(ours: &Tenant, name: &str, role: Role) -> UserId {
    let id = UserId::from_u128(unique());
    let new = NewUser {
        id,
        name: name.to_owned(),
    };
    let code = NewSignInCode {
        hash: Digest::of(name.as_bytes()),
        expires_at: at(600),
    };
    let by = ours.owner.into();
    let row = ours.db.invite(ours.id, &new, role, &code, &by, at(1)).await;
    row.expect("the name is free").id
}

async fn of_two_owners_who_go_at_once_one_stays(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let other = invited(&ours, "other", Role::Owner).await;
    let by = ours.owner.into();
    let (left, lowered) = tokio::join!(
        db.remove_person(ours.id, other, &by, at(2)),
        db.change_role(ours.id, ours.owner, Role::Member, &by, at(2)),
    );
    assert!(left.is_ok() != lowered.is_ok(), "{left:?} {lowered:?}");
    let refused = left.and(lowered).expect_err("one is refused");
    assert!(
        refused.to_string().contains("the last owner stays one"),
        "{refused}"
    );
    let people = db.people(ours.id, "", 10).await.expect("it answers");
    let owners = people
        .iter()
        .filter(|person| person.user.role == Role::Owner);
    assert_eq!(owners.count(), 1);
}

async fn what_a_removed_person_had_is_worth_nothing_and_the_name_is_free(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let ann = invited(&ours, "ann", Role::Member).await;
    let key = new_credential(CredentialKind::ApiKey);
    db.insert_credential(ours.id, ann, &key, at(2))
        .await
        .expect("she is there");
    let found = db.subject_by_hash(&key.hash).await.expect("it answers");
    assert_eq!(found.expect("her key").tenant, ours.id);
    let by = ours.owner.into();
    db.remove_person(ours.id, ann, &by, at(3))
        .await
        .expect("she is there");
    assert_eq!(
        db.subject_by_hash(&key.hash).await.expect("it answers"),
        None
    );
    let code = Digest::of(b"ann");
    let sign_in = new_credential(CredentialKind::SignIn);
    let spent = db.redeem_sign_in_code(&code, &sign_in, at(4)).await;
    assert!(spent.is_err(), "her invitation is over");
    let again = db.remove_person(ours.id, ann, &by, at(4)).await;
    assert!(matches!(again, Err(StoreError::NotFound)));
    let audit = db.audit_after(ours.id, 0, 100).await.expect("it answers");
    assert_eq!(
        audit.last().map(|row| row.kind.as_str()),
        Some("person.removed")
    );
    let next = NewUser {
        id: UserId::from_u128(9),
        name: "ann".to_owned(),
    };
    let code = NewSignInCode {
        hash: Digest::of(b"next"),
        expires_at: at(600),
    };
    let next = db
        .invite(ours.id, &next, Role::Viewer, &code, &by, at(5))
        .await;
    assert_eq!(next.expect("the name is free").id, UserId::from_u128(9));
}

async fn a_runner_is_seen_by_its_owner_and_by_whom_it_is_shared_with(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let runner = ours.runner("laptop").await;
    let [ann, bob] = [
        invited(&ours, "ann", Role::Member).await,
        invited(&ours, "bob", Role::Member).await,
    ];
    let by = ours.owner.into();
    let seen = async || {
        let mut seen = Vec::new();
        for user in [ours.owner, ann, bob] {
            let listed = db
                .runners_of_user(ours.id, user, "", 10)
                .await
                .expect("it answers");
            let access = db
                .runner_access(ours.id, runner, user)
                .await
                .expect("it is there");
            assert_eq!(listed.len() == 1, access.shared || access.owner == user);
            seen.push(listed.len());
        }
        seen
    };
    assert_eq!(seen().await, [1, 0, 0]);
    db.share_runner(ours.id, runner, SharedWith::Person(ann), &by, at(5))
        .await
        .expect("it is shared");
    assert_eq!(seen().await, [1, 1, 0]);
    db.share_runner(ours.id, runner, SharedWith::Everyone, &by, at(6))
        .await
        .expect("it is shared");
    assert_eq!(seen().await, [1, 1, 1]);
    db.unshare_runner(ours.id, runner, Some(SharedWith::Everyone), &by, at(7))
        .await
        .expect("it is");
    assert_eq!(seen().await, [1, 1, 0]);
    db.take_runner(ours.id, runner, &bob.into(), at(8))
        .await
        .expect("it is taken");
    assert_eq!(seen().await, [0, 1, 1]);
    db.remove_person(ours.id, bob, &by, at(9))
        .await
        .expect("he is there");
    assert_eq!(
        seen().await,
        [0, 0, 1],
        "his shares have ended; his row still names it"
    );
    let shares = db
        .shares_of_runner(ours.id, runner)
        .await
        .expect("it is there");
    assert_eq!(
        (shares.owner, shares.everyone, shares.people.len()),
        (None, false, 0)
    );
}

async fn a_turn_is_told_how_its_user_stands_to_its_runner_by_now(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let runner = ours.runner("laptop").await;
    let other = invited(&ours, "other", Role::Owner).await;
    let by = other.into();
    let chosen = db.choose_first_runner(ours.id, ours.owner, runner, at(1));
    chosen.await.expect("it is there");
    let session = ours.session().await;
    ours.send(session, "run the tests").await;
    let turn = ours.claim(session).await.turn.id;
    let stands = async || {
        let fleet = db.fleet(ours.id, turn).await.expect("it was claimed");
        let access = fleet.access.expect("a runner is chosen");
        (fleet.role, access.owner == ours.owner, access.shared)
    };
    assert_eq!(stands().await, (Some(Role::Owner), true, false));

    let taken = db.take_runner(ours.id, runner, &by, at(2));
    taken.await.expect("it is taken");
    assert_eq!(stands().await, (Some(Role::Owner), false, false));
    for with in [SharedWith::Person(ours.owner), SharedWith::Everyone] {
        let shared = db.share_runner(ours.id, runner, with, &by, at(3));
        shared.await.expect("it is shared");
        assert_eq!(stands().await, (Some(Role::Owner), false, true));
        let unshared = db.unshare_runner(ours.id, runner, Some(with), &by, at(4));
        unshared.await.expect("it was shared");
        assert_eq!(stands().await, (Some(Role::Owner), false, false));
    }

    let lowered = db.change_role(ours.id, ours.owner, Role::Member, &by, at(5));
    lowered.await.expect("another owner is left");
    assert_eq!(stands().await.0, Some(Role::Member));
    let removed = db.remove_person(ours.id, ours.owner, &by, at(6));
    removed.await.expect("another owner is left");
    assert_eq!(stands().await, (None, false, false));
}

/// An operation of the user's on the runner, not placed yet.
async fn of(ours: &Tenant, user: UserId, runner: RunnerId) -> NewCallerOperation {
    let operation = asked(ours, runner, &unique().to_string()).await;
    NewCallerOperation { user, ..operation }
}

async fn place(ours: &Tenant, operation: &NewCallerOperation) -> Placed {
    let placed = ours
        .db
        .place_caller_operation(ours.id, Epoch(1), operation, at(4));
    placed.await.expect("it answers")
}

/// How a right ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Unshared(Option<SharedWith>),
    Taken,
    OwnerRemoved,
    Role(Role),
}

async fn what_runs_where_its_user_has_no_right_any_more_is_marked_and_nothing_new_is_placed(
    fixture: Fixture,
) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let by = ours.owner.into();
    let shared = Some(SharedWith::Everyone);
    for (case, (role, shared, end)) in [
        (Role::Member, shared, End::Unshared(None)),
        (Role::Member, shared, End::Unshared(shared)),
        (Role::Member, shared, End::OwnerRemoved),
        (Role::Member, shared, End::Role(Role::Viewer)),
        (Role::Member, None, End::Taken),
        (Role::Admin, None, End::Role(Role::Member)),
    ]
    .into_iter()
    .enumerate()
    {
        let ann = invited(&ours, &format!("ann-{case}"), role).await;
        let bob = invited(&ours, &format!("bob-{case}"), Role::Member).await;
        let runner = linked(&ours, &format!("laptop-{case}")).await;
        let whose = match end {
            End::Taken => ann,
            _ => bob,
        };
        let taken = db.take_runner(ours.id, runner, &whose.into(), at(3)).await;
        taken.expect("it is there");
        if let Some(with) = shared {
            let shared = db.share_runner(ours.id, runner, with, &by, at(3));
            shared.await.expect("it is there");
        }
        let [runs, owners, later] = [
            of(&ours, ann, runner).await,
            of(&ours, whose, runner).await,
            of(&ours, ann, runner).await,
        ];
        assert_eq!(place(&ours, &runs).await, Placed::New { event: None });
        assert_eq!(place(&ours, &owners).await, Placed::New { event: None });
        match end {
            End::Unshared(with) => db.unshare_runner(ours.id, runner, with, &by, at(5)).await,
            End::Taken => db.take_runner(ours.id, runner, &by, at(5)).await,
            End::OwnerRemoved => db.remove_person(ours.id, bob, &by, at(5)).await,
            End::Role(role) => db.change_role(ours.id, ann, role, &by, at(5)).await,
        }
        .expect("they are there");

        let access = db.operation_access(ours.id, runs.id).await;
        assert!(!access.expect("it is there").holds, "{end:?}");
        let row = db.operation(ours.id, runs.id).await.expect("it is there");
        assert_eq!(row.access_ended_at, Some(at(5)), "{end:?}");
        let stopped = row.stopped.expect("it has to stop");
        assert_eq!(stopped.why, StopReason::AccessEnded);
        let to_stop = db.work_to_stop(at(6)).await.expect("it answers");
        let to_stop: Vec<_> = to_stop.iter().filter(|one| one.tenant == ours.id).collect();
        let is_found = to_stop
            .iter()
            .any(|one| one.work == WorkItem::Operation(runs.id) && one.by == ours.owner);
        assert!(is_found, "{end:?}: {to_stop:?}");
        assert_eq!(place(&ours, &later).await, Placed::NotAllowed, "{end:?}");
        if matches!(end, End::Unshared(_) | End::Role(_)) {
            let owners = db.operation_access(ours.id, owners.id).await;
            assert!(owners.expect("it is there").holds, "the owner's goes on");
        }
        for one in [runs.id, owners.id] {
            let end = end_of("1");
            let settled = db.settle_operation(ours.id, one, &end, at(7));
            settled.await.expect("it is there");
        }
        let access = db.operation_access(ours.id, runs.id).await;
        assert!(!access.expect("it is there").holds, "also after its end");
    }
}

async fn what_is_placed_while_a_runner_is_unshared_is_refused_or_marked(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let ann = invited(&ours, "ann", Role::Member).await;
    let (by, with) = (ours.owner.into(), SharedWith::Person(ann));
    for round in 0..20 {
        let runner = linked(&ours, &format!("laptop-{round}")).await;
        let shared = db.share_runner(ours.id, runner, with, &by, at(3));
        shared.await.expect("it is there");
        let operation = of(&ours, ann, runner).await;
        let (placed, unshared) = tokio::join!(
            place(&ours, &operation),
            db.unshare_runner(ours.id, runner, Some(with), &by, at(5)),
        );
        unshared.expect("it is there");
        if placed != Placed::NotAllowed {
            let row = db.operation(ours.id, operation.id).await;
            let marked = row.expect("it was placed").access_ended_at;
            assert_eq!(marked, Some(at(5)), "round {round}: {placed:?}");
        }
    }
}
