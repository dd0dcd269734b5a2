//! Work on operations that the server does without a request. It resumes those that an earlier
//! process left open, closes those that no reader follows any more, and removes those that ended long
//! ago.

use std::time::Duration;

use server_records::is_kept_nowhere;
use server_store::OpenCallerOperation;
use shared_types::{Timestamp, limits::COMMAND_RUNS_AT_MOST};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Operations,
    asked::{CallerRequest, request},
    program, refused,
};
use crate::AppError;

/// For how long what is kept nowhere waits on its runner, once it has ended, for a reader.
const UNREAD_FOR: Duration = Duration::from_secs(60 * 60);

/// The pause before the store is asked again for the operations to resume.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Operations {
    /// Goes on with what an earlier process left open.
    pub(crate) fn resume(&self, tasks: &TaskTracker, stop: CancellationToken) {
        let operations = self.clone();
        tasks.spawn(async move {
            let work = async {
                operations.go_on().await;
                operations.tidy_up().await;
            };
            tokio::select! {
                () = work => {}
                () = stop.cancelled() => {}
            }
        });
    }

    /// Another server is gone: this one resumes the operations that it had open.
    pub(crate) fn take_over(&self) {
        let operations = self.clone();
        // It ends once it has looked at all of them.
        tokio::spawn(async move { operations.go_on().await });
    }

    /// Works for as long as the server runs. It closes operations whose output no reader has read to its end for
    /// a while. It removes operations that ended long ago, if the operator wants that.
    async fn tidy_up(&self) {
        loop {
            let now = self.clock.now();
            if let Err(error) = self.store.close_unread(before(now, UNREAD_FOR), now).await {
                tracing::warn!(%error, "what nobody reads any more cannot be closed yet");
            }
            if let Some(kept_for) = self.allowance.limits().operations_kept_for
                && let Err(error) = self.remove_ended(before(now, kept_for)).await
            {
                tracing::warn!(%error, "operations that ended long ago cannot be removed yet");
            }
            tokio::time::sleep(UNREAD_FOR).await;
        }
    }

    /// Removes what callers have run and what it wrote, where it ended before this moment.
    async fn remove_ended(&self, ended_before: Timestamp) -> Result<(), AppError> {
        loop {
            let ended = self.store.ended_caller_operations(ended_before).await?;
            if ended.is_empty() {
                return Ok(());
            }
            for (tenant, operation) in &ended {
                self.ports.outputs.remove(*tenant, *operation).await?;
                self.store
                    .remove_caller_operation(*tenant, *operation)
                    .await?;
            }
            tracing::info!(
                removed = ended.len(),
                "operations that ended long ago were removed"
            );
        }
    }

    async fn go_on(&self) {
        let mut after = None;
        loop {
            match self.store.open_caller_operations(self.replica, after).await {
                Ok(open) => {
                    let Some(last) = open.last() else { return };
                    after = Some(last.row.id);
                    for open in open {
                        let id = open.row.id;
                        if self.links.collected(id).is_some() {
                            continue;
                        }
                        if let Err(error) = self.go_on_with(open).await {
                            tracing::warn!(operation.id = %id, %error, "an operation cannot be gone on with; it is as soon as somebody reads it");
                        }
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "what callers have open cannot be read; trying again");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    pub(super) async fn go_on_with(&self, open: OpenCallerOperation) -> Result<(), AppError> {
        if program::was_left(&open, &self.store.replicas().await?) {
            let id = open.row.id;
            tracing::info!(operation.id = %id, "a program that another server had started is stopped");
            self.stop_program(open.tenant, id).await;
            return Ok(());
        }
        let request = request(&open)?;
        if is_kept_nowhere(&request) {
            return Ok(());
        }
        let asked = CallerRequest::of(&open)?;
        let operation = asked.operation(request, open.epoch, COMMAND_RUNS_AT_MOST);
        let collected = self.sandbox(&asked).collect(operation).await;
        collected.map(drop).map_err(refused)
    }
}

fn before(now: Timestamp, time: Duration) -> Timestamp {
    let time = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(time))
}
