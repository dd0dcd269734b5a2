//! A session, and the reason why its rows are not used.

use shared_types::{OperationScope, SessionId, TenantId};

use crate::PortError;

/// The name of a session for parts that serve all tenants. They pass it on, and the store tells tenants apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    /// Its tenant.
    pub tenant: TenantId,
    /// The session.
    pub session: SessionId,
}

impl SessionKey {
    /// The scope in which the ids of its operations are derived.
    pub fn scope(&self) -> OperationScope {
        OperationScope::of(self.tenant)
    }
}

/// The reason why a row of a session was not read or written. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// There is no such session or turn.
    #[error("find it: it does not exist, or not here")]
    NotFound,
    /// A newer worker holds the session; this one must stop.
    #[error("write to the session: a newer worker has taken it over")]
    StaleEpoch,
    /// The turn has messages that its model was not sent yet: it takes them, and goes on.
    #[error("end the turn: it has messages that the agent has not read yet")]
    UntakenSteers,
    /// There are as many as there may be; the text says of what, and the remedy.
    #[error("add to it: {0}")]
    Full(String),
    /// The store did not answer, or refused.
    #[error(transparent)]
    Store(#[from] PortError),
}

impl SessionError {
    /// True if the same read or write may succeed later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::NotFound | Self::StaleEpoch | Self::UntakenSteers => false,
            Self::Full(_) => true,
            Self::Store(error) => error.is_passing(),
        }
    }
}
