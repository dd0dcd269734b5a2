//! The tasks of a session: commands that continue beside its turns.

use server_agent::Task;
use server_records::SessionKey;
use server_store::{AskedBy, CallOf};
use shared_sandbox::CancelAnswer;
use shared_types::{OperationId, RefusalCode, Remedy, SessionId, TenantId};

use super::Sessions;
use crate::{AppError, OpContext, rights::Action};

/// Ended tasks that are shown.
const ENDED_SHOWN: usize = 100;

/// Most bytes that are shown of what was asked; the log has all of it.
const MAX_ARGUMENTS_BYTES: usize = 4096;

/// The most times that a session may be claimed again while an operation is being cancelled.
const EPOCHS: u32 = 8;

impl Sessions {
    /// The tasks of the session, by number: all that run, and those that ended last.
    ///
    /// # Errors
    /// If the user has no such session.
    pub async fn tasks(&self, ctx: &OpContext, session: SessionId) -> Result<Vec<Task>, AppError> {
        self.get(ctx, session).await?;
        let of = SessionKey {
            tenant: ctx.tenant,
            session,
        };
        let log = self.turns.log(of).await?;
        let mut tasks = server_agent::tasks(&log);
        let ended = tasks.iter().filter(|task| task.ended.is_some()).count();
        let mut left_out = ended.saturating_sub(ENDED_SHOWN);
        tasks.retain(|task| {
            let stays = task.ended.is_none() || left_out == 0;
            left_out -= usize::from(!stays);
            stays
        });
        for task in &mut tasks {
            let arguments = &mut task.asked.arguments;
            arguments.truncate(arguments.floor_char_boundary(MAX_ARGUMENTS_BYTES));
        }
        Ok(tasks)
    }

    /// Stops an operation with everything that it started, in the background or not, and says what
    /// is known of that soon. Asking twice changes nothing.
    ///
    /// # Errors
    /// If the user has no such operation, or its runner is lost.
    pub async fn cancel_operation(
        &self,
        ctx: &OpContext,
        operation: OperationId,
    ) -> Result<CancelAnswer, AppError> {
        let found = self.gate.operation(ctx, Action::CancelOperation, operation);
        let AskedBy::Call(call) = found.await?.row.asked_by else {
            return Err(AppError::NotFound("operation"));
        };
        tracing::info!(operation.id = %operation, user.id = %ctx.user, "an operation is to be cancelled");
        self.stop_operation(ctx.tenant, &call, operation).await
    }

    /// Stops the operation of a call, of any user.
    pub(crate) async fn stop_operation(
        &self,
        tenant: TenantId,
        &CallOf { session, turn, .. }: &CallOf,
        operation: OperationId,
    ) -> Result<CancelAnswer, AppError> {
        let mut attempts = 0..EPOCHS;
        loop {
            let epoch = self.store.session(tenant, session).await?.epoch;
            let under = (SessionKey { tenant, session }, epoch);
            let cancel = self.turns.cancel(under, turn, operation);
            match cancel.await {
                Ok(answer) => return Ok(answer),
                // A turn was claimed in between, under a newer epoch.
                Err(refusal)
                    if refusal.code == RefusalCode::StaleEpoch && attempts.next().is_some() => {}
                Err(refusal) if refusal.remedy() == Remedy::Retry => {
                    return Err(AppError::unavailable(refusal));
                }
                Err(refusal) => return Err(AppError::Conflict(refusal.message)),
            }
        }
    }
}
