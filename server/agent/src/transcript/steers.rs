//! The messages that joined a turn while it worked, and their places in the conversation.
//!
//! The log alone decides the place: `steers.taken` names the step before whose answer the model is sent them. Such a
//! message belongs to that step, so that it is no part of its own among the parts that are counted.

use shared_types::{Event, TurnId, event::Parts};

use super::TurnLog;

/// A message that joined a turn while it worked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Steer {
    /// Its number among those of the turn, from 1.
    pub(crate) number: u32,
    pub(crate) parts: Parts,
    /// Most bytes that are sent of it.
    pub(crate) longest: usize,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    /// None yet.
    Untaken,
    /// Before the answer of this step.
    Before(u32),
    /// In the message of another turn.
    Elsewhere(TurnId),
}

impl TurnLog {
    /// The number of the last steer that joined it, as far as is known; 0 without one.
    pub(crate) fn last_steer(&self) -> u32 {
        self.steers.last().map_or(0, |steer| steer.number)
    }

    /// The number of the last steer that has no place yet.
    pub(crate) fn untaken(&self) -> Option<u32> {
        let mut newest = self.steers.iter().rev();
        let untaken = newest.find(|steer| steer.place == Place::Untaken);
        untaken.map(|steer| steer.number)
    }

    /// The steers that the model is sent right before the answer of this step.
    pub(crate) fn steers_before(&self, step: u32) -> impl Iterator<Item = &Steer> {
        let steers = self.steers.iter();
        steers.filter(move |steer| steer.place == Place::Before(step))
    }

    /// The steers that the model is sent behind all steps: those that were taken for an answer that has not come, and,
    /// once the turn has ended, those that it did not take.
    pub(crate) fn steers_behind(&self) -> impl Iterator<Item = &Steer> {
        let last = self.steps.last().map_or(0, |step| step.number);
        self.steers.iter().filter(move |steer| match steer.place {
            Place::Untaken => self.ended.is_some(),
            Place::Before(step) => step > last,
            Place::Elsewhere(_) => false,
        })
    }

    /// Takes in an event about steers; where something is recorded twice, the first stands.
    pub(super) fn apply_steers(&mut self, event: &Event) {
        match event {
            Event::InputSteered { number, parts, .. } if *number > self.last_steer() => {
                self.steers.push(Steer {
                    number: *number,
                    parts: parts.clone(),
                    longest: usize::MAX,
                    place: Place::Untaken,
                });
            }
            Event::SteersTaken {
                step,
                through,
                into,
                ..
            } => {
                let place = into.map_or(Place::Before(*step), Place::Elsewhere);
                let untaken =
                    |steer: &&mut Steer| steer.number <= *through && steer.place == Place::Untaken;
                for steer in self.steers.iter_mut().filter(untaken) {
                    steer.place = place;
                }
            }
            _ => {}
        }
    }
}
