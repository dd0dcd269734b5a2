//! The answer of a model while it is said.

use std::time::Duration;

use server_llm::{Attempted, ModelEvent, Piece, Voice};
use shared_types::{
    TurnId,
    event::{Part, Parts, Usage},
};
use tokio::time::Instant;

use crate::session::{Live, LiveSink};

/// The outcome of an attempt that was stopped in the middle, in the ledger of usage.
pub(super) const STOPPED: &str = "cancelled";

/// Text of a cancelled answer that is kept, and as much of its thoughts, in bytes.
const CANCELLED_TEXT_BYTES: usize = 256 * 1024;

/// The answer of the current attempt as far as it was said, passed on to those who watch.
pub(super) struct Speech<'a> {
    live: &'a dyn LiveSink,
    turn: TurnId,
    step: u32,
    attempt: u32,
    /// The attempts of requests that the model refused before this one.
    attempts_before: u32,
    /// The parts in the order in which they began.
    spoken: Vec<Spoken>,
    /// The attempts that have ended and are not in the ledger yet.
    attempted: Vec<Attempted>,
    /// The beginning of the attempt that has not ended.
    began: Option<Instant>,
    /// True while what is said is no answer for people.
    is_quiet: bool,
}

/// One part of the answer.
struct Spoken {
    part: u32,
    voice: Voice,
    /// The bytes that were passed on.
    offset: u64,
    /// The beginning of it, kept for the case that the turn is cancelled.
    kept: String,
}

impl<'a> Speech<'a> {
    pub(super) fn new(live: &'a dyn LiveSink, turn: TurnId, step: u32) -> Self {
        Self {
            live,
            turn,
            step,
            attempt: 1,
            attempts_before: 0,
            spoken: Vec::new(),
            attempted: Vec::new(),
            began: None,
            is_quiet: false,
        }
    }

    /// Keeps what is said from now on from those who watch, or passes it on again.
    pub(super) fn be_quiet(&mut self, is_quiet: bool) {
        self.is_quiet = is_quiet;
        self.spoken.clear();
    }

    pub(super) fn hear(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Attempt { number } => {
                self.attempt = self.attempts_before + number;
                self.spoken.clear();
                self.began = Some(Instant::now());
            }
            ModelEvent::Said(piece) => {
                let offset = self.say(&piece);
                if self.is_quiet {
                    return;
                }
                self.live.publish(Live::Said {
                    turn: self.turn,
                    step: self.step,
                    attempt: self.attempt,
                    offset,
                    piece,
                });
            }
            ModelEvent::Retrying {
                after,
                reason,
                next,
                of,
            } => {
                self.take_back();
                let after = seconds(after);
                self.notice(format!(
                    "{reason}; trying again in {after} ({next} of {of})"
                ));
            }
            ModelEvent::Waiting => self.notice(
                "the model is asked as often at the same time as your organisation may; waiting"
                    .to_owned(),
            ),
            ModelEvent::TakenBack => self.take_back(),
            ModelEvent::Attempted(attempted) => {
                self.began = None;
                self.attempted.push(attempted);
            }
        }
    }

    /// Takes a piece; returns its place in its part.
    fn say(&mut self, piece: &Piece) -> u64 {
        let of_voice = self
            .spoken
            .iter()
            .filter(|known| known.voice == piece.voice);
        let kept: usize = of_voice.map(|known| known.kept.len()).sum();
        let room = CANCELLED_TEXT_BYTES.saturating_sub(kept);
        let known = (self.spoken.iter()).position(|known| known.part == piece.part);
        let place = known.unwrap_or_else(|| {
            self.spoken.push(Spoken {
                part: piece.part,
                voice: piece.voice,
                offset: 0,
                kept: String::new(),
            });
            self.spoken.len() - 1
        });
        let spoken = &mut self.spoken[place];
        let text = &piece.text;
        spoken
            .kept
            .push_str(&text[..text.floor_char_boundary(room)]);
        let offset = spoken.offset;
        spoken.offset += text.len() as u64;
        offset
    }

    /// True if words for the reader were said.
    pub(super) fn has_text(&self) -> bool {
        let is_text = |known: &Spoken| known.voice == Voice::Text && !known.kept.is_empty();
        self.spoken.iter().any(is_text)
    }

    /// The parts of the answer so far, for an answer that was cancelled. The vendor's own state is left out,
    /// because half of it is worth nothing to the vendor.
    pub(super) fn into_parts(self) -> Parts {
        let parts = self.spoken.into_iter().map(|spoken| match spoken.voice {
            Voice::Text => Part::Text { text: spoken.kept },
            Voice::Reasoning => Part::Reasoning {
                text: spoken.kept,
                signature: None,
            },
        });
        Parts(parts.collect())
    }

    /// Tells those who watch that what was said, if anything was, is void.
    pub(super) fn take_back(&mut self) {
        if self.spoken.is_empty() {
            return;
        }
        self.spoken.clear();
        if self.is_quiet {
            return;
        }
        self.live.publish(Live::TakenBack {
            turn: self.turn,
            step: self.step,
            attempt: self.attempt,
        });
    }

    /// Another request follows, whose attempts are counted on.
    pub(super) fn asked_again(&mut self) {
        self.attempts_before = self.attempt;
        self.began = None;
    }

    /// Tells those who watch.
    pub(super) fn notice(&self, text: String) {
        let turn = self.turn;
        self.live.publish(Live::Notice { turn, text });
    }

    /// The attempts of the present request that have ended, for the ledger of usage. An attempt that was stopped in the
    /// middle is one of them, and its tokens are unknown.
    pub(super) fn take_attempts(&mut self, is_stopped: bool) -> Vec<Attempted> {
        let began = self.began.take().filter(|_| is_stopped);
        let stopped = began.map(|began| Attempted {
            number: self.attempt - self.attempts_before,
            outcome: STOPPED,
            usage: Usage::default(),
            duration: began.elapsed(),
            first_byte: None,
        });
        self.attempted.extend(stopped);
        let before = self.attempts_before;
        let counted_on = self.attempted.drain(..).map(|attempted| Attempted {
            number: attempted.number + before,
            ..attempted
        });
        counted_on.collect()
    }
}

/// A pause as people say it: `0.4 s`, `4 s`.
fn seconds(pause: Duration) -> String {
    match pause.as_secs_f64() {
        below if below < 2.0 => format!("{:.1} s", below.max(0.1)),
        above => format!("{above:.0} s"),
    }
}
