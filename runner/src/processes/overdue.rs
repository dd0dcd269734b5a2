//! The time of a command that its supervisor does not end.
//!
//! When a command's time is over its supervisor ends it. A supervisor that is stopped or hangs does
//! not. So the daemon counts as well, a while longer, and then ends the command as if a caller had
//! asked for its end (see `ending`).
//!
//! The time to run is counted on the monotonic clock, from the start in the command's record. The
//! time without a renewal is counted on the clock that goes on while the host is suspended. A new
//! daemon cannot know when the last renewal was, and counts from its own start. Only the supervisor
//! can tell how long a command has been silent.

use std::{pin::Pin, sync::Arc, time::Duration};

use runner_supervisor::{Cause, unrenewed_for};
use shared_types::Clock;
use tokio::time::{Instant, Sleep, sleep_until};

/// The time by which the daemon waits longer than the supervisor.
const MARGIN: Duration = Duration::from_secs(10);

/// The time between two looks at the clock of a suspended host, because no timer of the runtime's
/// is on it.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// When a command's time is over.
#[derive(Debug)]
pub(super) struct Overdue {
    clock: Arc<dyn Clock>,
    run_until: Option<Instant>,
    /// On the boot-time clock.
    renewed_until: Option<Duration>,
    look: Pin<Box<Sleep>>,
}

impl Overdue {
    /// For a command that may run for `run_left` and is renewed now.
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        run_left: Option<Duration>,
        orphan_for: Option<Duration>,
    ) -> Self {
        let now = Instant::now();
        let mut overdue = Self {
            clock,
            run_until: run_left.and_then(|left| now.checked_add(left)),
            renewed_until: None,
            look: Box::pin(sleep_until(now)),
        };
        if let Some(orphan_for) = orphan_for {
            overdue.renew(orphan_for);
        }
        overdue.look_later(now);
        overdue
    }

    /// It may go on for this long from now, and at least for as long as it may run.
    pub(super) fn renew(&mut self, orphan_for: Duration) {
        let run_until = self.run_until;
        let run_left = run_until.map(|until| until.saturating_duration_since(Instant::now()));
        let now = self.clock.boot_time();
        self.renewed_until = Some(now.saturating_add(unrenewed_for(orphan_for, run_left)));
    }

    /// Waits until its time is over by more than the margin. Nothing is lost where this is dropped.
    pub(super) async fn over(&mut self) -> Cause {
        loop {
            self.look.as_mut().await;
            let now = Instant::now();
            if self.run_until.is_some_and(|until| now >= until + MARGIN) {
                return Cause::Timeout;
            }
            let boot_time = self.clock.boot_time();
            let cut_off = |until: Duration| boot_time >= until.saturating_add(MARGIN);
            if self.renewed_until.is_some_and(cut_off) {
                return Cause::Orphaned;
            }
            self.look_later(now);
        }
    }

    fn look_later(&mut self, now: Instant) {
        let later = now + LOOK_EVERY;
        let run_until = self.run_until.map(|until| until + MARGIN);
        let look_at = run_until.map_or(later, |until| until.min(later));
        self.look.as_mut().reset(look_at);
    }
}
