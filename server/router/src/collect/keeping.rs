//! Keeps the output of one operation, and finds out how much of it is durable.

use std::{future::pending, pin::Pin, sync::Arc};

use bytes::Bytes;
use shared_sandbox::OperationEvent;
use shared_types::OperationId;

use server_records::{Outputs, PortError};

type Synced = Result<[u64; 2], PortError>;

/// See the module.
pub(super) struct Keeping {
    outputs: Arc<dyn Outputs>,
    id: OperationId,
    /// True if something was appended that no begun sync covers.
    appended: bool,
    /// A sync that has begun.
    syncing: Option<Pin<Box<dyn Future<Output = Synced> + Send>>>,
    state: KeepingState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeepingState {
    Keeps,
    /// Nothing is kept, by the request.
    KeepsNothing,
    /// Some of it could not be stored, so no more is stored. The runner has it until the server lets the runner forget
    /// it.
    GaveUp,
}

impl Keeping {
    /// `keeps`: true if the output of the operation is kept at all.
    pub(super) fn of(id: OperationId, outputs: Arc<dyn Outputs>, keeps: bool) -> Self {
        Self {
            outputs,
            id,
            appended: false,
            syncing: None,
            state: match keeps {
                true => KeepingState::Keeps,
                false => KeepingState::KeepsNothing,
            },
        }
    }

    /// True if the runner must keep all output that its reader has not confirmed.
    pub(super) fn is_left_to_the_reader(&self) -> bool {
        self.state == KeepingState::KeepsNothing
    }

    /// True if some of it could not be kept.
    pub(super) fn has_given_up(&self) -> bool {
        self.state == KeepingState::GaveUp
    }

    /// Continues behind the kept output; returns the offsets up to which stdout and stderr are kept.
    pub(super) async fn resume(&mut self) -> [u64; 2] {
        if self.state == KeepingState::KeepsNothing {
            return [0, 0];
        }
        self.syncing = None;
        match self.outputs.resume(self.id).await {
            Ok(kept) => {
                self.state = KeepingState::Keeps;
                self.appended = kept != [0, 0];
                kept
            }
            // The runner is asked for all of it; bytes that it has dropped are read from the files.
            Err(error) => {
                self.give_up(&error);
                [0, 0]
            }
        }
    }

    /// Tells if output can be kept again.
    pub(super) async fn can_go_on(&mut self) -> bool {
        self.outputs.resume(self.id).await.is_ok()
    }

    /// Keeps new bytes, or the fact that some never come.
    pub(super) async fn keep(&mut self, event: &OperationEvent) {
        let (stream, offset, data) = match event {
            OperationEvent::Output {
                stream,
                offset,
                data,
            } => (*stream, *offset, data.clone()),
            OperationEvent::Gap { stream, to, .. } => (*stream, *to, Bytes::new()),
            _ => return,
        };
        if self.state != KeepingState::Keeps {
            return;
        }
        self.appended = true;
        if let Err(error) = self.outputs.append(self.id, stream, offset, data).await {
            self.give_up(&error);
        }
    }

    /// Waits until the output that was appended is durable, or some of it cannot be kept; `came` is its end. Returns the
    /// offsets up to which stdout and stderr are durable. Cancel-safe.
    pub(super) async fn durable(&mut self, came: [u64; 2]) -> Option<[u64; 2]> {
        if self.syncing.is_none() && std::mem::take(&mut self.appended) {
            let (outputs, id) = (Arc::clone(&self.outputs), self.id);
            self.syncing = Some(Box::pin(async move { synced(&*outputs, id, came).await }));
        }
        let Some(syncing) = &mut self.syncing else {
            return pending().await;
        };
        let synced = syncing.as_mut().await;
        self.syncing = None;
        synced.map_err(|error| self.give_up(&error)).ok()
    }

    /// Waits until all output that came is durable; returns true if it is.
    pub(super) async fn is_all_kept(&mut self, came: [u64; 2]) -> bool {
        if self.state == KeepingState::GaveUp {
            return false;
        }
        let synced = synced(&*self.outputs, self.id, came).await;
        synced.map_err(|error| self.give_up(&error)).is_ok()
    }

    fn give_up(&mut self, error: &PortError) {
        tracing::error!(operation.id = %self.id, %error, "the output of an operation cannot be kept now; its runner keeps it, and is asked for it again");
        (self.state, self.appended) = (KeepingState::GaveUp, false);
    }
}

/// Waits until the appended bytes are durable, which end at `came`. Where the output area has dropped some of them,
/// only another append would show it without this check.
async fn synced(outputs: &dyn Outputs, id: OperationId, came: [u64; 2]) -> Synced {
    let synced = outputs.synced(id).await?;
    match synced[0] < came[0] || synced[1] < came[1] {
        true => Err(PortError::new("some of it is not there")),
        false => Ok(synced),
    }
}
