//! Waits for a store that is away: its database is stopped, or its disk is full.
//!
//! Output that the store does not have yet is nowhere but on the runner, and no reader may be asking for it. So there
//! is no last attempt. A wait ends with the answer, or with the task that waits.

use std::time::Duration;

use tokio::time::sleep;

use crate::bounds::{STORE_PAUSE, STORE_PAUSE_AT_MOST};
use server_records::PortError;

/// The pauses between attempts: each is twice the one before, up to a longest one.
#[derive(Debug)]
pub(super) struct Pauses {
    next: Duration,
    at_most: Duration,
}

impl Pauses {
    pub(super) fn up_to(at_most: Duration) -> Self {
        Self {
            next: STORE_PAUSE.min(at_most),
            at_most,
        }
    }

    /// The pause before the next attempt.
    pub(super) fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.at_most);
        pause
    }
}

/// Repeats a request to the store until it answers.
///
/// # Errors
/// If another try is of no use: see [`PortError::is_passing`].
pub(super) async fn patiently<T, F>(mut ask: impl FnMut() -> F) -> Result<T, PortError>
where
    F: Future<Output = Result<T, PortError>>,
{
    let mut pauses = Pauses::up_to(STORE_PAUSE_AT_MOST);
    let mut is_away = false;
    loop {
        match ask().await {
            Err(error) if error.is_passing() => {
                if !is_away {
                    tracing::warn!(%error, "the store does not answer; it is asked until it does");
                }
                is_away = true;
                sleep(pauses.next()).await;
            }
            answer => {
                if is_away {
                    tracing::info!("the store answers again");
                }
                return answer;
            }
        }
    }
}
