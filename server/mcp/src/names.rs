//! The names under which a model asks for the tools of a server: `mcp__SERVER__TOOL`, as Claude Code has them.
//!
//! No tool of Gantry's own begins so, so none is shadowed.

use std::collections::BTreeSet;

use shared_types::Digest;

/// The beginning of each of these names.
pub const PREFIX: &str = "mcp__";

/// Longest name that the vendors of models take, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// Letters of the digest that tells shortened and colliding names apart.
const DIGEST_LETTERS: usize = 8;

/// The names of a server's tools, in their order. A name with other letters, one that is too long, and one that another
/// tool has already get the beginning of a digest behind them; which one does not depend on the order.
pub fn model_names(server: &str, tools: &[&str]) -> Vec<String> {
    let plain: Vec<_> = tools.iter().map(|tool| plain(server, tool)).collect();
    // A tool whose name is the model's name as it is has the first right to it.
    let exact: BTreeSet<_> = (tools.iter().zip(&plain))
        .filter(|(tool, plain)| is_exact(server, tool, plain))
        .map(|(_, plain)| plain.clone())
        .collect();
    let mut taken = BTreeSet::new();
    let named = tools.iter().zip(plain).map(|(tool, plain)| {
        let is_free = match is_exact(server, tool, &plain) {
            true => true,
            false => plain.len() <= MAX_NAME_BYTES && !exact.contains(&plain),
        };
        match is_free && taken.insert(plain.clone()) {
            true => plain,
            false => digested(server, tool, &plain),
        }
    });
    named.collect()
}

fn is_exact(server: &str, tool: &str, plain: &str) -> bool {
    plain.len() <= MAX_NAME_BYTES && plain == format!("{PREFIX}{server}__{tool}")
}

fn plain(server: &str, tool: &str) -> String {
    let letter = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => letter,
        _ => '_',
    };
    let tool: String = tool.chars().map(letter).collect();
    format!("{PREFIX}{server}__{tool}")
}

fn digested(server: &str, tool: &str, plain: &str) -> String {
    let digest = Digest::of(format!("{server}\n{tool}").as_bytes()).to_string();
    // All of it is ASCII by now.
    let end = plain.len().min(MAX_NAME_BYTES - DIGEST_LETTERS - 1);
    format!("{}_{}", &plain[..end], &digest[..DIGEST_LETTERS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_claude_code() {
        assert_eq!(
            model_names("github", &["create_issue", "admin.list"]),
            ["mcp__github__create_issue", "mcp__github__admin_list"]
        );
    }

    #[test]
    fn colliding_and_long_names_are_told_apart_and_fit() {
        let long = "x".repeat(200);
        let tools = ["a.b", "a_b", "a b", "a_b", long.as_str(), "ü"];
        let names = model_names("s", &tools);
        assert_eq!(names[1], "mcp__s__a_b", "the exact one keeps its name");
        let mut distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), 6, "{names:?}");
        for name in &names {
            assert!(name.len() <= MAX_NAME_BYTES, "{name}");
            assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
            );
        }
        let turned = model_names("s", &["a_b", "a.b"]);
        assert!(distinct.remove(&turned[1]), "the order changes no name");
    }
}
