//! What people say to a turn while it works: messages that join it, and the wish that it stops.
//!
//! No worker is told of a message. Each looks for them before it asks the model, and where the store refuses an end
//! because of one. So none waits for longer than the step of now, and none is lost with a worker.

use shared_types::Event;

use super::{Turn, TurnError};
use crate::transcript::TurnLog;

impl Turn<'_> {
    /// Gives the messages that joined the turn their place before the answer of this step. A turn that has reached a
    /// limit takes none: they start the next one.
    pub(super) async fn take_steers(&mut self, step: u32) -> Result<(), TurnError> {
        let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
        if turn.limit.is_some() {
            return Ok(());
        }
        let Some(through) = self.hear_steers().await? else {
            return Ok(());
        };
        let taken = Event::SteersTaken {
            turn: self.id,
            step,
            through,
            into: None,
        };
        self.record(taken).await
    }

    /// Reads the messages that joined the turn since. Returns the number of the last one that has no place yet.
    pub(super) async fn hear_steers(&mut self) -> Result<Option<u32>, TurnError> {
        let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
        let joined = self.ports.log.steers(self.id, turn.last_steer()).await?;
        for event in &joined {
            if let Some(steered) = event.known() {
                self.transcript.apply(steered, event.at);
            }
        }
        Ok(self.transcript.turn(self.id).and_then(TurnLog::untaken))
    }

    /// Notes a wish to stop that was heard, once with its reason as the log tells it.
    pub(super) async fn note_stop(&mut self) -> Result<(), TurnError> {
        let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
        if !self.cancel.is_cancelled() || turn.cancel_requested {
            return Ok(());
        }
        let log = self.ports.log.load().await?;
        let mut events = log
            .iter()
            .filter_map(|event| Some((event.known()?, event.at)));
        let requested = events.find(
            |(event, _)| matches!(event, Event::CancelRequested { turn, .. } if *turn == self.id),
        );
        if let Some((event, at)) = requested {
            self.transcript.apply(event, at);
        }
        self.transcript.note_cancel(self.id);
        Ok(())
    }
}
