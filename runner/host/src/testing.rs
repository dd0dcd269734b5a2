//! What the tests share: a workspace in a temporary folder, a host on it, and requests to the end.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use shared_sandbox::{
    Command, Exec, ExitCause, ExitRecord, FileFailure, Outcome, OutputStream, Request,
};
use shared_types::SystemClock;
use tempfile::TempDir;

use crate::{Host, HostEvent, HostOptions, Performing, allowed_environment};

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_secs(300);

/// A host on a workspace `ws` in a temporary folder, so that there is an outside beside it.
pub(crate) struct Scene {
    pub(crate) host: Host,
    outside: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::with_grace(Duration::from_secs(10))
    }

    pub(crate) fn with_grace(kill_grace: Duration) -> Self {
        Self::with(kill_grace, LONG)
    }

    pub(crate) fn with(kill_grace: Duration, file_operation_within: Duration) -> Self {
        let outside = tempfile::tempdir().expect("a temporary folder");
        let root = outside.path().join("ws");
        fs::create_dir(&root).expect("a workspace");
        let host = open_with(&root, kill_grace, file_operation_within);
        Self { host, outside }
    }

    /// A path in the workspace.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.host.root().join(below)
    }

    /// The folder that the workspace lies in.
    pub(crate) fn outside(&self) -> &Path {
        self.outside.path()
    }

    /// Puts a file into the workspace.
    pub(crate) fn put(&self, below: &str, content: impl AsRef<[u8]>) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().expect("a file has a parent")).expect("parents");
        fs::write(path, content).expect("a file");
    }

    pub(crate) fn text(&self, below: &str) -> String {
        fs::read_to_string(self.path(below)).expect("a text file")
    }

    pub(crate) fn start(&self, request: impl Ask) -> Performing {
        self.host.perform(request.request(), LONG)
    }

    /// Performs a request to its end.
    pub(crate) async fn outcome(&self, request: impl Ask) -> Outcome {
        end(self.start(request)).await.outcome
    }

    /// Performs a request that fails.
    pub(crate) async fn failure(&self, request: impl Ask) -> FileFailure {
        match self.outcome(request).await {
            Outcome::Failed(failure) => failure,
            other => panic!("expected a failure, not {other:?}"),
        }
    }

    /// Runs a command to its end.
    pub(crate) async fn run(&self, exec: Exec) -> Ended {
        end(self.start(exec)).await
    }

    /// Runs a script to its end.
    pub(crate) async fn sh(&self, script: &str) -> Ended {
        self.run(shell(script)).await
    }
}

/// A host on a folder that is there.
pub(crate) fn open(root: &Path) -> Host {
    open_with(root, Duration::ZERO, LONG)
}

fn open_with(root: &Path, kill_grace: Duration, file_operation_within: Duration) -> Host {
    let options = HostOptions {
        root: root.to_owned(),
        environment: allowed_environment(std::iter::empty()),
        kill_grace,
        file_operation_within,
    };
    Host::open(options, Arc::new(SystemClock::new())).expect("the workspace opens")
}

/// What can be asked of a host.
pub(crate) trait Ask {
    fn request(self) -> Request;
}

macro_rules! ask {
    ($($kind:ident)*) => {$(
        impl Ask for shared_sandbox::$kind {
            fn request(self) -> Request {
                Request::$kind(self)
            }
        }
    )*};
}

ask!(Exec Read Write Edit List Glob Grep);

/// All that came out of a request.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) outcome: Outcome,
}

impl Ended {
    /// The record of a process that was asked to run.
    pub(crate) fn record(&self) -> &ExitRecord {
        match &self.outcome {
            Outcome::Exited(record) => record,
            other => panic!("expected an exit record, not {other:?}"),
        }
    }

    pub(crate) fn cause(&self) -> ExitCause {
        self.record().cause
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout)
            .expect("output is text")
            .trim_end()
    }
}

/// Reads to the end, and checks that nothing follows it.
pub(crate) async fn end(mut performing: Performing) -> Ended {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    loop {
        match performing.events.recv().await.expect("an end is said") {
            HostEvent::Output { stream, data } => match stream {
                OutputStream::Stdout => stdout.extend_from_slice(&data),
                OutputStream::Stderr => stderr.extend_from_slice(&data),
            },
            HostEvent::Changing(announced) => announced.go_ahead(),
            HostEvent::Ended(outcome) => {
                assert!(performing.events.recv().await.is_none());
                return Ended {
                    stdout,
                    stderr,
                    outcome,
                };
            }
        }
    }
}

/// Reads output until `mark` has been in stdout; returns all of stdout so far.
pub(crate) async fn until(performing: &mut Performing, mark: &str) -> String {
    let mut text = String::new();
    while !text.contains(mark) {
        match performing.events.recv().await {
            Some(HostEvent::Output { data, .. }) => text.push_str(&String::from_utf8_lossy(&data)),
            other => panic!("expected output with {mark:?}, not {other:?} after {text:?}"),
        }
    }
    text
}

pub(crate) fn shell(script: &str) -> Exec {
    Exec::new(Command::Shell(script.to_owned()))
}

pub(crate) fn argv(words: &[&str]) -> Exec {
    let words = words.iter().copied().map(str::to_owned);
    Exec::new(Command::Argv(words.collect()))
}

/// Whether a process with this pid runs; a zombie does not.
pub(crate) fn runs(pid: u32) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

/// The state letter of a process (proc(5)); `None` where there is none.
pub(crate) fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
