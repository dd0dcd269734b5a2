//! The bench: the parts that all workers share, and the ports that it makes of them for one turn.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64},
};

use server_records::{SessionKey, TurnRow, TurnRows, WaitsOver};
use shared_sandbox::Sandbox;
use shared_types::{
    Clock, Epoch, ReplicaId, SpanId, Timestamp, TraceContext, TurnId, event::TurnSettings,
};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    engine::Engine,
    feed::LiveHub,
    hooks::HookPosts,
    log::{Counted, LogCache, SessionSink, StoredLog, TurnSpans},
    models::ModelSource,
    servers::ToolServers,
    session::{SessionPorts, Stirs},
};

/// Makes the sandbox of a turn's calls.
pub trait TurnSandboxes: Send + Sync {
    /// The sandbox of this turn.
    fn of(&self, session: SessionKey, turn: TurnId) -> Arc<dyn Sandbox>;
}

/// Finds the tool servers of a session, and the way of its hooks to addresses.
pub trait SessionServers: Send + Sync {
    /// The tool servers that this session may use.
    fn of(&self, session: SessionKey) -> Arc<dyn ToolServers>;

    /// Sends the hooks of this session.
    fn posts(&self, session: SessionKey) -> Arc<dyn HookPosts>;
}

/// Finds the models of a session.
pub trait SessionModels: Send + Sync {
    /// The models that may answer in this session.
    fn of(&self, session: SessionKey) -> Arc<dyn ModelSource>;
}

/// The parts that the workers share, for the life of the process.
pub struct Bench {
    /// Carries turns.
    pub engine: Engine,
    /// The stored turns.
    pub turns: Arc<dyn TurnRows>,
    /// The models of sessions.
    pub models: Arc<dyn SessionModels>,
    /// The tool servers of sessions.
    pub servers: Arc<dyn SessionServers>,
    /// The sandboxes of turns.
    pub sandboxes: Arc<dyn TurnSandboxes>,
    /// The logs that this process knows.
    pub logs: LogCache,
    /// The watchers of sessions.
    pub hub: LiveHub,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// This process.
    pub replica: ReplicaId,
    /// Until then runners may come back that were linked to an earlier process.
    pub runners_return_until: Instant,
    /// The settings of turns if no tenant, user or session has set any.
    pub unless_set: TurnSettings,
}

impl Bench {
    /// The ports of a turn of this session, under this epoch.
    pub(super) fn ports(&self, under: Under, turn: TurnId, traced: Option<Traced>) -> SessionPorts {
        let Under {
            of,
            epoch,
            claimed_at,
            was_last,
            wake,
            stirs,
        } = under;
        let spans =
            traced.map(|traced| TurnSpans::new(of.session, turn, traced.request, traced.sent_at));
        SessionPorts {
            log: Arc::new(StoredLog {
                rows: self.turns.of(of).log(),
                logs: self.logs.clone(),
                clock: self.clock.clone(),
                of,
                epoch,
                claimed_at: AtomicU64::new(claimed_at.unwrap_or(0)),
                counted: Counted::new(spans),
                was_last,
                wake,
            }),
            models: self.models.of(of),
            sandbox: self.sandboxes.of(of, turn),
            servers: self.servers.of(of),
            posts: self.servers.posts(of),
            live: Arc::new(SessionSink {
                hub: self.hub.clone(),
                session: of.session,
            }),
            scope: of.scope(),
            session: of.session,
            trace: traced.map(|traced| traced.request.with(SpanId::of_turn(turn))),
            stirs,
        }
    }

    /// The bounds by which a wait is over now. A wait that an earlier process has left is not over by its
    /// time limit alone, while its runner may still come back.
    pub(crate) fn waits_over(&self) -> WaitsOver {
        let now = self.clock.now();
        WaitsOver {
            replica: self.replica,
            at: now,
            of_others_at: match Instant::now() < self.runners_return_until {
                true => Timestamp::from_micros(i64::MIN),
                false => now,
            },
        }
    }
}

/// The session and epoch of a worker's writes.
pub(super) struct Under {
    pub(super) of: SessionKey,
    pub(super) epoch: Epoch,
    /// The number of its claim's event, if it has one.
    pub(super) claimed_at: Option<u64>,
    /// Set once the turn has ended as the last of its session.
    pub(super) was_last: Arc<AtomicBool>,
    /// Wakes the workers of agents.
    pub(super) wake: Option<mpsc::Sender<SessionKey>>,
    /// Tells the turn that others may have written to the log.
    pub(super) stirs: Stirs,
}

impl Under {
    pub(super) fn new(of: SessionKey, epoch: Epoch) -> Self {
        Self {
            of,
            epoch,
            claimed_at: None,
            was_last: Arc::default(),
            wake: None,
            stirs: Stirs::default(),
        }
    }
}

/// The place of a turn in a trace, for the workers that carry it on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traced {
    /// The request that it answers.
    request: TraceContext,
    /// The time at which the request was stored.
    sent_at: Timestamp,
}

impl Traced {
    pub(super) fn of(turn: &TurnRow) -> Option<Self> {
        Some(Self {
            request: turn.trace?,
            sent_at: turn.created_at,
        })
    }
}
