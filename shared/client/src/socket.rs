//! One WebSocket connection to the server's stream, as messages in and out.

use std::{io::ErrorKind, sync::Arc};

use futures_util::{SinkExt, StreamExt};
use reqwest::{StatusCode, header::AUTHORIZATION};
use rustls::pki_types::ServerName;
use shared_api::{ClientMessage, ServerMessage};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message, client::IntoClientRequest, error::ProtocolError, protocol::WebSocketConfig,
    },
};
use url::{Host, Url};

use crate::{
    ClientError,
    http::{CONNECT_WITHIN, Http, MAX_PROBLEM_BYTES},
};

mod operation;

pub(crate) use operation::{OperationSocket, Turned};

/// Largest message of the server, in bytes: one event with a large file in a tool call.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Buffers of a connection, in bytes.
const BUFFER_BYTES: usize = 16 * 1024;

/// Silent intervals after which it counts as gone.
const SILENT_PINGS: u32 = 3;

trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// An open connection.
pub(crate) struct Socket {
    stream: WebSocketStream<Box<dyn Bytes>>,
    http: Http,
}

impl Socket {
    /// Connects, and proves who asks.
    pub(crate) async fn connect(http: &Http) -> Result<Self, ClientError> {
        timeout(CONNECT_WITHIN, open(http, &http.base.socket(&["stream"])))
            .await
            .unwrap_or_else(|_| Err(http.unreachable("it took too long to connect".into())))
            .map(|stream| Self {
                stream,
                http: http.clone(),
            })
    }

    /// Says something to the server.
    pub(crate) async fn say(&mut self, message: &ClientMessage) -> Result<(), ClientError> {
        let text = serde_json::to_string(message).expect("a message is always JSON");
        self.put(Message::text(text)).await
    }

    /// What the server says next. Kinds of messages that this client does not know are passed
    /// over. Must not be called again after an error.
    pub(crate) async fn hear(&mut self) -> Result<ServerMessage, ClientError> {
        let mut silent = 0;
        loop {
            let Ok(frame) = timeout(self.http.ping_every, self.stream.next()).await else {
                silent += 1;
                if silent > SILENT_PINGS {
                    return Err(self.http.unreachable("it fell silent".into()));
                }
                self.put(Message::Ping(Default::default())).await?;
                continue;
            };
            silent = 0;
            match frame {
                Some(Ok(Message::Text(text))) => {
                    let message = read(&text).map_err(|reason| self.http.protocol(reason))?;
                    if let Some(message) = message {
                        return Ok(message);
                    }
                }
                Some(Ok(Message::Close(_))) | None => {
                    return Err(closed(&self.http));
                }
                Some(Ok(Message::Binary(_))) => {
                    return Err(self.http.protocol("a binary message".into()));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(failed(&self.http, error)),
            }
        }
    }

    async fn put(&mut self, message: Message) -> Result<(), ClientError> {
        match timeout(self.http.ping_every, self.stream.send(message)).await {
            Ok(sent) => sent.map_err(|error| failed(&self.http, error)),
            Err(_) => Err(self.http.unreachable("it takes nothing any more".into())),
        }
    }
}

/// A message; `None` where it is of a kind that only a newer client knows.
fn read(text: &str) -> Result<Option<ServerMessage>, String> {
    const TYPES: [&str; 5] = ["event", "live", "caught_up", "problem", "reconnect"];
    const KINDS: [&str; 5] = ["reasoning", "text", "output", "gap", "notice"];
    let error = match serde_json::from_str(text) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error.to_string(),
    };
    let value: serde_json::Value = serde_json::from_str(text).map_err(|_| error.clone())?;
    let new = |value: &serde_json::Value, known: &[&str]| {
        value.as_str().is_some_and(|name| !known.contains(&name))
    };
    if new(&value["type"], &TYPES) || new(&value["live"]["kind"], &KINDS) {
        return Ok(None);
    }
    Err(error)
}

async fn open(http: &Http, url: &Url) -> Result<WebSocketStream<Box<dyn Bytes>>, ClientError> {
    let bytes = dial(http, url).await?;
    let mut request = url
        .as_str()
        .into_client_request()
        .map_err(|error| failed(http, error))?;
    if let Some(bearer) = &http.bearer {
        request.headers_mut().insert(AUTHORIZATION, bearer.clone());
    }
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(0)
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    let (stream, _) = tokio_tungstenite::client_async_with_config(request, bytes, Some(config))
        .await
        .map_err(|error| failed(http, error))?;
    Ok(stream)
}

async fn dial(http: &Http, url: &Url) -> Result<Box<dyn Bytes>, ClientError> {
    let port = url.port_or_known_default().unwrap_or(443);
    let (tcp, name) = match url.host() {
        Some(Host::Ipv4(address)) => (
            TcpStream::connect((address, port)).await,
            ServerName::IpAddress(std::net::IpAddr::from(address).into()),
        ),
        Some(Host::Ipv6(address)) => (
            TcpStream::connect((address, port)).await,
            ServerName::IpAddress(std::net::IpAddr::from(address).into()),
        ),
        host => {
            let name = host.map(|host| host.to_string()).unwrap_or_default();
            let server = ServerName::try_from(name.clone())
                .map_err(|error| http.unreachable(error.to_string()))?;
            (TcpStream::connect((name, port)).await, server)
        }
    };
    let tcp = tcp.map_err(|error| http.failed(&error))?;
    // Small messages are answers that somebody watches.
    tcp.set_nodelay(true).map_err(|error| http.failed(&error))?;
    match &http.tls {
        None => Ok(Box::new(tcp)),
        Some(config) => {
            let connector = tokio_rustls::TlsConnector::from(Arc::clone(config));
            let tls = connector.connect(name, tcp).await;
            Ok(Box::new(tls.map_err(|error| http.failed(&error))?))
        }
    }
}

fn failed(http: &Http, error: tungstenite::Error) -> ClientError {
    match error {
        tungstenite::Error::Http(response) => {
            let body = response.body().as_deref().unwrap_or_default();
            let status = StatusCode::from_u16(response.status().as_u16());
            http.refused(
                status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                &body[..body.len().min(MAX_PROBLEM_BYTES)],
            )
        }
        tungstenite::Error::Capacity(_) => http.protocol("a message is too large".into()),
        tungstenite::Error::Io(error) if error.kind() == ErrorKind::UnexpectedEof => closed(http),
        tungstenite::Error::Io(error) => http.failed(&error),
        tungstenite::Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => closed(http),
        error => http.unreachable(error.to_string()),
    }
}

fn closed(http: &Http) -> ClientError {
    http.unreachable("it closed the connection".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_newer_server_is_passed_over_and_a_damaged_one_is_not() {
        assert_eq!(read(r#"{"type":"weather","sun":1}"#), Ok(None));
        let live =
            r#"{"type":"live","session":"ses_00000000000000000000000001","live":{"kind":"smell"}}"#;
        assert_eq!(read(live), Ok(None));
        assert!(read(r#"{"type":"caught_up","seq":"many"}"#).is_err());
        assert!(read("{").is_err());
    }
}
