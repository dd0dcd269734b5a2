//! The wire formats: how a conversation is written for a vendor, and how the vendor's answer is read.
//!
//! Each format is a folder of the same three rooms: `request` writes the body, `stream` reads the answer as it grows,
//! and `refusal` tells how a request changes after a server has refused a part of it. All that concerns HTTP stands
//! once, in [`Client`](crate::client::Client).

mod chat;
mod conversation;
mod gemini;
mod messages;
mod responses;
mod seen;

use std::{fmt, str::FromStr, sync::Arc};

use reqwest::header::{HeaderMap, HeaderValue, InvalidHeaderValue};
use serde_json::Value;
use url::Url;

pub(crate) use self::{
    chat::Chat,
    conversation::{bare_name, id_of_ours},
    gemini::Gemini,
    messages::Messages,
    responses::Responses,
};
use crate::{
    Answer, ApiKey, ModelError, ModelRequest, Piece, Profile, ServerOptions, ServerOptionsError,
    ToolCalls, Transport, Vendor, client::Client, layers::text_calls::TextCalls,
};

/// Largest answer with all its parts, in bytes.
pub(crate) const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// Most tool calls in one answer.
pub(crate) const MAX_CALLS: usize = 128;

/// A wire format, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WireFormat {
    /// OpenAI's Chat Completions API, as many servers speak it.
    OpenAiChat,
    /// OpenAI's Responses API.
    OpenAiResponses,
    /// Google's Gemini API.
    Gemini,
    /// Anthropic's Messages API.
    AnthropicMessages,
}

impl WireFormat {
    /// All formats.
    pub const ALL: &[Self] = &[
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::AnthropicMessages,
        Self::Gemini,
    ];

    /// The name of the format, in settings and in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => Chat::NAME,
            Self::OpenAiResponses => Responses::NAME,
            Self::Gemini => Gemini::NAME,
            Self::AnthropicMessages => Messages::NAME,
        }
    }

    /// The names of all formats, for people.
    pub fn names() -> String {
        let names: Vec<_> = Self::ALL.iter().map(|format| format.name()).collect();
        names.join(", ")
    }
}

impl fmt::Display for WireFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for WireFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.iter().copied();
        all.find(|format| format.name() == name)
            .ok_or(UnknownFormat)
    }
}

/// No wire format has this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no wire format has that name; there are: {}", WireFormat::names())]
pub struct UnknownFormat;

/// The model behind a server that speaks this format; nothing is sent yet. Where the model is not known to call tools
/// natively, its calls are also found in its text.
///
/// # Errors
/// If the address, the key or the model's name cannot be used.
pub fn vendor(
    format: WireFormat,
    options: ServerOptions,
) -> Result<Arc<dyn Vendor>, ServerOptionsError> {
    let profile = options.profile.clone();
    let vendor: Arc<dyn Vendor> = match format {
        WireFormat::OpenAiChat => Arc::new(Client::<Chat>::new(options)?),
        WireFormat::OpenAiResponses => Arc::new(Client::<Responses>::new(options)?),
        WireFormat::Gemini => Arc::new(Client::<Gemini>::new(options)?),
        WireFormat::AnthropicMessages => Arc::new(Client::<Messages>::new(options)?),
    };
    Ok(finding_calls(&profile, vendor))
}

/// The same model; its calls are also found in its text, where it is not known to call tools natively.
fn finding_calls(profile: &Profile, vendor: Arc<dyn Vendor>) -> Arc<dyn Vendor> {
    match profile.tools {
        ToolCalls::Native => vendor,
        ToolCalls::Unknown | ToolCalls::Text => Arc::new(TextCalls::new(vendor)),
    }
}

/// The model behind a server of Chat Completions that is reached in another way than over HTTP. In the options the
/// address is the name of the place, for messages.
///
/// # Errors
/// If the model's name is empty.
pub fn chat_over(
    options: ServerOptions,
    transport: Arc<dyn Transport>,
) -> Result<Arc<dyn Vendor>, ServerOptionsError> {
    let profile = options.profile.clone();
    let vendor = Arc::new(Client::<Chat>::over(options, transport)?);
    Ok(finding_calls(&profile, vendor))
}

/// The format of a vendor: writes its requests and reads its answers.
pub(crate) trait Format: fmt::Debug + Send + Sync + 'static {
    /// The name of the format.
    const NAME: &'static str;

    /// The optional parts of a request, which some servers refuse. The default is the form that is tried first.
    type Shape: Copy + Default + PartialEq + fmt::Debug + Send + Sync;

    /// An answer that grows.
    type Growing: AnswerBuilder;

    /// The address of the request, below the base address of the server.
    fn endpoint(base: Url, model: &str) -> Url;

    /// The headers that carry the key, and those that the format demands.
    ///
    /// # Errors
    /// If the key has a character that no header can carry.
    fn headers(key: Option<&ApiKey>) -> Result<HeaderMap, InvalidHeaderValue>;

    /// The body of the request, as JSON. Constant parts come before growing ones. So a request begins like the one
    /// before it, and a vendor's cache of prefixes applies.
    fn body(profile: &Profile, request: &ModelRequest, shape: Self::Shape) -> Vec<u8>;

    /// The form of the next attempt after this refusal; `None` if the refusal is not about the form. `said` is the
    /// body of the refusal, in lower case.
    fn after_refusal(shape: Self::Shape, said: &str, request: &ModelRequest)
    -> Option<Self::Shape>;

    /// The part of this form that holds for every conversation with the server.
    fn remembered(shape: Self::Shape) -> Self::Shape;

    /// An answer to this request.
    fn growing(request: &ModelRequest) -> Self::Growing;
}

/// An answer that grows from the pieces of a stream.
pub(crate) trait AnswerBuilder: Send + Sync {
    /// Takes one piece, the data of an event; returns its additions.
    ///
    /// # Errors
    /// If the answer outgrows its bounds, broke off, was withheld, or has not the form of the format.
    fn absorb(&mut self, piece: Value) -> Result<Vec<Piece>, ModelError>;

    /// The point that the answer has reached.
    fn stage(&self) -> AnswerStage;

    /// True if the vendor has only paused: it goes on once it is sent back its answer so far.
    fn is_paused(&self) -> bool {
        false
    }

    /// The answer, and the additions that were not returned before.
    ///
    /// # Errors
    /// If the end was never announced, or if nothing that counts was said.
    fn conclude(self, end: AnswerEnd) -> Result<(Answer, Vec<Piece>), ModelError>;
}

/// The point that a growing answer has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerStage {
    /// More of it follows.
    Open,
    /// The answer has ended; its usage may follow.
    Ended,
    /// Nothing follows.
    Over,
}

/// The end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerEnd {
    /// True if the stream's own end mark was seen.
    pub(crate) announced: bool,
    /// True if the first half of a character had come, and not its second half.
    pub(crate) torn: bool,
}

/// The JSON of a body.
pub(crate) fn to_json(body: &impl serde::Serialize) -> Vec<u8> {
    // Maps with keys that are text, and no type with a failing `Serialize`.
    serde_json::to_vec(body).unwrap_or_default()
}

/// The header `authorization` with the key.
pub(crate) fn bearer(key: Option<&ApiKey>) -> Result<HeaderMap, InvalidHeaderValue> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        headers.insert(
            reqwest::header::AUTHORIZATION,
            secret(&format!("Bearer {}", key.reveal()))?,
        );
    }
    Ok(headers)
}

/// The value of a header that is not shown.
pub(crate) fn secret(text: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(text)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The address with these segments behind its path.
pub(crate) fn below(mut base: Url, segments: &[&str]) -> Url {
    if let Ok(mut path) = base.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    base
}

/// A number of tokens; any other value counts as zero.
pub(crate) fn tokens(value: &Value) -> u64 {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    // The conversion saturates: negative numbers and NaN become zero.
    value
        .as_u64()
        .unwrap_or_else(|| number.unwrap_or(0.0).round() as u64)
}

/// The error for an answer that makes no sense.
pub(crate) fn broken(what: &str) -> ModelError {
    ModelError::Broken(format!(
        "{what}: if this repeats, look at the model server's log"
    ))
}

/// The error for an answer that does not have the form of its format.
pub(crate) fn malformed(format: &str, what: &dyn fmt::Display) -> ModelError {
    broken(&format!(
        "the model server's answer does not have the form of {format} ({what})"
    ))
}

/// The error for an answer that is too large.
pub(crate) fn too_large() -> ModelError {
    ModelError::Refused(format!(
        "the model's answer is larger than {} MiB: ask for less at a time",
        MAX_ANSWER_BYTES / (1024 * 1024)
    ))
}

/// The error for an answer with too many calls.
pub(crate) fn too_many_calls() -> ModelError {
    broken(&format!(
        "the answer asks for more than {MAX_CALLS} tools at once"
    ))
}
