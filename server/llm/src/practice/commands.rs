//! The commands of the practice model.
//!
//! One command a line, or several joined by "then":
//!
//! ```text
//! run CMD                     read PATH            write PATH: TEXT
//! run in the background: CMD  find GLOB            edit PATH: OLD => NEW
//! search PATTERN [in PATH]    list [PATH]          what is in this folder?
//! tasks                       wait for task N      stop task N
//! agent: COMMANDS             agent in the background: COMMANDS
//! call mcp__SERVER__TOOL {"ARGUMENT": VALUE}
//! ```
//!
//! A command that `run` begins is followed to its end, even if it becomes a background task; with `in the background`
//! it is not. `edit` reads the file first. `write PATH:` with nothing after the colon writes all following lines. A "then" separates only if a
//! command follows it and no `;` precedes it, because shells have that word too.

use serde_json::{Value, json};

/// Letters of a task that describe it to people.
const DESCRIPTION_LETTERS: usize = 40;

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PracticeStep {
    Run {
        command: String,
        background: bool,
    },
    Tasks,
    Wait {
        task: u32,
    },
    Stop {
        task: u32,
    },
    Read {
        path: String,
    },
    Write {
        path: String,
        content: String,
    },
    Edit {
        path: String,
        old: String,
        new: String,
    },
    Search {
        pattern: String,
        path: Option<String>,
    },
    Find {
        pattern: String,
    },
    List {
        path: Option<String>,
    },
    Agent {
        task: String,
        background: bool,
    },
    /// A tool of a tool server.
    Call {
        tool: String,
        arguments: Value,
    },
}

impl PracticeStep {
    /// The tool that does it.
    pub(super) fn tool(&self) -> &str {
        match self {
            Self::Run { .. } => "Shell",
            Self::Tasks => "task_status",
            Self::Wait { .. } => "task_read",
            Self::Stop { .. } => "task_kill",
            Self::Read { .. } => "Read",
            Self::Write { .. } => "Write",
            Self::Edit { .. } => "Edit",
            Self::Search { .. } => "Grep",
            Self::Find { .. } => "Glob",
            Self::List { .. } => "List",
            Self::Agent { .. } => "SubAgent",
            Self::Call { tool, .. } => tool,
        }
    }

    /// True if it ends only together with the command that it began.
    pub(super) fn is_followed(&self) -> bool {
        matches!(
            self,
            Self::Run {
                background: false,
                ..
            } | Self::Wait { .. }
        )
    }

    /// True for a call that begins an agent.
    pub(super) fn is_agent(&self) -> bool {
        matches!(self, Self::Agent { .. })
    }

    /// The tool's arguments.
    pub(super) fn arguments(&self) -> Value {
        match self {
            Self::Run {
                command,
                background: false,
            } => json!({ "command": command }),
            Self::Run {
                command,
                background: true,
            } => json!({ "command": command, "background": true }),
            Self::Tasks => json!({}),
            Self::Wait { task } => json!({ "task": task, "wait_ms": super::WAIT_MS }),
            Self::Stop { task } => json!({ "task": task }),
            Self::Read { path } => json!({ "path": path }),
            Self::Write { path, content } => json!({ "path": path, "content": content }),
            Self::Edit { path, old, new } => json!({ "path": path, "old": old, "new": new }),
            Self::Search {
                pattern,
                path: None,
            } => json!({ "pattern": pattern }),
            Self::Search {
                pattern,
                path: Some(path),
            } => json!({ "pattern": pattern, "path": path }),
            Self::Find { pattern } => json!({ "pattern": pattern }),
            Self::List { path: None } => json!({}),
            Self::List { path: Some(path) } => json!({ "path": path }),
            Self::Agent { task, background } => {
                let description: String = task.chars().take(DESCRIPTION_LETTERS).collect();
                json!({ "description": description, "prompt": task, "background": background })
            }
            Self::Call { arguments, .. } => arguments.clone(),
        }
    }
}

/// The steps of a message, in order and at least one.
///
/// # Errors
/// Fails with the first part that is no command. Then no part of the message may be carried out.
pub(super) fn parse(message: &str) -> Result<Vec<PracticeStep>, String> {
    let mut commands = Vec::new();
    let mut rest = message.trim();
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        if let Some((path, content)) = whole_file(line, after) {
            commands.push(PracticeStep::Write { path, content });
            break;
        }
        for part in parts(line) {
            let command = command(part).ok_or_else(|| part.to_owned())?;
            // An edit is run only after a read of the file.
            if let PracticeStep::Edit { path, .. } = &command {
                commands.push(PracticeStep::Read { path: path.clone() });
            }
            commands.push(command);
        }
        rest = after.trim_start();
    }
    if commands.is_empty() {
        return Err(String::new());
    }
    Ok(commands)
}

/// `write PATH:` followed by the file's lines.
fn whole_file(line: &str, after: &str) -> Option<(String, String)> {
    let (word, argument) = split_word(line);
    let path = argument.strip_suffix(':')?;
    if word != "write" || path.is_empty() || after.is_empty() {
        return None;
    }
    Some((unquoted(path), format!("{after}\n")))
}

/// The line, cut at each "then" that separates two commands.
fn parts(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begins = 0;
    for (place, then) in line.match_indices(" then ") {
        let before = line[begins..place].trim();
        let after = &line[place + then.len()..];
        let separates = !before.is_empty() && !before.ends_with(';') && begins_command(after);
        if separates {
            parts.push(before.strip_suffix(',').unwrap_or(before));
            begins = place + then.len();
        }
    }
    parts.push(line[begins..].trim());
    parts
}

fn begins_command(text: &str) -> bool {
    // Only the first following part has to be a command, because its end is not known yet.
    command(text.split(" then ").next().unwrap_or(text)).is_some()
}

fn command(text: &str) -> Option<PracticeStep> {
    let text = text.trim();
    if asks_for_listing(text) {
        return Some(PracticeStep::List { path: None });
    }
    let (word, argument) = split_word(text);
    if word == "tasks" && argument.is_empty() {
        return Some(PracticeStep::Tasks);
    }
    if word == "list" {
        let path = Some(argument).filter(|argument| !is_here(argument));
        return Some(PracticeStep::List {
            path: path.map(unquoted),
        });
    }
    if argument.is_empty() {
        return None;
    }
    match word.as_str() {
        "run" => Some(run(argument)),
        "agent:" => Some(PracticeStep::Agent {
            task: argument.to_owned(),
            background: false,
        }),
        "agent" => Some(PracticeStep::Agent {
            task: argument
                .strip_prefix("in the background:")?
                .trim()
                .to_owned(),
            background: true,
        }),
        "wait" => task(argument.strip_prefix("for ")?).map(|task| PracticeStep::Wait { task }),
        "stop" => task(argument).map(|task| PracticeStep::Stop { task }),
        "read" => Some(PracticeStep::Read {
            path: unquoted(argument),
        }),
        "find" => Some(PracticeStep::Find {
            pattern: unquoted(argument),
        }),
        "search" => Some(search(argument)),
        "call" => server_tool(argument),
        "write" => {
            let (path, content) = argument.split_once(':')?;
            Some(PracticeStep::Write {
                path: path_before_colon(path)?,
                content: content.strip_prefix(' ').unwrap_or(content).to_owned(),
            })
        }
        "edit" => {
            let (path, change) = argument.split_once(':')?;
            let (old, new) = change.split_once("=>")?;
            Some(PracticeStep::Edit {
                path: path_before_colon(path)?,
                old: unquoted(old),
                new: unquoted(new),
            })
        }
        _ => None,
    }
}

fn run(argument: &str) -> PracticeStep {
    let background = argument.strip_prefix("in the background:");
    PracticeStep::Run {
        command: unquoted(background.unwrap_or(argument)),
        background: background.is_some(),
    }
}

/// `mcp__SERVER__TOOL`, alone or with its arguments as JSON.
fn server_tool(argument: &str) -> Option<PracticeStep> {
    let (tool, arguments) = argument.split_once(' ').unwrap_or((argument, "{}"));
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    (tool.starts_with("mcp__") && arguments.is_object()).then(|| PracticeStep::Call {
        tool: tool.to_owned(),
        arguments,
    })
}

/// `task N`.
fn task(words: &str) -> Option<u32> {
    words.strip_prefix("task ")?.trim().parse().ok()
}

fn search(argument: &str) -> PracticeStep {
    let argument = argument.strip_prefix("for ").unwrap_or(argument);
    match argument.rsplit_once(" in ") {
        Some((pattern, path)) => PracticeStep::Search {
            pattern: unquoted(pattern),
            path: Some(path).filter(|path| !is_here(path)).map(unquoted),
        },
        None => PracticeStep::Search {
            pattern: unquoted(argument),
            path: None,
        },
    }
}

/// The first word in lower case, after a "please", and what follows it.
fn split_word(text: &str) -> (String, &str) {
    let (word, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let word = word.to_lowercase();
    if word == "please" && !rest.is_empty() {
        return split_word(rest);
    }
    (word, rest.trim())
}

fn path_before_colon(path: &str) -> Option<String> {
    let path = unquoted(path);
    (!path.is_empty()).then_some(path)
}

/// Without surrounding spaces and one pair of quotes or backticks around the whole.
fn unquoted(text: &str) -> String {
    let text = text.trim();
    let inner = ['`', '"', '\''].into_iter().find_map(|quote| {
        text.strip_prefix(quote)?
            .strip_suffix(quote)
            .filter(|inner| !inner.is_empty() && !inner.contains(quote))
    });
    inner.unwrap_or(text).to_owned()
}

/// True if these words mean the folder of the sandbox.
fn is_here(text: &str) -> bool {
    let words = text.to_lowercase();
    let mut words = words
        .split(|char: char| !char.is_alphanumeric() && !matches!(char, '/' | '.' | '_' | '-'))
        .filter(|word| !word.is_empty());
    words.all(|word| {
        matches!(
            word,
            "the" | "this" | "all" | "my" | "files" | "folder" | "directory" | "here" | "in" | "."
        )
    })
}

/// Questions such as "what is in this folder?" or "which files are here".
fn asks_for_listing(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut words = lower.split(|char: char| !char.is_alphanumeric());
    let asks = words
        .next()
        .is_some_and(|word| matches!(word, "what" | "which" | "show"));
    asks && words.any(|word| matches!(word, "folder" | "directory" | "files" | "here"))
}

#[cfg(test)]
mod tests;
