//! The question to people about a call: all that is to happen, and where.

use shared_consent::Verdict;
use shared_sandbox::{Command, Edit, Exec, Request, path_from_root};
use shared_types::{
    clean::{clean, clean_line},
    event::{Place, PlannedCall, PlannedPath},
};

use super::deed::MAKES_WORKTREE;
use crate::tools::{AgentAsk, Ask, ChatAsk, ServerAsk, WebAsk};

/// Longest text of a question, in bytes.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Longest name of a server's tool, in characters.
const MAX_TOOL_LETTERS: usize = 128;

/// Most reasons of a risk that are shown.
const MAX_REASONS: usize = 8;

/// The question about this request, which was judged so.
pub(crate) fn planned_call<T>(
    tool: &str,
    ask: &Ask,
    directory: &str,
    place: Option<&Place>,
    verdict: &Verdict<'_, T>,
) -> PlannedCall {
    let shown = Shown::of(ask, directory);
    let end = shown.text.floor_char_boundary(MAX_TEXT_BYTES);
    PlannedCall {
        tool: tool.to_owned(),
        cut: end < shown.text.len(),
        text: shown.text[..end].to_owned(),
        directory: shown.directory,
        environment: shown.environment,
        paths: shown.paths,
        runner: place.filter(|_| shown.on_runner).map(|place| place.runner),
        runner_name: place
            .filter(|_| shown.on_runner)
            .map_or_else(String::new, |place| place.runner_name.clone()),
        isolation: place
            .filter(|_| shown.on_runner)
            .map_or_else(String::new, |place| place.isolation.to_string()),
        risk: verdict.risk,
        reasons: verdict.reasons.iter().take(MAX_REASONS).cloned().collect(),
        why: verdict.why.clone(),
        rule: verdict.suggestion.as_ref().map(ToString::to_string),
        // A person edits a whole command that a terminal shows as it is.
        editable: shown.editable && end == shown.text.len() && !hides(&shown.text),
    }
}

/// The parts of a request that people are shown.
#[derive(Default)]
struct Shown {
    text: String,
    directory: String,
    environment: Vec<String>,
    paths: Vec<PlannedPath>,
    on_runner: bool,
    editable: bool,
}

impl Shown {
    fn of(ask: &Ask, directory: &str) -> Self {
        match ask {
            Ask::Operation(prepared) => Self {
                on_runner: true,
                ..Self::of_request(&prepared.request, directory)
            },
            Ask::Web(WebAsk::Fetch { url }) => Self::text(url.clone()),
            Ask::Web(WebAsk::Search { query, .. }) => Self::text(query.clone()),
            Ask::Server(ask) => Self::text(of_server(ask)),
            Ask::Chat(ask) => Self::text(of_chat(ask)),
            Ask::Agent(AgentAsk::Begin(ask)) => Self {
                on_runner: true,
                directory: directory.to_owned(),
                ..Self::text(format!(
                    "{MAKES_WORKTREE}\nfor an agent: {}",
                    clean(&ask.description)
                ))
            },
            _ => Self::default(),
        }
    }

    fn text(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }

    fn of_request(request: &Request, directory: &str) -> Self {
        let path = |path: &str, digest| PlannedPath {
            path: path_from_root(directory, path),
            digest,
        };
        match request {
            Request::Exec(exec) => Self::of_command(exec, directory),
            Request::Edit(edit) => Self {
                paths: vec![path(&edit.path, edit.expected)],
                ..Self::text(diff(edit))
            },
            Request::Write(write) => Self {
                paths: vec![path(&write.path, None)],
                ..Self::text(String::from_utf8_lossy(&write.content).into_owned())
            },
            other => Self::text(other.title()),
        }
    }

    fn of_command(exec: &Exec, directory: &str) -> Self {
        Self {
            directory: path_from_root(directory, &exec.directory),
            environment: exec.environment.keys().cloned().collect(),
            editable: matches!(exec.command, Command::Shell(_)),
            ..Self::text(match &exec.command {
                Command::Shell(script) => script.clone(),
                Command::Argv(words) => words.join(" "),
            })
        }
    }
}

/// A call of a tool server: what it asks, and the server's word on what that does, which may be false.
fn of_server(ask: &ServerAsk) -> String {
    let word = match (ask.read_only, ask.destructive) {
        (true, _) => "The server says that this only reads.\n",
        (false, Some(true)) => "The server says that this may destroy something.\n",
        (false, Some(false)) => "The server says that this destroys nothing.\n",
        (false, None) => "",
    };
    let arguments = serde_json::to_string_pretty(&ask.arguments).unwrap_or_default();
    let tool = clean_line(&ask.tool, MAX_TOOL_LETTERS);
    format!(
        "tool server {}, tool {tool}\n{word}{}",
        ask.server,
        clean(&arguments)
    )
}

/// A new conversation: its title, its mode where one is named, and its first message.
fn of_chat(ask: &ChatAsk) -> String {
    let mode = match ask.mode {
        Some(mode) => format!(" in the mode {mode}"),
        None => String::new(),
    };
    let title = clean_line(&ask.title, MAX_TOOL_LETTERS);
    format!(
        "begin the conversation \"{title}\"{mode} with:\n{}",
        clean(&ask.message)
    )
}

/// True if a terminal would not show all of it.
fn hides(text: &str) -> bool {
    text.chars()
        .any(|letter| letter.is_control() && letter != '\n' && letter != '\t')
}

/// An edit as lines that go, with `-`, and lines that come, with `+`.
fn diff(edit: &Edit) -> String {
    let every = match edit.every {
        true => "every occurrence:\n",
        false => "",
    };
    let lines = |text: &str, mark: char| -> String {
        text.lines().map(|line| format!("{mark}{line}\n")).collect()
    };
    format!("{every}{}{}", lines(&edit.old, '-'), lines(&edit.new, '+'))
}
