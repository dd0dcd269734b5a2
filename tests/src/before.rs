//! Where something listens that stands before a server.

use std::net::SocketAddr;

use tokio::net::TcpListener;

/// A place on loopback before a server.
pub(crate) struct Before {
    /// Where connections come.
    pub(crate) listener: TcpListener,
    /// Its address, with the server's scheme.
    pub(crate) url: String,
    /// The server.
    pub(crate) target: SocketAddr,
}

impl Before {
    /// # Panics
    /// If the address is none, or loopback has no free port.
    pub(crate) async fn server(url: &str) -> Self {
        let (scheme, target) = url.split_once("://").expect("an address with a scheme");
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        Self {
            listener,
            url: format!("{scheme}://{address}"),
            target: target.parse().expect("an address and a port"),
        }
    }
}
