use super::fixture::{Fixture, Tenant, at, heard_at, link_claim};
use crate::{Placed, StoreCounts, TenantCounts};

on_every_backend!(
    the_counts_tell_what_there_is_now_of_all_tenants,
    a_turn_behind_another_one_of_its_session_waits_for_no_worker,
);

async fn counts(fixture: &Fixture) -> StoreCounts {
    let version = link_claim(1, 0).hello.software_version;
    fixture.db.counts(&version).await.expect("it answers")
}

async fn the_counts_tell_what_there_is_now_of_all_tenants(fixture: Fixture) {
    assert_eq!(counts(&fixture).await, StoreCounts::default());
    let (ours, theirs) = (fixture.tenant().await, fixture.tenant().await);
    let works = [ours.at_work().await, theirs.at_work().await];
    for (tenant, work) in [&ours, &theirs].into_iter().zip(&works) {
        let placed = tenant
            .db
            .place_operation(tenant.id, work.epoch, &work.operation, at(4));
        assert!(matches!(placed.await, Ok(Placed::New { .. })));
    }
    let there = StoreCounts {
        operations_open: 2,
        runners_online: 2,
        runners_of_version: 2,
        ..StoreCounts::default()
    };
    assert_eq!(counts(&fixture).await, there);

    let row = ours.db.runner(ours.id, works[0].runner).await;
    let link = row.expect("it is there").generation;
    let ended = ours
        .db
        .link_ended(ours.id, works[0].runner, heard_at(link, at(9), 0));
    assert!(ended.await.expect("it answers"));
    let away = StoreCounts {
        operations_unknown: 1,
        runners_online: 1,
        runners_offline: 1,
        runners_of_version: 1,
        ..there
    };
    assert_eq!(counts(&fixture).await, away);
    for (tenant, online) in [(&ours, 0), (&theirs, 1)] {
        let counts = fixture.db.counts_of_tenant(tenant.id).await;
        let own = TenantCounts {
            runners_online: online,
            runners_away: 1 - online,
            operations_open: 1,
        };
        assert_eq!(counts.expect("it answers"), own);
    }
    let other = fixture.db.counts("another").await.expect("it answers");
    assert_eq!(other.runners_of_version, 0);
}

async fn a_turn_behind_another_one_of_its_session_waits_for_no_worker(fixture: Fixture) {
    let ours: Tenant = fixture.tenant().await;
    let session = ours.session().await;
    ours.send(session, "first").await;
    ours.send(session, "second").await;
    let before = counts(&fixture).await;
    assert_eq!(before.turns_queued, 2);
    assert!(before.oldest_queued.is_some());
    ours.claim(session).await;
    let behind = counts(&fixture).await;
    assert_eq!((behind.turns_queued, behind.oldest_queued), (0, None));
}
