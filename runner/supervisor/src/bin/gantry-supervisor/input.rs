//! The command's input: bytes with offsets, so that a repeat after a lost connection is harmless.

use std::{collections::VecDeque, io};

use rustix::{fd::OwnedFd, io::Errno, termios::LocalModes};

/// Input that waits for the command to read, in bytes.
const WAITING_BYTES: usize = 256 * 1024;

/// The byte that a terminal takes for the end of its input (control-D), where the program has not
/// changed it.
const END_OF_TRANSMISSION: u8 = 4;

/// The input of one command.
#[derive(Debug)]
pub(crate) struct CommandInput {
    /// Absent where no process reads: then input is only counted.
    sink: Option<OwnedFd>,
    terminal: bool,
    waiting: VecDeque<u8>,
    taken: u64,
    /// True if a terminal still waits for the end of the line.
    is_in_line: bool,
    ended: bool,
}

impl CommandInput {
    pub(crate) fn new(sink: Option<OwnedFd>, terminal: bool) -> Self {
        Self {
            sink,
            terminal,
            waiting: VecDeque::new(),
            taken: 0,
            is_in_line: false,
            ended: false,
        }
    }

    /// Up to here it is taken, whether the command has read it or not.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// The descriptor to listen to, if something waits.
    pub(crate) fn wanted(&self) -> Option<&OwnedFd> {
        self.sink.as_ref().filter(|_| !self.waiting.is_empty())
    }

    /// True if there is room again for input that a daemon had to keep.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < WAITING_BYTES / 2
    }

    /// Takes what is new of a piece and fits; the daemon sends on from [`CommandInput::taken`].
    ///
    /// # Errors
    /// When bytes between are missing, or come after the end.
    pub(crate) fn accept(&mut self, offset: u64, bytes: &[u8], end: bool) -> Result<(), String> {
        let Some(known) = self.taken.checked_sub(offset) else {
            return Err(format!(
                "input at {offset} leaves out bytes; send on from {}",
                self.taken
            ));
        };
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let new = bytes.get(known..).unwrap_or_default();
        if self.ended {
            return if new.is_empty() {
                Ok(())
            } else {
                Err(format!("the input has ended at {}", self.taken))
            };
        }
        let fits = match self.sink {
            Some(_) => new.len().min(WAITING_BYTES - self.waiting.len()),
            None => new.len(),
        };
        if self.sink.is_some() {
            self.waiting.extend(&new[..fits]);
        }
        self.taken += fits as u64;
        if let Some(last) = new[..fits].last() {
            self.is_in_line = !matches!(*last, b'\n' | b'\r' | END_OF_TRANSMISSION);
        }
        // An end that comes with bytes that did not fit comes again with them, and an end that
        // lies before what was taken is a repeat that was cut differently.
        if end && fits == new.len() && offset.saturating_add(bytes.len() as u64) == self.taken {
            self.ended = true;
            if self.terminal {
                // Within a line the first one only hands over what there is of it.
                let hands_over_lines = self.is_in_line && self.is_canonical();
                let times = if hands_over_lines { 2 } else { 1 };
                self.waiting
                    .extend([END_OF_TRANSMISSION; 2].iter().take(times));
            }
        }
        self.pump();
        Ok(())
    }

    /// True if the terminal hands over whole lines; a program may have changed that.
    fn is_canonical(&self) -> bool {
        let modes = self.sink.as_ref().map(rustix::termios::tcgetattr);
        modes.is_some_and(|modes| {
            modes.is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON))
        })
    }

    /// Passes on what the command takes now.
    pub(crate) fn pump(&mut self) {
        while let (Some(sink), false) = (&self.sink, self.waiting.is_empty()) {
            let (front, _) = self.waiting.as_slices();
            match rustix::io::write(sink, front) {
                Ok(length) => drop(self.waiting.drain(..length)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.close(),
            }
        }
        if self.ended && !self.terminal && self.waiting.is_empty() {
            self.close();
        }
    }

    /// No process reads any more.
    pub(crate) fn close(&mut self) {
        self.sink = None;
        self.waiting.clear();
    }
}

/// The input of a command that gets none. Where a container's root has put something else in its place that is
/// refused: it is opened with rights that commands do not have.
pub(crate) fn nothing() -> io::Result<OwnedFd> {
    use rustix::fs::{FileType, Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = rustix::fs::open("/dev/null", flags, Mode::empty());
    let is_null = |file: &OwnedFd| {
        let stat = rustix::fs::fstat(file)?;
        let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice;
        Ok::<_, io::Error>(is_device && stat.st_rdev == rustix::fs::makedev(1, 3))
    };
    match opened {
        Ok(file) if is_null(&file)? => {
            rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
            Ok(file)
        }
        Err(error) if error != rustix::io::Errno::LOOP && error != rustix::io::Errno::NXIO => {
            Err(error.into())
        }
        _ => Err(io::Error::other(
            "/dev/null is not the null device; stop the sandbox, and start it again",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input() -> (OwnedFd, CommandInput) {
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        (read, CommandInput::new(Some(write), false))
    }

    fn arrived(read: &OwnedFd) -> Vec<u8> {
        let mut bytes = [0; 100];
        let length = rustix::io::read(read, &mut bytes).expect("input");
        bytes[..length].to_vec()
    }

    #[test]
    fn repeats_are_discarded_and_gaps_refused() {
        let (read, mut input) = input();
        input.accept(0, b"abc", false).expect("new");
        input.accept(0, b"abc", false).expect("a repeat");
        input.accept(1, b"bcde", false).expect("partly new");
        assert!(input.accept(6, b"x", false).is_err());
        assert_eq!(input.taken(), 5);
        assert_eq!(arrived(&read), b"abcde");
    }

    #[test]
    fn the_end_is_an_offset_and_nothing_comes_after_it() {
        let (read, mut input) = input();
        input.accept(0, b"abc", true).expect("new");
        input.accept(0, b"abc", true).expect("a repeat");
        assert!(input.accept(3, b"d", false).is_err());
        assert_eq!(arrived(&read), b"abc");
        assert_eq!(arrived(&read), b"");
    }

    #[test]
    fn an_end_before_what_was_taken_ends_nothing() {
        let (_read, mut input) = input();
        input.accept(0, b"abc", false).expect("new");
        input.accept(0, b"a", true).expect("a repeat");
        input.accept(3, b"d", false).expect("new");
        assert_eq!(input.taken(), 4);
    }

    #[test]
    fn what_nobody_reads_is_only_counted() {
        let (read, mut input) = input();
        drop(read);
        input.accept(0, b"abc", false).expect("new");
        input
            .accept(3, &vec![0; 4 * WAITING_BYTES], true)
            .expect("new");
        assert_eq!(input.taken(), 3 + 4 * WAITING_BYTES as u64);
    }
}
