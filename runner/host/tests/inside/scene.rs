//! A folder, the program that serves it, and requests to their ends.

use std::{
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use runner_host::{HeldTurn, Hello, HostEvent, Inside, OpenFile, Performing};
use shared_sandbox::{Outcome, Request, Write};
use shared_types::RefusalCode;
use tempfile::TempDir;

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_secs(300);

/// The program.
pub(crate) const FILES: &str = env!("CARGO_BIN_EXE_gantry-files");

/// One container, as far as its files go.
pub(crate) struct Scene {
    folder: TempDir,
    pub(crate) program: Program,
    pub(crate) inside: Inside,
    pub(crate) hello: Hello,
}

/// A `gantry-files` that does not outlive its test.
pub(crate) struct Program(Child);

/// All that came out of a request.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) held: HeldTurn,
    pub(crate) changes: usize,
    pub(crate) opened: Option<OpenFile>,
    pub(crate) taken: u64,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (program, inside, hello) = Program::start(folder.path()).await;
        Self {
            folder,
            program,
            inside,
            hello,
        }
    }

    /// Another program in the same folder.
    pub(crate) async fn another(&self) -> (Program, Inside) {
        let (program, inside, _) = Program::start(self.folder.path()).await;
        (program, inside)
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub(crate) fn put(&self, below: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(below), content).expect("a file");
    }

    pub(crate) fn content(&self, below: &str) -> Vec<u8> {
        std::fs::read(self.path(below)).expect("a file")
    }

    pub(crate) async fn outcome(&self, request: Request) -> Outcome {
        end(self.inside.perform(request, LONG)).await.outcome
    }
}

impl Program {
    /// Runs a command that becomes the program.
    pub(crate) fn spawn(command: &mut Command, socket: UnixStream) -> Self {
        let command = command.stdin(Stdio::from(OwnedFd::from(socket)));
        Self(command.spawn().expect("it starts"))
    }

    /// What it has open under this number.
    pub(crate) fn open(&self, number: u32) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/fd/{number}", self.0.id())).ok()
    }

    async fn start(root: &Path) -> (Self, Inside, Hello) {
        let (ours, theirs) = UnixStream::pair().expect("a socket");
        let program = Self::spawn(Command::new(FILES).arg(root), theirs);
        let (inside, hello) = Inside::connect(ours).await.expect("it says hello");
        (program, inside, hello)
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).expect("it is there");
    }

    pub(crate) fn runs(&mut self) -> bool {
        self.0.try_wait().expect("it can be asked").is_none()
    }

    /// Waits for its end; whether it succeeded.
    pub(crate) async fn ended(mut self) -> bool {
        let waiting = tokio::task::spawn_blocking(move || self.0.wait().expect("an end"));
        waiting.await.expect("no panic").success()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets it go on to its end, and checks that nothing follows.
pub(crate) async fn end(mut performing: Performing) -> Ended {
    let (mut changes, mut opened, mut taken) = (0, None, 0);
    loop {
        match performing.events.recv().await.expect("an end is said") {
            HostEvent::Changing(announced) => {
                changes += 1;
                announced.go_ahead();
            }
            HostEvent::Opened(file) => opened = Some(file),
            HostEvent::InputTaken(up_to) => taken = up_to,
            HostEvent::Ended(outcome, held) => {
                assert!(performing.events.recv().await.is_none());
                return Ended {
                    outcome,
                    held,
                    changes,
                    opened,
                    taken,
                };
            }
        }
    }
}

/// The change that it announces.
pub(crate) async fn announced(performing: &mut Performing) -> runner_host::Announced {
    match performing.events.recv().await.expect("an event") {
        HostEvent::Changing(announced) => announced,
        other => panic!("expected a change, not {other:?}"),
    }
}

pub(crate) fn write(path: &str, content: &[u8]) -> Request {
    Request::Write(Write {
        path: path.to_owned(),
        content: content.to_owned(),
    })
}

pub(crate) fn read(path: &str) -> Request {
    Request::Read(shared_sandbox::Read {
        path: path.to_owned(),
        first_line: 1,
        max_lines: 10,
        max_bytes: 1000,
    })
}

/// The reason and the words of a refusal.
pub(crate) fn refused(outcome: Outcome) -> (RefusalCode, String) {
    match outcome {
        Outcome::Refused(refusal) => (refusal.code, refusal.message),
        other => panic!("expected a refusal, not {other:?}"),
    }
}
