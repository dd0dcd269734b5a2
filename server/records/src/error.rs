//! The reason why a port did not do what it was asked for.

/// The store did not answer, or refused.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The store is away; it may answer later.
    #[error(transparent)]
    Away(Box<dyn std::error::Error + Send + Sync>),
    /// The store has answered, and will answer the same again: for instance, there is no such row, or this version
    /// cannot read it.
    #[error(transparent)]
    Lasting(Box<dyn std::error::Error + Send + Sync>),
}

impl PortError {
    /// An error of a store that did not answer: lower case, no full stop.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Away(cause.into())
    }

    /// An error that another try would not change.
    pub fn lasting(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Lasting(cause.into())
    }

    /// True if the store may answer later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Away(_))
    }
}
