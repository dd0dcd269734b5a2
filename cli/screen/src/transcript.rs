//! The model of what a session shows, made from its feed alone.
//!
//! Every text of a stranger is made harmless where it enters. An item that is not open changes no more, except that a
//! text of the model may be taken back. The memory is bounded: see [`Transcript::printed`].

mod answer;
mod calls;
pub mod changes;
pub mod facts;
pub mod item;
mod log;
mod models;
pub mod output;
pub mod request;
pub(crate) mod safe;
mod store;
#[cfg(test)]
pub(crate) mod tests;
pub mod words;

use std::collections::{BTreeMap, VecDeque};

use shared_api::Live;
use shared_types::{OperationId, SessionEvent, Timestamp, TurnId, UserId};

use self::{
    answer::{Answer, Piece},
    calls::{Calls, Key, Written},
    changes::Changes,
    facts::{Activity, Facts, Task, Waits, Working},
    item::{Item, Kind, Level, Note, Place, Said},
    models::Models,
    store::Store,
};
pub use store::{MOST_KEPT, MOST_KEPT_BYTES};

/// The most turns that are remembered as ended, or as waiting for another one.
const MOST_TURNS: usize = 64;

/// The most people whose names are known.
const MOST_PEOPLE: usize = 1000;

/// The items and facts of a session, made from its feed alone.
#[derive(Debug, Default)]
pub struct Transcript {
    store: Store,
    facts: Facts,
    changes: Changes,
    /// The answer that the model gives now.
    answer: Option<Answer>,
    calls: Calls,
    models: Models,
    /// The place of the last call.
    place: Option<Place>,
    log: Log,
    clock: LocalClock,
    people: People,
}

/// The facts of the log that decide what its next events mean.
#[derive(Debug, Default)]
struct Log {
    /// The number of the last event that was taken.
    seq: u64,
    /// The last answer that was recorded.
    recorded: Option<(TurnId, u32)>,
    /// The turns that ended last.
    ended: VecDeque<TurnId>,
    /// The turns that wait for the one that works.
    queued: VecDeque<Waiting>,
    /// The turn that was claimed last.
    claimed: Option<TurnId>,
    /// The operation that looks at the place of the turn; it is not shown.
    look: Option<OperationId>,
    /// True once people were told of rules that do not count.
    told_of_rules: bool,
    /// True once a turn has ended.
    has_ended_turn: bool,
}

/// A turn that waits for another one.
#[derive(Debug)]
struct Waiting {
    turn: TurnId,
    /// The item of its message.
    item: u64,
    /// The beginning of its message.
    message: String,
}

/// The caller's time.
#[derive(Debug, Default)]
struct LocalClock {
    /// The time by the caller's clock.
    now: Option<Timestamp>,
    /// The time of the last event.
    event: Option<Timestamp>,
    /// True once the log was read to its end: what comes now happens now.
    is_caught_up: bool,
}

/// The people of a session.
#[derive(Debug, Default)]
struct People {
    /// The person at this terminal.
    me: Option<UserId>,
    names: BTreeMap<UserId, String>,
}

impl Transcript {
    /// A session of which nothing was heard.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells who sits at this terminal. Messages of others are then shown with their names.
    pub fn me(&mut self, me: UserId) {
        self.people.me = Some(me);
    }

    /// Tells the name of a person.
    pub fn person(&mut self, user: UserId, name: &str) {
        if self.people.names.len() < MOST_PEOPLE && !name.is_empty() {
            self.people.names.insert(user, safe::line(name));
        }
    }

    /// Tells the time by the caller's clock. Once [`Transcript::caught_up`] was called, what comes next began then.
    /// Without it, the times of the log count.
    pub fn time(&mut self, now: Timestamp) {
        self.clock.now = Some(now);
    }

    /// Tells that the log was read to its end: what comes from now on happens now.
    pub fn caught_up(&mut self) {
        self.clock.is_caught_up = true;
    }

    /// Tells the size of the model's context window, in tokens.
    pub fn window(&mut self, tokens: Option<u64>) {
        self.facts.window = tokens;
    }

    /// Takes the next event of the log. An event that was taken before is dropped.
    pub fn event(&mut self, event: &SessionEvent) {
        if event.seq <= self.log.seq {
            return;
        }
        self.log.seq = event.seq;
        self.clock.event = Some(event.at);
        // A kind that only a newer client knows is passed over.
        if let Some(event) = event.known() {
            self.logged(event);
        }
    }

    /// Takes a piece of unfinished work.
    pub fn live(&mut self, live: &Live) {
        match live {
            Live::Reasoning {
                turn,
                step,
                attempt,
                part,
                offset,
                text,
            } => self.said(&Piece {
                turn: *turn,
                step: *step,
                attempt: *attempt,
                part: *part,
                offset: *offset,
                text,
                is_thought: true,
            }),
            Live::Text {
                turn,
                step,
                attempt,
                part,
                offset,
                text,
            } => self.said(&Piece {
                turn: *turn,
                step: *step,
                attempt: *attempt,
                part: *part,
                offset: *offset,
                text,
                is_thought: false,
            }),
            Live::Output {
                turn,
                step,
                ordinal,
                operation,
                stream,
                offset,
                text,
                bytes,
            } => {
                let key = Key {
                    turn: *turn,
                    step: *step,
                    ordinal: *ordinal,
                };
                let written = Written {
                    stream,
                    offset: *offset,
                    text,
                    bytes: *bytes,
                };
                match self.calls.get(key) {
                    Some(open) => open.write(written, &mut self.store),
                    None => self.task_output(*operation, text),
                }
            }
            Live::Gap {
                turn,
                step,
                ordinal,
                stream,
                to,
                ..
            } => {
                let key = Key {
                    turn: *turn,
                    step: *step,
                    ordinal: *ordinal,
                };
                if let Some(open) = self.calls.get(key) {
                    open.gap(stream, *to, &mut self.store);
                }
            }
            Live::TakenBack {
                turn,
                step,
                attempt,
            } => {
                if let Some(answer) = self.answer.as_mut().filter(|of| of.is_of(*turn, *step)) {
                    answer.taken_back(*attempt, &mut self.store);
                }
                self.waits(*turn, Waits::Model);
            }
            Live::Notice { turn, text } => self.notice(*turn, text),
        }
    }

    /// Adds a note of the client itself. Its words are made harmless; lines that are painted must be so already.
    pub fn note(&mut self, note: Note) {
        let Note { level, said } = note;
        let said = match said {
            Said::Words(words) => Said::Words(safe::text(&words)),
            lines @ Said::Lines(_) => lines,
        };
        self.add(None, Kind::Note(Note { level, said }));
    }

    /// Tells that the connection is lost.
    pub fn lost(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.facts.is_lost, true) {
            let reason = safe::line(reason);
            let words = format!("connection lost, reconnecting… ({reason})");
            self.note(Note::new(Level::Warning, words));
        }
    }

    /// Tells that the connection is back.
    pub fn recovered(&mut self) {
        if std::mem::replace(&mut self.facts.is_lost, false) {
            self.note(Note::quiet("connected again"));
        }
    }

    /// Tells that the person asked to stop the turn that works.
    pub fn stopping(&mut self) {
        if let Some(turn) = self.facts.turn.as_ref().map(|working| working.turn) {
            self.waits(turn, Waits::Stop);
        }
    }

    /// Tells of a background command that runs, or ran, when the person comes.
    pub fn task(&mut self, number: u32, operation: OperationId, command: &str) {
        self.facts.add_task(Task {
            number,
            operation,
            command: safe::line(command),
            last_line: String::new(),
            ended: None,
        });
    }

    /// Takes output of a background command; its last line is a fact.
    pub fn task_output(&mut self, operation: OperationId, text: &str) {
        if let Some(task) = self.facts.task(operation)
            && let Some(line) = text.lines().rfind(|line| !line.trim().is_empty())
        {
            task.last_line = safe::line(line);
        }
    }

    /// The facts for the line of status.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The changes of files in this session.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The item with this number, if it is kept.
    pub fn item(&self, number: u64) -> Option<&Item> {
        self.store.get(number)
    }

    /// The items from this number on, as far as they are kept.
    pub fn from(&self, number: u64) -> impl Iterator<Item = &Item> {
        self.store.from(number)
    }

    /// All items that are kept, the oldest first.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.store.from(0)
    }

    /// The number of the first item that is kept.
    pub fn first(&self) -> u64 {
        self.store.base()
    }

    /// The number that the next item will have.
    pub fn next(&self) -> u64 {
        self.store.next()
    }

    /// Tells that the items before this one were printed: all but the last [`MOST_KEPT`] of them, or
    /// [`MOST_KEPT_BYTES`], may be dropped.
    pub fn printed(&mut self, number: u64) {
        self.store.printed(number);
    }

    fn add(&mut self, turn: Option<TurnId>, kind: Kind) -> u64 {
        self.store.push(turn, false, kind)
    }

    /// Adds quiet words of the session, which are harmless.
    fn add_note(&mut self, turn: Option<TurnId>, words: impl Into<String>) {
        self.add(turn, Kind::Note(Note::quiet(words)));
    }

    fn said(&mut self, piece: &Piece<'_>) {
        let is_recorded = self
            .log
            .recorded
            .is_some_and(|(turn, step)| turn == piece.turn && piece.step <= step);
        if is_recorded || self.log.ended.contains(&piece.turn) {
            return;
        }
        if !self
            .answer
            .as_ref()
            .is_some_and(|answer| answer.is_of(piece.turn, piece.step))
        {
            if let Some(before) = self.answer.take() {
                before.abandon(&mut self.store);
            }
            self.answer = Some(Answer::new(piece));
        }
        if let Some(answer) = &mut self.answer {
            answer.take(piece, &mut self.store);
        }
        let what = match piece.is_thought {
            true => Waits::Thinks,
            false => Waits::Speaks,
        };
        self.waits(piece.turn, what);
        if let Some(working) = &mut self.facts.turn
            && working.turn == piece.turn
        {
            working.step = working.step.max(piece.step);
        }
    }

    fn notice(&mut self, turn: TurnId, text: &str) {
        if self.log.ended.contains(&turn) {
            return;
        }
        let words = safe::line(text);
        let is_said = self.store.last().is_some_and(|last| {
            matches!(&last.kind, Kind::Note(Note { said: Said::Words(said), .. }) if *said == words)
        });
        if !is_said {
            self.add_note(Some(turn), words.clone());
        }
        self.waits(turn, Waits::Notice(words));
    }

    /// Notes what the turn waits for, if it is the one that works. A turn that was asked to stop waits for its end.
    fn waits(&mut self, turn: TurnId, what: Waits) {
        let since = self.clock.time();
        if let Some(working) = &mut self.facts.turn
            && working.turn == turn
            && working.activity.what != what
            && working.activity.what != Waits::Stop
        {
            working.activity = Activity { what, since };
        }
    }

    fn works(&mut self, turn: TurnId, what: Waits) {
        let since = self.clock.time();
        self.facts.output = 0;
        self.facts.turn = Some(Working {
            turn,
            since,
            step: 0,
            activity: Activity { what, since },
        });
    }
}

impl LocalClock {
    /// The time of what is told now.
    fn time(&self) -> Timestamp {
        let event = self.event;
        match (self.now, self.is_caught_up) {
            (Some(now), true) => now,
            (Some(now), false) => event.map_or(now, |event| event.min(now)),
            (None, _) => event.unwrap_or(Timestamp::from_micros(0)),
        }
    }
}
