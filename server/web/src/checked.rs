//! HTTP for servers that people name, such as tool servers: the networks are those of pages.

use std::sync::Arc;

use reqwest::{Client, Method, RequestBuilder};
use shared_types::AddressRange;
use url::Url;

use crate::{
    WebError, WebOptionsError,
    fetch::is_refused,
    http,
    reach::{Checked, Reach, SystemLookup, host},
};

/// An HTTP client that reaches the public internet, and the networks that the operator allows. It follows no redirect
/// and keeps no cookie.
#[derive(Debug, Clone)]
pub struct CheckedClient {
    http: Client,
    reach: Reach,
}

impl CheckedClient {
    /// A client for the public internet and these networks.
    ///
    /// # Errors
    /// Fails if the HTTP client cannot be set up.
    pub fn new(allow: Vec<AddressRange>) -> Result<Self, WebOptionsError> {
        let reach = Reach::new(allow);
        let checked = Checked {
            reach: reach.clone(),
            lookup: Arc::new(SystemLookup),
        };
        // A proxy would resolve the name itself, in its own network.
        let http = http::client().no_proxy().dns_resolver(Arc::new(checked));
        Ok(Self {
            http: http.build().map_err(WebOptionsError::Client)?,
            reach,
        })
    }

    /// The address that is written so.
    ///
    /// # Errors
    /// Fails if it is none, or its host is an address in a network that is not allowed.
    pub fn url(&self, written: &str) -> Result<Url, WebError> {
        self.reach.parse(written)
    }

    /// A request to this address. A name is checked when it is resolved.
    ///
    /// # Errors
    /// Those of [`CheckedClient::url`].
    pub fn request(&self, method: Method, url: &Url) -> Result<RequestBuilder, WebError> {
        let url = self.reach.check(url.clone())?;
        Ok(self.http.request(method, url))
    }

    /// The reason why a request to this address was not answered. It has no query and no header.
    pub fn unreachable(url: &Url, error: &reqwest::Error) -> WebError {
        match is_refused(error) {
            true => WebError::Private(host(url)),
            false => WebError::Unreachable {
                host: host(url),
                cause: http::root_cause(error),
            },
        }
    }

    /// The reason why an answer of this address cannot be read.
    pub fn broken(url: &Url, cause: &str) -> WebError {
        http::broken(url, cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn private_networks_are_reached_only_where_the_operator_allows_them() {
        let closed = CheckedClient::new(Vec::new()).expect("it can be set up");
        assert!(matches!(
            closed.url("http://127.0.0.1:1/mcp"),
            Err(WebError::Private(_))
        ));
        // A name of this machine is refused when it is resolved.
        let url = closed.url("http://localhost:1/mcp").expect("it is a URL");
        let sent = closed
            .request(Method::POST, &url)
            .expect("it is checked later");
        let error = sent.send().await.expect_err("it is refused");
        assert!(matches!(
            CheckedClient::unreachable(&url, &error),
            WebError::Private(_)
        ));
        let open = CheckedClient::new(vec!["127.0.0.0/8".parse().expect("a range")]);
        assert!(
            open.expect("it can be set up")
                .url("http://127.0.0.1:1/mcp")
                .is_ok()
        );
    }
}
