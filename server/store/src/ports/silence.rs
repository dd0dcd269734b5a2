//! The rows of runners that are silent.

use std::time::Duration;

use async_trait::async_trait;
use server_records::{Duty, PortError, SilentRunners};
use shared_types::{ReplicaId, RunnerId};

use super::Ports;

/// See the module.
pub(super) struct Silence {
    pub(super) ports: Ports,
    pub(super) replica: ReplicaId,
}

#[async_trait]
impl SilentRunners for Silence {
    async fn take_duty(&self) -> Result<Duty, PortError> {
        Ok(self.ports.store.take_silence(self.replica).await?)
    }

    async fn count_silence(&self, passed: Duration) -> Result<(), PortError> {
        let counted = self.ports.store.count_silence(self.replica, passed);
        Ok(counted.await?)
    }

    async fn lose_operations(&self, silent_for: Duration) -> Result<usize, PortError> {
        let Ports { store, clock, .. } = &self.ports;
        let (lost, _) = store.lose_silent(silent_for, clock.now()).await?;
        Ok(lost)
    }

    async fn remove_ephemeral(&self, silent_for: Duration) -> Result<Vec<RunnerId>, PortError> {
        let Ports { store, clock, .. } = &self.ports;
        let removed = store.remove_silent_runners(silent_for, clock.now()).await?;
        Ok(removed.into_iter().map(|(runner, _)| runner).collect())
    }
}
