//! The end of a turn whose worker failed too often at the same place.
//!
//! The turn's row keeps the count, so that a restart does not reset it; each event that the worker
//! records does. Only a failure of the turn's own counts: a panic, a log that cannot be read, an
//! event that the store refuses. A store that does not answer never counts: every turn meets it, and
//! none can record anything, its end included. A turn whose user asked to stop it is given up at the
//! first failure.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use server_records::{ClaimedTurn, TurnFailures};
use shared_types::{Event, event::TurnOutcome};

use super::{
    TurnError,
    bench::Traced,
    worker::{Obstacle, Worker},
};

/// Failures in one phase of a turn with which it is given up.
const FAILURES_AT_MOST: u32 = 3;

impl Obstacle {
    /// True if the cause is the turn itself, and not a thing that every turn needs.
    fn is_the_turns_own(&self) -> bool {
        match self {
            Self::Panic
            | Self::Turn(
                TurnError::NotInLog | TurnError::LogRefused(_) | TurnError::Unreadable { .. },
            ) => true,
            Self::Turn(TurnError::StaleEpoch | TurnError::LogUnavailable(_)) => false,
            Self::Store(error) => !error.is_passing(),
        }
    }
}

/// The outcome of a turn whose worker failed too often; none if it is tried again.
fn given_up(failures: &TurnFailures) -> Option<TurnOutcome> {
    match failures {
        TurnFailures {
            cancel_requested: true,
            ..
        } => Some(TurnOutcome::Cancelled),
        TurnFailures { count, .. } if *count >= FAILURES_AT_MOST => Some(TurnOutcome::Failed),
        TurnFailures { .. } => None,
    }
}

/// The reason for the user.
fn reason(failures: &TurnFailures, obstacle: &Obstacle) -> String {
    let why = obstacle.to_string();
    let why = why.strip_prefix("carry on with the turn: ").unwrap_or(&why);
    format!(
        "the server failed {} times at the same place of this turn ({why}); send another message to \
         go on; the server's log tells the cause",
        failures.count
    )
}

impl Worker {
    /// Counts the failure, and ends the turn where that is one too many.
    ///
    /// # Errors
    /// The obstacle, where the turn is to be tried again.
    pub(super) async fn give_up_or_try_again(
        &self,
        turn: &ClaimedTurn,
        obstacle: Obstacle,
    ) -> Result<TurnOutcome, Obstacle> {
        if !obstacle.is_the_turns_own() {
            return Err(obstacle);
        }
        let (turns, id, epoch) = (self.bench.turns.of(self.of), turn.turn.id, turn.epoch);
        let failures = turns.count_failure(id, epoch).await?;
        let Some(outcome) = given_up(&failures) else {
            return Err(obstacle);
        };
        tracing::error!(session.id = %self.of.session, turn.id = %id, error = %obstacle, failures = failures.count, ?outcome, "a turn is given up");
        let reason = (outcome == TurnOutcome::Failed).then(|| reason(&failures, &obstacle));
        let ports = self.ports(turn, Traced::of(&turn.turn));
        let engine = &self.bench.engine;
        let abandoned = engine.abandon_turn(&ports, id, epoch, outcome, reason.clone());
        let error = match AssertUnwindSafe(abandoned).catch_unwind().await {
            Ok(Ok(())) => return Ok(outcome),
            Ok(Err(error)) => Obstacle::Turn(error),
            Err(_) => Obstacle::Panic,
        };
        if !error.is_the_turns_own() {
            return Err(error);
        }
        // What the calls were cannot even be read: the turn ends without their ends.
        let ended = Event::TurnEnded {
            turn: id,
            outcome,
            reason,
        };
        let recorded = ports.log.record(vec![ended]).await;
        recorded.map_err(TurnError::from)?;
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
