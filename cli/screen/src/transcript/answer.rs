//! The answer that the model gives now, before the log records it.

use std::{collections::VecDeque, time::Duration};

use shared_types::{
    TurnId,
    clean::Clean,
    event::{Part, Parts},
};

use super::{
    item::{Kind, Speech},
    safe,
    store::Store,
};

/// The most text of one live part, in bytes. The log has the rest.
const MOST_LIVE: u64 = 4 << 20;

/// The most live parts of one answer.
const MOST_PARTS: usize = 256;

/// A piece of what the model thinks or says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) turn: TurnId,
    pub(super) step: u32,
    pub(super) attempt: u32,
    pub(super) part: u32,
    pub(super) offset: u64,
    pub(super) text: &'a str,
    pub(super) is_thought: bool,
}

/// The answer that the model gives now.
#[derive(Debug)]
pub(super) struct Answer {
    turn: TurnId,
    step: u32,
    attempt: u32,
    parts: Vec<LivePart>,
}

#[derive(Debug)]
struct LivePart {
    part: u32,
    item: u64,
    is_thought: bool,
    clean: Clean,
    /// The offset behind the last byte that was taken.
    end: u64,
}

impl Answer {
    /// An answer of which nothing was heard.
    pub(super) fn new(piece: &Piece<'_>) -> Self {
        Self {
            turn: piece.turn,
            step: piece.step,
            attempt: piece.attempt,
            parts: Vec::new(),
        }
    }

    pub(super) fn is_of(&self, turn: TurnId, step: u32) -> bool {
        (self.turn, self.step) == (turn, step)
    }

    pub(super) fn turn(&self) -> TurnId {
        self.turn
    }

    /// Takes a piece. A higher attempt begins again; a lower one is void.
    pub(super) fn take(&mut self, piece: &Piece<'_>, store: &mut Store) {
        if piece.attempt < self.attempt {
            return;
        }
        if piece.attempt > self.attempt {
            self.take_back(store);
            self.attempt = piece.attempt;
        }
        let is_same =
            |known: &LivePart| (known.part, known.is_thought) == (piece.part, piece.is_thought);
        let place = match self.parts.iter().position(is_same) {
            Some(place) => place,
            None if self.parts.len() >= MOST_PARTS => return,
            None => {
                self.begin(piece, store);
                self.parts.len() - 1
            }
        };
        let last = self.parts.len() - 1;
        let part = &mut self.parts[place];
        // A part behind which another one began is complete. The log has what is missing.
        if place < last || part.end > MOST_LIVE || piece.offset > part.end {
            return;
        }
        let known = part.end.saturating_sub(piece.offset);
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        if known >= piece.text.len() {
            return;
        }
        let new = &piece.text[piece.text.ceil_char_boundary(known)..];
        part.end = piece.offset.saturating_add(piece.text.len() as u64);
        let new = safe::seen(&part.clean.take(new));
        if !new.is_empty() {
            store.change(part.item, |item| {
                if let Kind::Thought(speech) | Kind::Answer(speech) = &mut item.kind {
                    speech.text.push_str(&new);
                }
            });
        }
    }

    fn begin(&mut self, piece: &Piece<'_>, store: &mut Store) {
        if let Some(before) = self.parts.last() {
            store.change(before.item, |item| item.is_open = false);
        }
        let kind = spoken(piece.is_thought, Speech::default());
        self.parts.push(LivePart {
            part: piece.part,
            item: store.push(Some(piece.turn), true, kind),
            is_thought: piece.is_thought,
            clean: Clean::default(),
            end: 0,
        });
    }

    /// Notes that the attempt broke off: its text and thoughts are void.
    pub(super) fn taken_back(&mut self, attempt: u32, store: &mut Store) {
        if attempt >= self.attempt {
            self.take_back(store);
        }
    }

    fn take_back(&mut self, store: &mut Store) {
        for part in self.parts.drain(..) {
            store.void(part.item);
        }
    }

    /// Takes all of it back.
    pub(super) fn void(mut self, store: &mut Store) {
        self.take_back(store);
    }

    /// Ends it without a record: what was said stays as it is.
    pub(super) fn abandon(self, store: &mut Store) {
        for part in self.parts {
            store.change(part.item, |item| item.is_open = false);
        }
    }
}

/// Puts what the log records of an answer in place of what was heard of it live.
pub(super) fn record(
    turn: TurnId,
    parts: &Parts,
    model_ms: u64,
    live: Option<Answer>,
    store: &mut Store,
) {
    let mut live = live.map(|live| live.parts).unwrap_or_default();
    live.sort_by_key(|part| part.part);
    let mut live = VecDeque::from(live);
    let recorded = recorded(parts);
    // The time of an answer of thoughts alone is theirs.
    let is_one_thought = matches!(&recorded[..], [only] if only.is_thought);
    let took = (is_one_thought && model_ms > 0).then(|| Duration::from_millis(model_ms));
    for Recorded { is_thought, text } in recorded {
        let place = live.iter().position(|part| part.is_thought == is_thought);
        let heard = place.and_then(|place| live.remove(place));
        let rest = match heard {
            Some(part) => settle(part.item, &text, took, store),
            None => Some(text),
        };
        if let Some(text) = rest {
            let speech = Speech {
                text,
                is_void: false,
                took,
            };
            store.push(Some(turn), false, spoken(is_thought, speech));
        }
    }
    for part in live {
        let is_empty = match store.get(part.item).map(|item| &item.kind) {
            Some(Kind::Thought(speech) | Kind::Answer(speech)) => speech.text.trim().is_empty(),
            _ => true,
        };
        match is_empty {
            true => store.change(part.item, |item| item.is_open = false),
            false => store.void(part.item),
        }
    }
}

/// A text or a thought of a recorded answer.
struct Recorded {
    is_thought: bool,
    text: String,
}

/// The texts and thoughts of a recorded answer that show something.
fn recorded(parts: &Parts) -> Vec<Recorded> {
    let spoken = parts.0.iter().filter_map(|part| {
        let (is_thought, text) = match part {
            Part::Text { text } => (false, text),
            Part::Reasoning { text, .. } => (true, text),
            Part::Image { .. } | Part::ToolCall(_) | Part::Opaque { .. } => return None,
        };
        Some(Recorded {
            is_thought,
            text: safe::text(text),
        })
    });
    spoken
        .filter(|spoken| !spoken.text.trim().is_empty())
        .collect()
}

/// Completes an item by the recorded text. Returns the text that has to be shown in another item.
fn settle(number: u64, text: &str, took: Option<Duration>, store: &mut Store) -> Option<String> {
    let item = store.get(number)?;
    let (Kind::Thought(known) | Kind::Answer(known)) = &item.kind else {
        return None;
    };
    match (text.strip_prefix(known.text.as_str()), item.is_open) {
        (Some(_), true) => {
            store.change(number, |item| {
                if let Kind::Thought(speech) | Kind::Answer(speech) = &mut item.kind {
                    text.clone_into(&mut speech.text);
                    speech.took = took;
                }
                item.is_open = false;
            });
            None
        }
        (Some(rest), false) if rest.trim().is_empty() => None,
        (Some(rest), false) => Some(rest.to_owned()),
        (None, _) => {
            store.void(number);
            Some(text.to_owned())
        }
    }
}

fn spoken(is_thought: bool, speech: Speech) -> Kind {
    match is_thought {
        true => Kind::Thought(speech),
        false => Kind::Answer(speech),
    }
}
