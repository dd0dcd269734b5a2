//! How to reach a server: HTTP/2 over TCP, and over TLS where the server ends it.

use std::{io, sync::Arc};

use anyhow::Context as _;
use hyper_util::rt::TokioIo;
use shared_tls::{Trust, client_config};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{client::Resumption, pki_types::ServerName},
};
use tonic::transport::{Channel, Endpoint};

use crate::{gantry::Gantry, peer::Stream};

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
        let tls = (scheme == "https").then(|| connector(gantry.trust().clone()));
        Self {
            authority: authority.to_owned(),
            tls,
        }
    }

    /// The way to a server at this address, which speaks plain text.
    pub fn plain(url: &str) -> Self {
        let (_, authority) = url.split_once("://").expect("an address");
        Self {
            authority: authority.to_owned(),
            tls: None,
        }
    }

    /// Whom requests are addressed to.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// A new connection, which speaks nothing yet.
    ///
    /// # Errors
    /// Where there is nobody, or no handshake.
    pub async fn socket(&self) -> anyhow::Result<Box<dyn Stream>> {
        let socket = TcpStream::connect(&self.authority).await;
        let socket = socket.context("the server cannot be reached")?;
        socket.set_nodelay(true)?;
        Ok(match &self.tls {
            Some(tls) => Box::new(self.shake_hands(tls, socket).await?),
            None => Box::new(socket),
        })
    }

    /// A new connection, which lives and dies as one.
    ///
    /// # Errors
    /// Where there is nobody, or no handshake.
    pub async fn connect(&self) -> anyhow::Result<Channel> {
        self.speak(self.socket().await?).await
    }

    async fn shake_hands(
        &self,
        tls: &TlsConnector,
        socket: TcpStream,
    ) -> anyhow::Result<TlsStream<TcpStream>> {
        let host = self.authority.rsplit_once(':').map_or("", |(host, _)| host);
        let name = ServerName::try_from(host.to_owned())?;
        tls.connect(name, socket).await.context("no TLS")
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

/// Agrees on no protocol, so that either is spoken, and makes every handshake a whole one: each runner is a host of its own, and none may profit from
/// another's.
pub fn connector(trust: Trust) -> TlsConnector {
    shared_tls::install_provider();
    let config = client_config(trust).expect("a pin needs no roots");
    let mut config = (*config).clone();
    config.resumption = Resumption::disabled();
    TlsConnector::from(Arc::new(config))
}
