//! What the holder of a key that is not welcome can use up.

use super::*;

/// More than the table of spent challenges once held.
const REQUESTS: usize = 70_000;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "signs 70 000 requests: minutes without optimization"]
async fn however_much_a_removed_runner_asks_others_are_let_in() {
    is_flooded(REQUESTS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_removed_runner_asks_leaves_nothing_behind() {
    is_flooded(200).await;
}

async fn is_flooded(requests: usize) {
    let fixture = Fixture::practice().await;
    let enrolment = &fixture.app.enrolment;
    let removed = Peer::enrol(&fixture).await;
    let gone = fixture.app.runners.remove(&fixture.ctx, removed.runner);
    gone.await.expect("it is known");
    let other = Peer::enrol(&fixture).await;
    let before = count_of_rows(&fixture).await;
    for _ in 0..requests {
        let answer = enrolment.authenticate(&removed.signed(&fixture, 0)).await;
        assert!(answer.is_err_and(|refused| refused.dismissal.is_some()));
    }
    // The refusals are told, counted by the minute.
    let told = count_of_rows(&fixture).await - before;
    assert!(told <= 100, "{told} rows");
    let (_, state) = renewed(&fixture, &other, 0).await;
    assert_eq!(state, 1);
}

async fn count_of_rows(fixture: &Fixture) -> usize {
    let audit = fixture.app.store.audit_after(fixture.ctx.tenant, 0, 1000);
    audit.await.expect("it answers").len()
}
