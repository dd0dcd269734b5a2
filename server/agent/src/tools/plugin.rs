//! The tools of plugins: a call runs the plugin's program once. It reads one line of JSON and writes its result.
//!
//! A call is an ordinary operation, so it runs once, survives a lost link, and is judged as the command that it is.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};
use shared_sandbox::{Command, Exec, ExitStatus, Outcome, Request};
use shared_types::{
    Digest, Effect,
    event::{CallOutcome, Plugin, PluginTool},
};

use super::{Arguments, Ask, BadArguments, Ended, Parameter, Prepared, Rendered, Tool};

/// The time of a call.
const WITHIN: Duration = Duration::from_secs(120);

/// The variable with the digest of the input, so that the operation's own digest covers it.
const DIGEST_VARIABLE: &str = "GANTRY_INPUT_SHA256";

/// A tool of a plugin.
#[derive(Debug, Clone)]
pub struct PluginCallTool {
    name: String,
    tool: PluginTool,
    command: String,
}

impl PluginCallTool {
    /// The tools of this plugin, for a session that works in this directory.
    pub(crate) fn all(plugin: &Plugin, directory: &str) -> impl Iterator<Item = Self> {
        let command = command(plugin, directory);
        plugin.tools.iter().map(move |tool| Self {
            name: format!("plugin__{}__{}", plugin.name, tool.name),
            tool: tool.clone(),
            command: command.clone(),
        })
    }
}

/// The plugin's program for the shell, run at the root of the workspace.
fn command(plugin: &Plugin, directory: &str) -> String {
    let levels = directory.split('/').filter(|part| !part.is_empty()).count();
    let root = "../".repeat(levels);
    let words = plugin.command.iter().map(|word| {
        let word = match word.strip_prefix("./") {
            Some(rest) => format!("./{root}{}/{rest}", plugin.folder),
            None => word.clone(),
        };
        format!("'{}'", word.replace('\'', "'\\''"))
    });
    words.collect::<Vec<_>>().join(" ")
}

impl Tool for PluginCallTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.tool.description
    }

    fn parameters(&self) -> &[Parameter] {
        &[]
    }

    fn schema(&self) -> Value {
        self.tool.parameters.clone()
    }

    fn check(&self, written: &str) -> Result<Arguments, BadArguments> {
        Arguments::free(written)
    }

    fn effect(&self) -> Effect {
        Effect::Effectful
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        let asked = json!({ "tool": self.tool.name, "arguments": arguments.object() });
        let input = Bytes::from(format!("{asked}\n"));
        let digest = Digest::of(&input).to_string();
        let environment = BTreeMap::from([(DIGEST_VARIABLE.to_owned(), digest)]);
        Ok(Ask::Operation(Prepared {
            request: Request::Exec(Exec {
                input: true,
                environment,
                ..Exec::new(Command::Shell(self.command.clone()))
            }),
            run_for: WITHIN,
            wait_for: None,
            input,
        }))
    }

    fn render(&self, ended: &Ended<'_>, limit: usize) -> Option<Rendered> {
        let Outcome::Exited(record) = ended.outcome else {
            return None;
        };
        let text = ended.output.show(limit);
        Some(match record.status {
            ExitStatus::Code(0) => Rendered::completed(match text.trim_end() {
                "" => "[no output]".to_owned(),
                text => text.to_owned(),
            }),
            _ => Rendered::new(
                CallOutcome::Failed,
                format!("{text}\n[the plugin failed: {}]", record.status),
            ),
        })
    }
}
