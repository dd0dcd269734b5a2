//! The use cases: every action of the server's users, with its rights and its tenant.
//!
//! Every use case takes an [`OpContext`] that comes from a credential. Doors call these and
//! nothing else; what is below (store, router, engine) is put together here once, in
//! [`App::start`].

mod access;
mod allowance;
mod audit;
mod challenges;
mod commits;
mod context;
mod enrolment;
mod error;
mod fleet;
mod gate;
mod gauges;
mod guarded;
mod isolation;
pub mod keys;
mod link_challenge;
mod link_token;
mod log_cache;
mod measured;
mod operations;
mod operator;
mod pages;
mod people;
mod ready;
mod refusals;
mod replicas;
mod requests;
pub mod rights;
mod runners;
mod sandboxes;
mod session_log;
mod sessions;
mod settings;
mod shielded;
mod spans;
#[cfg(test)]
mod testing;
mod turns;

use std::{sync::Arc, time::Duration};

use proto::v1;
use server_agent::{BuiltIn, Engine, EngineLimits, feed::LiveHub};
use server_llm::{ModelInfo, Models};
use server_router::{
    Reaper, SilenceLimits,
    links::{Inbound, LinkEnd, LinkOptions, Links},
};
use server_store::{Ports, Store};
use shared_telemetry::server::{LINKS, LINKS_ENDED};
use shared_types::{Clock, Entropy, ReplicaId};
use tokio::sync::{Notify, mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use access::{
    Access, BrowserSession, Key, KeyTerms, Me, SIGN_IN_CODE_FOR, SignedInBrowser, StreamTicket,
    User,
};
pub use allowance::{Rate, UserLimits};
pub use audit::{Audit, AuditQuery};
pub use context::OpContext;
pub use enrolment::{AuthenticateRequest, Enrolled, Enrolment, Joined, NotLetIn};
pub use error::AppError;
pub use isolation::IsolationPolicy;
pub use link_challenge::{LinkChallenge, NotAKey};
pub use link_token::LinkClaims;
pub use operations::{
    Attached, MAX_OUTPUT_PAGE_BYTES, OperationFilter, OperationView, Operations, OutputPage,
    Reading, StartOperation, TakesInput,
};
pub use operator::Operator;
pub use people::{Invited, People, Person};
pub use ready::NotReady;

pub use requests::{Keyed, Requests, TakenKey};
pub use runners::{JoinTerms, MadeJoinToken, Runner, Runners};
pub use sandboxes::{SandboxChange, Sandboxes};
pub use server_agent::{Live, Piece, Task, Voice, feed::Followed};
pub use server_records::LinkIdentity;
pub use server_router::links::LinkSealer;
pub use server_store::{AuditRow, CredentialKind, JoinTokenRow, Role, Scope, Scopes, UserKind};
pub use server_store::{MAX_ANSWER_BYTES, Page, RequestAnswer, SessionChange, SessionFilter};
pub use server_store::{PooledSandbox, SandboxRow, SettingLayer, SettingName, Stopped};
pub use sessions::{
    Sent, Session, SessionLink, SessionTerms, Sessions, SharedSession, Subscription,
};
pub use settings::{ChangeSettings, CurrentSettings, OperatorSettings, SetBy, Setting, Settings};
pub use shared_sandbox::{CancelAnswer, OutputStream};
pub use turns::TurnLimits;

use crate::{
    allowance::Allowance,
    commits::Commits,
    enrolment::ServerKeys,
    fleet::Started,
    gate::Gate,
    gauges::Gauges,
    isolation::Forbidding,
    keys::{LinkKeys, SigningKey},
    log_cache::LogCache,
    ready::DISK_KEPT_FREE,
    refusals::Refusals,
    replicas::Replicas,
    runners::JoinTokens,
    turns::{Bench, Turns},
};

/// The parts of a server; `main` alone chooses them.
pub struct Parts {
    /// The database.
    pub store: Store,
    /// The store of operations' output.
    pub outputs: server_store::Outputs,
    /// The models that can answer.
    pub models: Models,
    /// The operator's settings for all tenants.
    pub operator: OperatorSettings,
    /// Tokens that fit into one request to any of the models and its answer, where that is known.
    pub model_window: Option<usize>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// The key by which runners know this server.
    pub identity: SigningKey,
    /// The keys that sign and verify link tokens.
    pub link_keys: LinkKeys,
    /// The times of the runners' links.
    pub link: LinkOptions,
    /// After this long without a word an ephemeral runner is removed.
    pub ephemeral_silence: Duration,
    /// The number of turns at once, and the times that they wait.
    pub turns: TurnLimits,
    /// The isolation that sandboxes must have, and the runners whose reports of it count.
    pub isolation: Arc<IsolationPolicy>,
    /// The limits of one user.
    pub user_limits: UserLimits,
    /// This process.
    pub replica: ReplicaId,
    /// The place where it runs: no other process runs at the same place at the same time.
    pub place: String,
    /// Ends everything.
    pub stop: CancellationToken,
}

impl Parts {
    fn ports(&self) -> Ports {
        Ports {
            store: self.store.clone(),
            outputs: self.outputs.clone(),
            clock: self.clock.clone(),
            forbids_sudo: self.isolation.forbids_sudo,
        }
    }

    fn links(&self, ports: Ports) -> Links {
        Links::start(
            ports.links(self.replica),
            self.clock.clone(),
            self.entropy.clone(),
            self.link.clone(),
            self.stop.clone(),
        )
    }

    fn bench(&self, ports: &Ports, links: &Links, commits: Commits, settings: &Settings) -> Bench {
        let limits = EngineLimits {
            model_window: self.model_window,
            parked_at_most: self.turns.waited_for,
            parks_after: self.turns.parks_after,
            ..EngineLimits::default()
        };
        Bench {
            engine: Engine::new(
                self.models.clone(),
                vec![Arc::new(BuiltIn)],
                limits,
                self.clock.clone(),
            ),
            store: self.store.clone(),
            ports: ports.clone(),
            links: links.clone(),
            logs: commits.logs,
            hub: commits.hub,
            clock: self.clock.clone(),
            replica: self.replica,
            started: Started::now(self.clock.now()),
            isolation: self.isolation.clone(),
            unless_set: settings.of_operator(),
        }
    }
}

/// All use cases; cheap to clone.
#[derive(Clone)]
pub struct App {
    /// Sign-in and credentials.
    pub access: Access,
    /// Conversations.
    pub sessions: Sessions,
    /// Operations on runners, and their output.
    pub operations: Operations,
    /// The settings of users and sessions.
    pub settings: Settings,
    /// Runners and the choice among them.
    pub runners: Runners,
    /// The sandboxes of pools.
    pub sandboxes: Sandboxes,
    /// The people of the tenant.
    pub people: People,
    /// The audit log.
    pub audit: Audit,
    /// Requests that are sent again.
    pub requests: Requests,
    /// The enrolment and authentication of runners.
    pub enrolment: Enrolment,
    store: Store,
    gauges: Gauges,
    allowance: Allowance,
    replica: ReplicaId,
    links: Links,
    model: ModelInfo,
    tasks: TaskTracker,
    leaving: CancellationToken,
    stop: CancellationToken,
}

impl App {
    /// Puts the parts together, starts the background work, and resumes what an earlier process
    /// left unfinished.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn start(mut parts: Parts) -> Result<Self, AppError> {
        // No link of an earlier process here is alive, and its generation must not look as if it were.
        let now = parts.clock.now();
        (parts.store)
            .start_replica(parts.replica, &parts.place, now)
            .await?;
        let (tasks, hub) = (TaskTracker::new(), LiveHub::start());
        let commits = Commits {
            hub: hub.clone(),
            logs: LogCache::new(),
        };
        parts.store = parts.store.heard_by(Arc::new(commits.clone()));
        let model = parts.models.first().info();
        let ports = parts.ports();
        let links = parts.links(ports.clone());
        let (stop, store) = (parts.stop.clone(), parts.store.clone());
        let refusals = Refusals::start(store.clone(), parts.clock.clone(), stop, &tasks);
        let gate = Gate::new(store, refusals.clone());
        let policy_changed = Arc::new(Notify::new());
        let settings = Settings::new(
            (parts.store.clone(), gate.clone()),
            parts.models.clone(),
            parts.operator.clone(),
            parts.clock.clone(),
            Arc::clone(&policy_changed),
        );
        let bench = Arc::new(parts.bench(&ports, &links, commits, &settings));
        let started = bench.started;
        let turns = Turns::start(bench, parts.turns.at_once, parts.stop.clone(), &tasks);
        let Parts {
            store,
            outputs,
            clock,
            entropy,
            ..
        } = parts;
        let keys = ServerKeys {
            identity: parts.identity,
            link_keys: parts.link_keys,
        };
        let enrolment = Enrolment::new(
            store.clone(),
            links.clone(),
            clock.clone(),
            entropy.clone(),
            (parts.replica, keys),
            refusals,
        );
        let allowance = Allowance::new(parts.user_limits, clock.clone());
        let access = Access::new(
            (store.clone(), gate.clone()),
            clock.clone(),
            entropy.clone(),
            allowance.clone(),
        );
        let join_tokens = JoinTokens::new(
            store.clone(),
            enrolment.identity_key(),
            clock.clone(),
            entropy.clone(),
        );
        let runners = Runners::new(
            (store.clone(), gate.clone(), settings.clone()),
            links.clone(),
            join_tokens,
            allowance.clone(),
            parts.isolation.clone(),
            clock.clone(),
        );
        let sandboxes = Sandboxes::new(
            (store.clone(), gate.clone()),
            links.clone(),
            clock.clone(),
            parts.isolation.clone(),
        );
        let forbidding = Forbidding {
            store: store.clone(),
            links: links.clone(),
            policy: parts.isolation.clone(),
            replica: parts.replica,
            changed: policy_changed,
        };
        tasks.spawn(forbidding.run(parts.stop.clone()));
        let limits = SilenceLimits {
            operations_lost_after: parts.link.lost_after,
            ephemeral_removed_after: parts.ephemeral_silence,
        };
        let reaper = Reaper::from_now(
            ports.clone().silent_runners(parts.replica),
            links.clone(),
            clock.clone(),
            limits,
        );
        tasks.spawn(reaper.run(parts.stop.clone()));
        let sessions = Sessions::new(
            (store.clone(), gate.clone()),
            hub.clone(),
            turns.clone(),
            allowance.clone(),
            clock.clone(),
            entropy.clone(),
            settings.clone(),
        );
        tasks.spawn(sessions.deletions(outputs).run(parts.stop.clone()));
        let operations = Operations {
            store: store.clone(),
            gate: gate.clone(),
            ports,
            links: links.clone(),
            waiting: Default::default(),
            sessions: sessions.clone(),
            allowance: allowance.clone(),
            started,
            isolation: parts.isolation,
            clock: clock.clone(),
            entropy: entropy.clone(),
        };
        operations.resume(&tasks, parts.stop.clone());
        let replicas = Replicas {
            store: store.clone(),
            clock: clock.clone(),
            replica: parts.replica,
            place: parts.place,
            turns,
            operations: operations.clone(),
        };
        tasks.spawn(replicas.run(parts.stop.clone()));
        let gauges = Gauges::new(store.clone(), clock.clone(), links.clone());
        let audit = Audit {
            store: store.clone(),
            gate: gate.clone(),
        };
        let requests = Requests {
            store: store.clone(),
            gate: gate.clone(),
            clock: clock.clone(),
        };
        let people = People {
            store: store.clone(),
            gate,
            access: access.clone(),
            sessions: sessions.clone(),
            operations: operations.clone(),
            allowance: allowance.clone(),
            clock,
            entropy,
        };
        tasks.spawn(people.clone().finish_removals(parts.stop.clone()));
        tasks.spawn(people.clone().end_with_rights(parts.stop.clone()));
        Ok(Self {
            access,
            sessions,
            operations,
            settings,
            runners,
            sandboxes,
            people,
            audit,
            requests,
            enrolment,
            store,
            gauges,
            allowance,
            replica: parts.replica,
            links,
            model,
            tasks,
            leaving: CancellationToken::new(),
            stop: parts.stop,
        })
    }

    /// The model that answers where no one has chosen another, as people see it.
    pub fn model(&self) -> &ModelInfo {
        &self.model
    }

    /// Brings those metrics up to date that tell of what there is now.
    pub async fn update_gauges(&self) {
        self.gauges.update().await;
    }

    /// Checks that requests can be served.
    ///
    /// # Errors
    /// If they cannot.
    pub async fn ready(&self) -> Result<(), NotReady> {
        if self.is_leaving() {
            return Err(NotReady::Leaving);
        }
        let checked = self.store.check().await;
        checked.map_err(|_| NotReady::Database)?;
        self.has_room()
    }

    /// Looks at the disk of the database alone.
    ///
    /// # Errors
    /// [`NotReady::Disk`].
    pub fn has_room(&self) -> Result<(), NotReady> {
        match self.store.disk_free() {
            Some(free) if free < DISK_KEPT_FREE => Err(NotReady::Disk),
            _ => Ok(()),
        }
    }

    /// Takes up settings that may change while the server runs.
    pub async fn reload(&self, limits: UserLimits, link_keys: &LinkKeys) {
        self.allowance.use_limits(limits);
        self.enrolment.use_link_keys(link_keys).await;
    }

    /// The server will stop soon: new requests should go to another one.
    pub fn leave(&self) {
        self.leaving.cancel();
    }

    fn is_leaving(&self) -> bool {
        self.leaving.is_cancelled()
    }

    /// Serves the link of a runner that has proved itself, until it ends. The caller seals each
    /// frame from `outbound` as it leaves ([`LinkSealer::seal`]).
    pub async fn attach(
        &self,
        identity: LinkIdentity,
        hello: v1::Hello,
        inbound: Inbound,
        outbound: mpsc::Sender<Box<v1::ServerFrame>>,
    ) {
        LINKS.gauge(&[]).increment(1.0);
        let who = identity.clone();
        let end = self.links.attach(identity, hello, inbound, outbound).await;
        LINKS.gauge(&[]).decrement(1.0);
        LINKS_ENDED.add(&[word(&end)], 1);
        tracing::debug!(?end, "a link ended");
        if matches!(end, LinkEnd::Left(_))
            && let Err(error) = Box::pin(self.runners.left(&who)).await
        {
            // The reaper removes it later.
            tracing::warn!(runner.id = %who.runner, %error, "a runner that left cannot be removed");
        }
    }

    /// Waits until everything is to end.
    pub async fn stopping(&self) {
        self.stop.cancelled().await;
    }

    /// Waits, after the stop, until the background work has let go of the store.
    pub async fn idle(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Says to other servers that this one is gone, and closes the store.
    pub async fn close(&self) {
        if let Err(error) = self.store.end_replica(self.replica, None).await {
            tracing::warn!(%error, "other servers take over once the lease of this one is over");
        }
        self.store.close().await;
    }
}

/// The reason that a link ended, for metrics.
fn word(end: &LinkEnd) -> &'static str {
    match end {
        LinkEnd::Closed => "closed",
        LinkEnd::Goodbye(_) => "goodbye",
        LinkEnd::Left(_) => "left",
        LinkEnd::Silent => "silent",
        LinkEnd::Replaced => "replaced",
        LinkEnd::Revoked => "revoked",
        LinkEnd::Locked => "locked",
        LinkEnd::Shutdown => "shutdown",
        LinkEnd::Rotated => "rotated",
        LinkEnd::Aged => "aged",
        LinkEnd::WentBack => "went_back",
        LinkEnd::Violation(_) => "violation",
        LinkEnd::Failed(_) => "failed",
    }
}
