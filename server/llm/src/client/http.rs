//! The transport over HTTP, to the address in the options.
//!
//! Redirects are not followed: the key goes to the configured address only. Proxies are those of the standard
//! variables (`HTTPS_PROXY`, `NO_PROXY`), which the HTTP client reads itself; a server on this machine is never asked
//! through one.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::{
    Response,
    header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap},
    redirect,
};
use shared_types::{PaidBy, TraceContext, address::is_loopback_host};
use url::{Position, Url};

use super::{
    Reach, Reply, ReplyBody, ServerOptions, ServerOptionsError, Transport,
    options::base,
    reach::{self, PublicOnly},
};
use crate::{
    Failure, ModelError,
    formats::{Format, broken},
};

/// See the module.
#[derive(Debug)]
pub(super) struct Http {
    http: reqwest::Client,
    endpoint: Url,
    headers: HeaderMap,
    /// The option that names the address, for remedies.
    address_option: String,
}

impl Http {
    /// A way to the server that the options name, in this format; nothing is sent yet.
    pub(super) fn new<F: Format>(options: &ServerOptions) -> Result<Self, ServerOptionsError> {
        let endpoint = F::endpoint(base(options)?, options.profile.model.trim());
        let key = options.key.as_ref();
        let headers =
            F::headers(key).map_err(|_| ServerOptionsError::Key(options.named.key.clone()))?;
        let shown = &endpoint[..Position::AfterPath];
        let is_here = endpoint.host_str().is_some_and(is_loopback_host);
        if key.is_some() && endpoint.scheme() == "http" && !is_here {
            tracing::warn!(
                model.url = shown,
                "the model's key travels unencrypted: use an https address"
            );
        }
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("gantry/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .connect_timeout(options.connect_within);
        if is_here {
            http = http.no_proxy();
        }
        if options.reach == Reach::PublicOnly {
            if !reach::may_be_public(&endpoint) {
                return Err(ServerOptionsError::Private(shown.to_owned()));
            }
            // A proxy would resolve the name itself, in its own network.
            http = http.no_proxy().dns_resolver(Arc::new(PublicOnly));
        }
        Ok(Self {
            http: http.build().map_err(ServerOptionsError::Client)?,
            address_option: options.named.address.clone(),
            endpoint,
            headers,
        })
    }

    /// The address in messages: without its query, which may hold a secret.
    pub(super) fn shown(&self) -> String {
        self.endpoint[..Position::AfterPath].to_owned()
    }

    /// The account as the log names it, to which a vendor's own state goes back. The operator's first
    /// one has the name of its host, as in earlier releases.
    pub(super) fn account(&self, paid_by: PaidBy, name: Option<&str>) -> String {
        let host = &self.endpoint[Position::BeforeHost..Position::AfterPort];
        match (paid_by.account(), name) {
            (None, None) => host.to_owned(),
            (None, Some(name)) => format!("{host} {name}"),
            (Some(account), _) => format!("{host} {account}"),
        }
    }
}

#[async_trait]
impl Transport for Http {
    async fn send(&self, body: Vec<u8>, trace: Option<TraceContext>) -> Result<Reply, Failure> {
        let mut request = self.http.post(self.endpoint.clone()).body(body);
        // A stream that is compressed on its way comes late and in lumps.
        request = request
            .header(ACCEPT_ENCODING, "identity")
            .header(CONTENT_TYPE, "application/json")
            .headers(self.headers.clone());
        if let Some(trace) = trace {
            request = request.header("traceparent", trace.to_string());
        }
        let response = request.send().await.map_err(|error| {
            ModelError::Unavailable(format!(
                "the model server at {} cannot be reached ({}): check that it runs and that {} is right",
                self.shown(),
                root_cause(&error),
                self.address_option
            ))
        })?;
        Ok(Reply {
            status: response.status(),
            headers: response.headers().clone(),
            body: Box::new(response),
        })
    }
}

#[async_trait]
impl ReplyBody for Response {
    async fn chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        Response::chunk(self).await.map_err(|error| {
            broken(&format!(
                "the connection to the model server broke off in mid-answer ({})",
                root_cause(&error)
            ))
        })
    }
}

/// The innermost reason: the outer ones only repeat the address.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
