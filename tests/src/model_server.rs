//! A model server that does what a test tells it: OpenAI's wire format, streaming, down to the
//! single byte, able to fail on cue.
//!
//! Replies are given in the order in which requests arrive. What streams is cut at odd places,
//! also within characters and line ends, because that is what networks do. A request without a
//! reply in the script gets status 500 and "script exhausted".

mod wire;

use std::{
    collections::VecDeque,
    convert::Infallible,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Json, Router,
    body::Body,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode, header},
    response::Response,
    routing::post,
    serve::ListenerExt as _,
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    task::AbortHandle,
};

/// Largest request that is taken, in bytes.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// What the server does with one request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Streams this text, then the end and the usage.
    Text(String),
    /// Streams this text and these calls as (name, arguments), then the end and the usage. The
    /// arguments are sent as they are, also where they are not JSON.
    Calls {
        /// What is said before; may be empty.
        text: String,
        /// The calls; their ids are `call_{request}_{place}`, both from 0.
        calls: Vec<(String, String)>,
    },
    /// Refuses.
    Status {
        /// The HTTP status.
        code: u16,
        /// Further headers.
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
    /// Status 200 and an event stream of exactly these steps; it ends after the last one.
    Raw(Vec<Step>),
}

impl Reply {
    /// Streams `text`.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Asks for one tool and says nothing.
    pub fn call(name: impl Into<String>, arguments: impl ToString) -> Self {
        Self::Calls {
            text: String::new(),
            calls: vec![(name.into(), arguments.to_string())],
        }
    }

    /// Refuses with this status and an error object with this message.
    pub fn refusal(code: u16, message: &str) -> Self {
        Self::Status {
            code,
            headers: Vec::new(),
            body: serde_json::json!({ "error": { "message": message } }).to_string(),
        }
    }
}

/// One step of a raw reply.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sends these bytes at once and by themselves.
    Send(Bytes),
    /// Waits until the test calls [`Notify::notify_one`].
    Hold(Arc<Notify>),
    /// Breaks the connection off without ending the response.
    Reset,
}

impl Step {
    /// Sends a piece of the answer's text as a whole event.
    pub fn text(text: &str) -> Self {
        Self::Send(wire::event(&wire::text(text)))
    }

    /// Sends a piece of the answer's message as a whole event.
    pub fn delta(delta: &Value) -> Self {
        Self::Send(wire::event(&wire::delta(delta)))
    }

    /// Sends the end of the answer, its usage and the stream's end mark.
    pub fn end() -> Self {
        Self::end_with("stop")
    }

    /// The same, with this reason for the end.
    pub fn end_with(reason: &str) -> Self {
        Self::Send(wire::end(reason).concat().into())
    }
}

/// The server; it runs in the test's process and stops when this is dropped.
#[derive(Debug)]
pub struct ModelServer {
    base_url: String,
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
            .route("/v1/chat/completions", post(complete))
            .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
            .with_state(script.clone());
        // As vendors' servers do: otherwise small pieces wait 40 ms for the reader's delayed ACK.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await });
        Self {
            base_url: format!("http://{address}/v1"),
            script,
            serving: serving.abort_handle(),
        }
    }

    /// What to set as `OPENAI_BASE_URL`.
    pub fn base_url(&self) -> String {
        self.base_url.clone()
    }

    /// Adds replies to the end of the script.
    pub fn script(&self, replies: Vec<Reply>) {
        self.script.state().replies.extend(replies);
    }

    /// From now on a request with a longer body than this is refused as too long for the model; that
    /// takes no reply of the script.
    pub fn refuse_above(&self, bytes: usize) {
        self.script.state().refuse_above = Some(bytes);
    }

    /// Replies of the script that no request has had.
    pub fn replies_left(&self) -> usize {
        self.script.state().replies.len()
    }

    /// The bodies of all requests so far, in the order of their arrival.
    pub fn requests(&self) -> Vec<Value> {
        let state = self.script.state();
        state
            .requests
            .iter()
            .map(|asked| asked.body.clone())
            .collect()
    }

    /// The `Authorization` header of each request so far, in the same order.
    pub fn authorizations(&self) -> Vec<Option<String>> {
        let state = self.script.state();
        let requests = state.requests.iter();
        requests.map(|asked| asked.authorization.clone()).collect()
    }

    /// The `traceparent` header of each request so far, in the same order.
    pub fn traceparents(&self) -> Vec<Option<String>> {
        let state = self.script.state();
        let requests = state.requests.iter();
        requests.map(|asked| asked.traceparent.clone()).collect()
    }

    /// Waits until this many requests have arrived in all.
    pub async fn wait_for_requests(&self, count: usize) {
        let mut arrived = self.script.arrived.subscribe();
        arrived
            .wait_for(|arrived| *arrived >= count)
            .await
            .expect("the server holds the sender");
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// What is shared between the test and the connections. A lock suffices: it is a double, and
/// nobody waits while holding it.
#[derive(Debug, Clone)]
struct Script {
    state: Arc<Mutex<ScriptState>>,
    arrived: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct ScriptState {
    /// A longer request does not fit into the model's window.
    refuse_above: Option<usize>,
    replies: VecDeque<Reply>,
    requests: Vec<Asked>,
}

/// A request that arrived.
#[derive(Debug)]
struct Asked {
    authorization: Option<String>,
    traceparent: Option<String>,
    body: Value,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            arrived: watch::Sender::new(0),
        }
    }
}

impl Script {
    fn state(&self) -> MutexGuard<'_, ScriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request; gives its number, from 0, and its reply.
    fn arrive(&self, asked: Asked) -> (usize, Option<Reply>) {
        let mut state = self.state();
        let number = state.requests.len();
        let length = asked.body.to_string().len();
        state.requests.push(asked);
        self.arrived.send_replace(number + 1);
        match state.refuse_above {
            Some(most) if length > most => (number, Some(too_long(length, most))),
            _ => (number, state.replies.pop_front()),
        }
    }
}

async fn complete(
    State(script): State<Script>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let header = |name: header::HeaderName| {
        let value = headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let asked = Asked {
        authorization: header(header::AUTHORIZATION),
        traceparent: header(header::HeaderName::from_static("traceparent")),
        body,
    };
    let (number, reply) = script.arrive(asked);
    match reply {
        Some(Reply::Text(text)) => in_odd_pieces(wire::answer(number, &text, &[])),
        Some(Reply::Calls { text, calls }) => in_odd_pieces(wire::answer(number, &text, &calls)),
        Some(Reply::Status {
            code,
            headers,
            body,
        }) => refusal(code, &headers, body),
        Some(Reply::Raw(steps)) => streamed(steps),
        None => refusal(
            500,
            &[],
            r#"{"error":{"message":"script exhausted","type":"server_error"}}"#.to_owned(),
        ),
    }
}

/// OpenAI's refusal of a request that is too long.
fn too_long(length: usize, most: usize) -> Reply {
    let error = serde_json::json!({ "error": {
        "message": format!("This model's maximum context length is {most} bytes. However, your messages resulted in {length}."),
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    } });
    Reply::Status {
        code: 400,
        headers: Vec::new(),
        body: error.to_string(),
    }
}

fn refusal(code: u16, headers: &[(String, String)], body: String) -> Response {
    let code = StatusCode::from_u16(code).expect("the script names a real status");
    let mut response = Response::builder()
        .status(code)
        .header(header::CONTENT_TYPE, "application/json");
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response
        .body(Body::from(body))
        .expect("the script names real headers")
}

fn in_odd_pieces(bytes: Vec<u8>) -> Response {
    let pieces = wire::odd_pieces(&bytes)
        .into_iter()
        .map(Ok::<_, Infallible>);
    event_stream(Body::from_stream(stream::iter(pieces)))
}

fn streamed(steps: Vec<Step>) -> Response {
    let steps = stream::iter(steps).filter_map(|step| async move {
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
    });
    event_stream(Body::from_stream(steps))
}

fn event_stream(body: Body) -> Response {
    Response::builder()
        .header(header::CONTENT_TYPE, "text/event-stream")
        .body(body)
        .expect("the header is valid")
}
