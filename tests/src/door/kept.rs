//! A door that keeps output as the server does, in a runtime of its own that can be killed: every
//! task vanishes where it stands, and with it what was not in a file yet. What a database would
//! keep stays.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use server_app::keys::SigningKey;
use server_router::{
    RemoteSandbox,
    links::{LinkOptions, Links},
    ports::{Outputs, PortError},
};
use server_store::{OutputKey, OutputKind};
use shared_sandbox::{Operation, OutputStream, Running, Sandbox as _};
use shared_types::{
    OperationId, OsEntropy, SystemClock, TenantId, Token, limits::OUTPUT_CHUNK_BYTES,
};
use tokio::{net::TcpListener, runtime::Runtime, task::spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::{RUNNER, Rows, Services, serve};
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
    sandbox: RemoteSandbox,
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
            let area = server_store::Outputs::start(&folder).expect("a folder");
            rows.keep_output_in(Arc::new(Area(area)));
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
                RemoteSandbox::new(links.clone(), rows.clone(), (rows.clone(), rows), clock);
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

/// The server's own area, for the only tenant here.
struct Area(server_store::Outputs);

/// A stream in that area.
pub fn output_key(operation: OperationId, stream: OutputStream) -> OutputKey {
    OutputKey {
        tenant: TenantId::from_u128(1),
        operation,
        kind: match stream {
            OutputStream::Stdout => OutputKind::Stdout,
            OutputStream::Stderr => OutputKind::Stderr,
        },
    }
}

const STREAMS: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

#[async_trait]
impl Outputs for Area {
    async fn read(
        &self,
        id: OperationId,
        stream: OutputStream,
        from: u64,
    ) -> Result<Option<(u64, Bytes)>, PortError> {
        let key = output_key(id, stream);
        let kept = self.0.read(key, from, OUTPUT_CHUNK_BYTES).await;
        let kept = kept.map_err(PortError::new)?;
        Ok(kept.map(|kept| (kept.offset, kept.data.into())))
    }

    async fn keep_all(&self, id: OperationId) -> Result<(), PortError> {
        for stream in STREAMS {
            let made = self.0.keep_all(output_key(id, stream)).await;
            made.map_err(PortError::new)?;
        }
        Ok(())
    }

    async fn append(
        &self,
        id: OperationId,
        stream: OutputStream,
        offset: u64,
        data: Bytes,
    ) -> Result<(), PortError> {
        let key = output_key(id, stream);
        let appended = self.0.append(key, offset, data.into()).await;
        appended.map_err(PortError::new)
    }

    async fn resume(&self, id: OperationId) -> Result<[u64; 2], PortError> {
        let mut kept = [0; 2];
        for stream in STREAMS {
            let up_to = self.0.resume(output_key(id, stream)).await;
            kept[stream as usize] = up_to.map_err(PortError::new)?;
        }
        Ok(kept)
    }

    async fn synced(&self, id: OperationId) -> Result<[u64; 2], PortError> {
        let mut synced = [0; 2];
        for stream in STREAMS {
            let up_to = self.0.synced(output_key(id, stream)).await;
            synced[stream as usize] = up_to.map_err(PortError::new)?;
        }
        Ok(synced)
    }
}
