//! How to reach a server: HTTP/2 over TCP, and over TLS where the server ends it.

use std::{io, sync::Arc};

use anyhow::Context as _;
use hyper_util::rt::TokioIo;
use shared_tls::client_config;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{client::Resumption, pki_types::ServerName},
};
use tonic::transport::{Channel, Endpoint};

use crate::gantry::Gantry;

/// The way to a server.
#[derive(Clone)]
pub struct Route {
    authority: String,
    tls: Option<TlsConnector>,
}

impl Route {
    /// The way to this one.
    pub fn to(gantry: &Gantry) -> Self {
        let (scheme, authority) = gantry
            .url()
            .split_once("://")
            .expect("it prints an address");
        let tls = (scheme == "https").then(|| {
            shared_tls::install_provider();
            let config = client_config(gantry.trust().clone()).expect("a pin needs no roots");
            let mut config = (*config).clone();
            config.alpn_protocols = vec![b"h2".to_vec()];
            // Each runner is a host of its own: none may profit from another's handshake.
            config.resumption = Resumption::disabled();
            TlsConnector::from(Arc::new(config))
        });
        Self {
            authority: authority.to_owned(),
            tls,
        }
    }

    /// A new connection, which lives and dies as one.
    ///
    /// # Errors
    /// Where there is nobody, or no handshake.
    pub async fn connect(&self) -> anyhow::Result<Channel> {
        let socket = TcpStream::connect(&self.authority).await;
        let socket = socket.context("the server cannot be reached")?;
        socket.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            return self.speak(socket).await;
        };
        let host = self.authority.rsplit_once(':').map_or("", |(host, _)| host);
        let name = ServerName::try_from(host.to_owned())?;
        let stream = tls.connect(name, socket).await.context("no TLS")?;
        self.speak(stream).await
    }

    async fn speak(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> anyhow::Result<Channel> {
        let mut once = Some(TokioIo::new(stream));
        let connector = tower::service_fn(move |_| {
            let stream = once.take();
            async { stream.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset)) }
        });
        // The dialled scheme is plain for tonic, which would start TLS of its own otherwise.
        let endpoint = Endpoint::from_shared(format!("http://{}", self.authority))?;
        Ok(endpoint.connect_with_connector(connector).await?)
    }
}
