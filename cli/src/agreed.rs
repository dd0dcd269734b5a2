//! Asking before what cannot be undone, or takes a person's consent.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use anyhow::bail;

/// Asks on the terminal if the person agrees to `what`, such as "delete session 3".
///
/// # Errors
/// Fails without a terminal, because only a person may agree to what cannot be undone.
pub(crate) fn agreed(what: &str) -> anyhow::Result<bool> {
    says_yes(&format!("{what}, for good?"), what)
}

/// Asks a question on the terminal; yes means to do `what`.
///
/// # Errors
/// Fails without a terminal.
pub(crate) fn says_yes(question: &str, what: &str) -> anyhow::Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        bail!("there is no terminal to ask on; add --yes to {what}");
    }
    let mut asking = std::io::stderr();
    write!(asking, "{question} [y/N] ")?;
    asking.flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
