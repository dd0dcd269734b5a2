//! The port of all doors, and beside it those for the metrics alone and for other servers, where the operator sets
//! them.

use std::net::SocketAddr;

use anyhow::Context as _;
use rustix::process::{Resource, getrlimit, setrlimit};
use server_api::{Door, Doors, HeaderName};
use shared_tls::ServerTls;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::settings::{PeerSettings, ServerSettings};

/// Files and connections that the listener for the metrics alone may take of the process's.
const DESCRIPTORS_FOR_METRICS: usize = 64;

/// The bound port for other servers.
pub(crate) struct PeerListener {
    pub(crate) listener: TcpListener,
    /// The host and port that other servers are told.
    pub(crate) address: String,
}

/// The bound ports.
pub(crate) struct Listeners {
    doors: TcpListener,
    metrics: Option<TcpListener>,
    peers: Option<PeerListener>,
    client_address: Option<HeaderName>,
}

impl Listeners {
    pub(crate) async fn bind(settings: &ServerSettings) -> anyhow::Result<Self> {
        let doors = TcpListener::bind(settings.listen)
            .await
            .with_context(|| format!("{} cannot be listened on: stop what uses it, or choose another with --listen or GANTRY_LISTEN", settings.listen))?;
        let metrics = match settings.metrics {
            Some(address) => Some(TcpListener::bind(address).await.with_context(|| format!("{address} cannot be listened on for the metrics: stop what uses it, or choose another with --metrics or GANTRY_METRICS"))?),
            None => None,
        };
        let peers = match &settings.peers {
            Some(peers) => Some(PeerListener::bind(peers).await?),
            None => None,
        };
        Ok(Self {
            doors,
            metrics,
            peers,
            client_address: settings.client_address.clone(),
        })
    }

    /// The address of all doors.
    pub(crate) fn address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.doors.local_addr()?)
    }

    /// The address of the metrics alone.
    pub(crate) fn metrics_address(&self) -> anyhow::Result<Option<SocketAddr>> {
        let metrics = self.metrics.as_ref().map(TcpListener::local_addr);
        Ok(metrics.transpose()?)
    }

    /// The host and port that other servers are told.
    pub(crate) fn peer_address(&self) -> Option<String> {
        self.peers.as_ref().map(|peers| peers.address.clone())
    }

    /// Takes the port for other servers.
    pub(crate) fn take_peers(&mut self) -> Option<TcpListener> {
        self.peers.take().map(|peers| peers.listener)
    }

    /// Serves until `stop`; `tls` has the present certificate. Returns the tasks.
    pub(crate) fn serve(
        self,
        doors: Doors,
        tls: Option<watch::Receiver<ServerTls>>,
        descriptors: usize,
        stop: &CancellationToken,
    ) -> Vec<JoinHandle<()>> {
        let limits = doors.limits;
        let metrics = self.metrics.map(|listener| {
            let door = Door {
                listener,
                tls: None,
                limits,
                client_address: None,
                descriptors: DESCRIPTORS_FOR_METRICS,
            };
            (door, server_api::metrics_router(doors.clone()))
        });
        let door = Door {
            listener: self.doors,
            tls,
            limits,
            client_address: self.client_address,
            descriptors,
        };
        let all = [(door, server_api::router(doors))]
            .into_iter()
            .chain(metrics);
        all.map(|(door, routes)| tokio::spawn(server_api::serve(door, routes, stop.clone())))
            .collect()
    }
}

impl PeerListener {
    async fn bind(settings: &PeerSettings) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(settings.listen).await.with_context(|| format!("{} cannot be listened on for other servers: stop what uses it, or choose another with --peer-listen or GANTRY_PEER_LISTEN", settings.listen))?;
        let bound = listener.local_addr()?;
        Ok(Self {
            listener,
            address: settings.advertised(bound, crate::machine().as_deref()),
        })
    }
}

/// Every connection and every file takes a descriptor, and many systems allow 1024 unless asked.
/// Returns how many there may be.
pub(crate) fn allow_many_descriptors() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the number of open files stays limited");
    }
    let allowed = getrlimit(Resource::Nofile).current;
    allowed.map_or(usize::MAX, |allowed| {
        usize::try_from(allowed).unwrap_or(usize::MAX)
    })
}
