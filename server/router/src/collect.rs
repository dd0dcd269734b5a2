//! Collects the output and the end of operations that need nobody to stay: one task for each, whoever
//! reads along, and however many. What it collects is kept before anybody is told of it, so a reader
//! that is slow, or that comes late, holds up nothing and misses nothing (`board`).

mod board;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use shared_sandbox::{
    Control, Controls, Input, Operation, OperationEvent, Outcome, OutputStream, Running,
    Sandbox as _,
};
use shared_types::{OperationId, Refusal, RefusalCode};
use tokio::sync::OnceCell;

use self::board::Board;
pub use self::board::Reading;
use crate::{RemoteSandbox, ports::Outputs};

/// The operations that are being collected. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Collectors(Arc<Mutex<HashMap<OperationId, Arc<OnceCell<Collected>>>>>);

/// An operation whose output and end are collected.
#[derive(Debug, Clone)]
pub struct Collected {
    board: Arc<Board>,
    controls: Arc<dyn Controls>,
}

impl Collected {
    /// One that has ended so; all that is known of its output is kept.
    pub fn ended(id: OperationId, outputs: Arc<dyn Outputs>, outcome: Outcome) -> Self {
        Self {
            board: Board::ended(id, outputs, outcome),
            controls: Arc::new(Ended),
        }
    }

    /// Reads stdout and stderr from these offsets on, and what else happens.
    pub fn read(&self, from: [u64; 2]) -> Reading {
        Reading::new(Arc::clone(&self.board), from)
    }

    /// What can be passed on to it.
    pub fn controls(&self) -> Arc<dyn Controls> {
        Arc::clone(&self.controls)
    }
}

impl Collectors {
    /// Starts the operation, or goes on with one that is stored, unless that is done already.
    ///
    /// # Errors
    /// A refusal: then nothing was started, here or anywhere, by this call.
    pub async fn collect(
        &self,
        sandbox: &RemoteSandbox,
        operation: Operation,
    ) -> Result<Collected, Refusal> {
        let id = operation.id;
        let cell = Arc::clone(self.lock().entry(id).or_default());
        let collecting = cell.get_or_try_init(|| self.begin(sandbox, operation));
        let collected = collecting.await.cloned();
        if collected.is_err() {
            self.drop_empty(id, &cell);
        }
        collected
    }

    /// The operation, while it is being collected.
    pub fn find(&self, id: OperationId) -> Option<Collected> {
        self.lock().get(&id)?.get().cloned()
    }

    async fn begin(
        &self,
        sandbox: &RemoteSandbox,
        operation: Operation,
    ) -> Result<Collected, Refusal> {
        let id = operation.id;
        let (running, kept) = sandbox.collect(operation).await?;
        let board = Board::open(id, sandbox.outputs(), kept);
        let collected = Collected {
            board: Arc::clone(&board),
            controls: Arc::clone(&running.controls),
        };
        let (all, sandbox) = (self.clone(), sandbox.clone());
        // Detached on purpose: it ends with the operation.
        tokio::spawn(async move {
            let ended = gather(running, &board).await;
            all.lock().remove(&id);
            board.close();
            if ended {
                sandbox.forget(id).await;
            }
        });
        Ok(collected)
    }

    /// Of an operation that could not be started nothing stays, unless somebody else tries as well.
    fn drop_empty(&self, id: OperationId, cell: &Arc<OnceCell<Collected>>) {
        let mut all = self.lock();
        let same = all.get(&id).is_some_and(|now| Arc::ptr_eq(now, cell));
        // One reference is the map's and one is ours.
        if same && !cell.initialized() && Arc::strong_count(cell) <= 2 {
            all.remove(&id);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OperationId, Arc<OnceCell<Collected>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes what happens to the operation until it has ended; answers whether it has, as far as this
/// process knows.
async fn gather(mut running: Running, board: &Board) -> bool {
    while let Some(event) = running.events.recv().await {
        let is_end = match &event {
            // Of this attempt to collect, under an epoch of which there is a newer one.
            OperationEvent::Ended(Outcome::Refused(refusal))
                if matches!(
                    refusal.code,
                    RefusalCode::StaleEpoch | RefusalCode::Conflict
                ) =>
            {
                return false;
            }
            event => matches!(event, OperationEvent::Ended(_)),
        };
        board.note(event);
        if is_end {
            return true;
        }
    }
    false
}

/// Nothing is passed on to what has ended.
#[derive(Debug)]
struct Ended;

#[async_trait]
impl Controls for Ended {
    async fn input(&self, _input: Input) -> Result<u64, Refusal> {
        Err(over())
    }

    async fn control(&self, _control: Control) -> Result<(), Refusal> {
        Err(over())
    }

    async fn commit(&self, _stream: OutputStream, _up_to: u64) {}
}

fn over() -> Refusal {
    Refusal::new(RefusalCode::NotFound, "the operation has ended")
}
