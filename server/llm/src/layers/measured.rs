//! Measures and traces model calls, all their attempts together: the outermost layer of a model.

use std::sync::Arc;

use async_trait::async_trait;
use shared_telemetry::{
    server::{MODEL_CACHED_TOKENS, MODEL_REQUEST_DURATION, MODEL_REQUESTS, MODEL_TOKENS},
    traces::Span,
};
use shared_types::{Clock, Timestamp, event::Usage};
use tokio::{sync::mpsc, time::Instant};

use crate::{Answer, CallTrace, Model, ModelError, ModelEvent, ModelInfo, ModelRequest};

/// A model whose calls are measured.
#[derive(Debug)]
pub struct Measured<M> {
    model: M,
    clock: Arc<dyn Clock>,
}

impl<M> Measured<M> {
    /// Measures the calls of this model.
    pub fn new(model: M, clock: Arc<dyn Clock>) -> Self {
        Self { model, clock }
    }
}

#[async_trait]
impl<M: Model> Model for Measured<M> {
    fn info(&self) -> ModelInfo {
        self.model.info()
    }

    fn is_left_alone(&self) -> bool {
        self.model.is_left_alone()
    }

    async fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let mut call = MeasuredCall {
            began: Instant::now(),
            began_at: self.clock.now(),
            clock: &*self.clock,
            outcome: "cancelled",
            trace: request.trace,
            asked: self.model.info(),
            answered: None,
        };
        let answered = self.model.answer(request, events).await;
        call.outcome = match &answered {
            Ok(_) => "ok",
            Err(error) => error.word(),
        };
        if let Ok(Answer { usage, model, .. }) = &answered {
            let provider = call.asked.provider_label();
            MODEL_TOKENS.add(&[provider, "input"], usage.input);
            MODEL_TOKENS.add(&[provider, "output"], usage.output);
            MODEL_CACHED_TOKENS.add(&[provider], usage.cached);
            call.answered = Some((*usage, model.clone()));
        }
        answered
    }
}

/// A call that is measured when it ends, even if its caller has stopped waiting for the answer.
struct MeasuredCall<'a> {
    began: Instant,
    began_at: Timestamp,
    clock: &'a dyn Clock,
    outcome: &'static str,
    trace: Option<CallTrace>,
    asked: ModelInfo,
    /// Its cost, and the model that has answered.
    answered: Option<(Usage, String)>,
}

impl MeasuredCall<'_> {
    /// By the conventions for generative AI
    /// (<https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/>).
    fn span(&self, trace: CallTrace) -> Span {
        let ModelInfo { name, practice, .. } = &self.asked;
        let provider = match (practice, self.asked.provider_label()) {
            (true, _) => "gantry.practice",
            // The vendor is unknown, but speaks OpenAI's API.
            (false, "") => "openai",
            (false, provider) => provider,
        };
        let times = (self.began_at, self.clock.now());
        let span = Span::new(trace.own, format!("chat {name}"), times)
            .of_client()
            .within(trace.parent)
            .after(trace.after)
            .with("gen_ai.operation.name", "chat")
            .with("gen_ai.provider.name", provider)
            .with("gen_ai.request.model", name)
            .failed((self.outcome != "ok").then_some(self.outcome));
        let Some((usage, model)) = &self.answered else {
            return span.with("error.type", self.outcome);
        };
        let number = |count: u64| i64::try_from(count).ok();
        let model = if model.is_empty() { name } else { model };
        span.with("gen_ai.response.model", model)
            .with_number("gen_ai.usage.input_tokens", number(usage.input))
            .with_number("gen_ai.usage.output_tokens", number(usage.output))
    }
}

impl Drop for MeasuredCall<'_> {
    fn drop(&mut self) {
        let provider = self.asked.provider_label();
        MODEL_REQUESTS.add(&[provider, self.outcome], 1);
        MODEL_REQUEST_DURATION.record(&[provider], self.began.elapsed().as_secs_f64());
        if let Some(trace) = self.trace {
            self.span(trace).record();
        }
    }
}
