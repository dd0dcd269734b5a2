//! Standard input: raw mode, the size of the window, and what is typed or piped in.

use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags},
    termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};
use shared_api::TerminalSize;
use tokio::sync::mpsc;

/// Bytes of one read.
const PIECE_BYTES: usize = 64 * 1024;

/// The size of a terminal that does not tell it.
const USUAL: TerminalSize = TerminalSize {
    rows: 24,
    columns: 80,
};

/// A terminal in raw mode: each key goes to the program, and nothing is echoed here. Dropping it
/// restores the mode that the terminal had before.
#[derive(Debug)]
pub(super) struct RawMode {
    terminal: OwnedFd,
    before: Termios,
}

impl RawMode {
    pub(super) fn enter(terminal: impl AsFd) -> io::Result<Self> {
        let terminal = terminal.as_fd().try_clone_to_owned()?;
        let before = tcgetattr(&terminal)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&terminal, OptionalActions::Drain, &raw)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // If the terminal is gone, there are no settings to restore.
        let _ = tcsetattr(&self.terminal, OptionalActions::Drain, &self.before);
    }
}

/// The size of the window; a usual one where it is not known.
pub(crate) fn window(terminal: impl AsFd) -> TerminalSize {
    match tcgetwinsize(terminal) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => TerminalSize {
            rows: size.ws_row,
            columns: size.ws_col,
        },
        _ => USUAL,
    }
}

/// Reads typed or piped input, piece by piece. It ends with the input, or after an error. It reads
/// one or two pieces ahead.
pub(super) fn typed() -> mpsc::Receiver<io::Result<Vec<u8>>> {
    let (pieces, receiver) = mpsc::channel(1);
    // The process ends without waiting for a read that never returns.
    std::thread::spawn(move || {
        let stdin = match io::stdin().as_fd().try_clone_to_owned() {
            Ok(stdin) => File::from(stdin),
            Err(error) => return drop(pieces.blocking_send(Err(error))),
        };
        read_pieces(stdin, &pieces);
    });
    receiver
}

fn read_pieces(mut input: File, pieces: &mpsc::Sender<io::Result<Vec<u8>>>) {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = match input.read(&mut piece) {
            Ok(0) => return,
            Ok(read) => Ok(piece[..read].to_vec()),
            Err(error) => match wait_after(error, &input, PollFlags::IN) {
                Ok(()) => continue,
                Err(error) => Err(error),
            },
        };
        let is_over = read.is_err();
        if pieces.blocking_send(read).is_err() || is_over {
            return;
        }
    }
}

/// Waits until a descriptor that another program made non-blocking is ready; other errors come back.
pub(super) fn wait_after(error: io::Error, file: &File, flags: PollFlags) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(()),
        io::ErrorKind::WouldBlock => {
            match rustix::event::poll(&mut [PollFd::new(file, flags)], None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use rustix::{
        fs::{Mode, OFlags},
        pty::OpenptFlags,
        termios::LocalModes,
    };

    use super::*;

    /// Both ends of a terminal; ours first.
    fn terminal() -> (OwnedFd, OwnedFd) {
        let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pty");
        rustix::pty::unlockpt(&master).expect("it is ours");
        let name = rustix::pty::ptsname(&master, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let slave = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).expect("it opens");
        (master, slave)
    }

    fn echoes(terminal: &OwnedFd) -> bool {
        let modes = tcgetattr(terminal).expect("it is a terminal").local_modes;
        modes.contains(LocalModes::ECHO)
    }

    #[test]
    fn the_mode_of_the_terminal_is_restored_also_by_a_panic() {
        let (_master, slave) = terminal();
        assert!(echoes(&slave));
        let ended = std::panic::catch_unwind(|| {
            let _raw = RawMode::enter(&slave).expect("it is a terminal");
            assert!(!echoes(&slave));
            panic!("on purpose");
        });
        assert!(ended.is_err());
        assert!(echoes(&slave));
    }

    #[test]
    fn a_window_without_a_size_has_the_usual_one() {
        let (master, slave) = terminal();
        assert_eq!(window(&slave), USUAL);
        let mut size = tcgetwinsize(&master).expect("a size");
        (size.ws_row, size.ws_col) = (50, 132);
        rustix::termios::tcsetwinsize(&master, size).expect("it can be resized");
        let size = window(&slave);
        assert_eq!((size.rows, size.columns), (50, 132));
    }
}
