//! The hint that a list which people read may be different since a commit.

use serde::{Deserialize, Serialize};
use shared_types::{CredentialId, OperationId, SessionId, TenantId, Topic, UserId};

/// A list that may be different since a commit. It says for whom, and carries nothing of the list itself: those who
/// hear of it read again, and rights decide what they see. So it is small, and may travel between servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Change {
    /// The tenant; absent where it may be any.
    pub tenant: Option<TenantId>,
    /// The list.
    pub topic: Topic,
    /// The people whose list it is.
    pub whose: Whose,
    /// How soon they should hear of it.
    pub pace: Pace,
}

/// The people whose list may be different.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Whose {
    /// Everyone of the tenant who may read the list.
    Everyone,
    /// This person.
    User(UserId),
    /// The person whose session this is; only what the list says of it may be different.
    OfSession(SessionId),
    /// The person who asked for this operation, or whose session did.
    OfOperation(OperationId),
    /// The person whose key or sign-in this is.
    OfCredential(CredentialId),
}

/// How soon people should hear of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Pace {
    /// At once.
    Prompt,
    /// Now and then: it is a figure, or a time of last use, that changes all the time.
    Slow,
}
