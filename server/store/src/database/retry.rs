//! Work that is done again if PostgreSQL ended it in favour of another transaction: two that waited for each other's
//! locks (`40P01`), or a failed serialisation (`40001`). Nothing of it was written. Such an end counts as an error of
//! the database only if the work is not done again.

use std::time::Duration;

use crate::{EnrolRefusal, RedeemRefusal, StoreError};

/// The most tries of a piece of work.
const TRIES: u32 = 5;

/// The pause before the second try; it doubles with each.
const PAUSE: Duration = Duration::from_millis(5);

/// Returns the result of the block, which begins a transaction and commits it. The block may run more than once.
macro_rules! retried {
    ($work:expr) => {{
        let mut tries = $crate::database::Tries::default();
        loop {
            match $crate::database::attempt(async { $work }).await {
                Err(error) if tries.again(&error).await => {}
                done => break done,
            }
        }
    }};
}
pub(crate) use retried;

tokio::task_local! {
    /// Set within work that may be done again.
    static ATTEMPT: ();
}

/// Carries out one attempt at a piece of work.
pub(crate) async fn attempt<T>(work: impl Future<Output = T>) -> T {
    ATTEMPT.scope((), work).await
}

/// True if the current work may be done again.
pub(crate) fn is_attempt() -> bool {
    ATTEMPT.try_with(|()| ()).is_ok()
}

/// The number of times that one piece of work was tried.
#[derive(Debug, Default)]
pub(crate) struct Tries(u32);

/// An error that may hide that another transaction was preferred.
pub(crate) trait Failed {
    fn of_store(&self) -> Option<&StoreError>;
}

impl Tries {
    /// Tells if the work is to be done again, after a pause.
    pub(crate) async fn again(&mut self, error: &impl Failed) -> bool {
        let not_preferred = error.of_store().filter(|error| error.was_not_preferred());
        let Some(not_preferred) = not_preferred else {
            return false;
        };
        self.0 += 1;
        if self.0 >= TRIES {
            not_preferred.count();
            return false;
        }
        tokio::time::sleep(PAUSE * 2_u32.pow(self.0)).await;
        true
    }
}

impl Failed for StoreError {
    fn of_store(&self) -> Option<&StoreError> {
        Some(self)
    }
}

impl Failed for EnrolRefusal {
    fn of_store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl Failed for RedeemRefusal {
    fn of_store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}
