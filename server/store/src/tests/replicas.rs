use server_records::{Duty, IfRunning, SessionKey};
use shared_types::{Digest, ReplicaId};

use super::fixture::{Fixture, REPLICA, Tenant, at, heard_at, link_claim, this_replica, usual};
use crate::{OtherReplica, ThisReplica};

on_every_backend!(
    a_turn_is_taken_over_only_from_a_replica_that_is_gone,
    a_replica_that_starts_ends_those_of_its_own_place_alone,
    a_replica_that_renews_is_not_ended_and_one_that_was_ended_comes_back,
    of_several_replicas_one_counts_silence_and_another_one_only_after_it,
    a_replica_with_another_identity_is_refused_beside_a_live_one,
    the_salt_of_a_replica_is_known_as_long_as_it_lives,
    servers_that_share_a_database_go_by_its_clock,
    a_turn_at_another_replica_is_found_with_the_address_of_that,
);

const OTHER: ReplicaId = ReplicaId::from_u128(2);

async fn start(ours: &Tenant, replica: ReplicaId, place: &str) -> u64 {
    let started = ours
        .db
        .start_replica(&this_replica(replica, place), at(1))
        .await;
    started.expect("it answers")
}

/// Another replica that lives, also on a database that is a file.
async fn lives(ours: &Tenant, replica: ReplicaId) -> Vec<OtherReplica> {
    let renewed = ours
        .db
        .renew_replica(&this_replica(replica, "elsewhere"), at(1))
        .await;
    renewed.expect("it answers")
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
    let seen = async || {
        let others = ours
            .db
            .renew_replica(&this_replica(REPLICA, "here"), at(2))
            .await;
        others.expect("it answers")
    };
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
