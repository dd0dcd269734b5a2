//! The messages of the REST and WebSocket API, version 1, as the server and its clients know them.
//! Times are RFC 3339, ids are in their text form, sizes are bytes.
//!
//! Unknown fields are ignored in answers, so that a client still works after the server's upgrade. They are
//! refused in requests, so that a misspelt field is an error.

macro_rules! messages {
    ($($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)* })*) => {$(
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        $(#[$meta])*
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)* }
    )*};
}

mod commands;
mod consent;
mod context;
mod extensions;
mod frame;
mod join_tokens;
mod keys;
mod live;
mod me;
mod message;
mod models;
mod operation;
mod output;
mod page;
mod people;
mod problem;
mod rewind;
mod runners;
mod sandboxes;
mod session_tool_servers;
mod sessions;
mod settings;
mod share;
mod sign_in;
mod status;
mod stream;
mod tasks;
mod tool_servers;
mod usage;

pub use commands::{Command, CommandDone, CommandTable, Commands, RunCommand, Shown};
pub use consent::{
    AddPermissionRule, AnswerApproval, Approval, ApprovalOutcome, Approvals, Decision,
    PermissionRule, PermissionRules, PermissionVerdict, ProposedRule, ProposedRules, RuleSetBy,
    TestPermission, TestedDeed, TrustProject, TrustedFile,
};
pub use context::{ContextChange, ContextPart, SessionContext};
pub use extensions::{
    DownloadExtension, DownloadedExtension, Extension, ExtensionKind, ExtensionList, PutExtension,
    TrustExtension,
};
pub use frame::{BadFrame, BinaryFrame, Channel, MAX_BINARY_FRAME_BYTES};
pub use join_tokens::{
    CreateJoinToken, JoinToken, JoinTokens, ListedJoinToken, RunnerArchive, SignedArchive,
};
pub use keys::{CreateKey, CreatedKey, Key, Keys};
pub use live::Live;
pub use me::{Me, Model, User};
pub use message::{CancelAccepted, MessageAccepted, SendMessage, SessionImage};
pub use models::{
    AddModelAccount, AddedModelAccount, ModelAccount, ModelPrice, ModelProbe, ModelProvider,
    ModelState, Models, OfferedModel, Payer, TestModel,
};
pub use operation::{
    Download, Entry, Exec, InputKind, InputTaken, List, ListedEntry, Listing, MakeDirectory, Move,
    Operation, OperationCancelled, OperationClientMessage, OperationEnd, OperationRunner,
    OperationServerMessage, OperationState, Operations, Pack, Remove, SendSignal, Signal, Skipped,
    StartOperation, Stat, Stopped, TerminalSize, Unpack, Upload,
};
#[cfg(feature = "openapi")]
pub use operation::{EntryKind, ExitCause};
pub use output::{Output, StreamName};
pub use page::Page;
pub use people::{
    AddServiceAccount, AuditEntry, AuditLog, AuditOutcome, ChangeRole, Invitation, InvitePerson,
    People, Person, RoleName, ScopeName, ShareRunner, UnshareRunner,
};
pub use problem::Problem;
pub use rewind::{Rewind, Rewound, RewoundFile};
pub use runners::{ChangeRunner, Pool, Runner, RunnerFigures, Runners, UseRunner, Workspace};
pub use sandboxes::{ChangeSandbox, CreateSandbox, Sandbox, Sandboxes, StateChange, StateChanges};
pub use session_tool_servers::{
    SessionToolServer, SessionToolServers, TestToolServer, TestedTool, TestedToolServer,
    ToolServerEra, ToolServerLook, ToolServerPrompt, ToolServerResource,
};
pub use sessions::{
    ChangeSession, CreateSession, Events, PinnedRunner, Session, SessionAgent, Sessions,
};
pub use settings::{ChangeSettings, LayerName, NewValues, SetBy, Setting, SettingName, Settings};
pub use share::{LinksEnded, SessionLink, ShareSession, SharedSession};
pub use sign_in::{BrowserSignedIn, SignIn, SignedIn};
pub use status::{
    DatabaseKind, DatabaseStatus, ModelCounts, Replica, ReplicaState, Replicas, RunnerCounts,
    ServerStatus,
};
pub use stream::{ClientMessage, CreateStreamTicket, ServerMessage, StreamTicket};
pub use tasks::{Task, Tasks};
pub use tool_servers::{
    ListedToolServer, NamedToolServer, PutToolValue, ToolServerAnswer, ToolServerSignIn,
    ToolServerSignedIn, ToolServerSigningIn, ToolServers, ToolValue, ToolValues,
};
pub use usage::{ModelUsage, Tokens, TurnUsage, TurnUsages, UsageBy, UsageKey, UsageRow, UsageSum};
