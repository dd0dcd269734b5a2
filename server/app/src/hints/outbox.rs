//! The hints that wait to be sent.
//!
//! A commit notes its hints and waits for nothing. One task sends them: at once where it has sent nothing for
//! [`WINDOW`], else those of the whole window together. The number of hints that wait is bounded. Beyond it
//! [`Hint::All`] stands for them, and also for those whose sending failed.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use server_records::{Hint, HintBatch, HintWire, PortError};
use shared_telemetry::server::{HINT_BATCHES, HINTS};
use shared_types::ReplicaId;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// The least time between two sendings.
pub(super) const WINDOW: Duration = Duration::from_millis(5);

/// The most hints that wait.
pub(super) const WAITING_AT_MOST: usize = 1024;

/// The pause after a sending that failed.
pub(super) const SEND_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The time for the last sending of a server that stops.
const LAST_WITHIN: Duration = Duration::from_secs(1);

/// See the module. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outbox {
    waiting: Arc<Mutex<BTreeSet<Hint>>>,
    more: Arc<Notify>,
}

impl Outbox {
    /// Has the other servers hear of it. Never waits.
    pub(crate) fn note(&self, hint: Hint) {
        let mut waiting = self.lock();
        if waiting.contains(&Hint::All) || waiting.contains(&hint) {
            return;
        }
        if hint == Hint::All || waiting.len() >= WAITING_AT_MOST {
            waiting.clear();
            waiting.insert(Hint::All);
        } else {
            waiting.insert(hint);
        }
        drop(waiting);
        self.more.notify_one();
    }

    /// Sends what is noted, until `stop`, and then what is left.
    pub(super) async fn send_by(
        self,
        wire: Arc<dyn HintWire>,
        from: ReplicaId,
        stop: CancellationToken,
    ) {
        loop {
            tokio::select! {
                () = self.more.notified() => {}
                () = stop.cancelled() => {
                    // The next look of the others finds what this one does not tell.
                    let _ = timeout(LAST_WITHIN, self.send(&*wire, from)).await;
                    return;
                }
            }
            let begun = Instant::now();
            match self.send(&*wire, from).await {
                Ok(()) => sleep_until(begun + WINDOW).await,
                Err(error) => {
                    tracing::warn!(%error, "other servers cannot be told of commits; trying again");
                    self.note(Hint::All);
                    let pause = sleep(SEND_AGAIN_AFTER);
                    stop.run_until_cancelled(pause).await;
                }
            }
        }
    }

    async fn send(&self, wire: &dyn HintWire, from: ReplicaId) -> Result<(), PortError> {
        let hints = std::mem::take(&mut *self.lock());
        if hints.is_empty() {
            return Ok(());
        }
        let (from, count) = (Some(from), hints.len() as u64);
        let texts = HintBatch { from, hints }.texts();
        let batches = texts.len() as u64;
        wire.send(texts).await?;
        HINTS.add(&["sent"], count);
        HINT_BATCHES.add(&["sent"], batches);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Hint>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
