//! A terminal for a command.

use std::io;

use rustix::{
    fd::{AsFd, OwnedFd},
    pty::OpenptFlags,
    termios::Winsize,
};

use crate::prepare::never_wait;

/// Both ends of a terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// Ours.
    pub(crate) master: OwnedFd,
    /// The command's.
    pub(crate) slave: OwnedFd,
}

/// Makes one of this size.
pub(crate) fn open(rows: u16, columns: u16) -> io::Result<Terminal> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags)?;
    // A container's root can have put something else in its place.
    if rustix::fs::fstat(&master)?.st_rdev != rustix::fs::makedev(5, 2) {
        return Err(io::Error::other(
            "/dev/ptmx makes no terminals; stop the sandbox, and start it again",
        ));
    }
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    // Not by its name, for the same reason.
    let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
    resize(&master, rows, columns)?;
    never_wait(&master)?;
    Ok(Terminal { master, slave })
}

/// Gives it another size; its foreground processes get SIGWINCH.
pub(crate) fn resize(master: impl AsFd, rows: u16, columns: u16) -> io::Result<()> {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(rustix::termios::tcsetwinsize(master, size)?)
}
