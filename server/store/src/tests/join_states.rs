use shared_link::server::{TurnedAway, lost_to_restoration};
use shared_sandbox::Outcome;
use shared_types::Generation;

use super::fixture::{Fixture, REPLICA, at, heard_at, link_claim, new_runner, unique};
use crate::{ChallengeNumber, JoinState, Placed, ShownState};

on_every_backend!(
    a_join_state_that_a_link_has_left_behind_locks_the_runner_for_good,
    a_request_that_comes_late_or_twice_locks_nothing_and_changes_nothing,
    a_database_that_is_an_older_copy_takes_over_what_it_gave_since,
);

/// A state under a challenge that is newer than all before.
pub(super) fn shown(state: u64) -> ShownState {
    ShownState {
        state,
        is_ours: false,
        challenge: ChallengeNumber {
            replica: REPLICA,
            number: u64::try_from(unique()).expect("it counts from 100"),
        },
        known: None,
    }
}

async fn a_join_state_that_a_link_has_left_behind_locks_the_runner_for_good(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let db = &fixture.db;
    let row = db
        .enrol(&ours.join_token("").await, &new_runner("r"), at(1))
        .await;
    let runner = row.expect("the token is good").id;
    let renewed = async |state| {
        let renewed = db.renew_join_state(runner, shown(state), false, at(2));
        renewed.await.expect("it answers")
    };
    let used = async |state| {
        db.use_join_state(ours.id, runner, state)
            .await
            .expect("it answers")
    };
    assert_eq!(renewed(0).await, JoinState::Renewed(1));
    assert_eq!(
        renewed(0).await,
        JoinState::Renewed(1),
        "the answer may have been lost"
    );
    assert!(used(1).await);
    assert_eq!(renewed(1).await, JoinState::Renewed(2));
    assert!(!used(1).await, "a token of before the renewal");
    assert!(used(2).await);
    assert!(!used(2).await, "each state opens one link");
    let link = ours.link(runner, at(2)).await;
    assert_eq!(renewed(1).await, JoinState::Locked, "a copy");
    let heard = db.link_heard(ours.id, runner, heard_at(link.generation, at(3), 0));
    assert_eq!(heard.await.expect("it answers"), Some(TurnedAway::Locked));
    assert_eq!(renewed(2).await, JoinState::Locked, "the original as well");
    assert!(!used(2).await);
    let row = db.runner(ours.id, runner).await.expect("it is there");
    assert_eq!(row.locked_at, Some(at(2)));
    let audit = db.audit_after(ours.id, 0, 100).await.expect("it answers");
    assert_eq!(
        audit
            .iter()
            .filter(|row| row.kind == "runner.locked")
            .count(),
        1
    );
}

async fn a_request_that_comes_late_or_twice_locks_nothing_and_changes_nothing(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let runner = ours.runner("r").await;
    let late = shown(0);
    let renewed = async |shown| {
        let renewed = db.renew_join_state(runner, shown, false, at(2));
        renewed.await.expect("it answers")
    };
    let first = shown(0);
    assert_eq!(renewed(first).await, JoinState::Renewed(1));
    assert!(
        db.use_join_state(ours.id, runner, 1)
            .await
            .expect("it answers")
    );
    for again in [late, first] {
        assert_eq!(renewed(again).await, JoinState::Late);
    }
    assert_eq!(renewed(shown(1)).await, JoinState::Renewed(2));
    assert_eq!(renewed(late).await, JoinState::Late);
    assert_eq!(renewed(shown(0)).await, JoinState::Locked, "a copy");
}

async fn a_database_that_is_an_older_copy_takes_over_what_it_gave_since(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    let placed = db.place_operation(ours.id, work.epoch, &work.operation, at(2));
    assert!(matches!(placed.await, Ok(Placed::New { .. })));
    let renewed = async |shown, raised| {
        let renewed = db.renew_join_state(work.runner, shown, raised, at(3));
        renewed.await.expect("it answers")
    };
    let never = renewed(shown(8), false).await;
    assert_eq!(never, JoinState::NeverGiven, "the server did not sign it");
    let newer = ShownState {
        is_ours: true,
        ..shown(8)
    };
    assert_eq!(renewed(newer, false).await, JoinState::WentBack(9));
    let session = db.session(ours.id, work.session).await;
    let epoch = session.expect("it is there").epoch;
    assert!(epoch.0 >= work.epoch.0 + (1 << 32), "{epoch:?}");
    assert!(
        db.use_join_state(ours.id, work.runner, 9)
            .await
            .expect("it answers")
    );
    let row = db.runner(ours.id, work.runner).await;
    let row = row.expect("it is there");
    assert_eq!((row.went_back_at, row.locked_at), (Some(at(3)), None));
    // The same incarnation, and an operation that it does not list: it may have run meanwhile.
    let claim = link_claim(1, 0);
    let link = db.link_claim(ours.id, work.runner, &claim, at(4)).await;
    assert_eq!(link.expect("it is let in").generation, Generation(9));
    let stored = db.operation(ours.id, work.operation.id).await;
    let outcome = stored.expect("it is there").outcome.expect("it has one");
    let lost = Outcome::Refused(lost_to_restoration());
    assert_eq!(outcome.decode().expect("it is ours"), lost);
    let row = db.runner(ours.id, work.runner).await;
    assert!(!row.expect("it is there").loses_unlisted);
    let copy = ShownState {
        is_ours: true,
        ..shown(7)
    };
    assert_eq!(renewed(copy, true).await, JoinState::Locked);
    let audit = db.audit_after(ours.id, 0, 100).await.expect("it answers");
    let told = audit.iter().filter(|row| row.kind == "server.went_back");
    let told: Vec<_> = told.map(|row| row.subject.clone()).collect();
    assert_eq!(told, [work.runner.to_string()]);
}
