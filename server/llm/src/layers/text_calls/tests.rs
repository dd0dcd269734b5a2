mod found;
mod vendor;

use serde_json::json;

use crate::ToolSpec;

/// A tool with a text, a number and a flag, none of which must be there.
fn tool(name: &str, aliases: &[&str]) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("Does what {name} does."),
        parameters: json!({
            "type": "object",
            "properties": {
                "command": { "type": "string", "description": "The command." },
                "lines": { "type": "integer", "minimum": 1 },
                "all": { "type": "boolean" },
            },
            "required": ["command"],
        }),
        aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
    }
}

fn tools() -> Vec<ToolSpec> {
    vec![
        tool("Shell", &["bash", "run"]),
        tool("Read", &["read_file"]),
        tool("task_read", &[]),
    ]
}
