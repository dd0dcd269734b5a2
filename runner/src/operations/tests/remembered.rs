//! What is remembered of operations that are gone, by a daemon that was started anew.

use shared_types::{OsEntropy, Timestamp};

use super::*;
use crate::journal::{Journal, MAX_LINE_BYTES};

/// For so long it is remembered, at least.
pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The clocks of a host that has been up for so much longer than this process.
#[derive(Debug)]
struct UpFor(Duration, SystemClock);

impl Clock for UpFor {
    fn now(&self) -> Timestamp {
        self.1.now()
    }

    fn monotonic(&self) -> Duration {
        self.1.monotonic()
    }

    fn boot_time(&self) -> Duration {
        self.0 + self.1.monotonic()
    }

    fn boot(&self) -> &str {
        self.1.boot()
    }
}

/// Another daemon in this home, at this time after the first one began.
pub(super) async fn daemon_after(time: Duration, folder: &Path, boot: &str) -> Bench {
    let clock = Arc::new(UpFor(time, SystemClock::new()));
    Bench::of(folder, found(folder, boot, clock).await).await
}

/// Asks for operation 7; returns why it is refused, if it is.
async fn refused(bench: &mut Bench) -> Option<v1::refusal::Code> {
    bench.ask(7, shell("true"), 0).await;
    match bench.read_all().await.1 {
        v1::ended::Outcome::Refused(refusal) => Some(refusal.code()),
        _ => None,
    }
}

#[tokio::test]
async fn a_day_goes_on_while_no_daemon_runs() {
    let folder = tempfile::tempdir().expect("a directory");
    let boot = incarnation().boot;
    let bench = daemon_after(Duration::ZERO, folder.path(), &boot).await;
    let cancel = Order::Cancel {
        operation: OperationId::from_u128(7),
        owner: OWNER,
        epoch: Epoch(1),
        incarnation: Some(incarnation()),
    };
    let ordered = bench.operations.order(bench.link, cancel).await;
    ordered.expect("a table");
    let mut bench = bench;
    assert!(matches!(bench.next().await, Kind::CancelAnswer(_)));
    for (time, expected) in [
        (DAY / 2, Some(v1::refusal::Code::Fenced)),
        (DAY + DAY / 2, None),
    ] {
        bench.die().await;
        bench = daemon_after(time, folder.path(), &boot).await;
        assert_eq!(refused(&mut bench).await, expected, "after {time:?}");
    }
}

#[tokio::test]
async fn an_epoch_outlives_a_journal_without_room_for_the_operation_that_it_came_with() {
    let temporary = tempfile::tempdir().expect("a directory");
    let folder = temporary.path().join("journal");
    let opened = Journal::open(&folder, &SystemClock::new(), &OsEntropy);
    let mut journal: Journal<JournalEntry> = opened.expect("a journal").journal;
    for length in [MAX_LINE_BYTES / 2, 1024, 0] {
        let filler = [JournalEntry::Boot("-".repeat(length))];
        while journal.append(&filler).is_ok() {}
    }
    drop(journal);

    let mut bench = Bench::in_folder(temporary.path(), &incarnation().boot, None).await;
    let mut newer = incoming(1, shell("true"));
    newer.epoch = Epoch(5);
    bench.order(newer).await;
    let v1::ended::Outcome::Refused(refusal) = bench.read_all().await.1 else {
        panic!("there was room for it");
    };
    assert_eq!(refusal.code(), v1::refusal::Code::ResourceExhausted);
    let mut bench = bench.kill(&incarnation().boot).await;
    let stale = Some(v1::refusal::Code::StaleEpoch);
    assert_eq!(refused(&mut bench).await, stale, "of an older holder");
}
