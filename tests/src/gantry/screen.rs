//! The terminal client in a terminal of its own, as a person has it: keys, a window, and a screen with the rows that have
//! left it above.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    num::NonZero,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::{
    fs::{Mode, OFlags},
    pty::OpenptFlags,
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};
use tokio::process::{Child, Command};

use super::{Gantry, PATIENCE, eventually, process::signal};

/// Rows that are kept after they have left the screen.
const SCROLLBACK: usize = 20_000;

/// Written behind what a program wrote once it has ended, so that all of it is known to be here: a sequence (APC) that
/// terminals do not show.
const END: &[u8] = b"\x1b_end\x1b\\";

/// A program in a terminal. Killed when it is dropped.
pub struct Screen {
    ours: File,
    shown: Arc<Mutex<Shown>>,
    child: Child,
    /// The program's end of the terminal, by which its mode is seen.
    theirs: OwnedFd,
}

/// The things that a program has written to its terminal.
struct Shown {
    bytes: Vec<u8>,
    terminal: vt100::Parser,
    is_whole: bool,
}

impl Shown {
    fn take(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        self.terminal.process(piece);
        if let Some(before) = self.bytes.strip_suffix(END) {
            self.bytes.truncate(before.len());
            self.is_whole = true;
        }
    }

    /// All rows, the oldest first, without blanks at their ends.
    fn rows(&mut self) -> Vec<String> {
        let screen = self.terminal.screen_mut();
        let (_, columns) = screen.size();
        let columns = columns.get();
        screen.set_scrollback(usize::MAX);
        let above = screen.scrollback();
        let mut rows = Vec::new();
        for offset in (1..=above).rev() {
            screen.set_scrollback(offset);
            rows.extend(screen.rows(0, columns).next());
        }
        screen.set_scrollback(0);
        rows.extend(screen.rows(0, columns));
        for row in &mut rows {
            row.truncate(row.trim_end().len());
        }
        rows
    }
}

impl Gantry {
    /// Starts the terminal client as the owner in a terminal of 24 rows and 80 columns.
    pub fn screen(&self, arguments: &[&str]) -> Screen {
        Screen::start(&self.terminal(arguments))
    }
}

impl Screen {
    /// Starts what this command would start.
    pub fn start(program: &Command) -> Self {
        let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pty");
        rustix::pty::unlockpt(&ours).expect("it is ours");
        let name = rustix::pty::ptsname(&ours, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).expect("it opens");
        resize(&ours, 24, 80);
        let program = program.as_std();
        // Its controlling terminal, so that its window and its end are told by signals.
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .arg(program.get_program())
            .args(program.get_args())
            .env_clear()
            .envs(
                program
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("TERM", "xterm")
            .stdin(theirs.try_clone().expect("a descriptor"))
            .stdout(theirs.try_clone().expect("a descriptor"))
            .stderr(theirs.try_clone().expect("a descriptor"))
            .kill_on_drop(true);
        let child = command.spawn().expect("setsid starts");
        let shown = Arc::new(Mutex::new(Shown {
            bytes: Vec::new(),
            terminal: vt100::Parser::new(nonzero(24), nonzero(80), SCROLLBACK),
            is_whole: false,
        }));
        let screen = Self {
            ours: File::from(ours),
            shown: shown.clone(),
            child,
            theirs,
        };
        let mut reading = screen.ours.try_clone().expect("a descriptor");
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = reading.read(&mut piece) {
                let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
                shown.take(&piece[..read]);
            }
        });
        screen
    }

    /// Types this.
    pub fn type_in(&self, keys: &str) {
        (&self.ours)
            .write_all(keys.as_bytes())
            .expect("the terminal takes it");
    }

    /// Gives the window another size.
    pub fn resize(&self, rows: u16, columns: u16) {
        let size = (nonzero(rows), nonzero(columns));
        self.state().terminal.screen_mut().set_size(size.0, size.1);
        resize(&self.ours, rows, columns);
    }

    fn state(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows of the screen and those above it, the oldest first.
    pub fn rows(&self) -> Vec<String> {
        self.state().rows()
    }

    /// The rows of the screen and those above it, as one text.
    pub fn shown(&self) -> String {
        self.rows().join("\n")
    }

    /// The rows as one line, however they were wrapped.
    pub fn unfolded(&self) -> String {
        let rows = self.rows();
        let words: Vec<_> = rows.iter().flat_map(|row| row.split_whitespace()).collect();
        words.join(" ")
    }

    /// Everything that the program has written so far, with its control sequences.
    pub fn written(&self) -> String {
        String::from_utf8_lossy(&self.state().bytes).into_owned()
    }

    /// The number of bytes that the program has written so far.
    pub fn written_bytes(&self) -> usize {
        self.state().bytes.len()
    }

    /// Waits until this is shown.
    pub async fn until_shown(&self, text: &str) {
        let has = || self.shown().contains(text) || self.unfolded().contains(text);
        let is_shown = async || has().then_some(());
        eventually(&format!("{text:?} is shown"), is_shown).await;
    }

    /// Waits until the program has written this, with its control sequences, however its lines were broken.
    pub async fn until_written(&self, text: &str) {
        let has = || {
            let written = self.written();
            let unbroken = written.replace('\r', "").replace('\n', " ");
            written.contains(text) || unbroken.contains(text)
        };
        let is_written = async || has().then_some(());
        eventually(&format!("{text:?} is written"), is_written).await;
    }

    /// Sends a signal to the program.
    pub fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Whether the terminal echoes keys itself: it does in its usual mode, and not in raw mode.
    pub fn echoes(&self) -> bool {
        let mode = tcgetattr(&self.theirs).expect("it is a terminal");
        mode.local_modes.contains(LocalModes::ECHO)
    }

    /// The program's process id.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it was not waited for")
    }

    /// Waits for the program's end and returns its exit code.
    pub async fn ended(&mut self) -> Option<i32> {
        let waited = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let Ok(status) = waited else {
            panic!("it does not end; it shows {:?}", self.shown());
        };
        status.expect("it can be waited for").code()
    }

    /// Waits for the program's end, and until all that it has written is here. Returns its exit code.
    pub async fn whole(&mut self) -> Option<i32> {
        let code = self.ended().await;
        rustix::io::write(&self.theirs, END).expect("the terminal takes it");
        eventually("its last words are here", async || {
            self.state().is_whole.then_some(())
        })
        .await;
        code
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the screen showed {:?}", self.shown());
        }
    }
}

fn nonzero(number: u16) -> NonZero<u16> {
    NonZero::new(number).expect("a terminal has rows and columns")
}

fn resize(terminal: impl std::os::fd::AsFd, rows: u16, columns: u16) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size).expect("it can be resized");
}
