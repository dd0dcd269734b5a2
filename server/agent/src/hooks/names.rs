//! The names and arguments of tools, as hooks of Claude Code know them.

use serde_json::{Map, Value};

/// Our tools that have another name there.
const NAMES: [(&str, &str); 7] = [
    ("Shell", "Bash"),
    ("List", "LS"),
    ("web_fetch", "WebFetch"),
    ("web_search", "WebSearch"),
    ("todo_write", "TodoWrite"),
    ("SubAgent", "Task"),
    ("ask_user", "AskUserQuestion"),
];

/// Our arguments that have another name there, by tool.
const ARGUMENTS: [(&str, &str, &str); 7] = [
    ("Read", "path", "file_path"),
    ("Write", "path", "file_path"),
    ("Edit", "path", "file_path"),
    ("Edit", "old", "old_string"),
    ("Edit", "new", "new_string"),
    ("Edit", "every", "replace_all"),
    ("SubAgent", "agent", "subagent_type"),
];

/// The names by which matchers know a tool: that of Claude Code first.
pub(crate) fn names_of(tool: &str) -> Vec<&str> {
    let other = NAMES.iter().find(|(ours, _)| *ours == tool);
    other
        .map(|(_, theirs)| *theirs)
        .into_iter()
        .chain([tool])
        .collect()
}

/// The arguments of a call as a hook reads them: ours, and beside them those that have another name there. A path is
/// absolute there.
pub(crate) fn outward(tool: &str, arguments: &str, folder: &str) -> Value {
    let Ok(Value::Object(mut all)) = serde_json::from_str(arguments) else {
        return Value::String(arguments.to_owned());
    };
    for (_, ours, theirs) in ARGUMENTS.iter().filter(|(of, ..)| *of == tool) {
        let Some(value) = all.get(*ours).cloned() else {
            continue;
        };
        let value = match value {
            Value::String(path)
                if *theirs == "file_path" && !path.starts_with('/') && !folder.is_empty() =>
            {
                Value::String(format!("{folder}/{path}"))
            }
            value => value,
        };
        all.insert((*theirs).to_owned(), value);
    }
    Value::Object(all)
}

/// The arguments of a call from those that a hook wrote in their place.
pub(crate) fn inward(
    tool: &str,
    mut written: Map<String, Value>,
    folder: &str,
) -> Map<String, Value> {
    for (_, ours, theirs) in ARGUMENTS.iter().filter(|(of, ..)| *of == tool) {
        let Some(value) = written.remove(*theirs) else {
            continue;
        };
        let value = match value {
            Value::String(path) if *theirs == "file_path" && !folder.is_empty() => {
                let below = path
                    .strip_prefix(folder)
                    .and_then(|rest| rest.strip_prefix('/'));
                Value::String(below.map(str::to_owned).unwrap_or(path))
            }
            value => value,
        };
        written.insert((*ours).to_owned(), value);
    }
    written
}
