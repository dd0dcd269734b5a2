//! Hooks: the part `hooks` of Claude Code's settings (<https://code.claude.com/docs/en/hooks>), or a file with that part
//! alone.
//!
//! ```json
//! {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh", "timeout": 5}]}]}}
//! ```

mod headers;

use std::collections::BTreeMap;

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};
use shared_types::event::{Hook, HookEvent, HookHandler, Provenance, ShownValue};

pub use self::headers::{HookSecrets, check_headers, hidden_headers, split_hooks};
use crate::{Invalid, another_form, cleaned};

/// Most hooks of a file.
pub const MAX_HOOKS: usize = 100;

/// The time of a hook that names none, in milliseconds.
const DEFAULT_MS: u64 = 5_000;

/// The most time that a hook may ask for, in milliseconds.
const MAX_MS: u64 = 600_000;

/// Longest command or address, in bytes.
const MAX_TEXT: usize = 8 * 1024;

/// Longest matcher, in bytes.
const MAX_MATCHER: usize = 1024;

/// Longest JSON of a handler that is shown in words, in bytes.
const MAX_SHOWN: usize = 64;

/// Hooks with one matcher.
#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    matcher: Option<String>,
    #[serde(default)]
    hooks: Vec<Value>,
}

/// A handler, word by word.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Words {
    #[serde(rename = "type")]
    kind: String,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The variables that stand in headers as `$NAME`.
    #[serde(default, rename = "allowedEnvVars")]
    variables: Vec<String>,
    server: Option<String>,
    tool: Option<String>,
    #[serde(default)]
    input: Map<String, Value>,
    name: Option<String>,
    /// In seconds.
    timeout: Option<f64>,
    on_failure: Option<String>,
}

/// True if a hook at this event decides over something: where it fails, what it guards is refused.
pub fn is_guarding(event: HookEvent) -> bool {
    matches!(event, HookEvent::PermissionRequest)
}

/// Reads the hooks of a file, in its order. Beside them it returns words on those that are not used.
///
/// # Errors
/// The text is no JSON object, or it has more than 100 hooks. A file without hooks has none.
pub fn read_hooks(text: &str, from: &Provenance) -> Result<(Vec<Hook>, Vec<String>), Invalid> {
    let settings: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| Invalid::new(format!("it is no JSON object: {error}")))?;
    let (written, unread) = written_hooks(settings)?;
    let hooks = (0..).zip(written).map(|(in_file, Written { hook, .. })| {
        let HookWords {
            on,
            matcher,
            handler,
            timeout_ms,
            fails_closed,
        } = hook;
        Hook {
            on,
            matcher,
            handler,
            timeout_ms,
            fails_closed,
            in_file: Some(in_file),
            from: from.clone(),
        }
    });
    Ok((hooks.collect(), unread))
}

/// A hook as it stands in a file.
struct Written {
    hook: HookWords,
    /// The whole values of its headers.
    values: BTreeMap<String, String>,
    /// Its event in the file's words, its group there, and its place in the group.
    at: (String, usize, usize),
}

/// A hook without its origin.
struct HookWords {
    on: HookEvent,
    matcher: String,
    handler: HookHandler,
    timeout_ms: u64,
    fails_closed: bool,
}

/// The hooks of a file, in its order, and words on those that are not used.
fn written_hooks(mut settings: Map<String, Value>) -> Result<(Vec<Written>, Vec<String>), Invalid> {
    let events = match settings.remove("hooks") {
        Some(Value::Object(events)) => events,
        Some(_) => return Err(Invalid::new("its \"hooks\" are no object")),
        None => return Ok((Vec::new(), Vec::new())),
    };
    let (mut hooks, mut unread) = (Vec::new(), Vec::new());
    for (event, groups) in events {
        let Some(on) = event_of(&event) else {
            unread.push(format!("hooks of the event {}", cleaned(&event, MAX_SHOWN)));
            continue;
        };
        let another = |error: &serde_json::Error| {
            Invalid::new(format!("the hooks of {event}: {}", another_form(error)))
        };
        // A list would be read as the fields in their order.
        let groups: Vec<Map<String, Value>> =
            serde_json::from_value(groups).map_err(|error| another(&error))?;
        for (group_at, group) in groups.into_iter().enumerate() {
            let group: Group =
                serde_json::from_value(group.into()).map_err(|error| another(&error))?;
            let matcher = matcher(group.matcher.as_deref().unwrap_or_default())?;
            for (place, written) in group.hooks.into_iter().enumerate() {
                let of_event = |Invalid(why): Invalid| format!("a hook of {event}: {why}");
                match hook(on, &matcher, written, (event.clone(), group_at, place)) {
                    Ok((hook, wrong)) => {
                        // Without the hook nothing would be refused where it fails.
                        unread.extend(wrong.map(of_event));
                        hooks.push(hook);
                    }
                    Err(why) => unread.push(of_event(why)),
                }
                if hooks.len() > MAX_HOOKS {
                    return Err(Invalid::new(format!("it has more than {MAX_HOOKS} hooks")));
                }
            }
        }
    }
    Ok((hooks, unread))
}

/// A hook, and what is wrong with its headers: with that it is not registered, and fails where it runs.
fn hook(
    on: HookEvent,
    matcher: &str,
    written: Value,
    at: (String, usize, usize),
) -> Result<(Written, Option<Invalid>), Invalid> {
    // A list would be read as the fields in their order.
    if !written.is_object() {
        return Err(Invalid::new("it is no object"));
    }
    let mut words: Words = serde_json::from_value(written).map_err(|error| another_form(&error))?;
    let timeout_ms = match words.timeout {
        // The bounds make the conversion exact enough.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is within 1 and 600,000"
        )]
        Some(seconds) if seconds > 0.0 => (seconds * 1000.0).clamp(1.0, MAX_MS as f64) as u64,
        Some(_) => return Err(Invalid::new("its timeout is no number of seconds above 0")),
        None => DEFAULT_MS,
    };
    let fails_closed = is_guarding(on) || words.on_failure.as_deref() == Some("block");
    let wrong = match words.kind.as_str() {
        "http" => check_headers(&words.headers).err(),
        _ if words.headers.is_empty() => None,
        _ => Some(Invalid::new("only a hook of the type http has headers")),
    };
    let values = headers::braced(std::mem::take(&mut words.headers), &words.variables);
    let handler = handler(words, &values)?;
    if on == HookEvent::SessionEnd && matches!(handler, HookHandler::McpTool { .. }) {
        return Err(Invalid::new(
            "the tool servers of a session end before it: use a command or an address",
        ));
    }
    let hook = HookWords {
        on,
        matcher: matcher.to_owned(),
        handler,
        timeout_ms,
        fails_closed,
    };
    Ok((Written { hook, values, at }, wrong))
}

fn handler(words: Words, headers: &BTreeMap<String, String>) -> Result<HookHandler, Invalid> {
    let bounded =
        |text: Option<String>, what: &str| match text.filter(|text| !text.trim().is_empty()) {
            Some(text) if text.len() > MAX_TEXT => Err(Invalid::new(format!(
                "its {what} has more than {MAX_TEXT} bytes"
            ))),
            Some(text) => Ok(text),
            None => Err(Invalid::new(format!("it has no {what}"))),
        };
    Ok(match words.kind.as_str() {
        "command" => {
            let mut command = bounded(words.command, "command")?;
            for argument in &words.args {
                command.push(' ');
                command.push_str(&quoted(argument));
            }
            HookHandler::Command {
                command: bounded(Some(command), "command")?,
            }
        }
        "http" => HookHandler::Http {
            url: bounded(words.url, "url")?,
            headers: headers
                .iter()
                .map(|(name, value)| (name.clone(), ShownValue::from(value.clone())))
                .collect(),
        },
        "mcp_tool" => {
            if Value::from(words.input.clone()).to_string().len() > MAX_TEXT {
                return Err(Invalid::new(format!(
                    "its input has more than {MAX_TEXT} bytes"
                )));
            }
            HookHandler::McpTool {
                server: bounded(words.server, "server")?,
                tool: bounded(words.tool, "tool")?,
                input: words.input,
            }
        }
        "built_in" => match words.name.as_deref() {
            Some(name @ "secrets") => HookHandler::BuiltIn {
                name: name.to_owned(),
            },
            _ => {
                return Err(Invalid::new(
                    "its name is no built-in action; there is: secrets",
                ));
            }
        },
        other => {
            return Err(Invalid::new(format!(
                "its type {:?} is none of command, http, mcp_tool and built_in",
                cleaned(other, MAX_SHOWN)
            )));
        }
    })
}

/// The argument as one word of the shell.
fn quoted(argument: &str) -> String {
    format!("'{}'", argument.replace('\'', "'\\''"))
}

/// The matcher as a regular expression for a whole name; empty for all names.
fn matcher(written: &str) -> Result<String, Invalid> {
    if written.is_empty() || written == "*" {
        return Ok(String::new());
    }
    if written.len() > MAX_MATCHER || Regex::new(&format!("^(?:{written})$")).is_err() {
        return Err(Invalid::new(format!(
            "its matcher {:?} is no regular expression",
            cleaned(written, MAX_SHOWN)
        )));
    }
    Ok(written.to_owned())
}

/// The event of a name. Claude Code writes some of them otherwise.
pub(crate) fn event_of(name: &str) -> Option<HookEvent> {
    Some(match name {
        "SessionStart" => HookEvent::SessionStart,
        "UserPromptSubmit" => HookEvent::UserPromptSubmit,
        "PreToolUse" => HookEvent::PreToolUse,
        "PostToolUse" => HookEvent::PostToolUse,
        "PostToolUseFailure" => HookEvent::PostToolUseFailure,
        "PostToolBatch" => HookEvent::PostToolBatch,
        "PermissionRequest" => HookEvent::PermissionRequest,
        "PermissionDenied" => HookEvent::PermissionDenied,
        "SubAgentStart" | "SubagentStart" => HookEvent::SubAgentStart,
        "SubAgentStop" | "SubagentStop" => HookEvent::SubAgentStop,
        "AgentStop" | "Stop" => HookEvent::AgentStop,
        "AgentError" | "StopFailure" => HookEvent::AgentError,
        "PreCompact" => HookEvent::PreCompact,
        "PostCompact" => HookEvent::PostCompact,
        "SessionEnd" => HookEvent::SessionEnd,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use shared_types::{Digest, event::Layer};

    use super::*;

    fn read(text: &str) -> Result<(Vec<Hook>, Vec<String>), Invalid> {
        let from = Provenance {
            layer: Layer::Project,
            at: ".claude/settings.json".to_owned(),
            digest: Digest::of(text.as_bytes()),
            trusted: false,
        };
        read_hooks(text, &from)
    }

    #[test]
    fn the_settings_of_claude_code_are_read() {
        let (hooks, unread) = read(
            r#"{"model": "x", "hooks": {
                "PreToolUse": [{"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "./a.sh", "timeout": 2}]}],
                "Stop": [{"hooks": [{"type": "http", "url": "https://example.org/", "headers": {"X": "y"}}]}],
                "TeammateIdle": [{"hooks": []}]}}"#,
        )
        .unwrap();
        let pre = hooks
            .iter()
            .find(|hook| hook.on == HookEvent::PreToolUse)
            .unwrap();
        assert_eq!((pre.matcher.as_str(), pre.timeout_ms), ("Bash|Edit", 2000));
        assert_eq!(
            pre.handler,
            HookHandler::Command {
                command: "./a.sh".to_owned()
            }
        );
        assert!(
            hooks
                .iter()
                .any(|hook| hook.on == HookEvent::AgentStop && hook.timeout_ms == DEFAULT_MS)
        );
        assert_eq!(unread, ["hooks of the event TeammateIdle"]);
    }

    #[test]
    fn a_file_without_hooks_has_none_and_one_of_another_form_is_refused() {
        assert_eq!(read(r#"{"model": "x"}"#).unwrap(), (Vec::new(), Vec::new()));
        assert!(read("[]").is_err());
        assert!(read(r#"{"hooks": {"PreToolUse": 1}}"#).is_err());
        assert!(read(r#"{"hooks": {"PreToolUse": [{"matcher": "(", "hooks": []}]}}"#).is_err());
    }

    #[test]
    fn a_handler_that_cannot_be_used_is_named_and_the_others_count() {
        let (hooks, unread) = read(
            r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "prompt"}, {"type": "mcp_tool"}, {"type": "built_in", "name": "x"}, {"type": "command"},
                {"type": "command", "command": "x", "timeout": 0}, {"type": "command", "command": "x", "args": ["a'b"]}]}]}}"#,
        )
        .unwrap();
        assert_eq!(unread.len(), 5);
        assert_eq!(
            hooks[0].handler,
            HookHandler::Command {
                command: r"x 'a'\''b'".to_owned()
            }
        );
    }

    #[test]
    fn words_on_another_form_have_no_value_of_a_header() {
        for headers in [r#"{"X-Key": 4242}"#, r#""4242""#] {
            let hook = format!(
                r#"{{"type": "http", "url": "https://example.org/", "headers": {headers}}}"#
            );
            let (_, unread) = read(&format!(
                r#"{{"hooks": {{"Stop": [{{"hooks": [{hook}]}}]}}}}"#
            ))
            .unwrap();
            assert!(
                unread[0].contains("expected a ") && !unread[0].contains("4242"),
                "{unread:?}"
            );
        }
    }

    #[test]
    fn no_tool_server_is_called_at_the_end_of_a_session() {
        let hook = r#"[{"hooks": [{"type": "mcp_tool", "server": "a", "tool": "b"}]}]"#;
        let text = format!(r#"{{"hooks": {{"SessionEnd": {hook}, "SessionStart": {hook}}}}}"#);
        let (hooks, unread) = read(&text).unwrap();
        assert_eq!((hooks.len(), unread.len()), (1, 1));
        assert_eq!(hooks[0].on, HookEvent::SessionStart);
    }

    #[test]
    fn permission_hooks_fail_closed() {
        let (hooks, _) = read(
            r#"{"hooks": {"PermissionRequest": [{"hooks": [{"type": "command", "command": "x"}]}],
                "PreToolUse": [{"hooks": [{"type": "command", "command": "x", "onFailure": "block"}, {"type": "command", "command": "x"}]}]}}"#,
        )
        .unwrap();
        let closed: Vec<_> = hooks.iter().map(|hook| hook.fails_closed).collect();
        assert_eq!(closed.iter().filter(|closed| **closed).count(), 2);
    }
}
