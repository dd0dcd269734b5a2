//! One real process, its printed lines, its log and its end.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use super::PATIENCE;

/// A running program. Killed when it is dropped.
pub struct Process {
    name: &'static str,
    home: PathBuf,
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts a program of this workspace in a home, with nothing of our environment but PATH.
    pub fn start(
        name: &'static str,
        arguments: &[String],
        home: &Path,
        environment: &[(String, String)],
    ) -> Self {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(home.join(format!("{name}.log")))
            .expect("a log file");
        let mut child = Command::new(binary(name))
            .args(arguments)
            .env_clear()
            .env("PATH", path())
            .env("GANTRY_HOME", home)
            .envs(environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        Self {
            name,
            home: home.to_owned(),
            child,
            stdout,
        }
    }

    /// The next line that it prints.
    ///
    /// # Panics
    /// With its log, if it prints none.
    pub async fn line(&mut self) -> String {
        match tokio::time::timeout(PATIENCE, self.stdout.next_line()).await {
            Ok(Ok(Some(line))) => line,
            _ => panic!(
                "{} printed no line; its log:\n{}",
                self.name,
                log_of(self.name, &self.home)
            ),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it was not waited for")
    }

    /// Kills it with SIGKILL and waits for its end.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("it can be killed");
    }

    /// Asks it to stop with SIGTERM and returns its exit code.
    pub async fn terminate(mut self) -> Option<i32> {
        signal(self.pid(), "TERM");
        self.ended().await
    }

    /// Waits for its end and returns its exit code.
    pub async fn ended(&mut self) -> Option<i32> {
        match tokio::time::timeout(PATIENCE, self.child.wait()).await {
            Ok(status) => status.expect("it can be waited for").code(),
            Err(_) => panic!(
                "{} did not end; its log:\n{}",
                self.name,
                log_of(self.name, &self.home)
            ),
        }
    }
}

/// Sends a signal to a process that we started.
pub(super) fn signal(pid: u32, name: &str) {
    let sent = std::process::Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid.to_string())
        .status();
    assert!(
        sent.expect("kill starts").success(),
        "SIG{name} can be sent to {pid}"
    );
}

/// What a program has logged in a home.
pub(super) fn log_of(name: &str, home: &Path) -> String {
    std::fs::read_to_string(home.join(format!("{name}.log"))).unwrap_or_default()
}

/// The path that programs are looked up in.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the tests is theirs to pass on"
)]
pub(super) fn path() -> String {
    std::env::var("PATH").expect("there is a PATH")
}

/// A program of this workspace, built beside the tests.
///
/// # Panics
/// If it was not built.
pub fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let folder = test
        .parent()
        .and_then(Path::parent)
        .expect("tests lie in target/PROFILE/deps");
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is not built: run `make test`, or `cargo build --workspace --bins` before",
        path.display()
    );
    path
}

/// Whether a process lives: it is there, and is no zombie.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state is the first field after the program's name, which is in parentheses.
    stat.rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next())
        .is_some_and(|state| state != 'Z' && state != 'X')
}

/// The children of a process.
pub fn children_of(pid: u32) -> Vec<u32> {
    let parent = |entry: &std::fs::DirEntry| -> Option<(u32, u32)> {
        let child: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent = stat
            .rsplit(')')
            .next()?
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()?;
        Some((child, parent))
    };
    let entries = std::fs::read_dir("/proc").expect("there is a /proc");
    entries
        .flatten()
        .filter_map(|entry| parent(&entry))
        .filter(|(_, parent)| *parent == pid)
        .map(|(child, _)| child)
        .collect()
}
