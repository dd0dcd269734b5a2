//! A server double, and what tests of the daemon's parts share.

mod own_network;
mod server;
mod small_disk;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use runner_host::{Host, HostOptions};
use runner_supervisor::KillChoice;
pub(crate) use shared_link::testing::{
    OWNER, PLACE, incarnation, incoming, operation_frame, shell,
};
use shared_types::{Clock, OsEntropy, SystemClock, limits::DISCONNECTED_AT_MOST};

use crate::{
    endpoints::Endpoints,
    journal::{Journal, OpenedJournal, Repair},
    operations::{OperationsHandle, OperationsParts, OperationsService},
    policy::{Guard, PolicySource},
    processes::{ProcessOptions, Processes},
    sandboxes::{ServedSandbox, ServedSandboxes},
};

pub(crate) use self::{
    own_network::OwnNetwork,
    server::{FakeLink, FakeServer, RUNNER},
    small_disk::SmallDisk,
};

/// Longer than anything that is waited for in a test may take.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// An address where no process listens.
pub(crate) fn nowhere() -> String {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}", closed.local_addr().expect("an address"))
}

/// These addresses, the first of them first.
pub(crate) fn endpoints(urls: &[&str]) -> Endpoints {
    let texts: Vec<_> = urls.iter().map(|url| (*url).to_owned()).collect();
    Endpoints::parse(&texts, false).expect("addresses")
}

/// Runs each of these tests for each of what may carry a link.
macro_rules! over_both {
    ($($test:ident,)*) => {
        mod over_grpc {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::connection::Transport::Grpc).await;
            })*
        }
        mod over_a_websocket {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::connection::Transport::WebSocket).await;
            })*
        }
    };
}
pub(crate) use over_both;

/// The operations of a daemon whose home and `workspace` lie in this folder, which may have been
/// used before, in this boot of the host.
pub(crate) async fn operations(folder: &Path, boot: &str) -> (OperationsHandle, OperationsService) {
    let found = found(folder, boot, Arc::new(SystemClock::new())).await;
    OperationsHandle::open(found).await.expect("a table")
}

/// The remains that such a daemon finds.
pub(crate) async fn found(folder: &Path, boot: &str, clock: Arc<dyn Clock>) -> OperationsParts {
    let workspace = folder.join("workspace");
    std::fs::create_dir_all(&workspace).expect("a workspace");
    let options = HostOptions {
        root: workspace,
        environment: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        file_operation_within: Duration::from_secs(10),
    };
    let host = Host::open(options, clock.clone()).expect("a host");
    let opened = Journal::open(&folder.join("journal"), clock.as_ref(), &OsEntropy);
    let opened = opened.expect("a journal");
    let options = ProcessOptions {
        supervisor: supervisor(),
        root: folder.join("commands"),
        waiting: 1,
        kill: KillChoice::Strongest,
        realm: runner_supervisor::Realm::Host,
    };
    let (processes, left) = Processes::open(options, clock.clone(), &OsEntropy)
        .await
        .expect("a pool");
    let mut sandboxes = ServedSandboxes::new(PLACE, processes);
    sandboxes.add(PLACE, ServedSandbox::Workspace(host));
    OperationsParts {
        sandboxes,
        pool: None,
        left,
        journal: OpenedJournal {
            id: match opened.repaired {
                Some(Repair::SetAside { .. }) => opened.id,
                _ => incarnation().journal,
            },
            ..opened
        },
        guard: Guard::open(
            PolicySource::of_test(folder.join("policy.toml")),
            tokio::sync::watch::channel(Default::default()).0,
        ),
        boot: boot.to_owned(),
        sync_before_start: false,
        disconnect_for: DISCONNECTED_AT_MOST,
        clock,
        entropy: Arc::new(OsEntropy),
        fault: None,
    }
}

/// Names the program for the processes that a test starts, so that they do not look for it again.
pub(crate) const SUPERVISOR: &str = "STAND_IN_SUPERVISOR";

/// The program as cargo builds it, built once for each run of the tests.
#[expect(
    clippy::disallowed_methods,
    reason = "a test has no main that could pass it down"
)]
pub(crate) fn supervisor() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let known = || std::env::var_os(SUPERVISOR).map(PathBuf::from);
    BUILT
        .get_or_init(|| known().unwrap_or_else(build_supervisor))
        .clone()
}

fn build_supervisor() -> PathBuf {
    let test = std::env::current_exe().expect("this test's file");
    let folder = test.parent().and_then(Path::parent).expect("its profile");
    let target = folder.parent().expect("the target folder");
    let built = std::process::Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "runner-supervisor"])
        .args(["--package", "runner-host", "--bin", "gantry-supervisor"])
        .args(["--bin", "gantry-files", "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo");
    assert!(built.success(), "gantry-supervisor cannot be built");
    target.join("debug").join("gantry-supervisor")
}
