//! The breaker: after several failures in a row a vendor is left alone for a while.
//!
//! Three failures open it, and it stays open for a time that doubles with each opening. Then one request probes the
//! vendor: an answer closes the breaker, a failure opens it again. A key that is refused opens it at once, because
//! the next request would be refused too. One breaker serves all who use the same account and model.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::{sync::mpsc, time::Instant};

use crate::{Answer, Failure, ModelError, ModelEvent, ModelInfo, ModelRequest, Vendor};

/// Failures in a row that open it.
const FAILURES: u32 = 3;

/// The time for which it stays open the first time.
const OPEN_FIRST: Duration = Duration::from_secs(15);

/// The longest time for which it stays open.
const OPEN_LONGEST: Duration = Duration::from_secs(5 * 60);

/// A vendor that is left alone after failures.
pub struct Breaker {
    vendor: Arc<dyn Vendor>,
    state: Mutex<BreakerState>,
}

#[derive(Default)]
struct BreakerState {
    /// Failures since the last answer.
    failures: u32,
    /// The number of times that it was opened since the last answer.
    opened: u32,
    /// Open until then.
    open_until: Option<Instant>,
    /// True while one request probes the vendor.
    is_probed: bool,
    /// The last failure, since the last answer.
    last: Option<ModelError>,
}

/// The state of a vendor, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It answers, or was not asked yet.
    Ready,
    /// It is left alone for so long, after this failure.
    CoolingDown(Duration, ModelError),
    /// The account is refused, for this reason.
    Refused(ModelError),
}

impl Breaker {
    /// Guards this vendor.
    pub fn new(vendor: Arc<dyn Vendor>) -> Self {
        Self {
            vendor,
            state: Mutex::default(),
        }
    }

    /// The state of the vendor.
    pub fn health(&self) -> Health {
        self.with(|state| match &state.last {
            Some(error) if is_of_account(error) => Health::Refused(error.clone()),
            Some(error) => match state.left() {
                Some(left) => Health::CoolingDown(left, error.clone()),
                None => Health::Ready,
            },
            None => Health::Ready,
        })
    }

    /// Takes up that the vendor has answered on another connection: its failures are past.
    pub fn recovered(&self) {
        self.with(|state| *state = BreakerState::default());
    }

    fn with<T>(&self, act: impl FnOnce(&mut BreakerState) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl BreakerState {
    /// The time for which it is still open.
    fn left(&self) -> Option<Duration> {
        let left = self.open_until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// The time for which no request is let through.
    fn wait(&self) -> Option<Duration> {
        // Another request probes it just now.
        let while_probed = self.is_probed.then_some(Duration::from_secs(1));
        self.left().or(while_probed)
    }

    /// Lets a request through, or says why not and for how long.
    fn enter(&mut self) -> Result<(), Failure> {
        let (Some(_), Some(last)) = (self.open_until, &self.last) else {
            return Ok(());
        };
        let Some(wait) = self.wait() else {
            self.is_probed = true;
            return Ok(());
        };
        Err(Failure {
            error: last.clone(),
            retry_after: Some(wait),
            is_unasked: true,
        })
    }

    fn failed(&mut self, failure: &Failure) {
        self.is_probed = false;
        // A runner that is offline costs no wait, and may be back at once.
        if failure.is_unasked {
            return;
        }
        let is_of_account = is_of_account(&failure.error);
        // A refusal of one conversation says nothing of the vendor.
        if !is_of_account && !failure.error.is_passing() {
            return;
        }
        self.failures += 1;
        self.last = Some(failure.error.clone());
        if is_of_account || self.failures >= FAILURES {
            let doubled = OPEN_FIRST.saturating_mul(1 << self.opened.min(8));
            let asked = failure.retry_after.unwrap_or_default();
            let open = doubled.max(asked).min(OPEN_LONGEST);
            self.opened += 1;
            self.open_until = Some(Instant::now() + open);
        }
    }
}

/// True for a failure that every request with this account has.
fn is_of_account(error: &ModelError) -> bool {
    matches!(
        error,
        ModelError::Unauthenticated(_) | ModelError::QuotaExhausted(_)
    )
}

/// Ends a probe whose caller stopped waiting: it says nothing of the vendor.
struct Probe<'a>(&'a Breaker);

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        self.0.with(|state| state.is_probed = false);
    }
}

#[async_trait]
impl Vendor for Breaker {
    fn info(&self) -> ModelInfo {
        self.vendor.info()
    }

    fn is_left_alone(&self) -> bool {
        self.with(|state| state.wait().is_some())
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, Failure> {
        self.with(BreakerState::enter)?;
        let probe = Probe(self);
        let answer = self.vendor.attempt(request, events).await;
        drop(probe);
        match &answer {
            Ok(_) => self.recovered(),
            Err(failure) => self.with(|state| state.failed(failure)),
        }
        answer
    }
}

#[cfg(test)]
mod tests;
