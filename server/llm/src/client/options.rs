//! The server to ask, and the options of it that cannot be used.

use std::time::Duration;

use url::Url;

use shared_types::PaidBy;

use crate::{ApiKey, Profile};

/// The address of OpenAI's own server.
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// The server and the model to ask, and the longest waits for them.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The address below which the format's addresses lie, with or without a slash at its end.
    pub base_url: String,
    /// The key; servers on one's own machine often need none.
    pub key: Option<ApiKey>,
    /// The model.
    pub profile: Profile,
    /// The account to which the key belongs.
    pub paid_by: PaidBy,
    /// The name of that account, where it is a further one of the operator.
    pub account: Option<String>,
    /// The names of these options where they were set, for the remedies in errors.
    pub named: Named,
    /// The networks in which the server may stand.
    pub reach: Reach,
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

impl ServerOptions {
    /// A server without a key: 10 s to connect, 600 s to the first byte, 120 s between pieces, 30 min from the first
    /// byte to the end.
    pub fn new(base_url: impl Into<String>, profile: Profile) -> Self {
        Self {
            base_url: base_url.into(),
            key: None,
            profile,
            paid_by: PaidBy::default(),
            account: None,
            named: Named::default(),
            reach: Reach::Everywhere,
            connect_within: Duration::from_secs(10),
            first_byte_within: Duration::from_secs(600),
            idle_at_most: Duration::from_secs(120),
            answer_within: Duration::from_secs(30 * 60),
        }
    }
}

/// The names of a server's options where they were set, as errors name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The key, such as `OPENAI_API_KEY`.
    pub key: String,
    /// The address, such as `OPENAI_BASE_URL`.
    pub address: String,
    /// The model, such as `GANTRY_MODEL`.
    pub model: String,
}

impl Default for Named {
    /// The variables of the operator.
    fn default() -> Self {
        Self {
            key: "OPENAI_API_KEY".to_owned(),
            address: "OPENAI_BASE_URL".to_owned(),
            model: "GANTRY_MODEL".to_owned(),
        }
    }
}

/// The networks in which a model server may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Any, because the operator chose the server.
    Everywhere,
    /// Public addresses alone, because a person chose the server. Otherwise a person could make the control plane
    /// ask the services of its own network.
    PublicOnly,
}

/// The reason why the options name no usable server.
#[derive(Debug, thiserror::Error)]
pub enum ServerOptionsError {
    /// It is not an address.
    #[error(
        "the model server's address {0:?} is not a URL ({1}): write it like {DEFAULT_BASE_URL}"
    )]
    Url(String, String),
    /// It carries a user name or password, which would end up in messages.
    #[error(
        "the model server's address contains a user name or password: give the secret as {key} and leave it out of {address}"
    )]
    UrlWithSecret {
        /// The name of the key's option.
        key: String,
        /// The name of the address's option.
        address: String,
    },
    /// The server may not be asked.
    #[error(
        "the model server's address {0} is not a public one: an operator can allow it with private_addresses = true under [model] in gantry.toml"
    )]
    Private(String),
    /// It has characters that no header can carry.
    #[error("the model's key contains a character that no key has: copy {0} again")]
    Key(String),
    /// There is no name.
    #[error("the model's name is empty: set {0}")]
    Model(String),
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up: {0}")]
    Client(#[source] reqwest::Error),
}

/// The base address, checked.
pub(super) fn base(options: &ServerOptions) -> Result<Url, ServerOptionsError> {
    let (base_url, named) = (&options.base_url, &options.named);
    let invalid = || ServerOptionsError::Url(base_url.clone(), named.address.clone());
    let url = Url::parse(base_url.trim()).map_err(|_| invalid())?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ServerOptionsError::UrlWithSecret {
            key: named.key.clone(),
            address: named.address.clone(),
        });
    }
    if !matches!(url.scheme(), "http" | "https") || url.cannot_be_a_base() {
        return Err(invalid());
    }
    Ok(url)
}
