//! A small process that restores the terminal after the program was killed (`kill -9`, out of memory).
//!
//! It is the same executable with one argument, [`GUARDIAN_ARGUMENT`]. Its standard input is a pipe from the program,
//! and its standard output is the terminal. The program writes one line before it switches its modes on, and one byte
//! after it has switched them off. If the pipe ends between the two, then the program was killed.
//!
//! By then a shell may have taken the terminal. A shell sets modes of its own, which differ from the program's raw
//! mode: it keeps the signals of the keyboard and the processing of output. Therefore:
//! - If the terminal is still in exactly the program's raw mode, then no other program has taken it. The guardian
//!   restores everything.
//! - Otherwise the guardian leaves the mode and bracketed paste alone, which a shell sets for itself, and goes to no
//!   new line. It only switches off what no shell would notice.

use std::{
    io::{self, Read, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdin, Command, ExitCode, Stdio},
};

use nix::sys::signal::{SigSet, Signal};
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios,
    tcgetattr, tcsetattr,
};

use super::{
    Terminal,
    modes::{BELOW, Wanted},
};

/// The argument with which the program becomes the guardian.
pub const GUARDIAN_ARGUMENT: &str = "--guard-terminal";

/// The byte that says "the modes are off".
const RESTORED: u8 = b'-';

/// Longest line that the program writes, in bytes.
const MAX_LINE_BYTES: usize = 128;

/// The guardian as its program has it. Dropping it ends the process.
#[derive(Debug)]
pub struct Guardian {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guardian {
    /// Starts `program`, this program's own executable, as a guardian of the terminal. Returns at once.
    ///
    /// # Errors
    /// The process cannot be started. The program works without it.
    pub fn start(program: &Path, terminal: &Terminal) -> io::Result<Self> {
        Self::spawn(Command::new(program).arg(GUARDIAN_ARGUMENT), terminal)
    }

    pub(super) fn spawn(command: &mut Command, terminal: &Terminal) -> io::Result<Self> {
        // The pipe's end is close-on-exec, so that an editor does not hold it open. The group of its own keeps
        // Ctrl-C and Ctrl-Z of another program away.
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(terminal.output().try_clone()?)
            .stderr(Stdio::null())
            .current_dir("/")
            .process_group(0)
            .spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// Tells how the terminal was before the modes are switched on. A guardian that is gone is not missed.
    pub(super) fn arm(&mut self, before: &Termios, wanted: Wanted) {
        let line = Armed::new(before, wanted).line();
        if let Some(pipe) = &mut self.pipe {
            let _ = pipe.write_all(line.as_bytes());
        }
    }

    /// Tells that the modes are off.
    pub(super) fn disarm(&mut self) {
        if let Some(pipe) = &mut self.pipe {
            let _ = pipe.write_all(&[RESTORED, b'\n']);
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.child.wait();
    }
}

/// The terminal's modes from before the program's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Armed {
    input: InputModes,
    output: OutputModes,
    control: ControlModes,
    local: LocalModes,
    least: u8,
    time: u8,
    wanted: Wanted,
}

/// Runs the guardian, and returns when the program has ended. The program's `main` calls it before anything else.
pub fn run() -> ExitCode {
    // Only the end of the pipe ends it. SIGTTOU would stop it when it sets the terminal from the background.
    let mut signals = SigSet::empty();
    for signal in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGTSTP,
        Signal::SIGTTIN,
        Signal::SIGTTOU,
    ] {
        signals.add(signal);
    }
    let is_blocked = signals.thread_block().is_ok();
    match last_word(io::stdin().lock()) {
        Some(armed) if is_blocked => match armed.restore() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        _ => ExitCode::SUCCESS,
    }
}

/// Reads until the pipe ends. Returns what is to be restored.
fn last_word(mut pipe: impl Read) -> Option<Armed> {
    let mut armed = None;
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        match pipe.read(&mut byte) {
            Ok(0) => return armed,
            Ok(_) if byte[0] == b'\n' => {
                armed = match line.as_slice() {
                    [RESTORED] => None,
                    line => std::str::from_utf8(line).ok().and_then(Armed::parse),
                };
                line.clear();
            }
            Ok(_) if line.len() < MAX_LINE_BYTES => line.push(byte[0]),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return armed,
        }
    }
}

impl Armed {
    fn new(before: &Termios, wanted: Wanted) -> Self {
        Self {
            input: before.input_modes,
            output: before.output_modes,
            control: before.control_modes,
            local: before.local_modes,
            least: before.special_codes[SpecialCodeIndex::VMIN],
            time: before.special_codes[SpecialCodeIndex::VTIME],
            wanted,
        }
    }

    fn line(self) -> String {
        format!(
            "{} {} {} {} {} {} {} {}\n",
            self.input.bits(),
            self.output.bits(),
            self.control.bits(),
            self.local.bits(),
            self.least,
            self.time,
            u8::from(self.wanted.enhanced_keys),
            u8::from(self.wanted.full_screen),
        )
    }

    fn parse(line: &str) -> Option<Self> {
        let mut numbers = line.split(' ');
        let armed = Self {
            input: InputModes::from_bits_retain(numbers.next()?.parse().ok()?),
            output: OutputModes::from_bits_retain(numbers.next()?.parse().ok()?),
            control: ControlModes::from_bits_retain(numbers.next()?.parse().ok()?),
            local: LocalModes::from_bits_retain(numbers.next()?.parse().ok()?),
            least: numbers.next()?.parse().ok()?,
            time: numbers.next()?.parse().ok()?,
            wanted: Wanted {
                enhanced_keys: numbers.next()? == "1",
                full_screen: numbers.next()? == "1",
            },
        };
        Some(armed)
    }

    fn restore(self) -> io::Result<()> {
        let out = io::stdout();
        let now = tcgetattr(&out)?;
        let mut before = now.clone();
        self.apply(&mut before);
        let mut raw = before.clone();
        raw.make_raw();
        let is_ours = Self::new(&raw, self.wanted) == Self::new(&now, self.wanted);
        let mut bytes = self.wanted.off(is_ours);
        if is_ours {
            bytes.push_str(BELOW);
            tcsetattr(&out, OptionalActions::Now, &before)?;
        }
        let mut out = out.lock();
        out.write_all(bytes.as_bytes())?;
        out.flush()
    }

    fn apply(self, termios: &mut Termios) {
        termios.input_modes = self.input;
        termios.output_modes = self.output;
        termios.control_modes = self.control;
        termios.local_modes = self.local;
        termios.special_codes[SpecialCodeIndex::VMIN] = self.least;
        termios.special_codes[SpecialCodeIndex::VTIME] = self.time;
    }
}

#[cfg(test)]
mod tests;
