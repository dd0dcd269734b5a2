//! The arguments of a tool call, parsed once.

use std::sync::Arc;

use serde_json::{Map, Value};
use shared_types::event::ToolCall;

use super::safe;

/// The thing that a call asks for. Commands, paths and patterns show each of their letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A command.
    Shell {
        /// The command.
        command: String,
        /// The folder in which it starts; empty for the session's.
        directory: String,
        /// True if it is to run in the background.
        in_background: bool,
    },
    /// A file to read.
    Read {
        /// The path.
        path: String,
        /// The first line, where not all of it is wanted.
        first: Option<u64>,
    },
    /// A file to write.
    Write {
        /// The path.
        path: String,
        /// The content.
        content: Arc<str>,
    },
    /// A text to replace.
    Edit {
        /// The path.
        path: String,
        /// The text before.
        old: Arc<str>,
        /// The text after.
        new: Arc<str>,
        /// True if every occurrence is meant.
        every: bool,
    },
    /// A folder to list.
    List {
        /// The path.
        path: String,
    },
    /// Names of files to find.
    Glob {
        /// The pattern.
        pattern: String,
        /// The folder; empty for the session's.
        path: String,
    },
    /// Lines of files to find.
    Grep {
        /// The pattern.
        pattern: String,
        /// The folder; empty for the session's.
        path: String,
        /// The names of files that are searched; empty for all.
        files: String,
    },
    /// A page of the web.
    Fetch {
        /// Its address.
        url: String,
    },
    /// A search of the web.
    Search {
        /// The words.
        query: String,
    },
    /// A new to-do list.
    TodoWrite,
    /// Something of a background command.
    Task {
        /// Its number; absent for all of them.
        task: Option<u32>,
    },
    /// A question to a person.
    Ask {
        /// The question.
        question: String,
    },
    /// A plan to agree on.
    Plan {
        /// The plan, as Markdown.
        plan: String,
    },
    /// Another tool, or arguments without the expected form.
    Other {
        /// The argument that tells one call from another; all arguments where none is known.
        about: String,
    },
}

/// Longest text of arguments that are shown as they are, in characters.
const MOST_OTHER: usize = 2000;

impl Request {
    /// The request of a call.
    pub fn of(call: &ToolCall) -> Self {
        let Ok(Value::Object(arguments)) = serde_json::from_str(&call.arguments) else {
            return Self::unknown(&call.arguments);
        };
        let has = Arguments(&arguments);
        Self::known(&call.name, &has).unwrap_or_else(|| Self::Other { about: about(&has) })
    }

    fn unknown(arguments: &str) -> Self {
        let about: String = safe::whole(arguments).chars().take(MOST_OTHER).collect();
        Self::Other { about }
    }

    fn known(name: &str, has: &Arguments<'_>) -> Option<Self> {
        Some(match name {
            "Shell" => Self::Shell {
                command: has.whole("command")?,
                directory: has.text("directory"),
                in_background: has.flag("background"),
            },
            "Read" => Self::Read {
                path: has.whole("path")?,
                first: has.number("first_line").filter(|line| *line > 1),
            },
            "Write" => Self::Write {
                path: has.whole("path")?,
                content: has.file_text("content")?,
            },
            "Edit" => Self::Edit {
                path: has.whole("path")?,
                old: has.file_text("old")?,
                new: has.file_text("new")?,
                every: has.flag("replace_all"),
            },
            "List" => Self::List {
                path: has.text("path"),
            },
            "Glob" => Self::Glob {
                pattern: has.whole("pattern")?,
                path: has.text("path"),
            },
            "Grep" => Self::Grep {
                pattern: has.whole("pattern")?,
                path: has.text("path"),
                files: has.text("files"),
            },
            "web_fetch" => Self::Fetch {
                url: has.whole("url")?,
            },
            "web_search" => Self::Search {
                query: has.whole("query")?,
            },
            "todo_write" => Self::TodoWrite,
            "task_read" | "task_status" | "task_kill" => Self::Task {
                task: has.number("task").and_then(|task| task.try_into().ok()),
            },
            "ask_user" => Self::Ask {
                question: has.whole("question")?,
            },
            "present_plan" => Self::Plan {
                plan: safe::text(has.raw("plan")?),
            },
            _ => return None,
        })
    }

    /// True for a call that only looks: a read or a search of files.
    pub fn looks(&self) -> bool {
        match self {
            Self::Read { .. } | Self::List { .. } | Self::Glob { .. } | Self::Grep { .. } => true,
            Self::Shell { .. }
            | Self::Write { .. }
            | Self::Edit { .. }
            | Self::Fetch { .. }
            | Self::Search { .. }
            | Self::TodoWrite
            | Self::Task { .. }
            | Self::Ask { .. }
            | Self::Plan { .. }
            | Self::Other { .. } => false,
        }
    }

    /// The request in few words, on one line.
    pub fn about(&self) -> String {
        let within = |what: &str, path: &str| match path {
            "" => what.to_owned(),
            path => format!("{what} in {path}"),
        };
        let about = match self {
            Self::Shell { command, .. } => command.clone(),
            Self::Read { path, first: None } => path.clone(),
            Self::Read {
                path,
                first: Some(line),
            } => format!("{path} from line {line}"),
            Self::Write { path, .. } | Self::Edit { path, .. } => path.clone(),
            Self::List { path } if path.is_empty() => ".".to_owned(),
            Self::List { path } => path.clone(),
            Self::Glob { pattern, path } => within(pattern, path),
            Self::Grep {
                pattern,
                path,
                files,
            } => {
                let which = match (path.as_str(), files.as_str()) {
                    ("" | ".", files) => files.to_owned(),
                    (path, "") => path.to_owned(),
                    (path, files) => format!("{path}/{files}"),
                };
                within(&format!("\"{pattern}\""), &which)
            }
            Self::Fetch { url } => url.clone(),
            Self::Search { query } => query.clone(),
            Self::TodoWrite | Self::Task { task: None } => String::new(),
            Self::Task { task: Some(task) } => format!("task {task}"),
            Self::Ask { question } => question.clone(),
            Self::Plan { plan } => plan.lines().next().unwrap_or_default().to_owned(),
            Self::Other { about } => about.clone(),
        };
        safe::line(&about)
    }

    /// The size of its texts, in bytes.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Write { content, .. } => content.len(),
            Self::Edit { old, new, .. } => old.len() + new.len(),
            Self::Shell { command, .. } => command.len(),
            Self::Plan { plan } => plan.len(),
            _ => MOST_OTHER,
        }
    }
}

/// The argument that tells one call of an unknown tool from another.
fn about(has: &Arguments<'_>) -> String {
    const FIRST: [&str; 8] = [
        "command",
        "query",
        "pattern",
        "path",
        "url",
        "of",
        "text",
        "description",
    ];
    let known = FIRST.iter().find_map(|name| has.raw(name));
    let text = known.or_else(|| has.0.values().find_map(Value::as_str));
    let text = safe::whole(text.unwrap_or_default());
    text.chars().take(MOST_OTHER).collect()
}

struct Arguments<'a>(&'a Map<String, Value>);

impl Arguments<'_> {
    fn raw(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    fn whole(&self, name: &str) -> Option<String> {
        self.raw(name).map(safe::whole)
    }

    /// The text of a file. How its lines end does not matter to people.
    fn file_text(&self, name: &str) -> Option<Arc<str>> {
        let text = self.raw(name)?.replace("\r\n", "\n");
        Some(safe::whole(&text).into())
    }

    /// The same, empty if it is absent.
    fn text(&self, name: &str) -> String {
        self.whole(name).unwrap_or_default()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}
