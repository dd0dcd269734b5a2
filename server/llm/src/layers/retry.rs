//! The repetition of failed attempts: the layer between a vendor's wire format and the engine.
//!
//! One pure function, [`next_delay`], decides whether and when to repeat. An answer that broke off is repeated from its
//! beginning: its text starts again under the next attempt's number.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use shared_telemetry::server::MODEL_RETRIES;
use shared_types::{Entropy, backoff::full_jitter, event::Usage, human};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    Answer, Attempted, Failure, Model, ModelError, ModelEvent, ModelInfo, ModelRequest, Vendor,
};

/// The number of attempts, and the pauses between them.
#[derive(Debug, Clone)]
pub struct RetryOptions {
    /// Attempts in all, the first included.
    pub attempts: u32,
    /// The longest first delay; it doubles with each attempt.
    pub first_delay: Duration,
    /// The longest delay that is drawn.
    pub longest_delay: Duration,
    /// The longest wait that a vendor may demand. A longer one is left to the user.
    pub longest_asked: Duration,
    /// True if another model or key answers when this one does not. Then a vendor that cools down is not waited for.
    pub gives_way: bool,
}

impl Default for RetryOptions {
    /// 5 attempts, 1 s to 30 s, and up to 60 s where the vendor asks for it.
    fn default() -> Self {
        Self {
            attempts: 5,
            first_delay: Duration::from_secs(1),
            longest_delay: Duration::from_secs(30),
            longest_asked: Duration::from_secs(60),
            gives_way: false,
        }
    }
}

/// The factor of the first delay for a vendor that counts by the minute.
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

    fn is_left_alone(&self) -> bool {
        self.options.gives_way && self.vendor.is_left_alone()
    }

    async fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let mut number = 1;
        loop {
            // The answer counts even if no receiver listens, here and below.
            let _ = events.send(ModelEvent::Attempt { number }).await;
            let began = Instant::now();
            let attempt = self.vendor.attempt(&request, &events).await;
            let attempted = attempted(number, began.elapsed(), &attempt);
            if let Some(attempted) = attempted {
                let _ = events.send(ModelEvent::Attempted(attempted)).await;
            }
            let failure = match attempt {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let Some(after) = next_delay(&self.options, number, &failure, self.dice()) else {
                return Err(told(&self.options, failure, number));
            };
            tracing::debug!(
                attempt = number,
                delay_ms = after.as_millis(),
                reason = failure.error.message(),
                "the model did not answer, trying again"
            );
            let info = self.vendor.info();
            let retrying = ModelEvent::Retrying {
                after,
                reason: format!("{} {}", info.place(), failure.error.brief()),
                next: number + 1,
                of: self.options.attempts,
            };
            let _ = events.send(retrying).await;
            tokio::time::sleep(after).await;
            MODEL_RETRIES.add(&[info.provider_label()], 1);
            number += 1;
        }
    }
}

/// The report of an attempt; `None` for one that was not made, because the vendor cools down.
fn attempted(
    number: u32,
    duration: Duration,
    attempt: &Result<Answer, Failure>,
) -> Option<Attempted> {
    let (outcome, usage, first_byte) = match attempt {
        Ok(answer) => ("ok", answer.usage, answer.first_byte),
        Err(failure) if failure.is_unasked => return None,
        Err(failure) => (failure.error.word(), Usage::default(), None),
    };
    Some(Attempted {
        number,
        outcome,
        usage,
        duration,
        first_byte,
    })
}

/// The pause before the next attempt; `None` if there is none.
///
/// - `dice` draws the pause with full jitter, so that many failed turns do not come back together.
/// - It is never shorter than the vendor's demand. A demand of more than [`RetryOptions::longest_asked`] ends the
///   attempts.
/// - A vendor that limits the rate and names no time most often counts by the minute. All attempts together then take
///   about a minute.
pub(crate) fn next_delay(
    options: &RetryOptions,
    attempt: u32,
    failure: &Failure,
    dice: u64,
) -> Option<Duration> {
    let asked = failure.retry_after.unwrap_or_default();
    if failure.is_unasked && options.gives_way {
        return None;
    }
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
            // The demand is the vendor's own, or the server lets it rest.
            let waits = match failure.is_unasked {
                true => format!("the model is left alone for {asked} after its failures"),
                false => format!("the model asks to wait {asked}"),
            };
            format!("{waits}; send the message again then ({message})")
        }),
    };
    if attempts == 1 {
        return error;
    }
    error.map(|message| format!("{message} (tried {attempts} times)"))
}

#[cfg(test)]
mod tests;
