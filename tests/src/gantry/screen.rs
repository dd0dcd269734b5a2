//! The terminal client in a terminal of its own, as a person has it: keys, a window, and a screen.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError},
};

use rustix::{
    fs::{Mode, OFlags},
    pty::OpenptFlags,
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};
use tokio::process::{Child, Command};

use super::{Gantry, PATIENCE, eventually, process::signal};

/// A program in a terminal. Killed when it is dropped.
pub struct Screen {
    ours: File,
    shown: Arc<Mutex<Vec<u8>>>,
    child: Child,
    /// The program's end of the terminal, by which its mode is seen.
    theirs: OwnedFd,
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
        let shown = Arc::new(Mutex::new(Vec::new()));
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
                shown.extend_from_slice(&piece[..read]);
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
        resize(&self.ours, rows, columns);
    }

    /// Everything that was shown so far.
    pub fn shown(&self) -> String {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// How many bytes were shown so far.
    pub fn shown_bytes(&self) -> usize {
        self.shown
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// What was shown so far as one line, however it was folded.
    pub fn unfolded(&self) -> String {
        self.shown().replace('\r', "").replace('\n', " ")
    }

    /// Waits until this is shown.
    pub async fn until_shown(&self, text: &str) {
        let has = || self.shown().contains(text) || self.unfolded().contains(text);
        let is_shown = async || has().then_some(());
        eventually(&format!("{text:?} is shown"), is_shown).await;
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
}

impl Drop for Screen {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the screen showed {:?}", self.shown());
        }
    }
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
