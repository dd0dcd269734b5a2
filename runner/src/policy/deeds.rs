//! The deeds of a request, as rules see them.
//!
//! A rule of a path sees the path that a request names, from the workspace's root and in one form for each file. It does
//! not see where symbolic links lead, nor what a command does with a file. A request that changes a folder with all that
//! lies in it is held to the rules for everything that may lie there.

use std::path::Path;

use shared_consent::{Deed, Rule};
use shared_sandbox::{Command, Remove, Request, path_from_root};

/// The characters with which the literal beginning of a pattern ends.
const WILD: [char; 5] = ['*', '?', '[', '{', '\\'];

/// Judges the deeds of a request, one after the other; a command with the folder in which it starts. `roots` are the absolute paths by which the root of the sandbox
/// is known.
///
/// # Errors
/// The first one of `judge`.
pub(super) fn each<E>(
    request: &Request,
    roots: &[&Path],
    mut judge: impl FnMut(&Deed<'_>, &str) -> Result<(), E>,
) -> Result<(), E> {
    let place = |path: &str| from_root(path, roots);
    let paths = match request {
        Request::Exec(exec) => {
            let deed = match &exec.command {
                Command::Shell(script) => Deed::Shell(script),
                Command::Argv(words) => Deed::Argv(words),
            };
            return judge(&deed, &place(&exec.directory));
        }
        Request::Read(asked) => vec![place(&asked.path)],
        Request::List(asked) => vec![place(&asked.path)],
        Request::Glob(asked) => vec![place(&asked.path)],
        Request::Grep(asked) => vec![place(&asked.path)],
        Request::Download(asked) => vec![place(&asked.path)],
        Request::Stat(asked) => vec![place(&asked.path)],
        Request::Survey(asked) => vec![place(&asked.path)],
        Request::Pack(asked) => {
            let folder = place(&asked.path);
            let entries = asked.entries.iter();
            entries
                .map(|entry| path_from_root(&folder, entry))
                .collect()
        }
        Request::Write(asked) => vec![place(&asked.path)],
        Request::Edit(asked) => vec![place(&asked.path)],
        Request::Upload(asked) => vec![place(&asked.path)],
        Request::MakeDirectory(asked) => vec![place(&asked.path)],
        Request::Remove(asked) => vec![place(&asked.path)],
        Request::Unpack(asked) => vec![place(&asked.path)],
        Request::Move(asked) => vec![place(&asked.from), place(&asked.to)],
    };
    let reads = request.only_reads();
    paths.iter().try_for_each(|path| match reads {
        true => judge(&Deed::Read(path), ""),
        false => judge(&Deed::Write(path), ""),
    })
}

/// True if the request may change something that this rule of a path names, in a folder that it changes as a whole.
pub(super) fn may_change_beneath(request: &Request, roots: &[&Path], rule: &Rule) -> bool {
    let rule = rule.to_string();
    let pattern = rule
        .strip_prefix("Write(")
        .and_then(|rest| rest.strip_suffix(')'));
    let Some(pattern) = pattern else {
        return false;
    };
    let literal = pattern.split(WILD).next().unwrap_or_default();
    let folder = |path: &str| match from_root(path, roots) {
        root if root.is_empty() => root,
        path => format!("{path}/"),
    };
    match request {
        Request::Unpack(asked) => meet(literal, &folder(&asked.path)),
        Request::Remove(Remove { path, tree: true }) => meet(literal, &folder(path)),
        // Most are moves of files. So only what the rule names beneath counts, and not what it might.
        Request::Move(asked) => [&asked.from, &asked.to]
            .iter()
            .any(|path| literal.starts_with(&folder(path))),
        _ => false,
    }
}

/// True if a pattern that begins so may name something in the folder.
fn meet(literal: &str, folder: &str) -> bool {
    literal.starts_with(folder) || folder.starts_with(literal)
}

/// The path as rules know it. An absolute one that begins with the root is one beneath it, as the sandbox takes it.
fn from_root(asked: &str, roots: &[&Path]) -> String {
    let beneath = roots
        .iter()
        .find_map(|root| Path::new(asked).strip_prefix(root).ok());
    let beneath = beneath.and_then(Path::to_str).unwrap_or(asked);
    path_from_root("", beneath)
}

#[cfg(test)]
mod tests;
