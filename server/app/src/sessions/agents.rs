//! The agents of a session.

use server_agent::Agent;
use server_records::SessionKey;
use server_store::{Page, SessionFilter};
use shared_types::SessionId;

use super::{Session, Sessions};
use crate::{AppError, OpContext};

/// The agents that ended last and are shown.
const ENDED_SHOWN: usize = 50;

/// The agents of a session, by the last use, whose rows are read.
const ROWS: u32 = 200;

impl Sessions {
    /// The agents that calls of the session have begun, in their order: all that work, and those that ended last. Beside
    /// each the row of its session, if that exists and is one of those that were used last.
    ///
    /// # Errors
    /// If the user has no such session.
    pub async fn agents(
        &self,
        ctx: &OpContext,
        session: SessionId,
    ) -> Result<Vec<(Agent, Option<Session>)>, AppError> {
        self.get(ctx, session).await?;
        let of = SessionKey {
            tenant: ctx.tenant,
            session,
        };
        let mut agents = server_agent::agents(&self.turns.log(of).await?);
        let ended = agents.iter().filter(|agent| agent.ended.is_some()).count();
        let mut left_out = ended.saturating_sub(ENDED_SHOWN);
        agents.retain(|agent| {
            let stays = agent.ended.is_none() || left_out == 0;
            left_out -= usize::from(!stays);
            stays
        });
        let filter = SessionFilter {
            agents_of: Some(session),
            ..SessionFilter::default()
        };
        let page = Page {
            after: None,
            limit: ROWS,
        };
        let (rows, _) = self.list(ctx, filter, page).await?;
        let row = |agent: &Agent| rows.iter().find(|row| row.id == agent.session).cloned();
        let agents = agents.into_iter();
        Ok(agents
            .map(|agent| {
                let row = row(&agent);
                (agent, row)
            })
            .collect())
    }
}
