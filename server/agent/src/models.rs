//! The port to the models of a session.

use std::sync::Arc;

use async_trait::async_trait;
use server_llm::Model;

/// The models that may answer in a session.
#[async_trait]
pub trait ModelSource: Send + Sync {
    /// The models to ask for the next answer: the one that is chosen now, and then those that answer in its place where
    /// it does not. `of_turn` is the name that was chosen when the turn began.
    ///
    /// # Errors
    /// The chosen model cannot be used; the text says what to do.
    async fn chain(&self, of_turn: Option<&str>) -> Result<Vec<Arc<dyn Model>>, String>;

    /// True if the session's user may use the model of this name now.
    async fn offers(&self, model: &str) -> bool {
        self.chain(Some(model)).await.is_ok()
    }

    /// The operator's text with which the system prompt begins now; `None` for Gantry's own.
    fn base_prompt(&self) -> Option<Arc<str>> {
        None
    }
}
