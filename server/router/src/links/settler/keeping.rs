//! Keeps the output of one operation that is read for its end, as long as that can be kept.

use std::{pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use shared_sandbox::OutputStream;
use shared_types::{OperationId, limits::SPOOL_BYTES_PER_STREAM};
use tokio::time::timeout;

use crate::ports::{Outputs, PortError};

/// How much of an operation's output is kept before the runner is told that it is durable: less
/// than what makes a command wait, and rarely enough that waiting for the disk costs little.
pub(super) const COMMIT_EVERY: u64 = SPOOL_BYTES_PER_STREAM / 2;

/// See the module.
pub(super) struct Keeping {
    outputs: Arc<dyn Outputs>,
    id: OperationId,
    again_after: Duration,
    /// Bytes that may not be durable.
    uncommitted: u64,
    /// Some of it could not be kept: nothing is kept any more until it is asked for again.
    gave_up: bool,
}

impl Keeping {
    /// Also returns how much is kept of stdout and stderr.
    pub(super) async fn begin(
        outputs: Arc<dyn Outputs>,
        id: OperationId,
        again_after: Duration,
    ) -> (Self, [u64; 2]) {
        let mut keeping = Self {
            outputs,
            id,
            again_after,
            uncommitted: 0,
            gave_up: false,
        };
        let kept = match keeping.outputs.resume(id).await {
            Ok(kept) => kept,
            Err(error) => {
                keeping.give_up(&error);
                [0, 0]
            }
        };
        (keeping, kept)
    }

    /// Keeps the bytes that end at this offset, or that there are none before it. Says how much is
    /// durable where it is time for that.
    pub(super) async fn keep(
        &mut self,
        stream: OutputStream,
        up_to: u64,
        data: Bytes,
    ) -> Option<[u64; 2]> {
        if self.gave_up {
            return None;
        }
        let len = data.len() as u64;
        self.uncommitted += len;
        let appended = self
            .outputs
            .append(self.id, stream, up_to - len, data)
            .await;
        if let Err(error) = appended {
            self.give_up(&error);
            return None;
        }
        match self.uncommitted >= COMMIT_EVERY {
            true => self.synced().await,
            false => None,
        }
    }

    /// Whether all that came is durable here.
    pub(super) async fn is_all_kept(&mut self) -> bool {
        !self.gave_up && self.synced().await.is_some()
    }

    async fn synced(&mut self) -> Option<[u64; 2]> {
        self.uncommitted = 0;
        match self.outputs.synced(self.id).await {
            Ok(synced) => Some(synced),
            Err(error) => {
                self.give_up(&error);
                None
            }
        }
    }

    /// Waits for something, but not where the output could not be kept and can be by now.
    pub(super) async fn unless_there_is_room<T>(&self, next: impl Future<Output = T>) -> Option<T> {
        if !self.gave_up {
            return Some(next.await);
        }
        let mut next = pin!(next);
        loop {
            match timeout(self.again_after, &mut next).await {
                Ok(came) => return Some(came),
                Err(_) if self.outputs.resume(self.id).await.is_ok() => return None,
                Err(_) => {}
            }
        }
    }

    fn give_up(&mut self, error: &PortError) {
        tracing::error!(operation.id = %self.id, %error, "the output of an operation cannot be kept; its runner is to keep it");
        self.gave_up = true;
    }
}
