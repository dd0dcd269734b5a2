//! Going back to an earlier message: the messages that one can go back to, and the files that calls have changed since.
//!
//! All of it is a function of the log. The content that a file had is taken from the log as well ([`TouchedFile`]), and
//! counts only with the digest that the runner told at that moment. So a file is put back as it was, or left as it is.

mod content;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use shared_sandbox::{Edit, Outcome, Request};
use shared_types::{
    Event, FileDigest, OperationId, RunnerId, SandboxId, SessionEvent, Timestamp, TurnId,
    event::{Part, Parts, Place},
};

use crate::{
    tools::{Ask, EditTool, Tool, WriteTool},
    transcript::{Call, Transcript},
};

pub use content::{Before, NotKnown};

/// A message that one can go back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierMessage {
    /// Its number in the conversation, from 1.
    pub number: u32,
    /// The turn that it started.
    pub turn: TurnId,
    /// The time at which it was accepted.
    pub at: Timestamp,
    /// Its words, without images.
    pub text: String,
    /// The number of files that calls have written or edited since.
    pub files: usize,
}

/// The messages of the conversation with this log, the oldest first.
pub fn messages(log: &[SessionEvent]) -> Vec<EarlierMessage> {
    let (conversation, all) = (Transcript::of(log), everything(log));
    let mut messages: Vec<EarlierMessage> = (1..)
        .zip(conversation.turns())
        .map(|(number, turn)| EarlierMessage {
            number,
            turn: turn.id,
            at: turn.asked_at,
            text: texts(&turn.input),
            files: 0,
        })
        .collect();
    let (mut files, mut later) = (BTreeSet::new(), all.turns());
    for message in messages.iter_mut().rev() {
        let place = later.iter().rposition(|turn| turn.id == message.turn);
        let (before, since) = later.split_at(place.unwrap_or(later.len()));
        let steps = since.iter().flat_map(|turn| &turn.steps);
        let changed = steps.flat_map(|step| &step.calls).filter_map(|call| {
            let file = call.file().filter(|file| file.changed)?;
            let place = &call.placed.as_ref()?.place;
            Some((place.runner, place.sandbox, file.path.clone()))
        });
        files.extend(changed);
        message.files = files.len();
        later = before;
    }
    messages
}

/// The words of a message, without its images.
fn texts(message: &Parts) -> String {
    let texts = message.0.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The log with the turns that are gone.
fn everything(log: &[SessionEvent]) -> Transcript {
    let mut all = Transcript::default();
    for event in log {
        match event.known() {
            Some(Event::ConversationRewound { .. }) | None => {}
            Some(known) => all.apply(known, event.at),
        }
    }
    all
}

/// A file that calls have changed since a message, and what the log has of its content.
#[derive(Debug, Clone, PartialEq)]
pub struct TouchedFile {
    /// The place of the calls.
    pub place: Place,
    /// Its path, relative to the root of the sandbox.
    pub path: String,
    /// The calls that saw the file before the message, the oldest first.
    earlier: Vec<Seen>,
    /// The calls that have changed it since, the oldest first. Those of turns that are gone are among them.
    pub changes: Vec<FileChange>,
}

/// A call that changed a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileChange {
    /// Its operation, whose outcome has the digests.
    pub operation: OperationId,
    /// True if its turn was gone before: the file may have been put back since.
    is_gone: bool,
    does: Does,
    /// The outcome, once it was looked up.
    ends: Option<Ends>,
}

/// The effect of a call on a file.
#[derive(Debug, Clone, PartialEq)]
enum Does {
    Write(String),
    Edit(Edit),
    /// Its arguments are of a newer version.
    Something,
}

/// The digests around a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ends {
    /// Nothing if there was no file.
    before: Option<FileDigest>,
    after: FileDigest,
    /// The line of an edit, from 1.
    line: Option<u64>,
}

/// A call that saw a file.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    does: Option<Does>,
    /// The result of a call that read it.
    read: String,
    digest: Option<FileDigest>,
}

impl FileChange {
    /// Takes in the outcome of its operation.
    pub fn ended_with(&mut self, outcome: &Outcome) {
        self.ends = match outcome {
            Outcome::Written(written) => Some(Ends {
                before: written.before,
                after: written.after,
                line: None,
            }),
            Outcome::Edited(edited) => Some(Ends {
                before: Some(edited.before.into()),
                after: edited.after.into(),
                line: Some(edited.line),
            }),
            _ => None,
        };
    }
}

/// The files that calls have changed since this message, by place and path. Nothing if it is no part of the
/// conversation.
pub fn touched_since(log: &[SessionEvent], turn: TurnId) -> Option<Vec<TouchedFile>> {
    let conversation = Transcript::of(log);
    conversation.turn(turn)?;
    let kept: HashSet<TurnId> = conversation.turns().iter().map(|turn| turn.id).collect();
    let all = everything(log);
    let first = all.turns().iter().position(|known| known.id == turn)?;
    let mut files: BTreeMap<(RunnerId, SandboxId, String), TouchedFile> = BTreeMap::new();
    for (number, turn) in all.turns().iter().enumerate() {
        let steps = turn.steps.iter().flat_map(|step| &step.calls);
        for call in steps {
            let Some((file, placed)) = call.file().zip(call.placed.as_ref()) else {
                continue;
            };
            let place = &placed.place;
            let key = (place.runner, place.sandbox, file.path.clone());
            let touched = files.entry(key).or_insert_with(|| TouchedFile {
                place: place.clone(),
                path: file.path.clone(),
                earlier: Vec::new(),
                changes: Vec::new(),
            });
            match file.changed {
                true if number >= first => touched.changes.push(FileChange {
                    operation: placed.operation,
                    is_gone: !kept.contains(&turn.id),
                    does: does(call),
                    ends: None,
                }),
                // What was read since may be of any moment between two changes.
                _ => touched.earlier.push(Seen {
                    does: file.changed.then(|| does(call)),
                    read: match &call.result {
                        Some(result) if !file.changed => result.parts.words().into_owned(),
                        _ => String::new(),
                    },
                    digest: file.digest,
                }),
            }
        }
    }
    let touched = files.into_values();
    Some(touched.filter(|file| !file.changes.is_empty()).collect())
}

/// The effect that a call asked for.
fn does(call: &Call) -> Does {
    let tools: [&dyn Tool; 2] = [&WriteTool, &EditTool];
    let tool = tools
        .into_iter()
        .find(|tool| tool.name() == call.asked.name);
    let ask = tool.and_then(|tool| {
        let arguments = tool.check(&call.asked.arguments).ok()?;
        tool.prepare(&arguments).ok()
    });
    let Some(Ask::Operation(prepared)) = ask else {
        return Does::Something;
    };
    match prepared.request {
        Request::Write(write) => match String::from_utf8(write.content) {
            Ok(content) => Does::Write(content),
            Err(_) => Does::Something,
        },
        Request::Edit(edit) => Does::Edit(edit),
        _ => Does::Something,
    }
}
