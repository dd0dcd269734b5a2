//! One WebSocket connection to an operation: binary pieces and messages, both ways at the same time.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Sink, Stream};
use reqwest::Upgraded;
use shared_api::{BinaryFrame, MAX_BINARY_FRAME_BYTES, OperationServerMessage};
use shared_types::OperationId;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{self, Message, Utf8Bytes, protocol::frame::coding::CloseCode},
};

use super::{SILENT_PINGS, closed, failed, open};
use crate::{
    ClientError,
    http::Http,
    offsets::{Outgoing, SocketMessage},
};

/// Bytes of output that are read at once: two of the largest messages.
const OUTPUT_AT_ONCE: usize = 2 * MAX_BINARY_FRAME_BYTES;

/// An open connection.
pub(crate) struct OperationSocket {
    stream: WebSocketStream<Upgraded>,
    http: Http,
    is_flushed: bool,
    /// When the server is asked whether it lives, if it says nothing before.
    ask_at: Instant,
    asked: u32,
    is_ask_due: bool,
}

/// The result of one turn of the socket.
#[derive(Debug)]
pub(crate) enum Turned {
    /// The outgoing message is sent, or nothing that matters came.
    Sent,
    /// The server said something.
    Heard(SocketMessage),
    /// The server closed the connection in order.
    Closed {
        /// True if another connection would end the same way.
        is_final: bool,
        /// The same, for people.
        error: ClientError,
    },
}

impl OperationSocket {
    /// Connects, and asks for the output from these offsets on.
    pub(crate) async fn connect(
        http: &Http,
        id: OperationId,
        stdout: u64,
        stderr: u64,
    ) -> Result<Self, ClientError> {
        let mut url = http.base.api(&["operations", &id.to_string(), "stream"]);
        url.query_pairs_mut()
            .append_pair("stdout", &stdout.to_string())
            .append_pair("stderr", &stderr.to_string());
        Ok(Self {
            stream: open(http, url, OUTPUT_AT_ONCE).await?,
            ask_at: Instant::now() + http.ping_every,
            http: http.clone(),
            is_flushed: true,
            asked: 0,
            is_ask_due: false,
        })
    }

    /// Sends the outgoing message, which is taken then, or hears something, whichever comes first.
    /// Safe to abandon while it waits. Must not be called again after an error or a close.
    pub(crate) async fn turn(
        &mut self,
        outgoing: &mut Option<Outgoing>,
        is_reading: bool,
    ) -> Result<Turned, ClientError> {
        let ask_at = self.ask_at;
        let polled = std::future::poll_fn(|cx| self.poll(cx, outgoing, is_reading));
        let message = match timeout_at(ask_at, polled).await {
            Err(_) => return self.silent(is_reading),
            Ok(polled) => polled.map_err(|error| failed(&self.http, error))?,
        };
        let Some(message) = message else {
            return Ok(Turned::Sent);
        };
        self.asked = 0;
        self.listen(self.http.ping_every);
        self.read(message)
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        outgoing: &mut Option<Outgoing>,
        is_reading: bool,
    ) -> Poll<Result<Option<Message>, tungstenite::Error>> {
        let mut stream = Pin::new(&mut self.stream);
        if (outgoing.is_some() || self.is_ask_due) && stream.as_mut().poll_ready(cx)?.is_ready() {
            let message = match std::mem::take(&mut self.is_ask_due) {
                true => Some(Message::Ping(Default::default())),
                false => outgoing.take().map(written),
            };
            if let Some(message) = message {
                self.is_flushed = false;
                stream.start_send(message)?;
                // A person who types should notice a dead connection sooner than one who waits.
                let answered_by = Instant::now() + self.http.ping_every / 3;
                self.ask_at = self.ask_at.min(answered_by);
                return Poll::Ready(Ok(None));
            }
        }
        if !self.is_flushed && stream.as_mut().poll_flush(cx)?.is_ready() {
            self.is_flushed = true;
        }
        if !is_reading {
            return Poll::Pending;
        }
        match stream.poll_next(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => Poll::Ready(Ok(Some(Message::Close(None)))),
            Poll::Ready(Some(message)) => Poll::Ready(message.map(Some)),
        }
    }

    /// Handles a long silence: pings the server, or gives it up. A server that the client does not
    /// read from counts as alive.
    fn silent(&mut self, is_reading: bool) -> Result<Turned, ClientError> {
        self.listen(self.http.ping_every / 2);
        if is_reading {
            self.asked += 1;
            self.is_ask_due = true;
        }
        match self.asked > SILENT_PINGS {
            true => Err(self.http.unreachable("it fell silent".into())),
            false => Ok(Turned::Sent),
        }
    }

    fn listen(&mut self, at_most: Duration) {
        self.ask_at = Instant::now() + at_most;
    }

    fn read(&self, message: Message) -> Result<Turned, ClientError> {
        match message {
            Message::Binary(data) => match BinaryFrame::decode(data) {
                Ok(frame) => Ok(Turned::Heard(SocketMessage::Frame(frame))),
                Err(error) => Err(self.http.protocol(error.to_string())),
            },
            Message::Text(text) => match understood(&text) {
                Ok(Some(message)) => Ok(Turned::Heard(SocketMessage::Message(message))),
                Ok(None) => Ok(Turned::Sent),
                Err(reason) => Err(self.http.protocol(reason)),
            },
            Message::Close(frame) => Ok(Turned::Closed {
                is_final: frame.is_some_and(|frame| frame.code == CloseCode::Normal),
                error: closed(&self.http),
            }),
            _ => Ok(Turned::Sent),
        }
    }
}

fn written(outgoing: Outgoing) -> Message {
    match outgoing {
        Outgoing::Frame(frame) => Message::Binary(frame.encode()),
        Outgoing::Message(message) => {
            Message::text(serde_json::to_string(&message).expect("a message is always JSON"))
        }
    }
}

/// A message; `None` where it is of a kind that only a newer client knows.
fn understood(text: &Utf8Bytes) -> Result<Option<OperationServerMessage>, String> {
    const TYPES: [&str; 9] = [
        "operation",
        "accepted",
        "gap",
        "unreachable",
        "reachable",
        "input_taken",
        "ended",
        "problem",
        "reconnect",
    ];
    let error = match serde_json::from_str(text) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error.to_string(),
    };
    let value: serde_json::Value = serde_json::from_str(text).map_err(|_| error.clone())?;
    match value["type"].as_str() {
        Some(name) if !TYPES.contains(&name) => Ok(None),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_newer_server_is_passed_over_and_a_damaged_one_is_not() {
        let read = |text: &str| understood(&text.into());
        assert_eq!(read(r#"{"type":"weather","sun":1}"#), Ok(None));
        let taken = OperationServerMessage::InputTaken { offset: 1 };
        assert_eq!(
            read(r#"{"type":"input_taken","offset":1}"#),
            Ok(Some(taken))
        );
        assert!(read(r#"{"type":"input_taken","offset":"many"}"#).is_err());
        assert!(read("{").is_err());
    }
}
