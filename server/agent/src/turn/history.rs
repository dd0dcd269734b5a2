//! Calls that search the user's other conversations. Nothing is run: the store answers.

use super::{TurnError, site::Site};
use crate::{
    session::LogError,
    tools::{HistoryAsk, Rendered, history},
};

/// Does what is asked.
pub(super) async fn run(site: &Site<'_>, ask: &HistoryAsk) -> Result<Rendered, TurnError> {
    match site.ports.log.search_chats(&ask.query).await {
        Ok(found) => Ok(Rendered::completed(history::hits(
            &found,
            site.result_bytes,
        ))),
        // The turn goes on without it.
        Err(LogError::Unavailable(why)) => Ok(Rendered::failed(why)),
        Err(error) => Err(error.into()),
    }
}
