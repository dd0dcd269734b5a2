use server_records::{Duty, IfRunning, SessionKey};
use shared_types::{Digest, ReplicaId, Timestamp};

use super::fixture::{Fixture, REPLICA, Tenant, at, heard_at, link_claim, this_replica, usual};
use crate::{OtherReplica, Renewed, StoreError, ThisReplica};

on_every_backend!(
    a_turn_is_taken_over_only_from_a_replica_that_is_gone,
    a_replica_that_starts_ends_those_of_its_own_place_alone,
    a_replica_that_renews_is_not_ended_and_one_that_was_ended_comes_back,
    of_several_replicas_one_counts_silence_and_another_one_only_after_it,
    a_replica_with_another_identity_is_refused_beside_a_live_one,
    the_salt_of_a_replica_is_known_as_long_as_it_lives,
    servers_that_share_a_database_go_by_its_clock,
    a_turn_at_another_replica_is_found_with_the_address_of_that,
    a_replica_hears_at_its_renewal_that_it_is_to_drain_also_if_its_row_was_removed,
    the_links_and_turns_of_each_replica_are_counted,
    a_turn_that_was_let_go_of_is_claimed_by_any_replica_and_its_worker_is_refused,
);

const OTHER: ReplicaId = ReplicaId::from_u128(2);

async fn start(ours: &Tenant, replica: ReplicaId, place: &str) -> u64 {
    let started = ours
        .db
        .start_replica(&this_replica(replica, place), at(1))
        .await;
    started.expect("it answers")
}

async fn renew(
    ours: &Tenant,
    replica: ReplicaId,
    place: &str,
    draining_since: Option<Timestamp>,
) -> Renewed {
    let row = this_replica(replica, place);
    let renewed = ours.db.renew_replica(&row, draining_since, at(2)).await;
    renewed.expect("it answers")
}

/// Another replica that lives, also on a database that is a file.
async fn lives(ours: &Tenant, replica: ReplicaId) -> Vec<OtherReplica> {
    renew(ours, replica, "elsewhere", None).await.others
}

async fn a_turn_is_taken_over_only_from_a_replica_that_is_gone(fixture: Fixture) {
    let ours = fixture.tenant().await;
    start(&ours, REPLICA, "here").await;
    lives(&ours, OTHER).await;
    let session = ours.at_work().await.session;
    let claim = async || {
        let claimed =
            ours.db
                .claim_turn(ours.id, session, OTHER, IfRunning::TakeOver, usual(), at(4));
        claimed.await.expect("it answers")
    };
    assert_eq!(claim().await, None, "its worker lives");
    let ended = ours.db.end_replica(REPLICA, None).await;
    assert!(ended.expect("it answers"));
    assert!(claim().await.is_some());
}

async fn a_replica_that_starts_ends_those_of_its_own_place_alone(fixture: Fixture) {
    let ours = fixture.tenant().await;
    start(&ours, REPLICA, "here").await;
    lives(&ours, OTHER).await;
    let (here, elsewhere) = (ours.runner("a").await, ours.runner("b").await);
    ours.link(here, at(2)).await;
    let mut claim = link_claim(1, 0);
    claim.replica = OTHER;
    let linked = ours.db.link_claim(ours.id, elsewhere, &claim, at(2)).await;
    linked.expect("the runner is there");
    let newer = ReplicaId::from_u128(3);
    let gone = start(&ours, newer, "here").await;
    let online = async |runner| {
        let row = ours.db.runner(ours.id, runner).await;
        row.expect("it is there").link.is_some()
    };
    assert!(!online(here).await);
    // A file has one server.
    assert_eq!(
        (gone, online(elsewhere).await),
        match ours.db.is_shared() {
            true => (1, true),
            false => (2, false),
        }
    );
}

async fn a_replica_that_renews_is_not_ended_and_one_that_was_ended_comes_back(fixture: Fixture) {
    let ours = fixture.tenant().await;
    start(&ours, REPLICA, "here").await;
    lives(&ours, OTHER).await;
    let seen = async || renew(&ours, REPLICA, "here", None).await.others;
    let [other] = seen().await[..] else {
        panic!("{:?}", seen().await)
    };
    lives(&ours, OTHER).await;
    let end = async |other: OtherReplica| {
        let ended = ours.db.end_replica(other.id, Some(other.renewals)).await;
        ended.expect("it answers")
    };
    assert!(!end(other).await, "it was renewed since");
    let [other] = seen().await[..] else {
        panic!("{:?}", seen().await)
    };
    assert!(end(other).await);
    assert_eq!(seen().await, []);
    lives(&ours, OTHER).await;
    assert_eq!(seen().await.len(), 1, "it lived all the same");
}

async fn of_several_replicas_one_counts_silence_and_another_one_only_after_it(fixture: Fixture) {
    let ours = fixture.tenant().await;
    start(&ours, REPLICA, "here").await;
    lives(&ours, OTHER).await;
    let work = ours.at_work().await;
    let placed = ours
        .db
        .place_operation(ours.id, work.epoch, &work.operation, at(4));
    placed.await.expect("the turn runs");
    let link = ours.db.runner(ours.id, work.runner).await;
    let generation = link.expect("it is there").generation;
    let ended = ours
        .db
        .link_ended(ours.id, work.runner, heard_at(generation, at(5), 0));
    assert!(ended.await.expect("it answers"));
    let hour = std::time::Duration::from_secs(3600);
    let take = async |replica| {
        let taken = ours.db.take_silence(replica).await;
        taken.expect("it answers")
    };
    let count = async |replica| {
        let counted = ours.db.count_silence(replica, hour).await;
        counted.expect("it answers");
    };
    let due = async || {
        let due = ours.db.lose_silent(2 * hour, at(6)).await;
        due.expect("it answers").0
    };
    assert_eq!(take(OTHER).await, Duty::Begun);
    assert_eq!(take(REPLICA).await, Duty::OfAnother);
    assert_eq!(take(OTHER).await, Duty::Continued);
    count(OTHER).await;
    count(OTHER).await;
    for _ in 0..3 {
        count(REPLICA).await;
    }
    assert_eq!(due().await, 0, "only what the other one counts is counted");
    let ended = ours.db.end_replica(OTHER, None).await;
    assert!(ended.expect("it answers"));
    assert_eq!(take(REPLICA).await, Duty::Begun);
    assert_eq!(take(OTHER).await, Duty::OfAnother, "it lives all the same");
    count(OTHER).await;
    assert_eq!(due().await, 0);
    count(REPLICA).await;
    assert_eq!(due().await, 1);
}

async fn a_replica_with_another_identity_is_refused_beside_a_live_one(fixture: Fixture) {
    let ours = fixture.tenant().await;
    start(&ours, REPLICA, "here").await;
    let stranger = ThisReplica {
        identity: Digest::of(b"another identity"),
        ..this_replica(OTHER, "elsewhere")
    };
    let started = ours.db.start_replica(&stranger, at(2)).await;
    match ours.db.is_shared() {
        true => {
            let why = started.expect_err("runners trust one").to_string();
            assert!(why.contains("another identity key"), "{why}");
            assert_eq!(lives(&ours, REPLICA).await, [], "it has no row");
            let ended = ours.db.end_replica(REPLICA, None).await;
            assert!(ended.expect("it answers"));
            let started = ours.db.start_replica(&stranger, at(3)).await;
            started.expect("it is the only one");
        }
        // A file has one server.
        false => drop(started.expect("it is the only one")),
    }
}

async fn servers_that_share_a_database_go_by_its_clock(fixture: Fixture) {
    let (first, second) = (fixture.db.database_time(), fixture.db.database_time());
    let (first, second) = (first.await, second.await);
    let (first, second) = (first.expect("it answers"), second.expect("it answers"));
    assert_eq!(first.is_some(), fixture.db.is_shared());
    assert!(first <= second, "{first:?} {second:?}");
}

async fn the_salt_of_a_replica_is_known_as_long_as_it_lives(fixture: Fixture) {
    let ours = fixture.tenant().await;
    start(&ours, REPLICA, "here").await;
    let salt = async || {
        let salt = ours.db.challenge_salt(REPLICA).await;
        salt.expect("it answers")
    };
    let made = this_replica(REPLICA, "here").challenge_salt;
    assert_eq!(salt().await, Some(made));
    let ended = ours.db.end_replica(REPLICA, None).await;
    assert!(ended.expect("it answers"));
    assert_eq!(salt().await, None);
    lives(&ours, REPLICA).await;
    assert_eq!(salt().await, Some(made), "it lived all the same");
}

async fn a_turn_at_another_replica_is_found_with_the_address_of_that(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let session = ours.at_work().await.session;
    let of = SessionKey {
        tenant: ours.id,
        session,
    };
    let held = async |here| {
        let held = ours.db.turns_held_elsewhere(here, [of]).await;
        held.expect("it answers")
    };
    let lives = async |address: Option<&str>| {
        let row = ThisReplica {
            address: address.map(str::to_owned),
            ..this_replica(REPLICA, "here")
        };
        ours.db
            .start_replica(&row, at(1))
            .await
            .expect("it answers");
    };
    lives(None).await;
    assert_eq!(held(OTHER).await, [], "it answers no others");
    lives(Some("a.example:7001")).await;
    assert_eq!(held(REPLICA).await, []);
    let [turn] = &held(OTHER).await[..] else {
        panic!("one is held")
    };
    assert_eq!((turn.of, turn.replica), (of, REPLICA));
    assert_eq!(turn.address, "a.example:7001");
    let ended = ours.db.end_replica(REPLICA, None).await;
    assert!(ended.expect("it answers"));
    assert_eq!(held(OTHER).await, []);
}

async fn a_replica_hears_at_its_renewal_that_it_is_to_drain_also_if_its_row_was_removed(
    fixture: Fixture,
) {
    let ours = fixture.tenant().await;
    let drain = async |since| {
        let drained = ours.db.drain_replica(REPLICA, since).await;
        drained.expect("it answers")
    };
    assert!(!drain(Some(at(3))).await, "there is none");
    start(&ours, REPLICA, "here").await;
    let renewed = renew(&ours, REPLICA, "here", None).await;
    assert_eq!((renewed.was_gone, renewed.draining_since), (false, None));
    assert!(drain(Some(at(3))).await && drain(Some(at(4))).await);
    let since = renew(&ours, REPLICA, "here", None).await.draining_since;
    assert_eq!(since, Some(at(3)), "the first wish counts");
    let ended = ours.db.end_replica(REPLICA, None).await;
    assert!(ended.expect("it answers"));
    let renewed = renew(&ours, REPLICA, "here", since).await;
    assert_eq!((renewed.was_gone, renewed.draining_since), (true, since));
    assert!(drain(None).await);
    let renewed = renew(&ours, REPLICA, "here", since).await;
    assert_eq!((renewed.was_gone, renewed.draining_since), (false, None));
}

async fn the_links_and_turns_of_each_replica_are_counted(fixture: Fixture) {
    let ours = fixture.tenant().await;
    start(&ours, REPLICA, "here").await;
    lives(&ours, OTHER).await;
    let counted = async || {
        let rows = ours.db.replicas().await.expect("it answers");
        let rows = rows.into_iter().map(|row| (row.id, row.links, row.turns));
        rows.collect::<Vec<_>>()
    };
    assert_eq!(counted().await, [(REPLICA, 0, 0), (OTHER, 0, 0)]);
    ours.at_work().await;
    let elsewhere = ours.runner("elsewhere").await;
    let mut claim = link_claim(1, 0);
    claim.replica = OTHER;
    let linked = ours.db.link_claim(ours.id, elsewhere, &claim, at(2)).await;
    linked.expect("the runner is there");
    assert_eq!(counted().await, [(REPLICA, 1, 1), (OTHER, 1, 0)]);
    let [row, _] = &ours.db.replicas().await.expect("it answers")[..] else {
        panic!("there are two")
    };
    let version = row.version.as_deref();
    assert_eq!((row.place.as_str(), version), ("here", Some("1.2.3")));
}

async fn a_turn_that_was_let_go_of_is_claimed_by_any_replica_and_its_worker_is_refused(
    fixture: Fixture,
) {
    let ours = fixture.tenant().await;
    start(&ours, REPLICA, "here").await;
    lives(&ours, OTHER).await;
    let work = ours.at_work().await;
    let claim = async || {
        let (session, take) = (work.session, IfRunning::TakeOver);
        let claimed = ours
            .db
            .claim_turn(ours.id, session, OTHER, take, usual(), at(4));
        claimed.await.expect("it answers")
    };
    let let_go = async || ours.db.let_go_turn(ours.id, work.turn, work.epoch).await;
    assert_eq!(claim().await, None, "its worker lives");
    let unheard = async || {
        let found = ours.db.queued_turns(at(1), None, 10).await;
        found.expect("it answers").len()
    };
    assert_eq!(unheard().await, 0);
    let_go().await.expect("it has the turn");
    assert_eq!(unheard().await, 1, "also where the hint was lost");
    let claimed = claim().await.expect("it is free");
    assert_eq!(claimed.interrupted, Some(work.epoch));
    let refused = let_go().await;
    assert!(
        matches!(refused, Err(StoreError::StaleEpoch { newest, .. }) if newest == claimed.epoch),
        "{refused:?}"
    );
}
