//! Keeps the output of one operation while it is followed, and knows how much of it is durable.

use std::{future::pending, pin::Pin, sync::Arc};

use bytes::Bytes;
use shared_sandbox::{Operation, OperationEvent, OutputStream, Request, Retention};
use shared_types::OperationId;

use super::cursor::Cursor;
use crate::ports::{Outputs, PortError};

type Syncing = Pin<Box<dyn Future<Output = Result<[u64; 2], PortError>> + Send>>;

pub(super) struct Recording {
    outputs: Arc<dyn Outputs>,
    id: OperationId,
    /// Nothing where nothing is kept here.
    retention: Option<Retention>,
    /// Something was appended that no sync which has begun covers.
    appended: bool,
    syncing: Option<Syncing>,
    /// How far the runner knows that its output is durable here.
    committed: [u64; 2],
    /// Nothing is kept (any more); the runner has it until it is told to forget it.
    gone: bool,
}

impl Recording {
    /// Of an operation whose output is to be kept here; of another one nothing is.
    pub(super) fn of(operation: &Operation, outputs: Arc<dyn Outputs>) -> Self {
        let retention = match &operation.request {
            Request::Exec(exec) if exec.retention != Retention::None => Some(exec.retention),
            _ => None,
        };
        Self {
            outputs,
            id: operation.id,
            appended: false,
            syncing: None,
            committed: [0, 0],
            gone: retention.is_none(),
            retention,
        }
    }

    /// Whether only what its reader confirms need not be kept by the runner.
    pub(super) fn is_left_to_the_reader(&self) -> bool {
        self.retention.is_none()
    }

    /// Whether all that comes is kept, however much it is, so that it waits for no reader.
    pub(super) fn keeps_all(&self) -> bool {
        self.retention == Some(Retention::All) && !self.gone
    }

    /// How much of stdout and stderr is kept, as an earlier reader left it.
    pub(super) async fn kept(&mut self) -> [u64; 2] {
        if self.gone {
            return [0, 0];
        }
        match self.outputs.resume(self.id).await {
            Ok(kept) => {
                self.appended = kept != [0, 0];
                kept
            }
            // The runner is asked for all of it, and for what it has dropped the files are.
            Err(error) => {
                self.give_up(&error);
                [0, 0]
            }
        }
    }

    /// Where its reader stands, who needs to be told nothing below `told` of what is kept.
    pub(super) fn cursor(&self, kept: [u64; 2], told: [u64; 2]) -> Cursor {
        let whole = self.retention == Some(Retention::All);
        Cursor::new(Arc::clone(&self.outputs), self.id, whole, kept, told)
    }

    /// Keeps what a reader is told, and that some never comes.
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
        if self.gone {
            return;
        }
        self.appended = true;
        if let Err(error) = self.outputs.append(self.id, stream, offset, data).await {
            self.give_up(&error);
        }
    }

    /// Waits until more is durable than before: where the streams that have grown are now.
    /// Cancel-safe.
    pub(super) async fn committed(&mut self) -> Vec<(OutputStream, u64)> {
        loop {
            let synced = match &mut self.syncing {
                Some(syncing) => syncing.await,
                None if std::mem::take(&mut self.appended) => {
                    let (outputs, id) = (Arc::clone(&self.outputs), self.id);
                    self.syncing = Some(Box::pin(async move { outputs.synced(id).await }));
                    continue;
                }
                None => return pending().await,
            };
            self.syncing = None;
            match synced {
                Ok(synced) => {
                    let grown = self.grown(synced);
                    if !grown.is_empty() {
                        return grown;
                    }
                }
                Err(error) => self.give_up(&error),
            }
        }
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
        tracing::error!(%error, "the output of an operation cannot be kept");
        self.gone = true;
        self.appended = false;
    }
}
