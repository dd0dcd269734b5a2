//! What goes on in a session beside its turns.

use server_agent::Task;
use server_store::StoreError;
use shared_sandbox::CancelAnswer;
use shared_types::{OperationId, SessionId};

use super::Sessions;
use crate::{AppError, OpContext, journal};

impl Sessions {
    /// What went on in the background, by number.
    ///
    /// # Errors
    /// If the user has no such session.
    pub async fn tasks(&self, ctx: &OpContext, session: SessionId) -> Result<Vec<Task>, AppError> {
        self.get(ctx, session).await?;
        let log = journal::load(&self.store, ctx.tenant, session).await?;
        Ok(server_agent::tasks(&log))
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
        let found = async {
            let row = self.store.operation(ctx.tenant, operation).await?;
            let session = self.store.session(ctx.tenant, row.session).await?;
            Ok((row, session))
        };
        match found.await {
            Ok((row, session)) if session.user == ctx.user => self
                .turns
                .cancel(ctx.tenant, &session, row.turn, operation)
                .await
                .map_err(|refusal| AppError::Conflict(refusal.message)),
            Ok(_) | Err(StoreError::NotFound) => Err(AppError::NotFound("operation")),
            Err(error) => Err(error.into()),
        }
    }
}
