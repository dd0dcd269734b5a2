//! Helpers of the tests: a workspace in a temporary folder, a host on it, and requests to the end.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::process::{Gid, Uid};
use shared_sandbox::{Command, Exec, FileFailure, Outcome, Request};
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
        Self::with(LONG)
    }

    pub(crate) fn with(file_operation_within: Duration) -> Self {
        let outside = tempfile::tempdir().expect("a temporary folder");
        let root = outside.path().join("ws");
        fs::create_dir(&root).expect("a workspace");
        let host = open_with(&root, file_operation_within);
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
}

/// A host on a folder that is there.
pub(crate) fn open(root: &Path) -> Host {
    open_with(root, LONG)
}

fn open_with(root: &Path, file_operation_within: Duration) -> Host {
    let options = HostOptions {
        root: root.to_owned(),
        environment: allowed_environment(std::iter::empty()),
        file_operation_within,
    };
    Host::open(options, Arc::new(SystemClock::new())).expect("the workspace opens")
}

/// A user id that nothing else uses, and the group of the same number.
pub(crate) const STRANGER: u32 = 54_321;

/// That user is in this group as well.
pub(crate) const ANOTHER_GROUP: u32 = 54_322;

/// Runs it as that user, which only root can do for a thread of its own.
pub(crate) fn as_stranger<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    let stranger = || {
        let (user, group) = (Uid::from_raw(STRANGER), Gid::from_raw(STRANGER));
        let groups = [Gid::from_raw(ANOTHER_GROUP)];
        rustix::thread::set_thread_groups(&groups).expect("root");
        rustix::thread::set_thread_res_gid(group, group, group).expect("root");
        rustix::thread::set_thread_res_uid(user, user, user).expect("root");
        run()
    };
    thread::scope(|scope| scope.spawn(stranger).join().expect("it ends"))
}

/// The variable that tells a process that makes changes after which step it dies.
pub(crate) const DIES_AT: &str = "DIES_AT";

/// A step of a change is made: the process dies, if it is to.
#[expect(
    clippy::disallowed_methods,
    reason = "a test tells its process where to die"
)]
pub(crate) fn step() {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let Ok(dies_at) = std::env::var(DIES_AT) else {
        return;
    };
    if MADE.fetch_add(1, Ordering::Relaxed).to_string() == dies_at {
        let ourselves = rustix::process::getpid();
        let _ = rustix::process::kill_process(ourselves, rustix::process::Signal::KILL);
    }
}

/// A type that can be made a request to a host.
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

ask!(Read Write Edit List Glob Grep Stat MakeDirectory Move Remove Survey);

/// All that came out of a request.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
}

/// Reads to the end, and checks that nothing follows it.
pub(crate) async fn end(mut performing: Performing) -> Ended {
    loop {
        match performing.events.recv().await.expect("an end is said") {
            HostEvent::Changing(announced) => announced.go_ahead(),
            HostEvent::Opened(_) | HostEvent::InputTaken(_) => {}
            HostEvent::Ended(outcome, _held) => {
                assert!(performing.events.recv().await.is_none());
                return Ended { outcome };
            }
        }
    }
}

pub(crate) fn shell(script: &str) -> Exec {
    Exec::new(Command::Shell(script.to_owned()))
}

pub(crate) fn argv(words: &[&str]) -> Exec {
    let words = words.iter().copied().map(str::to_owned);
    Exec::new(Command::Argv(words.collect()))
}
