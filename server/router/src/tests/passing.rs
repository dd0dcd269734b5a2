use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use proto::v1::{self, runner_frame, server_frame};
use shared_sandbox::{
    Control, Exec, Input, Operation, OperationEvent, OutputStream, Request, Retention, Running,
    Sandbox, Signal,
};
use shared_types::{RefusalCode, limits::INPUT_WINDOW_BYTES};

use super::double::*;
use crate::links::LinkOptions;

fn cat(number: u128) -> Operation {
    let mut operation = exec(number);
    if let Request::Exec(exec) = operation.request {
        operation.request = Request::Exec(Exec {
            input: true,
            retention: Retention::None,
            ..exec
        });
    }
    operation
}

fn piece(offset: u64, data: &[u8]) -> Input {
    Input {
        offset,
        data: Bytes::copy_from_slice(data),
        end: false,
    }
}

async fn started(world: &World, runner: &Runner, operation: &Operation) -> Running {
    world.store.choose(runner);
    let started = world.sandbox.start(operation.clone()).await;
    started.expect("it starts")
}

async fn input(link: &mut Link) -> v1::Input {
    match link.next().await {
        server_frame::Kind::Input(input) => input,
        other => panic!("expected input, got {other:?}"),
    }
}

async fn taken(link: &Link, operation: &str, up_to: u64) {
    link.send(runner_frame::Kind::InputTaken(v1::InputTaken {
        operation: operation.to_owned(),
        up_to,
        refusal: None,
    }))
    .await;
}

async fn signal(link: &mut Link) -> v1::Signal {
    match link.next().await {
        server_frame::Kind::Signal(signal) => signal,
        other => panic!("expected a signal, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn input_that_was_not_taken_is_sent_again_over_the_next_link() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let mut link = world.link(&runner).await;
    let operation = cat(10);
    let mut running = started(&world, &runner, &operation).await;
    let id = link.operation().await.operation;
    link.accept(&id).await;
    taken(&link, &id, 0).await;
    assert_eq!(next(&mut running).await, OperationEvent::InputTaken(0));
    let end = running.controls.input(piece(0, b"abcdef")).await;
    assert_eq!(end, Ok(6));
    assert_eq!(&input(&mut link).await.data[..], b"abcdef");
    taken(&link, &id, 2).await;
    assert_eq!(next(&mut running).await, OperationEvent::InputTaken(2));
    world.lose(&runner, link).await;
    next(&mut running).await;

    let mut link = world.link(&runner.remembering(&operation, false)).await;
    assert_eq!(next(&mut running).await, OperationEvent::Reachable);
    link.operation().await;
    link.accept(&id).await;
    taken(&link, &id, 3).await;
    let again = input(&mut link).await;
    assert_eq!((again.offset, &again.data[..]), (3, &b"def"[..]));
    assert_eq!(next(&mut running).await, OperationEvent::InputTaken(3));
    assert_eq!(
        running.controls.input(piece(9, b"x")).await,
        Ok(6),
        "a hole"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_server_was_given_while_its_disk_was_full_is_passed_on_once_there_is_room() {
    let world = World::with(LinkOptions {
        keep_again_after: Duration::from_millis(20),
        ..LinkOptions::default()
    });
    let runner = Runner::new(1, "one");
    let mut link = world.link(&runner).await;
    world.store.choose(&runner);
    let mut operation = cat(10);
    if let Request::Exec(exec) = &mut operation.request {
        exec.retention = Retention::All;
    }
    let (mut running, id) = world.begin(&mut link, operation).await;
    taken(&link, &id, 0).await;
    assert_eq!(next(&mut running).await, OperationEvent::InputTaken(0));
    world.store.fill_the_disk();
    link.output(&id, 0, "out").await;
    eventually(|| world.store.has_told_full()).await;
    assert_eq!(running.controls.input(piece(0, b"abcd")).await, Ok(4));
    let last = Input {
        end: true,
        ..piece(4, b"ef")
    };
    assert_eq!(running.controls.input(last).await, Ok(6));
    assert_eq!(&input(&mut link).await.data[..], b"abcd");
    assert_eq!(&input(&mut link).await.data[..], b"ef");
    taken(&link, &id, 2).await;
    let controls = Arc::clone(&running.controls);
    let interrupt = Control::Signal(Signal::Interrupt);
    let waiting = tokio::spawn(async move { controls.control(interrupt).await });
    let first = signal(&mut link).await;

    world.store.free_the_disk();
    assert_eq!(link.operation().await.operation, id);
    assert_eq!(signal(&mut link).await, first, "the same id");
    link.accept(&id).await;
    taken(&link, &id, 2).await;
    let again = input(&mut link).await;
    assert_eq!((again.offset, &again.data[..]), (2, &b"cdef"[..]));
    assert!(again.end);
    link.send(runner_frame::Kind::Done(v1::Done {
        operation: id.clone(),
        id: first.id,
        refusal: None,
    }))
    .await;
    assert_eq!(within(waiting).await.expect("no panic"), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn no_more_than_a_window_of_input_is_kept() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let mut link = world.link(&runner).await;
    let mut running = started(&world, &runner, &cat(10)).await;
    let id = link.operation().await.operation;
    link.accept(&id).await;
    taken(&link, &id, 0).await;
    let half = vec![7; INPUT_WINDOW_BYTES as usize / 4 * 3];
    let first = running.controls.input(piece(0, &half)).await.expect("room");
    assert_eq!(first, half.len() as u64);
    let second = running.controls.input(piece(first, &half)).await;
    assert_eq!(second, Ok(INPUT_WINDOW_BYTES), "what fits");
    let controls = Arc::clone(&running.controls);
    let third = tokio::spawn(async move { controls.input(piece(INPUT_WINDOW_BYTES, b"x")).await });
    let mut sent = 0;
    while sent < INPUT_WINDOW_BYTES {
        sent += input(&mut link).await.data.len() as u64;
    }
    assert!(!third.is_finished());
    taken(&link, &id, 1).await;
    assert_eq!(input(&mut link).await.offset, INPUT_WINDOW_BYTES);
    let end = third.await.expect("no panic");
    assert_eq!(end, Ok(INPUT_WINDOW_BYTES + 1));
    assert_eq!(next(&mut running).await, OperationEvent::InputTaken(0));
}

#[tokio::test(start_paused = true)]
async fn a_signal_passes_a_reader_that_reads_nothing_and_is_answered_over_a_later_link() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let mut link = world.link(&runner).await;
    let operation = cat(10);
    let mut running = started(&world, &runner, &operation).await;
    let id = link.operation().await.operation;
    link.accept(&id).await;
    for piece in 0..16 {
        link.output(&id, piece * 65_536, vec![7; 65_536]).await;
    }
    let controls = Arc::clone(&running.controls);
    let interrupt = Control::Signal(Signal::Interrupt);
    let waiting = tokio::spawn(async move { controls.control(interrupt).await });
    let first = signal(&mut link).await;
    assert_eq!(first.kind(), v1::signal::Kind::Interrupt);
    world.lose(&runner, link).await;

    let mut link = world.link(&runner.remembering(&operation, false)).await;
    let mut read = 0;
    while read < 16 {
        read += u32::from(matches!(
            next(&mut running).await,
            OperationEvent::Output { .. }
        ));
    }
    link.operation().await;
    let again = signal(&mut link).await;
    assert_eq!(again, first, "the same id, so that it is done once");
    link.accept(&id).await;
    link.send(runner_frame::Kind::Done(v1::Done {
        operation: id.clone(),
        id: again.id,
        refusal: None,
    }))
    .await;
    assert_eq!(waiting.await.expect("no panic"), Ok(()));
    let controls = Arc::clone(&running.controls);
    tokio::spawn(async move { controls.control(interrupt).await });
    assert!(signal(&mut link).await.id > first.id);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_signal_hears_that_the_operation_ended_before_it_is_told_the_end() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let mut link = world.link(&runner).await;
    let mut running = started(&world, &runner, &cat(10)).await;
    let id = link.operation().await.operation;
    link.accept(&id).await;
    let controls = Arc::clone(&running.controls);
    let signalling = controls.control(Control::Signal(Signal::Terminate));
    let ended = async {
        signal(&mut link).await;
        link.exit(&id, 0).await;
    };
    let (signalled, ()) = within(async { tokio::join!(signalling, ended) }).await;
    let refusal = signalled.expect_err("nobody knows whether it was sent");
    assert_eq!(refusal.code, RefusalCode::NotFound);
    let late = within(controls.input(piece(0, b"a"))).await;
    assert_eq!(late.expect_err("it has ended").code, RefusalCode::NotFound);
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(0)));
}

#[tokio::test(start_paused = true)]
async fn what_a_reader_confirms_is_committed_at_the_runner() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let mut link = world.link(&runner).await;
    let running = started(&world, &runner, &cat(10)).await;
    let id = link.operation().await.operation;
    link.accept(&id).await;
    let up_to = 600_000;
    running.controls.commit(OutputStream::Stdout, up_to).await;
    running.controls.commit(OutputStream::Stdout, 5).await;
    match link.next().await {
        server_frame::Kind::Commit(commit) => assert_eq!(commit.up_to, up_to),
        other => panic!("expected a commit, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_controls_of_a_stream_that_another_took_over_refuse_everything() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let mut link = world.link(&runner).await;
    let operation = cat(10);
    let first = started(&world, &runner, &operation).await;
    let id = link.operation().await.operation;
    link.accept(&id).await;
    let _second = started(&world, &runner, &operation).await;
    link.operation().await;
    link.accept(&id).await;
    let refused = first.controls.input(piece(0, b"a")).await;
    assert_eq!(refused.map_err(|r| r.code), Err(RefusalCode::NotFound));
    let refused = first.controls.control(Control::Signal(Signal::Kill)).await;
    assert_eq!(refused.map_err(|r| r.code), Err(RefusalCode::NotFound));
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_lost_its_part_of_an_upload_makes_the_writer_start_over() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let mut link = world.link(&runner).await;
    let operation = cat(10);
    let mut running = started(&world, &runner, &operation).await;
    let id = link.operation().await.operation;
    link.accept(&id).await;
    taken(&link, &id, 0).await;
    let end = running.controls.input(piece(0, b"abc")).await;
    assert_eq!(end, Ok(3));
    taken(&link, &id, 3).await;
    while next(&mut running).await != OperationEvent::InputTaken(3) {}
    world.lose(&runner, link).await;
    let mut link = world.link(&runner.remembering(&operation, false)).await;
    link.operation().await;
    link.accept(&id).await;
    taken(&link, &id, 0).await;
    while next(&mut running).await != OperationEvent::InputTaken(0) {}
    let end = running.controls.input(piece(3, b"d")).await;
    assert_eq!(end, Ok(0), "from the beginning");
}

#[tokio::test(start_paused = true)]
async fn input_is_taken_of_who_brings_the_request_to_what_was_collected_without_it() {
    let (world, runner, mut link) = World::chosen().await;
    // Several, because which of two wishes a collector sees first is chance.
    let mut operations: Vec<_> = (10..30).map(cat).collect();
    for operation in &mut operations {
        if let Request::Exec(exec) = &mut operation.request {
            exec.retention = Retention::Bounded;
        }
    }
    let mut remembering = runner.clone();
    for operation in &operations {
        let (running, _) = world.begin(&mut link, operation.clone()).await;
        drop(running);
        remembering = remembering.remembering(operation, false);
    }
    world.lose(&runner, link).await;
    let world = world.restarted();
    for operation in &operations {
        let read = world.sandbox.read(operation.id, [0, 0]).await;
        drop(read.expect("it is placed"));
    }
    let mut link = world.link(&remembering).await;
    for _ in &operations {
        let id = link.operation().await.operation;
        link.accept(&id).await;
        taken(&link, &id, 0).await;
    }
    for operation in operations {
        let running = world.sandbox.start(operation).await.expect("it runs");
        assert_eq!(running.controls.input(piece(0, b"abc")).await, Ok(3));
    }
}
