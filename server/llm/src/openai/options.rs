//! Which server to ask, and what of it cannot be used.

use std::time::Duration;

use reqwest::header::HeaderValue;
use url::Url;

use crate::ApiKey;

/// The address of OpenAI's own server.
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// Which server and model to ask, and how long to wait for them.
#[derive(Debug, Clone)]
pub struct OpenAiOptions {
    /// The address below which `chat/completions` lies, with or without a slash at its end.
    pub base_url: String,
    /// The key; servers on one's own machine often need none.
    pub key: Option<ApiKey>,
    /// The model's name, as the server knows it.
    pub model: String,
    /// The time for a connection, TLS included.
    pub connect_within: Duration,
    /// The time from the request to the first byte of the answer. Models on a slow machine read
    /// a long conversation for minutes.
    pub first_byte_within: Duration,
    /// The longest silence between two pieces of the response.
    pub idle_at_most: Duration,
    /// The time from there to the answer's end, however busy the server keeps us.
    pub answer_within: Duration,
}

impl OpenAiOptions {
    /// OpenAI's own server without a key: 10 s to connect, 600 s to the first byte, 120 s between
    /// pieces, 30 min from the first byte to the end.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            base_url: DEFAULT_BASE_URL.to_owned(),
            key: None,
            model: model.into(),
            connect_within: Duration::from_secs(10),
            first_byte_within: Duration::from_secs(600),
            idle_at_most: Duration::from_secs(120),
            answer_within: Duration::from_secs(30 * 60),
        }
    }
}

/// The reason why the options name no usable server.
#[derive(Debug, thiserror::Error)]
pub enum OpenAiOptionsError {
    /// It is not an address.
    #[error(
        "the model server's address {0:?} is not a URL (OPENAI_BASE_URL): write it like {DEFAULT_BASE_URL}"
    )]
    Url(String),
    /// It carries a user name or password, which would end up in messages.
    #[error(
        "the model server's address contains a user name or password: give the secret as OPENAI_API_KEY and leave it out of OPENAI_BASE_URL"
    )]
    UrlWithSecret,
    /// It has characters that no header can carry.
    #[error("the model's key contains a character that no key has: copy OPENAI_API_KEY again")]
    Key,
    /// There is no name.
    #[error("the model's name is empty: set GANTRY_MODEL")]
    Model,
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up: {0}")]
    Client(#[source] reqwest::Error),
}

pub(super) fn endpoint(base_url: &str) -> Result<Url, OpenAiOptionsError> {
    let invalid = || OpenAiOptionsError::Url(base_url.to_owned());
    let mut url = Url::parse(base_url.trim()).map_err(|_| invalid())?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(OpenAiOptionsError::UrlWithSecret);
    }
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid());
    }
    url.path_segments_mut()
        .map_err(|()| invalid())?
        .pop_if_empty()
        .extend(["chat", "completions"]);
    Ok(url)
}

pub(super) fn authorization(key: &ApiKey) -> Result<HeaderValue, OpenAiOptionsError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.reveal()))
        .map_err(|_| OpenAiOptionsError::Key)?;
    value.set_sensitive(true);
    Ok(value)
}
