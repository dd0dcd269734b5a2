//! The use cases: every action of the server's users, with its rights and its tenant.
//!
//! Every use case takes an [`OpContext`] that comes from a credential. Doors call these and
//! nothing else; what is below (store, router, engine) is put together here once, in
//! [`App::start`].

mod access;
mod allowance;
mod approvals;
mod audit;
mod challenges;
mod changes;
mod client_documents;
mod commands;
mod commits;
mod context;
mod database_clock;
mod elsewhere;
mod enrolment;
mod error;
mod extensions;
mod fleet;
mod gate;
mod gauges;
mod guarded;
mod hints;
mod hook_posts;
mod isolation;
pub mod keys;
mod link_challenge;
mod link_token;
pub mod models;
mod operations;
mod operator;
mod pages;
mod parts;
mod peers;
mod people;
mod permissions;
mod ready;
mod refusals;
mod replicas;
mod requests;
mod rewinds;
pub mod rights;
mod runners;
mod sandboxes;
mod sessions;
mod settings;
mod shielded;
mod status;
#[cfg(test)]
mod testing;
mod tool_servers;
mod tool_sign_ins;
mod turns;
mod usage;
pub mod vault;
mod web;

use std::sync::Arc;

use proto::v1;
use server_llm::ModelInfo;
use server_router::links::{Inbound, LinkEnd, Links};
use server_store::Store;
use shared_telemetry::server::{LINKS, LINKS_ENDED};
use shared_types::ReplicaId;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use access::{
    Access, BrowserSession, Grant, GrantedKey, Key, KeyTerms, Me, RightsWatch, SIGN_IN_CODE_FOR,
    ShownCode, SignedInBrowser, StreamTicket, User,
};
pub use allowance::{Rate, UserLimits};
pub use approvals::{Approvals, GivenAnswer};
pub use audit::{Audit, AuditQuery};
pub use changes::{ChangeHint, Changes, Watch};
pub use client_documents::ClientDocuments;
pub use commands::{Command, CommandDone, CommandLine, Commands, Shown};
pub use context::OpContext;
pub use database_clock::DatabaseClock;
pub use enrolment::{AuthenticateRequest, EnrolledRunner, Enrolment, Joined, NotLetIn};
pub use error::AppError;
pub use extensions::{Extensions, NewRegistered};
pub use isolation::IsolationPolicy;
pub use link_challenge::{LinkChallenge, NotAKey};
pub use link_token::LinkClaims;
pub use operations::{
    Attached, CallState, CallerTool, GuardedReader, ListenedCall, MAX_CALL_TEXT_BYTES,
    MAX_OUTPUT_PAGE_BYTES, OperationFilter, OperationView, Operations, OutputPage, StartOperation,
    TakesInput, ToolCall,
};
pub use operator::Operator;
pub use parts::Parts;
pub use peers::{FollowError, LentAnswers, Peer, PeerCalls, Peers, Pieces};
pub use people::{Invited, People, Person};
pub use permissions::{
    KnownRules, NewRule, Permissions, Probe, ProbeAnswer, ProbeDeed, ProposedRules,
};
pub use ready::NotReady;
pub use replicas::{Drain, DrainProgress};

pub use requests::{Keyed, Requests, TakenKey};
pub use rewinds::{FilePutBack, GoBack, Rewinds, WentBack};
pub use runners::{JoinTerms, MadeJoinToken, Runner, Runners};
pub use sandboxes::{SandboxChange, Sandboxes};
pub use server_agent::{
    Live, Piece, Task, Voice,
    feed::{Followed, HereFeed},
};
pub use server_mcp::{Era, Prompt, PromptArgument, Resource, sign_in::Answer as SignInAnswer};
pub use server_records::{
    ApprovalOutcome, ApprovalRow, ExtensionKind as RegisteredKind, LinkHolder, LinkIdentity,
    RegisteredExtension, RuleBy, RuleRow, SessionKey, SetRule, TrustedFile,
};
pub use server_router::links::{LentAnswer, LentLink, LinkSealer, NotLent};
pub use server_store::{AuditRow, CredentialKind, JoinTokenRow, RunnerChange};
pub use server_store::{MAX_ANSWER_BYTES, Page, RequestAnswer, SessionChange, SessionFilter};
pub use server_store::{ModelUsage, UsageBy, UsageOf};
pub use server_store::{PooledSandbox, SandboxRow, SettingLayer, SettingName, StopCause};
pub use server_store::{Role, Scope, Scopes, UserKind};
pub use sessions::{
    KeptImage, NewMessage, Sent, Session, SessionLink, SessionTerms, Sessions, SharedSession,
    Subscription,
};
pub use settings::{
    ChangeSettings, CurrentSettings, ModeInEffect, OperatorSettings, SetBy, Setting, Settings,
};
pub use shared_consent::{Decision, Rule};
pub use shared_sandbox::{CancelAnswer, OutputStream};
pub use status::{ModelCounts, ServerOfDatabase, ServerStatus, Status};
pub use tool_servers::{SessionServer, TestedServer, ToolServerUses};
pub use tool_sign_ins::{
    BegunSignIn, CALLBACK, DOCUMENT, RegisteredToolServer, SignInState, ToolSignIns,
    client_document,
};
pub use turns::TurnLimits;
pub use usage::{Since, Usage, UsageSums};

use crate::{
    allowance::Allowance,
    changes::ChangeHub,
    commits::Commits,
    fleet::Started,
    gate::Gate,
    gauges::Gauges,
    isolation::Forbidding,
    keys::LinkKeys,
    models::{KnownModels, ModelAccounts, Offered},
    ready::DISK_KEPT_FREE,
    refusals::Refusals,
    replicas::{Replicas, Standing},
    tool_servers::{ToolServerPool, access::Grants},
    vault::{HeldKeys, Vault},
};

/// All use cases; cheap to clone.
#[derive(Clone)]
pub struct App {
    /// Sign-in and credentials.
    pub access: Access,
    /// Hints that lists are different.
    pub changes: Changes,
    /// Conversations.
    pub sessions: Sessions,
    /// Steps back to earlier messages.
    pub rewinds: Rewinds,
    /// Commands in conversations.
    pub commands: Commands,
    /// Operations on runners, and their output.
    pub operations: Operations,
    /// The settings of users and sessions.
    pub settings: Settings,
    /// The questions of agents to people.
    pub approvals: Approvals,
    /// The rules about what agents may do.
    pub permissions: Permissions,
    /// The skills, agents, hooks and tool servers that people bring.
    pub extensions: Extensions,
    /// The uses that people make of tool servers themselves.
    pub tool_servers: ToolServerUses,
    /// Sign-ins to tool servers.
    pub tool_sign_ins: ToolSignIns,
    /// Runners and the choice among them.
    pub runners: Runners,
    /// The sandboxes of pools.
    pub sandboxes: Sandboxes,
    /// The people of the tenant.
    pub people: People,
    /// The models that people may use, and the accounts that pay for them.
    pub models: ModelAccounts,
    /// The usage of models.
    pub usage: Usage,
    /// The state of the server.
    pub status: Status,
    /// The audit log.
    pub audit: Audit,
    /// Documents by which programs say who they are.
    pub client_documents: ClientDocuments,
    /// Requests that are sent again.
    pub requests: Requests,
    /// The enrolment and authentication of runners.
    pub enrolment: Enrolment,
    /// The other servers of the database.
    pub peers: Peers,
    store: Store,
    gauges: Gauges,
    allowance: Allowance,
    /// The secrets at rest.
    pub vault: Vault,
    replica: ReplicaId,
    links: Links,
    model: ModelInfo,
    tasks: TaskTracker,
    standing: Standing,
    stop: CancellationToken,
}

impl App {
    /// Puts the parts together, starts the background work, and resumes what an earlier process
    /// left unfinished.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn start(mut parts: Parts) -> Result<Self, AppError> {
        let (changes, unaddressed) = ChangeHub::new();
        let (commits, tasks) = (Commits::start(changes), TaskTracker::new());
        let this = replicas::this(&parts);
        parts.store = replicas::begin(&parts, &this).await?;
        let standing = Standing::new(parts.clock.clone(), parts.store.is_shared());
        parts.store = parts.store.heard_by(Arc::new(commits.clone()));
        let address = unaddressed.addressed(parts.store.clone(), commits.changes.clone());
        tasks.spawn(parts.stop.clone().run_until_cancelled_owned(address));
        if let Some(clock) = parts.database_clock.clone() {
            let follow = clock.follow(parts.store.clone());
            tasks.spawn(parts.stop.clone().run_until_cancelled_owned(follow));
        }
        let links = parts.links();
        let allowance = Allowance::of(&parts, &tasks);
        let refusals = Refusals::of(&parts, &tasks);
        let gate = Gate::new(parts.store.clone(), refusals.clone());
        let offered = Offered::new(&parts, &links);
        let settings = Settings::of(&parts, &gate, &offered);
        let started = Started::now(parts.clock.now());
        let servers = ToolServerPool::new(Grants::of(&parts));
        let turns = turns::start(
            &parts,
            started,
            &links,
            &commits,
            &settings,
            (&offered, &servers),
            &tasks,
        );
        let approvals = Approvals::of(&parts, &gate, &turns);
        let access = Access::of(&parts, &gate, &allowance, &commits.rights);
        let runners = Runners::of(&parts, &gate, &links, &allowance, &settings);
        let sessions = Sessions::start(
            &parts, &gate, &commits, &turns, &allowance, &settings, &tasks,
        );
        let operations = Operations::resumed(
            &parts, &gate, &links, started, &sessions, &allowance, &tasks,
        );
        servers.start(&operations, &tasks, parts.stop.clone());
        sessions.ends().start(&operations);
        let people = People::start(
            &parts,
            &gate,
            &access,
            &sessions,
            &operations,
            &allowance,
            &tasks,
        );
        Forbidding::start(&parts, &links, &settings, &tasks);
        runners::start_reaper(&parts, &links, &tasks);
        let rewinds = Rewinds {
            store: parts.store.clone(),
            gate: gate.clone(),
            turns: turns.clone(),
            operations: operations.clone(),
            clock: parts.clock.clone(),
        };
        let elsewhere = commits.elsewhere.clone();
        elsewhere.act(&parts, &links, &operations, &tasks);
        let listeners = hints::start(&parts, &commits, &turns, &links, &tasks);
        let replicas = (this.clone(), &standing, listeners);
        Replicas::start(&parts, replicas, &links, turns, &operations, &tasks);
        let peers = Peers::of(&parts, &access, &commits, &links, &tasks);
        let extensions = Extensions::of(&parts, &gate);
        let commands = Commands {
            tool_servers: ToolServerUses::of(&parts, &gate, &extensions, &sessions, &servers),
            gate: gate.clone(),
            sessions,
            settings: settings.clone(),
            runners,
            models: ModelAccounts::new(&parts, &gate, &offered),
            usage: Usage::of(&parts, &gate),
            approvals,
            permissions: Permissions::of(&parts, &gate, &settings),
            extensions,
            rewinds,
            clock: parts.clock.clone(),
        };
        Ok(Self {
            access,
            changes: Changes::of(&gate, commits.changes),
            sessions: commands.sessions.clone(),
            rewinds: commands.rewinds.clone(),
            operations,
            permissions: commands.permissions.clone(),
            extensions: commands.extensions.clone(),
            tool_servers: commands.tool_servers.clone(),
            tool_sign_ins: ToolSignIns::of(&parts, &gate, &commands.extensions),
            settings,
            approvals: commands.approvals.clone(),
            runners: commands.runners.clone(),
            sandboxes: Sandboxes::of(&parts, &gate, &links),
            people,
            peers,
            models: commands.models.clone(),
            usage: commands.usage.clone(),
            status: Status::of(&parts, &gate, &commands.models, &standing),
            commands,
            audit: Audit::of(&parts, &gate),
            client_documents: ClientDocuments::of(parts.web.clone()),
            requests: Requests::of(&parts, &gate),
            store: parts.store.clone(),
            gauges: Gauges::new(&parts, &links, &standing),
            allowance,
            vault: parts.vault.clone(),
            replica: parts.replica,
            model: parts.models.first().info(),
            tasks,
            standing,
            stop: parts.stop.clone(),
            enrolment: Enrolment::of(parts, &this, &links, refusals),
            links,
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
        self.standing.check()?;
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
    pub async fn reload(
        &self,
        limits: UserLimits,
        link_keys: &LinkKeys,
        master_keys: HeldKeys,
        models: KnownModels,
    ) {
        self.models.replace(models);
        self.vault.use_keys(master_keys);
        self.allowance.use_limits(limits);
        self.enrolment.use_link_keys(link_keys).await;
        self.changes.reloaded();
    }

    /// True if no server of the database that lives has started before this one.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn is_first_server(&self) -> Result<bool, AppError> {
        let servers = self.store.replicas().await?;
        Ok(servers.first().is_none_or(|first| first.id == self.replica))
    }

    /// The server will stop soon: new requests should go to another one.
    pub fn leave(&self) {
        self.standing.leave();
    }

    /// Checks that this server takes the links of runners.
    ///
    /// # Errors
    /// If it drains.
    pub fn takes_links(&self) -> Result<(), NotReady> {
        match self.standing.draining_since() {
            Some(_) => Err(NotReady::Draining),
            None => Ok(()),
        }
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
        LinkEnd::Drained => "drained",
        LinkEnd::Rotated => "rotated",
        LinkEnd::Aged => "aged",
        LinkEnd::WentBack => "went_back",
        LinkEnd::Violation(_) => "violation",
        LinkEnd::Failed(_) => "failed",
    }
}
