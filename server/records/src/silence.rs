//! Runners that are silent.

use std::time::Duration;

use async_trait::async_trait;
use shared_types::RunnerId;

use crate::PortError;

/// Whose duty it is to do something for all replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// This replica's, as it was at the last look.
    Continued,
    /// This replica's from now on.
    Begun,
    /// That of another live replica.
    OfAnother,
}

/// The rows of runners that have no link, of all tenants: time passes for all.
#[async_trait]
pub trait SilentRunners: Send + Sync {
    /// Takes the duty to count silence, if no live replica has it.
    ///
    /// # Errors
    /// The store did not answer.
    async fn take_duty(&self) -> Result<Duty, PortError>;

    /// Adds a time that passed in this replica to the silence of each runner that has no link, if this replica has the
    /// duty.
    ///
    /// # Errors
    /// The store did not answer. Nothing was counted.
    async fn count_silence(&self, passed: Duration) -> Result<(), PortError>;

    /// Stores that some of the open operations of runners that were silent for so long are lost. Returns the number of
    /// them; 0 once there are no more.
    ///
    /// # Errors
    /// The store did not answer.
    async fn lose_operations(&self, silent_for: Duration) -> Result<usize, PortError>;

    /// Removes some of the ephemeral runners that were silent for so long, and returns them.
    ///
    /// # Errors
    /// The store did not answer.
    async fn remove_ephemeral(&self, silent_for: Duration) -> Result<Vec<RunnerId>, PortError>;
}
