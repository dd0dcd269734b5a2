//! Workers: each claims the turns of one session, in order, and carries them to their end, or to a
//! point where they only wait ([`waiting`]).
//!
//! A wake-up carries no data: the worker looks at the rows, so that a restart and the normal path
//! are one path. A turn that a dead worker left is claimed like any other, under a higher epoch,
//! and the engine goes on from its log (docs/internals/contracts.md#c1 to #c4).

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use server_agent::{
    BuiltIn, Engine, EngineLimits, SessionPorts,
    feed::LiveHub,
    log::{Counted, LogCache, SessionSink, StoredLog, TurnSpans},
};
use server_records::{SessionError, SessionKey};
use server_router::{SandboxRouter, links::Links};
use server_store::{Ports, SessionRow, Store, TurnRow};
use shared_sandbox::CancelAnswer;
use shared_types::{
    Clock, Epoch, OperationId, OperationScope, Refusal, ReplicaId, SessionEvent, SessionId, SpanId,
    TenantId, Timestamp, TraceContext, TurnId, event::TurnSettings, limits,
};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Parts,
    commits::Commits,
    fleet::{Started, TurnFleet},
    guarded::Guarded,
    isolation::IsolationPolicy,
    models::Offered,
    settings::Settings,
};

mod failing;
mod waiting;
mod worker;

use waiting::View;
use worker::Worker;

/// Wake-ups that may wait for the dispatcher.
const WAKE_UPS: usize = 1024;
/// Unfinished turns that are read at once when the server starts.
const START_PAGE: u32 = 500;
/// Between attempts while the store does not answer; a worker doubles it with each attempt.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// A session, by its tenant.
type Key = (TenantId, SessionId);

/// The number of turns at once, and the times that they wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnLimits {
    /// Turns that one process carries at the same time; others have to wait for that. Those that only
    /// wait do not count.
    pub at_once: usize,
    /// The time for which a turn waits for its runner or its command before it is parked.
    pub parks_after: Duration,
    /// The time for which a turn waits for a runner that went away while a call ran there.
    pub waited_for: Duration,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            at_once: 256,
            parks_after: limits::PARKS_AFTER,
            waited_for: limits::PARKED_AT_MOST,
        }
    }
}

/// The session and epoch of a worker's writes.
struct Under {
    session: SessionId,
    epoch: Epoch,
    /// The number of its claim's event, if it has one.
    claimed_at: Option<u64>,
    /// Set once the turn has ended as the last of its session.
    was_last: Arc<AtomicBool>,
}

impl Under {
    fn new(session: SessionId, epoch: Epoch) -> Self {
        Self {
            session,
            epoch,
            claimed_at: None,
            was_last: Arc::default(),
        }
    }
}

/// The parts that the workers share, for the life of the process.
pub(crate) struct Bench {
    pub(crate) engine: Engine,
    pub(crate) models: Offered,
    pub(crate) store: Store,
    pub(crate) logs: LogCache,
    pub(crate) ports: Ports,
    pub(crate) links: Links,
    pub(crate) hub: LiveHub,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) replica: ReplicaId,
    pub(crate) started: Started,
    pub(crate) isolation: Arc<IsolationPolicy>,
    /// The settings of turns if no tenant, user or session has set any.
    pub(crate) unless_set: TurnSettings,
}

impl Bench {
    /// The ports of a turn of this session, under this epoch.
    fn ports(
        &self,
        tenant: TenantId,
        under: Under,
        turn: TurnId,
        traced: Option<Traced>,
    ) -> SessionPorts {
        let Under {
            session,
            epoch,
            claimed_at,
            was_last,
        } = under;
        let Bench {
            store,
            logs,
            ports,
            links,
            hub,
            clock,
            started,
            isolation,
            ..
        } = self;
        let fleet = TurnFleet {
            store: store.clone(),
            hub: hub.clone(),
            started: *started,
            clock: clock.clone(),
            isolation: isolation.clone(),
            tenant,
            session,
            turn,
        };
        let sandbox = SandboxRouter::new(
            links.clone(),
            Arc::new(fleet),
            (
                ports.session_intents(tenant, session),
                ports.operations(tenant),
            ),
            clock.clone(),
        );
        SessionPorts {
            log: Arc::new(StoredLog {
                rows: ports.log(SessionKey { tenant, session }),
                logs: logs.clone(),
                clock: clock.clone(),
                of: SessionKey { tenant, session },
                epoch,
                claimed_at: AtomicU64::new(claimed_at.unwrap_or(0)),
                counted: Counted::new(
                    traced.map(|traced| {
                        TurnSpans::new(session, turn, traced.request, traced.sent_at)
                    }),
                ),
                was_last,
            }),
            models: self.models.of_session(tenant, session),
            sandbox: Arc::new(Guarded::new(sandbox, store.clone(), tenant)),
            live: Arc::new(SessionSink {
                hub: hub.clone(),
                session,
            }),
            scope: OperationScope::of(tenant),
            session,
            trace: traced.map(|traced| traced.request.with(SpanId::of_turn(turn))),
        }
    }
}

/// The place of a turn in a trace, for the workers that carry it on.
#[derive(Debug, Clone, Copy)]
struct Traced {
    /// The request that it answers.
    request: TraceContext,
    /// The time at which the request was stored.
    sent_at: Timestamp,
}

impl Traced {
    fn of(turn: &TurnRow) -> Option<Self> {
        Some(Self {
            request: turn.trace?,
            sent_at: turn.created_at,
        })
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
    pub(crate) fn start(
        bench: Arc<Bench>,
        at_once: usize,
        stop: CancellationToken,
        tasks: &TaskTracker,
    ) -> Self {
        let (wake, inbox) = mpsc::channel(WAKE_UPS);
        let (unheard_of, unheard) = mpsc::channel(WAKE_UPS);
        let (idle, idled) = mpsc::channel(WAKE_UPS);
        let dispatcher = Dispatcher {
            bench: bench.clone(),
            workers: HashMap::new(),
            views: HashMap::new(),
            idle,
            permits: Arc::new(Semaphore::new(at_once)),
        };
        tasks.spawn(dispatcher.run((inbox, unheard), idled, stop.clone()));
        let waiting = waiting::wake_waiting(bench.clone(), wake.clone(), stop.clone());
        tasks.spawn(waiting);
        let queued = waiting::wake_queued(bench.clone(), unheard_of, stop.clone());
        tasks.spawn(queued);
        tasks.spawn(wake_unfinished(bench.clone(), wake.clone(), stop));
        Self { wake, bench }
    }

    /// A replica is gone: every turn that it may have had is looked at.
    pub(crate) fn wake_unfinished(&self) {
        let (bench, wake) = (self.bench.clone(), self.wake.clone());
        // It ends with the dispatcher, which takes what it says.
        tokio::spawn(wake_unfinished(bench, wake, CancellationToken::new()));
    }

    /// Something about the session's turns has changed: look.
    pub(crate) async fn wake(&self, tenant: TenantId, session: SessionId) {
        let _ = self.wake.send((tenant, session)).await;
    }

    /// The whole log of a session, in order.
    ///
    /// # Errors
    /// [`SessionError::NotFound`] if there is no such session.
    pub(crate) async fn log(
        &self,
        tenant: TenantId,
        session: SessionId,
    ) -> Result<Arc<Vec<SessionEvent>>, SessionError> {
        let Bench {
            ports, logs, clock, ..
        } = &*self.bench;
        let of = SessionKey { tenant, session };
        logs.load(&*ports.log(of), of, None, clock.now()).await
    }

    /// Drops what this process keeps of a session that was deleted.
    pub(crate) fn forget(&self, tenant: TenantId, session: SessionId) {
        self.bench.logs.forget(SessionKey { tenant, session });
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
        let under = Under::new(session.id, session.epoch);
        let ports = self.bench.ports(tenant, under, turn, None);
        ports.sandbox.cancel(operation, session.epoch).await
    }
}

/// Starts the work on turns.
pub(crate) fn start(
    parts: &Parts,
    started: Started,
    links: &Links,
    commits: &Commits,
    settings: &Settings,
    offered: &Offered,
    tasks: &TaskTracker,
) -> Turns {
    let limits = EngineLimits {
        model_window: parts.model_window,
        parked_at_most: parts.turns.waited_for,
        parks_after: parts.turns.parks_after,
        ..EngineLimits::default()
    };
    let clock = parts.clock.clone();
    let bench = Bench {
        engine: Engine::new(vec![Arc::new(BuiltIn)], limits, clock.clone()),
        models: offered.clone(),
        store: parts.store.clone(),
        ports: parts.ports(),
        links: links.clone(),
        logs: commits.logs.clone(),
        hub: commits.hub.clone(),
        clock,
        replica: parts.replica,
        started,
        isolation: parts.isolation.clone(),
        unless_set: settings.of_operator(),
    };
    let (at_once, stop) = (parts.turns.at_once, parts.stop.clone());
    Turns::start(Arc::new(bench), at_once, stop, tasks)
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
    /// Of turns that wait without a worker.
    views: HashMap<Key, View>,
    idle: mpsc::Sender<Idle>,
    permits: Arc<Semaphore>,
}

/// A worker that found nothing more to do.
struct Idle {
    key: Key,
    wake: Arc<Notify>,
    /// Of the turn that it has let go of.
    view: Option<View>,
}

impl Dispatcher {
    async fn run(
        mut self,
        (mut inbox, mut unheard): (mpsc::Receiver<Key>, mpsc::Receiver<Key>),
        mut idled: mpsc::Receiver<Idle>,
        stop: CancellationToken,
    ) {
        let workers = TaskTracker::new();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(idle) = idled.recv() => self.retire(idle, &workers, &stop),
                Some(key) = inbox.recv() => self.wake(key, &workers, &stop),
                // A worker that waits to try again is not to be hurried.
                Some(key) = unheard.recv() => if !self.workers.contains_key(&key) {
                    self.wake(key, &workers, &stop);
                },
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
            view: self.views.remove(&key),
            is_woken: true,
        };
        let (idle, permits, stop) = (self.idle.clone(), self.permits.clone(), stop.clone());
        workers.spawn(async move {
            // A worker that panics between two turns is replaced at the session's next wake-up.
            let running = AssertUnwindSafe(worker.run(&permits)).catch_unwind();
            tokio::select! {
                view = running => {
                    let view = view.ok().flatten();
                    let _ = idle.send(Idle { key, wake, view }).await;
                }
                // Dropped where it stands: what it had recorded is what the next start sees.
                () = stop.cancelled() => {}
            }
        });
    }

    /// A worker found nothing more to do. A wake-up that came in the meantime starts another.
    fn retire(&mut self, idle: Idle, workers: &TaskTracker, stop: &CancellationToken) {
        let Idle { key, wake, view } = idle;
        self.workers.remove(&key);
        self.views.extend(view.map(|view| (key, view)));
        let mut pending = std::pin::pin!(wake.notified());
        if pending.as_mut().enable() {
            self.wake(key, workers, stop);
        }
    }
}
