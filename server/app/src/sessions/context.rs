//! The use of the model's window by a session.

use server_agent::ContextReport;
use server_records::SessionKey;
use shared_types::SessionId;

use super::Sessions;
use crate::{AppError, OpContext};

impl Sessions {
    /// The use of the model's window by the session: the categories, and the changes of what was sent before.
    ///
    /// # Errors
    /// If the user has no such session, or the model that is chosen cannot be used.
    pub async fn context(
        &self,
        ctx: &OpContext,
        session: SessionId,
    ) -> Result<ContextReport, AppError> {
        self.get(ctx, session).await?;
        let of = SessionKey {
            tenant: ctx.tenant,
            session,
        };
        self.turns.context(of).await?.map_err(AppError::Conflict)
    }
}
