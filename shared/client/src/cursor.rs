//! The state of a follower of a session: a pure state machine, which outlives connections. It passes on each event once
//! and in order, and text and output without repetition.
//!
//! - Events have numbers. The cursor drops a known number. A jump breaks the connection, and the next connection asks
//!   for everything after the last event.
//! - Text and output have offsets, and the known part is cut off.
//! - Text that lies ahead waits until the gap is filled. Its amount is bounded; the recorded answer holds the rest.
//! - Output that lies ahead follows output that the server left out; its offset shows the gap.
//! - A gap that the server announces moves the offset.
//! - Once the log has settled a piece of work, later messages about its progress are dropped.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use shared_api::{Live, Problem, ServerMessage};
use shared_types::{Event, OperationId, SessionEvent, SessionId, TurnId};

use crate::{Followed, http::heard};

mod pieces;
#[cfg(test)]
mod tests;

/// The most live items that wait for the log to catch up. Further ones are dropped, because the log will hold their
/// results.
const MAX_EARLY: usize = 1024;

/// Texts in flight at a time; the oldest is forgotten.
const MAX_TEXTS: usize = 64;

/// Pieces of one text that wait for the gap before them.
const MAX_PIECES_AHEAD: usize = 256;

/// Output streams in flight at a time; the oldest is forgotten.
const MAX_OUTPUTS: usize = 256;

/// Turns whose end is remembered, so that a straggler of theirs is known as such.
const MAX_SETTLED: usize = 64;

/// Ended calls of one turn that are remembered.
const MAX_ENDED_CALLS: usize = 1024;

/// The events, texts and output that a follower has already.
#[derive(Debug)]
pub struct Cursor {
    session: SessionId,
    seq: u64,
    caught_up: bool,
    early: Vec<Live>,
    texts: VecDeque<TextProgress>,
    outputs: VecDeque<OutputEnd>,
    settled: VecDeque<(TurnId, SettledWork)>,
}

/// The reason why a connection cannot be read on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BrokenOrder {
    /// Events are missing.
    #[error("event {next} came after event {have}")]
    Gap {
        /// The last event before the gap.
        have: u64,
        /// The first one behind it.
        next: u64,
    },
    /// The server said no.
    #[error("{}", .0.detail)]
    Problem(Problem),
}

#[derive(Debug)]
struct TextProgress {
    place: AnswerPart,
    attempt: u32,
    end: u64,
    ahead: BTreeMap<u64, String>,
}

/// A part of an answer. A server of an earlier release numbers no parts, and then the voice tells them apart.
#[derive(Debug, Clone, Copy, PartialEq)]
struct AnswerPart {
    voice: Voice,
    turn: TurnId,
    step: u32,
    part: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Voice {
    Reasoning,
    Text,
}

#[derive(Debug)]
struct OutputEnd {
    turn: TurnId,
    operation: OperationId,
    stream: String,
    end: u64,
}

/// The work of a turn that the log has settled.
#[derive(Debug, Default)]
struct SettledWork {
    ended: bool,
    answered: u32,
    calls: BTreeSet<(u32, u32)>,
}

impl Cursor {
    /// A follower that has the events up to `after` and nothing that is under way.
    pub fn new(session: SessionId, after: u64) -> Self {
        Self {
            session,
            seq: after,
            caught_up: false,
            early: Vec::new(),
            texts: VecDeque::new(),
            outputs: VecDeque::new(),
            settled: VecDeque::new(),
        }
    }

    /// The number of the last event that the follower has: what to subscribe with.
    pub fn after(&self) -> u64 {
        self.seq
    }

    /// Begins a new connection. Live items come again after the missing events.
    pub fn connected(&mut self) {
        self.caught_up = false;
        self.early.clear();
    }

    /// Takes a message, and adds its new parts to `items`.
    ///
    /// # Errors
    /// Fails when the connection is no longer usable. The cursor stays valid for the next one.
    pub fn accept(
        &mut self,
        message: ServerMessage,
        items: &mut Vec<Followed>,
    ) -> Result<(), BrokenOrder> {
        match message {
            ServerMessage::Event { session, event } if session == self.session => {
                self.event(event, items)
            }
            ServerMessage::CaughtUp { session, seq } if session == self.session => {
                self.caught_up(seq, items)
            }
            ServerMessage::Live { session, live } if session == self.session => {
                if self.caught_up {
                    items.extend(self.live(live).map(Followed::Live));
                } else if self.early.len() < MAX_EARLY {
                    self.early.push(live);
                }
                Ok(())
            }
            ServerMessage::Problem { session, problem }
                if session.is_none_or(|session| session == self.session) =>
            {
                Err(BrokenOrder::Problem(heard(problem)))
            }
            _ => Ok(()),
        }
    }

    fn event(
        &mut self,
        event: Box<SessionEvent>,
        items: &mut Vec<Followed>,
    ) -> Result<(), BrokenOrder> {
        if event.seq <= self.seq {
            return Ok(());
        }
        self.reaches(event.seq - 1, event.seq)?;
        self.seq = event.seq;
        if let Some(known) = event.known() {
            self.settle(known);
        }
        items.push(Followed::Event(event));
        Ok(())
    }

    fn caught_up(&mut self, seq: u64, items: &mut Vec<Followed>) -> Result<(), BrokenOrder> {
        self.reaches(seq, seq)?;
        self.caught_up = true;
        items.push(Followed::CaughtUp { seq: self.seq });
        for live in std::mem::take(&mut self.early) {
            items.extend(self.live(live).map(Followed::Live));
        }
        Ok(())
    }

    fn reaches(&self, seq: u64, next: u64) -> Result<(), BrokenOrder> {
        if self.seq < seq {
            return Err(BrokenOrder::Gap {
                have: self.seq,
                next,
            });
        }
        Ok(())
    }

    fn live(&mut self, live: Live) -> Option<Live> {
        match live {
            Live::Text { .. } | Live::Reasoning { .. } => self.text(live),
            Live::TakenBack {
                turn,
                step,
                attempt,
            } => self.take_back(turn, step, attempt).then_some(live),
            Live::Output { .. } => self.output(live),
            Live::Gap { .. } => self.gap(live),
            Live::Notice { turn, .. } => {
                let ended = self.settled_of(turn).is_some_and(|settled| settled.ended);
                (!ended).then_some(live)
            }
        }
    }

    /// The rest of a piece of the answer that is new, with what waited behind it.
    fn text(&mut self, mut live: Live) -> Option<Live> {
        let (voice, (turn, step, part), attempt, offset, text) = match &mut live {
            Live::Text {
                turn,
                step,
                attempt,
                part,
                offset,
                text,
            } => (Voice::Text, (*turn, *step, *part), *attempt, offset, text),
            Live::Reasoning {
                turn,
                step,
                attempt,
                part,
                offset,
                text,
            } => (
                Voice::Reasoning,
                (*turn, *step, *part),
                *attempt,
                offset,
                text,
            ),
            _ => return Some(live),
        };
        if self
            .settled_of(turn)
            .is_some_and(|settled| settled.ended || step <= settled.answered)
        {
            return None;
        }
        let place = AnswerPart {
            voice,
            turn,
            step,
            part,
        };
        // A later attempt makes all parts of the earlier ones void.
        let of_step = self.texts.iter().filter(|known| known.is_of(turn, step));
        let newest = of_step.map(|known| known.attempt);
        match newest.max() {
            Some(newest) if attempt < newest => return None,
            Some(newest) if attempt > newest => self.texts.retain(|known| !known.is_of(turn, step)),
            _ => {}
        }
        let known = self.texts.iter().position(|known| known.place == place);
        let known = known.unwrap_or_else(|| {
            if self.texts.len() == MAX_TEXTS {
                self.texts.pop_front();
            }
            self.texts.push_back(TextProgress::new(place, attempt));
            self.texts.len() - 1
        });
        (*offset, *text) = self.texts[known].take(*offset, std::mem::take(text))?;
        Some(live)
    }

    /// Forgets what an attempt said, and takes no more of it; whether there was any of it.
    fn take_back(&mut self, turn: TurnId, step: u32, attempt: u32) -> bool {
        let said = self
            .texts
            .iter_mut()
            .filter(|text| text.is_of(turn, step) && text.attempt <= attempt);
        let count = said
            .map(|text| *text = TextProgress::new(text.place, attempt.saturating_add(1)))
            .count();
        let settled = self.settled_of(turn);
        let is_settled = settled.is_some_and(|settled| settled.ended || step <= settled.answered);
        count > 0 && !is_settled
    }

    /// The part of a piece of output that is new.
    fn output(&mut self, live: Live) -> Option<Live> {
        let Live::Output {
            turn,
            step,
            ordinal,
            operation,
            stream,
            offset,
            text,
            bytes,
        } = live
        else {
            return Some(live);
        };
        let have = self.end_of(turn, step, ordinal, operation, &stream)?;
        let end = offset.saturating_add(bytes);
        if end <= *have {
            return None;
        }
        let known = have.saturating_sub(offset);
        *have = end;
        Some(Live::Output {
            turn,
            step,
            ordinal,
            operation,
            stream,
            offset: offset.saturating_add(known),
            text: pieces::without(text, bytes, known),
            bytes: bytes - known,
        })
    }

    /// The part of a gap that is new.
    fn gap(&mut self, mut live: Live) -> Option<Live> {
        let Live::Gap {
            turn,
            step,
            ordinal,
            operation,
            stream,
            from,
            to,
        } = &mut live
        else {
            return Some(live);
        };
        let have = self.end_of(*turn, *step, *ordinal, *operation, stream)?;
        if *to <= *have {
            return None;
        }
        *from = (*from).max(*have);
        *have = *to;
        Some(live)
    }

    /// The known end of the output of a call; `None` if the call has ended.
    fn end_of(
        &mut self,
        turn: TurnId,
        step: u32,
        ordinal: u32,
        operation: OperationId,
        stream: &str,
    ) -> Option<&mut u64> {
        let settled = self.settled_of(turn);
        if settled.is_some_and(|settled| settled.has_ended(step, ordinal)) {
            return None;
        }
        let known = self
            .outputs
            .iter()
            .position(|known| known.operation == operation && known.stream == stream);
        let place = known.unwrap_or_else(|| {
            if self.outputs.len() == MAX_OUTPUTS {
                self.outputs.pop_front();
            }
            self.outputs.push_back(OutputEnd {
                turn,
                operation,
                stream: stream.to_owned(),
                end: 0,
            });
            self.outputs.len() - 1
        });
        Some(&mut self.outputs[place].end)
    }

    fn settled_of(&self, turn: TurnId) -> Option<&SettledWork> {
        let found = self.settled.iter().find(|(known, _)| *known == turn);
        found.map(|(_, settled)| settled)
    }

    fn settle(&mut self, event: &Event) {
        let Some(turn) = event.turn() else { return };
        if self.settled_of(turn).is_none() {
            if self.settled.len() == MAX_SETTLED {
                self.settled.pop_front();
            }
            self.settled.push_back((turn, SettledWork::default()));
        }
        let found = self.settled.iter_mut().find(|(known, _)| *known == turn);
        let (_, settled) = found.expect("it was there or was added above");
        match event {
            Event::AnswerRecorded { step, .. } => {
                settled.answered = settled.answered.max(*step);
                settled.calls.retain(|(of, _)| of >= step);
                self.texts
                    .retain(|text| text.place.turn != turn || text.place.step > *step);
            }
            Event::CallEnded { step, ordinal, .. } if settled.calls.len() < MAX_ENDED_CALLS => {
                settled.calls.insert((*step, *ordinal));
            }
            Event::TurnEnded { .. } => {
                settled.ended = true;
                settled.calls.clear();
                self.texts.retain(|text| text.place.turn != turn);
                self.outputs.retain(|output| output.turn != turn);
            }
            _ => {}
        }
    }
}

impl SettledWork {
    fn has_ended(&self, step: u32, ordinal: u32) -> bool {
        self.ended || step < self.answered || self.calls.contains(&(step, ordinal))
    }
}

impl TextProgress {
    fn new(place: AnswerPart, attempt: u32) -> Self {
        Self {
            place,
            attempt,
            end: 0,
            ahead: BTreeMap::new(),
        }
    }

    fn is_of(&self, turn: TurnId, step: u32) -> bool {
        (self.place.turn, self.place.step) == (turn, step)
    }

    fn take(&mut self, offset: u64, text: String) -> Option<(u64, String)> {
        if offset > self.end {
            if self.ahead.len() < MAX_PIECES_AHEAD {
                let longest = self.ahead.entry(offset).or_default();
                if longest.len() < text.len() {
                    *longest = text;
                }
            }
            return None;
        }
        let start = self.end;
        let mut new = self.append(offset, text);
        while let Some(next) = self.ahead.first_entry()
            && *next.key() <= self.end
        {
            let (offset, text) = next.remove_entry();
            new.push_str(&self.append(offset, text));
        }
        (!new.is_empty()).then_some((start, new))
    }

    /// The part of `text` behind the end, which moves there.
    fn append(&mut self, offset: u64, mut text: String) -> String {
        let known = usize::try_from(self.end - offset).unwrap_or(usize::MAX);
        if known >= text.len() || !text.is_char_boundary(known) {
            return String::new();
        }
        text.drain(..known);
        self.end = self.end.saturating_add(text.len() as u64);
        text
    }
}
