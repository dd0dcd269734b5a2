//! Reads what is kept of an operation that somebody else follows: a tool call's. It is looked for more
//! every tenth of a second; nothing is asked of the runner.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use async_trait::async_trait;
use server_router::ports::Outputs as _;
use server_store::{OutputKey, Store};
use shared_sandbox::{Control, Controls, Input, OperationEvent, Outcome, OutputStream};
use shared_types::{OperationId, Refusal, RefusalCode, TenantId};
use tokio::time::sleep;

use crate::{
    AppError,
    ports::{TenantOutputs, kind},
};

/// How often it is looked whether there is more.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Both streams, in this order everywhere.
const STREAMS: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

/// Reads one operation to its end.
pub struct Kept {
    store: Store,
    outputs: Arc<TenantOutputs>,
    tenant: TenantId,
    id: OperationId,
    /// Below this it was told of stdout and stderr.
    told: [u64; 2],
    found: VecDeque<OperationEvent>,
    told_end: bool,
}

impl Kept {
    pub(super) fn new(
        store: Store,
        outputs: server_store::Outputs,
        (tenant, id): (TenantId, OperationId),
        from: [u64; 2],
    ) -> Self {
        Self {
            store,
            outputs: Arc::new(TenantOutputs { outputs, tenant }),
            tenant,
            id,
            told: from,
            found: VecDeque::new(),
            told_end: false,
        }
    }

    /// What happens next; nothing after the end, or where it cannot be read. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<OperationEvent> {
        while !self.told_end {
            if let Some(event) = self.found.pop_front() {
                self.told_end = matches!(event, OperationEvent::Ended(_));
                return Some(event);
            }
            match self.look().await {
                Ok(found) if found.is_empty() => sleep(LOOK_AGAIN_AFTER).await,
                Ok(found) => self.take(found),
                Err(error) => {
                    tracing::warn!(operation.id = %self.id, %error, "what is kept of an operation cannot be read");
                    return None;
                }
            }
        }
        None
    }

    /// What there is where the reader stands. Changes nothing, so that it may be dropped half-way.
    async fn look(&self) -> Result<VecDeque<OperationEvent>, AppError> {
        // Before the output, so that nothing is written between the two that would be missed.
        let row = self.store.operation(self.tenant, self.id).await?;
        let outcome = row
            .outcome
            .map(|stored| serde_json::from_str::<Outcome>(&stored.json))
            .transpose()
            .map_err(AppError::unavailable)?;
        let mut found = VecDeque::new();
        for stream in STREAMS {
            found.extend(self.look_at(stream, outcome.as_ref()).await?);
        }
        if found.is_empty() {
            found.extend(outcome.map(OperationEvent::Ended));
        }
        Ok(found)
    }

    async fn look_at(
        &self,
        stream: OutputStream,
        outcome: Option<&Outcome>,
    ) -> Result<Option<OperationEvent>, AppError> {
        let from = self.told[stream as usize];
        let kept = self.outputs.read(self.id, stream, from).await;
        let kept = kept.map_err(|error| AppError::Unavailable(error.into()))?;
        if let Some((offset, data)) = kept {
            return Ok(Some(match offset == from {
                true => OperationEvent::Output {
                    stream,
                    offset,
                    data,
                },
                false => OperationEvent::Gap {
                    stream,
                    from,
                    to: offset,
                },
            }));
        }
        // The end of what was written, of which not all is kept.
        let Some(Outcome::Exited(record)) = outcome else {
            return Ok(None);
        };
        let key = OutputKey {
            tenant: self.tenant,
            operation: self.id,
            kind: kind(stream),
        };
        let written = match stream {
            OutputStream::Stdout => record.stdout.offset,
            OutputStream::Stderr => record.stderr.offset,
        };
        let to = written.max(self.outputs.outputs.end(key).await?);
        Ok((from < to).then_some(OperationEvent::Gap { stream, from, to }))
    }

    fn take(&mut self, found: VecDeque<OperationEvent>) {
        for event in &found {
            match event {
                OperationEvent::Output {
                    stream,
                    offset,
                    data,
                } => self.told[*stream as usize] = offset + data.len() as u64,
                OperationEvent::Gap { stream, to, .. } => self.told[*stream as usize] = *to,
                _ => {}
            }
        }
        self.found = found;
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept")
            .field("operation", &self.id)
            .field("told", &self.told)
            .finish_non_exhaustive()
    }
}

/// Nothing is passed on to the operation of a tool call, or to one that is only read.
#[derive(Debug)]
pub(super) struct TakesNothing;

#[async_trait]
impl Controls for TakesNothing {
    async fn input(&self, _input: Input) -> Result<u64, Refusal> {
        Err(takes_nothing())
    }

    async fn control(&self, _control: Control) -> Result<(), Refusal> {
        Err(takes_nothing())
    }

    async fn commit(&self, _stream: OutputStream, _up_to: u64) {}
}

fn takes_nothing() -> Refusal {
    Refusal::new(
        RefusalCode::Unsupported,
        "this operation takes no input and no signals from here; gantry kill stops it",
    )
}
