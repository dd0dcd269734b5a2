//! Operations whose output is kept nowhere but where they run: each has one reader at a time, and waits
//! for it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use server_router::SandboxRouter;
use server_store::Store;
use shared_sandbox::{
    Control, Controls, EndToken, Events, Input, OperationEvent, Outcome, OutputStream, Running,
};
use shared_types::{Clock, OperationId, Refusal, TenantId};

/// The time for which an operation that was just started waits for its first reader here. Afterwards
/// its runner is asked again for the output.
const AWAITS_A_READER_FOR: Duration = Duration::from_secs(60);

/// Most that wait so at a time.
const WAIT_AT_MOST: usize = 256;

/// Those that were just started. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct StartedOperations(Arc<Mutex<HashMap<OperationId, Running>>>);

impl StartedOperations {
    /// Keeps it for its first reader.
    pub(super) fn put(&self, id: OperationId, running: Running) {
        let mut waiting = self.lock();
        if waiting.len() >= WAIT_AT_MOST {
            return;
        }
        waiting.insert(id, running);
        drop(waiting);
        let all = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(AWAITS_A_READER_FOR).await;
            all.take(id);
        });
    }

    pub(super) fn take(&self, id: OperationId) -> Option<Running> {
        self.lock().remove(&id)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OperationId, Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one reader of an operation.
#[derive(Debug)]
pub(super) struct Alone {
    running: Running,
    /// Below this the reader has stdout.
    from: u64,
    end: Arc<OnceLock<u64>>,
}

impl Alone {
    /// Also returns what can be passed on to it.
    pub(super) fn new(running: Running, from: u64, closing: Closing) -> (Self, Arc<dyn Controls>) {
        let end = Arc::new(OnceLock::new());
        let controls = Confirming {
            controls: Arc::clone(&running.controls),
            end: Arc::clone(&end),
            closing: Arc::new(closing),
        };
        (Self { running, from, end }, Arc::new(controls))
    }

    /// The part of the bytes that the reader does not have yet.
    fn behind(&mut self, offset: u64, mut data: Bytes) -> Option<(u64, Bytes)> {
        let end = offset.saturating_add(data.len() as u64);
        if end <= self.from {
            return None;
        }
        let known = self.from.saturating_sub(offset);
        let data = data.split_off(usize::try_from(known).unwrap_or(usize::MAX));
        self.from = end;
        Some((offset + known, data))
    }
}

/// Nothing follows once another reader has taken it over.
#[async_trait]
impl Events for Alone {
    async fn recv(&mut self) -> Option<OperationEvent> {
        loop {
            match self.running.events.recv().await? {
                OperationEvent::Output {
                    stream,
                    offset,
                    data,
                } => {
                    if let Some((offset, data)) = self.behind(offset, data) {
                        return Some(OperationEvent::Output {
                            stream,
                            offset,
                            data,
                        });
                    }
                }
                OperationEvent::Gap { stream, from, to } => {
                    if to > self.from {
                        let from = from.max(self.from);
                        self.from = to;
                        return Some(OperationEvent::Gap { stream, from, to });
                    }
                }
                OperationEvent::Ended(outcome) => {
                    let written = match &outcome {
                        Outcome::Downloaded(downloaded) => downloaded.bytes,
                        Outcome::Packed(packed) => packed.bytes,
                        _ => 0,
                    };
                    let _ = self.end.set(written);
                    return Some(OperationEvent::Ended(outcome));
                }
                event => return Some(event),
            }
        }
    }

    fn came(&self) -> [u64; 2] {
        self.running.events.came()
    }

    fn end_token(&mut self) -> Option<EndToken> {
        None
    }
}

/// Closes an operation that was read to its end.
pub(super) struct Closing {
    pub(super) store: Store,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) sandbox: SandboxRouter,
    pub(super) tenant: TenantId,
    pub(super) id: OperationId,
}

impl Closing {
    /// Closes the operation. If that fails, the sweep tries again, and the runner hears of it when
    /// it links.
    async fn close(&self) {
        let closed = self
            .store
            .close_caller_operation(self.tenant, self.id, self.clock.now());
        if let Err(error) = closed.await {
            tracing::warn!(operation.id = %self.id, %error, "an operation that was read cannot be closed yet");
        }
        self.sandbox.forget(self.id).await;
    }
}

/// Passes on what the reader confirms, and closes the operation once that is all of it.
struct Confirming {
    controls: Arc<dyn Controls>,
    end: Arc<OnceLock<u64>>,
    closing: Arc<Closing>,
}

#[async_trait]
impl Controls for Confirming {
    async fn input(&self, input: Input) -> Result<u64, Refusal> {
        self.controls.input(input).await
    }

    async fn control(&self, control: Control) -> Result<(), Refusal> {
        self.controls.control(control).await
    }

    async fn commit(&self, stream: OutputStream, up_to: u64) {
        self.controls.commit(stream, up_to).await;
        if stream == OutputStream::Stdout && self.end.get().is_some_and(|end| up_to >= *end) {
            self.closing.close().await;
        }
    }
}

impl std::fmt::Debug for Confirming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Confirming")
            .field("controls", &self.controls)
            .finish_non_exhaustive()
    }
}
