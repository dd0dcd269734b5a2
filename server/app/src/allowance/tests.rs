use server_store::{NewTenant, NewUser, Store};
use shared_types::{CredentialId, Timestamp, clock::ManualClock};

use super::*;
use crate::{Role, Scopes};

fn of_user(user: u128) -> OpContext {
    OpContext {
        tenant: TenantId::from_u128(1),
        user: UserId::from_u128(user),
        credential: CredentialId::from_u128(1),
        role: Role::Member,
        scopes: Scopes::ALL,
        from: None,
        trace: None,
    }
}

fn allowance() -> (Allowance, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(0)));
    let limits = UserLimits {
        new_per_minute: 6,
        message_bytes_per_minute: 600,
        image_bytes_per_minute: 600,
        ..UserLimits::default()
    };
    (Allowance::new(limits, clock.clone()), clock)
}

fn wait(refused: Result<Allowed, AppError>) -> u64 {
    match refused.expect_err("it is too much") {
        AppError::OverRate { retry_after_s, .. } => retry_after_s,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_user_may_do_a_minutes_worth_at_once_and_then_as_time_goes_on() {
    let (allowance, clock) = allowance();
    let (us, them) = (of_user(1), of_user(2));
    for _ in 0..6 {
        allowance
            .one_more(&us)
            .expect("it is within a minute's worth");
    }
    assert_eq!(wait(allowance.one_more(&us)), 11);
    allowance.one_more(&them).expect("another user did nothing");
    let other = CredentialId::from_u128(2);
    let with_another_key = OpContext {
        credential: other,
        ..of_user(1)
    };
    assert_eq!(wait(allowance.one_more(&with_another_key)), 11);
    clock.advance(Duration::from_secs(10));
    allowance
        .one_more(&us)
        .expect("a sixth of a minute is over");
    assert_eq!(wait(allowance.one_more(&us)), 11);
}

#[test]
fn bytes_count_beside_and_what_came_to_nothing_is_given_back() {
    let (allowance, clock) = allowance();
    let us = of_user(1);
    allowance.one_more(&us).expect("it is the first");
    let first = allowance.message(&us, 400).expect("it is within");
    assert_eq!(wait(allowance.message(&us, 400)), 21);
    allowance.back(first);
    allowance
        .message(&us, 400)
        .expect("as if nothing had been sent");
    allowance.message(&us, 200).expect("that is just all of it");
    assert_eq!(wait(allowance.message(&us, 6000)), 61);
    clock.advance(Duration::from_secs(60));
    allowance
        .message(&us, 6000)
        .expect("a message above the bound may go alone");
}

#[test]
fn users_that_do_nothing_are_forgotten() {
    let (allowance, clock) = allowance();
    for user in 0..5000 {
        allowance
            .one_more(&of_user(user))
            .expect("each is the first");
        clock.advance(Duration::from_secs(1));
    }
    assert!(allowance.with(|users| users.len()) <= REMEMBERED);
}

#[test]
fn other_limits_count_from_then_on_for_all_who_share_them() {
    let (allowance, _) = allowance();
    let (us, shared) = (of_user(1), allowance.clone());
    for _ in 0..6 {
        allowance
            .one_more(&us)
            .expect("it is within a minute's worth");
    }
    shared.use_limits(UserLimits {
        new_per_minute: 1,
        ..allowance.limits()
    });
    assert_eq!(wait(allowance.one_more(&us)), 61);
    assert_eq!(allowance.limits().new_per_minute, 1);
}

/// Two replicas of one database, and their clock.
async fn two(store: &Store) -> ([Allowance; 2], OpContext, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(0)));
    let tenant = NewTenant {
        id: TenantId::from_u128(1),
        name: "home".to_owned(),
    };
    let owner = NewUser {
        id: UserId::from_u128(1),
        name: "owner".to_owned(),
    };
    let first = store.bootstrap(&tenant, &owner, clock.now());
    first.await.expect("it answers");
    let replica = || Allowance {
        news: Some(Arc::default()),
        ..Allowance::new(
            UserLimits {
                new_per_minute: 6,
                ..UserLimits::default()
            },
            clock.clone(),
        )
    };
    ([replica(), replica()], of_user(1), clock)
}

#[tokio::test]
async fn replicas_allow_together_what_one_would_over_a_longer_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(&folder.path().join("gantry.db")).await;
    let store = store.expect("a database");
    let ([here, there], us, clock) = two(&store).await;
    let tell = async || {
        for replica in [&here, &there] {
            replica.tell(&store).await.expect("the store answers");
        }
    };
    let mut allowed = 0;
    let mut seconds = 0;
    while seconds < 10 * 60 {
        for replica in [&here, &there] {
            allowed += usize::from(replica.one_more(&us).is_ok());
        }
        tell().await;
        clock.advance(Duration::from_secs(1));
        seconds += 1;
    }
    // Six at once, six a minute, and of each replica one by which it learned of the other.
    assert!((65..=68).contains(&allowed), "{allowed}");
    clock.advance(2 * MINUTE);
    let mut at_once = 0;
    for _ in 0..20 {
        for replica in [&here, &there] {
            at_once += usize::from(replica.one_more(&us).is_ok());
        }
    }
    assert_eq!(at_once, 12, "neither knows of the other yet");
    tell().await;
    clock.advance(MINUTE);
    here.one_more(&us).expect("so it learns of the other");
    tell().await;
    assert_eq!(wait(here.one_more(&us)), 21, "of two minutes' worth");
    clock.advance(Duration::from_secs(21));
    let allowed = here.one_more(&us).expect("it is made up for");
    here.back(allowed);
    tell().await;
    there.one_more(&us).expect("it came to nothing");
}
