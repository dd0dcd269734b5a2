//! The removal of a container with its files.

use std::{fs, sync::atomic::Ordering, time::Duration};

use runner_supervisor::{ORDERS, PROGRAMS_LOCK};
use tokio::time::sleep;

use super::{Container, lock, make::WORKSPACE, note::NOTE};
use crate::docker::{
    door::Door,
    engine::{Engine, EngineError},
};

/// The wait before a failed removal is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(3);

impl Container {
    /// Removes it with its files, once; whether it is gone. What is kept of its commands stays until the server
    /// has it.
    pub(in crate::docker) async fn remove(&self) -> bool {
        if !self.0.gone.swap(true, Ordering::Relaxed) {
            // The next daemon goes on with it, should this one die before it is done.
            self.note();
        }
        lock(&self.0.running).take();
        let _life = self.0.life.lock().await;
        if let Some(removal) = self.0.after.lock().await.take() {
            let _ = removal.await;
        }
        let (id, body) = (self.0.id, self.0.body);
        let removed = async {
            let engine = self.0.around.engine().await?;
            engine.remove(body).await?;
            engine.remove_volume(body, "workspace").await?;
            engine.remove_volume(body, "home").await
        };
        match removed.await {
            Ok(()) => {
                let _ = fs::remove_file(self.0.folder.join(NOTE));
                self.remove_folders();
                tracing::info!(sandbox.id = %id, "a sandbox is removed");
                true
            }
            Err(error) => {
                tracing::warn!(sandbox.id = %id, %error, "failed to remove a sandbox; trying again");
                false
            }
        }
    }

    /// Removes it with its files, however long that takes.
    pub(in crate::docker) async fn remove_at_last(&self) {
        while !self.remove().await {
            sleep(TRY_AGAIN_AFTER).await;
        }
    }

    /// Removes the folders where nothing is left of its commands.
    fn remove_folders(&self) {
        let operations = self.operations();
        for file in [ORDERS, PROGRAMS_LOCK] {
            let _ = fs::remove_file(operations.join(file));
        }
        Door::remove(&self.0.folder);
        let _ = fs::remove_dir(operations).and_then(|()| fs::remove_dir(&self.0.folder));
    }

    /// Removes a spare one of an earlier daemon. Where there is something in its workspace, that daemon has
    /// made it a sandbox, and this runner's home is an older copy: then its volumes stay.
    pub(in crate::docker) async fn remove_unless_used(&self) {
        while let Err(error) = self.try_to_remove_unless_used().await {
            tracing::warn!(%error, "failed to look into a spare container; trying again");
            sleep(TRY_AGAIN_AFTER).await;
        }
    }

    async fn try_to_remove_unless_used(&self) -> Result<(), EngineError> {
        let body = self.0.body;
        let engine = self.0.around.engine().await?;
        let is_empty = match engine.is_empty(body, WORKSPACE).await {
            // It cannot be mounted any more: it was made with the programs of an earlier version, which are gone.
            Err(EngineError::Refused(reason)) => self.is_empty_anew(&engine, reason).await?,
            other => other?,
        };
        if is_empty {
            self.remove_at_last().await;
            return Ok(());
        }
        engine.remove(body).await?;
        let _ = fs::remove_file(self.0.folder.join(NOTE));
        tracing::warn!(
            volumes = format!("gantry-{body}-*"),
            "a container that was noted as spare has files, or is gone; its volumes stay"
        );
        Ok(())
    }

    /// Looks into its workspace with another container that is made for the same volumes.
    async fn is_empty_anew(&self, engine: &Engine, reason: String) -> Result<bool, EngineError> {
        let spec = lock(&self.0.spec).clone();
        let Ok(make) = self.make(&spec) else {
            tracing::debug!(
                reason,
                "a spare container of a template that is gone is not looked into"
            );
            return Ok(false);
        };
        engine.remove(self.0.body).await?;
        engine.make(&make).await?;
        engine.is_empty(self.0.body, WORKSPACE).await
    }
}
