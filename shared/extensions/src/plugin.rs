//! Plugins: an executable with the manifest `plugin.json` beside it.
//!
//! ```json
//! {"name": "weather", "command": ["./weather.py"],
//!  "tools": [{"name": "forecast", "description": "…", "parameters": {"type": "object", "properties": {}}}],
//!  "commands": [{"name": "today", "description": "…", "arguments": "[TOWN]"}],
//!  "prompt": "…", "hooks": {"PreToolUse": ["Shell"]}}
//! ```

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use shared_types::event::{
    Hook, HookEvent, HookHandler, Plugin, PluginCommand, PluginTool, Provenance,
};

use crate::{Invalid, cleaned, hooks::event_of, is_name, is_slug};

/// Most tools of a plugin.
pub const MAX_PLUGIN_TOOLS: usize = 64;

/// Most words of the program, hooks or commands of a plugin.
const MAX_PARTS: usize = 32;

/// Longest name, in bytes.
const MAX_NAME: usize = 32;

/// Longest text for the model, in bytes.
const MAX_TEXT: usize = 2048;

/// Longest schema of a tool, in bytes, and how deep it goes at most.
const MAX_SCHEMA_BYTES: usize = 64 * 1024;
const MAX_SCHEMA_DEPTH: usize = 10;

/// Longest words on a command of people, in bytes.
const MAX_SUMMARY: usize = 200;

/// The time of a plugin's hook, in milliseconds.
const HOOK_MS: u64 = 5_000;

/// The time of a plugin's command, for which a person waits, in milliseconds.
const COMMAND_MS: u64 = 60_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    name: String,
    command: Vec<String>,
    #[serde(default)]
    tools: Vec<ToolWords>,
    #[serde(default)]
    commands: Vec<CommandWords>,
    #[serde(default)]
    prompt: String,
    /// The matchers of its hooks, by event.
    #[serde(default)]
    hooks: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolWords {
    name: String,
    description: String,
    #[serde(default)]
    parameters: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandWords {
    name: String,
    description: String,
    #[serde(default)]
    arguments: String,
}

/// Reads the manifest of a plugin, which lies in this folder, and its hooks: those that it declares, and one for each of
/// its commands.
///
/// # Errors
/// The text has another form, names have strange letters, or a bound is passed.
pub fn read_plugin(
    text: &str,
    folder: &str,
    from: &Provenance,
) -> Result<(Plugin, Vec<Hook>), Invalid> {
    let words: Words = serde_json::from_str(text)
        .map_err(|error| Invalid::new(format!("it has another form: {error}")))?;
    if !is_slug(&words.name, MAX_NAME) {
        return Err(Invalid::new(
            "its name may have small letters, digits and single hyphens, at most 32",
        ));
    }
    if words.command.is_empty()
        || words.command.len() > MAX_PARTS
        || words.command[0].trim().is_empty()
    {
        return Err(Invalid::new("its command is no list of 1 to 32 words"));
    }
    if words.tools.len() > MAX_PLUGIN_TOOLS {
        return Err(Invalid::new("it has more than 64 tools"));
    }
    let mut hooks = hooks(&words, folder, from)?;
    let commands = commands(&words.commands)?;
    let tools: Vec<_> = words
        .tools
        .into_iter()
        .map(tool)
        .collect::<Result<_, _>>()?;
    let names: BTreeSet<_> = tools.iter().map(|tool| &tool.name).collect();
    if names.len() < tools.len() {
        return Err(Invalid::new("two of its tools have the same name"));
    }
    let plugin = Plugin {
        name: words.name,
        command: words.command,
        folder: folder.to_owned(),
        tools,
        commands,
        prompt: cleaned(&words.prompt, MAX_TEXT),
        from: from.clone(),
    };
    hooks.extend(plugin.commands.iter().map(|command| Hook {
        on: HookEvent::SlashCommand,
        matcher: plugin.slash(command),
        handler: HookHandler::Command {
            command: in_shell(&plugin.command, folder),
        },
        timeout_ms: COMMAND_MS,
        fails_closed: true,
        in_file: Some(0),
        from: from.clone(),
    }));
    Ok((plugin, hooks))
}

fn commands(written: &[CommandWords]) -> Result<Vec<PluginCommand>, Invalid> {
    if written.len() > MAX_PARTS {
        return Err(Invalid::new("it has more than 32 commands"));
    }
    let mut names = BTreeSet::new();
    for command in written {
        if !is_slug(&command.name, MAX_NAME) {
            return Err(Invalid::new(
                "the name of a command may have small letters, digits and single hyphens, at most 32",
            ));
        }
        if !names.insert(&command.name) {
            return Err(Invalid::new("two of its commands have the same name"));
        }
    }
    let of = |command: &CommandWords| PluginCommand {
        name: command.name.clone(),
        description: cleaned(&command.description.replace('\n', " "), MAX_SUMMARY),
        arguments: cleaned(&command.arguments.replace('\n', " "), MAX_SUMMARY),
    };
    Ok(written.iter().map(of).collect())
}

fn tool(words: ToolWords) -> Result<PluginTool, Invalid> {
    if !is_name(&words.name, "-_", MAX_NAME) {
        return Err(Invalid::new(
            "the name of a tool may have letters, digits, '-' and '_', at most 32",
        ));
    }
    let parameters = words
        .parameters
        .unwrap_or_else(|| serde_json::json!({"type": "object", "properties": {}}));
    let is_object = parameters.get("type").and_then(Value::as_str) == Some("object");
    if !is_object
        || parameters.to_string().len() > MAX_SCHEMA_BYTES
        || depth(&parameters) > MAX_SCHEMA_DEPTH
    {
        return Err(Invalid::new(format!(
            "the parameters of {} are no JSON Schema of an object within 64 KiB and a depth of 10",
            words.name
        )));
    }
    Ok(PluginTool {
        name: words.name,
        description: cleaned(&words.description, MAX_TEXT),
        parameters,
    })
}

/// The hooks call the plugin itself, which learns the event from its input.
fn hooks(words: &Words, folder: &str, from: &Provenance) -> Result<Vec<Hook>, Invalid> {
    let mut hooks = Vec::new();
    for (event, matchers) in &words.hooks {
        let on = event_of(event).ok_or_else(|| {
            Invalid::new(format!("there is no event {:?}", cleaned(event, MAX_NAME)))
        })?;
        let all = [String::new()];
        let matchers = if matchers.is_empty() {
            &all[..]
        } else {
            matchers
        };
        for matcher in matchers {
            if matcher.len() > 1024 || Regex::new(&format!("^(?:{matcher})$")).is_err() {
                return Err(Invalid::new(format!(
                    "a matcher of {event} is no regular expression"
                )));
            }
            hooks.push(Hook {
                on,
                matcher: matcher.clone(),
                handler: HookHandler::Command {
                    command: in_shell(&words.command, folder),
                },
                timeout_ms: HOOK_MS,
                fails_closed: false,
                in_file: Some(0),
                from: from.clone(),
            });
        }
    }
    match hooks.len() <= MAX_PARTS {
        true => Ok(hooks),
        false => Err(Invalid::new("it has more than 32 hooks")),
    }
}

/// The command for the shell. A word that begins with `./` lies in the plugin's folder.
fn in_shell(command: &[String], folder: &str) -> String {
    let words = command.iter().map(|word| {
        let word = match word.strip_prefix("./") {
            Some(rest) if !folder.is_empty() => format!("./{folder}/{rest}"),
            _ => word.clone(),
        };
        format!("'{}'", word.replace('\'', "'\\''"))
    });
    words.collect::<Vec<_>>().join(" ")
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth).max().unwrap_or(0),
        Value::Object(values) => 1 + values.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use shared_types::{Digest, event::Layer};

    use super::*;

    fn read(text: &str) -> Result<(Plugin, Vec<Hook>), Invalid> {
        let from = Provenance {
            layer: Layer::Project,
            at: ".gantry/plugins/weather/plugin.json".to_owned(),
            digest: Digest::of(text.as_bytes()),
            trusted: false,
        };
        read_plugin(text, ".gantry/plugins/weather", &from)
    }

    #[test]
    fn a_manifest_names_tools_and_hooks() {
        let (plugin, hooks) = read(
            r#"{"name": "weather", "command": ["python3", "./weather.py"], "prompt": "Ask it for weather.",
                "tools": [{"name": "forecast", "description": "Tells the weather."}],
                "commands": [{"name": "today", "description": "Asks."}],
                "hooks": {"PreToolUse": ["Shell"], "Stop": []}}"#,
        )
        .unwrap();
        assert_eq!((plugin.tools.len(), hooks.len()), (1, 3));
        assert_eq!(hooks[2].matcher, "weather:today");
        let HookHandler::Command { command } = &hooks[0].handler else {
            panic!()
        };
        assert_eq!(command, "'python3' './.gantry/plugins/weather/weather.py'");
    }

    #[test]
    fn a_manifest_of_another_form_is_refused() {
        let nested = format!("{}1{}", "[".repeat(20), "]".repeat(20));
        for text in [
            r#"{"name": "Weather", "command": ["x"]}"#.to_owned(),
            r#"{"name": "w", "command": []}"#.to_owned(),
            r#"{"name": "w", "command": ["x"], "tools": [{"name": "a b", "description": ""}]}"#.to_owned(),
            r#"{"name": "w", "command": ["x"], "tools": [{"name": "a", "description": ""}, {"name": "a", "description": ""}]}"#.to_owned(),
            format!(r#"{{"name": "w", "command": ["x"], "tools": [{{"name": "a", "description": "", "parameters": {{"type": "object", "x": {nested}}}}}]}}"#),
            r#"{"name": "w", "command": ["x"], "hooks": {"Never": []}}"#.to_owned(),
            r#"{"name": "w", "command": ["x"], "surprise": 1}"#.to_owned(),
            r#"{"name": "w", "command": ["x"], "commands": [{"name": "a:b", "description": ""}]}"#.to_owned(),
            r#"{"name": "w", "command": ["x"], "commands": [{"name": "a", "description": ""}, {"name": "a", "description": ""}]}"#.to_owned(),
        ] {
            assert!(read(&text).is_err(), "{text}");
        }
    }
}
