//! Roles of subagents: Markdown files of the form that Claude Code's agents have
//! (<https://code.claude.com/docs/en/sub-agents>).

use shared_types::event::{Provenance, Role};

use crate::{Front, Invalid, cleaned, is_name};

/// Longest file of a role, in bytes.
pub const MAX_ROLE_BYTES: usize = 32 * 1024;

/// Longest name, in bytes.
const MAX_NAME: usize = 64;

/// Longest description, in bytes.
const MAX_DESCRIPTION: usize = 2048;

/// Most tools that a role names.
const MAX_TOOLS: usize = 128;

/// Most model calls that a role may ask for.
const MAX_STEPS: u32 = 1000;

/// Reads the file of a role; `file` is its name without `.md`.
///
/// # Errors
/// The name is none, or the description or the instructions are missing.
pub fn read_role(text: &str, file: &str, from: Provenance) -> Result<Role, Invalid> {
    if text.len() > MAX_ROLE_BYTES {
        return Err(Invalid::new(format!(
            "it has more than {MAX_ROLE_BYTES} bytes"
        )));
    }
    let front = Front::read(text)?;
    let name = front.text("name").unwrap_or_else(|| file.to_owned());
    if !is_name(&name, "-_:", MAX_NAME) {
        return Err(Invalid::new(
            "its name may have letters, digits, '-', '_' and ':', at most 64",
        ));
    }
    let description = cleaned(
        &front.text("description").unwrap_or_default(),
        MAX_DESCRIPTION,
    );
    if description.is_empty() {
        return Err(Invalid::new(
            "it has no description of the tasks that it is for",
        ));
    }
    let instructions = cleaned(front.body.trim(), MAX_ROLE_BYTES);
    if instructions.is_empty() {
        return Err(Invalid::new("it has no instructions below its head"));
    }
    let named = |key: &str| {
        let names = front.names(key)?;
        let is_tool = |name: &String| name.len() <= 256 && !name.contains(char::is_control);
        Some(
            names
                .into_iter()
                .filter(is_tool)
                .take(MAX_TOOLS)
                .collect::<Vec<_>>(),
        )
    };
    // `*` stands for all tools.
    let tools = named("tools").filter(|tools| !tools.iter().any(|tool| tool == "*"));
    let steps = front.text("maxTurns").or_else(|| front.text("steps"));
    let model = front
        .text("model")
        .filter(|model| model != "inherit" && !model.is_empty());
    Ok(Role {
        name,
        description,
        instructions,
        tools,
        denied_tools: named("disallowedTools").unwrap_or_default(),
        model: model.map(|model| cleaned(&model, 128)),
        steps: steps
            .and_then(|steps| steps.parse().ok())
            .map(|steps: u32| steps.clamp(1, MAX_STEPS)),
        worktree: front.text("isolation").as_deref() == Some("worktree"),
        from: Some(from),
    })
}

#[cfg(test)]
mod tests {
    use shared_types::{Digest, event::Layer};

    use super::*;

    fn read(text: &str) -> Result<Role, Invalid> {
        let from = Provenance {
            layer: Layer::Project,
            at: ".claude/agents/x.md".to_owned(),
            digest: Digest::of(text.as_bytes()),
            trusted: true,
        };
        read_role(text, "x", from)
    }

    #[test]
    fn an_agent_of_claude_code_is_a_role() {
        let role = read(
            "---\nname: code-reviewer\ndescription: Reviews code. Use it: often\ntools: Read, Grep, Bash\nmodel: sonnet\ncolor: blue\nmaxTurns: 12\nisolation: worktree\n---\n\nYou review.\n",
        )
        .unwrap();
        assert_eq!(
            (role.name.as_str(), role.instructions.as_str()),
            ("code-reviewer", "You review.")
        );
        assert_eq!(role.tools.unwrap(), ["Read", "Grep", "Bash"]);
        assert_eq!(
            (role.model.as_deref(), role.steps, role.worktree),
            (Some("sonnet"), Some(12), true)
        );
    }

    #[test]
    fn a_role_inherits_what_it_does_not_name() {
        let role = read("---\ndescription: d\nmodel: inherit\n---\nGo").unwrap();
        assert_eq!(
            (role.name.as_str(), role.tools, role.model),
            ("x", None, None)
        );
    }

    #[test]
    fn a_role_without_instructions_or_with_a_strange_name_is_refused() {
        assert!(read("---\ndescription: d\n---\n").is_err());
        assert!(read("---\nname: \"a b\"\ndescription: d\n---\nGo").is_err());
        assert!(read("Go").is_err());
    }
}
