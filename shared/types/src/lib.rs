//! The words of the project as types: ids, time, addresses, events, operations, limits, tokens.
//!
//! Rank 0: every other crate may import this one, and it imports none of ours. It does no IO;
//! the only ambient things it names are the system's clock and random source, behind the
//! [`Clock`] and [`Entropy`] that `main` hands down.

pub mod address;
pub mod backoff;
mod call_wait;
pub mod clean;
pub mod clock;
mod consent;
mod duration_text;
pub mod entropy;
pub mod event;
pub mod file_digest;
pub mod human;
pub mod ids;
mod image;
pub mod isolation;
pub mod limits;
mod link_target;
pub mod operation;
mod paid_by;
mod refusal;
mod runner_choice;
pub mod sandbox;
#[cfg(feature = "openapi")]
mod schema;
pub mod token;
mod topic;
pub mod trace;
mod while_working;

pub use address::AddressRange;
pub use call_wait::{CallWait, WaitsFor};
pub use clock::{Clock, SystemClock, Timestamp};
pub use consent::{Mode, Risk, UnknownMode};
pub use duration_text::{NotADuration, parse_duration};
pub use entropy::{Entropy, OsEntropy};
pub use event::{Event, SessionEvent};
pub use file_digest::{DigestAlgorithm, FileDigest, FileHasher};
pub use ids::*;
pub use image::ImageFormat;
pub use isolation::Isolation;
pub use link_target::leads_into_its_folder;
pub use operation::{
    Digest, Effect, Epoch, Generation, Incarnation, OperationKey, OperationScope, Owner,
};
pub use paid_by::PaidBy;
pub use refusal::{Refusal, RefusalCode, Remedy};
pub use runner_choice::RunnerChoice;
pub use sandbox::{
    SandboxLimits, SandboxNetwork, SandboxPrivilege, SandboxSpec, SandboxState, is_sandbox_name,
};
pub use token::{Token, TokenKind};
pub use topic::Topic;
pub use trace::{SpanId, TraceContext, TraceId};
pub use while_working::WhileWorking;
