//! The items of a transcript: one for each thing that a session shows.

use std::time::Duration;

use ratatui_core::text::Line;
use shared_types::{
    TurnId, UserId,
    event::{CallOutcome, FindingCategory, TodoState, TurnOutcome},
};

use super::{
    output::{Output, OutputLine},
    request::Request,
};

/// One thing that a session shows.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its number, from 0 without gaps.
    pub number: u64,
    /// A number that rises with every change.
    pub revision: u32,
    /// True if it may still change.
    pub is_open: bool,
    /// The turn that it belongs to.
    pub turn: Option<TurnId>,
    /// The thing itself. Its texts are harmless: they drive no terminal.
    pub kind: Kind,
}

/// The kinds of items.
#[derive(Debug, Clone)]
pub enum Kind {
    /// A message of a person.
    User(Message),
    /// Thoughts of the model.
    Thought(Speech),
    /// Words of the model, as Markdown.
    Answer(Speech),
    /// A tool call.
    Call(Box<Call>),
    /// A change of the to-do list.
    Todo(TodoChange),
    /// The end of a turn.
    End(End),
    /// A note beside the conversation.
    Note(Note),
}

/// A message of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The words.
    pub text: String,
    /// The number of images.
    pub images: usize,
    /// The way in which it came.
    pub sent: Sent,
    /// The name of the person, where it is not the person at this terminal.
    pub by: Option<String>,
}

/// The way in which a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It starts a turn.
    Now,
    /// It waits for the turn that works.
    Queued,
    /// It joins the turn that works.
    Steered,
}

/// A text of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Speech {
    /// The text.
    pub text: String,
    /// True if it counts no more, because the model began again.
    pub is_void: bool,
    /// The time that it took, where the log tells it.
    pub took: Option<Duration>,
}

/// A tool call.
#[derive(Debug, Clone)]
pub struct Call {
    /// The model call, from 1.
    pub step: u32,
    /// Its place in the answer, from 0.
    pub ordinal: u32,
    /// The name of the tool.
    pub name: String,
    /// The thing that it asks for.
    pub request: Request,
    /// The place where it runs, where that is another than that of the call before.
    pub place: Option<Place>,
    /// Its state.
    pub state: State,
    /// Its output: as it was seen live, or as the log tells it where not all was seen.
    pub output: Output,
    /// The words on the approval of a person.
    pub approval: Option<String>,
    /// The agent that works for it.
    pub agent: Option<Agent>,
    /// The result, without the words that [`Ended`] holds; empty where the result is output.
    pub result: String,
    /// The number of images in the result.
    pub images: usize,
    /// The kind of text in the result that looks most like instructions to the model.
    pub finding: Option<FindingCategory>,
}

/// An agent that works for a call in a session of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Its session.
    pub session: String,
    /// Its end in words; absent while it works.
    pub ended: Option<String>,
}

/// The place where a call runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The name of the runner.
    pub runner: String,
    /// The isolation that is proved there.
    pub isolation: String,
}

/// The state of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It has not begun.
    Waits,
    /// A person is asked.
    Asked,
    /// It runs.
    Runs,
    /// It ended.
    Ended(Ended),
    /// Its turn ended before it did.
    Left,
}

/// The end of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The outcome.
    pub outcome: CallOutcome,
    /// The end of a command in words, such as `exit 1`.
    pub exit: Option<String>,
    /// The reason of a failure, on one line; empty if there is none.
    pub reason: String,
    /// The time that it took.
    pub took: Duration,
    /// The time that it was given.
    pub budget: Duration,
    /// True if it took longer than that.
    pub overran: bool,
    /// The task as which it goes on in the background.
    pub task: Option<u32>,
    /// True if no runner could take it. The turn ends with the reason.
    pub is_unplaced: bool,
}

/// A change of the to-do list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TodoChange {
    /// The number of items that are done.
    pub done: usize,
    /// The number of items.
    pub of: usize,
    /// True if an earlier session left the list in its folder.
    pub is_found: bool,
    /// The items that are new or changed.
    pub changed: Vec<TodoRow>,
}

/// An item of a to-do list that is new or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TodoRow {
    /// The work.
    pub text: String,
    /// The state; absent if it was taken off the list.
    pub state: Option<TodoState>,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The outcome.
    pub outcome: TurnOutcome,
    /// The reason where it did not complete.
    pub reason: Option<String>,
    /// The rest of the to-do list on one line; absent if nothing of it is left.
    pub todo: Option<String>,
}

/// A note beside the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// Its weight.
    pub level: Level,
    /// Its words.
    pub said: Said,
}

/// The weight of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Good to know.
    Quiet,
    /// A person should look.
    Warning,
    /// Something failed.
    Failure,
}

/// The words of a note.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// Text; each of its lines is wrapped.
    Words(String),
    /// Lines that are painted already.
    Lines(Vec<Line<'static>>),
}

impl Note {
    /// A quiet note.
    pub fn quiet(words: impl Into<String>) -> Self {
        Self::new(Level::Quiet, words)
    }

    /// A note of this weight.
    pub fn new(level: Level, words: impl Into<String>) -> Self {
        Self {
            level,
            said: Said::Words(words.into()),
        }
    }

    /// Lines that are painted already.
    pub fn lines(lines: Vec<Line<'static>>) -> Self {
        Self {
            level: Level::Quiet,
            said: Said::Lines(lines),
        }
    }
}

impl Call {
    /// True if it has ended, and as it should.
    pub fn ended_well(&self) -> bool {
        match &self.state {
            State::Ended(ended) => ended.outcome == CallOutcome::Completed,
            State::Waits | State::Asked | State::Runs | State::Left => false,
        }
    }

    /// True if it changes no more.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Ended(_) | State::Left)
    }
}

impl Ended {
    /// True if it did not end as it should: also for a command that exited with another code than 0.
    pub fn is_failure(&self) -> bool {
        let exit = self.exit.as_deref().unwrap_or("exit 0");
        let is_fine = exit.starts_with("exit 0") || exit.contains(" still runs, for ");
        self.outcome != CallOutcome::Completed || !is_fine
    }
}

impl Kind {
    /// The memory that it takes, in bytes, about.
    pub(super) fn weight(&self) -> usize {
        /// The memory of an item without its texts.
        const FRAME: usize = 400;
        /// The memory of a line that is kept.
        const LINE: usize = 120;
        let texts = match self {
            Self::User(message) => message.text.len(),
            Self::Thought(speech) | Self::Answer(speech) => speech.text.len(),
            Self::Call(call) => {
                let written = call.output.lines();
                let written = written.iter().map(|line| match line {
                    OutputLine::Text(runs) => runs.iter().map(|run| LINE + run.0.len()).sum(),
                    OutputLine::Skipped { .. } | OutputLine::Gap { .. } => LINE,
                });
                call.request.weight() + call.result.len() + written.sum::<usize>()
            }
            Self::Todo(change) => change.changed.iter().map(|row| row.text.len()).sum(),
            Self::End(end) => end.reason.as_ref().map_or(0, String::len),
            Self::Note(note) => match &note.said {
                Said::Words(words) => words.len(),
                Said::Lines(lines) => lines.len() * LINE,
            },
        };
        FRAME.saturating_add(texts)
    }
}

/// The name of a person beside a message.
pub(super) fn named(user: UserId, name: Option<&String>) -> String {
    name.cloned().unwrap_or_else(|| user.to_string())
}
