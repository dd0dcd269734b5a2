//! Readers that are slow, stop, or come late: where all output is kept, they hold up nothing.

use std::time::Duration;

use proto::v1::{self, server_frame};
use shared_sandbox::{
    Exec, Operation, OperationEvent, OutputStream, Request, Retention, Running, Sandbox as _,
};
use shared_types::{
    RefusalCode,
    limits::{CREDIT_WINDOW_BYTES, OUTPUT_CHUNK_BYTES},
};

use tokio::time::timeout;

use super::double::*;
use crate::links::LinkOptions;

/// Several times what is in flight, and what a runner tells at once of what is durable.
const MUCH: u64 = 4 * CREDIT_WINDOW_BYTES;

/// A command of which everything is kept.
fn kept_whole(number: u128) -> Operation {
    let mut operation = exec(number);
    if let Request::Exec(exec) = &mut operation.request {
        *exec = Exec {
            retention: Retention::All,
            ..exec.clone()
        };
    }
    operation
}

/// A runner that is chosen, and an operation of it of which everything is kept.
async fn started() -> (World, Runner, Link, String, Running) {
    let (world, runner, mut link) = World::chosen().await;
    let running = world.sandbox.start(kept_whole(10)).await;
    let id = link.operation().await.operation;
    link.accept(&id).await;
    (world, runner, link, id, running.expect("it starts"))
}

/// Bytes that say where they stand.
fn bytes(from: u64, to: u64) -> Vec<u8> {
    (from..to).map(|at| (at % 251) as u8).collect()
}

/// Writes output from this offset up to that one, as the credit allows.
async fn write(link: &mut Link, id: &str, from: u64, to: u64) {
    write_within(link, id, from, to, from + CREDIT_WINDOW_BYTES).await;
}

async fn write_within(link: &mut Link, id: &str, from: u64, to: u64, mut credit: u64) {
    let mut at = from;
    while at < to {
        while at >= credit {
            credit = link.credit().await.up_to;
        }
        let end = (at + OUTPUT_CHUNK_BYTES as u64).min(to).min(credit);
        link.output(id, at, bytes(at, end)).await;
        at = end;
    }
}

/// Reads on from this offset up to that one; what else is told comes back.
async fn read(running: &mut Running, from: u64, to: u64) -> Vec<OperationEvent> {
    let (mut at, mut others) = (from, Vec::new());
    while at < to {
        match next(running).await {
            OperationEvent::Output { offset, data, .. } => {
                let end = offset + data.len() as u64;
                assert_eq!((offset, &data[..]), (at, &bytes(at, end)[..]));
                at = end;
            }
            other => others.push(other),
        }
    }
    others
}

/// Sees that nothing was said before another operation.
async fn nothing_was_said(world: &World, link: &mut Link) {
    let _another = world.sandbox.start(exec(11)).await.expect("it starts");
    match link.next().await {
        server_frame::Kind::Operation(_) => {}
        other => panic!("expected an operation, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stops_reading_holds_up_neither_the_command_nor_what_is_stored_of_it() {
    let (world, _, mut link, id, mut running) = started().await;
    write(&mut link, &id, 0, MUCH).await;
    link.committed(MUCH - CREDIT_WINDOW_BYTES).await;
    link.exit(&id, MUCH).await;
    eventually(|| world.store.outcome(&kept_whole(10)) == Some(exited(MUCH))).await;
    assert_eq!(read(&mut running, 0, MUCH).await, []);
    let ended = OperationEvent::Ended(exited(MUCH));
    assert_eq!(next(&mut running).await, ended);
}

#[tokio::test(start_paused = true)]
async fn of_what_is_kept_nowhere_a_reader_that_is_slow_misses_nothing() {
    let (world, _runner, mut link) = World::chosen().await;
    let mut operation = kept_whole(10);
    if let Request::Exec(exec) = &mut operation.request {
        exec.retention = Retention::None;
    }
    let (mut running, id) = world.begin(&mut link, operation).await;
    write(&mut link, &id, 0, CREDIT_WINDOW_BYTES).await;
    link.exit(&id, CREDIT_WINDOW_BYTES).await;
    assert_eq!(read(&mut running, 0, CREDIT_WINDOW_BYTES).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_behind_with_both_streams_is_told_both_in_turn() {
    let (_world, _, mut link, id, mut running) = started().await;
    write(&mut link, &id, 0, CREDIT_WINDOW_BYTES).await;
    for at in (0..CREDIT_WINDOW_BYTES).step_by(OUTPUT_CHUNK_BYTES) {
        let end = at + OUTPUT_CHUNK_BYTES as u64;
        link.output_on(v1::OutputStream::Stderr, &id, at, bytes(at, end))
            .await;
    }
    let (mut told, mut first_of_stderr) = ([0, 0], None);
    while told != [CREDIT_WINDOW_BYTES; 2] {
        let event = next(&mut running).await;
        let OperationEvent::Output {
            stream,
            offset,
            data,
        } = event
        else {
            panic!("expected output, got {event:?}");
        };
        let at = &mut told[stream as usize];
        let end = offset + data.len() as u64;
        assert_eq!((offset, &data[..]), (*at, &bytes(*at, end)[..]));
        *at = end;
        if stream == OutputStream::Stderr {
            first_of_stderr.get_or_insert(told[0]);
        }
    }
    let waited_for = first_of_stderr.expect("some of it");
    assert!(
        waited_for < CREDIT_WINDOW_BYTES,
        "it waited for {waited_for} bytes"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_behind_is_told_the_end_that_is_stored() {
    let (world, _, mut link, id, running) = started().await;
    let mut reader = world.sandbox.read(kept_whole(10).id, [0, 0]).await;
    let reader = reader.as_mut().expect("it runs");
    drop(running);
    write(&mut link, &id, 0, MUCH).await;
    world.store.keep_end(&kept_whole(10), exited(7));
    link.exit(&id, MUCH).await;
    assert_eq!(read(reader, 0, MUCH).await, []);
    let ended = OperationEvent::Ended(exited(7));
    assert_eq!(next(reader).await, ended);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_comes_late_and_does_not_read_holds_up_nothing_either() {
    let (world, runner, mut link, id, running) = started().await;
    write(&mut link, &id, 0, MUCH).await;
    link.committed(MUCH - CREDIT_WINDOW_BYTES).await;
    drop(running);
    world.lose(&runner, link).await;

    let mut running = world.sandbox.start(kept_whole(10)).await.expect("it runs");
    let mut link = world
        .link(&runner.remembering(&kept_whole(10), false))
        .await;
    let frame = link.operation().await;
    assert_eq!(frame.stdout_from, MUCH);
    link.accept(&id).await;
    write(&mut link, &id, MUCH, 2 * MUCH).await;
    link.committed(2 * MUCH - CREDIT_WINDOW_BYTES).await;
    link.exit(&id, 2 * MUCH).await;
    let others = read(&mut running, 0, 2 * MUCH).await;
    assert!(
        matches!(
            others[..],
            [] | [
                OperationEvent::Unreachable { .. },
                OperationEvent::Reachable
            ]
        ),
        "{others:?}"
    );
    assert_eq!(
        next(&mut running).await,
        OperationEvent::Ended(exited(2 * MUCH))
    );
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_behind_reads_on_while_what_is_kept_is_held_to_its_checksum() {
    let (world, runner, mut link, id, running) = started().await;
    write(&mut link, &id, 0, MUCH).await;
    link.committed(MUCH - CREDIT_WINDOW_BYTES).await;
    drop(running);
    world.lose(&runner, link).await;

    // Another process has not summed what came before.
    let world = world.restarted();
    let mut running = world.sandbox.start(kept_whole(10)).await.expect("it runs");
    let begun = CREDIT_WINDOW_BYTES;
    assert!(read(&mut running, 0, begun).await.len() < 2);
    world.store.hold_the_beginnings(true);
    let link = &mut world
        .link(&runner.remembering(&kept_whole(10), false))
        .await;
    link.operation().await;
    link.accept(&id).await;
    link.exit_with(&id, MUCH, Some(7)).await;
    read(&mut running, begun, MUCH).await;
    assert_eq!(world.store.outcome(&kept_whole(10)), None);
    world.store.hold_the_beginnings(false);
    loop {
        match next(&mut running).await {
            OperationEvent::Ended(outcome) => return assert_ne!(outcome, exited(MUCH)),
            OperationEvent::Unreachable { .. } | OperationEvent::Reachable => {}
            other => panic!("expected its end, got {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_behind_hears_at_once_that_the_runner_is_gone() {
    let (world, runner, mut link, id, mut running) = started().await;
    write(&mut link, &id, 0, MUCH).await;
    link.committed(MUCH - CREDIT_WINDOW_BYTES).await;
    world.lose(&runner, link).await;
    let others = read(&mut running, 0, CREDIT_WINDOW_BYTES).await;
    assert!(
        matches!(others[..], [OperationEvent::Unreachable { .. }]),
        "{others:?}"
    );
    // And is told what is kept although the runner is away.
    assert_eq!(read(&mut running, CREDIT_WINDOW_BYTES, MUCH).await, []);
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_kept_whole_is_not_sent_where_there_is_no_room_for_it() {
    let (world, _runner, mut link) = World::chosen().await;
    world.store.fill_the_disk();
    let refused = world.sandbox.start(kept_whole(10)).await;
    assert_eq!(
        refused.err().map(|refusal| refusal.code),
        Some(RefusalCode::Unavailable)
    );
    assert!(!link.has_been_sent_something());
}

/// A server that looks soon whether a full disk has room again; of the operation everything is kept.
async fn looks_soon() -> (World, Link, String, Running) {
    let world = World::with(LinkOptions {
        keep_again_after: Duration::from_millis(20),
        ..LinkOptions::default()
    });
    let runner = Runner::new(1, "one");
    let mut link = world.link(&runner).await;
    world.store.choose(&runner);
    let (running, id) = world.begin(&mut link, kept_whole(10)).await;
    (world, link, id, running)
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_keeps_up_is_told_what_cannot_be_kept_and_nothing_of_it_is_committed() {
    let (world, mut link, id, mut running) = looks_soon().await;
    world.store.fill_the_disk();
    let mut credit = CREDIT_WINDOW_BYTES;
    for at in (0..MUCH).step_by(OUTPUT_CHUNK_BYTES) {
        while at >= credit {
            let server_frame::Kind::Credit(more) = link.next().await else {
                panic!("nothing but credit is told");
            };
            credit = more.up_to;
        }
        let end = at + OUTPUT_CHUNK_BYTES as u64;
        link.output(&id, at, bytes(at, end)).await;
        assert_eq!(read(&mut running, at, end).await, []);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_reader_is_behind_with_when_the_disk_fills_is_no_gap_but_asked_for_again() {
    let (world, mut link, id, mut running) = looks_soon().await;
    // The credit goes further.
    let full = MUCH - 9;
    write(&mut link, &id, 0, full).await;
    let durable = link.committed(MUCH - CREDIT_WINDOW_BYTES).await;
    let durable = *durable.last().expect("some of it");
    world.store.fill_the_disk();
    link.output(&id, full, bytes(full, MUCH)).await;
    eventually(|| world.store.has_told_full()).await;
    world.store.free_the_disk();
    let frame = loop {
        if let server_frame::Kind::Operation(frame) = link.next().await {
            break frame;
        }
    };
    // What had been appended by then was kept after all.
    assert!((durable..=full).contains(&frame.stdout_from));
    link.accept(&id).await;
    write(&mut link, &id, frame.stdout_from, MUCH).await;
    link.exit(&id, MUCH).await;
    assert_eq!(read(&mut running, 0, MUCH).await, []);
    assert_eq!(
        next(&mut running).await,
        OperationEvent::Ended(exited(MUCH))
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_committed_by_the_disk_and_not_by_its_reader() {
    let (world, _, mut link, id, mut running) = started().await;
    world.store.fill_the_disk();
    let half = CREDIT_WINDOW_BYTES / 2;
    link.output(&id, 0, bytes(0, 1)).await;
    eventually(|| world.store.has_told_full()).await;
    read(&mut running, 0, 1).await;
    let mut at = 1;
    while at < half {
        let end = (at + OUTPUT_CHUNK_BYTES as u64).min(half);
        link.output(&id, at, bytes(at, end)).await;
        read(&mut running, at, end).await;
        running.controls.commit(OutputStream::Stdout, end).await;
        at = end;
    }
    let next = link.next().await;
    assert!(matches!(next, server_frame::Kind::Credit(_)), "{next:?}");
    nothing_was_said(&world, &mut link).await;
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_all_of_what_was_collected_without_a_request_is_told_of_no_gap_by_a_full_disk()
{
    let (world, link, id, running) = looks_soon().await;
    drop(running);
    let (runner, operation) = (Runner::new(1, "one"), kept_whole(10));
    world.lose(&runner, link).await;
    world.store.rows().abandoned.push(operation.id);
    let world = world.restarted();
    let mut link = world.link(&runner.remembering(&operation, false)).await;
    link.operation().await;
    link.accept(&id).await;
    world.store.fill_the_disk();
    link.output(&id, 0, bytes(0, 10)).await;
    eventually(|| world.store.has_told_full()).await;
    let mut running = world.sandbox.start(operation).await.expect("it runs");
    let told = timeout(Duration::from_millis(5), next(&mut running)).await;
    assert!(told.is_err(), "it waits: {told:?}");
    world.store.free_the_disk();
    assert_eq!(link.operation().await.stdout_from, 0);
    link.accept(&id).await;
    link.output(&id, 0, bytes(0, 10)).await;
    link.exit(&id, 10).await;
    assert_eq!(read(&mut running, 0, 10).await, []);
}
