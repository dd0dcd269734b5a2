//! The messages of the REST and WebSocket API, version 1: what the server's doors and every
//! client agree on. Times are RFC 3339, ids are in their text form, sizes are bytes.
//!
//! Unknown fields are ignored in answers, so that a client outlives its server's upgrade, and
//! refused in requests, so that a misspelt field is not silently without effect.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared_types::{
    CredentialId, JoinTokenId, OperationId, RunnerId, SandboxId, SessionEvent, SessionId,
    Timestamp, TurnId, UserId,
};

macro_rules! messages {
    ($($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)* })*) => {$(
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        $(#[$meta])*
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)* }
    )*};
}

/// What a server that knows nothing else gives commands.
fn strict() -> String {
    "strict".to_owned()
}

mod frame;
mod operation;
mod page;
mod people;
mod settings;

pub use frame::{BadFrame, BinaryFrame, Channel, MAX_BINARY_FRAME_BYTES};
pub use operation::{
    Download, Entry, Exec, InputKind, InputTaken, List, ListedEntry, Listing, MakeDirectory, Move,
    Operation, OperationClientMessage, OperationEnd, OperationRunner, OperationServerMessage,
    OperationState, Operations, Pack, Remove, SendSignal, Signal, Skipped, StartOperation, Stat,
    Stopped, TerminalSize, Unpack, Upload,
};
#[cfg(feature = "openapi")]
pub use operation::{EntryKind, ExitCause};
pub use page::Page;
pub use people::{
    AddServiceAccount, AuditEntry, AuditLog, AuditOutcome, ChangeRole, Invitation, InvitePerson,
    People, Person, RoleName, ScopeName, ShareRunner, UnshareRunner,
};

pub use settings::{ChangeSettings, LayerName, NewValues, SetBy, Setting, SettingName, Settings};

messages! {
    /// What went wrong (RFC 9457, `application/problem+json`).
    pub struct Problem {
        /// The address of the page about the code on the server, such as `/problems/not_found`.
        #[serde(rename = "type", default)]
        #[cfg_attr(feature = "openapi", schema(required))]
        pub page: String,
        /// A stable word for programs, such as `not_found`.
        pub code: String,
        /// The HTTP status.
        pub status: u16,
        /// What happened and what to do, for people.
        pub detail: String,
    }

    /// Exchanges a one-time code for a token.
    #[serde(deny_unknown_fields)]
    pub struct SignIn {
        /// The code, from an invitation or from the server's operator.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 4096))]
        pub code: String,
        /// What the token is called in lists, such as the terminal's host name.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 63, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
        pub device: String,
    }

    /// A person is signed in.
    pub struct SignedIn {
        /// The bearer token; shown once.
        pub token: String,
        /// The person.
        pub user: User,
    }

    /// A person is signed in, in a browser, which has the cookie.
    pub struct BrowserSignedIn {
        /// The person.
        pub user: User,
        /// When the browser is signed out, however it is used; without a request, after 12 hours.
        pub expires_at: Timestamp,
    }

    /// Asks for a ticket.
    #[serde(deny_unknown_fields)]
    pub struct CreateStreamTicket {
        /// The operation whose stream it opens; absent for `/api/v1/stream`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub operation: Option<OperationId>,
    }

    /// A ticket that opens one WebSocket, once.
    pub struct StreamTicket {
        /// The ticket, to be sent as `?ticket=` behind the address of the stream; shown once.
        pub ticket: String,
        /// Until when it can be used.
        pub expires_at: Timestamp,
    }

    /// A person or service account.
    pub struct User {
        /// Its id.
        pub id: UserId,
        /// Its name.
        pub name: String,
        /// Its role in the tenant.
        pub role: String,
    }

    /// Who asks, and with what they work.
    pub struct Me {
        /// The person.
        pub user: User,
        /// The tenant's name.
        pub tenant: String,
        /// The model that answers in the person's new sessions.
        pub model: Model,
        /// The runner on which the person's tools run: by choice, else the tenant's default.
        pub active_runner: Option<RunnerId>,
        /// The name of that runner, also once it was removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub active_runner_name: Option<String>,
        /// The workspace that the person chose with it; absent for its first one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub active_workspace: Option<String>,
        /// Whether that runner was removed: work goes to no other one.
        #[serde(default)]
        pub active_runner_removed: bool,
        /// Whether that runner is the tenant's default, because the person has chosen none.
        #[serde(default)]
        pub active_runner_is_default: bool,
    }

    /// The model that answers.
    pub struct Model {
        /// Its name, as people see it.
        pub name: String,
        /// Whether it is the practice model: no AI.
        pub practice: bool,
    }

    /// Begins a session.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct CreateSession {
        /// What lists show; empty for the beginning of the first message.
        #[serde(default)]
        #[cfg_attr(feature = "openapi", schema(max_length = 252))]
        pub title: String,
        /// The name or id of the runner to which the session is pinned, alone or with one of its
        /// workspaces (`laptop/api`); without one, its turns work on the user's active runner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub runner: Option<String>,
        /// The directory in which it works, relative to the root of the workspace: commands start there,
        /// and the paths of file tools are relative to it. Empty for the root.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub directory: String,
    }

    /// A session in a list.
    pub struct Session {
        /// Its id.
        pub id: SessionId,
        /// What lists show.
        pub title: String,
        /// The directory in which it works, relative to the root of the workspace; empty for the root.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub directory: String,
        /// When it began.
        pub created_at: Timestamp,
        /// When something last happened.
        pub updated_at: Timestamp,
        /// The number of the newest event.
        pub last_seq: u64,
        /// The turn that is under way.
        pub running_turn: Option<TurnId>,
        /// The runner to which it is pinned; absent where it works on the user's active runner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub runner: Option<PinnedRunner>,
        /// When its user put it out of the list; absent where it is in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub archived_at: Option<Timestamp>,
        /// How many links to it were made and not ended.
        #[serde(default)]
        pub links: u64,
    }

    /// Changes what lists show of a session. What is absent stays.
    #[serde(deny_unknown_fields)]
    pub struct ChangeSession {
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 252))]
        pub title: Option<String>,
        /// Whether it is out of the list. The next message brings it back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub archived: Option<bool>,
    }

    /// Makes a link by which a session is read without signing in.
    #[serde(deny_unknown_fields)]
    pub struct ShareSession {
        /// For how long it can be read, in seconds; without an end, if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 60, maximum = 316_224_000))]
        pub valid_for_s: Option<u32>,
    }

    /// A link to a session. Whoever has it can read the session.
    pub struct SessionLink {
        /// Where the session is shown, behind the server's address; shown once.
        pub path: String,
        /// Until when it can be read; absent for without an end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub expires_at: Option<Timestamp>,
    }

    /// The links to a session were ended.
    pub struct LinksEnded {
        /// How many there were.
        pub links: u64,
    }

    /// A session, as whoever has a link to it sees it.
    pub struct SharedSession {
        /// Its title.
        pub title: String,
        /// When it began.
        pub created_at: Timestamp,
        /// When something last happened.
        pub updated_at: Timestamp,
        /// The number of the newest event.
        pub last_seq: u64,
    }

    /// The runner to which a session is pinned. It may have been removed since: then the session's
    /// calls are refused until it is pinned to another one or to none.
    pub struct PinnedRunner {
        /// Its id.
        pub id: RunnerId,
        /// Its name.
        pub name: String,
        /// The workspace on it; absent for its first one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub workspace: Option<String>,
    }

    /// A page of a user's sessions, the most recently used first.
    pub struct Sessions {
        /// The sessions.
        pub sessions: Vec<Session>,
        /// Where the next page begins, to be passed as `after`; absent where this is the last one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Sends a message.
    #[serde(deny_unknown_fields)]
    pub struct SendMessage {
        /// The message.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 262144, pattern = r"\S"))]
        pub text: String,
        /// An idempotency key: the same one twice in a session is one turn.
        #[serde(default)]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        pub client_id: Option<String>,
    }

    /// A message was accepted and will be worked on, whatever happens to the client.
    pub struct MessageAccepted {
        /// The turn that it started.
        pub turn: TurnId,
        /// The number of its event.
        pub seq: u64,
    }

    /// A wish to stop was recorded.
    pub struct CancelAccepted {
        /// The turn that is being stopped; absent where there was none.
        pub turn: Option<TurnId>,
    }

    /// A page of the commands of a session that went on in the background.
    pub struct Tasks {
        /// By number: of all that run, and of the last 100 of those that ended.
        pub tasks: Vec<Task>,
        /// Where the next page begins, to be passed as `after`; absent where this is the last one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// A command that went on in the background.
    pub struct Task {
        /// Its number in the session, from 1.
        #[cfg_attr(feature = "openapi", schema(minimum = 1))]
        pub number: u32,
        /// Its operation, by which its output is read and it is stopped.
        pub operation: OperationId,
        /// The tool that was asked for.
        pub tool: String,
        /// The arguments of that call as the model wrote them, the first 4096 bytes.
        pub arguments: String,
        /// The name of its runner at that time.
        pub runner: String,
        /// When it was begun.
        pub started_at: Timestamp,
        /// How it ended, for people; absent while it runs, as far as is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ended: Option<String>,
    }

    /// What became of a wish to stop an operation.
    pub struct OperationCancelled {
        /// `cancelled`: it was stopped; `already_exited`; `never_started`: and never will;
        /// `recorded`: its runner cannot be reached, and stops it when it is back.
        pub answer: String,
    }

    /// A page of a session's log.
    pub struct Events {
        /// The events, by number.
        pub events: Vec<SessionEvent>,
        /// The number of the last event where others follow it, to be passed as `after`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
        /// Whether there is a `next`, for clients of earlier releases.
        pub more: bool,
    }

    /// A run of bytes that an operation wrote.
    pub struct Output {
        /// The operation.
        pub operation: OperationId,
        /// `stdout` or `stderr`.
        #[cfg_attr(feature = "openapi", schema(value_type = StreamName))]
        pub stream: String,
        /// Where the bytes stand in the stream, from 0. What lies between the offset that was asked
        /// for and this one is not kept.
        pub base: u64,
        /// How many bytes there are; where there are none, the stream has no more
        /// yet, and after its end none at all.
        pub bytes: u64,
        /// The bytes in base64.
        pub data: String,
        /// Where the stream ends as far as it is known.
        pub end: u64,
        /// Whether the operation has ended, so that the stream grows no more.
        pub ended: bool,
    }

    /// An enrolled runner.
    pub struct Runner {
        /// Its id.
        pub id: RunnerId,
        /// Its name, unique in the tenant.
        pub name: String,
        /// Whether it is connected now.
        pub online: bool,
        /// When it was last heard of; absent before its first connect.
        pub last_seen: Option<Timestamp>,
        /// Whether the asking user's tools run there: by choice, or because it is the tenant's default.
        pub active: bool,
        /// Whether it is locked, because its folder was copied: remove it and enrol it anew.
        #[serde(default)]
        pub locked: bool,
        /// When it showed that the server's database was restored from an older copy, within the last
        /// week.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub server_went_back: Option<Timestamp>,
        /// Why its links are refused, which speak a version of the protocol that is too old, and what to
        /// do about that; absent where they are not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub refused: Option<String>,
        /// Whether it is removed when it leaves for good or stays away.
        #[serde(default)]
        pub ephemeral: bool,
        /// What it reports that its sandbox keeps apart: `none`, or properties joined by `+`.
        pub isolation: String,
        /// Whether its word on that counts.
        #[serde(default)]
        pub isolation_believed: bool,
        /// Who has granted that; absent where it is the server's operator, or nobody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub isolation_granted_by: Option<String>,
        /// The directory of its first workspace, for people.
        pub workspace: String,
        /// All its workspaces as it reported them at its newest connect, the first one first.
        #[serde(default)]
        pub sandboxes: Vec<Workspace>,
        /// What it makes sandboxes with, where it does: it has no workspaces then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub pool: Option<Pool>,
        /// Its host's name.
        pub hostname: String,
        /// Its host's system, such as `linux/x86_64`.
        pub platform: String,
        /// The version of its software.
        pub version: String,
        /// How it said it is some seconds ago; absent where it is not linked to the server that answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub figures: Option<RunnerFigures>,
        /// Its labels.
        #[serde(default)]
        pub labels: BTreeMap<String, String>,
        /// The name of its owner; absent where the owner was removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub owner: Option<String>,
        /// Whether everyone of the tenant may use it.
        #[serde(default)]
        pub shared_with_everyone: bool,
        /// The names of the people who may use it beside its owner.
        #[serde(default)]
        pub shared_with: Vec<String>,
    }

    /// How a runner is, by its own word.
    pub struct RunnerFigures {
        /// Operations that run now.
        pub operations_running: u64,
        /// Output that is kept on its disk until the server has it, in bytes.
        pub spool_bytes: u64,
        /// Room on the disk of its home, in bytes, as its user may have it.
        pub disk_free_bytes: u64,
    }

    /// A folder of a runner in which operations happen.
    pub struct Workspace {
        /// Its id.
        pub id: SandboxId,
        /// What it is called on its runner; the two are chosen together as `RUNNER/WORKSPACE`.
        pub name: String,
        /// The folder, for people.
        pub root: String,
        /// What its runner reports that it keeps apart: `none`, or properties joined by `+`.
        pub isolation: String,
        /// Why nothing can happen there; absent where it can.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub problem: Option<String>,
    }

    /// What a runner makes sandboxes with.
    pub struct Pool {
        /// With what: `docker`.
        pub backend: String,
        /// What they can be made from; the first is the default.
        pub templates: Vec<String>,
        /// Those of them whose commands may be root there.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub sudo_templates: Vec<String>,
        /// What its runner reports that is kept apart there: `none`, or properties joined by `+`.
        pub isolation: String,
        /// Why nothing can be made there now; absent where it can.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub problem: Option<String>,
    }

    /// A container of one user on a runner that makes them.
    pub struct Sandbox {
        /// Its id.
        pub id: SandboxId,
        /// The runner's id.
        pub runner: RunnerId,
        /// The runner's name.
        pub runner_name: String,
        /// The name of the person whose it is.
        pub owner: String,
        /// What it is made from.
        pub template: String,
        /// What its commands may become, as its runner said last: `strict` (an ordinary user) or `sudo` (root of
        /// the sandbox).
        #[serde(default = "strict")]
        pub privilege: String,
        /// How it is: `wanted`, `starting`, `running`, `stopped` or `failed`.
        pub state: String,
        /// Why it is so; absent where there is nothing to say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
        /// Since when it is in that state.
        pub since: Timestamp,
        /// Memory for its commands together, in bytes.
        pub memory_bytes: u64,
        /// Processor time, in thousandths of a processor.
        pub cpu_millis: u32,
        /// Processes and threads at the same time.
        pub processes: u32,
        /// How long it may be without an operation before it is stopped, in milliseconds.
        pub idle_for_ms: u64,
        /// What it reaches: `none` or `open`.
        pub network: String,
    }

    /// A change of a sandbox that its runner told of.
    pub struct StateChange {
        /// When it was told.
        pub at: Timestamp,
        /// How it was then: `starting`, `running`, `stopped`, `failed` or `removed`.
        pub state: String,
        /// Why; absent where there is nothing to say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
    }

    /// What a sandbox went through lately.
    pub struct StateChanges {
        /// The changes, the newest last.
        pub changes: Vec<StateChange>,
    }

    /// A page of sandboxes.
    pub struct Sandboxes {
        /// The sandboxes, by id.
        pub sandboxes: Vec<Sandbox>,
        /// Where the next page begins, to be passed as `after`; absent where this is the last one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Asks for one's own sandbox on a runner.
    #[serde(deny_unknown_fields)]
    pub struct CreateSandbox {
        /// The runner's name or id.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 127))]
        pub runner: String,
    }

    /// Changes what a sandbox is made from and may use, from its next start on. What is absent stays.
    #[serde(deny_unknown_fields)]
    #[derive(Default)]
    pub struct ChangeSandbox {
        /// What it is made from: one of its pool's templates. Its files stay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 63))]
        pub template: Option<String>,
        /// Memory, in bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 67108864, maximum = 1099511627776u64))]
        pub memory_bytes: Option<u64>,
        /// Processor time, in thousandths of a processor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 50, maximum = 1024000))]
        pub cpu_millis: Option<u32>,
        /// Processes and threads at the same time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 8, maximum = 32768))]
        pub processes: Option<u32>,
        /// How long it may be without an operation before it is stopped, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 60000, maximum = 2592000000u64))]
        pub idle_for_ms: Option<u64>,
        /// What it reaches: `none` or `open`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(pattern = "^(none|open)$"))]
        pub network: Option<String>,
    }

    /// A page of the runners that the user may choose.
    pub struct Runners {
        /// The runners, by name.
        pub runners: Vec<Runner>,
        /// Where the next page begins, to be passed as `after`; absent where this is the last one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Chooses the active runner.
    #[serde(deny_unknown_fields)]
    pub struct UseRunner {
        /// Its name or its id, alone or with one of its workspaces (`laptop/api`).
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 127))]
        pub runner: String,
    }

    /// Makes a token with which one runner, or a fleet of them, may enrol.
    #[serde(deny_unknown_fields)]
    pub struct CreateJoinToken {
        /// The name that the runner will have; empty lets the runner say.
        #[serde(default)]
        #[cfg_attr(feature = "openapi", schema(max_length = 63, pattern = r"^([a-z0-9]([a-z0-9._-]*[a-z0-9])?)?$"))]
        pub name: String,
        /// How many seconds it can be used, from 1 to 2592000 (30 days); absent for 600.
        // Left out where it is absent: a server that does not know it yet would refuse it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 2592000))]
        pub valid_for_s: Option<u32>,
        /// How many runners may enrol with it, from 1 to 1000; absent for 1. More than one
        /// need a name of their own each.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
        pub uses: Option<u32>,
        /// Whether those runners are removed when they leave for good, or stay away.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub ephemeral: bool,
        /// Labels that they will have, whatever they say themselves; 32 at most.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub labels: BTreeMap<String, String>,
        /// From where they may enrol, as the server sees it, such as `10.0.0.0/8`; absent for
        /// anywhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub from: Option<String>,
    }

    /// A join token; shown once.
    pub struct JoinToken {
        /// Its id.
        pub id: JoinTokenId,
        /// The token.
        pub token: String,
        /// Until when it can be used.
        pub expires_at: Timestamp,
        /// The archives with a runner's programs that the server hands out, one for each kind of machine.
        #[serde(default)]
        pub archives: Vec<RunnerArchive>,
    }

    /// A join token with which runners can still enrol. The token itself was shown when it was made.
    pub struct ListedJoinToken {
        /// Its id.
        pub id: JoinTokenId,
        /// The name that the runner will have; empty where the runner says.
        pub name: String,
        /// When it was made.
        pub created_at: Timestamp,
        /// Until when it can be used.
        pub expires_at: Timestamp,
        /// How many runners may enrol with it.
        pub uses: u32,
        /// How many have.
        pub used: u32,
        /// Whether those runners are removed when they leave for good, or stay away.
        pub ephemeral: bool,
        /// Labels that they will have, whatever they say themselves.
        #[serde(default)]
        pub labels: BTreeMap<String, String>,
        /// From where they may enrol; absent for anywhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub from: Option<String>,
    }

    /// A page of the user's join tokens with which runners can still enrol.
    pub struct JoinTokens {
        /// The tokens, the newest first.
        pub join_tokens: Vec<ListedJoinToken>,
        /// Where the next page begins, to be passed as `after`; absent where this is the last one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// An archive with a runner's programs. It needs no key: `GET /install/{sha256}/{name}`.
    pub struct RunnerArchive {
        /// The kind of machine, as `uname -m` calls it.
        pub arch: String,
        /// Its SHA-256, in hexadecimal.
        pub sha256: String,
        /// The file's name.
        pub name: String,
        /// Its size.
        pub bytes: u64,
    }

    /// What the server says of the archive with a runner's programs for one kind of machine.
    pub struct SignedArchive {
        /// The archive.
        pub archive: RunnerArchive,
        /// By the server's identity over the nonce of the one who asks, in hexadecimal.
        pub signature: String,
    }

    /// Makes an API key.
    #[serde(deny_unknown_fields)]
    pub struct CreateKey {
        /// What it is called in lists.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 63, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
        pub name: String,
        /// What it is good for; absent for chat, runners, exec and read, as far as the maker has them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_items = 1))]
        pub scopes: Option<Vec<ScopeName>>,
        /// How many seconds it can be used, from 1 to 316224000; absent for without an end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 316224000))]
        pub valid_for_s: Option<u32>,
        /// From where it can be used, as the server sees it, such as `10.0.0.0/8`; absent for anywhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub from: Option<String>,
    }

    /// An API key; the key itself is shown once.
    pub struct CreatedKey {
        /// The bearer key.
        pub key: String,
        /// Its entry in the list.
        pub entry: Key,
    }

    /// A key or sign-in in a list.
    pub struct Key {
        /// Its id.
        pub id: CredentialId,
        /// What it is called.
        pub name: String,
        /// `api_key`, `sign_in` or `browser`.
        pub kind: String,
        /// When it was made.
        pub created_at: Timestamp,
        /// The key or sign-in with which it was made, where that is known. What a key made ends
        /// with that key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub made_by: Option<CredentialId>,
        /// When it was last used, to the minute.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_used_at: Option<Timestamp>,
        /// The address from which it was last used, as the server sees it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_address: Option<String>,
        /// What it is good for.
        #[serde(default)]
        pub scopes: Vec<ScopeName>,
        /// Until when it can be used; absent for without an end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub expires_at: Option<Timestamp>,
        /// From where it can be used; absent for anywhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub from: Option<String>,
        /// Whether it is the one with which the list is asked for.
        #[serde(default)]
        pub is_this: bool,
    }

    /// A page of a user's keys and sign-ins.
    pub struct Keys {
        /// The keys, the newest first.
        pub keys: Vec<Key>,
        /// Where the next page begins, to be passed as `after`; absent where this is the last one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }
}

impl Problem {
    /// The problem of this code.
    pub fn new(code: &str, status: u16, detail: impl Into<String>) -> Self {
        Self {
            page: format!("/problems/{code}"),
            code: code.to_owned(),
            status,
            detail: detail.into(),
        }
    }
}

/// An output stream of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum StreamName {
    /// Standard output; standard error too where the two are merged or in a terminal.
    Stdout,
    /// Standard error.
    Stderr,
}

impl CreateJoinToken {
    /// One runner of this name (empty lets the runner say), within ten minutes.
    pub fn one(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            valid_for_s: None,
            uses: None,
            ephemeral: false,
            labels: BTreeMap::new(),
            from: None,
        }
    }
}

/// What a client says on the WebSocket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ClientMessage {
    /// Send everything of this session after that event, then what happens.
    Subscribe {
        /// The session.
        session: SessionId,
        /// The number of the last event that the client has; 0 for none.
        after: u64,
    },
    /// Send no more of this session.
    Unsubscribe {
        /// The session.
        session: SessionId,
    },
}

/// What the server says on the WebSocket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ServerMessage {
    /// An event of the log, in order and without gaps.
    Event {
        /// The session.
        session: SessionId,
        /// The event.
        event: Box<SessionEvent>,
    },
    /// Something that is under way; it is not in the log, and what it becomes will be.
    Live {
        /// The session.
        session: SessionId,
        /// What is under way.
        live: Live,
    },
    /// Every event up to this one was sent; what follows happens now.
    CaughtUp {
        /// The session.
        session: SessionId,
        /// The number of the newest event.
        seq: u64,
    },
    /// A subscription could not be served, or a message was not understood.
    Problem {
        /// The session, where one was named.
        session: Option<SessionId>,
        /// What happened.
        problem: Problem,
    },
    /// The last message before the server closes a sound connection with code 1012, because it stops or the
    /// connection has reached its greatest age. Wait a random part of the time, then connect again and
    /// subscribe with the last event that you have.
    Reconnect {
        /// The time, in milliseconds.
        within_ms: u32,
    },
}

/// What is under way in a turn. Offsets let a client that comes late or comes back place what it
/// gets: bytes that it has already are recognised and dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Live {
    /// The model thinks before it speaks.
    Reasoning {
        /// The turn.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// Which attempt at it, from 1; a higher one starts the thoughts anew.
        attempt: u32,
        /// Where the thoughts stand, in bytes from 0.
        offset: u64,
        /// The thoughts.
        text: String,
    },
    /// The model speaks.
    Text {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// Which attempt at it, from 1; a higher one starts the text anew.
        attempt: u32,
        /// Where the text stands, in bytes from 0.
        offset: u64,
        /// The text.
        text: String,
    },
    /// A command writes.
    Output {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The place of the call in the answer, from 0.
        ordinal: u32,
        /// The operation.
        operation: OperationId,
        /// `stdout` or `stderr`.
        #[cfg_attr(feature = "openapi", schema(value_type = StreamName))]
        stream: String,
        /// Where the bytes stand in the stream, from 0. After a jump, bytes are missing: the server
        /// leaves out what a slow client does not take, and a client that comes late gets the last 64 KiB.
        offset: u64,
        /// The bytes, as text with what is not UTF-8 replaced; `bytes` counts the original ones.
        text: String,
        /// How many bytes of the stream this is.
        bytes: u64,
    },
    /// Output of a command is missing: it is not kept any more. The stream goes on at `to`.
    Gap {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The place of the call in the answer, from 0.
        ordinal: u32,
        /// The operation.
        operation: OperationId,
        /// `stdout` or `stderr`.
        #[cfg_attr(feature = "openapi", schema(value_type = StreamName))]
        stream: String,
        /// The first byte that is missing.
        from: u64,
        /// The first byte behind the gap.
        to: u64,
    },
    /// All that this attempt said, and thought, is void: it broke off. Another attempt may follow, and has a higher
    /// number.
    TakenBack {
        /// The turn.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The attempt at it, from 1.
        attempt: u32,
    },
    /// The model is tried again, the runner is waited for, and the like: for people.
    Notice {
        /// The turn.
        turn: TurnId,
        /// The words.
        text: String,
    },
}
