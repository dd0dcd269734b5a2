//! The HTTP client of pages and of searches: no cookies, no redirects of its own, no connection that outlives its
//! request.

use std::{error::Error, time::Duration};

use reqwest::{ClientBuilder, redirect};
use url::Url;

use crate::{WebError, reach::host};

/// The name under which the server asks.
const USER_AGENT: &str = concat!("Gantry/", env!("CARGO_PKG_VERSION"));

/// The time for a connection, TLS included.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

pub(crate) fn client() -> ClientBuilder {
    reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .redirect(redirect::Policy::none())
        .referer(false)
        .pool_max_idle_per_host(0)
        .connect_timeout(CONNECT_WITHIN)
}

/// The innermost reason: the outer ones only repeat the address, with its query.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The error for an answer that cannot be read.
pub(crate) fn broken(url: &Url, cause: &str) -> WebError {
    WebError::Broken {
        host: host(url),
        cause: cause.to_owned(),
    }
}
