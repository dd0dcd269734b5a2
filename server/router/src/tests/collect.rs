//! Operations that are collected: nobody has to stay, and any number may read.

use futures_util::poll;
use shared_sandbox::{OperationEvent, Outcome, Request, Retention, Sandbox as _};
use shared_types::{
    RefusalCode,
    limits::{CREDIT_WINDOW_BYTES, OUTPUT_CHUNK_BYTES},
};

use super::double::*;
use crate::{Collected, OperationReader};

/// A command of which everything is kept.
fn kept_whole(number: u128) -> shared_sandbox::Operation {
    let mut operation = exec(number);
    if let Request::Exec(exec) = &mut operation.request {
        exec.retention = Retention::All;
    }
    operation
}

/// A runner that is chosen, and an operation of it that it has accepted.
async fn collected() -> (World, Runner, Link, Collected) {
    let (world, runner, mut link) = World::chosen().await;
    let collected = world.sandbox.collect(kept_whole(10)).await;
    let id = link.operation().await.operation;
    link.accept(&id).await;
    (world, runner, link, collected.expect("it starts"))
}

fn id() -> String {
    kept_whole(10).id.to_string()
}

async fn next(reading: &mut OperationReader) -> OperationEvent {
    loop {
        match within(reading.next()).await.expect("it goes on") {
            OperationEvent::Accepted => {}
            event => return event,
        }
    }
}

/// Reads stdout from this offset up to the end; says how many bytes were told, and the end.
async fn to_the_end(reading: &mut OperationReader, from: u64) -> (u64, OperationEvent) {
    let mut at = from;
    loop {
        match next(reading).await {
            OperationEvent::Output { offset, data, .. } => {
                assert_eq!(offset, at, "no byte twice, and none left out");
                assert!(data.iter().all(|byte| *byte == b'x'));
                at += data.len() as u64;
            }
            other => return (at, other),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn readers_are_told_the_same_from_where_each_stands() {
    let (_world, _runner, link, collected) = collected().await;
    let mut early = collected.read([0, 0]);
    link.output(&id(), 0, "hello ").await;
    assert_eq!(next(&mut early).await, stdout(0, "hello "));
    link.output(&id(), 6, "world").await;
    assert_eq!(next(&mut early).await, stdout(6, "world"));
    let mut late = collected.read([3, 0]);
    assert_eq!(next(&mut late).await, stdout(3, "lo "));
    assert_eq!(next(&mut late).await, stdout(6, "world"));
    link.exit(&id(), 11).await;
    for reading in [&mut early, &mut late] {
        assert_eq!(next(reading).await, OperationEvent::Ended(exited(11)));
        assert_eq!(reading.next().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_does_not_read_holds_up_nothing_and_misses_nothing() {
    let (world, _runner, mut link, collected) = collected().await;
    let mut slow = collected.read([0, 0]);
    let (much, mut credit) = (4 * CREDIT_WINDOW_BYTES, CREDIT_WINDOW_BYTES);
    for at in (0..much).step_by(OUTPUT_CHUNK_BYTES) {
        while at >= credit {
            credit = link.credit().await.up_to;
        }
        link.output(&id(), at, vec![b'x'; OUTPUT_CHUNK_BYTES]).await;
    }
    link.exit(&id(), much).await;
    eventually(|| world.store.outcome(&kept_whole(10)) == Some(exited(much))).await;
    let told = to_the_end(&mut slow, 0).await;
    assert_eq!(told, (much, OperationEvent::Ended(exited(much))));
}

#[tokio::test(start_paused = true)]
async fn without_a_reader_the_end_is_stored_and_the_runner_may_forget() {
    let (world, _runner, mut link, collected) = collected().await;
    drop(collected);
    link.output(&id(), 0, "hello").await;
    link.exit(&id(), 5).await;
    eventually(|| world.store.outcome(&kept_whole(10)) == Some(exited(5))).await;
    assert_eq!(link.forgets().await, id());
    world.collects_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn readers_are_told_the_end_that_is_stored() {
    let (world, _runner, link, collected) = collected().await;
    let mut reading = collected.read([0, 0]);
    world.store.keep_end(&kept_whole(10), exited(7));
    link.exit(&id(), 0).await;
    let mut told = next(&mut reading).await;
    if matches!(told, OperationEvent::Gap { .. }) {
        told = next(&mut reading).await;
    }
    assert_eq!(told, OperationEvent::Ended(exited(7)));
}

#[tokio::test(start_paused = true)]
async fn readers_are_told_once_that_the_place_is_gone_and_back_and_go_on() {
    let (world, runner, link, collected) = collected().await;
    let mut reading = collected.read([0, 0]);
    link.output(&id(), 0, "hello ").await;
    assert_eq!(next(&mut reading).await, stdout(0, "hello "));
    world.lose(&runner, link).await;
    let gone = next(&mut reading).await;
    assert!(
        matches!(gone, OperationEvent::Unreachable { .. }),
        "{gone:?}"
    );
    let late = next(&mut collected.read([6, 0])).await;
    assert_eq!(late, gone, "also a reader that comes meanwhile");
    let mut link = world
        .link(&runner.remembering(&kept_whole(10), false))
        .await;
    assert_eq!(link.operation().await.stdout_from, 6);
    assert_eq!(next(&mut reading).await, OperationEvent::Reachable);
    link.accept(&id()).await;
    link.output(&id(), 6, "world").await;
    assert_eq!(next(&mut reading).await, stdout(6, "world"));
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_is_asked_for_by_several_at_once_is_sent_once() {
    let (world, _runner, mut link) = World::chosen().await;
    let ask = || world.sandbox.collect(kept_whole(10));
    let (first, second) = tokio::join!(ask(), ask());
    let (mut first, mut second) = (
        first.expect("it starts").read([0, 0]),
        second.expect("it starts").read([0, 0]),
    );
    let id = link.operation().await.operation;
    link.accept(&id).await;
    link.output(&id, 0, "once").await;
    for reading in [&mut first, &mut second] {
        assert_eq!(next(reading).await, stdout(0, "once"));
    }
    // The next thing that the runner hears is another operation.
    let _another = world.sandbox.start(exec(11)).await.expect("it starts");
    assert_eq!(link.operation().await.operation, exec(11).id.to_string());
}

#[tokio::test(start_paused = true)]
async fn of_an_operation_that_cannot_be_started_nothing_stays() {
    let world = World::new();
    let refused = world.sandbox.collect(kept_whole(10)).await;
    assert!(refused.is_err());
    let mut dropped = Box::pin(world.sandbox.collect(kept_whole(10)));
    assert!(poll!(&mut dropped).is_pending());
    drop(dropped);
    assert!(world.links.collectors().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_end_that_claims_more_than_what_came_is_not_believed() {
    let (world, _runner, link, _collected) = collected().await;
    link.output(&id(), 0, "abc").await;
    link.exit(&id(), 1000).await;
    eventually(|| world.store.outcome(&kept_whole(10)).is_some()).await;
    let Some(Outcome::Refused(refusal)) = world.store.outcome(&kept_whole(10)) else {
        panic!("{:?}", world.store.outcome(&kept_whole(10)))
    };
    assert_eq!(refusal.code, RefusalCode::Lost);
    assert!(
        refusal.message.contains("less of its stdout came"),
        "{refusal}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_is_told_from_what_is_kept() {
    let (world, _runner, link, collected) = collected().await;
    link.output(&id(), 0, "hello").await;
    link.gap(&id(), 5, 8).await;
    link.exit(&id(), 8).await;
    eventually(|| world.store.outcome(&kept_whole(10)) == Some(exited(8))).await;
    drop(collected);
    world.collects_nothing().await;
    let ended = world.links.read(world.store.clone(), kept_whole(10).id);
    let ended = ended
        .await
        .expect("the store answers")
        .expect("it is there");
    let mut reading = ended.read([1, 0]);
    assert_eq!(next(&mut reading).await, stdout(1, "ello"));
    let gap = next(&mut reading).await;
    assert!(
        matches!(gap, OperationEvent::Gap { from: 5, to: 8, .. }),
        "{gap:?}"
    );
    assert_eq!(next(&mut reading).await, OperationEvent::Ended(exited(8)));
}
