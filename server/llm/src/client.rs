//! One attempt at an answer, in any wire format, over any [`Transport`].
//!
//! One attempt is one request. It ends well only where the server announced the answer's end;
//! every wait and everything that is read has a bound.

mod body;
mod http;
pub(crate) mod json;
mod options;
mod pauses;
mod quote;
mod reach;
mod refusal;
mod transport;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::{StatusCode, header::CONTENT_TYPE};
use serde_json::Value;
use shared_types::event::Origin;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};

use self::{body::ResponseBody, http::Http, quote::Quotes};
pub use self::{
    options::{DEFAULT_BASE_URL, Named, Reach, ServerOptions, ServerOptionsError},
    transport::{Reply, ReplyBody, Transport},
};
use crate::{
    Answer, ModelError, ModelEvent, ModelInfo, ModelRequest, Piece,
    formats::{AnswerBuilder as _, AnswerEnd, AnswerStage, Format, broken},
    sse,
    vendor::{Failure, Vendor},
};

/// Largest answer of a server that does not stream, in bytes.
const MAX_DOCUMENT_BYTES: usize = sse::MAX_EVENT_BYTES;

/// Most of a refusal's body that is read, in bytes.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// The longest wait for the usage after the answer has ended.
const USAGE_WITHIN: Duration = Duration::from_secs(5);

/// The end mark of a stream, where the format has one.
const DONE: &str = "[DONE]";

/// A model behind a server that speaks this format.
#[derive(Debug)]
pub(crate) struct Client<F: Format> {
    options: ServerOptions,
    /// The place of the server in messages.
    shown: String,
    origin: Origin,
    quotes: Quotes,
    transport: Arc<dyn Transport>,
    /// The form that is tried first: without the parts that this server has refused in any conversation.
    shape: Mutex<F::Shape>,
}

impl<F: Format> Client<F> {
    /// A client for the server that the options name; nothing is sent yet.
    ///
    /// # Errors
    /// Fails if the address, the key or the model's name cannot be used.
    pub(crate) fn new(options: ServerOptions) -> Result<Self, ServerOptionsError> {
        let http = Http::new::<F>(&options)?;
        let (shown, account) = (
            http.shown(),
            http.account(options.paid_by, options.account.as_deref()),
        );
        Self::of(options, shown, account, Arc::new(http))
    }

    /// A client for a server that this transport reaches. The options name no address but a place, for messages.
    ///
    /// # Errors
    /// Fails if the model's name is empty.
    pub(crate) fn over(
        options: ServerOptions,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, ServerOptionsError> {
        let shown = options.base_url.clone();
        Self::of(options, shown.clone(), shown, transport)
    }

    fn of(
        options: ServerOptions,
        shown: String,
        account: String,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, ServerOptionsError> {
        if options.profile.model.trim().is_empty() {
            return Err(ServerOptionsError::Model(options.named.model));
        }
        Ok(Self {
            quotes: Quotes::new(options.key.clone(), options.named.clone()),
            origin: Origin {
                format: F::NAME.to_owned(),
                account,
            },
            shown,
            options,
            transport,
            shape: Mutex::new(F::Shape::default()),
        })
    }

    /// Asks once. `said_before` is the number of parts that earlier pieces of the answer showed.
    async fn ask(
        &self,
        request: &ModelRequest,
        events: &mpsc::Sender<ModelEvent>,
        said_before: u32,
    ) -> Result<ReceivedAnswer, Failure> {
        let began = Instant::now();
        let (response, first_byte_until) = self.accepted(request).await?;
        if is_web_page(&response) {
            return Err(ModelError::Refused(format!(
                "{} answered with a web page: check {} (it usually ends in /v1)",
                self.shown, self.options.named.address
            ))
            .into());
        }
        let mut body = self.body(response)?;
        let left = first_byte_until.saturating_duration_since(Instant::now());
        let Some(first) = body.first(left).await? else {
            return Err(broken("the model server's answer is empty").into());
        };
        let first_byte = began.elapsed();
        let within = self.options.answer_within;
        let reading = AnswerReader::<F>::of(self, request, events, said_before);
        let read = timeout(within, reading.read(body, first)).await;
        let mut heard = read.unwrap_or_else(|_| {
            Err(ModelError::TimedOut(format!(
                "the model did not finish its answer within {} s: ask for less at a time",
                within.as_secs_f32()
            )))
        })?;
        heard.answer.first_byte = Some(first_byte);
        Ok(heard)
    }

    /// The response of a server that takes the request, and the time until which its first byte may come. A part that
    /// the server refuses is left out, or added, and the server is asked again.
    async fn accepted(&self, request: &ModelRequest) -> Result<(Reply, Instant), Failure> {
        let mut shape = *self.shape.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let first_byte_until = Instant::now() + self.options.first_byte_within;
            let response = self.send(request, shape).await?;
            let status = response.status;
            if status.is_success() {
                return Ok((response, first_byte_until));
            }
            let headers = response.headers.clone();
            let said = self.refusal_body(response).await;
            let refused = refusal::of_response(status, &headers, &said, &self.quotes);
            let is_about_the_form = matches!(refused.error, ModelError::Refused(_))
                && matches!(
                    status,
                    StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY
                );
            let other = is_about_the_form
                .then(|| String::from_utf8_lossy(&said).to_lowercase())
                .and_then(|said| F::after_refusal(shape, &said, request));
            let Some(other) = other else {
                return Err(refused);
            };
            tracing::debug!(?other, "the model server refuses a part of the request");
            *self.shape.lock().unwrap_or_else(PoisonError::into_inner) = F::remembered(other);
            shape = other;
        }
    }

    async fn send(&self, request: &ModelRequest, shape: F::Shape) -> Result<Reply, Failure> {
        let body = F::body(&self.options.profile, request, shape);
        let trace = request.trace.map(|trace| trace.own);
        let sending = self.transport.send(body, trace);
        let within = self.options.first_byte_within;
        let sent = timeout(within, sending).await;
        sent.unwrap_or_else(|_| Err(silent(&self.shown, within).into()))
    }

    fn body(&self, response: Reply) -> Result<ResponseBody, ModelError> {
        let shown = self.shown.clone();
        ResponseBody::of(response, move |waited| silent(&shown, waited))
    }

    /// The body of a refusal, up to the part that arrives in time.
    async fn refusal_body(&self, response: Reply) -> Vec<u8> {
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
}

#[async_trait]
impl<F: Format> Vendor for Client<F> {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            name: self.options.profile.model.clone(),
            practice: false,
            origin: self.origin.clone(),
            profile: self.options.profile.clone(),
            paid_by: self.options.paid_by,
        }
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, Failure> {
        self.whole_answer(request, events).await
    }
}

/// The answer to one request.
struct ReceivedAnswer {
    answer: Answer,
    /// True if the vendor has only paused.
    is_paused: bool,
}

/// The reading of one answer.
struct AnswerReader<'a, F: Format> {
    client: &'a Client<F>,
    growing: F::Growing,
    events: &'a mpsc::Sender<ModelEvent>,
    /// The parts that earlier pieces of the answer showed.
    said_before: u32,
    /// The first half of a character whose second half is still to come.
    half: Option<u32>,
}

impl<'a, F: Format> AnswerReader<'a, F> {
    fn of(
        client: &'a Client<F>,
        request: &ModelRequest,
        events: &'a mpsc::Sender<ModelEvent>,
        said_before: u32,
    ) -> Self {
        Self {
            client,
            growing: F::growing(request),
            events,
            said_before,
            half: None,
        }
    }

    async fn read(self, body: ResponseBody, first: Bytes) -> Result<ReceivedAnswer, ModelError> {
        match first[..] {
            [b'{' | b'[', ..] => self.read_document(body, first).await,
            _ => self.read_stream(body, first).await,
        }
    }

    /// One document: the answer of a server that does not stream.
    async fn read_document(
        mut self,
        mut body: ResponseBody,
        first: Bytes,
    ) -> Result<ReceivedAnswer, ModelError> {
        let mut document = first.to_vec();
        while let Some(chunk) = body.next(self.client.options.idle_at_most).await? {
            document.extend_from_slice(&chunk);
            if document.len() > MAX_DOCUMENT_BYTES {
                return Err(broken("the model server's answer is too large"));
            }
        }
        let said = self.absorb(json::parse(&document))?;
        self.say(said).await;
        self.conclude(false).await
    }

    async fn read_stream(
        mut self,
        mut body: ResponseBody,
        first: Bytes,
    ) -> Result<ReceivedAnswer, ModelError> {
        let mut decoder = sse::Decoder::default();
        let mut next = Some(first);
        let mut usage_until = None;
        while let Some(chunk) = next {
            let pieces = decoder
                .push(&chunk)
                .map_err(|_| broken("the model server sent an event that is too large"))?;
            for event in pieces {
                if event.data.trim() == DONE {
                    return self.conclude(true).await;
                }
                self.take(&event).await?;
            }
            next = match self.growing.stage() {
                AnswerStage::Over => return self.conclude(true).await,
                AnswerStage::Ended => {
                    let until = *usage_until.get_or_insert_with(|| Instant::now() + USAGE_WITHIN);
                    let left = until.saturating_duration_since(Instant::now());
                    body.next(left).await.unwrap_or(None)
                }
                AnswerStage::Open => body.next(self.client.options.idle_at_most).await?,
            };
        }
        for last in decoder.finish() {
            if last.data.trim() == DONE {
                return self.conclude(true).await;
            }
            match self.take(&last).await {
                // It was cut, and the missing end says so better.
                Ok(()) | Err(ModelError::Broken(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.conclude(false).await
    }

    /// Takes an event into the answer. Once that is whole, nothing that follows can spoil it:
    /// only its usage is still to come.
    async fn take(&mut self, event: &sse::SseEvent) -> Result<(), ModelError> {
        match self.absorb_event(event) {
            Ok(said) => {
                self.say(said).await;
                Ok(())
            }
            Err(_) if self.growing.stage() != AnswerStage::Open => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn absorb_event(&mut self, event: &sse::SseEvent) -> Result<Vec<Piece>, ModelError> {
        if event.data.trim().is_empty() {
            return Ok(Vec::new());
        }
        if event.name == "error" {
            let said = json::parse(event.data.as_bytes())
                .unwrap_or_else(|_| Value::String(event.data.clone()));
            return Err(refusal::of_value(&said, &self.client.quotes));
        }
        let parsed = json::parse_piece(event.data.as_bytes(), &mut self.half);
        self.absorb(parsed)
    }

    fn absorb(
        &mut self,
        parsed: Result<Value, serde_json::Error>,
    ) -> Result<Vec<Piece>, ModelError> {
        let value = parsed
            .map_err(|error| broken(&format!("the model server sent broken JSON ({error})")))?;
        if let Some(error) = refusal::in_value(&value, &self.client.quotes) {
            return Err(error);
        }
        self.growing.absorb(value)
    }

    async fn say(&self, said: Vec<Piece>) {
        say(self.events, self.said_before, said).await;
    }

    async fn conclude(self, announced: bool) -> Result<ReceivedAnswer, ModelError> {
        let end = AnswerEnd {
            announced,
            torn: self.half.is_some(),
        };
        let is_paused = self.growing.is_paused();
        let (answer, rest) = self.growing.conclude(end)?;
        say(self.events, self.said_before, rest).await;
        Ok(ReceivedAnswer { answer, is_paused })
    }
}

/// Passes pieces on, each under its place in the whole answer. The answer is wanted also where no listener is left.
async fn say(events: &mpsc::Sender<ModelEvent>, said_before: u32, said: Vec<Piece>) {
    for piece in said {
        let piece = Piece {
            part: said_before + piece.part,
            ..piece
        };
        let _ = events.send(ModelEvent::Said(piece)).await;
    }
}

fn silent(shown: &str, waited: Duration) -> ModelError {
    ModelError::TimedOut(format!(
        "the model server at {shown} was silent for {} s: check that it is not overloaded, or let the server wait longer (first_byte_within_s and idle_at_most_s under [model] in gantry.toml)",
        waited.as_secs_f32()
    ))
}

fn is_web_page(response: &Reply) -> bool {
    response
        .headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|kind| kind.starts_with("text/html"))
}

#[cfg(test)]
mod tests;
