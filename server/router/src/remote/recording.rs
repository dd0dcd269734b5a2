//! Keeps the output of one operation while it is followed, and knows how much of it is durable.

use std::{future::pending, pin::Pin, sync::Arc};

use shared_sandbox::{Operation, OperationEvent, OutputStream, Request, Retention};
use shared_types::OperationId;
use tokio::sync::mpsc;

use crate::ports::{Outputs, PortError};

type Syncing = Pin<Box<dyn Future<Output = Result<[u64; 2], PortError>> + Send>>;

pub(super) struct Recording {
    outputs: Arc<dyn Outputs>,
    id: OperationId,
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
        let keeps = match &operation.request {
            Request::Exec(exec) => exec.retention != Retention::None,
            _ => false,
        };
        Self {
            outputs,
            id: operation.id,
            appended: false,
            syncing: None,
            committed: [0, 0],
            gone: !keeps,
        }
    }

    /// Tells a reader what is kept, and returns how much of stdout and stderr that is.
    pub(super) async fn replay(&mut self, events: &mpsc::Sender<OperationEvent>) -> [u64; 2] {
        let mut told = [0, 0];
        if self.gone {
            return told;
        }
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            loop {
                let from = told[stream as usize];
                let (offset, data) = match self.outputs.read(self.id, stream, from).await {
                    Ok(Some(kept)) => kept,
                    Ok(None) => break,
                    Err(error) => {
                        tracing::warn!(%error, "output that was kept cannot be read; the runner is asked for it");
                        break;
                    }
                };
                // A reader that has gone needs nothing.
                if from < offset {
                    let to = offset;
                    let _ = events.send(OperationEvent::Gap { stream, from, to }).await;
                }
                told[stream as usize] = offset + data.len() as u64;
                let output = OperationEvent::Output {
                    stream,
                    offset,
                    data,
                };
                let _ = events.send(output).await;
            }
        }
        self.appended = told != [0, 0];
        told
    }

    /// The first part of what a reader is told of this, and the rest. What the runner does not keep
    /// any more, because another reader had it and it is durable here, is read here.
    pub(super) async fn filled(
        &mut self,
        event: OperationEvent,
    ) -> (OperationEvent, Option<OperationEvent>) {
        let (&OperationEvent::Gap { stream, from, to }, false) = (&event, self.gone) else {
            return (event, None);
        };
        let gap = |from, to| OperationEvent::Gap { stream, from, to };
        match self.outputs.read(self.id, stream, from).await {
            Ok(Some((offset, mut data))) if offset == from => {
                data.truncate(usize::try_from(to - from).unwrap_or(usize::MAX));
                let from = from + data.len() as u64;
                let rest = (from < to).then(|| gap(from, to));
                let kept = OperationEvent::Output {
                    stream,
                    offset,
                    data,
                };
                (kept, rest)
            }
            Ok(Some((kept, _))) if kept < to => (gap(from, kept), Some(gap(kept, to))),
            Ok(_) => (event, None),
            Err(error) => {
                tracing::warn!(%error, "output that was kept cannot be read");
                (event, None)
            }
        }
    }

    /// Keeps what a reader is told.
    pub(super) async fn keep(&mut self, event: &OperationEvent) {
        let OperationEvent::Output {
            stream,
            offset,
            data,
        } = event
        else {
            return;
        };
        if self.gone {
            return;
        }
        self.appended = true;
        let (stream, offset, data) = (*stream, *offset, data.clone());
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
