//! A door that keeps output as the server does, in a runtime of its own that can be killed: every
//! task vanishes where it stands, and with it what was not in a file yet. What a database would
//! keep stays.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use server_app::keys::SigningKey;
use server_router::{
    SandboxRouter,
    links::{LinkOptions, Links},
};
use shared_sandbox::{Operation, Running, Sandbox as _};
use shared_types::{OsEntropy, SystemClock, Token};
use tokio::{net::TcpListener, runtime::Runtime, task::spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::{RUNNER, Rows, Services, area::area, serve};
use crate::gantry::Runner;

/// What a killed server may still do to files.
const DIES_WITHIN: Duration = Duration::from_secs(30);

/// The server's end of a link, which can be killed, with a runner linked to it.
pub struct KeptDoor {
    /// What a store would keep.
    pub rows: Arc<Rows>,
    /// The runner, which runs.
    pub runner: Runner,
    identity: Arc<SigningKey>,
    address: SocketAddr,
    folder: PathBuf,
    server: Option<Server>,
}

struct Server {
    runtime: Runtime,
    links: Links,
    sandbox: SandboxRouter,
}

impl KeptDoor {
    /// Opens it over a folder, and waits until a runner of its own is linked.
    pub async fn open(folder: &Path) -> Self {
        let (rows, identity) = (
            Arc::new(Rows::default()),
            Arc::new(SigningKey::generate(&OsEntropy)),
        );
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let (server, address) = Server::start(&rows, &identity, anywhere, folder).await;
        let token = Token::join(identity.public(), &OsEntropy).reveal();
        let mut runner = Runner::enrol(&format!("http://{address}"), &token, "bench").await;
        runner.start();
        let door = Self {
            rows,
            runner,
            identity,
            address,
            folder: folder.to_owned(),
            server: Some(server),
        };
        door.until_linked().await;
        door
    }

    /// Kills the server's end, and waits until nothing of it is left.
    pub async fn kill(&mut self) {
        let server = self.server.take().expect("it runs");
        let killed = spawn_blocking(move || server.runtime.shutdown_timeout(DIES_WITHIN));
        killed.await.expect("no panic");
    }

    /// Starts the server's end again.
    pub async fn start(&mut self) {
        let started = Server::start(&self.rows, &self.identity, self.address, &self.folder);
        self.server = Some(started.await.0);
    }

    /// Waits until the runner is linked.
    pub async fn until_linked(&self) {
        let mut presence = self.server().links.presence(RUNNER).await;
        presence.until(true).await;
    }

    /// Starts an operation, or attaches to it.
    pub async fn operation(&self, operation: Operation) -> Running {
        let sandbox = self.server().sandbox.clone();
        let start = async move { sandbox.start(operation).await };
        let started = self.server().runtime.spawn(start).await;
        started.expect("it runs").expect("it is taken")
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }
}

impl Drop for KeptDoor {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.runtime.shutdown_background();
        }
    }
}

impl Server {
    async fn start(
        rows: &Arc<Rows>,
        identity: &Arc<SigningKey>,
        address: SocketAddr,
        folder: &Path,
    ) -> (Self, SocketAddr) {
        let runtime = Runtime::new().expect("threads");
        let (rows, identity, folder) = (rows.clone(), identity.clone(), folder.to_owned());
        let started = runtime.spawn(async move {
            rows.keep_output_in(Arc::new(area(&folder)));
            let clock = Arc::new(SystemClock::new());
            let stop = CancellationToken::new();
            let options = LinkOptions::default();
            let entropy = Arc::new(OsEntropy);
            let links = Links::start(rows.clone(), clock.clone(), entropy, options, stop.clone());
            let services = Services {
                links: links.clone(),
                identity,
                certificate: None,
            };
            let listener = TcpListener::bind(address).await.expect("a free port");
            let address = listener.local_addr().expect("it is bound");
            serve(listener, services, None, stop);
            let sandbox =
                SandboxRouter::new(links.clone(), rows.clone(), rows.clone(), rows, clock);
            (links, sandbox, address)
        });
        let (links, sandbox, address) = started.await.expect("no panic");
        let server = Self {
            runtime,
            links,
            sandbox,
        };
        (server, address)
    }
}
