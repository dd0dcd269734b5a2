//! The pieces of a session whose turn another replica works on, as far as they are relayed to the watchers here.
//!
//! The other replica's stream and the log come by different ways, so a piece may come after the event that replaces it,
//! and again after the stream was made anew. Neither is shown to a late watcher.

use shared_types::{Event, TurnId};

use super::UnderWay;
use crate::{Live, feed::subscription::Replaced};

/// See the module.
#[derive(Default)]
pub(super) struct Elsewhere {
    is_relayed: bool,
    under_way: UnderWay,
    replaced: Replaced,
    broken_off: Option<BrokenOff>,
}

/// An answer whose relay ended in its middle. The next worker of its turn counts the attempts at the step from 1 again;
/// watchers take only a higher attempt for a new beginning.
struct BrokenOff {
    turn: TurnId,
    step: u32,
    attempt: u32,
}

impl Elsewhere {
    /// True from the first piece or event of a relay until its end.
    pub(super) fn is_relayed(&self) -> bool {
        self.is_relayed
    }

    pub(super) fn pieces(&self) -> Vec<Live> {
        self.under_way.pieces()
    }

    /// Takes a piece, and returns it as it is to be shown; `None` where the log has replaced it.
    pub(super) fn add(&mut self, mut live: Live) -> Option<Live> {
        self.is_relayed = true;
        if self.replaced.covers(&live) {
            return None;
        }
        self.begin_again(&mut live);
        self.under_way.add(&live);
        Some(live)
    }

    /// Counts the attempt of a new worker on from that of a worker that was lost.
    pub(super) fn begin_again(&self, live: &mut Live) {
        let (Live::Said {
            turn,
            step,
            attempt,
            ..
        }
        | Live::TakenBack {
            turn,
            step,
            attempt,
        }) = live
        else {
            return;
        };
        if let Some(lost) = &self.broken_off
            && (lost.turn, lost.step) == (*turn, *step)
        {
            *attempt += lost.attempt;
        }
    }

    pub(super) fn settle(&mut self, event: &Event) {
        self.is_relayed = true;
        self.replaced.note(event);
        self.under_way.settle(event);
    }

    /// Ends the relay: the pieces came from a worker that works no longer.
    pub(super) fn end(&mut self) {
        self.is_relayed = false;
        let said = self.under_way.said.first().cloned();
        let last = said.or(self.under_way.taken_back.take());
        if let Some(
            Live::Said {
                turn,
                step,
                attempt,
                ..
            }
            | Live::TakenBack {
                turn,
                step,
                attempt,
            },
        ) = last
        {
            self.broken_off = Some(BrokenOff {
                turn,
                step,
                attempt,
            });
        }
        self.under_way = UnderWay::default();
        self.replaced = Replaced::default();
    }
}

#[cfg(test)]
mod tests;
