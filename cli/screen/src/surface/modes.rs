//! The terminal's modes while the program uses it.
//!
//! The state is the process's, not a struct's, because a panic hook must reach it: a panic restores the terminal before
//! its message is printed. A guardian learns of each change, so that it knows whether there is something to restore.

use std::{
    io,
    sync::{Mutex, Once, PoisonError, TryLockError},
};

use nix::sys::signal::{Signal, kill};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use super::{Guardian, Terminal};

const PASTE_ON: &str = "\x1b[?2004h";
const FOCUS_ON: &str = "\x1b[?1004h";
const ENHANCED_ON: &str = "\x1b[>1u";
const PASTE_OFF: &str = "\x1b[?2004l";
const FOCUS_OFF: &str = "\x1b[?1004l";
const ENHANCED_OFF: &str = "\x1b[<u";
/// Ends what a frame may have left half done: synchronized output, no wrapping, a hidden cursor, a style.
const DRAWING_OFF: &str = "\x1b[?2026l\x1b[?7h\x1b[?25h\x1b[0m";

/// Goes below the cursor, where only the program's own rows are, and erases them.
pub(super) const BELOW: &str = "\r\n\x1b[J";

const FULL_ON: &str = "\x1b[?1049h";
const FULL_OFF: &str = "\x1b[?1049l";

/// The modes that are switched on, except raw mode, which always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The kitty keyboard protocol, by which Shift-Enter is told from Enter.
    pub enhanced_keys: bool,
    /// The alternate screen, which [`Modes::full_screen`] switches on and off.
    pub full_screen: bool,
}

impl Wanted {
    /// The modes that are harmless in a terminal of this name (`TERM`).
    pub fn for_terminal(name: &str) -> Self {
        // The Linux console prints sequences that it does not know.
        let enhanced_keys = !name.starts_with("linux");
        Self {
            enhanced_keys,
            full_screen: false,
        }
    }

    fn on(self) -> String {
        let enhanced = if self.enhanced_keys { ENHANCED_ON } else { "" };
        let full = if self.full_screen {
            self.full_on()
        } else {
            String::new()
        };
        format!("{PASTE_ON}{FOCUS_ON}{enhanced}{full}")
    }

    /// The alternate screen has a stack of keyboard modes of its own.
    fn full_on(self) -> String {
        let enhanced = if self.enhanced_keys { ENHANCED_ON } else { "" };
        format!("{FULL_ON}{enhanced}")
    }

    fn full_off(self) -> String {
        let enhanced = if self.enhanced_keys { ENHANCED_OFF } else { "" };
        format!("{enhanced}{FULL_OFF}")
    }

    /// The sequences that switch the modes off. `is_ours` is false if another program may have switched on bracketed
    /// paste for itself meanwhile.
    pub(super) fn off(self, is_ours: bool) -> String {
        let enhanced = if self.enhanced_keys { ENHANCED_OFF } else { "" };
        let paste = if is_ours { PASTE_OFF } else { "" };
        let full = if self.full_screen {
            self.full_off()
        } else {
            String::new()
        };
        format!("{full}{DRAWING_OFF}{enhanced}{FOCUS_OFF}{paste}")
    }
}

/// The modes of the process's terminal. Dropping it restores the terminal.
#[derive(Debug)]
pub struct Modes(());

struct State {
    terminal: Terminal,
    wanted: Wanted,
    before: Termios,
    guardian: Option<Guardian>,
    is_on: bool,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static HOOK: Once = Once::new();

impl Modes {
    /// Switches the modes on. A process has one terminal: a second call before the first is dropped replaces it.
    ///
    /// # Errors
    /// The descriptor is no terminal, or the terminal is gone.
    pub fn begin(
        terminal: &Terminal,
        wanted: Wanted,
        guardian: Option<Guardian>,
    ) -> io::Result<Self> {
        HOOK.call_once(|| {
            let next = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                if let Some(terminal) = restore() {
                    let _ = terminal.write_last(BELOW.as_bytes());
                }
                next(panic);
            }));
        });
        restore();
        let before = tcgetattr(terminal.input())?;
        let mut state = State {
            terminal: terminal.clone(),
            wanted,
            before,
            guardian,
            is_on: false,
        };
        let switched = state.switch_on();
        *STATE.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
        let modes = Self(());
        switched.map(|()| modes)
    }

    /// Switches the modes off: before an editor, a pager, Ctrl-Z. Idempotent.
    pub fn suspend(&self) {
        restore();
    }

    /// Switches the modes on again, also if another program has changed them meanwhile.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn resume(&self) -> io::Result<()> {
        match &mut *STATE.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(state) => state.switch_on(),
            None => Ok(()),
        }
    }

    /// Enters the alternate screen, which is empty, or returns to the usual one, which is as it was.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn full_screen(&self, is_full: bool) -> io::Result<()> {
        match &mut *STATE.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(state) => state.full_screen(is_full),
            None => Ok(()),
        }
    }

    /// True while the modes are on. A panic, in any thread, switches them off.
    pub fn is_on(&self) -> bool {
        let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().is_some_and(|state| state.is_on)
    }

    /// Restores the terminal, as dropping does. Idempotent.
    pub fn restore(&self) {
        restore();
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        restore();
        // The guardian ends with the state that held it.
        *STATE.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Stops the program's process group as Ctrl-Z does, and returns when it is continued. The caller suspends the modes
/// before and resumes them afterwards. On another thread than `main`'s it may return a moment before the stop.
///
/// # Errors
/// The signal cannot be sent.
pub fn stop() -> io::Result<()> {
    // A process id of 0 means the sender's own group: a wrapper script stops with the program.
    kill(nix::unistd::Pid::from_raw(0), Signal::SIGTSTP)?;
    Ok(())
}

/// Restores the terminal, and returns it if there was something to restore.
fn restore() -> Option<Terminal> {
    // A panic while this thread or another holds the lock must not wait for it.
    let mut state = match STATE.try_lock() {
        Ok(state) => state,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    let state = state.as_mut()?;
    state.switch_off().then(|| state.terminal.clone())
}

impl State {
    fn switch_on(&mut self) -> io::Result<()> {
        if let Some(guardian) = &mut self.guardian {
            guardian.arm(&self.before, self.wanted);
        }
        self.is_on = true;
        let mut raw = self.before.clone();
        raw.make_raw();
        tcsetattr(self.terminal.input(), OptionalActions::Now, &raw)?;
        self.terminal.write(self.wanted.on().as_bytes())
    }

    fn full_screen(&mut self, is_full: bool) -> io::Result<()> {
        if self.wanted.full_screen == is_full {
            return Ok(());
        }
        self.wanted.full_screen = is_full;
        if !self.is_on {
            return Ok(());
        }
        if let Some(guardian) = &mut self.guardian {
            guardian.arm(&self.before, self.wanted);
        }
        let bytes = match is_full {
            true => self.wanted.full_on(),
            false => self.wanted.full_off(),
        };
        self.terminal.write(bytes.as_bytes())
    }

    /// Switches the modes off. Returns false if they were.
    fn switch_off(&mut self) -> bool {
        if !self.is_on {
            return false;
        }
        self.is_on = false;
        // Nothing can be done about a terminal that is gone.
        let _ = self.terminal.write_last(self.wanted.off(true).as_bytes());
        let _ = tcsetattr(self.terminal.input(), OptionalActions::Now, &self.before);
        if let Some(guardian) = &mut self.guardian {
            guardian.disarm();
        }
        true
    }
}

#[cfg(test)]
mod tests;
