//! The forms in which the model is sent the conversation: masked, edited, shortened, compacted.

use std::{collections::HashMap, ops::RangeInclusive, sync::Arc};

use shared_types::{Event, TurnId, event::OfferedServer};

use super::{Call, SentAs, Transcript};

/// The text in place of the oldest parts of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Compacted {
    /// It stands for so many parts.
    pub(crate) gone: u32,
    /// The facts that code carried over.
    pub(crate) carried: Arc<str>,
    /// The summary by the model; may be empty.
    pub(crate) summary: Arc<str>,
}

impl Transcript {
    /// The number of changes so far to what stands before the next answer. A vendor that binds a thought to all before
    /// it takes the thoughts of an answer back only where this number is still that of the answer.
    pub(crate) fn prefix(&self) -> u32 {
        self.shared.prefix
    }

    /// The number of calls, counted from the conversation's oldest, that are sent to the model in
    /// short.
    pub(crate) fn left_out(&self) -> u32 {
        self.shared.left_out
    }

    /// The number of parts, counted from the conversation's oldest, that are not sent to the model
    /// at all.
    pub(crate) fn gone(&self) -> u32 {
        self.shared.gone
    }

    /// The text in place of the oldest parts.
    pub(crate) fn compacted(&self) -> Option<&Compacted> {
        self.shared.compacted.as_ref()
    }

    /// The number of the last call that is not sent at all; 0 if all are.
    pub(crate) fn calls_gone(&self) -> u32 {
        let (mut part, mut last) = (0, 0);
        for turn in &self.turns {
            part += 1;
            for step in &turn.steps {
                part += 1;
                for call in &step.calls {
                    part += 1;
                    if part > self.shared.gone {
                        return last;
                    }
                    last = call.number;
                }
            }
        }
        last
    }

    /// The newest call that has changed the file since, where this one read, wrote or edited one.
    pub(crate) fn stale_by(&self, call: &Call) -> Option<u32> {
        let file = call.file()?;
        let changes = |other: &&Call| {
            let seen = other.file();
            seen.is_some_and(|seen| seen.changed && seen.path == file.path)
        };
        let later = self.calls().filter(|other| other.number > call.number);
        later.filter(changes).last().map(|other| other.number)
    }

    /// Of what there is up to and with this turn, no text is sent with more bytes.
    pub(super) fn shorten(&mut self, through: TurnId, longest: usize) {
        let place = self.turns.iter().rposition(|turn| turn.id == through);
        for turn in &mut self.turns[..place.map_or(0, |place| place + 1)] {
            turn.longest = turn.longest.min(longest);
            for steer in &mut turn.steers {
                steer.longest = steer.longest.min(longest);
            }
            for step in &mut turn.steps {
                step.longest = step.longest.min(longest);
            }
        }
    }

    /// The results of these calls are sent in short from now on.
    pub(super) fn mask(&mut self, numbers: RangeInclusive<u32>) {
        // The newest change of each file.
        let changes: HashMap<String, u32> = self
            .calls()
            .filter_map(|call| Some((call.file()?, call.number)))
            .filter(|(file, _)| file.changed)
            .map(|(file, number)| (file.path.clone(), number))
            .collect();
        let steps = self.turns.iter_mut().flat_map(|turn| &mut turn.steps);
        for call in steps.flat_map(|step| &mut step.calls) {
            if !numbers.contains(&call.number) || call.sent != SentAs::Whole {
                continue;
            }
            let changed = call.file().and_then(|file| changes.get(&file.path));
            call.sent = SentAs::Masked {
                stale_by: changed.copied().filter(|by| *by > call.number),
            };
        }
    }

    /// Takes in an event that changes what the model is sent; leaves others alone.
    pub(super) fn apply_sent(&mut self, event: &Event) {
        match event {
            Event::ToolsOffered { turn, servers } => {
                // The tools stand before the conversation.
                self.shared.prefix += 1;
                let offered: Arc<[OfferedServer]> = servers.as_slice().into();
                self.shared.offered = offered.clone();
                if let Some(turn) = self.turn_mut(*turn) {
                    turn.offered = offered;
                }
            }
            Event::PromptChanged { text, .. } => {
                self.shared.prefix += 1;
                self.shared.base = text.as_deref().map(Arc::from);
            }
            Event::ResultsMasked { turn, calls, .. } => {
                self.keep_sent(*turn);
                self.shared.prefix += 1;
                for range in calls {
                    self.mask(range.first..=range.last);
                }
            }
            Event::ContextEdited {
                turn, call, text, ..
            } => {
                self.keep_sent(*turn);
                self.shared.prefix += 1;
                let mut calls = self.turns.iter_mut().flat_map(|turn| &mut turn.steps);
                let call = calls
                    .find_map(|step| step.calls.iter_mut().find(|known| known.number == *call));
                if let Some(known) = call {
                    known.sent = SentAs::Edited(text.as_str().into());
                }
            }
            Event::ContextCompacted {
                gone,
                carried,
                summary,
                ..
            } => {
                self.shared.prefix += 1;
                self.shared.gone = self.shared.gone.max(*gone);
                self.shared.compacted = Some(Compacted {
                    gone: *gone,
                    carried: carried.as_str().into(),
                    summary: summary.as_str().into(),
                });
            }
            Event::ResultsLeftOut {
                turn,
                through,
                gone,
                longest,
                ..
            } => {
                self.keep_sent(*turn);
                self.shared.prefix += 1;
                self.shared.left_out = self.shared.left_out.max(*through);
                self.shared.gone = self.shared.gone.max(*gone);
                if let Some(longest) = longest {
                    self.shorten(*turn, usize::try_from(*longest).unwrap_or(usize::MAX));
                }
            }
            _ => {}
        }
    }
}
