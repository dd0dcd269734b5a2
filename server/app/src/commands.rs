//! The commands that a person writes in a conversation, behind a slash.
//!
//! They are the same on every surface (terminal, browser, chat programs): a surface sends the line as it was written,
//! shows the answer, and goes on in the session that the answer names. Each command is an action that the API has also,
//! with its rights.

use std::sync::Arc;

use shared_types::{
    Clock, SessionId, WhileWorking, clean::clean_line, event::Terms, limits::MAX_MESSAGE_BYTES,
};

mod choices;
mod extensions;
mod other_sessions;
mod reports;
mod rewind;

use crate::{
    AppError, Approvals, Extensions, ModelAccounts, NewMessage, OpContext, Permissions, Rewinds,
    Runners, Sent, Session, Sessions, Settings, ToolServerUses, Usage, gate::Gate, rights::Action,
};

/// Longest name of a skill, or of a command of a plugin with the plugin's name.
const MAX_NAME_BYTES: usize = 128;

/// A command, as `/help` lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Its name, without the slash.
    pub name: &'static str,
    /// Its arguments, those in brackets optional; empty for none.
    pub arguments: &'static str,
    /// Its effect, in a few words.
    pub summary: &'static str,
    /// True if the conversation may go on in another session. A surface that shows a turn then sends it after that.
    pub between_turns: bool,
    verb: Verb,
}

/// The effect of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    New,
    Sessions,
    Resume,
    Back,
    Delete,
    Queue,
    Interrupt,
    Stop,
    Status,
    Model,
    Runner,
    Mode,
    Config,
    Permissions,
    Skills,
    Hooks,
    Plugins,
    Mcp,
    Compact,
    Rewind,
    Context,
    Usage,
    Tasks,
    Agents,
    Help,
}

const fn stays(
    verb: Verb,
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
) -> Command {
    Command {
        name,
        arguments,
        summary,
        between_turns: false,
        verb,
    }
}

const fn goes(
    verb: Verb,
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
) -> Command {
    Command {
        between_turns: true,
        ..stays(verb, name, arguments, summary)
    }
}

/// All commands, in the order of `/help`.
#[rustfmt::skip]
const COMMANDS: [Command; 25] = [
    goes(Verb::New, "new", "", "begin a new session in the same place"),
    stays(Verb::Sessions, "sessions", "[WORDS]", "list your sessions, or those with WORDS in their titles"),
    goes(Verb::Resume, "resume", "SESSION", "go on in another session: its id, or words of its title"),
    goes(Verb::Back, "back", "", "go back to the session that you used before this one"),
    goes(Verb::Delete, "delete", "yes", "delete this session and all output of its commands"),
    stays(Verb::Queue, "queue", "TEXT", "send TEXT once the turn is over"),
    stays(Verb::Interrupt, "interrupt", "TEXT", "stop the turn, and send TEXT"),
    stays(Verb::Stop, "stop", "[N]", "stop what this session is doing, or task N"),
    stays(Verb::Status, "status", "", "show where and how this session works"),
    stays(Verb::Model, "model", "[NAME]", "list the models, or choose one for this session; - goes back to yours"),
    stays(Verb::Runner, "runner", "[NAME]", "list the runners, or pin this session to one; - lifts the pin"),
    stays(Verb::Mode, "mode", "[MODE]", "show the mode, or set plan, ask, auto or full for this session; - goes back to yours"),
    stays(Verb::Config, "config", "[NAME [VALUE]]", "show your settings, or change one; - removes the value"),
    stays(Verb::Permissions, "permissions", "", "list the rules about what agents may do"),
    stays(Verb::Skills, "skills", "", "list the skills; /NAME uses one"),
    stays(Verb::Hooks, "hooks", "", "list the hooks, and whether they run"),
    stays(Verb::Plugins, "plugins", "", "list the plugins, with their tools and commands"),
    stays(Verb::Mcp, "mcp", "", "list the tool servers, and whether they work"),
    stays(Verb::Compact, "compact", "[WHAT]", "make room in the model's window; WHAT says what matters most"),
    stays(Verb::Rewind, "rewind", "[NUMBER [WHAT]]", "list your messages, or go back to before one: both, conversation or files"),
    stays(Verb::Context, "context", "", "show how full the model's window is, and of what"),
    stays(Verb::Usage, "usage", "", "show what this session, today and the last 30 days cost"),
    stays(Verb::Tasks, "tasks", "", "list the commands that went on in the background"),
    stays(Verb::Agents, "agents", "[stop NAME]", "list the agents of this session, or stop one"),
    stays(Verb::Help, "help", "", "list these commands"),
];

/// Other words for commands.
const ALIASES: [(&str, &str); 4] = [
    ("models", "model"),
    ("runners", "runner"),
    ("s", "sessions"),
    ("?", "help"),
];

/// A line that a person wrote in a session.
#[derive(Debug, Clone, Default)]
pub struct CommandLine {
    /// The line, with its slash.
    pub line: String,
    /// The terms of messages from this surface.
    pub terms: Terms,
    /// The idempotency key of the message that the line may send.
    pub client_id: Option<String>,
}

/// The outcome of a command.
#[derive(Debug, Clone, Default)]
pub struct CommandDone {
    /// The parts of the answer that are shown, in their order.
    pub shown: Vec<Shown>,
    /// The session in which the conversation goes on, where that is another one.
    pub session: Option<Session>,
    /// The message that was sent.
    pub message: Option<Sent>,
    /// True if the mode was set. The surface names no other mode with its messages from now on.
    pub sets_mode: bool,
    /// A text to be changed and sent: a surface puts it where the next message is written.
    pub draft: Option<String>,
}

/// A part of an answer. It may hold names that others chose: a surface cleans it of control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// A line.
    Text(String),
    /// Rows below headings; without headings, pairs of a name and its value.
    Table {
        /// The headings.
        columns: Vec<&'static str>,
        /// The rows, as wide as the headings.
        rows: Vec<Vec<String>>,
    },
}

impl CommandDone {
    fn text(text: impl Into<String>) -> Self {
        Self::shown([Shown::Text(text.into())])
    }

    fn shown(shown: impl Into<Vec<Shown>>) -> Self {
        Self {
            shown: shown.into(),
            ..Self::default()
        }
    }
}

/// The use cases of this file.
#[derive(Clone)]
pub struct Commands {
    pub(crate) gate: Gate,
    pub(crate) sessions: Sessions,
    pub(crate) settings: Settings,
    pub(crate) runners: Runners,
    pub(crate) models: ModelAccounts,
    pub(crate) usage: Usage,
    pub(crate) approvals: Approvals,
    pub(crate) permissions: Permissions,
    pub(crate) extensions: Extensions,
    pub(crate) tool_servers: ToolServerUses,
    pub(crate) rewinds: Rewinds,
    pub(crate) clock: Arc<dyn Clock>,
}

/// A command with the session in which it was written.
struct Asked<'a> {
    ctx: &'a OpContext,
    session: Session,
    /// The words behind the command.
    words: &'a str,
    terms: &'a Terms,
    client_id: Option<String>,
}

impl Asked<'_> {
    fn id(&self) -> SessionId {
        self.session.id
    }

    /// Refuses what only a person may do: a script passes on lines of others.
    fn by_a_person(&self, instead: &str) -> Result<(), AppError> {
        match self.terms.unattended {
            true => Err(AppError::Invalid(format!(
                "only a person at a terminal or in a browser can do this here; {instead}"
            ))),
            false => Ok(()),
        }
    }
}

impl Commands {
    /// All commands, in the order in which help lists them.
    ///
    /// # Errors
    /// If the user may not converse.
    pub fn list(&self, ctx: &OpContext) -> Result<&'static [Command], AppError> {
        self.gate.own(ctx, Action::ReadSession)?;
        Ok(&COMMANDS)
    }

    /// Does what a line in a session says.
    ///
    /// # Errors
    /// If the user has no such session or may not do this, there is no such command, or its arguments do not fit; the
    /// text says what does.
    pub async fn run(
        &self,
        ctx: &OpContext,
        session: SessionId,
        asked: CommandLine,
    ) -> Result<CommandDone, AppError> {
        self.gate.session(ctx, Action::SendMessage, session).await?;
        let line = asked.line.as_str();
        let parsed = parse(line);
        let (name, behind) = named(line);
        let words = parsed.as_ref().map_or(behind, |(_, words)| words);
        let asked = Asked {
            ctx,
            session: self.sessions.get(ctx, session).await?,
            words,
            terms: &asked.terms,
            client_id: asked.client_id,
        };
        let command = match parsed {
            Ok((command, _)) => command,
            // What is no command may be one of a plugin, a skill, or the prompt of a tool server.
            Err(unknown) if is_command(name) => return Err(unknown),
            Err(unknown) => {
                if self.is_of_plugin(&asked, name).await? || self.is_skill(&asked, name).await? {
                    // Its turn runs the command, or has the model use the skill.
                    return self.send(asked, NewMessage::of(line)).await;
                }
                let prompt = self.tool_servers.prompt(ctx, session, name, asked.words);
                if let Some(message) = prompt.await? {
                    return self.send(asked, message).await;
                }
                return match may_be_of_project(name) && self.may_be_first(&asked).await? {
                    true => self.send_first(asked, line).await,
                    false => Err(unknown),
                };
            }
        };
        match command.verb {
            Verb::New => self.new_session(&asked).await,
            Verb::Sessions => self.list_sessions(&asked).await,
            Verb::Resume => self.resume(&asked).await,
            Verb::Back => self.back(&asked).await,
            Verb::Delete => self.delete(&asked).await,
            Verb::Queue => self.say(asked, WhileWorking::Queue).await,
            Verb::Interrupt => self.say(asked, WhileWorking::Interrupt).await,
            Verb::Compact => self.compact(asked).await,
            Verb::Stop => self.stop(&asked).await,
            Verb::Status => self.status(&asked).await,
            Verb::Model => self.model(&asked).await,
            Verb::Runner => self.runner(&asked).await,
            Verb::Mode => self.mode(&asked).await,
            Verb::Config => self.config(&asked).await,
            Verb::Permissions => self.permissions(&asked).await,
            Verb::Skills => self.skills(&asked).await,
            Verb::Hooks => self.hooks(&asked).await,
            Verb::Plugins => self.plugins(&asked).await,
            Verb::Mcp => self.mcp(&asked).await,
            Verb::Rewind => self.rewind(&asked).await,
            Verb::Context => self.context(&asked).await,
            Verb::Usage => self.usage(&asked).await,
            Verb::Tasks => self.tasks(&asked).await,
            Verb::Agents => self.agents(&asked).await,
            Verb::Help => Ok(help()),
        }
    }

    async fn say(
        &self,
        asked: Asked<'_>,
        while_working: WhileWorking,
    ) -> Result<CommandDone, AppError> {
        let message = NewMessage {
            while_working,
            ..NewMessage::of(asked.words)
        };
        let attached = self.tool_servers.attached(asked.ctx, asked.id(), message);
        let message = attached.await?;
        self.send(asked, message).await
    }

    /// True if no turn of the session has looked at the project, whose skills and plugins are known only then; or if
    /// this line was sent before: its own turn may have looked at it since.
    async fn may_be_first(&self, asked: &Asked<'_>) -> Result<bool, AppError> {
        if !self.has_looked(asked).await? {
            return Ok(true);
        }
        match &asked.client_id {
            Some(client_id) => {
                self.sessions
                    .is_sent(asked.ctx, asked.id(), client_id)
                    .await
            }
            None => Ok(false),
        }
    }

    /// Sends a line that may be a command of the project, which no turn has looked at.
    async fn send_first(&self, asked: Asked<'_>, line: &str) -> Result<CommandDone, AppError> {
        let (name, _) = named(line);
        let words = format!(
            "/{name} is sent as a message: this turn looks first at what the project brings"
        );
        let sent = self.send(asked, NewMessage::of(line)).await?;
        Ok(CommandDone {
            shown: vec![Shown::Text(words)],
            ..sent
        })
    }

    async fn compact(&self, asked: Asked<'_>) -> Result<CommandDone, AppError> {
        let message = NewMessage {
            compacts: Some(asked.words.to_owned()),
            ..NewMessage::of("/compact")
        };
        self.send(asked, message).await
    }

    async fn send(&self, asked: Asked<'_>, message: NewMessage) -> Result<CommandDone, AppError> {
        let id = asked.id();
        let message = NewMessage {
            terms: asked.terms.clone(),
            client_id: asked.client_id,
            ..message
        };
        let sent = self.sessions.send(asked.ctx, id, message).await?;
        Ok(CommandDone {
            message: Some(sent),
            ..CommandDone::default()
        })
    }
}

/// The name behind the slash of a line, and the words behind that.
fn named(line: &str) -> (&str, &str) {
    let command = line.strip_prefix('/').unwrap_or_default();
    let (name, words) = command
        .split_once(char::is_whitespace)
        .unwrap_or((command, ""));
    (name, words.trim())
}

/// True for a name that a skill, or a command of a plugin, may have.
fn may_be_of_project(name: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':');
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.chars().all(fits)
}

/// True if a command has this name.
fn is_command(name: &str) -> bool {
    let alias = ALIASES.iter().any(|(alias, _)| *alias == name);
    alias || COMMANDS.iter().any(|command| command.name == name)
}

/// The command of a line, and the words behind it.
fn parse(line: &str) -> Result<(&'static Command, &str), AppError> {
    if line.len() > MAX_MESSAGE_BYTES {
        return Err(AppError::Invalid(format!(
            "the line has {} bytes; at most {MAX_MESSAGE_BYTES} can be sent at once",
            line.len()
        )));
    }
    let unknown = || {
        let shown = clean_line(line.split_whitespace().next().unwrap_or_default(), 40);
        AppError::Invalid(format!(
            "there is no {shown}; /help lists what there is, and a space before the slash makes it a message"
        ))
    };
    let (name, words) = named(line);
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, name)| name);
    let command = COMMANDS.iter().find(|command| command.name == name);
    let command = command.ok_or_else(unknown)?;
    let fits = match command.arguments {
        "" => words.is_empty(),
        arguments => arguments.starts_with('[') || arguments == "yes" || !words.is_empty(),
    };
    match fits {
        true => Ok((command, words)),
        false => Err(AppError::Invalid(format!("write {}", usage(command)))),
    }
}

/// `/queue TEXT`.
fn usage(command: &Command) -> String {
    format!("/{} {}", command.name, command.arguments)
        .trim_end()
        .to_owned()
}

fn help() -> CommandDone {
    let rows = COMMANDS
        .iter()
        .map(|command| vec![usage(command), command.summary.to_owned()]);
    CommandDone::shown([
        Shown::Table {
            columns: Vec::new(),
            rows: rows.collect(),
        },
        Shown::Text("A space before the slash makes a line a message.".to_owned()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(&'static str, &str), String> {
        parse(line)
            .map(|(command, words)| (command.name, words))
            .map_err(|wrong| wrong.to_string())
    }

    #[test]
    fn a_line_is_a_command_with_the_words_behind_it() {
        assert_eq!(parsed("/new"), Ok(("new", "")));
        assert_eq!(parsed("/model a/b, c "), Ok(("model", "a/b, c")));
        assert_eq!(parsed("/models"), Ok(("model", "")));
        assert_eq!(parsed("/queue  go on "), Ok(("queue", "go on")));
        assert_eq!(
            parsed("/queue first\nsecond"),
            Ok(("queue", "first\nsecond"))
        );
        assert_eq!(parsed("/stop 2"), Ok(("stop", "2")));
        assert_eq!(parsed("/delete"), Ok(("delete", "")));
        assert_eq!(parsed("/?"), Ok(("help", "")));
    }

    #[test]
    fn a_line_that_is_no_command_is_refused_with_what_to_write() {
        for (line, says) in [
            ("/etc/hosts", "there is no /etc/hosts; /help lists"),
            ("/", "there is no /;"),
            ("new", "there is no new;"),
            ("/new session", "write /new"),
            ("/queue", "write /queue TEXT"),
            ("/NEW", "there is no /NEW;"),
        ] {
            let wrong = parsed(line).expect_err(line);
            assert!(wrong.starts_with(says), "{line}: {wrong}");
        }
        let long = format!("/queue {}", "x".repeat(MAX_MESSAGE_BYTES));
        assert!(parsed(&long).expect_err("too long").contains("at most"));
    }

    #[test]
    fn every_name_is_listed_once_and_every_alias_means_one_of_them() {
        for (at, command) in COMMANDS.iter().enumerate() {
            assert!(
                COMMANDS[..at]
                    .iter()
                    .all(|other| other.name != command.name)
            );
        }
        for (alias, name) in ALIASES {
            assert!(COMMANDS.iter().all(|command| command.name != alias));
            assert!(COMMANDS.iter().any(|command| command.name == name));
        }
    }
}
