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
        Self::start_by(&[], name, arguments, home, environment)
    }

    /// The same, by a launcher: words that come before the program's own, and become it.
    pub fn start_by(
        launcher: &[String],
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
        let mut child = program(launcher, name)
            .args(arguments)
            .env_clear()
            .env("PATH", path())
            .env("GANTRY_HOME", home)
            .envs(readable())
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

/// Whether the tests run as root.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let process = std::fs::metadata("/proc/self").expect("there is a /proc");
    process.uid() == 0
}

/// Only root may look into a program of ours unless it allows that, and tests count what it holds.
fn readable() -> Option<(&'static str, &'static str)> {
    (!is_root()).then_some(("GANTRY_DUMPABLE", "1"))
}

/// A program of this workspace. A launcher becomes it, so that its process id is the program's.
pub(super) fn program(launcher: &[String], name: &str) -> Command {
    let Some((first, rest)) = launcher.split_first() else {
        return Command::new(binary(name));
    };
    let mut command = Command::new(first);
    command.args(rest).arg(binary(name));
    command
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

/// Where a test is failing, the end of a program's log helps to see why.
pub(super) fn tell_in_a_panic(name: &str, log: &str) {
    const LINES: usize = 30;
    if std::thread::panicking() {
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(LINES)..];
        eprintln!("the log of {name} ended with:\n{}", last.join("\n"));
    }
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

/// A program of another version, where `tests/skew` says that this one is to be of it.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the tests is theirs to read"
)]
fn of_another_version(name: &str) -> Option<PathBuf> {
    let programs = std::env::var("GANTRY_TEST_OTHER_PROGRAMS").ok()?;
    let folder = std::env::var("GANTRY_TEST_OTHER_FOLDER").ok()?;
    let is_listed = programs.split_whitespace().any(|program| program == name);
    is_listed.then(|| Path::new(&folder).join(name))
}

/// A program of this workspace, built beside the tests.
///
/// # Panics
/// If it was not built.
pub fn binary(name: &str) -> PathBuf {
    if let Some(path) = of_another_version(name) {
        return path;
    }
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
    Stat::of(pid).is_some_and(|stat| !stat.is_dead())
}

/// The children of a process.
pub fn children_of(pid: u32) -> Vec<u32> {
    let children = all().filter(|(_, stat)| stat.parent == pid);
    children.map(|(child, _)| child).collect()
}

/// The parent of a process; `None` where it is gone.
pub fn parent_of(pid: u32) -> Option<u32> {
    Some(Stat::of(pid)?.parent)
}

/// Those children of a process that have ended and were not waited for.
pub fn zombies_of(pid: u32) -> Vec<u32> {
    let zombies = all().filter(|(_, stat)| stat.parent == pid && stat.is_dead());
    zombies.map(|(child, _)| child).collect()
}

/// How many descriptors a process holds open.
pub fn descriptors_of(pid: u32) -> usize {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"));
    open.map(Iterator::count).unwrap_or_default()
}

/// The living processes in whose environment this stands, wherever in the tree they are.
pub fn processes_marked(marker: &str) -> Vec<u32> {
    let marked = |pid: u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == marker.as_bytes())
    };
    let living = all().filter(|(pid, stat)| !stat.is_dead() && marked(*pid));
    living.map(|(pid, _)| pid).collect()
}

/// The living processes but ours that work in a folder, or hold a file in it open.
pub(super) fn processes_in(folder: &Path) -> Vec<u32> {
    let inside = |link: PathBuf| std::fs::read_link(link).is_ok_and(|to| to.starts_with(folder));
    let touches = |pid: u32| {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let open = std::fs::read_dir(process.join("fd")).into_iter().flatten();
        inside(process.join("cwd")) || open.flatten().any(|entry| inside(entry.path()))
    };
    let ours = std::process::id();
    let living = all().filter(|(pid, stat)| *pid != ours && !stat.is_dead() && touches(*pid));
    living.map(|(pid, _)| pid).collect()
}

/// What the system says of a process in one line.
struct Stat {
    state: char,
    parent: u32,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The fields begin after the program's name, which is in parentheses.
        let mut fields = stat.rsplit(')').next()?.split_whitespace();
        Some(Self {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
        })
    }

    fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

fn all() -> impl Iterator<Item = (u32, Stat)> {
    let entries = std::fs::read_dir("/proc").expect("there is a /proc");
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, Stat::of(pid)?)))
}
