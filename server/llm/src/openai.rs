//! OpenAI's Chat Completions API, streaming, as OpenAI and many other servers speak it.
//!
//! One attempt is one request. It ends well only where the server announced the answer's end;
//! every wait and everything that is read has a bound. Redirects are not followed: the key goes
//! to the configured address only. Proxies are those of the standard variables (`HTTPS_PROXY`,
//! `NO_PROXY`), which the HTTP client reads itself; a server on this machine is never asked
//! through one.

mod answer;
mod options;
mod quote;
mod refusal;
mod request;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::{
    Response,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue},
    redirect,
};
use serde_json::Value;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use url::{Position, Url};

pub use self::options::{DEFAULT_BASE_URL, OpenAiOptions, OpenAiOptionsError};
use self::{
    answer::{Growing, MAX_ANSWER_BYTES, Piece},
    options::{authorization, endpoint, is_loopback},
    quote::Quotes,
};
use crate::{
    Answer, ModelError, ModelEvent, ModelInfo, ModelRequest,
    retry::{Failure, Vendor},
    sse,
};

/// Most of a refusal's body that is read, in bytes.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// How long the usage may still take after the answer has ended.
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
    authorization: Option<HeaderValue>,
    quotes: Quotes,
    client: reqwest::Client,
}

impl OpenAi {
    /// A client for the server that the options name; nothing is sent yet.
    ///
    /// # Errors
    /// If the address, the key or the model's name cannot be used.
    pub fn new(options: OpenAiOptions) -> Result<Self, OpenAiOptionsError> {
        if options.model.trim().is_empty() {
            return Err(OpenAiOptionsError::Model);
        }
        let endpoint = endpoint(&options.base_url)?;
        let authorization = options.key.as_ref().map(authorization).transpose()?;
        let shown = endpoint[..Position::AfterPath].to_owned();
        if authorization.is_some() && endpoint.scheme() == "http" && !is_loopback(&endpoint) {
            tracing::warn!(
                model.url = shown,
                "the model's key travels unencrypted: use an https address"
            );
        }
        let mut client = reqwest::Client::builder()
            .user_agent(concat!("gantry/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .connect_timeout(options.connect_within);
        if is_loopback(&endpoint) {
            client = client.no_proxy();
        }
        Ok(Self {
            client: client.build().map_err(OpenAiOptionsError::Client)?,
            quotes: Quotes::new(options.key.clone()),
            shown,
            options,
            endpoint,
            authorization,
        })
    }

    async fn ask(
        &self,
        request: &ModelRequest,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, Failure> {
        let response = self.send(request).await?;
        let status = response.status();
        if !status.is_success() {
            let headers = response.headers().clone();
            let body = self.refusal_body(response).await;
            return Err(refusal::of_response(status, &headers, &body, &self.quotes));
        }
        if is_web_page(&response) {
            return Err(ModelError::Refused(format!(
                "{} answered with a web page: check OPENAI_BASE_URL (it usually ends in /v1)",
                self.shown
            ))
            .into());
        }
        Ok(self.read(response, events).await?)
    }

    async fn send(&self, request: &ModelRequest) -> Result<Response, ModelError> {
        let body = request::body(&self.options.model, request);
        let mut request = self.client.post(self.endpoint.clone()).json(&body);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        match timeout(self.options.first_byte_within, request.send()).await {
            Err(_) => Err(self.silent(self.options.first_byte_within)),
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(ModelError::Unavailable(format!(
                "the model server at {} cannot be reached ({}): check that it runs and that OPENAI_BASE_URL is right",
                self.shown,
                root_cause(&error)
            ))),
        }
    }

    /// What a refusal says, as far as it arrives in time.
    async fn refusal_body(&self, mut response: Response) -> Vec<u8> {
        let mut body = Vec::new();
        let reading = async {
            while let Ok(Some(chunk)) = response.chunk().await {
                let room = MAX_REFUSAL_BYTES - body.len();
                body.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if chunk.len() >= room {
                    break;
                }
            }
        };
        let _ = timeout(self.options.idle_at_most, reading).await;
        body
    }

    async fn read(
        &self,
        response: Response,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let mut body = Body {
            response,
            vendor: self,
        };
        let Some(first) = body.first().await? else {
            return Err(broken("the model server's answer is empty"));
        };
        if first.trim_ascii_start().starts_with(b"{") {
            return self.read_document(body, first, events).await;
        }
        self.read_stream(body, first, events).await
    }

    /// One document: the answer of a server that does not stream.
    async fn read_document(
        &self,
        mut body: Body<'_>,
        first: Bytes,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let mut document = first.to_vec();
        while let Some(chunk) = body.next(self.options.idle_at_most).await? {
            document.extend_from_slice(&chunk);
            if document.len() > MAX_ANSWER_BYTES {
                return Err(broken("the model server's answer is too large"));
            }
        }
        let mut growing = Growing::default();
        let text = growing.absorb(self.piece(&document)?)?;
        say(text, events).await;
        growing.conclude(false)
    }

    async fn read_stream(
        &self,
        mut body: Body<'_>,
        first: Bytes,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let mut decoder = sse::Decoder::default();
        let mut growing = Growing::default();
        let mut next = Some(first);
        let mut usage_until = None;
        while let Some(chunk) = next {
            let pieces = decoder
                .push(&chunk)
                .map_err(|_| broken("the model server sent an event that is too large"))?;
            for event in pieces {
                if event.data.trim() == DONE {
                    return growing.conclude(true);
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
        let Some(last) = decoder.finish() else {
            return growing.conclude(false);
        };
        let announced = last.data.trim() == DONE;
        if !announced {
            match self.take(&mut growing, &last, events).await {
                // It was cut, and the missing end says so better.
                Ok(()) | Err(ModelError::Broken(_)) => {}
                Err(error) => return Err(error),
            }
        }
        growing.conclude(announced)
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
            Ok(text) => {
                say(text, events).await;
                Ok(())
            }
            Err(_) if growing.has_ended() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn silent(&self, waited: Duration) -> ModelError {
        ModelError::TimedOut(format!(
            "the model server at {} was silent for {} s: try again, or check that it is not overloaded",
            self.shown,
            waited.as_secs_f32()
        ))
    }

    fn absorb(&self, growing: &mut Growing, event: &sse::Event) -> Result<String, ModelError> {
        if event.data.trim().is_empty() {
            return Ok(String::new());
        }
        if event.name == "error" {
            let said = serde_json::from_str(&event.data)
                .unwrap_or_else(|_| Value::String(event.data.clone()));
            return Err(refusal::of_value(&said, &self.quotes));
        }
        growing.absorb(self.piece(event.data.as_bytes())?)
    }

    fn piece(&self, json: &[u8]) -> Result<Piece, ModelError> {
        let value: Value = serde_json::from_slice(json)
            .map_err(|error| broken(&format!("the model server sent broken JSON ({error})")))?;
        if let Some(error) = refusal::in_value(&value, &self.quotes) {
            return Err(error);
        }
        serde_json::from_value(value).map_err(|error| {
            broken(&format!(
                "the model server's answer does not have the form of OpenAI's ({})",
                self.quotes.line(&error.to_string())
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
        }
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, Failure> {
        let within = self.options.answer_within;
        let asking = self.ask(request, events);
        timeout(within, asking).await.unwrap_or_else(|_| {
            Err(Failure::from(ModelError::TimedOut(format!(
                "the model did not finish its answer within {} s: ask for less at a time",
                within.as_secs_f32()
            ))))
        })
    }
}

/// The bytes of a response, each wait bounded.
struct Body<'a> {
    response: Response,
    vendor: &'a OpenAi,
}

impl Body<'_> {
    /// The first bytes that are more than white space.
    async fn first(&mut self) -> Result<Option<Bytes>, ModelError> {
        loop {
            match self.next(self.vendor.options.idle_at_most).await? {
                Some(bytes) if bytes.trim_ascii().is_empty() => {}
                other => return Ok(other),
            }
        }
    }

    async fn next(&mut self, within: Duration) -> Result<Option<Bytes>, ModelError> {
        match timeout(within, self.response.chunk()).await {
            Err(_) => Err(self.vendor.silent(within)),
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) => Err(broken(&format!(
                "the connection to the model server broke off in mid-answer ({})",
                root_cause(&error)
            ))),
        }
    }
}

async fn say(text: String, events: &mpsc::Sender<ModelEvent>) {
    if !text.is_empty() {
        // Nobody has to listen for the answer to be wanted.
        let _ = events.send(ModelEvent::Text(text)).await;
    }
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
