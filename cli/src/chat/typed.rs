//! Lines that a person types while a turn works.
//!
//! The terminal keeps a line until it is whole, and echoes nothing ([`crate::unechoed`]): a whole line is read at once,
//! and one that is not whole stays for the next prompt. The thread that waits for a line reads none. So it takes no line
//! from the prompt, and ends with the turn.

use std::{
    future::pending,
    io::{self, PipeReader, PipeWriter},
    os::fd::{AsFd as _, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    termios::tcgetpgrp,
};
use tokio::sync::mpsc;

/// Longest line that a terminal passes on, in bytes.
const LINE_BYTES: usize = 4096;

/// The lines of a terminal, until this is dropped.
pub(super) struct TypedLines(Option<Listening>);

struct Listening {
    terminal: OwnedFd,
    /// Something is there to be read.
    ready: mpsc::Receiver<()>,
    /// Its end stops the thread.
    _stop: PipeWriter,
}

impl TypedLines {
    /// Reads no line.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Reads the lines of standard input, which is a terminal that echoes nothing.
    pub(super) fn listen() -> Self {
        Self(Listening::start().ok())
    }

    /// The next line, without its end. Never returns where there will be none. A caller may drop the future while it
    /// waits.
    pub(super) async fn next(&mut self) -> String {
        loop {
            let Some(listening) = &mut self.0 else {
                return pending().await;
            };
            let read = match listening.ready.recv().await {
                Some(()) => read_line(&listening.terminal),
                None => Err(io::ErrorKind::UnexpectedEof.into()),
            };
            match read {
                Ok(Some(line)) => return line,
                Ok(None) => {}
                Err(_) => self.0 = None,
            }
        }
    }
}

impl Listening {
    fn start() -> io::Result<Self> {
        let terminal = io::stdin().as_fd().try_clone_to_owned()?;
        let (stopped, stop) = io::pipe()?;
        let (tell, ready) = mpsc::channel(1);
        let watched = terminal.try_clone()?;
        std::thread::spawn(move || wait_for_lines(&watched, &stopped, &tell));
        Ok(Self {
            terminal,
            ready,
            _stop: stop,
        })
    }
}

/// Tells of each line, until the listener is gone.
fn wait_for_lines(terminal: &OwnedFd, stopped: &PipeReader, tell: &mpsc::Sender<()>) {
    loop {
        let mut waits = [
            PollFd::new(terminal, PollFlags::IN),
            PollFd::new(stopped, PollFlags::IN),
        ];
        match poll(&mut waits, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        if !waits[1].revents().is_empty() || tell.blocking_send(()).is_err() {
            return;
        }
    }
}

/// A line that is there already.
///
/// # Errors
/// There will be no other one: the terminal is gone, or belongs to another program now, which stops one that reads
/// from it.
fn read_line(terminal: &OwnedFd) -> io::Result<Option<String>> {
    let mut waits = [PollFd::new(terminal, PollFlags::IN)];
    if poll(&mut waits, Some(&Timespec::default()))? == 0 {
        return Ok(None);
    }
    if tcgetpgrp(terminal)? != rustix::process::getpgrp() {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    let mut line = [0; LINE_BYTES];
    match rustix::io::read(terminal, &mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        bytes => {
            let line = String::from_utf8_lossy(&line[..bytes]);
            Ok(Some(line.trim_end_matches('\n').to_owned()))
        }
    }
}
