//! A terminal for tests: its other end, as a terminal's window has it.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    pty::OpenptFlags,
    termios::{Termios, Winsize, tcgetattr, tcsetwinsize},
};

use super::{Size, Terminal};

/// The longest wait for something that is to be shown.
const PATIENCE: Timespec = Timespec {
    tv_sec: 20,
    tv_nsec: 0,
};

pub(super) struct Pty {
    window: File,
    pub(super) program: OwnedFd,
    shown: Vec<u8>,
}

impl Pty {
    pub(super) fn open() -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let window = rustix::pty::openpt(flags).expect("a pty");
        rustix::pty::unlockpt(&window).expect("it is ours");
        let name = rustix::pty::ptsname(&window, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let program = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).expect("it opens");
        rustix::io::fcntl_setfd(&window, rustix::io::FdFlags::CLOEXEC).expect("it is open");
        let pty = Self {
            window: File::from(window),
            program,
            shown: Vec::new(),
        };
        pty.resize(Size {
            columns: 80,
            rows: 24,
        });
        pty
    }

    /// The program's end as a terminal.
    pub(super) fn terminal(&self) -> Terminal {
        let program = || self.program.try_clone().expect("a descriptor");
        Terminal::of(program(), program())
    }

    pub(super) fn termios(&self) -> Termios {
        tcgetattr(&self.program).expect("it is a terminal")
    }

    pub(super) fn resize(&self, size: Size) {
        let size = Winsize {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.window, size).expect("it can be resized");
    }

    pub(super) fn type_in(&mut self, keys: &str) {
        self.window
            .write_all(keys.as_bytes())
            .expect("it takes keys");
    }

    /// Waits until this is shown, and returns everything that was shown up to it and not returned before.
    pub(super) fn until(&mut self, text: &str) -> String {
        loop {
            let shown = String::from_utf8_lossy(&self.shown).into_owned();
            if let Some((before, rest)) = shown.split_once(text) {
                let before = before.to_owned();
                self.shown = rest.as_bytes().to_vec();
                return before;
            }
            let mut fds = [PollFd::new(&self.window, PollFlags::IN)];
            let ready = poll(&mut fds, Some(&PATIENCE)).expect("it can be waited for");
            assert_ne!(ready, 0, "{text:?} is not shown, but {shown:?}");
            let mut piece = [0; 4096];
            let read = self
                .window
                .read(&mut piece)
                .expect("the program's end is open");
            self.shown.extend_from_slice(&piece[..read]);
        }
    }
}
