//! The meaning of a server's refusal, and the remedy for the user.
//!
//! Servers agree on little: the reason may be the status, a code, a type or only words. The most
//! specific one wins.

use std::time::Duration;

use chrono::DateTime;
use reqwest::{
    StatusCode,
    header::{DATE, HeaderMap, RETRY_AFTER},
};
use serde_json::Value;

use super::{Named, json, quote::Quotes};
use crate::{ModelError, vendor::Failure};

/// A refusal by status, headers and body.
pub(super) fn of_response(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    quotes: &Quotes,
) -> Failure {
    let said = match json::parse(body) {
        Ok(value) => RefusalWords::of(&value, quotes),
        Err(_) if looks_like_html(body) => RefusalWords::default(),
        Err(_) => RefusalWords {
            message: quotes.line(&String::from_utf8_lossy(body)),
            ..RefusalWords::default()
        },
    };
    let error = classify(Some(status), &said, &quotes.named);
    Failure {
        retry_after: retry_after(headers).or(said.retry_after),
        is_unasked: false,
        error,
    }
}

/// The error object in a body or an event that is otherwise a success; `None` where there is none.
pub(super) fn in_value(value: &Value, quotes: &Quotes) -> Option<ModelError> {
    let choices = value["choices"].as_array().into_iter().flatten();
    let items = value.as_array().into_iter().flatten();
    // A response of OpenAI's that failed stands inside of the event that tells it.
    let whole = [value, &value["response"]].into_iter();
    let places = whole.chain(items).chain(choices);
    let errors = places.filter(|place| {
        let is_named = |name: &str| place[name].as_str() == Some("error");
        says_something(&place["error"]) || is_named("object") || is_named("type")
    });
    errors.map(|place| of_value(place, quotes)).next()
}

/// True if the value is more than an empty form, which some servers send with each answer.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_error) => *is_error,
        Value::Number(code) => code.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => items.iter().any(says_something),
        Value::Object(fields) => fields.values().any(says_something),
    }
}

/// The error that an event named `error` reports.
pub(super) fn of_value(value: &Value, quotes: &Quotes) -> ModelError {
    let said = RefusalWords::of(value, quotes);
    let status = said
        .code
        .parse()
        .ok()
        .and_then(|code| StatusCode::from_u16(code).ok())
        .filter(|status| status.is_client_error() || status.is_server_error());
    classify(status, &said, &quotes.named)
}

/// A server's words about its refusal; empty if there are none.
#[derive(Debug, Default)]
struct RefusalWords {
    code: String,
    kind: String,
    /// Google's name of the code, such as `RESOURCE_EXHAUSTED`.
    status: String,
    message: String,
    retry_after: Option<Duration>,
    /// True if a quota is used up that lasts longer than a retry can wait.
    is_spent: bool,
}

impl RefusalWords {
    /// From `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`, or a list with
    /// one of these, as Google sends it.
    fn of(value: &Value, quotes: &Quotes) -> Self {
        let value = value.get(0).unwrap_or(value);
        let error = match value.get("error") {
            Some(error) if !error.is_null() => error,
            _ => value,
        };
        let field = |name: &str| match error.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        let message = match error {
            Value::String(text) => text.clone(),
            _ => [field("message"), field("detail")]
                .into_iter()
                .find(|text| !text.is_empty())
                .unwrap_or_default(),
        };
        Self {
            code: field("code"),
            kind: field("type"),
            status: field("status"),
            message: quotes.line(&message),
            retry_after: retry_delay(error),
            is_spent: is_spent(error),
        }
    }

    fn names(&self, names: &[&str]) -> bool {
        let said = [&self.code, &self.kind, &self.status];
        said.iter().any(|said| names.contains(&said.as_str()))
    }

    fn speaks_of(&self, words: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        words.iter().any(|words| message.contains(words))
    }

    /// The status and the server's words in brackets, to stand behind ours.
    fn detail(&self, status: Option<StatusCode>) -> String {
        let words = self.message.trim_end_matches('.');
        match status.map(|status| status.as_u16()) {
            None if words.is_empty() => String::new(),
            None => format!(" ({words})"),
            Some(code) if words.is_empty() => format!(" (status {code})"),
            Some(code) => format!(" (status {code}: {words})"),
        }
    }
}

fn classify(status: Option<StatusCode>, said: &RefusalWords, named: &Named) -> ModelError {
    let code = status.map_or(0, |status| status.as_u16());
    let detail = said.detail(status);
    let client_side = status.is_none_or(|status| status.is_client_error());
    let is_spent = said.is_spent || client_side && said.speaks_of(QUOTA_WORDS);
    if code == 402 || said.names(QUOTA) || is_spent {
        return ModelError::QuotaExhausted(format!(
            "the model account has no quota left{detail}: check its plan and billing, or use another key"
        ));
    }
    if code == 413 || said.names(OVERFLOW) || client_side && said.speaks_of(OVERFLOW_WORDS) {
        return ModelError::Overflow(format!(
            "the conversation is too long for the model{detail}: start a new session, or use a model with a larger context"
        ));
    }
    match code {
        401 | 403 => unauthenticated(&detail, named),
        400 if said.names(UNAUTHENTICATED) || said.speaks_of(UNAUTHENTICATED_WORDS) => {
            unauthenticated(&detail, named)
        }
        404 => ModelError::Refused(format!(
            "the model server does not know the model or the address{detail}: check the model's name ({}) and the address ({} usually ends in /v1)",
            named.model, named.address
        )),
        408 => timed_out(&detail),
        429 => rate_limited(&detail),
        // With 499 Google says that it cancelled the request itself.
        409 | 425 | 499 | 500..=599 => unavailable(&detail),
        400..=499 => refused(&detail, named),
        300..=399 => ModelError::Refused(format!(
            "the model server redirects elsewhere{detail}: set {} to the final address",
            named.address
        )),
        0 if said.names(UNAUTHENTICATED) => unauthenticated(&detail, named),
        0 if said.names(RATE_LIMITED) => rate_limited(&detail),
        0 if said.names(TIMED_OUT) => timed_out(&detail),
        0 if said.names(REFUSED) => refused(&detail, named),
        0 => unavailable(&detail),
        _ => ModelError::Broken(format!(
            "the model server answered unexpectedly{detail}: check that {} is the address of a model server",
            named.address
        )),
    }
}

const QUOTA: &[&str] = &[
    "insufficient_quota",
    "quota_exceeded",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_balance",
    "insufficient_credits",
    "billing_error",
];
/// Of vendors that refuse an account without means with status 400.
const QUOTA_WORDS: &[&str] = &[
    "credit balance is too low",               // Anthropic
    "reached your specified api usage limits", // Anthropic, of a limit that the owner has set
    // Of Google, where a quota of a minute has the same code.
    "limit: 0,", // of a model that the plan does not have
    "credits are depleted",
    "spending cap",
];
const OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "context_window_exceeded",
    "exceed_context_size_error",
    "model_context_window_exceeded",
    "request_too_large",
];
/// OpenAI, DeepSeek, Mistral and OpenRouter say "maximum context length"; the others stand
/// beside their words.
const OVERFLOW_WORDS: &[&str] = &[
    "maximum context length",
    "context length exceeded",
    "context length of only",                 // LM Studio
    "context length is only",                 // vLLM
    "longer than the model's context length", // Together
    "more than max tokens allowed",           // Zhipu
    "request too large for",                  // OpenAI, of tokens in a minute
    "exceeds the context",
    "exceed context limit",               // Anthropic, with max_tokens
    "exceeds the available context size", // llama.cpp
    "context window",
    "prompt is too long",                   // Anthropic
    "prompt exceeds max length",            // Zhipu
    "input is too long",                    // Bedrock
    "range of input length",                // Qwen
    "maximum prompt length",                // xAI
    "exceeds the maximum number of tokens", // Gemini
    "request payload size exceeds",         // Gemini
    "exceeded model token limit",           // Moonshot
    "prompt token count",                   // GitHub
    "too many tokens: total",               // Cohere
    "reduce the length of the messages",    // Groq
];
const UNAUTHENTICATED: &[&str] = &[
    "invalid_api_key",
    "authentication_error",
    "permission_error",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
];
/// Of servers that refuse a key with status 400.
const UNAUTHENTICATED_WORDS: &[&str] = &[
    "api key not valid", // Gemini
    "api key expired",
    "api key not found",
    "invalid api key",
    "invalid api-key",   // Qwen
    "incorrect api key", // xAI
];
const TIMED_OUT: &[&str] = &["timeout_error"];
const RATE_LIMITED: &[&str] = &[
    "rate_limit_exceeded",
    "rate_limit_error",
    "RESOURCE_EXHAUSTED",
];
const REFUSED: &[&str] = &[
    "invalid_request_error",
    "model_not_found",
    "not_found_error",
    "INVALID_ARGUMENT",
    "FAILED_PRECONDITION",
    "NOT_FOUND",
    // The codes of a response of OpenAI's that failed.
    "invalid_prompt",
    "data_residency_mismatch",
    "bio_policy",
    "misalignment_policy_violation",
    "invalid_image",
    "invalid_image_format",
    "invalid_base64_image",
    "image_too_large",
    "image_parse_error",
    "image_content_policy_violation",
    "unsupported_image_media_type",
];

fn unauthenticated(detail: &str, named: &Named) -> ModelError {
    ModelError::Unauthenticated(format!(
        "the model server does not accept the key{detail}: check {} and that it belongs to {}",
        named.key, named.address
    ))
}

fn rate_limited(detail: &str) -> ModelError {
    ModelError::RateLimited(format!(
        "the model server is asked too often{detail}: wait a minute, or raise the account's limits"
    ))
}

fn timed_out(detail: &str) -> ModelError {
    ModelError::TimedOut(format!(
        "the model server gave up waiting{detail}: try again"
    ))
}

fn unavailable(detail: &str) -> ModelError {
    ModelError::Unavailable(format!(
        "the model server has trouble of its own{detail}: try again later"
    ))
}

fn refused(detail: &str, named: &Named) -> ModelError {
    ModelError::Refused(format!(
        "the model server refuses the request{detail}: check that the model ({}) can use tools and that {} is right",
        named.model, named.address
    ))
}

/// The wait that the headers demand. A date is compared with the server's own `Date`, so that the
/// two clocks need not agree.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.trim().parse().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let value = text(RETRY_AFTER.as_str())?.trim();
    if let Ok(seconds) = value.parse() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = DateTime::parse_from_rfc2822(value).ok()?;
    let now = DateTime::parse_from_rfc2822(text(DATE.as_str())?).ok()?;
    Some((until - now).to_std().unwrap_or_default())
}

/// The wait that Google names in the body (google.rpc.RetryInfo), such as `36s`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error["details"].as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail["retryDelay"].as_str())?;
    let seconds = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// True if Google names a quota of a day or longer (google.rpc.QuotaFailure). The wait that it names beside it is too
/// short.
fn is_spent(error: &Value) -> bool {
    let details = error["details"].as_array().into_iter().flatten();
    let violations =
        details.flat_map(|detail| detail["violations"].as_array().into_iter().flatten());
    violations
        .filter_map(|violation| violation["quotaId"].as_str())
        .any(|quota| quota.contains("PerDay") || quota.contains("PerMonth"))
}

fn looks_like_html(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}

#[cfg(test)]
mod tests;
