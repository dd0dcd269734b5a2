//! Calls for a runner whose link has just ended.

use std::time::Duration;

use shared_sandbox::{Operation, Request, Sandbox, Survey};
use shared_types::{RefusalCode, Timestamp, limits::AWAY_AT_MOST};
use tokio::{task::JoinHandle, time::Instant};

use super::double::*;

/// Starts an operation beside the test, and returns once people are told that it waits.
async fn waits(world: &World, number: u128) -> JoinHandle<bool> {
    let told = world.store.rows().told.len();
    let sandbox = world.sandbox.clone();
    let start = tokio::spawn(async move { sandbox.start(exec(number)).await.is_ok() });
    eventually(|| world.store.rows().told.len() > told).await;
    start
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_runner_whose_link_has_just_ended() {
    let (world, runner, link) = World::chosen().await;
    world.lose(&runner, link).await;
    let start = waits(&world, 10).await;
    assert!(world.store.rows().intents.is_empty());
    let mut link = world.link(&runner).await;
    assert_eq!(link.operation().await.operation, exec(10).id.to_string());
    assert!(within(start).await.expect("it does not panic"));
    let told = world.store.rows().told.clone();
    assert!(told[0].contains("runner one offline since"), "{told:?}");
    assert_eq!(told[1..], ["runner one is back"]);
}

#[tokio::test(start_paused = true)]
async fn of_several_calls_that_wait_people_are_told_once_and_all_run() {
    let (world, runner, link) = World::chosen().await;
    world.lose(&runner, link).await;
    let first = waits(&world, 10).await;
    let others: Vec<_> = (11..18)
        .map(|number| {
            let sandbox = world.sandbox.clone();
            tokio::spawn(async move { sandbox.start(exec(number)).await.is_ok() })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let _link = world.link(&runner).await;
    for start in std::iter::once(first).chain(others) {
        assert!(within(start).await.expect("it does not panic"));
    }
    assert_eq!(world.store.rows().told.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_survey_of_a_runner_that_is_away_is_refused_at_once_and_people_hear_nothing() {
    let (world, runner, link) = World::chosen().await;
    world.lose(&runner, link).await;
    let survey = Operation {
        request: Request::Survey(Survey {
            path: String::new(),
            max_bytes: 1,
            of_user: false,
            extension_bytes: 0,
        }),
        ..exec(10)
    };
    let began = Instant::now();
    let refusal = world.sandbox.start(survey).await.expect_err("it is off");
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(refusal.code, RefusalCode::Unavailable);
    let rows = world.store.rows();
    assert!(rows.intents.is_empty() && rows.told.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_does_not_come_back_is_waited_for_so_long_and_no_longer() {
    let (world, runner, link) = World::chosen().await;
    world.lose(&runner, link).await;
    let began = Instant::now();
    let refusal = world.sandbox.start(exec(10)).await.expect_err("it is off");
    assert_eq!(began.elapsed().as_secs(), AWAY_AT_MOST.as_secs());
    assert_eq!(refusal.code, RefusalCode::Unavailable);
    assert!(world.store.rows().intents.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_was_not_heard_of_within_its_lease_is_not_waited_for() {
    let (world, runner, link) = World::chosen().await;
    world.lose(&runner, link).await;
    world.clock.advance(world.links.options().lease);
    let began = Instant::now();
    let refusal = world.sandbox.start(exec(10)).await.expect_err("it is off");
    assert_eq!(refusal.code, RefusalCode::Unavailable);
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(world.store.rows().told.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_was_never_online_is_not_waited_for() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    world.store.enrol(&runner, Timestamp::from_micros(0));
    world.store.choose(&runner);
    let began = Instant::now();
    let refusal = world.sandbox.start(exec(10)).await.expect_err("it is off");
    assert_eq!(refusal.code, RefusalCode::Unavailable);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_is_removed_while_it_is_waited_for_is_not_waited_for_any_longer() {
    let (world, runner, link) = World::chosen().await;
    world.lose(&runner, link).await;
    let sandbox = world.sandbox.clone();
    let began = Instant::now();
    let start = tokio::spawn(async move { sandbox.start(exec(10)).await.err() });
    eventually(|| !world.store.rows().told.is_empty()).await;
    world.store.revoke(&runner);
    world.links.revoke(runner.id).await;
    let refusal = within(start).await.expect("it does not panic");
    let refusal = refusal.expect("it is refused");
    assert!(refusal.message.contains("was removed"), "{refusal}");
    assert!(began.elapsed() < AWAY_AT_MOST);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_comes_back_with_another_memory_is_sent_the_call() {
    let (world, runner, link) = World::chosen().await;
    world.lose(&runner, link).await;
    let start = waits(&world, 10).await;
    let mut link = world.link(&runner.restarted()).await;
    let frame = link.operation().await;
    assert!(frame.request.is_some());
    assert!(within(start).await.expect("it does not panic"));
}

#[tokio::test(start_paused = true)]
async fn a_server_without_the_link_says_that_another_one_has_it_as_lists_do() {
    let (first, _runner, _link) = World::chosen().await;
    let second = first.restarted();
    let refusal = second.sandbox.start(exec(10)).await;
    let refusal = refusal.expect_err("its link is not there");
    assert_eq!(refusal.code, RefusalCode::Unavailable);
    let told = second.store.rows().told.clone();
    for words in [&refusal.message, &told[0]] {
        assert!(words.contains("is online at another server"), "{words}");
        assert!(
            !words.contains("start it") && !words.contains("offline"),
            "{words}"
        );
    }
}
