//! The messages of the REST and WebSocket API, version 1, as the server and its clients know them.
//! Times are RFC 3339, ids are in their text form, sizes are bytes.
//!
//! Unknown fields are ignored in answers, so that a client still works after the server's upgrade. They are
//! refused in requests, so that a misspelt field is an error.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared_types::{
    CredentialId, Digest, JoinTokenId, Mode, OperationId, RunnerId, SandboxId, SessionEvent,
    SessionId, Timestamp, Topic, TurnId, UserId, WhileWorking, event::Terms,
};

macro_rules! messages {
    ($($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)* })*) => {$(
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        $(#[$meta])*
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)* }
    )*};
}

/// The privilege of commands, where the server's answer names none.
fn strict() -> String {
    "strict".to_owned()
}

/// The default of what is done unless a request says otherwise.
fn yes() -> bool {
    true
}

mod commands;
mod consent;
mod extensions;
fn is_queue(effect: &WhileWorking) -> bool {
    *effect == WhileWorking::Queue
}

mod frame;
mod models;
mod operation;
mod page;
mod people;
mod session_tool_servers;
mod settings;
mod status;
mod tool_servers;
mod usage;

pub use commands::{Command, CommandDone, CommandTable, Commands, RunCommand, Shown};
pub use consent::{
    AddPermissionRule, AnswerApproval, Approval, ApprovalOutcome, Approvals, Decision,
    PermissionRule, PermissionRules, PermissionVerdict, ProposedRule, ProposedRules, RuleSetBy,
    TestPermission, TestedDeed, TrustProject, TrustedFile,
};
pub use extensions::{Extension, ExtensionKind, ExtensionList, PutExtension, TrustExtension};
pub use frame::{BadFrame, BinaryFrame, Channel, MAX_BINARY_FRAME_BYTES};
pub use models::{
    AddModelAccount, AddedModelAccount, ModelAccount, ModelPrice, ModelProbe, ModelProvider,
    ModelState, Models, OfferedModel, Payer, TestModel,
};
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

pub use session_tool_servers::{
    SessionToolServer, SessionToolServers, TestToolServer, TestedTool, TestedToolServer,
    ToolServerEra, ToolServerLook, ToolServerPrompt, ToolServerResource,
};
pub use settings::{ChangeSettings, LayerName, NewValues, SetBy, Setting, SettingName, Settings};
pub use status::{
    DatabaseKind, DatabaseStatus, ModelCounts, Replica, ReplicaState, Replicas, RunnerCounts,
    ServerStatus,
};
pub use tool_servers::{
    ListedToolServer, NamedToolServer, PutToolValue, ToolServerAnswer, ToolServerSignIn,
    ToolServerSignedIn, ToolServerSigningIn, ToolServers, ToolValue, ToolValues,
};
pub use usage::{ModelUsage, Tokens, TurnUsage, TurnUsages, UsageBy, UsageKey, UsageRow, UsageSum};

messages! {
    /// An error (RFC 9457, `application/problem+json`).
    pub struct Problem {
        /// The address of the server's page about this code, such as `/problems/not_found`.
        #[serde(rename = "type", default)]
        #[cfg_attr(feature = "openapi", schema(required))]
        pub page: String,
        /// A stable word for programs, such as `not_found`.
        pub code: String,
        /// The HTTP status.
        pub status: u16,
        /// The cause and the remedy, for people.
        pub detail: String,
    }

    /// Exchanges a one-time code for a token.
    #[serde(deny_unknown_fields)]
    pub struct SignIn {
        /// The code, from an invitation or from the server's operator.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 4096))]
        pub code: String,
        /// The name of the token in lists, such as the terminal's host name.
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

    /// The answer to a sign-in from a browser, whose token is a cookie.
    pub struct BrowserSignedIn {
        /// The person.
        pub user: User,
        /// The time at which the sign-in ends, even if it is in use. It also ends after 12 hours without a request.
        pub expires_at: Timestamp,
    }

    /// Asks for a ticket.
    #[serde(deny_unknown_fields)]
    pub struct CreateStreamTicket {
        /// The operation whose stream the ticket opens; absent for `/api/v1/stream`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub operation: Option<OperationId>,
    }

    /// A ticket that opens one WebSocket, once.
    pub struct StreamTicket {
        /// The ticket; send it as `?ticket=` after the stream's address. It is shown once.
        pub ticket: String,
        /// The time at which it expires.
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

    /// The caller, and the model and runner that the caller works with.
    pub struct Me {
        /// The person.
        pub user: User,
        /// The tenant's name.
        pub tenant: String,
        /// The model that answers in the person's new sessions.
        pub model: Model,
        /// The runner for the person's tools: the person's choice, or the tenant's default.
        pub active_runner: Option<RunnerId>,
        /// The name of that runner, also after it was removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub active_runner_name: Option<String>,
        /// The workspace that the person chose on it; absent for its first one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub active_workspace: Option<String>,
        /// True if that runner was removed. Tools do not move to another runner.
        #[serde(default)]
        pub active_runner_removed: bool,
        /// True if that runner is the tenant's default and the person has chosen none.
        #[serde(default)]
        pub active_runner_is_default: bool,
    }

    /// The model that answers.
    pub struct Model {
        /// The name that people see.
        pub name: String,
        /// True for the practice model, which is no AI.
        pub practice: bool,
    }

    /// Begins a session.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct CreateSession {
        /// The title in lists; empty for the beginning of the first message.
        #[serde(default)]
        #[cfg_attr(feature = "openapi", schema(max_length = 252))]
        pub title: String,
        /// The name or id of the runner to pin the session to, alone or with a workspace (`laptop/api`). Absent for the
        /// user's active runner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub runner: Option<String>,
        /// The model that answers in the session, a tier, `auto`, or several with commas between them. Absent for the
        /// user's own choice.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        /// The directory of the session, relative to the root of the workspace; empty for the root. Commands start
        /// there, and file tools resolve paths from there.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub directory: String,
    }

    /// A session in a list.
    pub struct Session {
        /// Its id.
        pub id: SessionId,
        /// The title in lists.
        pub title: String,
        /// The directory of the session, relative to the root of the workspace; empty for the root.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub directory: String,
        /// When it began.
        pub created_at: Timestamp,
        /// When its newest event happened.
        pub updated_at: Timestamp,
        /// The number of the newest event.
        pub last_seq: u64,
        /// The turn that is under way.
        pub running_turn: Option<TurnId>,
        /// The runner that it is pinned to; absent where it uses the user's active runner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub runner: Option<PinnedRunner>,
        /// When its user archived it; absent where it is not archived.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub archived_at: Option<Timestamp>,
        /// The number of links to it that have not been revoked.
        #[serde(default)]
        pub links: u64,
        /// The number of its questions that wait for the user's answer: agents ask before they act, or to know more.
        #[serde(default)]
        pub waiting_approvals: u64,
        /// The agent that works in it; absent of a session that the user began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub agent: Option<SessionAgent>,
    }

    /// The agent that works in a session.
    pub struct SessionAgent {
        /// The session whose call began it.
        pub parent: SessionId,
        /// Its name, such as `explore-2`.
        pub name: String,
        /// The name of its role.
        pub role: String,
    }

    /// Changes a session's entry in lists. Absent fields stay as they are.
    #[serde(deny_unknown_fields)]
    pub struct ChangeSession {
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 252))]
        pub title: Option<String>,
        /// True to archive it, false to unarchive it. The next message also unarchives it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub archived: Option<bool>,
    }

    /// Makes a link that shows a session to readers who are not signed in.
    #[serde(deny_unknown_fields)]
    pub struct ShareSession {
        /// The validity of the link, in seconds; absent for no expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 60, maximum = 316_224_000))]
        pub valid_for_s: Option<u32>,
    }

    /// A link to a session. It is the only proof that its readers need.
    pub struct SessionLink {
        /// The page of the session, relative to the server's address; shown once.
        pub path: String,
        /// The time at which the link expires; absent for no expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub expires_at: Option<Timestamp>,
    }

    /// The answer after all links to a session were revoked.
    pub struct LinksEnded {
        /// The number of links that were revoked.
        pub links: u64,
    }

    /// A session, as a link to it shows it.
    pub struct SharedSession {
        /// Its title.
        pub title: String,
        /// When it began.
        pub created_at: Timestamp,
        /// When its newest event happened.
        pub updated_at: Timestamp,
        /// The number of the newest event.
        pub last_seq: u64,
    }

    /// The runner that a session is pinned to. If the runner was removed, the server refuses the session's calls until
    /// the session is pinned to another runner or unpinned.
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
        /// The value of `after` for the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Sends a message.
    #[serde(deny_unknown_fields)]
    pub struct SendMessage {
        /// The message.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 262144, pattern = r"\S"))]
        pub text: String,
        /// The digests of images that belong to the message, in their order, at most 20. The session has them already.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>, max_items = 20))]
        pub images: Vec<Digest>,
        /// Present if the message asks to compact the conversation, and is not for the model. It says what matters most
        /// in the conversation, and may be empty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub compacts: Option<String>,
        /// The terms of the message for its turn.
        #[serde(default, skip_serializing_if = "Terms::is_none")]
        pub terms: Terms,
        /// The effect of the message on a turn of the session that works already; `queue` if absent. A message that asks
        /// to compact the conversation steers no turn: it waits.
        #[serde(default, skip_serializing_if = "is_queue")]
        pub while_working: WhileWorking,
        /// An idempotency key. Two messages of a session with the same key start one turn, or join it once.
        #[serde(default)]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        pub client_id: Option<String>,
    }

    /// The use of the model's window by a session. Numbers of tokens are estimates, calibrated by what the vendor counted.
    pub struct SessionContext {
        /// The model that answers next.
        pub model: String,
        /// Its window in tokens, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub window: Option<u64>,
        /// The tokens of the next request, before its message.
        pub tokens: u64,
        /// The parts of these, in the order in which they are sent.
        pub parts: Vec<ContextPart>,
        /// The tokens of the last request, as the vendor counted them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_input: Option<u64>,
        /// Those of them that the vendor had cached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_cached: Option<u64>,
        /// The number of results that the model sees as excerpts; it can recall the rest.
        pub excerpts: u64,
        /// The newest changes of what was sent before, the last one last. With each the vendor's cache broke.
        pub changes: Vec<ContextChange>,
    }

    /// A part of the window.
    pub struct ContextPart {
        /// Its name: tools, system, compacted, instructions, messages or results.
        pub name: String,
        /// Its tokens.
        pub tokens: u64,
    }

    /// A change of what was sent before.
    pub struct ContextChange {
        /// The time of it.
        pub at: Timestamp,
        /// The change in words.
        pub what: String,
    }

    /// An image of a session.
    pub struct SessionImage {
        /// The SHA-256 of its bytes, by which messages name it.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        pub digest: Digest,
        /// Its format, such as `image/png`.
        pub media_type: String,
        /// Its size, in bytes.
        pub bytes: u64,
    }

    /// The answer to an accepted message. Its turn runs even if the client disconnects.
    pub struct MessageAccepted {
        /// The turn that it started, or that it joined.
        pub turn: TurnId,
        /// True if it joined a turn that works: the model is sent it before its next answer.
        #[serde(default)]
        pub steered: bool,
        /// The number of the message's event.
        pub seq: u64,
    }

    /// The answer to a request to stop a turn; the server has stored the request.
    pub struct CancelAccepted {
        /// The turn that is being stopped; absent where no turn was running.
        pub turn: Option<TurnId>,
    }

    /// The body of `POST /api/v1/sessions/{id}/rewind`.
    #[serde(deny_unknown_fields)]
    pub struct Rewind {
        /// The turn of the message: it and all later ones are no part of the conversation from then on.
        #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^trn_[0-7][0-9a-hjkmnp-tv-z]{25}$", example = "trn_00000000000000000000000000"))]
        pub turn: TurnId,
        /// True if the conversation goes back; this is the default.
        #[serde(default = "yes")]
        #[cfg_attr(feature = "openapi", schema(default = true))]
        pub conversation: bool,
        /// True if the files go back that calls of agents wrote or edited since the message, also those of turns that are
        /// no part of the conversation any more. Changes by commands stay.
        #[serde(default)]
        #[cfg_attr(feature = "openapi", schema(default = false))]
        pub files: bool,
    }

    /// The outcome of a step back.
    pub struct Rewound {
        /// The words of the message before which it went, to be changed and sent again.
        pub text: String,
        /// The files that calls wrote or edited since, 200 of which are put back at most; empty where they were not asked
        /// for.
        pub files: Vec<RewoundFile>,
    }

    /// A file that calls of agents wrote or edited.
    pub struct RewoundFile {
        /// Its path, relative to the root of the sandbox.
        pub path: String,
        /// The name of its runner.
        pub runner: String,
        /// True if it is as it was before the message: its content, or that there was none.
        pub restored: bool,
        /// The reason why it was left as it is; absent where it was restored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
    }

    /// A page of a session's background commands.
    pub struct Tasks {
        /// All running tasks and the last 100 ended ones, by number.
        pub tasks: Vec<Task>,
        /// The value of `after` for the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// A command that runs in the background.
    pub struct Task {
        /// Its number in the session, from 1.
        #[cfg_attr(feature = "openapi", schema(minimum = 1))]
        pub number: u32,
        /// Its operation: read its output or stop it by this id.
        pub operation: OperationId,
        /// The tool that started it.
        pub tool: String,
        /// The arguments of that call as the model wrote them, the first 4096 bytes.
        pub arguments: String,
        /// The name of its runner at that time.
        pub runner: String,
        /// When it started.
        pub started_at: Timestamp,
        /// Its end, for people; absent while it runs, to the server's knowledge.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ended: Option<String>,
    }

    /// The outcome of a request to stop an operation.
    pub struct OperationCancelled {
        /// `cancelled`: it was stopped. `already_exited`: it had ended. `never_started`: it has not started and never
        /// will. `recorded`: its runner is unreachable and will stop it after it reconnects.
        pub answer: String,
    }

    /// A page of a session's log.
    pub struct Events {
        /// The events, by number.
        pub events: Vec<SessionEvent>,
        /// The value of `after` for the next page: the number of the last event here; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
        /// True if there is a `next`; for clients of earlier releases.
        pub more: bool,
    }

    /// A piece of an operation's output.
    pub struct Output {
        /// The operation.
        pub operation: OperationId,
        /// `stdout` or `stderr`.
        #[cfg_attr(feature = "openapi", schema(value_type = StreamName))]
        pub stream: String,
        /// The offset of the first byte in the stream, from 0. It is larger than the requested offset where the bytes
        /// between them are no longer stored.
        pub base: u64,
        /// The number of bytes. 0 means that the stream has no more bytes yet or, once `ended` is true, ever.
        pub bytes: u64,
        /// The bytes in base64.
        pub data: String,
        /// The end of the stream as far as the server knows it.
        pub end: u64,
        /// True if the operation has ended, so that the stream grows no more.
        pub ended: bool,
    }

    /// An enrolled runner.
    pub struct Runner {
        /// Its id.
        pub id: RunnerId,
        /// Its name, unique in the tenant.
        pub name: String,
        /// True if it is connected now.
        pub online: bool,
        /// When it was last connected; absent before its first connection.
        pub last_seen: Option<Timestamp>,
        /// True if it is the caller's active runner: by choice, or as the tenant's default.
        pub active: bool,
        /// True if it is locked because its folder was copied. Remove the runner and enrol it again.
        #[serde(default)]
        pub locked: bool,
        /// When it last showed that the server's database was restored from an older copy; absent if that was over a
        /// week ago.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub server_went_back: Option<Timestamp>,
        /// The reason why the server refuses its links, and the remedy: its protocol version is too old. Absent where
        /// the server accepts them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub refused: Option<String>,
        /// True if it drains: it is given nothing new to run, and what runs there goes on.
        #[serde(default)]
        pub draining: bool,
        /// The name of the person who lets it drain; absent where it takes work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub drained_by: Option<String>,
        /// True if the server removes it once it leaves for good or stays away.
        #[serde(default)]
        pub ephemeral: bool,
        /// The isolation that it reports for its sandboxes: `none`, or properties joined by `+`.
        pub isolation: String,
        /// True if an admin or the operator has granted that isolation.
        #[serde(default)]
        pub isolation_believed: bool,
        /// The name of the admin who has granted it; absent where the operator has, or no one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub isolation_granted_by: Option<String>,
        /// The directory of its first workspace, for people.
        pub workspace: String,
        /// All its workspaces, as it reported them on its newest connection; the first one first.
        #[serde(default)]
        pub sandboxes: Vec<Workspace>,
        /// The pool of the runner; absent where it has workspaces instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub pool: Option<Pool>,
        /// The most freedom of an agent by the policy of its machine (`/etc/gantry/policy.toml`), which no server loosens;
        /// absent where the machine has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ceiling: Option<Mode>,
        /// Its host's name.
        pub hostname: String,
        /// Its host's system, such as `linux/x86_64`.
        pub platform: String,
        /// The version of its software.
        pub version: String,
        /// Its figures of some seconds ago; absent where it is not linked to the replica that answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub figures: Option<RunnerFigures>,
        /// Its labels.
        #[serde(default)]
        pub labels: BTreeMap<String, String>,
        /// The name of its owner; absent where the owner was removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub owner: Option<String>,
        /// True if every person of the tenant may use it.
        #[serde(default)]
        pub shared_with_everyone: bool,
        /// The names of the people that it is shared with.
        #[serde(default)]
        pub shared_with: Vec<String>,
    }

    /// The load of a runner, as it reported it.
    pub struct RunnerFigures {
        /// The number of operations that run now.
        pub operations_running: u64,
        /// Output on its disk that the server does not have yet, in bytes.
        pub spool_bytes: u64,
        /// Space on the disk of its home that its user may fill, in bytes.
        pub disk_free_bytes: u64,
    }

    /// A folder of a runner that is a sandbox.
    pub struct Workspace {
        /// Its id.
        pub id: SandboxId,
        /// Its name on its runner; people choose it as `RUNNER/WORKSPACE`.
        pub name: String,
        /// The folder, for people.
        pub root: String,
        /// The isolation that its runner reports for it: `none`, or properties joined by `+`.
        pub isolation: String,
        /// The reason why operations fail there; absent where it works.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub problem: Option<String>,
    }

    /// A runner's means of making sandboxes.
    pub struct Pool {
        /// The kind of backend: `docker`.
        pub backend: String,
        /// The templates of its sandboxes; the first is the default.
        pub templates: Vec<String>,
        /// The templates whose commands may be root in their sandbox.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub sudo_templates: Vec<String>,
        /// The isolation that its runner reports for its sandboxes: `none`, or properties joined by `+`.
        pub isolation: String,
        /// The reason why it cannot make sandboxes now; absent where it can.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub problem: Option<String>,
    }

    /// A person's container in a runner's pool.
    pub struct Sandbox {
        /// Its id.
        pub id: SandboxId,
        /// The runner's id.
        pub runner: RunnerId,
        /// The runner's name.
        pub runner_name: String,
        /// The name of its owner.
        pub owner: String,
        /// The template that it is made from.
        pub template: String,
        /// The privilege of its commands, as its runner last reported it: `strict` (an ordinary user) or `sudo` (root
        /// in the sandbox).
        #[serde(default = "strict")]
        pub privilege: String,
        /// Its state: `wanted`, `starting`, `running`, `stopped` or `failed`.
        pub state: String,
        /// The reason for its state, where there is one to tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
        /// When it entered that state.
        pub since: Timestamp,
        /// The memory limit of all its commands together, in bytes.
        pub memory_bytes: u64,
        /// The limit of processor time, in thousandths of a processor.
        pub cpu_millis: u32,
        /// The most processes and threads at the same time.
        pub processes: u32,
        /// The longest time without an operation before it is stopped, in milliseconds.
        pub idle_for_ms: u64,
        /// Its network access: `none` or `open`.
        pub network: String,
    }

    /// A change of a sandbox's state that its runner reported.
    pub struct StateChange {
        /// When the server received the report.
        pub at: Timestamp,
        /// The new state: `starting`, `running`, `stopped`, `failed` or `removed`.
        pub state: String,
        /// The reason, where there is one to tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
    }

    /// The recent changes of a sandbox's state.
    pub struct StateChanges {
        /// The changes, the newest last.
        pub changes: Vec<StateChange>,
    }

    /// A page of sandboxes.
    pub struct Sandboxes {
        /// The sandboxes, by id.
        pub sandboxes: Vec<Sandbox>,
        /// The value of `after` for the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Asks for the caller's own sandbox on a runner.
    #[serde(deny_unknown_fields)]
    pub struct CreateSandbox {
        /// The runner's name or id.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 127))]
        pub runner: String,
    }

    /// Changes a sandbox's template and limits from its next start on. Absent fields stay as they are.
    #[serde(deny_unknown_fields)]
    #[derive(Default)]
    pub struct ChangeSandbox {
        /// The template that it is made from, one of its pool's. Its files stay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 63))]
        pub template: Option<String>,
        /// The memory limit, in bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 67108864, maximum = 1099511627776u64))]
        pub memory_bytes: Option<u64>,
        /// The limit of processor time, in thousandths of a processor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 50, maximum = 1024000))]
        pub cpu_millis: Option<u32>,
        /// The most processes and threads at the same time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 8, maximum = 32768))]
        pub processes: Option<u32>,
        /// The longest time without an operation before it is stopped, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 60000, maximum = 2592000000u64))]
        pub idle_for_ms: Option<u64>,
        /// Its network access: `none` or `open`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(pattern = "^(none|open)$"))]
        pub network: Option<String>,
    }

    /// A page of the runners that the user may choose.
    pub struct Runners {
        /// The runners, by name.
        pub runners: Vec<Runner>,
        /// The value of `after` for the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Chooses the runner of a user or a session.
    #[serde(deny_unknown_fields)]
    pub struct UseRunner {
        /// Its name or its id, alone or with one of its workspaces (`laptop/api`).
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 127))]
        pub runner: String,
    }

    /// Changes a runner. Absent fields stay as they are.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct ChangeRunner {
        /// Its name, which no other runner of the tenant may have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 63, pattern = r"^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$"))]
        pub name: Option<String>,
        /// True to let it drain: it is given nothing new to run, and what runs there goes on. False to give it work
        /// again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub draining: Option<bool>,
    }

    /// Makes a token with which one runner, or a fleet of them, may enrol.
    #[serde(deny_unknown_fields)]
    pub struct CreateJoinToken {
        /// The name of the runner; empty to let the runner choose.
        #[serde(default)]
        #[cfg_attr(feature = "openapi", schema(max_length = 63, pattern = r"^([a-z0-9]([a-z0-9._-]*[a-z0-9])?)?$"))]
        pub name: String,
        /// The validity of the token, in seconds, from 1 to 2592000 (30 days); absent for 600.
        // Left out where it is absent: a server that does not know it yet would refuse the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 2592000))]
        pub valid_for_s: Option<u32>,
        /// The number of runners that may enrol with it, from 1 to 1000; absent for 1. With more than one, each runner
        /// needs a name of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
        pub uses: Option<u32>,
        /// True if the server removes those runners once they leave for good or stay away.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub ephemeral: bool,
        /// Labels of those runners, at most 32. They win over the labels that a runner reports.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub labels: BTreeMap<String, String>,
        /// The addresses that runners may enrol from, as the server sees them, such as `10.0.0.0/8`; absent for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub from: Option<String>,
    }

    /// A join token; shown once.
    pub struct JoinToken {
        /// Its id.
        pub id: JoinTokenId,
        /// The token.
        pub token: String,
        /// The time at which it expires.
        pub expires_at: Timestamp,
        /// The archives with a runner's programs that the server offers, one for each kind of machine.
        #[serde(default)]
        pub archives: Vec<RunnerArchive>,
    }

    /// A join token with which runners can still enrol. The token itself was shown when it was made.
    pub struct ListedJoinToken {
        /// Its id.
        pub id: JoinTokenId,
        /// The name of the runner; empty where the runner chooses.
        pub name: String,
        /// When it was made.
        pub created_at: Timestamp,
        /// The time at which it expires.
        pub expires_at: Timestamp,
        /// The number of runners that may enrol with it.
        pub uses: u32,
        /// The number of runners that have enrolled with it.
        pub used: u32,
        /// True if the server removes those runners once they leave for good or stay away.
        pub ephemeral: bool,
        /// Labels of those runners. They win over the labels that a runner reports.
        #[serde(default)]
        pub labels: BTreeMap<String, String>,
        /// The addresses that runners may enrol from; absent for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub from: Option<String>,
    }

    /// A page of the user's join tokens with which runners can still enrol.
    pub struct JoinTokens {
        /// The tokens, the newest first.
        pub join_tokens: Vec<ListedJoinToken>,
        /// The value of `after` for the next page; absent on the last page.
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

    /// The server's signed statement about the archive with a runner's programs for one kind of machine.
    pub struct SignedArchive {
        /// The archive.
        pub archive: RunnerArchive,
        /// The server's signature over the nonce of the caller, in hexadecimal.
        pub signature: String,
    }

    /// Makes an API key.
    #[serde(deny_unknown_fields)]
    pub struct CreateKey {
        /// The name of the key in lists.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 63, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
        pub name: String,
        /// The scopes of the key; absent for those of chat, runners, exec and read that its maker has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_items = 1))]
        pub scopes: Option<Vec<ScopeName>>,
        /// The validity of the key, in seconds, from 1 to 316224000; absent for no expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 316224000))]
        pub valid_for_s: Option<u32>,
        /// The addresses that may use it, as the server sees them, such as `10.0.0.0/8`; absent for all.
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
        /// Its name.
        pub name: String,
        /// `api_key`, `sign_in` or `browser`.
        pub kind: String,
        /// When it was made.
        pub created_at: Timestamp,
        /// The key or sign-in that made it, where the server knows it. A key ends together with the key that made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub made_by: Option<CredentialId>,
        /// When it was last used, to the minute.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_used_at: Option<Timestamp>,
        /// The address from which it was last used, as the server sees it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_address: Option<String>,
        /// Its scopes.
        #[serde(default)]
        pub scopes: Vec<ScopeName>,
        /// The time at which it expires; absent for no expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub expires_at: Option<Timestamp>,
        /// The addresses that may use it; absent for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub from: Option<String>,
        /// True if the request for this list used it.
        #[serde(default)]
        pub is_this: bool,
    }

    /// A page of a user's keys and sign-ins.
    pub struct Keys {
        /// The keys, the newest first.
        pub keys: Vec<Key>,
        /// The value of `after` for the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }
}

impl Problem {
    /// Makes the problem with this code.
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
    /// Standard output. It includes standard error where the two are merged, and in a terminal.
    Stdout,
    /// Standard error.
    Stderr,
}

impl CreateJoinToken {
    /// A token for one runner of this name, for ten minutes. With an empty name the runner chooses its own.
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

/// A message of the client on the WebSocket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ClientMessage {
    /// Sends every event of the session after `after`, then everything that happens.
    Subscribe {
        /// The session.
        session: SessionId,
        /// The number of the last event that the client has; 0 for none.
        after: u64,
    },
    /// Sends nothing more of this session.
    Unsubscribe {
        /// The session.
        session: SessionId,
    },
    /// Sends a hint whenever one of these lists may be different from now on. It replaces what was watched before; an
    /// empty list ends it.
    Watch {
        /// The lists. Those that the client may not read are left out.
        topics: Vec<Topic>,
    },
}

/// A message of the server on the WebSocket.
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
    /// Unfinished work, which the log does not hold. Its result will be an event.
    Live {
        /// The session.
        session: SessionId,
        /// The unfinished work.
        live: Live,
    },
    /// All events up to this number were sent; later messages are new.
    CaughtUp {
        /// The session.
        session: SessionId,
        /// The number of the newest event.
        seq: u64,
    },
    /// These lists may be different from what the client last read: read them again by REST. Every `watch` is answered
    /// at once with all topics that are watched from then on. Later ones come at most every 250 ms, and at most every
    /// 5 s where only a figure or a time of last use has changed. Skip a topic that you do not know.
    Changed {
        /// The lists, each once.
        topics: Vec<Topic>,
        /// The sessions to which the hints about `sessions` and `approvals` are confined. Where it is absent, any
        /// session may have changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sessions: Option<Vec<SessionId>>,
    },
    /// A subscription could not be served, or a message was not understood.
    Problem {
        /// The session, where the client named one.
        session: Option<SessionId>,
        /// The problem.
        problem: Problem,
    },
    /// The last message before the server closes a working connection with code 1012, because the server stops or the
    /// connection is too old. Wait a random part of `within_ms`. Then connect again and subscribe with the last event
    /// that you have.
    Reconnect {
        /// The time, in milliseconds.
        within_ms: u32,
    },
}

/// Unfinished work of a turn. By its offset a client recognises bytes that it has already, and drops them.
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
        /// The number of the attempt, from 1. A higher number starts the thoughts again.
        attempt: u32,
        /// The part of the answer: its place among the parts of text and of thoughts, in the order in which they
        /// began, from 0.
        #[serde(default)]
        part: u32,
        /// The offset of `text` in the part, in bytes from 0.
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
        /// The number of the attempt, from 1. A higher number starts the text again.
        attempt: u32,
        /// The part of the answer: its place among the parts of text and of thoughts, in the order in which they
        /// began, from 0.
        #[serde(default)]
        part: u32,
        /// The offset of `text` in the part, in bytes from 0.
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
        /// The offset of the first byte in the stream, from 0. After a jump bytes are missing. The server skips output
        /// that a slow client does not read, and sends a late client the last 64 KiB.
        offset: u64,
        /// The bytes as text; invalid UTF-8 is replaced. `bytes` counts the original ones.
        text: String,
        /// The number of bytes.
        bytes: u64,
    },
    /// Missing output of a command, which is no longer stored. The stream continues at `to`.
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
        /// The first byte after the gap.
        to: u64,
    },
    /// The attempt broke off: its text and thoughts are void. Another attempt may follow, with a higher number.
    TakenBack {
        /// The turn.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The attempt at it, from 1.
        attempt: u32,
    },
    /// A note for people, such as a retry of the model or a wait for the runner.
    Notice {
        /// The turn.
        turn: TurnId,
        /// The words.
        text: String,
    },
}
