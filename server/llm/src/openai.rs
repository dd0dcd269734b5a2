//! OpenAI's Chat Completions API, streaming, as OpenAI and many other servers speak it.
//!
//! One attempt is one request. It ends well only where the server announced the answer's end;
//! every wait and everything that is read has a bound. Redirects are not followed: the key goes
//! to the configured address only. Proxies are those of the standard variables (`HTTPS_PROXY`,
//! `NO_PROXY`), which the HTTP client reads itself; a server on this machine is never asked
//! through one.

mod adapt;
mod answer;
mod body;
mod json;
mod options;
mod own;
mod quote;
mod refusal;
mod request;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::{
    Response,
    header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderValue},
    redirect,
};
use serde_json::Value;
use shared_types::{address::is_loopback_host, event::Origin};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use url::{Position, Url};

pub use self::options::{DEFAULT_BASE_URL, OpenAiOptions, OpenAiOptionsError};
use self::{
    answer::{Chunk, Growing, Said},
    body::Body,
    options::{authorization, endpoint},
    quote::Quotes,
    request::{OwnParts, Shape},
};
use crate::{
    Answer, ModelError, ModelEvent, ModelInfo, ModelRequest, Piece, Voice,
    retry::{Failure, Vendor},
    sse,
};

/// The name of the wire format.
const FORMAT: &str = "openai-chat";

/// Largest answer of a server that does not stream, in bytes.
const MAX_DOCUMENT_BYTES: usize = sse::MAX_EVENT_BYTES;

/// Most of a refusal's body that is read, in bytes.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// The longest wait for the usage after the answer has ended.
const USAGE_WITHIN: Duration = Duration::from_secs(5);

/// The stream's end mark.
const DONE: &str = "[DONE]";

/// A model behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct OpenAi {
    options: OpenAiOptions,
    endpoint: Url,
    /// The address in messages: without its query, which may hold a secret.
    shown: String,
    origin: Origin,
    authorization: Option<HeaderValue>,
    quotes: Quotes,
    client: reqwest::Client,
    /// True once the server has refused `stream_options`.
    refuses_usage: AtomicBool,
}

impl OpenAi {
    /// A client for the server that the options name; nothing is sent yet.
    ///
    /// # Errors
    /// Fails if the address, the key or the model's name cannot be used.
    pub fn new(options: OpenAiOptions) -> Result<Self, OpenAiOptionsError> {
        if options.model.trim().is_empty() {
            return Err(OpenAiOptionsError::Model);
        }
        let endpoint = endpoint(&options.base_url)?;
        let authorization = options.key.as_ref().map(authorization).transpose()?;
        let shown = endpoint[..Position::AfterPath].to_owned();
        if authorization.is_some()
            && endpoint.scheme() == "http"
            && !endpoint.host_str().is_some_and(is_loopback_host)
        {
            tracing::warn!(
                model.url = shown,
                "the model's key travels unencrypted: use an https address"
            );
        }
        let mut client = reqwest::Client::builder()
            .user_agent(concat!("gantry/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .connect_timeout(options.connect_within);
        if endpoint.host_str().is_some_and(is_loopback_host) {
            client = client.no_proxy();
        }
        Ok(Self {
            client: client.build().map_err(OpenAiOptionsError::Client)?,
            quotes: Quotes::new(options.key.clone()),
            origin: Origin {
                format: FORMAT.to_owned(),
                account: endpoint[Position::BeforeHost..Position::AfterPort].to_owned(),
            },
            shown,
            options,
            endpoint,
            authorization,
            refuses_usage: AtomicBool::new(false),
        })
    }

    async fn ask(
        &self,
        request: &ModelRequest,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, Failure> {
        let mut shape = Shape {
            usage: !self.refuses_usage.load(Ordering::Relaxed),
            own: OwnParts::AsTheyCame,
        };
        let (response, first_byte_until) = loop {
            let first_byte_until = Instant::now() + self.options.first_byte_within;
            let response = self.send(request, &shape).await?;
            let status = response.status();
            if status.is_success() {
                break (response, first_byte_until);
            }
            let headers = response.headers().clone();
            let said = self.refusal_body(response).await;
            let refused = refusal::of_response(status, &headers, &said, &self.quotes);
            let other = match refused.error {
                ModelError::Refused(_) => adapt::after_refusal(shape, status, &said, request),
                _ => None,
            };
            let Some(other) = other else {
                return Err(refused);
            };
            tracing::debug!(?other, "the model server refuses a part of the request");
            self.refuses_usage.store(!other.usage, Ordering::Relaxed);
            shape = other;
        };
        if is_web_page(&response) {
            return Err(ModelError::Refused(format!(
                "{} answered with a web page: check OPENAI_BASE_URL (it usually ends in /v1)",
                self.shown
            ))
            .into());
        }
        let mut body = self.body(response)?;
        let left = first_byte_until.saturating_duration_since(Instant::now());
        let Some(first) = body.first(left).await? else {
            return Err(broken("the model server's answer is empty").into());
        };
        let within = self.options.answer_within;
        let tools = request.tools.iter().map(|tool| tool.name.clone());
        let growing = Growing::new(tools);
        let read = timeout(within, self.read(body, first, growing, events)).await;
        Ok(read.unwrap_or_else(|_| {
            Err(ModelError::TimedOut(format!(
                "the model did not finish its answer within {} s: ask for less at a time",
                within.as_secs_f32()
            )))
        })?)
    }

    async fn send(&self, request: &ModelRequest, shape: &Shape) -> Result<Response, ModelError> {
        let body = request::body(&self.options.model, request, shape);
        let trace = request.trace;
        let mut request = self.client.post(self.endpoint.clone()).json(&body);
        // A stream that is compressed on its way comes late and in lumps.
        request = request.header(ACCEPT_ENCODING, "identity");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(trace) = trace {
            request = request.header("traceparent", trace.own.to_string());
        }
        match timeout(self.options.first_byte_within, request.send()).await {
            Err(_) => Err(silent(&self.shown, self.options.first_byte_within)),
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(ModelError::Unavailable(format!(
                "the model server at {} cannot be reached ({}): check that it runs and that OPENAI_BASE_URL is right",
                self.shown,
                root_cause(&error)
            ))),
        }
    }

    fn body(&self, response: Response) -> Result<Body, ModelError> {
        let shown = self.shown.clone();
        Body::of(response, move |waited| silent(&shown, waited))
    }

    /// The body of a refusal, up to the part that arrives in time.
    async fn refusal_body(&self, response: Response) -> Vec<u8> {
        let mut said = Vec::new();
        let reading = async {
            let Ok(mut body) = self.body(response) else {
                return;
            };
            while let Ok(Some(chunk)) = body.next(self.options.idle_at_most).await {
                let room = MAX_REFUSAL_BYTES - said.len();
                said.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if chunk.len() >= room {
                    break;
                }
            }
        };
        let _ = timeout(self.options.idle_at_most, reading).await;
        said
    }

    async fn read(
        &self,
        body: Body,
        first: Bytes,
        growing: Growing,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        match first[..] {
            [b'{' | b'[', ..] => self.read_document(body, first, growing, events).await,
            _ => self.read_stream(body, first, growing, events).await,
        }
    }

    /// One document: the answer of a server that does not stream.
    async fn read_document(
        &self,
        mut body: Body,
        first: Bytes,
        mut growing: Growing,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let mut document = first.to_vec();
        while let Some(chunk) = body.next(self.options.idle_at_most).await? {
            document.extend_from_slice(&chunk);
            if document.len() > MAX_DOCUMENT_BYTES {
                return Err(broken("the model server's answer is too large"));
            }
        }
        let said = growing.absorb(self.chunk(json::parse(&document))?)?;
        say(said, events).await;
        conclude(growing, false, events).await
    }

    async fn read_stream(
        &self,
        mut body: Body,
        first: Bytes,
        mut growing: Growing,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let mut decoder = sse::Decoder::default();
        let mut next = Some(first);
        let mut usage_until = None;
        while let Some(chunk) = next {
            let pieces = decoder
                .push(&chunk)
                .map_err(|_| broken("the model server sent an event that is too large"))?;
            for event in pieces {
                if event.data.trim() == DONE {
                    return conclude(growing, true, events).await;
                }
                self.take(&mut growing, &event, events).await?;
            }
            next = if growing.has_ended() {
                let until = *usage_until.get_or_insert_with(|| Instant::now() + USAGE_WITHIN);
                let left = until.saturating_duration_since(Instant::now());
                body.next(left).await.unwrap_or(None)
            } else {
                body.next(self.options.idle_at_most).await?
            };
        }
        for last in decoder.finish() {
            if last.data.trim() == DONE {
                return conclude(growing, true, events).await;
            }
            match self.take(&mut growing, &last, events).await {
                // It was cut, and the missing end says so better.
                Ok(()) | Err(ModelError::Broken(_)) => {}
                Err(error) => return Err(error),
            }
        }
        conclude(growing, false, events).await
    }

    /// Takes an event into the answer. Once that is whole, nothing that follows can spoil it:
    /// only its usage is still to come.
    async fn take(
        &self,
        growing: &mut Growing,
        event: &sse::Event,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<(), ModelError> {
        match self.absorb(growing, event) {
            Ok(said) => {
                say(said, events).await;
                Ok(())
            }
            Err(_) if growing.has_ended() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn absorb(&self, growing: &mut Growing, event: &sse::Event) -> Result<Said, ModelError> {
        if event.data.trim().is_empty() {
            return Ok(Said::default());
        }
        if event.name == "error" {
            let said = json::parse(event.data.as_bytes())
                .unwrap_or_else(|_| Value::String(event.data.clone()));
            return Err(refusal::of_value(&said, &self.quotes));
        }
        let parsed = json::parse_piece(event.data.as_bytes(), &mut growing.half);
        growing.absorb(self.chunk(parsed)?)
    }

    fn chunk(&self, parsed: Result<Value, serde_json::Error>) -> Result<Chunk, ModelError> {
        let value = parsed
            .map_err(|error| broken(&format!("the model server sent broken JSON ({error})")))?;
        if let Some(error) = refusal::in_value(&value, &self.quotes) {
            return Err(error);
        }
        Chunk::of(value).map_err(|error| {
            broken(&format!(
                "the model server's answer does not have the form of OpenAI's ({error})"
            ))
        })
    }
}

#[async_trait]
impl Vendor for OpenAi {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            name: self.options.model.clone(),
            practice: false,
            origin: self.origin.clone(),
        }
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, Failure> {
        self.ask(request, events).await
    }
}

async fn say(said: Said, events: &mpsc::Sender<ModelEvent>) {
    // The answer is wanted also where no listener is left.
    let reasoning = (Voice::Reasoning, said.places.reasoning, said.reasoning);
    for (voice, part, text) in [reasoning, (Voice::Text, said.places.text, said.text)] {
        if let Some(part) = part
            && !text.is_empty()
        {
            let piece = Piece { part, voice, text };
            let _ = events.send(ModelEvent::Said(piece)).await;
        }
    }
}

async fn conclude(
    growing: Growing,
    announced: bool,
    events: &mpsc::Sender<ModelEvent>,
) -> Result<Answer, ModelError> {
    let (answer, rest) = growing.conclude(announced)?;
    say(rest, events).await;
    Ok(answer)
}

fn silent(shown: &str, waited: Duration) -> ModelError {
    ModelError::TimedOut(format!(
        "the model server at {shown} was silent for {} s: check that it is not overloaded, or let the server wait longer (first_byte_within_s and idle_at_most_s under [model] in gantry.toml)",
        waited.as_secs_f32()
    ))
}

fn is_web_page(response: &Response) -> bool {
    response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|kind| kind.starts_with("text/html"))
}

/// The innermost reason: the outer ones only repeat the address.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn broken(what: &str) -> ModelError {
    ModelError::Broken(format!(
        "{what}: if this repeats, look at the model server's log"
    ))
}

#[cfg(test)]
mod tests;
