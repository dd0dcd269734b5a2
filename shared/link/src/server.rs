//! The server's end of the link.
//!
//! [`Slot`] says which link of a runner is the current one, [`Link`] is one link, [`Follow`] one
//! operation over all of them, [`OutputInbox`] what the one hands to the other. The driver keeps what is stored,
//! and moves frames.

mod bounds;
mod cancel;
mod checksum;
mod follow;
mod hello;
mod inbox;
mod link;
mod passing;
mod progress;
mod refusals;
mod slot;
mod stored;
mod subscriptions;
mod sums;

pub use crate::wire::{
    AnswerHead, AnswerPart, AskFailure, AskFailureKind, AskKind, Figures, MODELS_FEATURE,
    ModelsReport, PoolFacts, SandboxReport, ensure_sandbox, model_ask, model_credit, model_drop,
    remove_sandbox, stop_sandbox,
};
pub use cancel::{CancelStep, cancel};
pub use follow::{Follow, FollowStep, Linked};
pub use hello::{HelloFacts, KnownMemory, Remembered, SandboxFacts, facts};
pub use inbox::{InboxError, InboxSeat, Mail, OutputInbox};
pub use link::{
    CancelAnswered, Link, LinkCommand, LinkOver, LinkTimes, MAX_REPORTS, ReconcileVerdict,
};
pub use passing::{ControlAnswer, Controlled};
pub use refusals::{
    forgotten, lost_to_restoration, lost_to_revocation, lost_to_silence, never_started,
};
pub use slot::{RunnerConnection, Slot, TurnedAway};
pub use stored::{RunnerState, Settlement, StoredIntent};
pub use subscriptions::{Post, Reader};
