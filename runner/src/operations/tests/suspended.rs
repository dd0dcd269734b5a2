//! When a command must have started is counted while the host is suspended, and nothing else is.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use shared_types::Timestamp;

use super::*;

/// More than any operation is given to start.
const NIGHT: Duration = Duration::from_secs(8 * 60 * 60);

/// One clock of a host goes on by a night whenever it is looked at; the others are the system's.
#[derive(Debug)]
struct Nights {
    clock: SystemClock,
    of: Which,
    looks: AtomicU32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Which {
    /// As where the host is suspended.
    BootTime,
    /// As no host does it.
    Monotonic,
    /// As where somebody sets it.
    Wall,
}

impl Nights {
    fn pass(&self, which: Which) -> Duration {
        match which == self.of {
            true => NIGHT * (self.looks.fetch_add(1, Relaxed) + 1),
            false => Duration::ZERO,
        }
    }
}

impl Clock for Nights {
    fn now(&self) -> Timestamp {
        self.clock.now().after(self.pass(Which::Wall))
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic() + self.pass(Which::Monotonic)
    }

    fn boot_time(&self) -> Duration {
        self.clock.boot_time() + self.pass(Which::BootTime)
    }

    fn boot(&self) -> &str {
        self.clock.boot()
    }
}

/// What becomes of a command whose shell is not known yet, so that it takes a while to start.
async fn started_by(of: Which) -> v1::ended::Outcome {
    let folder = tempfile::tempdir().expect("a directory");
    let (clock, looks) = (SystemClock::new(), AtomicU32::new(0));
    let clock = Arc::new(Nights { clock, of, looks });
    let found = found(folder.path(), &incarnation().boot, clock).await;
    let mut bench = Bench::of(folder.path(), found).await;
    bench.ask(1, shell("echo ran > effect"), 0).await;
    let outcome = bench.read_all().await.1;
    let ran = bench.path("effect").exists();
    assert_eq!(ran, code(&outcome) == Some(0), "{outcome:?}");
    outcome
}

#[tokio::test]
async fn a_command_does_not_start_once_the_host_slept_over_its_time_to_start() {
    let v1::ended::Outcome::Refused(refusal) = started_by(Which::BootTime).await else {
        panic!("it has started");
    };
    assert_eq!(refusal.code(), v1::refusal::Code::Expired);
}

#[tokio::test]
async fn no_other_clock_keeps_a_command_from_starting() {
    for of in [Which::Wall, Which::Monotonic] {
        assert_eq!(code(&started_by(of).await), Some(0), "{of:?}");
    }
}
