//! The stream of keys and pasted text.
//!
//! The reader is ours, with crossterm's types: crossterm's own reads in a way that cannot be paused, and spins when the
//! terminal is gone. This one takes bytes only inside [`Keys::next`], and only after `poll` has said that there are
//! some. So the terminal's descriptor, which the shell shares, stays in blocking mode.

mod decode;

use std::{future::pending, io, os::fd::OwnedFd, pin::Pin, time::Duration};

use crossterm::event::KeyEvent;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use tokio::{
    net::unix::pipe::Receiver,
    signal::unix::{Signal, SignalKind, signal},
    time::{Sleep, sleep},
};

use self::decode::Decoder;
use super::{Size, Terminal};

/// Longest paste that is taken whole, in bytes.
pub const MAX_PASTE_BYTES: usize = 24 << 20;

/// The most bytes taken from the terminal at once.
const READ_BYTES: usize = 64 << 10;

/// After this time without another byte, an escape character is the Escape key.
const ESCAPE_PATIENCE: Duration = Duration::from_millis(50);

/// After this time without another byte, a paste has ended although its end was not told.
const PASTE_PATIENCE: Duration = Duration::from_secs(10);

/// One thing that the terminal tells.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// Text was pasted.
    Paste(Paste),
    /// The terminal has another size.
    Resize(Size),
    /// The terminal's window has gained (`true`) or lost (`false`) the keyboard.
    Focus(bool),
    /// The terminal is gone. Told once; nothing follows.
    End,
}

/// Pasted text, as the terminal sent it, with newlines as line ends. It may hold control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paste {
    /// The text, at most [`MAX_PASTE_BYTES`].
    pub text: String,
    /// True if the paste was longer, and its end is missing.
    pub is_cut: bool,
}

/// The stream of what the terminal tells.
#[derive(Debug)]
pub struct Keys {
    terminal: Terminal,
    /// Only waits: it holds a descriptor of its own, from which it never reads.
    readable: Receiver,
    resized: Signal,
    size: Size,
    decoder: Decoder,
    /// Runs while something is half read.
    quiet: Option<Pin<Box<Sleep>>>,
    is_paused: bool,
    has_ended: bool,
}

impl Keys {
    /// Listens to the terminal. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The input is no terminal that can be waited for.
    pub fn new(terminal: &Terminal) -> io::Result<Self> {
        Ok(Self {
            terminal: terminal.clone(),
            readable: Receiver::from_owned_fd_unchecked(terminal.input().try_clone()?)?,
            resized: signal(SignalKind::window_change())?,
            size: terminal.size(),
            decoder: Decoder::default(),
            quiet: None,
            is_paused: false,
            has_ended: false,
        })
    }

    /// Takes no byte from the terminal until [`Keys::resume`]. [`Keys::next`] waits meanwhile.
    pub fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Takes bytes again. A size that has changed meanwhile is told.
    pub fn resume(&mut self) {
        self.is_paused = false;
    }

    /// The next input. Waits forever after the end and while paused. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Input {
        loop {
            if self.is_paused || self.has_ended {
                return pending().await;
            }
            let size = self.terminal.size();
            if size != self.size {
                self.size = size;
                return Input::Resize(size);
            }
            if let Some(input) = self.decoder.next(false) {
                self.quiet = None;
                return input;
            }
            let patience = self.decoder.patience();
            match patience {
                Some(patience) => {
                    self.quiet.get_or_insert_with(|| Box::pin(sleep(patience)));
                }
                None => self.quiet = None,
            }
            let is_quiet = async {
                match &mut self.quiet {
                    Some(quiet) => quiet.await,
                    None => pending().await,
                }
            };
            tokio::select! {
                ready = self.readable.readable() => {
                    let taken = ready.and_then(|()| {
                        self.readable.try_io(|| take(self.terminal.input()))
                    });
                    match taken {
                        Ok(bytes) if bytes.is_empty() => return self.end(),
                        Ok(bytes) => {
                            self.quiet = None;
                            self.decoder.push(&bytes);
                        }
                        Err(error) if is_momentary(&error) => {}
                        Err(_) => return self.end(),
                    }
                }
                _ = self.resized.recv() => {}
                () = is_quiet => {
                    self.quiet = None;
                    if let Some(input) = self.decoder.next(true) {
                        return input;
                    }
                }
            }
        }
    }

    fn end(&mut self) -> Input {
        self.has_ended = true;
        Input::End
    }
}

/// Takes the bytes that are there; none at the end.
///
/// # Errors
/// `WouldBlock` if there are none yet.
fn take(fd: &OwnedFd) -> io::Result<Vec<u8>> {
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    let mut bytes = vec![0; READ_BYTES];
    let read = match poll(&mut fds, Some(&at_once)) {
        Ok(0) => Err(Errno::AGAIN),
        Ok(_) => rustix::io::read(fd, &mut bytes),
        Err(error) => Err(error),
    };
    match read {
        Ok(read) => {
            bytes.truncate(read);
            Ok(bytes)
        }
        Err(error) => Err(error.into()),
    }
}

fn is_momentary(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests;
