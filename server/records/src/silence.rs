//! Runners that are silent.

use std::time::Duration;

use async_trait::async_trait;
use shared_types::RunnerId;

use crate::PortError;

/// The rows of runners that have no link, of all tenants: time passes for all.
#[async_trait]
pub trait SilentRunners: Send + Sync {
    /// Adds a time that passed in this replica to the silence of each runner that has no link.
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
