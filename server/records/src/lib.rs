//! The words that the server's parts say to one another: the records of what is stored, and the ports through which the
//! router and the engine read and write them.
//!
//! The store returns these records and implements the ports. No layer has a copy of its own. Every implementor of a port
//! is bound to its tenant (and session, where it is one session's) when it is made, so no method names one. A port of a
//! loop that works for all tenants, such as [`SilentRunners`], names none either. There is no SQL here, no protobuf and
//! no message of the API. The facts that a runner reports over its link are the link's words ([`shared_link::server`]).

mod agent;
mod change;
mod chat;
mod commit;
mod consent;
mod error;
mod extension;
mod fleet;
mod hint;
mod link;
mod log;
mod model_call;
mod operation;
mod output;
mod session;
mod silence;
mod turn;

pub use agent::{NewAgent, NewChat};
pub use change::{Change, Pace, Whose};
pub use chat::{ChatHit, ChatQuery, ChatSpeaker};
pub use commit::CommitListener;
pub use consent::{
    AnswerRefused, ApprovalOutcome, ApprovalRow, NewAnswer, RuleBy, RuleRow, SetRule,
    StandingRules, TrustedFile, is_in_folder, project_folder, project_path,
};
pub use error::PortError;
pub use extension::{
    ExtensionKind, RegisteredExtension, StandingExtensions, TrustedExtension, UnknownExtensionKind,
    WholeSkill,
};
pub use fleet::{Fleet, FleetRunner, FleetSandbox, FleetSnapshot};
pub use hint::{Hint, HintBatch, HintNews, HintWire, MAX_HINT_TEXT_BYTES};
pub use link::{Heard, LinkHolder, LinkIdentity, LinkRows, LinkState};
pub use log::{Appended, CallEnd, LogRows, StoredEvent};
pub use model_call::{ModelCall, ModelCost};
pub use operation::{Intents, NewIntent, Operations, PlaceError};
pub use output::{Outputs, is_kept_nowhere};
pub use session::{SessionError, SessionKey};
pub use silence::{Duty, SilentRunners};
pub use turn::{
    ClaimedTurn, IfRunning, NextTurn, SessionTurns, TurnFailures, TurnRow, TurnRows, TurnState,
    UnfinishedTurn, WaitingTurn, WaitsOver,
};
