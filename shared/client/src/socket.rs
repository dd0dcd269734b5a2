//! One WebSocket connection to the server's stream, as messages in and out.

use std::io::ErrorKind;

use futures_util::{SinkExt, StreamExt};
use reqwest::Upgraded;
use shared_api::{ClientMessage, ServerMessage};
use tokio::time::timeout;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message,
        error::ProtocolError,
        protocol::{Role, WebSocketConfig},
    },
};
use url::Url;

use crate::{ClientError, http::Http};

mod operation;

pub(crate) use operation::{OperationSocket, Turned};

/// Largest message of the server, in bytes: one event with a large file in a tool call.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of a session's events that are read at once.
const EVENTS_AT_ONCE: usize = 16 * 1024;

/// Silent intervals after which it counts as gone.
const SILENT_PINGS: u32 = 3;

/// An open connection.
pub(crate) struct ClientSocket {
    stream: WebSocketStream<Upgraded>,
    http: Http,
}

impl ClientSocket {
    /// Connects and authenticates.
    pub(crate) async fn connect(http: &Http) -> Result<Self, ClientError> {
        Ok(Self {
            stream: open(http, http.base.api(&["stream"]), EVENTS_AT_ONCE).await?,
            http: http.clone(),
        })
    }

    /// Says something to the server.
    pub(crate) async fn say(&mut self, message: &ClientMessage) -> Result<(), ClientError> {
        let text = serde_json::to_string(message).expect("a message is always JSON");
        self.put(Message::text(text)).await
    }

    /// Waits for the server's next message and skips kinds that this client does not know. Must not
    /// be called again after an error.
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

async fn open(
    http: &Http,
    url: Url,
    read_at_once: usize,
) -> Result<WebSocketStream<Upgraded>, ClientError> {
    let config = WebSocketConfig::default()
        .read_buffer_size(read_at_once)
        .write_buffer_size(0)
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    let connection = http.upgrade(url).await?;
    Ok(WebSocketStream::from_raw_socket(connection, Role::Client, Some(config)).await)
}

fn failed(http: &Http, error: tungstenite::Error) -> ClientError {
    match error {
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
