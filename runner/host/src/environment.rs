//! The environment of commands: built from empty, never inherited.

use std::collections::BTreeMap;

use shared_types::{Refusal, RefusalCode};

/// The `PATH` of commands where the runner itself was started without one.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Passed on from the runner's own environment, beside [`ALLOWED_PREFIX`].
const ALLOWED: [&str; 7] = ["PATH", "HOME", "TERM", "LANG", "USER", "SHELL", "TMPDIR"];

/// The locale's categories.
const ALLOWED_PREFIX: &str = "LC_";

/// Variables that make a loader or an interpreter run other code before the program's own; with
/// [`DANGEROUS_PREFIXES`].
const DANGEROUS: [&str; 6] = [
    "NODE_OPTIONS",
    "PERL5OPT",
    "JAVA_TOOL_OPTIONS",
    "BASH_ENV",
    "ENV",
    "ZDOTDIR",
];

/// See [`DANGEROUS`].
const DANGEROUS_PREFIXES: [&str; 4] = ["LD_", "DYLD_", "PYTHON", "RUBY"];

/// The base environment of commands: of `vars` only PATH, HOME, TERM, LANG, LC_*, USER, SHELL and
/// TMPDIR, with a usual PATH where there is none.
pub fn allowed_environment(
    vars: impl Iterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    let mut allowed: BTreeMap<_, _> = vars
        .filter(|(name, _)| ALLOWED.contains(&name.as_str()) || name.starts_with(ALLOWED_PREFIX))
        .collect();
    let path = allowed.entry("PATH".to_owned()).or_default();
    if path.is_empty() {
        DEFAULT_PATH.clone_into(path);
    }
    allowed
}

/// Checks that these may be set on top of the base environment.
///
/// # Errors
/// `INVALID`, naming the variable.
pub(crate) fn check_additions(additions: &BTreeMap<String, String>) -> Result<(), Refusal> {
    let reason = |name: &str, value: &str| {
        if name.is_empty() || name.contains(['=', '\0']) {
            Some("its name must not be empty or hold \"=\" or a NUL byte")
        } else if value.contains('\0') {
            Some("its value holds a NUL byte")
        } else if is_dangerous(name) {
            Some("it changes what programs load before they run; set it inside the command")
        } else {
            None
        }
    };
    additions.iter().try_for_each(|(name, value)| {
        reason(name, value).map_or(Ok(()), |reason| {
            let message = format!("the variable {name:?} cannot be set: {reason}");
            Err(Refusal::new(RefusalCode::Invalid, message))
        })
    })
}

fn is_dangerous(name: &str) -> bool {
    DANGEROUS.contains(&name)
        || DANGEROUS_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests;
