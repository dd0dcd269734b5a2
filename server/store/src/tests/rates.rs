//! The rates of users, over all replicas.

use shared_types::UserId;

use super::fixture::{Fixture, at};
use crate::TakenRate;

on_every_backend!(what_replicas_allow_adds_up_until_its_time_is_over);

async fn what_replicas_allow_adds_up_until_its_time_is_over(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let theirs = fixture.tenant().await;
    let of = |tenant: &super::fixture::Tenant, kind, seconds: i64| TakenRate {
        tenant: tenant.id,
        user: tenant.owner,
        kind,
        takes_us: seconds * 1_000_000,
    };
    let take = async |taken: &[TakenRate], now| {
        let taken = db.take_rates(taken, at(now)).await;
        taken.expect("it answers")
    };
    let (one, other) = (of(&ours, "new", 10), of(&theirs, "new", 7));
    let another_kind = of(&ours, "operation", 1);
    let all = [one.clone(), another_kind, other];
    assert_eq!(take(&all, 100).await, [at(110), at(101), at(107)]);
    assert_eq!(
        take(&[one.clone(), one.clone()], 105).await,
        [at(120), at(130)]
    );
    let back = TakenRate {
        takes_us: -10_000_000,
        ..one.clone()
    };
    assert_eq!(take(&[back], 106).await, [at(120)]);
    assert_eq!(take(std::slice::from_ref(&one), 500).await, [at(510)]);
    let another = TakenRate {
        user: UserId::from_u128(77),
        ..one
    };
    assert_eq!(take(&[another], 500).await, [at(510)]);
    assert_eq!(take(&[], 500).await, []);
}
