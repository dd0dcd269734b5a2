//! The practice model: no AI, a small deterministic interpreter.
//!
//! It is there to try the whole path without a key, and for tests. It asks for the same tools in
//! the same form as a real model, one call per step, but agents together; `commands.rs` lists its commands. It reads the
//! last user message and the messages after it, so the same conversation always gets the same
//! answer. Every text of it begins with its name.

mod commands;
mod report;

use std::borrow::Cow;

use async_trait::async_trait;
use serde_json::Value;
use shared_types::event::{Finish, Origin, Part, Parts, ToolCall, Usage};
use tokio::sync::mpsc;

use self::commands::PracticeStep;
use crate::{
    Answer, Message, Model, ModelError, ModelEvent, ModelInfo, ModelRequest, Piece, Voice,
};

/// The name that people see.
pub const NAME: &str = "practice model (no AI)";

/// The wait for the end of a task in one call, in milliseconds: the longest that is allowed.
const WAIT_MS: u64 = 600_000;

/// The words in a result about a command that still runs, before the arguments of the call that
/// continues reading.
const READ_ON: &str = "read on with task_read ";

/// Its text goes out in pieces of about this many bytes, so that surfaces show a stream.
const PIECE_BYTES: usize = 32;

/// The practice model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Practice;

#[async_trait]
impl Model for Practice {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            name: NAME.to_owned(),
            practice: true,
            profile: crate::Profile::default(),
            paid_by: shared_types::PaidBy::default(),
            origin: Origin {
                format: "practice".to_owned(),
                account: String::new(),
            },
        }
    }

    /// Never fails and costs nothing.
    async fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        // The answer counts even if no receiver listens.
        let _ = events.send(ModelEvent::Attempt { number: 1 }).await;
        let parts = next(&request);
        if let [Part::Text { text }] = parts.as_slice() {
            for piece in pieces(text) {
                let said = Piece {
                    part: 0,
                    voice: Voice::Text,
                    text: piece.to_owned(),
                };
                let _ = events.send(ModelEvent::Said(said)).await;
            }
        }
        Ok(Answer {
            parts: Parts(parts),
            finish: Finish::Complete,
            usage: Usage::default(),
            model: String::new(),
            first_byte: None,
        })
    }
}

/// A command of the user that was carried out, and its result.
struct Done {
    text: String,
    failed: bool,
}

fn next(request: &ModelRequest) -> Vec<Part> {
    let (message, after) = last_input(&request.messages);
    let commands = match commands::parse(&message) {
        Ok(commands) => commands,
        Err(line) => return vec![say(report::help(&line))],
    };
    let (done, read_on) = carried_out(&commands, after);
    if let Some(arguments) = read_on {
        return vec![call(
            "task_read",
            &arguments,
            earlier_calls(&request.messages),
        )];
    }
    let failed = done.last().is_some_and(|done| done.failed);
    let Some(command) = commands.get(done.len()).filter(|_| !failed) else {
        return vec![say(report::summary(&commands, &done))];
    };
    if !request.tools.iter().any(|tool| tool.name == command.tool()) {
        return vec![say(report::no_tool(command))];
    }
    // Agents that follow one another are asked for at once.
    let next = &commands[done.len()..];
    let together = next.iter().take_while(|command| command.is_agent()).count();
    let earlier = earlier_calls(&request.messages);
    let calls = (earlier..).zip(&next[..together.max(1)]);
    calls
        .map(|(earlier, command)| call(command.tool(), &command.arguments(), earlier))
        .collect()
}

fn say(text: String) -> Part {
    Part::Text { text }
}

/// The last thing that the user said, and what followed it.
fn last_input(messages: &[Message]) -> (Cow<'_, str>, &[Message]) {
    let last = messages
        .iter()
        .rposition(|message| matches!(message, Message::User { .. }));
    match last.map(|place| (&messages[place], &messages[place + 1..])) {
        Some((Message::User { parts }, after)) => (parts.words(), after),
        _ => ("".into(), messages),
    }
}

/// The results of the commands that were carried out. If the last one still runs, also the
/// arguments of the call that continues reading.
fn carried_out(commands: &[PracticeStep], after: &[Message]) -> (Vec<Done>, Option<Value>) {
    let (mut done, mut text, mut read_on) = (Vec::new(), String::new(), None);
    for message in after {
        let Message::ToolResult { parts, failed, .. } = message else {
            continue;
        };
        let came = parts.words();
        let followed = commands
            .get(done.len())
            .is_some_and(PracticeStep::is_followed);
        read_on = still_runs(&came).filter(|_| followed && !failed);
        if read_on.is_some() {
            let lines = came.rsplit_once('\n').map_or("", |(lines, _)| lines);
            text.push_str(lines);
            text.push_str(if lines.is_empty() { "" } else { "\n" });
            continue;
        }
        done.push(Done {
            text: std::mem::take(&mut text) + &came,
            failed: *failed,
        });
    }
    (done, read_on)
}

/// The arguments of the call that continues reading, if the last line has them.
fn still_runs(text: &str) -> Option<Value> {
    let last = text.trim_end().lines().last()?;
    let (_, arguments) = last.split_once(READ_ON)?;
    let mut arguments = serde_json::Deserializer::from_str(arguments).into_iter::<Value>();
    let Some(Ok(Value::Object(mut arguments))) = arguments.next() else {
        return None;
    };
    arguments.insert("wait_ms".to_owned(), WAIT_MS.into());
    Some(Value::Object(arguments))
}

/// The id counts the calls of the whole conversation, so that none comes twice.
fn call(tool: &str, arguments: &Value, earlier: usize) -> Part {
    Part::ToolCall(ToolCall {
        vendor_id: format!("practice_{}", earlier + 1),
        name: tool.to_owned(),
        arguments: arguments.to_string(),
        opaque: Default::default(),
    })
}

fn earlier_calls(messages: &[Message]) -> usize {
    let calls = messages.iter().map(|message| match message {
        Message::Assistant { parts } => parts.calls().count(),
        _ => 0,
    });
    calls.sum()
}

/// `text` in pieces that end at spaces or line ends.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest
            .match_indices([' ', '\n'])
            .map(|(place, _)| place + 1)
            .find(|end| *end >= PIECE_BYTES)
            .unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

#[cfg(test)]
mod tests;
