//! Measures model calls, all their attempts together: the outermost layer of a model.

use async_trait::async_trait;
use shared_telemetry::server::{
    MODEL_CACHED_TOKENS, MODEL_REQUEST_DURATION, MODEL_REQUESTS, MODEL_TOKENS,
};
use tokio::{sync::mpsc, time::Instant};

use crate::{Answer, Model, ModelError, ModelEvent, ModelInfo, ModelRequest};

/// A model whose calls are measured.
#[derive(Debug)]
pub struct Measured<M>(M);

impl<M> Measured<M> {
    /// Measures the calls of this model.
    pub fn new(model: M) -> Self {
        Self(model)
    }
}

#[async_trait]
impl<M: Model> Model for Measured<M> {
    fn info(&self) -> ModelInfo {
        self.0.info()
    }

    async fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let mut call = Call {
            began: Instant::now(),
            outcome: "cancelled",
        };
        let answered = self.0.answer(request, events).await;
        call.outcome = match &answered {
            Ok(_) => "ok",
            Err(error) => word(error),
        };
        if let Ok(Answer { usage, .. }) = &answered {
            MODEL_TOKENS.add(&["input"], usage.input);
            MODEL_TOKENS.add(&["output"], usage.output);
            MODEL_CACHED_TOKENS.add(&[], usage.cached);
        }
        answered
    }
}

/// A call that is measured when it ends, also where nobody waits for its answer any more.
struct Call {
    began: Instant,
    outcome: &'static str,
}

impl Drop for Call {
    fn drop(&mut self) {
        MODEL_REQUESTS.add(&[self.outcome], 1);
        MODEL_REQUEST_DURATION.record(&[], self.began.elapsed().as_secs_f64());
    }
}

fn word(error: &ModelError) -> &'static str {
    match error {
        ModelError::Unauthenticated(_) => "unauthenticated",
        ModelError::QuotaExhausted(_) => "quota_exhausted",
        ModelError::Overflow(_) => "overflow",
        ModelError::Refused(_) => "refused",
        ModelError::RateLimited(_) => "rate_limited",
        ModelError::Unavailable(_) => "unavailable",
        ModelError::Broken(_) => "broken",
        ModelError::TimedOut(_) => "timed_out",
    }
}
