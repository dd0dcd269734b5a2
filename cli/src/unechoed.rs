//! A terminal that does not show what is typed: a secret, or keys during a turn. Those would appear in the middle of
//! the turn's output. The terminal keeps a line until it is whole; the next prompt shows one that is not.

use std::io::{self, IsTerminal as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// A terminal that echoes nothing. Dropping it restores the mode that the terminal had before.
#[derive(Debug)]
pub(crate) struct Unechoed {
    before: Termios,
}

impl Unechoed {
    /// Stops the echo. `None` if no person types: standard input is no terminal, or belongs to another program now.
    pub(crate) fn enter() -> Option<Self> {
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
        // If the terminal is gone, there are no settings to restore.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
