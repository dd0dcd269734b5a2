//! Workers: each claims the turns of one session, in order, and carries them to their end.
//!
//! A wake-up carries no data: whoever is woken looks at the rows, so that a restart and the
//! normal path are one path. A turn that a dead worker left is claimed like any other, under a
//! higher epoch, and the engine goes on from its log (docs/internals/contracts.md#c1 to #c4).

use std::{
    collections::HashMap, convert::Infallible, ops::ControlFlow, panic::AssertUnwindSafe,
    sync::Arc, time::Duration,
};

use futures_util::FutureExt as _;
use server_agent::{Engine, SessionPorts, TurnError};
use server_router::{RemoteSandbox, links::Links};
use server_store::{ClaimedTurn, IfRunning, Outputs, SessionRow, Store, StoreError};
use shared_sandbox::CancelAnswer;
use shared_types::{
    Clock, OperationId, OperationScope, Refusal, ReplicaId, SessionId, TenantId, TurnId,
    event::TurnOutcome,
};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    isolation::IsolationPolicy,
    journal::{SessionJournal, SessionSink},
    live::LiveHub,
    ports::{SessionIntents, Started, TenantOperations, TurnFleet},
};

mod failing;

/// Turns that one process carries at the same time; more wait.
const TURNS_AT_ONCE: usize = 256;
/// Wake-ups that may wait for the dispatcher.
const WAKE_UPS: usize = 1024;
/// Unfinished turns that are read at once when the server starts.
const START_PAGE: u32 = 500;
/// Between attempts while the store does not answer; it doubles with each attempt.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// The longest pause between attempts.
const RETRY_AFTER_AT_MOST: Duration = Duration::from_secs(300);

/// A session, by its tenant.
type Key = (TenantId, SessionId);

/// What the workers share, for the life of the process.
pub(crate) struct Bench {
    pub(crate) engine: Engine,
    pub(crate) store: Store,
    pub(crate) outputs: Outputs,
    pub(crate) links: Links,
    pub(crate) hub: LiveHub,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) replica: ReplicaId,
    pub(crate) started: Started,
    pub(crate) isolation: Arc<IsolationPolicy>,
}

impl Bench {
    /// What a turn of this session works with, under the session's epoch.
    fn ports(&self, tenant: TenantId, session: &SessionRow, turn: TurnId) -> SessionPorts {
        let Bench {
            store,
            outputs,
            links,
            hub,
            clock,
            started,
            isolation,
            ..
        } = self;
        let fleet = TurnFleet {
            store: store.clone(),
            links: links.clone(),
            hub: hub.clone(),
            started: *started,
            isolation: isolation.clone(),
            tenant,
            session: session.id,
            turn,
        };
        let intents = SessionIntents {
            store: store.clone(),
            hub: hub.clone(),
            clock: clock.clone(),
            tenant,
            session: session.id,
        };
        let operations = TenantOperations {
            store: store.clone(),
            outputs: outputs.clone(),
            hub: hub.clone(),
            clock: clock.clone(),
            tenant,
        };
        SessionPorts {
            journal: Arc::new(SessionJournal {
                store: store.clone(),
                hub: hub.clone(),
                clock: clock.clone(),
                tenant,
                session: session.id,
                epoch: session.epoch,
            }),
            sandbox: Arc::new(RemoteSandbox::new(
                links.clone(),
                Arc::new(fleet),
                (Arc::new(intents), Arc::new(operations)),
                clock.clone(),
            )),
            live: Arc::new(SessionSink {
                hub: hub.clone(),
                session: session.id,
            }),
            scope: OperationScope::of(tenant),
            session: session.id,
        }
    }
}

/// A cheap handle to the dispatcher.
#[derive(Clone)]
pub(crate) struct Turns {
    wake: mpsc::Sender<Key>,
    bench: Arc<Bench>,
}

impl Turns {
    /// Starts the dispatcher and, with it, every turn that is not finished. It ends with `stop`:
    /// what runs is left as it is, for the next start.
    pub(crate) fn start(bench: Arc<Bench>, stop: CancellationToken, tasks: &TaskTracker) -> Self {
        let (wake, inbox) = mpsc::channel(WAKE_UPS);
        let (idle, idled) = mpsc::channel(WAKE_UPS);
        let dispatcher = Dispatcher {
            bench: bench.clone(),
            workers: HashMap::new(),
            idle,
            permits: Arc::new(Semaphore::new(TURNS_AT_ONCE)),
        };
        tasks.spawn(dispatcher.run(inbox, idled, stop.clone()));
        tasks.spawn(wake_unfinished(bench.clone(), wake.clone(), stop));
        Self { wake, bench }
    }

    /// Something about the session's turns has changed: look.
    pub(crate) async fn wake(&self, tenant: TenantId, session: SessionId) {
        let _ = self.wake.send((tenant, session)).await;
    }

    /// Stops an operation of a turn, whether that turn is under way or over.
    ///
    /// # Errors
    /// A refusal: there is no such operation, or its runner is lost.
    pub(crate) async fn cancel(
        &self,
        tenant: TenantId,
        session: &SessionRow,
        turn: TurnId,
        operation: OperationId,
    ) -> Result<CancelAnswer, Refusal> {
        let ports = self.bench.ports(tenant, session, turn);
        ports.sandbox.cancel(operation, session.epoch).await
    }
}

/// Wakes every session that an earlier process left with work.
async fn wake_unfinished(bench: Arc<Bench>, wake: mpsc::Sender<Key>, stop: CancellationToken) {
    let mut after = None;
    loop {
        match bench.store.unfinished_turns(after, START_PAGE).await {
            Ok(turns) => {
                let Some(last) = turns.last() else { return };
                after = Some(last.turn);
                for turn in turns {
                    if wake.send((turn.tenant, turn.session)).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => {
                tracing::error!(%error, "the unfinished turns cannot be read; trying again");
                tokio::select! {
                    () = tokio::time::sleep(RETRY_AFTER) => {}
                    () = stop.cancelled() => return,
                }
            }
        }
    }
}

struct Dispatcher {
    bench: Arc<Bench>,
    workers: HashMap<Key, Arc<Notify>>,
    idle: mpsc::Sender<(Key, Arc<Notify>)>,
    permits: Arc<Semaphore>,
}

impl Dispatcher {
    async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Key>,
        mut idled: mpsc::Receiver<(Key, Arc<Notify>)>,
        stop: CancellationToken,
    ) {
        let workers = TaskTracker::new();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some((key, notify)) = idled.recv() => self.retire(key, &notify, &workers, &stop),
                Some(key) = inbox.recv() => self.wake(key, &workers, &stop),
            }
        }
        workers.close();
        workers.wait().await;
    }

    fn wake(&mut self, key: Key, workers: &TaskTracker, stop: &CancellationToken) {
        if let Some(worker) = self.workers.get(&key) {
            worker.notify_one();
            return;
        }
        let wake = Arc::new(Notify::new());
        self.workers.insert(key, wake.clone());
        let worker = Worker {
            bench: self.bench.clone(),
            tenant: key.0,
            session: key.1,
            wake: wake.clone(),
        };
        let (idle, permits, stop) = (self.idle.clone(), self.permits.clone(), stop.clone());
        workers.spawn(async move {
            // A worker that panics between two turns is replaced at the session's next wake-up.
            let running = AssertUnwindSafe(worker.run(&permits)).catch_unwind();
            tokio::select! {
                _ = running => { let _ = idle.send((key, wake)).await; }
                // Dropped where it stands: what it had recorded is what the next start sees.
                () = stop.cancelled() => {}
            }
        });
    }

    /// A worker found nothing more to do. A wake-up that came in the meantime starts another.
    fn retire(&mut self, key: Key, wake: &Notify, workers: &TaskTracker, stop: &CancellationToken) {
        self.workers.remove(&key);
        let mut pending = std::pin::pin!(wake.notified());
        if pending.as_mut().enable() {
            self.wake(key, workers, stop);
        }
    }
}

struct Worker {
    bench: Arc<Bench>,
    tenant: TenantId,
    session: SessionId,
    wake: Arc<Notify>,
}

/// What stands in the way of a turn.
#[derive(Debug, thiserror::Error)]
enum Obstacle {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Turn(#[from] TurnError),
    #[error("carry on with the turn: its worker panicked")]
    Panic,
}

impl Worker {
    /// Carries the session's turns, one after the other, until none is left.
    async fn run(&self, permits: &Semaphore) {
        let Ok(_permit) = permits.acquire().await else {
            return;
        };
        let mut pause = RETRY_AFTER;
        loop {
            match self.carry_next().await {
                Ok(ControlFlow::Continue(())) => pause = RETRY_AFTER,
                Ok(ControlFlow::Break(())) => return,
                Err(Obstacle::Turn(TurnError::StaleEpoch)) => {
                    // A session has one worker, so no other has taken it over. The server raised the
                    // epoch, because the database is an older copy.
                    tracing::warn!(session.id = %self.session, "the epoch of the session was raised; its turn is claimed again");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
                Err(error) => {
                    tracing::error!(session.id = %self.session, %error, retry_after_s = pause.as_secs(), "failed to carry a turn; it will be resumed");
                    // Whoever wakes it, to cancel for example, does not have to wait.
                    let _ = tokio::time::timeout(pause, self.wake.notified()).await;
                    pause = (pause * 2).min(RETRY_AFTER_AT_MOST);
                }
            }
        }
    }

    /// Claims the next turn and carries it to its end; breaks where none is left.
    async fn carry_next(&self) -> Result<ControlFlow<()>, Obstacle> {
        let Bench { store, clock, .. } = &*self.bench;
        // A turn of this session that runs has lost its worker: there is one process, and in it
        // one worker a session.
        let take_over = IfRunning::TakeOver;
        let (replica, now) = (self.bench.replica, clock.now());
        let claimed = store.claim_turn(self.tenant, self.session, replica, take_over, now);
        let Some(turn) = claimed.await? else {
            return Ok(ControlFlow::Break(()));
        };
        self.bench.hub.appended(self.session, Vec::new()).await;
        let session = store.session(self.tenant, self.session).await?;
        let outcome = match self.carry(&turn, session.clone()).await {
            Ok(outcome) => outcome,
            Err(obstacle) => self.give_up_or_try_again(&turn, session, obstacle).await?,
        };
        tracing::info!(session.id = %self.session, turn.id = %turn.turn.id, ?outcome, "turn ended");
        Ok(ControlFlow::Continue(()))
    }

    async fn carry(
        &self,
        turn: &ClaimedTurn,
        session: SessionRow,
    ) -> Result<TurnOutcome, Obstacle> {
        let cancel = CancellationToken::new();
        // Under the epoch of this claim, whatever came since.
        let session = SessionRow {
            epoch: turn.epoch,
            ..session
        };
        let ports = self.bench.ports(self.tenant, &session, turn.turn.id);
        let running =
            (self.bench.engine).run_turn(&ports, turn.turn.id, turn.epoch, cancel.clone());
        // The log is the truth, and what a panic leaves half done is built from it again.
        let running = AssertUnwindSafe(running).catch_unwind();
        tokio::select! {
            ended = running => Ok(ended.map_err(|_| Obstacle::Panic)??),
            never = self.heed_cancel(turn, &cancel) => match never {},
        }
    }

    /// Cancels the turn once a wish to do so is recorded; looks after every wake-up.
    async fn heed_cancel(&self, turn: &ClaimedTurn, cancel: &CancellationToken) -> Infallible {
        loop {
            self.wake.notified().await;
            match self.bench.store.turn(self.tenant, turn.turn.id).await {
                Ok(row) if row.cancel_requested_at.is_some() => cancel.cancel(),
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(turn.id = %turn.turn.id, %error, "a wish to cancel cannot be read; looking again");
                    self.wake.notify_one();
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }
}
