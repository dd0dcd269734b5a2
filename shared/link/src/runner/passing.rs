//! The input, resizes and signals of one operation.

use std::collections::VecDeque;

use bytes::Buf as _;
use shared_sandbox::{Control, Input, Request};
use shared_types::{
    Refusal, RefusalCode,
    limits::{INPUT_CHUNK_BYTES, INPUT_WINDOW_BYTES, MAX_CONTROLS_WAITING},
};

use super::record::Takes;
use crate::feed;

/// The state of one operation.
#[derive(Debug, Clone)]
pub(super) struct PassingOrders {
    takes: Takes,
    /// Input below it was passed on.
    passed: u64,
    /// Input below it is taken; absent until that is known, after a restart.
    taken: Option<u64>,
    ended: bool,
    /// The link has yet to learn `taken`, or a refusal.
    owed: Option<Owed>,
    /// Resizes and signals that are not answered, oldest first.
    waiting: VecDeque<u64>,
}

#[derive(Debug, Clone, PartialEq)]
enum Owed {
    Taken,
    Refusal(Refusal),
}

/// The decision about a resize or signal.
#[derive(Debug, PartialEq)]
pub(super) enum PassingDecision {
    /// It is to be done.
    Do,
    /// This is the answer.
    Answer(Result<(), Refusal>),
    /// It is being done: the answer comes when it is.
    Wait,
}

impl PassingOrders {
    /// Of an operation that begins now.
    pub(super) fn begin(request: &Request) -> Self {
        Self {
            taken: Some(0),
            ..Self::found(Takes::of(request))
        }
    }

    /// Of one that began before a restart.
    pub(super) fn found(takes: Takes) -> Self {
        Self {
            takes,
            passed: 0,
            taken: None,
            ended: false,
            owed: None,
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn takes(&self) -> Takes {
        self.takes
    }

    /// A link attached: it receives the offset of the input.
    pub(super) fn attached(&mut self) {
        self.owed = (self.takes.input && self.taken.is_some()).then_some(Owed::Taken);
    }

    /// A piece came: returns what is new of it.
    pub(super) fn input(&mut self, mut piece: Input) -> Option<Input> {
        match self.accept(&piece) {
            Ok(true) => {
                // A repeat is not longer than the piece.
                piece.data.advance((self.passed - piece.offset) as usize);
                piece.offset = self.passed;
                self.passed = self.passed.saturating_add(piece.data.len() as u64);
                self.ended |= piece.end;
                Some(piece)
            }
            Ok(false) => None,
            Err(refusal) => {
                self.owed = Some(Owed::Refusal(refusal));
                None
            }
        }
    }

    /// True if there is something new in a piece.
    fn accept(&self, piece: &Input) -> Result<bool, Refusal> {
        let (offset, data, end) = (piece.offset, &piece.data, piece.end);
        let invalid = |message: String| Err(Refusal::new(RefusalCode::Invalid, message));
        if !self.takes.input {
            return invalid("the operation takes no input; ask for it with the request".into());
        }
        let (Some(taken), true) = (self.taken, offset <= self.passed) else {
            return invalid(format!(
                "input at {offset} leaves bytes out; go on at {}",
                self.passed
            ));
        };
        let up_to = offset.saturating_add(data.len() as u64);
        if data.len() > INPUT_CHUNK_BYTES || up_to > taken.saturating_add(INPUT_WINDOW_BYTES) {
            let message = format!(
                "input up to {up_to} is more than was asked for: {INPUT_CHUNK_BYTES} bytes at once, and {INPUT_WINDOW_BYTES} beyond {taken}"
            );
            return Err(Refusal::new(RefusalCode::ResourceExhausted, message));
        }
        if self.ended && up_to > self.passed {
            return Err(feed::ended(self.passed));
        }
        // An end that lies before what was passed on is a repeat that was cut differently.
        Ok(up_to > self.passed || (end && up_to == self.passed && !self.ended))
    }

    /// Input below this offset is taken. After a restart the first report counts, even if it is
    /// lower.
    pub(super) fn taken(&mut self, up_to: u64) {
        let before = self.taken.unwrap_or(0);
        if self.taken.is_none() {
            self.passed = up_to;
        } else if up_to <= before {
            return;
        }
        self.taken = Some(up_to.max(before));
        self.passed = self.passed.max(up_to);
        if self.takes.input {
            self.owed.get_or_insert(Owed::Taken);
        }
    }

    /// The news about the input for the link; once.
    pub(super) fn tell(&mut self) -> Option<Result<u64, Refusal>> {
        match self.owed.take()? {
            Owed::Taken => self.taken.map(Ok),
            Owed::Refusal(refusal) => Some(Err(refusal)),
        }
    }

    /// A resize or signal came. Which were done before, and what became of them, the supervisor knows:
    /// it lives as long as the process, and this may have begun later.
    pub(super) fn control(&mut self, id: u64, control: Control) -> PassingDecision {
        if self.waiting.contains(&id) {
            return PassingDecision::Wait;
        }
        let refusal = match control {
            Control::Resize(_) if !self.takes.terminal => Refusal::new(
                RefusalCode::Invalid,
                "the operation has no terminal; ask for one with the request",
            ),
            Control::Signal(_) if !self.takes.signals => Refusal::new(
                RefusalCode::Invalid,
                "the operation has no process that a signal could be sent to",
            ),
            _ if self.waiting.len() >= MAX_CONTROLS_WAITING => Refusal::new(
                RefusalCode::ResourceExhausted,
                "too much is waiting to be done to the process: wait for the answers",
            ),
            _ => {
                self.waiting.push_back(id);
                return PassingDecision::Do;
            }
        };
        PassingDecision::Answer(Err(refusal))
    }

    /// A resize or signal was done, or cannot be. Returns `true` if the link may wait for the
    /// answer.
    pub(super) fn controlled(&mut self, id: u64) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| *waiting != id);
        self.waiting.len() < before
    }

    /// It is over: a waiting reader learns that from its end.
    pub(super) fn end(&mut self) {
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests;
