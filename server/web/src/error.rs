//! The reasons why the web gives no answer, in words for a model.
//!
//! No reason has the query of an address, a key, or an address to which a name of a private network resolves.

use std::time::Duration;

/// The reason why there is no page and no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    /// The text is no address of a page.
    #[error("the URL is not one that can be fetched: {0}")]
    Url(&'static str),
    /// The host is not in a network that pages may come from.
    #[error(
        "{0} has an address in a private or special network, and pages come from the public internet only; the operator can allow a network with allow under [web] in gantry.toml"
    )]
    Private(String),
    /// The host cannot be found or reached.
    #[error("{host} cannot be reached ({cause})")]
    Unreachable {
        /// The host.
        host: String,
        /// The cause, in the words of the network.
        cause: String,
    },
    /// A page leads on from `https` to `http`.
    #[error("{0} redirects from https to http, which is not followed")]
    Downgrade(String),
    /// Pages lead on to one another.
    #[error("the page redirects more than {0} times, and is not followed further")]
    TooManyRedirects(usize),
    /// The server answered that there is no page.
    #[error("{host} answered with the status {status}")]
    Status {
        /// The host.
        host: String,
        /// The status of HTTP, with its name.
        status: String,
    },
    /// The content is no text.
    #[error("it is no text but {kind}, {size}; a command on a runner can load it")]
    NoText {
        /// Its type.
        kind: String,
        /// Its size, in words.
        size: String,
    },
    /// The content is too large.
    #[error("it has more than {} MiB, and no more is read", .0 / (1024 * 1024))]
    TooLarge(usize),
    /// The answer broke off, or cannot be read.
    #[error("the answer of {host} cannot be read ({cause})")]
    Broken {
        /// The host.
        host: String,
        /// The cause.
        cause: String,
    },
    /// The time is over.
    #[error("there was no whole answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// This server does not offer it.
    #[error("this server is not set up for it")]
    NotOffered,
    /// The provider of searches refuses.
    #[error("the search provider {0}")]
    Search(String),
}

/// The reason why the options name no usable provider of searches.
#[derive(Debug, thiserror::Error)]
pub enum WebOptionsError {
    /// The address is none.
    #[error(
        "url under [web.search] in gantry.toml is not a URL: write it like https://search.example.org"
    )]
    Url,
    /// The address carries a user name or password.
    #[error("url under [web.search] in gantry.toml contains a user name or password: leave it out")]
    UrlWithSecret,
    /// The key has characters that no header can carry.
    #[error(
        "the key of [web.search] in gantry.toml contains a character that no key has: copy it again"
    )]
    Key,
    /// The HTTP client cannot be set up.
    #[error("the HTTP client of [web] cannot be set up: {0}")]
    Client(#[source] reqwest::Error),
}
