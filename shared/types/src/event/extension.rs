//! Extensions: the skills, roles, hooks, tool servers and plugins that people brought for a session.
//!
//! A turn looks for them before the model is asked, and records what it found. All that the engine does with them is a
//! function of that record.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Digest, limits::HOOK_ORDINALS};

/// The extensions of a session, each kind in the order of its names. Of two of one kind with the same name only the one
/// of the narrower layer is here, except for hooks: all hooks count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Extensions {
    /// Instructions that are loaded when they are used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Skill>,
    /// Roles of subagents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Role>,
    /// Hooks, in the order in which they run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// Tool servers: servers of the Model Context Protocol.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ToolServer>,
    /// Plugins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<Plugin>,
    /// Words on extensions that do not count, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

impl Extensions {
    /// True if there are none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The files whose hooks, tool servers or plugins do not count because people do not trust them, each once.
    pub fn untrusted(&self) -> Vec<&Provenance> {
        let hooks = self.hooks.iter().map(|hook| &hook.from);
        let servers = self.servers.iter().map(|server| &server.from);
        let plugins = self.plugins.iter().map(|plugin| &plugin.from);
        let mut files: Vec<_> = hooks.chain(servers).chain(plugins).collect();
        files.retain(|from| !from.trusted);
        files.sort_by_key(|from| &from.at);
        files.dedup_by_key(|from| &from.at);
        files
    }

    /// The news for people: a line with the numbers, and one for each file that does not count.
    pub fn words(&self) -> Vec<String> {
        let trusted = |from: &Provenance| from.trusted;
        let hooks = self.hooks.iter().filter(|hook| trusted(&hook.from));
        let servers = self.servers.iter().filter(|server| trusted(&server.from));
        let plugins = self.plugins.iter().filter(|plugin| trusted(&plugin.from));
        let counts = [
            (self.skills.len(), "skill"),
            (self.roles.len(), "agent"),
            (hooks.count(), "hook"),
            (servers.count(), "tool server"),
            (plugins.count(), "plugin"),
        ];
        let counts = counts.iter().filter(|(number, _)| *number > 0);
        let counts: Vec<_> = counts
            .map(|(number, noun)| match number {
                1 => format!("1 {noun}"),
                _ => format!("{number} {noun}s"),
            })
            .collect();
        let counted = match counts.is_empty() {
            true => "extensions: none any more".to_owned(),
            false => format!("extensions: {}", counts.join(", ")),
        };
        let untrusted = self.untrusted();
        let has_counted = !counts.is_empty() || untrusted.is_empty() && self.unread.is_empty();
        let untrusted = untrusted.into_iter().map(|file| {
            format!(
                "{} does nothing until you trust it: gantry extensions trust",
                file.at
            )
        });
        let unread = self.unread.iter().map(|why| format!("not used: {why}"));
        let counted = has_counted.then_some(counted);
        counted.into_iter().chain(untrusted).chain(unread).collect()
    }
}

/// The layer of an extension. A narrower one stands behind a wider one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Layer {
    /// An admin has registered it for all people of the tenant.
    Tenant,
    /// A person has registered it for their own sessions.
    User,
    /// A file of the project, on the runner.
    Project,
    /// A file of the project that its people do not share, on the runner.
    Local,
}

impl Layer {
    /// The layer in one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }

    /// True if its extensions are files on the runner.
    pub fn is_on_runner(self) -> bool {
        matches!(self, Self::Project | Self::Local)
    }
}

/// The layer and the file or row of an extension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Provenance {
    /// Its layer.
    pub layer: Layer,
    /// The file, relative to the root of the workspace; for one that is registered, the name under which it is.
    pub at: String,
    /// SHA-256 of its text.
    #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[0-9a-f]{64}$"))]
    pub digest: Digest,
    /// True if people trust it with this very text. One that is registered is trusted; a hook, tool server or plugin of
    /// a file is once the session's user said so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trusted: bool,
}

/// A folder with instructions that the model loads when it needs them (<https://agentskills.io/specification>).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Skill {
    /// Its name: small letters, digits and single hyphens, at most 64 letters.
    pub name: String,
    /// The task that it is for, at most 1,024 bytes.
    pub description: String,
    /// True if the model is not told of it: only a person's slash command uses it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_people: bool,
    /// Its origin.
    pub from: Provenance,
}

/// The part that a subagent plays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Role {
    /// Its name: letters, digits, `-`, `_` and `:`, at most 64 bytes.
    pub name: String,
    /// The tasks that it is for.
    pub description: String,
    /// The text that is put before the conversation.
    pub instructions: String,
    /// The tools that it may use; absent for those of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Tools that it may not use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_tools: Vec<String>,
    /// The model, by its name or tier; absent for that of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The most model calls of one of its turns; absent for that of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// True if its agents work in a git worktree of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worktree: bool,
    /// Its origin; absent for one that Gantry brings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Provenance>,
}

/// An action at an event of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Hook {
    /// The event.
    pub on: HookEvent,
    /// The names of tools (or of what else the event is about) for which it runs, as a regular expression that must
    /// match the whole name; empty for all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub matcher: String,
    /// The action.
    pub handler: HookHandler,
    /// The time that it has, in milliseconds.
    pub timeout_ms: u64,
    /// True if what it guards is refused when it fails.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fails_closed: bool,
    /// Its place among the hooks of its file, from 0. Logs of earlier releases do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_file: Option<u32>,
    /// Its origin.
    pub from: Provenance,
}

/// An event at which hooks run. The names are those of Claude Code, where it has the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum HookEvent {
    /// The first turn of a session begins.
    SessionStart,
    /// A message was accepted, and the model was not asked yet.
    UserPromptSubmit,
    /// A call is about to be judged.
    PreToolUse,
    /// A call has completed.
    PostToolUse,
    /// A call has failed.
    PostToolUseFailure,
    /// All calls of an answer have ended.
    PostToolBatch,
    /// People are about to be asked about a call.
    PermissionRequest,
    /// A call was denied.
    PermissionDenied,
    /// A subagent begins.
    SubAgentStart,
    /// A subagent has ended.
    SubAgentStop,
    /// The agent is about to end its turn.
    AgentStop,
    /// The turn has failed.
    AgentError,
    /// The conversation is about to be compacted.
    PreCompact,
    /// The conversation was compacted.
    PostCompact,
    /// A message of a person is a command of a plugin. Only the plugin itself hears of it.
    SlashCommand,
    /// A person deletes the session.
    SessionEnd,
}

impl HookEvent {
    /// The name, as files and people write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PostToolBatch => "PostToolBatch",
            Self::PermissionRequest => "PermissionRequest",
            Self::PermissionDenied => "PermissionDenied",
            Self::SubAgentStart => "SubAgentStart",
            Self::SubAgentStop => "SubAgentStop",
            Self::AgentStop => "AgentStop",
            Self::AgentError => "AgentError",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::SlashCommand => "SlashCommand",
            Self::SessionEnd => "SessionEnd",
        }
    }
}

/// The end of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HookEnd {
    /// The event at which it ran.
    pub on: HookEvent,
    /// The model call, from 1; 0 before the first one.
    pub step: u32,
    /// The place of the call in the answer, from 0; 0 where the event is about no call.
    pub ordinal: u32,
    /// Its place among the hooks of the turn, from 0.
    pub number: u32,
    /// Its action, on one line.
    pub action: String,
    /// Its origin.
    pub from: Provenance,
    /// The reason why it failed; absent if it did what it was to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Its decision, if it took one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<HookDecision>,
    /// The reason for the decision; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The text that it adds for the model; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// The arguments that it puts in place of the call's, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The text that it puts in place of the call's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Its words to people; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The time that it took, in milliseconds.
    pub duration_ms: u64,
}

impl HookEnd {
    /// The news for people, on one line; nothing where it decided nothing and says nothing.
    pub fn words(&self) -> Option<String> {
        let did = match (&self.failed, self.decision) {
            (Some(_), _) => "failed",
            (None, Some(HookDecision::Allow)) => "allowed it",
            (None, Some(HookDecision::Ask)) => "asks you",
            (None, Some(HookDecision::Defer)) => "leaves it to you",
            (None, Some(HookDecision::Deny)) if self.on == HookEvent::AgentStop => "wants more",
            (None, Some(HookDecision::Deny)) => "did not allow it",
            (None, None) if self.message.is_empty() => return None,
            (None, None) => "says",
        };
        let why = self
            .failed
            .as_deref()
            .unwrap_or(match self.message.is_empty() {
                true => &self.reason,
                false => &self.message,
            });
        if self.on == HookEvent::SlashCommand && self.failed.is_none() {
            let (action, said) = (&self.action, &self.message);
            return (!said.is_empty()).then(|| format!("{action}: {said}"));
        }
        let action = &self.action;
        Some(match why {
            "" => format!("hook {action} {did}"),
            why => format!("hook {action} {did}: {why}"),
        })
    }

    /// The ordinal of the operation of a hook in its step ([`HOOK_ORDINALS`]).
    pub fn operation_ordinal(on: HookEvent, ordinal: u32, number: u32) -> u32 {
        // At most 16 events, 256 calls and 256 hooks: each has its own.
        HOOK_ORDINALS + ((on as u32) << 16 | (ordinal & 0xff) << 8 | (number & 0xff))
    }
}

/// The decision of a hook, the one that counts least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum HookDecision {
    /// No person need be asked.
    Allow,
    /// People are to be asked.
    Ask,
    /// The decision is left to people.
    Defer,
    /// It is not to happen.
    Deny,
}

/// The action of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum HookHandler {
    /// Runs a command on the runner, in the sandbox, in the session's folder. It reads JSON and may write JSON.
    Command {
        /// The command, for the shell.
        command: String,
    },
    /// Sends JSON to an address, from the server.
    Http {
        /// The address.
        url: String,
        /// Headers beside those of the protocol, as far as they may be shown.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, String>))]
        headers: BTreeMap<String, ShownValue>,
    },
    /// Calls a tool of a tool server of the session. Its text is read like the output of a command.
    McpTool {
        /// The server.
        server: String,
        /// The tool, by the server's name of it.
        tool: String,
        /// Its arguments. `${PATH}` in a text stands for a part of the event, such as `${tool_input.file_path}`.
        #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
        #[cfg_attr(feature = "openapi", schema(value_type = Object))]
        input: serde_json::Map<String, serde_json::Value>,
    },
    /// Does something that Gantry itself can do.
    BuiltIn {
        /// The name of the action.
        name: String,
    },
}

impl HookHandler {
    /// True if it goes to an address or a tool server, which cannot be asked later if they had it.
    pub fn is_sent(&self) -> bool {
        match self {
            Self::Http { .. } | Self::McpTool { .. } => true,
            Self::Command { .. } | Self::BuiltIn { .. } => false,
        }
    }

    /// The action and the headers that it sends, as people are shown them before they trust it.
    pub fn details(&self) -> String {
        match self {
            Self::Http { headers, .. } if !headers.is_empty() => {
                let headers = headers
                    .iter()
                    .map(|(name, value)| format!("{name}: {}", String::from(value.clone())));
                let headers: Vec<_> = headers.collect();
                format!("{} with {}", self.words(), headers.join(", "))
            }
            _ => self.words(),
        }
    }

    /// The action in a few words.
    pub fn words(&self) -> String {
        match self {
            Self::Command { command } => command.clone(),
            Self::Http { url, .. } => format!("POST {url}"),
            Self::McpTool {
                server,
                tool,
                input,
            } => match input.is_empty() {
                true => format!("{server}: {tool}"),
                false => format!(
                    "{server}: {tool} {}",
                    serde_json::Value::from(input.clone())
                ),
            },
            Self::BuiltIn { name } => format!("built-in {name}"),
        }
    }
}

/// A server of the Model Context Protocol, as its file or row declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ToolServer {
    /// Its name: letters, digits, `-` and `_`, at most 32 bytes.
    pub name: String,
    /// The way to it.
    pub transport: ToolServerTransport,
    /// The time in which it has to be ready, in seconds, 1 to 600; absent for 60 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_timeout_s: Option<u16>,
    /// Its origin.
    pub from: Provenance,
}

/// The way to a tool server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ToolServerTransport {
    /// A program on the runner, in the sandbox, that speaks over its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
        /// Variables of its environment, as far as they may be shown.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, String>))]
        env: BTreeMap<String, ShownValue>,
    },
    /// A server of the web, which the Gantry server calls.
    Http {
        /// Its address.
        url: String,
        /// Headers beside those of the protocol, as far as they may be shown.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, String>))]
        headers: BTreeMap<String, ShownValue>,
        /// The client as which people sign in, where it was registered at the authorization server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<String>,
        /// The issuer of the only authorization server at which people sign in, where one is declared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        issuer: Option<String>,
    },
}

/// The value of a variable or header of a tool server or a hook, as far as it may be shown. It may be a secret, so that no log,
/// answer or list has it: they have a reference that stands alone, such as `${TOKEN}`, and nothing of all other values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ShownValue {
    /// The value of the variable with this name.
    Reference(String),
    /// A value that is not shown.
    Hidden,
}

impl ShownValue {
    /// The word in place of a value that is not shown.
    pub const HIDDEN: &str = "(hidden)";
}

impl From<String> for ShownValue {
    fn from(value: String) -> Self {
        let name = value.strip_prefix("${");
        let name = name.and_then(|rest| rest.strip_suffix('}'));
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_name = |name: &&str| {
            !name.is_empty()
                && name.len() <= 64
                && !name.as_bytes()[0].is_ascii_digit()
                && name.bytes().all(is_letter)
        };
        match name.filter(is_name) {
            Some(name) => Self::Reference(name.to_owned()),
            None => Self::Hidden,
        }
    }
}

impl From<ShownValue> for String {
    fn from(value: ShownValue) -> Self {
        match value {
            ShownValue::Reference(name) => format!("${{{name}}}"),
            ShownValue::Hidden => ShownValue::HIDDEN.to_owned(),
        }
    }
}

/// A program that brings tools, hooks and sentences for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Plugin {
    /// Its name: small letters, digits and hyphens, at most 32 bytes.
    pub name: String,
    /// The program and its arguments; relative to the plugin's folder where it begins with `./`.
    pub command: Vec<String>,
    /// The plugin's folder on the runner, relative to the root of the workspace.
    pub folder: String,
    /// Its tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<PluginTool>,
    /// Its commands, which people write behind a slash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<PluginCommand>,
    /// Sentences for the model about it; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prompt: String,
    /// Its origin.
    pub from: Provenance,
}

impl Plugin {
    /// The name of one of its commands, as people write it behind the slash.
    pub fn slash(&self, command: &PluginCommand) -> String {
        format!("{}:{}", self.name, command.name)
    }
}

/// A command of a plugin: a person writes `/PLUGIN:COMMAND ARGUMENTS`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PluginCommand {
    /// Its name: small letters, digits and single hyphens, at most 32 bytes.
    pub name: String,
    /// Its effect, in a few words for people.
    pub description: String,
    /// Its arguments, as a list of commands shows them; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arguments: String,
}

/// A tool of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PluginTool {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// The purpose of the tool and its use, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub parameters: serde_json::Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_an_earlier_log_are_hidden_when_it_is_read() {
        let written = r#"{"type":"stdio","command":"x","env":{"A":"s3cret","B":"${HOME}","C":"${X:-s3cret}","D":"x${Y}"}}"#;
        let read: ToolServerTransport = serde_json::from_str(written).unwrap();
        let again = serde_json::to_string(&read).unwrap();
        assert_eq!(
            again,
            r#"{"type":"stdio","command":"x","env":{"A":"(hidden)","B":"${HOME}","C":"(hidden)","D":"(hidden)"}}"#
        );
    }
}
