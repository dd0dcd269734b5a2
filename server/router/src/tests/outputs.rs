use std::time::Duration;

use proto::v1::{self, server_frame};
use shared_sandbox::{OperationEvent, Outcome, OutputStream, Request, Retention, Running, Sandbox};
use shared_types::{Epoch, RefusalCode, limits::OUTPUT_CHUNK_BYTES};

use super::double::*;
use crate::{bounds::ENDED_AT_ONCE, links::LinkOptions};
use server_records::Operations as _;

/// A runner that is chosen, and an operation of it that has said "hello ".
async fn half_said() -> (World, Runner, Link, String, Running) {
    let world = World::new();
    let (runner, link, id, running) = half_said_in(&world, Runner::new(1, "one")).await;
    (world, runner, link, id, running)
}

/// A server that looks soon whether a full disk has room again.
fn looks_soon() -> World {
    World::with(LinkOptions {
        keep_again_after: Duration::from_millis(20),
        ..LinkOptions::default()
    })
}

async fn half_said_in(world: &World, runner: Runner) -> (Runner, Link, String, Running) {
    let mut link = world.link(&runner).await;
    world.store.choose(&runner);
    let (mut running, id) = world.begin(&mut link, exec(10)).await;
    link.output(&id, 0, "hello ").await;
    assert_eq!(next(&mut running).await, stdout(0, "hello "));
    (runner, link, id, running)
}

async fn kept(world: &World) -> Vec<u8> {
    let (outputs, mut kept) = (world.store.outputs(), Vec::new());
    let stream = OutputStream::Stdout;
    while let Some((offset, data)) = outputs
        .read(exec(10).id, stream, kept.len() as u64)
        .await
        .expect("it is read")
    {
        assert_eq!(offset, kept.len() as u64);
        kept.extend_from_slice(&data);
    }
    kept
}

/// The runner says "world" once more and that it has ended, and may forget it once both are kept.
async fn says_the_rest(world: &World, link: &mut Link, id: &str) {
    link.accept(id).await;
    link.output(id, 6, "world").await;
    link.exit(id, 11).await;
    assert_eq!(link.forgets().await, id);
    assert_eq!(kept(world).await, b"hello world");
}

/// Output from this offset up to that one, which the reader takes.
async fn say_more(link: &Link, id: &str, running: &mut Running, from: u64, to: u64) {
    let mut at = from;
    while at < to {
        let piece = vec![b'x'; OUTPUT_CHUNK_BYTES.min((to - at) as usize)];
        at += piece.len() as u64;
        link.output(id, at - piece.len() as u64, piece).await;
        match next(running).await {
            OperationEvent::Output { offset, data, .. } => {
                assert_eq!(offset + data.len() as u64, at);
            }
            other => panic!("expected output, got {other:?}"),
        }
    }
}

/// Enough for the runner to be told.
const MUCH: u64 = 512 * 1024;

#[tokio::test(start_paused = true)]
async fn what_is_durable_is_told_to_the_runner_and_never_falls() {
    let (_world, _, mut link, id, mut running) = half_said().await;
    say_more(&link, &id, &mut running, 6, MUCH).await;
    let first = link.committed(MUCH / 2).await;
    say_more(&link, &id, &mut running, MUCH, 2 * MUCH).await;
    let all = link.committed(3 * MUCH / 2).await;
    assert!(all.starts_with(&first) && all.is_sorted(), "{all:?}");
    assert!(all.iter().all(|up_to| *up_to <= 2 * MUCH), "{all:?}");
}

/// The next thing that a runner is told, which is how much of its stdout is durable.
async fn told_committed(link: &mut Link) -> (String, u64) {
    match link.next().await {
        server_frame::Kind::Commit(commit) => {
            assert_eq!(commit.stream, i32::from(v1::OutputStream::Stdout));
            (commit.operation, commit.up_to)
        }
        other => panic!("expected a commit, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_links_again_is_told_what_is_durable_though_nobody_reads() {
    let (world, runner, link, id, running) = half_said().await;
    drop(running);
    world.lose(&runner, link).await;
    let mut link = world.link(&runner.remembering(&exec(10), false)).await;
    assert_eq!(told_committed(&mut link).await, (id.clone(), 6));
    // Its collector goes on behind that.
    let frame = link.operation().await;
    assert_eq!((frame.operation, frame.stdout_from), (id, 6));
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_links_again_is_told_nothing_of_what_is_not_durable() {
    let (world, runner, link, _, running) = half_said().await;
    drop(running);
    world.lose(&runner, link).await;
    world.store.fill_the_disk();
    let mut link = world.link(&runner.remembering(&exec(10), false)).await;
    // Whatever was to be said of it would come before another operation.
    let _another = world.sandbox.start(exec(11)).await.expect("it starts");
    let first = link.next().await;
    assert!(
        matches!(first, server_frame::Kind::Operation(_)),
        "{first:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_runner_dropped_because_another_reader_had_it_is_read_here() {
    let (world, _, link, id, mut running) = half_said().await;
    // Another reader of the same operation had some of what follows, and committed it.
    let outputs = world.store.outputs();
    let appended = outputs.append(exec(10).id, OutputStream::Stdout, 6, "to all".into());
    appended.await.expect("it is kept");
    link.gap(&id, 6, 20).await;
    assert_eq!(next(&mut running).await, stdout(6, "to all"));
    let missing = OperationEvent::Gap {
        stream: OutputStream::Stdout,
        from: 12,
        to: 20,
    };
    assert_eq!(next(&mut running).await, missing);
}

#[tokio::test(start_paused = true)]
async fn what_follows_a_gap_is_kept_behind_it() {
    let (world, _, mut link, id, mut running) = half_said().await;
    link.gap(&id, 6, 20).await;
    link.output(&id, 20, "after it").await;
    link.exit(&id, 28).await;
    for _ in 0..3 {
        next(&mut running).await;
    }
    drop(running);
    eventually(|| world.store.outcome(&exec(10)) == Some(exited(28))).await;
    let outputs = world.store.outputs();
    let behind = outputs.read(exec(10).id, OutputStream::Stdout, 6).await;
    assert_eq!(behind.expect("it is read"), Some((20, "after it".into())));
    assert_eq!(link.forgets().await, id);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_is_neither_committed_nor_forgotten() {
    let (world, _, mut link, id, mut running) = half_said().await;
    world.store.fill_the_disk();
    say_more(&link, &id, &mut running, 6, MUCH).await;
    link.exit(&id, MUCH).await;
    let ended = next(&mut running).await;
    assert_eq!(ended, OperationEvent::Ended(exited(MUCH)));
    world.store.keep_end(&exec(10), exited(MUCH));
    drop(running);
    // Whatever was to be said of it would come before another operation.
    let _another = world.sandbox.start(exec(11)).await.expect("it starts");
    loop {
        match link.next().await {
            server_frame::Kind::Credit(_) => {}
            server_frame::Kind::Operation(_) => break,
            other => panic!("expected an operation, got {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_end_and_output_are_kept_needs_no_runner() {
    let (world, runner, link, id, mut running) = half_said().await;
    link.exit(&id, 6).await;
    let ended = OperationEvent::Ended(exited(6));
    assert_eq!(next(&mut running).await, ended);
    world.store.keep_end(&exec(10), exited(6));
    drop(running);
    world.lose(&runner, link).await;
    let mut again = world.sandbox.start(exec(10)).await.expect("it is stored");
    assert_eq!(next(&mut again).await, stdout(0, "hello "));
    assert_eq!(next(&mut again).await, ended);
}

#[tokio::test(start_paused = true)]
async fn the_output_of_an_outcome_that_comes_late_is_kept_from_where_it_stands() {
    let (world, runner, link, id, running) = half_said().await;
    drop(running);
    world.lose(&runner, link).await;
    world.store.rows().abandoned.push(exec(10).id);
    let back = runner.remembering(&exec(10), true);
    let mut link = world.link(&back).await;
    let frame = link.operation().await;
    assert_eq!((frame.request, frame.stdout_from), (None, 6));
    says_the_rest(&world, &mut link, &id).await;
    let outcome: Option<Outcome> = world.store.outcome(&exec(10));
    assert_eq!(outcome, Some(exited(11)));
}

#[tokio::test(start_paused = true)]
async fn an_end_is_stored_where_its_output_cannot_be_kept_and_the_output_once_it_can() {
    let world = looks_soon();
    let runner = Runner::new(1, "one");
    let (runner, link, id, running) = half_said_in(&world, runner).await;
    drop(running);
    world.lose(&runner, link).await;
    world.store.rows().abandoned.push(exec(10).id);
    world.store.fill_the_disk();
    let mut link = world.link(&runner.remembering(&exec(10), true)).await;
    assert_eq!(link.operation().await.stdout_from, 6);
    link.accept(&id).await;
    link.output(&id, 6, "world").await;
    link.exit(&id, 11).await;
    eventually(|| world.store.outcome(&exec(10)) == Some(exited(11))).await;
    world.store.free_the_disk();
    // It is not to be forgotten before.
    assert_eq!(link.operation().await.stdout_from, 6);
    says_the_rest(&world, &mut link, &id).await;
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_does_not_know_the_request_asks_again_over_the_same_link() {
    let world = looks_soon();
    let (runner, link, id, _) = half_said_in(&world, Runner::new(1, "one")).await;
    world.store.rows().abandoned.push(exec(10).id);
    world.lose(&runner, link).await;
    let world = world.restarted();
    let mut link = world.link(&runner.remembering(&exec(10), false)).await;
    assert_eq!(link.operation().await.stdout_from, 6);
    link.accept(&id).await;
    world.store.fill_the_disk();
    link.output(&id, 6, "w").await;
    eventually(|| world.store.has_told_full()).await;
    world.store.free_the_disk();
    assert_eq!(link.operation().await.stdout_from, 6);
    link.accept(&id).await;
    link.output(&id, 6, "world").await;
    link.exit(&id, 11).await;
    assert_eq!(link.forgets().await, id);
    assert_eq!(world.store.outcome(&exec(10)), Some(exited(11)));
    assert_eq!(kept(&world).await, b"hello world");
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_what_is_kept_nowhere_is_told_what_was_kept_while_it_was_away() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let mut operation = exec(10);
    if let Request::Exec(exec) = &mut operation.request {
        exec.retention = Retention::None;
    }
    let mut link = world.link(&runner).await;
    world.store.choose(&runner);
    let (running, id) = world.begin(&mut link, operation.clone()).await;
    drop(running);
    world.lose(&runner, link).await;
    let cancelled = world.store.request_cancel(operation.id).await;
    cancelled.expect("it is placed");
    // Whoever collects it now does not know that it is to be kept nowhere.
    let world = world.restarted();
    let mut link = world.link(&runner.remembering(&operation, false)).await;
    // The link's, and the collector's.
    link.cancel().await;
    link.cancel().await;
    link.operation().await;
    link.accept(&id).await;
    link.output(&id, 0, "hello").await;
    link.exit(&id, 5).await;
    assert_eq!(link.forgets().await, id);

    let mut running = world.sandbox.start(operation).await.expect("it is there");
    link.operation().await;
    link.refuse(&id, v1::refusal::Code::NotFound).await;
    assert_eq!(next(&mut running).await, stdout(0, "hello"));
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(5)));
}

#[tokio::test(start_paused = true)]
async fn what_is_followed_while_the_disk_is_full_is_asked_for_again_once_there_is_room() {
    let world = looks_soon();
    let runner = Runner::new(1, "one");
    let (runner, link, id, running) = half_said_in(&world, runner).await;
    drop(running);
    world.lose(&runner, link).await;
    world.store.rows().abandoned.push(exec(10).id);
    world.store.fill_the_disk();
    let mut link = world.link(&runner.remembering(&exec(10), false)).await;
    link.operation().await;
    link.accept(&id).await;
    link.output(&id, 6, "w").await;
    eventually(|| world.store.has_told_full()).await;
    world.store.free_the_disk();
    assert_eq!(link.operation().await.stdout_from, 6);
    link.accept(&id).await;
    link.output(&id, 6, "world").await;
    link.exit(&id, 11).await;
    eventually(|| world.store.outcome(&exec(10)) == Some(exited(11))).await;
    assert_eq!(kept(&world).await, b"hello world");
}

/// An operation that has said "hello ", and "world" when the disk was full, and whose end is stored.
async fn ended_while_the_disk_was_full() -> (World, Runner, Link, String, Running) {
    let world = looks_soon();
    let (runner, link, id, mut running) = half_said_in(&world, Runner::new(1, "one")).await;
    let area = world.store.area();
    eventually(|| area.kept_of(exec(10).id, OutputStream::Stdout).end() == 6).await;
    world.store.fill_the_disk();
    link.output(&id, 6, "world").await;
    assert_eq!(next(&mut running).await, stdout(6, "world"));
    link.exit(&id, 11).await;
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(11)));
    world.store.keep_end(&exec(10), exited(11));
    running.events.end_token().expect("it asked").spend();
    (world, runner, link, id, running)
}

/// What is told before this end, but for whether the runner is away.
async fn told_to_the_end(running: &mut Running, end: Outcome) -> Vec<OperationEvent> {
    let (mut told, end) = (Vec::new(), OperationEvent::Ended(end));
    loop {
        match next(running).await {
            event if event == end => return told,
            OperationEvent::Unreachable { .. } | OperationEvent::Reachable => {}
            event => told.push(event),
        }
    }
}

/// Longer than it takes a collector to look whether the end was stored while the runner is away.
const A_MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn what_only_the_runner_has_is_no_gap_however_long_it_is_away() {
    let (world, runner, link, id, running) = ended_while_the_disk_was_full().await;
    world.lose(&runner, link).await;
    drop(running);
    world.store.free_the_disk();
    tokio::time::sleep(A_MINUTE).await;
    // Who reads meanwhile does not wait for it.
    let reading = world.sandbox.read(exec(10).id, [0, 0]).await;
    let told = told_to_the_end(&mut reading.expect("it is placed"), exited(11)).await;
    let missing = OperationEvent::Gap {
        stream: OutputStream::Stdout,
        from: 6,
        to: 11,
    };
    assert_eq!(told, [stdout(0, "hello "), missing]);
    let mut link = world.link(&runner.remembering(&exec(10), true)).await;
    assert_eq!(link.operation().await.stdout_from, 6);
    says_the_rest(&world, &mut link, &id).await;
}

#[tokio::test(start_paused = true)]
async fn what_got_lost_on_its_way_to_the_disk_is_asked_for_again() {
    let world = looks_soon();
    let (_, mut link, id, mut running) = half_said_in(&world, Runner::new(1, "one")).await;
    world.store.area().lose(true);
    link.output(&id, 6, "world").await;
    assert_eq!(next(&mut running).await, stdout(6, "world"));
    world.store.area().lose(false);
    link.exit(&id, 11).await;
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(11)));
    world.store.keep_end(&exec(10), exited(11));
    running.events.end_token().expect("it asked").spend();
    assert_eq!(link.operation().await.stdout_from, 6);
    says_the_rest(&world, &mut link, &id).await;
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_on_a_runner_that_is_away_holds_up_no_output_of_another_runner() {
    let world = looks_soon();
    world.store.fill_the_disk();
    let (away, there) = (Runner::new(1, "one"), Runner::new(2, "two"));
    let mut gone = world.link(&away).await;
    world.store.choose(&away);
    for number in 0..ENDED_AT_ONCE as u128 {
        end_unkept(&world, &mut gone, 100 + number).await;
    }
    world.lose(&away, gone).await;
    world.store.free_the_disk();
    tokio::time::sleep(A_MINUTE).await;
    world.store.fill_the_disk();
    let mut link = world.link(&there).await;
    world.store.choose(&there);
    end_unkept(&world, &mut link, 10).await;
    world.store.free_the_disk();
    assert_eq!(link.operation().await.operation, exec(10).id.to_string());
}

/// An operation ends of whose output nothing is kept.
async fn end_unkept(world: &World, link: &mut Link, number: u128) {
    let (mut running, id) = world.begin(link, exec(number)).await;
    link.output(&id, 0, "hello").await;
    assert_eq!(next(&mut running).await, stdout(0, "hello"));
    link.exit(&id, 5).await;
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(5)));
    world.store.keep_end(&exec(number), exited(5));
    running.events.end_token().expect("it asked").spend();
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_nowhere_is_no_gap_however_long_its_runner_is_away() {
    let (world, runner, mut link) = World::chosen().await;
    let mut operation = exec(10);
    if let Request::Exec(exec) = &mut operation.request {
        exec.retention = Retention::None;
    }
    let (mut running, id) = world.begin(&mut link, operation.clone()).await;
    world.lose(&runner, link).await;
    world.store.keep_end(&operation, exited(5));
    tokio::time::sleep(A_MINUTE).await;
    let mut link = world.link(&runner.remembering(&operation, true)).await;
    assert_eq!(link.operation().await.stdout_from, 0);
    link.accept(&id).await;
    link.output(&id, 0, "hello").await;
    link.exit(&id, 5).await;
    let told = told_to_the_end(&mut running, exited(5)).await;
    assert_eq!(told, [stdout(0, "hello")]);
}

#[tokio::test(start_paused = true)]
async fn what_another_server_has_kept_while_the_runner_was_there_is_told_here() {
    let (world, runner, link, _, mut running) = half_said().await;
    world.lose(&runner, link).await;
    let (outputs, stream) = (world.store.outputs(), OutputStream::Stdout);
    let appended = outputs.append(exec(10).id, stream, 6, "world".into()).await;
    appended.expect("there is room");
    world.store.keep_end(&exec(10), exited(11));
    tokio::time::sleep(A_MINUTE).await;
    let told = told_to_the_end(&mut running, exited(11)).await;
    assert_eq!(told, [stdout(6, "world")]);
}

#[tokio::test(start_paused = true)]
async fn what_a_runner_refuses_under_an_epoch_of_before_is_no_gap() {
    let (world, runner, link, id, running) = ended_while_the_disk_was_full().await;
    world.lose(&runner, link).await;
    drop(running);
    world.store.free_the_disk();
    let mut link = world.link(&runner.remembering(&exec(10), true)).await;
    assert_eq!(link.operation().await.epoch, 1);
    world.store.rows().epoch = Epoch(2);
    link.refuse(&id, v1::refusal::Code::StaleEpoch).await;
    assert_eq!(link.operation().await.epoch, 2);
    says_the_rest(&world, &mut link, &id).await;
}

#[tokio::test(start_paused = true)]
async fn operations_that_run_on_hold_up_no_end_of_another() {
    let world = World::new();
    let mut runner = Runner::new(1, "one");
    let link = world.link(&runner).await;
    world.store.choose(&runner);
    for number in 10..30 {
        let started = world.sandbox.start(exec(number)).await;
        drop(started.expect("it starts"));
        world.store.rows().abandoned.push(exec(number).id);
        runner = runner.remembering(&exec(number), number == 29);
    }
    world.lose(&runner, link).await;
    let mut link = world.link(&runner).await;
    let ended = exec(29).id.to_string();
    for _ in 10..30 {
        let id = link.operation().await.operation;
        if id == ended {
            link.accept(&id).await;
            link.exit(&id, 0).await;
            eventually(|| world.store.outcome(&exec(29)) == Some(exited(0))).await;
            return;
        }
    }
    panic!("it is not asked for");
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_asked_for_under_an_epoch_of_before_is_asked_for_under_the_next() {
    let (world, runner, link, id, running) = half_said().await;
    drop(running);
    world.lose(&runner, link).await;
    world.store.rows().abandoned.push(exec(10).id);
    let mut link = world.link(&runner.remembering(&exec(10), true)).await;
    assert_eq!(link.operation().await.epoch, 1);
    world.store.rows().epoch = Epoch(2);
    link.refuse(&id, v1::refusal::Code::StaleEpoch).await;
    assert_eq!(link.operation().await.epoch, 2);
    link.accept(&id).await;
    link.exit(&id, 6).await;
    eventually(|| world.store.outcome(&exec(10)) == Some(exited(6))).await;
}

/// CRC-32 of "hello world".
const HELLO_WORLD: u32 = 0x0d4a_1185;

/// Whether it says that the output is not what was written.
fn is_damaged(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused(refusal)
        if refusal.code == RefusalCode::Lost && refusal.message.contains("checksums"))
}

#[tokio::test(start_paused = true)]
async fn output_of_which_some_was_kept_before_is_held_to_its_checksum_with_it() {
    for (rest, honest) in [("world", true), ("w0rld", false)] {
        let (world, runner, link, id, running) = half_said().await;
        drop(running);
        world.lose(&runner, link).await;
        let world = world.restarted();
        let mut link = world.link(&runner.remembering(&exec(10), false)).await;
        let mut running = world.sandbox.start(exec(10)).await.expect("it runs");
        assert_eq!(link.operation().await.stdout_from, 6);
        link.accept(&id).await;
        link.output(&id, 6, rest).await;
        link.exit_with(&id, 11, Some(HELLO_WORLD)).await;
        assert_eq!(next(&mut running).await, stdout(0, "hello "));
        assert_eq!(next(&mut running).await, stdout(6, rest));
        let OperationEvent::Ended(told) = next(&mut running).await else {
            panic!("it ends");
        };
        assert_eq!(is_damaged(&told), !honest, "{told:?}");
        drop(running);
        eventually(|| world.store.outcome(&exec(10)) == Some(told.clone())).await;
    }
}

#[tokio::test(start_paused = true)]
async fn output_that_nobody_waits_for_is_held_to_its_checksum_with_what_was_kept_before() {
    for (rest, honest) in [("world", true), ("w0rld", false)] {
        let (world, runner, link, id, running) = half_said().await;
        drop(running);
        world.lose(&runner, link).await;
        world.store.rows().abandoned.push(exec(10).id);
        let world = world.restarted();
        let mut link = world.link(&runner.remembering(&exec(10), true)).await;
        assert_eq!(link.operation().await.stdout_from, 6);
        link.accept(&id).await;
        link.output(&id, 6, rest).await;
        link.exit_with(&id, 11, Some(HELLO_WORLD)).await;
        eventually(|| world.store.outcome(&exec(10)).is_some()).await;
        let stored = world.store.outcome(&exec(10)).expect("it is stored");
        assert_eq!(is_damaged(&stored), !honest, "{stored:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_stored_is_told_as_it_is_to_whoever_comes_later() {
    let (world, runner, link, id, mut running) = half_said().await;
    link.output(&id, 6, "world").await;
    assert_eq!(next(&mut running).await, stdout(6, "world"));
    let Outcome::Exited(mut record) = exited(11) else {
        panic!("it exits");
    };
    // It was compared when it was stored.
    record.stdout.checksum = Some(HELLO_WORLD ^ 1);
    let stored = Outcome::Exited(record);
    world.store.keep_end(&exec(10), stored.clone());
    drop(running);
    world.lose(&runner, link).await;
    let world = world.restarted();
    let mut again = world.sandbox.start(exec(10)).await.expect("it is stored");
    assert_eq!(next(&mut again).await, stdout(0, "hello "));
    assert_eq!(next(&mut again).await, stdout(6, "world"));
    assert_eq!(next(&mut again).await, OperationEvent::Ended(stored));
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_stored_stays_whatever_its_runner_says_with_the_rest_of_the_output() {
    let (world, runner, link, id, running) = half_said().await;
    world.store.keep_end(&exec(10), exited(11));
    drop(running);
    world.lose(&runner, link).await;
    let world = world.restarted();
    let mut again = world.sandbox.start(exec(10)).await.expect("it is stored");
    let mut link = world.link(&runner).await;
    assert_eq!(link.operation().await.stdout_from, 6);
    link.accept(&id).await;
    link.output(&id, 6, "world").await;
    link.exit_with(&id, 11, Some(HELLO_WORLD ^ 1)).await;
    let ended = loop {
        if let OperationEvent::Ended(outcome) = next(&mut again).await {
            break outcome;
        }
    };
    assert_eq!(ended, exited(11));
}
