//! Keeps the output of one operation, and knows how much of it is durable.

use std::{future::pending, pin::Pin, sync::Arc};

use bytes::Bytes;
use shared_sandbox::{OperationEvent, OutputStream};
use shared_types::OperationId;

use server_records::{Outputs, PortError};

type Synced = Result<[u64; 2], PortError>;

/// A sync that has begun.
struct Syncing {
    /// The offsets that stdout and stderr had reached then: once it is done, they are durable up to here.
    came: [u64; 2],
    synced: Pin<Box<dyn Future<Output = Synced> + Send>>,
}

/// See the module.
pub(super) struct Keeping {
    outputs: Arc<dyn Outputs>,
    id: OperationId,
    /// True if something was appended that no begun sync covers.
    appended: bool,
    syncing: Option<Syncing>,
    /// The offsets that stdout and stderr have reached, gaps included.
    came: [u64; 2],
    /// The offsets up to which the runner knows that its output is durable here.
    committed: [u64; 2],
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Keeps,
    /// Nothing is kept, by the request.
    KeepsNothing,
    /// Some of it could not be kept, so nothing is kept any more: the runner has it until it is told to forget it.
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
            came: [0, 0],
            committed: [0, 0],
            state: match keeps {
                true => State::Keeps,
                false => State::KeepsNothing,
            },
        }
    }

    /// True if the runner must keep all output that its reader has not confirmed.
    pub(super) fn is_left_to_the_reader(&self) -> bool {
        self.state == State::KeepsNothing
    }

    /// True if some of it could not be kept.
    pub(super) fn has_given_up(&self) -> bool {
        self.state == State::GaveUp
    }

    /// Continues behind the kept output; returns the offsets up to which stdout and stderr are kept.
    pub(super) async fn resume(&mut self) -> [u64; 2] {
        if self.state == State::KeepsNothing {
            return [0, 0];
        }
        (self.syncing, self.came, self.committed) = (None, [0, 0], [0, 0]);
        match self.outputs.resume(self.id).await {
            Ok(kept) => {
                (self.state, self.came) = (State::Keeps, kept);
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
        if self.state != State::Keeps {
            return;
        }
        self.appended = true;
        let came = &mut self.came[stream as usize];
        *came = (*came).max(offset.saturating_add(data.len() as u64));
        if let Err(error) = self.outputs.append(self.id, stream, offset, data).await {
            self.give_up(&error);
        }
    }

    /// Waits until more is durable than before, or some of it cannot be kept. Returns the new offsets of the streams
    /// that have grown. Cancel-safe.
    pub(super) async fn committed(&mut self) -> Vec<(OutputStream, u64)> {
        loop {
            let (came, synced) = match &mut self.syncing {
                Some(syncing) => (syncing.came, syncing.synced.as_mut().await),
                None if std::mem::take(&mut self.appended) => {
                    let (outputs, id) = (Arc::clone(&self.outputs), self.id);
                    self.syncing = Some(Syncing {
                        came: self.came,
                        synced: Box::pin(async move { outputs.synced(id).await }),
                    });
                    continue;
                }
                None => return pending().await,
            };
            self.syncing = None;
            match synced {
                Ok(synced) if synced[0] < came[0] || synced[1] < came[1] => {
                    self.give_up(&lost_on_the_way());
                    return Vec::new();
                }
                Ok(synced) => {
                    let grown = self.grown(synced);
                    if !grown.is_empty() {
                        return grown;
                    }
                }
                Err(error) => {
                    self.give_up(&error);
                    return Vec::new();
                }
            }
        }
    }

    /// Waits until all output that came is durable; returns true if it is.
    pub(super) async fn is_all_kept(&mut self) -> bool {
        if self.state == State::GaveUp {
            return false;
        }
        let error = match self.outputs.synced(self.id).await {
            Ok(synced) if synced[0] >= self.came[0] && synced[1] >= self.came[1] => return true,
            // The output area has dropped some bytes; without this check, only another append would have shown it.
            Ok(_) => lost_on_the_way(),
            Err(error) => error,
        };
        self.give_up(&error);
        false
    }

    fn grown(&mut self, synced: [u64; 2]) -> Vec<(OutputStream, u64)> {
        let mut grown = Vec::new();
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let (committed, synced) = (
                &mut self.committed[stream as usize],
                synced[stream as usize],
            );
            if *committed < synced {
                *committed = synced;
                grown.push((stream, synced));
            }
        }
        grown
    }

    fn give_up(&mut self, error: &PortError) {
        tracing::error!(operation.id = %self.id, %error, "the output of an operation cannot be kept now; its runner keeps it, and is asked for it again");
        (self.state, self.appended) = (State::GaveUp, false);
    }
}

/// The error for appended bytes that are not there, though no write of them has failed.
fn lost_on_the_way() -> PortError {
    PortError::new("some of it is not there")
}
