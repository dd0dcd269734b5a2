//! Asking before what cannot be undone.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use anyhow::bail;

/// Asks on the terminal if the person agrees to `what`, such as "delete session 3".
///
/// # Errors
/// Fails without a terminal, because only a person may agree to what cannot be undone.
pub(crate) fn agreed(what: &str) -> anyhow::Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        bail!("there is no terminal to ask on; add --yes to {what}");
    }
    let mut asking = std::io::stderr();
    write!(asking, "{what}, for good? [y/N] ")?;
    asking.flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
