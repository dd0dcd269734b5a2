//! A model server that does what a test tells it: in each wire format, streaming, down to the single byte, able to
//! fail on cue.
//!
//! The path of a request says its format. Replies are given in the order in which requests arrive, in the format of
//! the request. What streams is cut at odd places, also within characters and line ends, because that is what networks
//! do. A request without a reply in the script gets status 500 and "script exhausted". A request that the vendor of
//! the format would refuse is refused as the vendor does, and takes no reply of the script.

mod chat;
mod format;
mod gemini;
mod messages;
mod pieces;
mod reply;
mod responses;
mod script;

use std::io;

use axum::{
    Json, Router,
    body::Body,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, HeaderName, StatusCode, Uri, header},
    response::Response,
    routing::{get, post},
    serve::ListenerExt as _,
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::AbortHandle};

use self::script::Script;
pub use self::{
    format::Format,
    reply::{Reply, Said, Step},
    script::Asked,
};

/// Largest request that is taken, in bytes.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// The server; it runs in the test's process and stops when this is dropped.
#[derive(Debug)]
pub struct ModelServer {
    root_url: String,
    script: Script,
    serving: AbortHandle,
}

impl ModelServer {
    /// Starts on a free loopback port with an empty script.
    ///
    /// # Panics
    /// If loopback has no free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has a free port");
        let address = listener.local_addr().expect("the listener is bound");
        let script = Script::default();
        let app = Router::new()
            .route("/v1/models", get(list))
            .fallback(post(complete))
            .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
            .with_state(script.clone());
        // As vendors' servers do: otherwise small pieces wait 40 ms for the reader's delayed ACK.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await });
        Self {
            root_url: format!("http://{address}"),
            script,
            serving: serving.abort_handle(),
        }
    }

    /// The address of the server. The paths of the formats begin below it, each with its version.
    pub fn root_url(&self) -> &str {
        &self.root_url
    }

    /// What to set as `OPENAI_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.root_url)
    }

    /// Adds replies to the end of the script.
    pub fn script(&self, replies: Vec<Reply>) {
        self.script.state().replies.extend(replies);
    }

    /// Lists these models from now on.
    pub fn lists(&self, models: &[&str]) {
        let models = models.iter().map(|model| (*model).to_owned());
        self.script.state().models = models.collect();
    }

    /// From now on a request with a longer body than this is refused as too long for the model; that
    /// takes no reply of the script.
    pub fn refuse_above(&self, bytes: usize) {
        self.script.state().refuse_above = Some(bytes);
    }

    /// From now on each wish for a summary gets this one, and takes no reply of the script.
    pub fn summarizes(&self, summary: &str) {
        self.script.state().summary = Some(Reply::text(summary));
    }

    /// The first request after the next wish gets this, and takes no reply of the script.
    pub fn replies_after_summary(&self, reply: Reply) {
        self.script.state().after_summary = Some(reply);
    }

    /// True once the reply of [`ModelServer::replies_after_summary`] is given.
    pub fn has_replied_after_summary(&self) -> bool {
        self.script.state().after_summary.is_none()
    }

    /// Replies of the script that no request has had.
    pub fn replies_left(&self) -> usize {
        self.script.state().replies.len()
    }

    /// All requests so far, in the order of their arrival.
    pub fn asked(&self) -> Vec<Asked> {
        self.script.state().asked.clone()
    }

    /// Their bodies.
    pub fn requests(&self) -> Vec<Value> {
        let asked = self.asked().into_iter();
        asked.map(|asked| asked.body).collect()
    }

    /// The `Authorization` header of each request so far, in the same order.
    pub fn authorizations(&self) -> Vec<Option<String>> {
        self.headers(header::AUTHORIZATION.as_str())
    }

    /// The `traceparent` header of each request so far, in the same order.
    pub fn traceparents(&self) -> Vec<Option<String>> {
        self.headers("traceparent")
    }

    /// This header of each request so far, in the same order.
    pub fn headers(&self, name: &str) -> Vec<Option<String>> {
        let asked = self.asked().into_iter();
        asked.map(|asked| asked.header(name)).collect()
    }

    /// Waits until this many requests have arrived in all.
    pub async fn wait_for_requests(&self, count: usize) {
        self.script.wait_for(count).await;
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The models, in the form of OpenAI's `GET /v1/models`.
async fn list(State(script): State<Script>) -> Json<Value> {
    let models = script.state().models.clone().into_iter();
    let models = models.map(|id| json!({ "id": id, "object": "model" }));
    Json(json!({ "object": "list", "data": models.collect::<Vec<_>>() }))
}

async fn complete(
    State(script): State<Script>,
    uri: Uri,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let Some(format) = Format::of_path(uri.path()) else {
        return refusal(
            404,
            &[],
            r#"{"error":{"message":"no such path"}}"#.to_owned(),
        );
    };
    let path = uri.path().to_owned();
    let (number, reply) = script.arrive(Asked {
        format,
        path,
        headers,
        body: body.clone(),
    });
    match reply {
        Some(Reply::Said(said)) => in_odd_pieces(&format.answer(number, &said, &body), None),
        Some(Reply::Cut { said, bytes }) => {
            in_odd_pieces(&format.answer(number, &said, &body), Some(bytes))
        }
        Some(Reply::Status {
            code,
            headers,
            body,
        }) => refusal(code, &headers, body),
        Some(Reply::Raw(steps)) => event_stream(steps_of(steps)),
        None => refusal(
            500,
            &[],
            r#"{"error":{"message":"script exhausted","type":"server_error"}}"#.to_owned(),
        ),
    }
}

fn refusal(code: u16, headers: &[(String, String)], body: String) -> Response {
    let code = StatusCode::from_u16(code).expect("the script names a real status");
    let mut response = Response::builder()
        .status(code)
        .header(header::CONTENT_TYPE, "application/json");
    for (name, value) in headers {
        let name: HeaderName = name.parse().expect("the script names real headers");
        response = response.header(name, value);
    }
    response
        .body(Body::from(body))
        .expect("the script names real headers")
}

/// The bytes in odd pieces; with a `cut`, only so many of them before the connection breaks off.
fn in_odd_pieces(bytes: &[u8], cut: Option<usize>) -> Response {
    let kept = cut.map_or(bytes, |cut| &bytes[..cut.min(bytes.len())]);
    let pieces = pieces::odd(kept).into_iter().map(Step::Send);
    let steps = pieces.chain(cut.map(|_| Step::Reset)).collect();
    event_stream(steps_of(steps))
}

fn steps_of(steps: Vec<Step>) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::iter(steps).filter_map(|step| async move {
        match step {
            Step::Send(bytes) => {
                // Gives the connection the chance to send what came before by itself.
                tokio::task::yield_now().await;
                Some(Ok(bytes))
            }
            Step::Hold(release) => {
                release.notified().await;
                None
            }
            Step::Reset => Some(Err(io::Error::from(io::ErrorKind::ConnectionReset))),
        }
    })
}

fn event_stream(bytes: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Response {
    Response::builder()
        .header(header::CONTENT_TYPE, "text/event-stream")
        .body(Body::from_stream(bytes))
        .expect("the header is valid")
}
