//! What a person types during a turn is not shown: it would stand in the middle of what the turn says. The
//! terminal keeps it for the next prompt, which shows it.

use std::io::{self, IsTerminal as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// A terminal that echoes nothing. Dropping it restores the mode that the terminal had before.
#[derive(Debug)]
pub(super) struct Unechoed {
    before: Termios,
}

impl Unechoed {
    /// None where nobody types: standard input is no terminal, or another program's now.
    pub(super) fn enter() -> Option<Self> {
        let terminal = io::stdin();
        let is_ours = terminal.is_terminal()
            && tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp());
        let before = tcgetattr(&terminal).ok().filter(|_| is_ours)?;
        let mut unechoed = before.clone();
        unechoed.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Now, &unechoed).ok()?;
        Some(Self { before })
    }
}

impl Drop for Unechoed {
    fn drop(&mut self) {
        // Where the terminal is gone, nothing is left to restore.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
