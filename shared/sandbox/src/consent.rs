//! The consent under which an operation runs: who answers for it.
//!
//! It is part neither of the request nor of the operation's identity. It travels with the request, so that the place
//! can check it against what arrived and against its own rules.

use shared_types::{Digest, Mode};

/// The consent under which an operation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// A person or a program asked for it itself, with its own rights.
    Caller,
    /// An agent asked for it in this mode, and its rules asked no person.
    Agent(Mode),
    /// A person approved this plan of an agent.
    Approved {
        /// The agent's mode.
        mode: Mode,
        /// The digest of the approved request ([`Request::digest`](crate::Request::digest)).
        plan: Digest,
    },
}

impl Consent {
    /// The consent of a server that does not name one: an agent's, in a mode that asks for no approval. The place's own
    /// rules then bound it.
    pub const UNKNOWN: Self = Self::Agent(Mode::Full);

    /// True unless a person approved another request than the one with this digest.
    pub fn covers(&self, request: &Digest) -> bool {
        match self {
            Self::Approved { plan, .. } => plan == request,
            Self::Caller | Self::Agent(_) => true,
        }
    }
}
