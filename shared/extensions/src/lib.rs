//! The files in which people keep extensions, and how each is read: skills, roles of subagents, hooks, tool servers and
//! plugins.
//!
//! The forms are those that people have already: Agent Skills' `SKILL.md`, and Claude Code's agents, hooks and
//! `.mcp.json`. All functions are pure. The texts come from strangers: each reader has bounds, takes no name with other
//! letters than its kind allows, and says in words why it refuses a text.

mod front;
mod hooks;
mod plugin;
mod role;
mod servers;
mod skill;

pub use front::{Front, InvalidFront};
pub use hooks::{
    HookSecrets, MAX_HOOKS, check_headers, hidden_headers, is_guarding, read_hooks, split_hooks,
};
pub use plugin::{MAX_PLUGIN_TOOLS, read_plugin};
pub use role::{MAX_ROLE_BYTES, read_role};
pub use servers::{MAX_SERVERS, ServerSecrets, read_servers, secrets_of, split};
pub use skill::{MAX_SKILL_BYTES, SkillFile, read_skill};

/// A text that is no extension of its kind. The words complete "NAME is not used: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

impl Invalid {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// The words on a text of another form. Those of the error would tell what stands there, which may be a secret.
fn another_form(error: &serde_json::Error) -> Invalid {
    let words = error.to_string();
    let expected = words.rsplit_once(", expected ");
    Invalid::new(match expected {
        Some((_, expected)) => format!("it has another form: expected {expected}"),
        None if words.starts_with("missing field") => format!("it has another form: {words}"),
        None => "it has another form".to_owned(),
    })
}

/// True for a name of small letters, digits and single hyphens between them.
pub fn is_slug(name: &str, at_most: usize) -> bool {
    let is_part = |part: &str| {
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        !part.is_empty() && part.bytes().all(is_letter)
    };
    name.len() <= at_most && name.split('-').all(is_part)
}

/// True for a name of letters, digits and these other letters that begins with a letter or a digit.
fn is_name(name: &str, others: &str, at_most: usize) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || others.contains(letter);
    let begins = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    begins && name.len() <= at_most && name.chars().all(is_letter)
}

/// The text without control characters but for line ends and tabs, cut to so many bytes.
fn cleaned(text: &str, at_most: usize) -> String {
    let is_kept = |letter: &char| !letter.is_control() || matches!(letter, '\n' | '\t');
    let mut text: String = text.chars().filter(is_kept).collect();
    text.truncate(text.floor_char_boundary(at_most));
    text
}
