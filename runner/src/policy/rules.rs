//! The words of a policy's file.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use shared_consent::{Decision, Rule, Ruled};
use shared_types::Mode;

/// Most rules of each list, and most roots.
const MAX_ENTRIES: usize = 256;

/// The rules of a machine for all that servers ask of it.
#[derive(Debug)]
pub(crate) struct Policy {
    /// The most freedom of an agent that no person approved.
    pub(super) mode: Mode,
    /// The folders beneath which workspaces must lie; anywhere, where it names none.
    pub(super) roots: Option<Vec<PathBuf>>,
    /// The rules that allow, and those that deny.
    pub(super) rules: Vec<Ruled<()>>,
    /// Those of them that deny.
    pub(super) denials: Vec<Ruled<()>>,
    /// True if a pool's sandboxes may have a network.
    pub(super) network: bool,
    /// True if people and programs may run something themselves.
    pub(super) callers: bool,
}

/// The file, word by word.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    mode: Option<Mode>,
    roots: Option<Vec<PathBuf>>,
    #[serde(default)]
    allow: Vec<Rule>,
    #[serde(default)]
    deny: Vec<Rule>,
    #[serde(default = "yes")]
    network: bool,
    #[serde(default = "yes")]
    callers: bool,
}

/// The policy of this text.
///
/// # Errors
/// The reason why it is none, for people.
pub(super) fn parsed(text: &str) -> Result<Policy, String> {
    let words: Words = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let roots = words.roots.as_deref().unwrap_or_default();
    let most = words.allow.len().max(words.deny.len()).max(roots.len());
    if most > MAX_ENTRIES {
        return Err(format!(
            "a list has {most} entries; at most {MAX_ENTRIES} are possible"
        ));
    }
    if let Some(root) = roots.iter().find(|root| !root.is_absolute()) {
        return Err(format!("the root {} does not begin with /", root.display()));
    }
    let denials: Vec<_> = ruled(words.deny, Decision::Deny).collect();
    Ok(Policy {
        mode: words.mode.unwrap_or(Mode::Full),
        roots: words.roots.map(|roots| roots.iter().map(real).collect()),
        rules: ruled(words.allow, Decision::Allow)
            .chain(denials.clone())
            .collect(),
        denials,
        network: words.network,
        callers: words.callers,
    })
}

fn ruled(rules: Vec<Rule>, decision: Decision) -> impl Iterator<Item = Ruled<()>> {
    rules.into_iter().map(move |rule| Ruled {
        rule,
        decision,
        by: (),
    })
}

/// The path as the kernel knows it. Where nothing is there, no workspace lies beneath it.
pub(super) fn real(path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn yes() -> bool {
    true
}
