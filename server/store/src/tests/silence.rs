use std::time::Duration;

use shared_types::event::CallOutcome;

use super::fixture::{AtWork, Fixture, Tenant, at, call_ended, count_silence, heard_at};
use crate::Placed;

on_every_backend!(
    what_a_runner_has_open_is_lost_once_it_was_silent_for_too_long,
    the_silence_of_a_runner_is_counted_anew_after_each_link,
);

async fn place(ours: &Tenant, work: &AtWork) {
    let placed = ours
        .db
        .place_operation(ours.id, work.epoch, &work.operation, at(4));
    assert!(matches!(placed.await, Ok(Placed::New { .. })));
}

async fn what_a_runner_has_open_is_lost_once_it_was_silent_for_too_long(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (work, linked) = (ours.at_work().await, ours.at_work().await);
    for work in [&work, &linked] {
        place(&ours, work).await;
    }
    let end = [call_ended(work.turn, CallOutcome::Unknown)];
    db.append(ours.id, work.session, work.epoch, &end, at(5))
        .await
        .expect("it runs");
    let row = db.runner(ours.id, work.runner).await.expect("it is there");
    let ended = db.link_ended(ours.id, work.runner, heard_at(row.generation, at(10), 0));
    assert!(ended.await.expect("it answers"));
    let lose_after = async |seconds| {
        count_silence(db, Duration::from_secs(seconds)).await;
        // Far ahead, as a wall clock may be.
        let silent_for = Duration::from_secs(100);
        let lost = db.lose_silent(silent_for, at(1_000_000)).await;
        lost.expect("it answers")
    };
    let nothing = (0, vec![]);
    assert_eq!(lose_after(100).await, nothing, "it had a link before");
    assert_eq!(lose_after(99).await, nothing, "it may still come back");
    assert_eq!(
        lose_after(1).await,
        (1, vec![(work.operation.id, work.session)])
    );
    assert_eq!(lose_after(1).await, nothing, "once");
    let row = db.operation(ours.id, work.operation.id).await;
    assert!(row.expect("it is there").outcome.is_some());
    let row = db.operation(ours.id, linked.operation.id).await;
    assert_eq!(row.expect("it is there").outcome, None, "it has a link");
}

async fn the_silence_of_a_runner_is_counted_anew_after_each_link(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    place(&ours, &work).await;
    let unlink = async || {
        let row = db.runner(ours.id, work.runner).await.expect("it is there");
        let ended = db.link_ended(ours.id, work.runner, heard_at(row.generation, at(10), 0));
        assert!(ended.await.expect("it answers"));
    };
    let count = async |seconds| {
        count_silence(db, Duration::from_secs(seconds)).await;
    };
    let lost = async || {
        let silent_for = Duration::from_secs(100);
        let lost = db.lose_silent(silent_for, at(20)).await;
        lost.expect("it answers").0
    };
    unlink().await;
    count(7).await;
    count(100).await;
    // It comes back, and goes again, before anybody looks.
    ours.link(work.runner, at(11)).await;
    assert_eq!(lost().await, 0);
    unlink().await;
    assert_eq!(lost().await, 0);
    count(100).await;
    assert_eq!(lost().await, 0, "it had a link before");
    count(60).await;
    count(40).await;
    assert_eq!(lost().await, 1);
}
