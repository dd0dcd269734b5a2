//! The tools that clients call. Each is a use case of the server, in words for a model.

mod commands;
mod files;
mod runners;
mod sessions;
mod tasks;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use server_app::{AppError, CallerTool, rights::Action};
use shared_types::ImageFormat;

use super::{Client, calls::Progress, message::Request};
use crate::words;

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Exec,
    Read,
    Write,
    Edit,
    Glob,
    Grep,
    List,
    ListRunners,
    StartTask,
    ReadTask,
    StopTask,
    ListSessions,
    ReadSession,
}

/// Every tool, in the order in which clients get them.
const ALL: [Tool; 13] = [
    Tool::Exec,
    Tool::Read,
    Tool::Write,
    Tool::Edit,
    Tool::Glob,
    Tool::Grep,
    Tool::List,
    Tool::ListRunners,
    Tool::StartTask,
    Tool::ReadTask,
    Tool::StopTask,
    Tool::ListSessions,
    Tool::ReadSession,
];

/// The nature of a tool, for clients that ask people before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    /// It only reads.
    Reads,
    /// It changes files. A second call changes nothing more where it is idempotent.
    Changes { idempotent: bool },
    /// It may do anything that its machine permits.
    Acts,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Read => "read",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Glob => "glob",
            Self::Grep => "grep",
            Self::List => "list",
            Self::ListRunners => "list_runners",
            Self::StartTask => "start_task",
            Self::ReadTask => "read_task",
            Self::StopTask => "stop_task",
            Self::ListSessions => "list_sessions",
            Self::ReadSession => "read_session",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Exec => "Run a command",
            Self::Read => "Read a file",
            Self::Write => "Write a file",
            Self::Edit => "Edit a file",
            Self::Glob => "Find files by name",
            Self::Grep => "Find lines by content",
            Self::List => "List a directory",
            Self::ListRunners => "List runners",
            Self::StartTask => "Give work to an agent",
            Self::ReadTask => "Read a task",
            Self::StopTask => "Stop a task",
            Self::ListSessions => "List sessions",
            Self::ReadSession => "Read a session",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Exec => {
                "Runs a shell command in the workspace of a runner and returns its output and exit code. It has no \
                 terminal and no input. A command that takes longer than timeout_ms goes on in the background for up \
                 to 24 hours: read it with read_task, and do not run it again. Everything that a command started is \
                 stopped at its end."
            }
            Self::Read => {
                "Reads lines of a text file. Each line is shown with its number and a tab, which are not part of the \
                 file. A long file is shown in part; the result says where to read on. An image (.png, .jpg, .gif, \
                 .webp) is returned as an image."
            }
            Self::Write => {
                "Writes a whole file in place of what is there. Missing directories are made. Use edit to change a part \
                 of a file."
            }
            Self::Edit => {
                "Replaces text in a file. The old text must stand in the file exactly once, character by character, \
                 unless every occurrence is to be replaced."
            }
            Self::Glob => {
                "Finds files by name, the newest first. What .gitignore names is left out."
            }
            Self::Grep => {
                "Finds lines by content and shows them as path:line:text. What .gitignore names is left out, and binary \
                 files."
            }
            Self::List => {
                "Lists a directory by name: directories end with /, links with @, files show their size in bytes."
            }
            Self::ListRunners => {
                "Lists the runners, which are the machines that tools work on: whether each is online, which one is \
                 active, and its workspaces."
            }
            Self::StartTask => {
                "Gives work to an agent of Gantry, in a new session or as the next message of one. It returns the id of \
                 the session at once; the agent goes on by itself. Wait for its answer with read_task."
            }
            Self::ReadTask => {
                "Waits for the end of a command in the background (op_…), and returns what it wrote; or for the answer \
                 of an agent in a session (ses_…). What has not ended after wait_ms goes on: call again."
            }
            Self::StopTask => {
                "Stops a command in the background (op_…) with everything that it started, or the work of an agent in a \
                 session (ses_…)."
            }
            Self::ListSessions => {
                "Lists the user's sessions, the most recently used first: title, state and id."
            }
            Self::ReadSession => {
                "Reads the last messages of a session: what people and the agent said, and which tools it called."
            }
        }
    }

    fn nature(self) -> Nature {
        match self {
            Self::Exec | Self::StartTask => Nature::Acts,
            Self::Write => Nature::Changes { idempotent: true },
            Self::Edit => Nature::Changes { idempotent: false },
            Self::StopTask => Nature::Changes { idempotent: true },
            Self::Read
            | Self::Glob
            | Self::Grep
            | Self::List
            | Self::ListRunners
            | Self::ReadTask
            | Self::ListSessions
            | Self::ReadSession => Nature::Reads,
        }
    }

    /// The actions that it takes, all of them.
    fn needs(self) -> &'static [Action] {
        match self {
            Self::Exec | Self::Write | Self::Edit => &[Action::StartOperation, Action::UseRunner],
            Self::Read | Self::Glob | Self::Grep | Self::List => {
                &[Action::StartOperation, Action::UseRunner]
            }
            Self::ListRunners => &[Action::SeeRunner],
            Self::StartTask => &[Action::BeginSession, Action::SendMessage],
            Self::ReadTask => &[Action::ReadOperation],
            Self::StopTask => &[Action::CancelOperation],
            Self::ListSessions | Self::ReadSession => &[Action::ReadSession],
        }
    }

    /// The tool of the server's own agents that does the work, where it is one of theirs.
    fn of_agents(self) -> Option<CallerTool> {
        match self {
            Self::Exec => Some(CallerTool::Shell),
            Self::Read => Some(CallerTool::Read),
            Self::Write => Some(CallerTool::Write),
            Self::Edit => Some(CallerTool::Edit),
            Self::Glob => Some(CallerTool::Glob),
            Self::Grep => Some(CallerTool::Grep),
            Self::List => Some(CallerTool::List),
            _ => None,
        }
    }

    fn schema(self) -> Value {
        match (self, self.of_agents()) {
            (_, Some(tool)) => files::schema(tool),
            (Self::ListRunners, _) => runners::list_schema(),
            (Self::StartTask, _) => tasks::start_schema(),
            (Self::ReadTask, _) => tasks::read_schema(),
            (Self::StopTask, _) => tasks::stop_schema(),
            (Self::ListSessions, _) => sessions::list_schema(),
            _ => sessions::read_schema(),
        }
    }

    fn definition(self) -> Value {
        let nature = self.nature();
        let (reads, idempotent) = match nature {
            Nature::Reads => (true, true),
            Nature::Changes { idempotent } => (false, idempotent),
            Nature::Acts => (false, false),
        };
        json!({
            "name": self.name(),
            "title": self.title(),
            "description": self.description(),
            "inputSchema": self.schema(),
            "annotations": {
                "title": self.title(),
                "readOnlyHint": reads,
                "destructiveHint": !reads,
                "idempotentHint": idempotent,
                "openWorldHint": nature == Nature::Acts,
            },
        })
    }
}

/// The tools for which the credential of the client is good.
pub(super) fn list(client: &Client) -> Value {
    let access = &client.doors.app.access;
    let may = |tool: &Tool| {
        let mut needs = tool.needs().iter();
        needs.all(|action| access.may(&client.ctx, *action))
    };
    let tools: Vec<_> = ALL.into_iter().filter(may).map(Tool::definition).collect();
    json!({ "tools": tools })
}

/// A call that is to be carried out.
#[derive(Debug)]
pub(super) struct Call {
    tool: Tool,
    arguments: Map<String, Value>,
    /// The name under which the client wants to hear of its progress.
    pub(super) progress: Option<Value>,
}

/// The call of a request.
///
/// # Errors
/// If there is no such tool.
pub(super) fn call(client: &Client, request: Request) -> Result<Call, String> {
    let mut params = request.params;
    let name = params.get("name").and_then(Value::as_str);
    let tool = ALL.into_iter().find(|tool| name == Some(tool.name()));
    let Some(tool) = tool else {
        let names: Vec<_> = ALL.iter().map(|tool| tool.name()).collect();
        let all = names.join(", ");
        return Err(format!(
            "there is no tool of this name; the tools are {all}"
        ));
    };
    let arguments = match params.remove("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err("arguments is not an object".to_owned()),
    };
    let meta = params.get("_meta");
    let progress = meta.and_then(|meta| meta.get("progressToken"));
    let progress = progress.filter(|token| token.is_string() || token.is_number());
    tracing::debug!(mcp.tool = tool.name(), user.id = %client.ctx.user, "a tool is called");
    Ok(Call {
        tool,
        arguments,
        progress: progress.cloned(),
    })
}

impl Call {
    /// Carries it out. `key` names its operation, if it has one and its client chose no other key.
    pub(super) async fn run(self, client: &Client, key: &str, progress: &Progress<'_>) -> Said {
        let Self {
            tool, arguments, ..
        } = self;
        let said = match (tool, tool.of_agents()) {
            (_, Some(of_agents)) => files::call(client, of_agents, arguments, key, progress).await,
            (Tool::ListRunners, _) => runners::list(client, arguments).await,
            (Tool::StartTask, _) => tasks::start(client, arguments).await,
            (Tool::ReadTask, _) => tasks::read(client, arguments, progress).await,
            (Tool::StopTask, _) => tasks::stop(client, arguments).await,
            (Tool::ListSessions, _) => sessions::list(client, arguments).await,
            _ => sessions::read(client, arguments).await,
        };
        said.unwrap_or_else(|error| {
            if let AppError::Unavailable(cause) = &error {
                tracing::error!(%cause, mcp.tool = tool.name(), "a tool could not be called");
            }
            Said::failed(&error.to_string())
        })
    }
}

/// The result of a tool, for a model.
#[derive(Debug)]
pub(super) struct Said {
    text: String,
    image: Option<(ImageFormat, Bytes)>,
    failed: bool,
}

impl Said {
    fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            image: None,
            failed: false,
        }
    }

    /// A failure, in words that say what to do.
    pub(super) fn failed(text: &str) -> Self {
        Self {
            failed: true,
            ..Self::text(text)
        }
    }

    /// The result as the protocol has it.
    pub(super) fn into_result(self) -> Value {
        let mut content = Vec::new();
        if let Some((format, bytes)) = self.image {
            content.push(json!({
                "type": "image",
                "data": BASE64_STANDARD.encode(bytes),
                "mimeType": format.media_type(),
            }));
        }
        if !self.text.is_empty() || content.is_empty() {
            content.push(json!({ "type": "text", "text": self.text }));
        }
        json!({ "content": content, "isError": self.failed })
    }
}

/// The arguments of a tool.
///
/// # Errors
/// If they are not those of the tool.
fn arguments<T: DeserializeOwned>(given: Map<String, Value>) -> Result<T, AppError> {
    // A client may write null for what it leaves out.
    let given = given.into_iter().filter(|(_, value)| !value.is_null());
    serde_json::from_value(Value::Object(given.collect()))
        .map_err(|error| AppError::Invalid(words::of_message(&error)))
}

/// The schema of an object with these arguments.
fn object(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
