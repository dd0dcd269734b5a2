//! A WebSocket of the API, spoken by hand: each text that is heard is checked against the OpenAPI
//! document.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{self, Bytes, Message, client::IntoClientRequest as _},
};

use crate::{
    gantry::{Gantry, PATIENCE},
    openapi::Document,
};

/// An open connection.
pub struct Socket {
    document: Document,
    /// The component that describes what the server says on it.
    component: &'static str,
    stream: WebSocketStream<TcpStream>,
}

/// What the server said.
#[derive(Debug)]
pub enum Heard {
    /// A text message.
    Text(Value),
    /// A binary message.
    Binary(Bytes),
    /// Its goodbye, with the code; none where the connection just ended.
    Closed(Option<u16>),
}

impl Socket {
    /// Opens the one at this path as the owner.
    pub async fn open(gantry: &Gantry, path: &str, component: &'static str) -> Self {
        Self::open_by_way_of(gantry.url(), gantry, path, component).await
    }

    /// The same, where the server is reached at another address.
    pub async fn open_by_way_of(
        url: &str,
        gantry: &Gantry,
        path: &str,
        component: &'static str,
    ) -> Self {
        let headers = [bearer(gantry.token())];
        let dialled = dial(url, &headers, path);
        Self::opened(gantry, dialled, component).await
    }

    /// The same with another token.
    pub async fn open_as(
        gantry: &Gantry,
        token: &str,
        path: &str,
        component: &'static str,
    ) -> Self {
        let headers = [bearer(token)];
        let dialled = dial(gantry.url(), &headers, path);
        Self::opened(gantry, dialled, component).await
    }

    /// The same with these headers in place of a token.
    pub async fn open_with(
        gantry: &Gantry,
        headers: &[(&'static str, String)],
        path: &str,
        component: &'static str,
    ) -> Self {
        Self::opened(gantry, dial(gantry.url(), headers, path), component).await
    }

    async fn opened(
        gantry: &Gantry,
        dialled: impl Future<Output = Result<WebSocketStream<TcpStream>, u16>>,
        component: &'static str,
    ) -> Self {
        let document = gantry.ask("get", "/api/v1/openapi.json", None).await;
        Self {
            document: Document::new(document.body),
            component,
            stream: dialled.await.expect("it is let in"),
        }
    }

    /// A connection at this path on which nothing is heard.
    pub async fn unread(gantry: &Gantry, path: &str) -> WebSocketStream<TcpStream> {
        let stream = dial(gantry.url(), &[bearer(gantry.token())], path).await;
        stream.expect("it is let in")
    }

    /// The HTTP status with which a token is refused the one at this path.
    pub async fn refused(gantry: &Gantry, token: &str, path: &str) -> u16 {
        Self::refused_with(gantry, &[bearer(token)], path).await
    }

    /// The same for these headers.
    pub async fn refused_with(
        gantry: &Gantry,
        headers: &[(&'static str, String)],
        path: &str,
    ) -> u16 {
        let refused = dial(gantry.url(), headers, path).await;
        refused.expect_err("it is refused")
    }

    /// Says this.
    pub async fn say(&mut self, message: Message) {
        assert!(self.try_to_say(message).await, "it can be sent");
    }

    /// Says this; false where the connection is gone.
    pub async fn try_to_say(&mut self, message: Message) -> bool {
        self.stream.send(message).await.is_ok()
    }

    /// What the server says next that is no ping.
    pub async fn next(&mut self) -> Heard {
        let said = async {
            loop {
                match self.stream.next().await {
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    other => return other,
                }
            }
        };
        // Around the loop: pings alone are not what is waited for.
        let said = tokio::time::timeout(PATIENCE, said).await;
        match said.expect("a message in time") {
            Some(Ok(Message::Text(text))) => {
                let said = serde_json::from_str(&text).expect("JSON");
                let checked = self.document.check_component(self.component, &said);
                checked.expect("it is documented");
                Heard::Text(said)
            }
            Some(Ok(Message::Binary(bytes))) => Heard::Binary(bytes),
            Some(Ok(Message::Close(Some(frame)))) => Heard::Closed(Some(frame.code.into())),
            _ => Heard::Closed(None),
        }
    }

    /// The next message, which is a text.
    pub async fn hears(&mut self) -> Value {
        match self.next().await {
            Heard::Text(said) => said,
            other => panic!("{other:?} is not a text"),
        }
    }
}

/// Opens one, or answers with the HTTP status of the refusal.
async fn dial(
    url: &str,
    headers: &[(&'static str, String)],
    path: &str,
) -> Result<WebSocketStream<TcpStream>, u16> {
    let address = url.trim_start_matches("http://");
    let mut request = format!("ws://{address}{path}")
        .into_client_request()
        .expect("an address");
    for (name, value) in headers {
        let value = value.parse().expect("a header's value");
        request.headers_mut().insert(*name, value);
    }
    let stream = TcpStream::connect(address).await.expect("it listens");
    match client_async(request, stream).await {
        Ok((stream, _)) => Ok(stream),
        Err(tungstenite::Error::Http(answer)) => Err(answer.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

fn bearer(token: &str) -> (&'static str, String) {
    ("authorization", format!("Bearer {token}"))
}
