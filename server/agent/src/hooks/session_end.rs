//! The hooks of the end of a session, which belong to no turn.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use shared_sandbox::{Command, Exec, Request};
use shared_types::{
    SessionId,
    event::{Hook, HookEvent, HookHandler},
};

use super::{Common, at, input, project_folder};

/// The variables with the command of a hook and its input. No list of processes shows them.
const COMMAND: &str = "GANTRY_HOOK_COMMAND";
const INPUT: &str = "GANTRY_HOOK_INPUT";

/// Runs the command with its input.
const SCRIPT: &str = r#"printf '%s\n' "$GANTRY_HOOK_INPUT" | sh -c "$GANTRY_HOOK_COMMAND""#;

/// An action at the end of a session.
#[derive(Debug, Clone, PartialEq)]
pub enum EndAction {
    /// A command on the runner.
    Command(Box<Request>),
    /// A request from the server.
    Http {
        /// The hook.
        hook: Box<Hook>,
        /// The event.
        json: Bytes,
    },
}

/// The actions of those of these hooks that run when a session ends for this reason, each with its time. The session
/// worked in this folder of the machine, which is this directory of its workspace.
pub fn session_end_hooks(
    hooks: &[Hook],
    session: SessionId,
    (folder, directory): (&str, &str),
    reason: &str,
) -> Vec<(EndAction, Duration)> {
    let common = Common {
        session,
        folder,
        mode: "",
    };
    let serde_json::Value::Object(facts) = json!({ "reason": reason }) else {
        return Vec::new();
    };
    // Claude Code knows none of our reasons.
    let mut runs: Vec<_> = at(hooks, HookEvent::SessionEnd, &[reason, "other"]).collect();
    runs.sort_by_key(|(number, _)| *number);
    let action = |hook: &Hook| {
        let json = input(&common, HookEvent::SessionEnd, facts.clone());
        Some(match &hook.handler {
            HookHandler::Command { command } => {
                let (from_session, project) = project_folder(hook, folder, directory);
                let environment = [
                    (COMMAND, command.clone()),
                    (INPUT, String::from_utf8_lossy(&json).trim_end().to_owned()),
                    ("CLAUDE_PROJECT_DIR", project.clone()),
                    ("GANTRY_PROJECT_DIR", project),
                ];
                let request = Request::Exec(Exec {
                    directory: from_session,
                    environment: environment
                        .map(|(name, value)| (name.to_owned(), value))
                        .into(),
                    ..Exec::new(Command::Shell(SCRIPT.to_owned()))
                });
                EndAction::Command(Box::new(request.of_directory(directory)))
            }
            HookHandler::Http { .. } => EndAction::Http {
                hook: Box::new(hook.clone()),
                json: json.into(),
            },
            // The one is not read for this event. The other denies, and there is nothing to deny.
            HookHandler::McpTool { .. } | HookHandler::BuiltIn { .. } => return None,
        })
    };
    let actions = runs.into_iter().filter_map(|(_, hook)| {
        let within = Duration::from_millis(hook.timeout_ms);
        action(hook).map(|action| (action, within))
    });
    actions.collect()
}
