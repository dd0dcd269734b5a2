//! The end of a command that a caller asked for, or that is overdue, if its supervisor does not
//! bring it about.
//!
//! That is the supervisor's work, politely and then by force, and it reports how the command ended.
//! A stopped supervisor does none of this. So the daemon asks in its place. Once the time for the
//! polite way is over, it does the supervisor's work, and does not wait for the report for ever.

use std::{pin::Pin, time::Duration};

use runner_supervisor::Cause;
use tokio::time::{Sleep, sleep};

use super::control::ProcessWishes;

/// The time that a supervisor has for a wish, and again for the kill.
const HEARS_WITHIN: Duration = Duration::from_secs(1);

/// The next step of the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The command is to be asked to end, if its supervisor is stopped.
    Ask,
    /// It is to be ended, for this reason, and its supervisor with it.
    Force(Cause),
}

/// An end that is to come.
#[derive(Debug)]
pub(super) struct PendingEnd {
    cause: Cause,
    asked: bool,
    kill_grace: Duration,
    due: Pin<Box<Sleep>>,
}

impl PendingEnd {
    /// Begins where the end is wished for.
    pub(super) fn wished(wishes: &ProcessWishes, kill_grace: Duration) -> Option<Self> {
        let cause = match wishes {
            ProcessWishes { cancel: true, .. } => Cause::Cancelled,
            ProcessWishes { orphan: true, .. } => Cause::Orphaned,
            _ => return None,
        };
        Some(Self::because(cause, kill_grace))
    }

    /// Begins for this reason.
    pub(super) fn because(cause: Cause, kill_grace: Duration) -> Self {
        Self {
            cause,
            asked: false,
            kill_grace,
            due: Box::pin(sleep(HEARS_WITHIN)),
        }
    }

    async fn due(&mut self) -> Due {
        self.due.as_mut().await;
        if !self.asked {
            self.asked = true;
            self.due = Box::pin(sleep(self.kill_grace));
            return Due::Ask;
        }
        // Should that fail, it is tried again.
        self.due = Box::pin(sleep(HEARS_WITHIN));
        Due::Force(self.cause)
    }
}

/// Waits until something is to be done, for ever where no end is to come. Nothing is lost where
/// this is dropped.
pub(super) async fn due(ending: &mut Option<PendingEnd>) -> Due {
    match ending {
        Some(ending) => ending.due().await,
        None => std::future::pending().await,
    }
}
