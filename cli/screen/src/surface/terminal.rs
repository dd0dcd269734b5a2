//! The terminal as a place to read from and to write to.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    io::Errno,
    termios::{isatty, tcgetwinsize},
};

use super::Size;

/// The size of a terminal that does not know its own.
const USUAL_SIZE: Size = Size {
    columns: 80,
    rows: 24,
};

/// The longest wait for a terminal that takes no bytes, when the program ends.
const HANG_PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

/// The terminal, with its own descriptors. Clones are the same terminal.
#[derive(Debug, Clone)]
pub struct Terminal {
    input: Arc<OwnedFd>,
    output: Arc<OwnedFd>,
}

impl Terminal {
    /// Takes standard input and standard output; the controlling terminal in place of one that is no terminal.
    ///
    /// # Errors
    /// There is no terminal, or no descriptor is left.
    pub fn open() -> io::Result<Self> {
        let or_controlling = |fd: BorrowedFd<'_>| match isatty(fd) {
            true => fd.try_clone_to_owned(),
            false => Ok(rustix::fs::open(
                "/dev/tty",
                OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
                Mode::empty(),
            )?),
        };
        let input = or_controlling(io::stdin().as_fd())?;
        let output = or_controlling(io::stdout().as_fd())?;
        Ok(Self::of(input, output))
    }

    /// Takes these descriptors.
    pub fn of(input: OwnedFd, output: OwnedFd) -> Self {
        Self {
            input: Arc::new(input),
            output: Arc::new(output),
        }
    }

    /// The terminal's size: 80 columns and 24 rows if it does not know it.
    pub fn size(&self) -> Size {
        match tcgetwinsize(&self.output) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Size {
                columns: size.ws_col,
                rows: size.ws_row,
            },
            _ => USUAL_SIZE,
        }
    }

    /// Writes all bytes. Waits if the terminal takes none, as after Ctrl-S.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::io::write(&self.output, bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                // A program before us may have left the terminal so that it does not wait.
                Err(Errno::AGAIN) => {
                    let mut fds = [PollFd::new(&self.output, PollFlags::OUT)];
                    match poll(&mut fds, None) {
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes a few bytes unless the terminal takes none for a while: a window that hangs must not keep the program
    /// from ending.
    ///
    /// # Errors
    /// The terminal is gone or hangs.
    pub(super) fn write_last(&self, bytes: &[u8]) -> io::Result<()> {
        // A terminal that is ready has space for one byte, and waits if there are more.
        for byte in bytes.chunks(1) {
            let mut fds = [PollFd::new(&self.output, PollFlags::OUT)];
            match poll(&mut fds, Some(&HANG_PATIENCE)) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) | Err(Errno::INTR) => self.write(byte)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The descriptor to read from.
    pub(super) fn input(&self) -> &Arc<OwnedFd> {
        &self.input
    }

    /// The descriptor to write to.
    pub(super) fn output(&self) -> &Arc<OwnedFd> {
        &self.output
    }
}

#[cfg(test)]
mod tests {
    use crate::surface::pty::Pty;

    use super::*;

    #[test]
    fn a_window_that_hangs_does_not_hold_the_last_words() {
        let mut pty = Pty::open();
        let terminal = pty.terminal();
        terminal.write_last(b"words").expect("it takes them");
        assert_eq!(pty.until("words"), "");
        while terminal.write_last(&[b'x'; 1000]).is_ok() {}
        let error = terminal.write_last(b"words").expect_err("it is full");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
