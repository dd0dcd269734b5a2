//! Retention `all`: every byte that a command writes is kept by the server, however much it is.
//!
//! No surface asks for it yet, so the operations are placed as the engine places its own, through
//! the real router, on the real runner, into the server's real output area.

use std::path::Path;

use server_store::Outputs;
use sha2::{Digest as _, Sha256};
use shared_sandbox::{
    Command, Exec, ExitRecord, ExitStatus, Operation, OperationEvent, Outcome, OutputStream,
    Request, Retention, Running,
};
use shared_types::{OperationId, limits::SPOOL_BYTES_PER_STREAM};
use tests::{
    door::{KeptDoor, operation, output_key},
    footprint::{peak_from_here, peak_of},
    gantry::eventually,
    work::Work,
};

const MIB: u64 = 1024 * 1024;

/// Several times what a runner holds of a stream that is not committed.
const LINES: u32 = 4_000_000;

/// The most that either end may take of memory, far below what goes through.
const MEMORY_AT_MOST: u64 = 64 * MIB;

fn kept_whole(work: Work) -> Operation {
    keeping_all(work.at_once(LINES))
}

fn keeping_all(command: String) -> Operation {
    operation(Request::Exec(Exec {
        retention: Retention::All,
        ..Exec::new(Command::Shell(command))
    }))
}

/// Reads on until this offset, or to the end, whose record it returns.
async fn read(
    running: &mut Running,
    at: &mut u64,
    hasher: &mut Sha256,
    until: u64,
) -> Option<ExitRecord> {
    while *at < until {
        match running.events.recv().await.expect("it goes on") {
            OperationEvent::Output { offset, data, .. } => {
                assert_eq!(offset, *at, "nothing is lost or repeated");
                hasher.update(&data);
                *at += data.len() as u64;
            }
            OperationEvent::Gap { from, to, .. } => panic!("{from}..{to} is missing"),
            OperationEvent::Ended(Outcome::Exited(record)) => return Some(record),
            OperationEvent::Ended(other) => panic!("{other:?}"),
            _ => {}
        }
    }
    None
}

/// Holds an operation that ended, and what is kept of it, to the work.
async fn is_kept_whole(mut door: KeptDoor, folder: &Path, id: OperationId, work: Work) {
    work.lines(&door.runner).await;
    let effects = door.runner.file(&format!("effects-{}", work.0));
    assert_eq!(effects.as_deref(), Some("effect\n"));
    let record = match door.rows.outcome(id) {
        Some(Outcome::Exited(record)) => record,
        other => panic!("{other:?}"),
    };
    let expected = work.output(LINES.into());
    assert_eq!(record.status, ExitStatus::Code(0));
    assert_eq!(record.stdout.offset, expected.len() as u64);
    // As another server finds it.
    door.kill().await;
    let area = Outputs::start(folder).expect("it is there");
    let (key, mut at, mut hasher) = (output_key(id, OutputStream::Stdout), 0, Sha256::new());
    while let Some(kept) = area.read(key, at, MIB as usize).await.expect("it is read") {
        assert_eq!(kept.offset, at, "nothing is missing");
        hasher.update(&kept.data);
        at = kept.end();
    }
    assert_eq!(at, expected.len() as u64);
    assert!(hasher.finalize() == Sha256::digest(expected), "other bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_a_command_writes_is_kept_and_read_over_kills_of_server_and_runner() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut door = KeptDoor::open(folder.path()).await;
    let work = Work(71);
    let operation = kept_whole(work);
    let (mut at, mut hasher) = (0, Sha256::new());
    let mut running = door.operation(operation.clone()).await;
    read(&mut running, &mut at, &mut hasher, 6 * MIB).await;
    door.runner.kill().await;
    door.runner.start();
    // More than a runner holds of what is not committed: it goes on only because it is.
    read(&mut running, &mut at, &mut hasher, 18 * MIB).await;
    door.kill().await;
    door.runner.kill().await;
    door.start().await;
    door.runner.start();
    door.until_linked().await;

    // Whoever asks again hears everything from the first byte on.
    let (mut at, mut hasher) = (0, Sha256::new());
    let mut running = door.operation(operation.clone()).await;
    let record = read(&mut running, &mut at, &mut hasher, u64::MAX).await;
    drop(running);
    let record = record.expect("it ended");
    assert_eq!((record.stdout.offset, record.stderr.offset), (at, 0));
    let expected = Sha256::digest(work.output(LINES.into()));
    assert!(hasher.finalize() == expected, "other bytes were told");
    eventually("the end is stored", || async {
        door.rows.outcome(operation.id)
    })
    .await;
    is_kept_whole(door, folder.path(), operation.id, work).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_is_kept_although_nobody_reads_and_fills_no_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let door = KeptDoor::open(folder.path()).await;
    let pids = [std::process::id(), door.runner.pid()];
    pids.into_iter().for_each(peak_from_here);
    let work = Work(72);
    let operation = kept_whole(work);
    drop(door.operation(operation.clone()).await);
    eventually("it ends", || async { door.rows.outcome(operation.id) }).await;
    for pid in pids {
        let peak = peak_of(pid);
        assert!(peak < MEMORY_AT_MOST, "{} MiB", peak / MIB);
    }
    is_kept_whole(door, folder.path(), operation.id, work).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_is_kept_of_a_command_that_nobody_waits_for_any_more() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut door = KeptDoor::open(folder.path()).await;
    let work = Work(73);
    let operation = kept_whole(work);
    let mut running = door.operation(operation.clone()).await;
    read(&mut running, &mut 0, &mut Sha256::new(), MIB).await;
    door.kill().await;
    door.rows.abandon(operation.id);
    door.start().await;
    eventually("it ends", || async { door.rows.outcome(operation.id) }).await;
    is_kept_whole(door, folder.path(), operation.id, work).await;
}

/// How long the stdout of the runner's only command is, as far as it came to its files.
fn spooled(door: &KeptDoor) -> Option<u64> {
    let commands = std::fs::read_dir(door.runner.home().join("runner/commands")).ok()?;
    let commands = commands.filter_map(|entry| Some(entry.ok()?.path()));
    let mut begun = commands.filter(|path| path.join("fate").exists());
    let spool = std::fs::metadata(begun.next()?.join("out"));
    spool.map(|spool| spool.len()).ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_back_has_room_for_what_is_durable_though_nobody_reads() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut door = KeptDoor::open(folder.path()).await;
    let work = Work(75);
    let (operation, expected) = (kept_whole(work), work.output(LINES.into()));
    let mut running = door.operation(operation.clone()).await;
    read(&mut running, &mut 0, &mut Sha256::new(), MIB).await;
    drop(running);
    door.kill().await;
    // The server had kept more than it came to tell its runner.
    let area = Outputs::start(folder.path()).expect("it is there");
    let key = output_key(operation.id, OutputStream::Stdout);
    let told_at_most = area.end(key).await.expect("it is read");
    // No more than there is: the command may wait already, for the room that it was not told of.
    let written = spooled(&door).expect("it has written");
    let durable = written.clamp(told_at_most, told_at_most + 2 * MIB);
    let more = &expected.as_bytes()[told_at_most as usize..durable as usize];
    let kept = area.append(key, told_at_most, more.to_vec()).await;
    kept.expect("it runs");
    assert_eq!(area.synced(key).await.expect("it is written"), durable);
    drop(area);

    // A command waits with so much that it was not told of.
    let waits_at = durable + SPOOL_BYTES_PER_STREAM;
    assert!(waits_at < expected.len() as u64, "it ends before it waits");
    door.start().await;
    door.until_linked().await;
    eventually("the command goes on", || async {
        spooled(&door).filter(|length| *length == waits_at)
    })
    .await;

    let (mut at, mut hasher) = (0, Sha256::new());
    let mut running = door.operation(operation.clone()).await;
    let record = read(&mut running, &mut at, &mut hasher, u64::MAX).await;
    drop(running);
    assert_eq!(record.expect("it ended").stdout.offset, at);
    assert!(hasher.finalize() == Sha256::digest(expected), "other bytes");
    eventually("the end is stored", || async {
        door.rows.outcome(operation.id)
    })
    .await;
    is_kept_whole(door, folder.path(), operation.id, work).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stops_reading_holds_up_no_command_and_fills_no_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let door = KeptDoor::open(folder.path()).await;
    let pids = [std::process::id(), door.runner.pid()];
    pids.into_iter().for_each(peak_from_here);
    let work = Work(74);
    let operation = keeping_all(format!("{}; touch through", work.at_once(LINES)));
    let (mut at, mut hasher) = (0, Sha256::new());
    let mut running = door.operation(operation.clone()).await;
    read(&mut running, &mut at, &mut hasher, MIB).await;
    eventually("the command is through", || async {
        door.runner.file("through")
    })
    .await;
    eventually("the end is stored", || async {
        door.rows.outcome(operation.id)
    })
    .await;
    // What it has missed, it is told as soon as it reads on.
    let record = read(&mut running, &mut at, &mut hasher, u64::MAX).await;
    drop(running);
    assert_eq!(record.expect("it ended").stdout.offset, at);
    for pid in pids {
        let peak = peak_of(pid);
        assert!(peak < MEMORY_AT_MOST, "{} MiB", peak / MIB);
    }
    let expected = Sha256::digest(work.output(LINES.into()));
    assert!(hasher.finalize() == expected, "other bytes were told");
    is_kept_whole(door, folder.path(), operation.id, work).await;
}
