//! A workspace and a folder of operations, and short ways to run something there.

use std::{path::PathBuf, sync::Arc, time::Duration};

use runner_host::{Host, HostOptions, allowed_environment};
pub(super) use runner_supervisor::{
    Directory, KillChoice, KillMethod, ProcessIdentity, SpoolBounds, Sync, WhenFull,
};
use rustix::process::{Pid, Signal};
pub(super) use shared_sandbox::{
    Command, Exec, ExitCause, ExitRecord, ExitStatus, NotStarted, Outcome, OutputStream, StreamEnd,
};
use shared_types::{Clock, OperationId, OsEntropy, SystemClock};
use tempfile::TempDir;
use tokio::time::timeout;

pub(super) use super::super::*;
use crate::testing::{SmallDisk, supervisor};

/// What nothing here takes, unless it hangs.
pub(super) const LONG: Duration = Duration::from_secs(30);

/// What is over soon.
pub(super) const SOON: Duration = Duration::from_millis(200);

/// A workspace `ws` and a folder `operations` for all that is run in it.
pub(super) struct Scene {
    pub(super) host: Host,
    /// The one that goes on while the host is suspended.
    pub(super) clock: Arc<dyn Clock>,
    folder: TempDir,
    /// The one that the folder lies on. Behind it: the folder can be removed only while it is there.
    disk: Option<SmallDisk>,
}

impl Scene {
    pub(super) fn new() -> Self {
        Self::within(tempfile::tempdir().expect("a folder"))
    }

    pub(super) fn within(folder: TempDir) -> Self {
        let root = folder.path().join("ws");
        std::fs::create_dir(&root).expect("a workspace");
        let options = HostOptions {
            root,
            environment: allowed_environment(std::iter::empty()),
            file_operation_within: LONG,
        };
        let host = Host::open(options, Arc::new(SystemClock::new())).expect("the workspace opens");
        Self {
            host,
            clock: Arc::new(SystemClock::new()),
            disk: None,
            folder,
        }
    }

    /// On a disk of this size, for those who may mount one.
    pub(super) fn small(size: &str) -> Self {
        let disk = SmallDisk::mount(size);
        let folder = tempfile::tempdir_in(disk.path()).expect("a folder");
        let mut scene = Self::within(folder);
        scene.disk = Some(disk);
        scene
    }

    /// Leaves no room on a small disk.
    pub(super) fn fill(&self) {
        self.disk.as_ref().expect("a small disk").fill();
    }

    pub(super) fn root(&self) -> PathBuf {
        self.folder.path().join("operations")
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.folder.path().join("ws")
    }

    pub(super) fn options(&self) -> ProcessOptions {
        ProcessOptions {
            supervisor: supervisor(),
            root: self.root(),
            waiting: 1,
            kill: KillChoice::Strongest,
            realm: runner_supervisor::Realm::Host,
        }
    }

    /// Without anything that was left.
    pub(super) async fn open(&self) -> Processes {
        let (processes, left) = self.open_again().await;
        assert!(left.is_empty(), "{left:?}");
        processes
    }

    pub(super) async fn open_again(&self) -> (Processes, Vec<(String, LeftOperation)>) {
        let opened = self.open_with(self.options()).await;
        opened.expect("commands can be run")
    }

    pub(super) async fn open_with(
        &self,
        options: ProcessOptions,
    ) -> Result<(Processes, Vec<(String, LeftOperation)>), ProcessesError> {
        let opened = Processes::open(options, Arc::clone(&self.clock), &OsEntropy).await;
        opened.map(|(processes, left)| {
            let named = |(path, left): (PathBuf, LeftOperation)| {
                (super::super::name(&path).to_owned(), left)
            };
            (processes, left.into_iter().map(named).collect())
        })
    }

    pub(super) async fn start(&self, processes: &Processes, exec: Exec) -> Process {
        self.start_with(processes, exec, terms()).await
    }

    pub(super) async fn start_with(
        &self,
        processes: &Processes,
        exec: Exec,
        terms: ProcessTerms,
    ) -> Process {
        let waiting = processes.take().await.expect("a supervisor");
        let plan = self.host.plan(&exec).expect("a plan");
        processes.start(waiting, id(7), plan, terms, PassingControls::new())
    }
}

pub(super) fn terms() -> ProcessTerms {
    ProcessTerms {
        run_for: 10 * LONG,
        orphan_for: 10 * LONG,
        kill_grace: LONG,
        spool: SpoolBounds {
            bytes: 64 * 1024 * 1024,
            when_full: WhenFull::Gap { tail: 1024 * 1024 },
        },
        sync: Sync::Nothing,
        claim: None,
    }
}

pub(super) fn shell(script: &str) -> Exec {
    Exec::new(Command::Shell(script.to_owned()))
}

pub(super) fn argv(words: &[&str]) -> Exec {
    let words = words.iter().copied().map(str::to_owned);
    Exec::new(Command::Argv(words.collect()))
}

/// The next event; it must come.
pub(super) async fn event(process: &mut Process) -> ProcessEvent {
    let event = timeout(LONG, process.events.recv()).await;
    event.expect("an event in time").expect("an event")
}

/// Waits for the end.
pub(super) async fn end(process: &mut Process) -> ProcessEnd {
    loop {
        if let ProcessEvent::Ended(end) = event(process).await {
            return end;
        }
    }
}

/// The record of the end.
pub(super) async fn record(process: &mut Process) -> ExitRecord {
    exited(&outcome(end(process).await)).clone()
}

pub(super) fn id(number: u128) -> OperationId {
    OperationId::from_u128(number)
}

/// Waits until this directory is gone; that must come to be.
pub(super) async fn until_gone(scene: &Scene, name: &str) {
    let directory = scene.root().join(name);
    let gone = async {
        while directory.exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(LONG, gone).await.expect("it goes");
}

/// Who supervises what lies in this directory.
pub(super) fn identity(scene: &Scene, name: &str) -> ProcessIdentity {
    let directory = Directory::open(&scene.root().join(name)).expect("a directory");
    let identity = directory.identity().expect("readable");
    identity.expect("a supervisor")
}

pub(super) fn supervisor_in(scene: &Scene, name: &str) -> i32 {
    identity(scene, name).supervisor.pid
}

pub(super) fn kill(pid: i32) {
    let pid = Pid::from_raw(pid).expect("a pid");
    rustix::process::kill_process(pid, Signal::KILL).expect("it is there");
}

/// Whether a process with this pid runs; a zombie does not.
pub(super) fn runs(pid: i32) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

/// Its state in the kernel's letters.
pub(super) fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.chars().next()
}

pub(super) fn outcome(end: ProcessEnd) -> Outcome {
    match end {
        ProcessEnd::Outcome(outcome) => outcome,
        ProcessEnd::Fenced => panic!("it was fenced"),
    }
}

pub(super) fn exited(outcome: &Outcome) -> &ExitRecord {
    match outcome {
        Outcome::Exited(record) => record,
        other => panic!("expected an exit record, not {other:?}"),
    }
}

pub(super) fn whole(bytes: &[u8]) -> StreamEnd {
    StreamEnd {
        offset: bytes.len() as u64,
        checksum: Some(crc32fast::hash(bytes)),
    }
}

/// All that is kept of a stream; a gap reads as its length in brackets.
pub(super) fn read(spool: &mut Spool, stream: OutputStream) -> String {
    let (mut text, mut offset) = (String::new(), 0);
    loop {
        match spool.read(stream, offset, 64 * 1024).expect("a spool") {
            SpoolRead::Bytes(bytes) => {
                text.push_str(&String::from_utf8_lossy(&bytes));
                offset += bytes.len() as u64;
            }
            SpoolRead::Gap { until } => {
                text.push_str(&format!("[{}]", until - offset));
                offset = until;
            }
            SpoolRead::Nothing => return text,
        }
    }
}

/// Waits until stdout holds this text.
pub(super) async fn until(process: &mut Process, mark: &str) -> String {
    loop {
        let text = read(&mut process.spool, OutputStream::Stdout);
        if text.contains(mark) {
            return text;
        }
        if let ProcessEvent::Ended(end) = event(process).await {
            panic!("it ended without {mark:?}: {end:?}");
        }
    }
}
