//! The port to the models of a session.

use std::sync::Arc;

use async_trait::async_trait;
use server_llm::{Model, Models};

/// The models that may answer in a session.
#[async_trait]
pub trait ModelSource: Send + Sync {
    /// The models to ask for the next answer: the one that is chosen now, and then those that answer in its place where
    /// it does not. `of_turn` is the name that was chosen when the turn began.
    ///
    /// # Errors
    /// The chosen model cannot be used; the text says what to do.
    async fn chain(&self, of_turn: Option<&str>) -> Result<Vec<Arc<dyn Model>>, String>;
}

/// The models of the operator alone: nothing answers in place of the one that the turn names.
#[async_trait]
impl ModelSource for Models {
    async fn chain(&self, of_turn: Option<&str>) -> Result<Vec<Arc<dyn Model>>, String> {
        let Some(name) = of_turn else {
            return Ok(vec![self.first().clone()]);
        };
        let Some(chosen) = self.named(name) else {
            return Err(format!(
                "the model {name:?}, which is chosen, is not offered any more; choose another for the next \
                 message with: gantry config set model NAME (offered: {})",
                self.names()
            ));
        };
        Ok(vec![chosen.clone()])
    }
}
