//! Hooks: which of them run at an event, what each reads, and what its answer means.
//!
//! The JSON in and out is that of Claude Code (<https://code.claude.com/docs/en/hooks>), so that hooks that people have
//! work as they are. All functions here are pure.

mod names;
mod posts;
mod said;
mod session_end;

use regex::Regex;
use serde_json::{Map, Value, json};
use shared_types::{
    SessionId,
    event::{Hook, HookDecision, HookEnd, HookEvent, Provenance},
};

pub(crate) use names::{inward, names_of, outward};
pub use posts::{HookPost, HookPosts};
pub(crate) use said::{Exit, Said, of_exit, of_text};
pub use session_end::{EndAction, session_end_hooks};

/// A hook that failed so many times in a row does not run any more in its session.
pub(crate) const FAILURES: u32 = 3;

/// Longest words on an action, in bytes.
const MAX_ACTION: usize = 120;

/// Most bytes of a part of the input.
const MAX_PART: usize = 64 * 1024;

/// The point of a turn at which hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HookPoint {
    /// The event.
    pub(crate) on: HookEvent,
    /// The model call, from 1; 0 before the first one.
    pub(crate) step: u32,
    /// The place of the call in the answer, from 0.
    pub(crate) ordinal: u32,
}

impl HookPoint {
    /// The ordinal of the operation of the hook of this number.
    pub(crate) fn operation_ordinal(self, number: u32) -> u32 {
        HookEnd::operation_ordinal(self.on, self.ordinal, number)
    }
}

/// The hooks that run at this event for what has one of these names, each with its number. Those that people do not
/// trust do not.
pub(crate) fn at<'h>(
    hooks: &'h [Hook],
    on: HookEvent,
    names: &[&str],
) -> impl Iterator<Item = (u32, &'h Hook)> {
    let runs =
        move |hook: &Hook| hook.on == on && hook.from.trusted && matches(&hook.matcher, names);
    let numbered = (0..).zip(hooks);
    numbered
        .filter(move |(_, hook)| runs(hook))
        .collect::<Vec<_>>()
        .into_iter()
}

fn matches(matcher: &str, names: &[&str]) -> bool {
    // An event that is about nothing with a name runs all its hooks, as Claude Code does.
    if matcher.is_empty() || names.is_empty() {
        return true;
    }
    let whole = Regex::new(&format!("^(?:{matcher})$"));
    whole.is_ok_and(|whole| names.iter().any(|name| whole.is_match(name)))
}

/// The action on one line. That of a plugin's command is the command, as people write it.
pub(crate) fn action(hook: &Hook) -> String {
    let words = match hook.on {
        HookEvent::SlashCommand => format!("/{}", hook.matcher),
        _ => hook.handler.words(),
    };
    shared_types::clean::clean_line(&words, MAX_ACTION)
}

/// The facts that each hook of a session reads.
pub(crate) struct Common<'a> {
    pub(crate) session: SessionId,
    /// The absolute path of the session's folder; empty if it is not known.
    pub(crate) folder: &'a str,
    pub(crate) mode: &'a str,
}

/// The input of a hook: the common facts, and those of its event.
pub(crate) fn input(common: &Common<'_>, on: HookEvent, facts: Map<String, Value>) -> Vec<u8> {
    let name = match on {
        HookEvent::AgentStop => "Stop",
        HookEvent::AgentError => "StopFailure",
        HookEvent::SubAgentStart => "SubagentStart",
        HookEvent::SubAgentStop => "SubagentStop",
        other => other.word(),
    };
    let mut all = json!({
        "session_id": common.session.to_string(),
        "transcript_path": "",
        "cwd": common.folder,
        "permission_mode": common.mode,
        "hook_event_name": name,
    });
    if let Value::Object(all) = &mut all {
        all.extend(facts.into_iter().map(|(key, value)| (key, bounded(value))));
    }
    let mut line = all.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// A value whose texts are not too long.
fn bounded(value: Value) -> Value {
    match value {
        Value::String(mut text) => {
            text.truncate(text.floor_char_boundary(MAX_PART));
            Value::String(text)
        }
        Value::Object(values) => values
            .into_iter()
            .map(|(key, value)| (key, bounded(value)))
            .collect(),
        other => other,
    }
}

/// The directory in which the command of a hook runs, as seen from the session's, and the absolute path of the folder of
/// its project. The session works in this folder of the machine, which is this directory of its workspace.
pub(crate) fn project_folder(hook: &Hook, folder: &str, directory: &str) -> (String, String) {
    if !hook.from.layer.is_on_runner() {
        return (String::new(), folder.to_owned());
    }
    let (root, project) = (root_of(folder, directory), project_of(&hook.from));
    let levels = directory.split('/').filter(|part| !part.is_empty()).count();
    let absolute = match project.is_empty() {
        true => root.to_owned(),
        false => format!("{root}/{project}"),
    };
    (format!("{}{project}", "../".repeat(levels)), absolute)
}

/// The absolute path of the root of the workspace, from that of the session's folder.
fn root_of<'f>(folder: &'f str, directory: &str) -> &'f str {
    let below = directory.trim_matches('/');
    let root = match below {
        "" => Some(folder),
        below => folder
            .strip_suffix(below)
            .map(|root| root.trim_end_matches('/')),
    };
    root.unwrap_or(folder)
}

/// The folder of the project whose file this is, relative to the root of the workspace: the one with `.claude` or
/// `.gantry`. The commands of plugins name their folder from the root.
fn project_of(from: &Provenance) -> String {
    if from.at.ends_with("/plugin.json") {
        return String::new();
    }
    let parts: Vec<_> = from.at.split('/').collect();
    parts[..parts.len().saturating_sub(2)].join("/")
}

/// Arguments with the parts of an event in the place of each `${PATH}`. A text that is nothing else becomes the part as
/// it is; a part that is not there is empty.
pub(crate) fn filled(input: &Map<String, Value>, event: &Value) -> Map<String, Value> {
    let filled = input
        .iter()
        .map(|(name, value)| (name.clone(), fill(value, event)));
    filled.collect()
}

fn fill(value: &Value, event: &Value) -> Value {
    match value {
        Value::String(text) => fill_text(text, event),
        Value::Array(values) => values.iter().map(|value| fill(value, event)).collect(),
        Value::Object(values) => filled(values, event).into(),
        other => other.clone(),
    }
}

fn fill_text(text: &str, event: &Value) -> Value {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, path, behind)) = rest.split_once("${").and_then(|(before, rest)| {
        rest.split_once('}')
            .map(|(path, behind)| (before, path, behind))
    }) {
        let part = part(event, path).unwrap_or(&Value::Null);
        if path.len() + "${}".len() == text.len() && !part.is_null() {
            return part.clone();
        }
        filled.push_str(before);
        match part {
            Value::String(part) => filled.push_str(part),
            Value::Null => {}
            other => filled.push_str(&other.to_string()),
        }
        rest = behind;
    }
    filled.push_str(rest);
    filled.truncate(filled.floor_char_boundary(MAX_PART));
    filled.into()
}

/// The part of an event with a path such as `tool_input.edits.0.old`.
fn part<'v>(event: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(event, |value, name| match value {
        Value::Array(values) => values.get(name.parse::<usize>().ok()?),
        value => value.get(name),
    })
}

/// The answers of all hooks of one event together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HookVerdict {
    /// The decision that counts most.
    pub(crate) decision: Option<HookDecision>,
    /// The reasons for it.
    pub(crate) reason: String,
    /// The texts for the model.
    pub(crate) context: String,
    /// The arguments in place of the call's.
    pub(crate) input: Option<String>,
    /// The text in place of the call's result.
    pub(crate) output: Option<String>,
}

impl HookVerdict {
    /// The verdict of these ends: a decision that counts more takes the place of one that counts less.
    pub(crate) fn of<'e>(ends: impl IntoIterator<Item = &'e HookEnd>) -> Self {
        let mut verdict = Self::default();
        for end in ends {
            if end.decision > verdict.decision {
                verdict.decision = end.decision;
                verdict.reason = end.reason.clone();
            } else if end.decision == verdict.decision && end.decision.is_some() {
                push_line(&mut verdict.reason, &end.reason);
            }
            push_line(&mut verdict.context, &end.context);
            verdict.input = end.input.clone().or(verdict.input);
            verdict.output = end.output.clone().or(verdict.output);
        }
        verdict
    }

    /// True if it is not to happen.
    pub(crate) fn denies(&self) -> bool {
        self.decision == Some(HookDecision::Deny)
    }

    /// True if people are to be asked.
    pub(crate) fn asks(&self) -> bool {
        matches!(self.decision, Some(HookDecision::Ask | HookDecision::Defer))
    }
}

fn push_line(text: &mut String, line: &str) {
    if !line.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    }
}

#[cfg(test)]
mod tests;
