//! Two servers on one store: a runner's link at one of them, and those who work through the other.

use std::time::Duration;

use bytes::Bytes;
use proto::v1::{self, runner_frame, server_frame};
use shared_sandbox::{
    CancelAnswer, Control, Exec, Input, Operation, OperationEvent, Outcome, OutputStream, Request,
    Retention, Running, Sandbox as _, Signal,
};
use shared_types::{
    Epoch, Generation, RefusalCode, ReplicaId, TenantId,
    limits::{CREDIT_WINDOW_BYTES, OUTPUT_CHUNK_BYTES},
};
use tokio::time::{sleep, timeout};

use super::double::*;
use crate::links::{LinkOptions, Links};

/// Two servers, and a runner that is linked to the first of them.
struct Two {
    holder: World,
    other: World,
    peers: Peers,
    runner: Runner,
    link: Link,
}

impl Two {
    async fn start() -> Self {
        let holder = World::with(LinkOptions {
            // The runner gives no signs of life.
            lease: Duration::from_secs(24 * 60 * 60),
            ..LinkOptions::default()
        });
        let other = holder.beside(2);
        let peers = Peers::among(&[&holder, &other]).await;
        let runner = Runner::new(1, "one");
        let link = holder.link(&runner).await;
        holder.store.choose(&runner);
        Self {
            holder,
            other,
            peers,
            runner,
            link,
        }
    }

    /// An operation that is asked for at the other server, and that the runner accepts; with its id on the wire.
    async fn begin(&mut self, operation: Operation) -> (Running, String) {
        self.other.begin(&mut self.link, operation).await
    }

    async fn collect_nothing(&self) {
        self.holder.collects_nothing().await;
        self.other.collects_nothing().await;
    }

    /// The runner's link moves to the other server.
    async fn move_link(&mut self, remembers: &Operation) {
        let runner = self.runner.remembering(remembers, false);
        let moved = self.other.link(&runner).await;
        std::mem::replace(&mut self.link, moved).hang_up().await;
        self.holder.links.changed_elsewhere(runner.id).await;
    }
}

fn with(number: u128, change: impl FnOnce(&mut Exec)) -> Operation {
    let mut operation = exec(number);
    if let Request::Exec(exec) = &mut operation.request {
        change(exec);
    }
    operation
}

/// One whose output is kept nowhere.
fn unkept(number: u128) -> Operation {
    with(number, |exec| exec.retention = Retention::None)
}

/// The next event that tells of the operation, and not of the way to it.
async fn next_of(running: &mut Running) -> OperationEvent {
    loop {
        match next(running).await {
            OperationEvent::Unreachable { .. } | OperationEvent::Reachable => {}
            event => return event,
        }
    }
}

/// Whether this reader is told no more, and no end.
async fn reads_no_more(running: &mut Running) -> bool {
    loop {
        match within(running.events.recv()).await {
            None => return true,
            Some(OperationEvent::Accepted) => {}
            Some(_) => return false,
        }
    }
}

/// The output that this reader is told from this offset on, all of it, before this end.
async fn told_to_the_end(running: &mut Running, from: u64, end: Outcome) -> Vec<u8> {
    let mut told = Vec::new();
    loop {
        match next_of(running).await {
            OperationEvent::Output { offset, data, .. } => {
                assert_eq!(offset, from + told.len() as u64);
                told.extend_from_slice(&data);
            }
            OperationEvent::Ended(outcome) => {
                assert_eq!(outcome, end);
                return told;
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Waits until this much of the output is durable.
async fn kept(store: &Store, operation: &Operation, up_to: u64) {
    let kept = || store.area().kept_of(operation.id, OutputStream::Stdout);
    eventually(|| kept().end() == up_to).await;
}

/// Stores the end that this reader was given.
fn store_end(world: &World, running: &mut Running, operation: &Operation, outcome: Outcome) {
    let token = running.events.end_token().expect("it may store the end");
    world.store.keep_end(operation, outcome);
    token.spend();
}

#[tokio::test(start_paused = true)]
async fn a_command_is_accepted_prints_and_ends_and_its_reader_stores_its_end_once() {
    let mut two = Two::start().await;
    let (mut running, id) = two.begin(exec(10)).await;
    let first = within(running.events.recv()).await;
    assert_eq!(first, Some(OperationEvent::Accepted));
    two.link.output(&id, 0, "hello").await;
    assert_eq!(next(&mut running).await, stdout(0, "hello"));
    two.link.exit(&id, 5).await;
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(5)));
    assert_eq!(
        two.holder.store.outcome(&exec(10)),
        None,
        "it is its reader's"
    );
    store_end(&two.other, &mut running, &exec(10), exited(5));
    assert_eq!(two.link.forgets().await, id);
    two.collect_nothing().await;
    assert_eq!(two.holder.store.rows().settled, 0, "nobody else stored it");
    let kept = two
        .holder
        .store
        .area()
        .kept_of(exec(10).id, OutputStream::Stdout);
    assert_eq!(kept.end(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_end_that_its_reader_does_not_want_to_store_is_stored_once() {
    let mut two = Two::start().await;
    let (mut running, id) = two.begin(exec(10)).await;
    two.link.exit(&id, 0).await;
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(0)));
    drop(running.events.end_token().expect("it may store the end"));
    assert_eq!(two.link.forgets().await, id);
    two.collect_nothing().await;
    assert_eq!(two.holder.store.outcome(&exec(10)), Some(exited(0)));
    assert_eq!(two.holder.store.rows().settled, 1);
}

#[tokio::test(start_paused = true)]
async fn the_holder_stores_an_end_whose_reader_is_cut_off_before_it_has() {
    let mut two = Two::start().await;
    let (mut running, id) = two.begin(exec(10)).await;
    two.link.exit(&id, 0).await;
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(0)));
    let token = running.events.end_token().expect("it may store the end");
    two.peers.be(Way::Refused);
    two.peers.cut();
    eventually(|| two.holder.store.outcome(&exec(10)) == Some(exited(0))).await;
    assert_eq!(two.link.forgets().await, id);
    assert_eq!(two.holder.store.rows().settled, 1);
    drop(token);
    two.peers.be(Way::Open);
    two.collect_nothing().await;
    assert_eq!(two.holder.store.outcome(&exec(10)), Some(exited(0)));
}

#[tokio::test(start_paused = true)]
async fn input_and_signals_pass_and_are_answered() {
    let mut two = Two::start().await;
    let (mut running, id) = two.begin(with(10, |exec| exec.input = true)).await;
    taken(&two.link, &id, 0).await;
    assert_eq!(next(&mut running).await, OperationEvent::InputTaken(0));
    assert_eq!(running.controls.input(piece(0, b"abc")).await, Ok(3));
    let server_frame::Kind::Input(input) = two.link.next().await else {
        panic!("expected input");
    };
    assert_eq!((input.offset, &input.data[..]), (0, &b"abc"[..]));
    taken(&two.link, &id, 3).await;
    assert_eq!(next(&mut running).await, OperationEvent::InputTaken(3));
    let signalled = running.controls.control(Control::Signal(Signal::Interrupt));
    let (signalled, ()) = tokio::join!(signalled, async {
        let control = signal(&mut two.link).await;
        done(&two.link, &id, control).await;
    });
    assert_eq!(signalled, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn input_passes_also_where_the_operation_was_first_read_without_its_request() {
    let mut two = Two::start().await;
    let operation = with(10, |exec| exec.input = true);
    let _running = two.begin(operation.clone()).await;
    // Two servers that know nothing of the request.
    let (holder, other) = (two.holder.beside(3), two.holder.beside(4));
    let _peers = Peers::among(&[&holder, &other]).await;
    let runner = two.runner.remembering(&operation, false);
    let mut link = holder.link(&runner).await;
    let _reads = other.sandbox.read(operation.id, [0, 0]).await;
    let frame = link.operation().await;
    assert_eq!(frame.request, None);
    let id = frame.operation;
    link.accept(&id).await;
    taken(&link, &id, 0).await;
    let running = other.sandbox.start(operation).await.expect("it runs");
    assert_eq!(running.controls.input(piece(0, b"abc")).await, Ok(3));
    let server_frame::Kind::Input(input) = link.next().await else {
        panic!("expected input");
    };
    assert_eq!((input.offset, &input.data[..]), (0, &b"abc"[..]));
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_all_of_what_is_kept_nowhere_and_the_holder_does_not_run_ahead() {
    let mut two = Two::start().await;
    let (mut running, id) = two.begin(unkept(10)).await;
    let total = 6 * CREDIT_WINDOW_BYTES;
    let (mut link, mut at, mut room) = (two.link, 0, CREDIT_WINDOW_BYTES);
    // So far as there is credit, while nobody reads.
    loop {
        while at + (OUTPUT_CHUNK_BYTES as u64) <= room {
            link.output(&id, at, bytes(at)).await;
            at += OUTPUT_CHUNK_BYTES as u64;
        }
        match timeout(Duration::from_secs(1), link.credit()).await {
            Ok(credit) => room = credit.up_to,
            Err(_) => break,
        }
    }
    // A window at each of both servers, and the pieces that are on their way.
    let at_most = 2 * CREDIT_WINDOW_BYTES + 16 * OUTPUT_CHUNK_BYTES as u64;
    assert!(at <= at_most, "{at} bytes were taken, and none read");
    let writes = async {
        while at < total {
            if at + OUTPUT_CHUNK_BYTES as u64 > room {
                room = link.credit().await.up_to;
                continue;
            }
            link.output(&id, at, bytes(at)).await;
            at += OUTPUT_CHUNK_BYTES as u64;
        }
        link.exit(&id, total).await;
    };
    let reads = async {
        let mut got = 0;
        loop {
            match next(&mut running).await {
                OperationEvent::Output { offset, data, .. } => {
                    assert_eq!(offset, got);
                    for (place, byte) in data.iter().enumerate() {
                        assert_eq!(*byte, byte_at(offset + place as u64));
                    }
                    got += data.len() as u64;
                    sleep(Duration::from_millis(10)).await;
                }
                OperationEvent::Ended(outcome) => {
                    assert_eq!(outcome, exited(total));
                    return got;
                }
                other => panic!("{other:?}"),
            }
        }
    };
    let ((), got) = tokio::join!(writes, reads);
    assert_eq!(got, total);
    let kept = two
        .holder
        .store
        .area()
        .kept_of(exec(10).id, OutputStream::Stdout);
    assert_eq!(kept.end(), 0, "it is kept nowhere");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_passes_and_its_answer_comes_back() {
    let mut two = Two::start().await;
    let (mut running, id) = two.begin(exec(10)).await;
    let cancel = two.other.sandbox.cancel(exec(10).id, Epoch(1));
    let (cancelled, ()) = tokio::join!(cancel, async {
        assert_eq!(two.link.cancel().await.operation, id);
        let answer = v1::cancel_answer::Answer::Cancelled;
        two.link.answer_cancel(&id, answer).await;
    });
    assert_eq!(cancelled, Ok(CancelAnswer::Cancelled));
    two.link.exit(&id, 0).await;
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(0)));
}

#[tokio::test(start_paused = true)]
async fn a_reader_whose_call_is_cut_goes_on_by_offset_and_gets_each_byte_once() {
    let mut two = Two::start().await;
    let (mut running, id) = two.begin(exec(10)).await;
    two.link.output(&id, 0, "ab").await;
    assert_eq!(next(&mut running).await, stdout(0, "ab"));
    two.peers.be(Way::Stalled);
    two.link.output(&id, 2, "cd").await;
    let asked = two.peers.asked().len();
    two.peers.cut();
    two.link.output(&id, 4, "ef").await;
    two.peers.be(Way::Open);
    two.link.exit(&id, 6).await;
    assert_eq!(told_to_the_end(&mut running, 2, exited(6)).await, b"cdef");
    assert!(
        two.peers.asked().len() > asked,
        "it borrowed the link again"
    );
}

#[tokio::test(start_paused = true)]
async fn the_one_reader_of_what_is_kept_nowhere_goes_on_by_offset_after_a_cut() {
    let mut two = Two::start().await;
    let (mut running, id) = two.begin(unkept(10)).await;
    let read = CREDIT_WINDOW_BYTES / 2;
    for at in (0..read).step_by(OUTPUT_CHUNK_BYTES) {
        two.link.output(&id, at, bytes(at)).await;
        next(&mut running).await;
    }
    running.controls.commit(OutputStream::Stdout, read).await;
    assert_eq!(two.link.committed(read).await.last(), Some(&read));
    two.link.output(&id, read, "cd").await;
    two.peers.cut();
    // The runner has given up what was confirmed. To the reader that is no gap.
    two.link.operation().await;
    two.link.accept(&id).await;
    two.link.gap(&id, 0, read).await;
    two.link.output(&id, read, "cdef").await;
    two.link.exit(&id, read + 4).await;
    let told = told_to_the_end(&mut running, read, exited(read + 4)).await;
    assert_eq!(told, b"cdef");
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_was_sent_when_the_call_was_cut_is_not_known_to_be_done_and_not_sent_again() {
    let mut two = Two::start().await;
    let (mut running, id) = two.begin(exec(10)).await;
    let signalled = running.controls.control(Control::Signal(Signal::Interrupt));
    let (signalled, ()) = tokio::join!(signalled, async {
        signal(&mut two.link).await;
        two.peers.cut();
    });
    let refusal = signalled.expect_err("it is not known");
    assert_eq!(refusal.code, RefusalCode::Unavailable);
    assert!(refusal.message.contains("not known"), "{refusal}");
    two.link.output(&id, 0, "on").await;
    assert_eq!(next_of(&mut running).await, stdout(0, "on"));
    kept(&two.holder.store, &exec(10), 2).await;
    let again = timeout(Duration::from_secs(5), signal(&mut two.link)).await;
    assert!(again.is_err(), "it was sent again: {again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_was_sent_is_not_sent_again_when_the_link_moves_to_or_from_its_server() {
    for from_holder in [true, false] {
        let mut two = Two::start().await;
        let asks = if from_holder { &two.holder } else { &two.other };
        let (running, _) = asks.begin(&mut two.link, exec(10)).await;
        let signalled = running.controls.control(Control::Signal(Signal::Interrupt));
        let (signalled, ()) = tokio::join!(signalled, async {
            signal(&mut two.link).await;
            two.move_link(&exec(10)).await;
            let again = two.link.operation().await.operation;
            two.link.accept(&again).await;
        });
        let refusal = signalled.expect_err("it is not known");
        assert!(refusal.message.contains("not known"), "{refusal}");
        let again = timeout(Duration::from_secs(5), signal(&mut two.link)).await;
        assert!(again.is_err(), "it was sent again: {again:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_waits_for_a_way_is_sent_once_over_the_next_call() {
    let mut two = Two::start().await;
    let (mut running, id) = two.begin(exec(10)).await;
    two.peers.be(Way::Refused);
    two.peers.cut();
    assert!(matches!(
        next(&mut running).await,
        OperationEvent::Unreachable { .. }
    ));
    let signalled = running.controls.control(Control::Signal(Signal::Interrupt));
    let (signalled, ()) = tokio::join!(signalled, async {
        sleep(Duration::from_millis(1)).await;
        two.peers.be(Way::Open);
        let control = signal(&mut two.link).await;
        done(&two.link, &id, control).await;
    });
    assert_eq!(signalled, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn output_is_kept_by_the_server_to_which_the_link_moves_and_nothing_is_missing() {
    let mut two = Two::start().await;
    let (mut running, id) = two.begin(exec(10)).await;
    two.link.output(&id, 0, "hello ").await;
    assert_eq!(next(&mut running).await, stdout(0, "hello "));
    kept(&two.holder.store, &exec(10), 6).await;
    two.move_link(&exec(10)).await;
    let asked = two.link.operation().await;
    assert_eq!(
        asked.stdout_from, 6,
        "behind what the first server has kept"
    );
    two.link.accept(&id).await;
    two.link.output(&id, 6, "world").await;
    assert_eq!(next_of(&mut running).await, stdout(6, "world"));
    kept(&two.other.store, &exec(10), 11).await;
    two.link.exit(&id, 11).await;
    assert_eq!(
        next_of(&mut running).await,
        OperationEvent::Ended(exited(11))
    );
    store_end(&two.other, &mut running, &exec(10), exited(11));
    assert_eq!(two.link.forgets().await, id);
    two.collect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_first_server_had_not_kept_comes_again_over_the_moved_link() {
    let mut two = Two::start().await;
    let (mut running, id) = two.begin(exec(10)).await;
    // Of this the first server keeps nothing.
    two.holder.store.area().lose(true);
    two.link.output(&id, 0, "hello ").await;
    assert_eq!(next(&mut running).await, stdout(0, "hello "));
    two.holder.store.area().lose(false);
    two.move_link(&exec(10)).await;
    assert_eq!(two.link.operation().await.stdout_from, 0);
    two.link.accept(&id).await;
    two.link.output(&id, 0, "hello world").await;
    assert_eq!(next_of(&mut running).await, stdout(6, "world"));
    kept(&two.other.store, &exec(10), 11).await;
    two.link.exit(&id, 11).await;
    assert_eq!(
        next_of(&mut running).await,
        OperationEvent::Ended(exited(11))
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_nowhere_comes_once_to_its_reader_when_the_link_moves() {
    let mut two = Two::start().await;
    let (mut running, id) = two.begin(unkept(10)).await;
    two.link.output(&id, 0, "ab").await;
    assert_eq!(next(&mut running).await, stdout(0, "ab"));
    two.move_link(&unkept(10)).await;
    assert_eq!(two.link.operation().await.stdout_from, 2);
    two.link.accept(&id).await;
    two.link.output(&id, 2, "cd").await;
    two.link.exit(&id, 4).await;
    assert_eq!(told_to_the_end(&mut running, 2, exited(4)).await, b"cd");
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_nowhere_is_not_kept_by_the_holder_once_its_time_to_start_is_over() {
    let mut two = Two::start().await;
    let (mut running, id) = two.begin(unkept(10)).await;
    two.link.output(&id, 0, "ab").await;
    assert_eq!(next(&mut running).await, stdout(0, "ab"));
    for world in [&two.holder, &two.other] {
        world.clock.advance(Duration::from_secs(61));
    }
    two.peers.cut();
    let again = two.link.operation().await;
    assert_eq!(again.request, None, "it is not started again");
    two.link.accept(&id).await;
    two.link.output(&id, 0, "abcd").await;
    two.link.exit(&id, 4).await;
    assert_eq!(told_to_the_end(&mut running, 2, exited(4)).await, b"cd");
    let area = two.holder.store.area();
    assert_eq!(area.kept_of(exec(10).id, OutputStream::Stdout).end(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_to_have_all_waits_for_a_holder_that_cannot_keep_it_now() {
    let mut two = Two::start().await;
    let whole = with(10, |exec| exec.retention = Retention::All);
    let (running, id) = two.begin(whole.clone()).await;
    drop(running);
    two.holder.store.fill_the_disk();
    two.link.output(&id, 0, "hello").await;
    two.link.exit(&id, 5).await;
    eventually(|| two.holder.store.outcome(&whole) == Some(exited(5))).await;
    sleep(Duration::from_secs(60)).await;
    let again = two.other.sandbox.start(whole.clone()).await;
    let mut running = again.expect("it has ended");
    let told = timeout(Duration::from_secs(1), next_of(&mut running)).await;
    assert!(told.is_err(), "it waits: {told:?}");
    two.holder.store.free_the_disk();
    two.link.operation().await;
    two.link.accept(&id).await;
    two.link.output(&id, 0, "hello").await;
    two.link.exit(&id, 5).await;
    assert_eq!(told_to_the_end(&mut running, 0, exited(5)).await, b"hello");
}

#[tokio::test(start_paused = true)]
async fn a_holder_lends_only_the_link_of_the_generation_that_is_asked_for() {
    let two = Two::start().await;
    let (tenant, runner) = (TenantId::from_u128(1), two.runner.id);
    let lend = |links: &Links, generation| {
        let links = links.clone();
        async move {
            links
                .lend(tenant, runner, Generation(generation))
                .await
                .is_some()
        }
    };
    assert!(lend(&two.holder.links, 1).await);
    assert!(!lend(&two.holder.links, 2).await, "it has an older link");
    assert!(!lend(&two.holder.links, 0).await, "it has a newer link");
    let mut presence = two.other.links.presence(runner).await;
    within(presence.until(true)).await;
    assert!(
        !lend(&two.other.links, 1).await,
        "it has borrowed it itself"
    );
}

#[tokio::test(start_paused = true)]
async fn readers_at_both_servers_see_the_same_bytes_and_the_same_end() {
    let mut two = Two::start().await;
    let (mut running, id) = two.begin(exec(10)).await;
    let at_holder = two.holder.sandbox.read(exec(10).id, [0, 0]).await;
    let mut at_holder = at_holder.expect("it is placed");
    two.link.output(&id, 0, "one ").await;
    assert_eq!(next(&mut running).await, stdout(0, "one "));
    assert_eq!(next(&mut at_holder).await, stdout(0, "one "));
    let later = two.other.sandbox.read(exec(10).id, [2, 0]).await;
    let mut later = later.expect("it is placed");
    assert_eq!(next(&mut later).await, stdout(2, "e "));
    two.link.output(&id, 4, "two").await;
    two.link.exit(&id, 7).await;
    for reader in [&mut running, &mut at_holder, &mut later] {
        assert_eq!(next(reader).await, stdout(4, "two"));
        let ended = next(reader).await;
        assert_eq!(ended, OperationEvent::Ended(exited(7)));
        drop(reader.events.end_token());
    }
    two.collect_nothing().await;
    assert_eq!(two.holder.store.rows().settled, 1);
}

#[tokio::test(start_paused = true)]
async fn one_reader_takes_over_from_another_at_another_server() {
    let mut two = Two::start().await;
    let (mut first, id) = two.begin(unkept(10)).await;
    two.link.output(&id, 0, "ab").await;
    assert_eq!(next(&mut first).await, stdout(0, "ab"));
    let second = two.holder.sandbox.start(unkept(10)).await;
    let mut second = second.expect("it runs");
    two.link.operation().await;
    two.link.accept(&id).await;
    two.link.output(&id, 0, "abcd").await;
    assert_eq!(next(&mut second).await, stdout(0, "abcd"));
    assert!(reads_no_more(&mut first).await);
    let _third = two.other.sandbox.start(unkept(10)).await.expect("it runs");
    two.link.operation().await;
    assert!(reads_no_more(&mut second).await);
}

#[tokio::test(start_paused = true)]
async fn a_link_that_nobody_uses_any_more_is_given_back_and_no_longer_looked_for() {
    let two = Two::start().await;
    let mut presence = two.other.links.presence(two.runner.id).await;
    within(presence.until(true)).await;
    assert_eq!(two.peers.asked().len(), 1);
    // In use, it stays.
    sleep(Duration::from_secs(300)).await;
    assert!(presence.is_online());
    assert_eq!(two.peers.asked().len(), 1);
    drop(presence);
    sleep(Duration::from_secs(45)).await;
    let looked = two.holder.store.rows().looked;
    two.other.links.all_changed_elsewhere().await;
    sleep(Duration::from_secs(300)).await;
    assert_eq!(two.holder.store.rows().looked, looked);
    assert_eq!(two.peers.asked().len(), 1);
    // The next one who does has it borrowed again.
    let mut presence = two.other.links.presence(two.runner.id).await;
    within(presence.until(true)).await;
    assert_eq!(two.peers.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_link_that_is_not_lent_is_asked_for_again_with_pauses() {
    let two = Two::start().await;
    two.peers.be(Way::Refused);
    let mut presence = two.other.links.presence(two.runner.id).await;
    sleep(Duration::from_secs(60)).await;
    assert!(!presence.is_online());
    let asked = two.peers.asked().len();
    assert!((30..200).contains(&asked), "{asked} times in a minute");
    two.peers.be(Way::Open);
    within(presence.until(true)).await;
    assert_eq!(
        two.peers.asked().last().map(|link| link.replica),
        Some(ReplicaId::from_u128(1))
    );
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_does_not_answer_delays_a_command_and_loses_none() {
    let mut two = Two::start().await;
    two.peers.be(Way::Stalled);
    let asks = two.other.sandbox.start(exec(10));
    let (started, ()) = tokio::join!(asks, async {
        sleep(Duration::from_secs(3)).await;
        two.peers.be(Way::Open);
    });
    let mut running = started.expect("it starts");
    let id = two.link.operation().await.operation;
    two.link.accept(&id).await;
    two.link.exit(&id, 0).await;
    assert_eq!(
        next_of(&mut running).await,
        OperationEvent::Ended(exited(0))
    );
}

fn piece(offset: u64, data: &[u8]) -> Input {
    Input {
        offset,
        data: Bytes::copy_from_slice(data),
        end: false,
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

/// The id of the next signal.
async fn signal(link: &mut Link) -> u64 {
    match link.next().await {
        server_frame::Kind::Signal(signal) => signal.id,
        other => panic!("expected a signal, got {other:?}"),
    }
}

async fn done(link: &Link, operation: &str, id: u64) {
    link.send(runner_frame::Kind::Done(v1::Done {
        operation: operation.to_owned(),
        id,
        refusal: None,
    }))
    .await;
}

fn byte_at(offset: u64) -> u8 {
    (offset % 251) as u8
}

/// A chunk of output that begins there.
fn bytes(from: u64) -> Vec<u8> {
    (from..from + OUTPUT_CHUNK_BYTES as u64)
        .map(byte_at)
        .collect()
}
