//! Repeats what is worth repeating: the layer between a vendor's wire format and the engine.
//!
//! Whether and when to repeat is one pure function, [`next_delay`]. An answer that broke off is
//! repeated whole: its text starts again under the next attempt's number.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use shared_telemetry::server::MODEL_RETRIES;
use shared_types::{Entropy, backoff::full_jitter, human};
use tokio::sync::mpsc;

use crate::{Answer, Model, ModelError, ModelEvent, ModelInfo, ModelRequest};

/// A wire format: makes one attempt, and knows nothing of repetition.
#[async_trait]
pub trait Vendor: Send + Sync {
    /// Who answers, as people see it.
    fn info(&self) -> ModelInfo;

    /// One attempt. Sends only [`ModelEvent::Reasoning`] and [`ModelEvent::Text`]; dropping the future cancels it.
    ///
    /// # Errors
    /// If it did not lead to a whole answer.
    async fn attempt(
        &self,
        request: &ModelRequest,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, Failure>;
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What the user is told if it was the last attempt.
    pub error: ModelError,
    /// How long the vendor asked to wait.
    pub retry_after: Option<Duration>,
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self {
            error,
            retry_after: None,
        }
    }
}

/// How often and how patiently to repeat.
#[derive(Debug, Clone)]
pub struct RetryOptions {
    /// Attempts in all, the first included.
    pub attempts: u32,
    /// The longest first delay; it doubles with each attempt.
    pub first_delay: Duration,
    /// The longest delay that is drawn.
    pub longest_delay: Duration,
    /// The longest time that the vendor may ask to wait; the user is told of a longer one.
    pub longest_asked: Duration,
}

impl Default for RetryOptions {
    /// 5 attempts, 1 s to 30 s, and up to 60 s where the vendor asks for it.
    fn default() -> Self {
        Self {
            attempts: 5,
            first_delay: Duration::from_secs(1),
            longest_delay: Duration::from_secs(30),
            longest_asked: Duration::from_secs(60),
        }
    }
}

/// How much longer the first delay is for a vendor that counts by the minute.
const BY_THE_MINUTE: u32 = 8;

/// A vendor's wire format as a [`Model`].
#[derive(Debug)]
pub struct Retry<V> {
    vendor: V,
    options: RetryOptions,
    entropy: Arc<dyn Entropy>,
}

impl<V: Vendor> Retry<V> {
    /// Repeats the vendor's attempts; `entropy` spreads the delays.
    pub fn new(vendor: V, options: RetryOptions, entropy: Arc<dyn Entropy>) -> Self {
        Self {
            vendor,
            options,
            entropy,
        }
    }

    fn dice(&self) -> u64 {
        let mut bytes = [0; 8];
        self.entropy.fill(&mut bytes);
        u64::from_be_bytes(bytes)
    }
}

#[async_trait]
impl<V: Vendor> Model for Retry<V> {
    fn info(&self) -> ModelInfo {
        self.vendor.info()
    }

    async fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let mut number = 1;
        loop {
            // Here and below: nobody has to listen for the answer to be wanted.
            let _ = events.send(ModelEvent::Attempt { number }).await;
            let failure = match self.vendor.attempt(&request, &events).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let Some(after) = next_delay(&self.options, number, &failure, self.dice()) else {
                return Err(told(&self.options, failure, number));
            };
            let reason = failure.error.message().to_owned();
            tracing::debug!(
                attempt = number,
                delay_ms = after.as_millis(),
                reason,
                "the model did not answer, trying again"
            );
            let _ = events.send(ModelEvent::Retrying { after, reason }).await;
            tokio::time::sleep(after).await;
            MODEL_RETRIES.add(&[], 1);
            number += 1;
        }
    }
}

/// How long to wait before the next attempt; `None` where another one is not worth it.
///
/// The delay is drawn by `dice` with full jitter, so that many turns that failed together do not
/// come back together. It is never shorter than what the vendor asked for; a
/// vendor that asks for more than [`RetryOptions::longest_asked`] is not waited for. One that is asked too
/// often, and names no time, most often counts by the minute: so all attempts together take about one.
pub fn next_delay(
    options: &RetryOptions,
    attempt: u32,
    failure: &Failure,
    dice: u64,
) -> Option<Duration> {
    let asked = failure.retry_after.unwrap_or_default();
    if attempt >= options.attempts || !failure.error.is_passing() || asked > options.longest_asked {
        return None;
    }
    let drawn =
        |first: Duration, dice: u64| full_jitter(first, options.longest_delay, attempt, dice);
    let first = options.first_delay;
    Some(match (&failure.error, failure.retry_after) {
        (ModelError::RateLimited(_), None) => {
            let first = first.saturating_mul(BY_THE_MINUTE);
            (drawn(first, u64::MAX) + drawn(first, dice)) / 2
        }
        _ => drawn(first, dice).max(asked),
    })
}

/// The error of the last attempt, with what the user cannot see of it.
fn told(options: &RetryOptions, failure: Failure, attempts: u32) -> ModelError {
    let asked = failure.retry_after.filter(|_| failure.error.is_passing());
    let error = match asked.filter(|asked| *asked > options.longest_asked) {
        None => failure.error,
        Some(asked) => failure.error.map(|message| {
            let asked = human::duration(asked);
            format!("the model asks to wait {asked}; send the message again then ({message})")
        }),
    };
    if attempts == 1 {
        return error;
    }
    error.map(|message| format!("{message} (tried {attempts} times)"))
}

#[cfg(test)]
mod tests;
