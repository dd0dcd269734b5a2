//! Going back to before a message: its turn and all later ones are gone, and the rest is as it was before them.
//!
//! The numbers of calls and of changes are given again, because all that names one of those is gone as well. The numbers of
//! tasks are not: a command goes on whatever the conversation is.

use shared_types::TurnId;

use super::{LateEnd, SentAs, Shared, Transcript, TurnLog};

/// The state before a turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Before {
    /// The state that it was handed when it began. All earlier turns have ended by then.
    shared: Option<Box<Shared>>,
    /// The forms in which the turns before it were sent, where it changed one.
    sent: Option<Box<SentBefore>>,
}

/// The forms in which the texts of some turns are sent, in their order.
#[derive(Debug, Clone, Default, PartialEq)]
struct SentBefore {
    longest: Vec<usize>,
    results: Vec<SentAs>,
}

impl Before {
    /// Keeps the state that the turn is handed, unless it has begun before.
    pub(super) fn begins(&mut self, shared: &Shared) {
        self.shared.get_or_insert_with(|| Box::new(shared.clone()));
    }
}

impl Transcript {
    /// Keeps the forms in which what stands before this turn is sent: an event of the turn changes some of them.
    pub(super) fn keep_sent(&mut self, id: TurnId) {
        let Some(place) = self.turns.iter().rposition(|turn| turn.id == id) else {
            return;
        };
        let (before, of) = self.turns.split_at_mut(place);
        if let Some(turn) = of.first_mut() {
            let kept = &mut turn.before.sent;
            kept.get_or_insert_with(|| Box::new(SentBefore::of(before)));
        }
    }

    /// Goes back to before the message of this turn, where it is a part of the conversation.
    pub(super) fn rewind(&mut self, first: TurnId) {
        let Some(place) = self.turns.iter().rposition(|turn| turn.id == first) else {
            return;
        };
        let gone = self.turns.split_off(place);
        let mut shared = gone.iter().filter_map(|turn| turn.before.shared.as_ref());
        if let Some(shared) = shared.next() {
            self.shared = (**shared).clone();
        }
        let mut sent = gone.iter().filter_map(|turn| turn.before.sent.as_ref());
        if let Some(sent) = sent.next() {
            sent.put_back(&mut self.turns);
        }
        let told = gone.into_iter().flat_map(|turn| turn.ended_before);
        let untold = std::mem::take(&mut self.ended);
        let is_known = |end: &LateEnd| self.turns.iter().any(|turn| turn.id == end.turn);
        self.ended = told.chain(untold).filter(is_known).collect();
        let turns = &self.turns;
        let is_known = |turn: TurnId| turns.iter().any(|known| known.id == turn);
        self.tasks
            .retain(|task| task.ended.is_none() || is_known(task.turn));
    }
}

impl SentBefore {
    fn of(turns: &[TurnLog]) -> Self {
        let mut sent = Self::default();
        for turn in turns {
            sent.longest.push(turn.longest);
            sent.longest
                .extend(turn.steers.iter().map(|steer| steer.longest));
            for step in &turn.steps {
                sent.longest.push(step.longest);
                sent.results
                    .extend(step.calls.iter().map(|call| call.sent.clone()));
            }
        }
        sent
    }

    /// Puts the forms back. There are forms of all these turns, and perhaps of later ones.
    fn put_back(&self, turns: &mut [TurnLog]) {
        let (mut longest, mut results) = (self.longest.iter(), self.results.iter());
        for turn in turns {
            let steers = turn.steers.iter_mut().map(|steer| &mut steer.longest);
            let texts = std::iter::once(&mut turn.longest).chain(steers);
            texts
                .zip(&mut longest)
                .for_each(|(text, kept)| *text = *kept);
            for step in &mut turn.steps {
                let text = std::iter::once(&mut step.longest);
                text.zip(&mut longest)
                    .for_each(|(text, kept)| *text = *kept);
                let calls = step.calls.iter_mut().zip(&mut results);
                calls.for_each(|(call, kept)| call.sent = kept.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
