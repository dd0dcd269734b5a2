//! Requests and answers over HTTP: one place that builds, sends, bounds and reads them.

use std::time::Duration;

use reqwest::{
    Method, RequestBuilder, Response, StatusCode, Upgraded,
    header::{
        AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderValue, SEC_WEBSOCKET_ACCEPT,
        SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use shared_api::{Page, Problem};
use shared_tls::Trust;
use shared_types::clean::{clean_line, peer_words};
use tokio_tungstenite::tungstenite::handshake::{client::generate_key, derive_accept_key};
use url::Url;

use crate::{ClientError, Options, url::Base};

/// Time for a whole request and its answer.
const REQUEST_WITHIN: Duration = Duration::from_secs(30);

/// The longest wait for a connection to the server.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// The longest idle time after which a connection is used again. Soon after a request the network is still there. Later
/// the machine may have moved to another one, where the server would not answer.
const REUSED_WITHIN: Duration = Duration::from_secs(5);

/// The entries of a list that one request asks for.
const PAGE: usize = 200;

/// Largest answer, in bytes: a full page of large events.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Longest reason of a server that is not ready, in characters.
const MAX_REASON: usize = 500;

/// Longest explanation of a problem, in characters.
const MAX_DETAIL: usize = 2000;

/// Largest answer that says no, in bytes.
const MAX_PROBLEM_BYTES: usize = 64 * 1024;

/// The connections to one server, with the credential that goes along.
#[derive(Clone)]
pub(crate) struct Http {
    pub(crate) base: Base,
    bearer: Option<HeaderValue>,
    /// True if the client trusts one certificate only, by its fingerprint.
    pub(crate) pinned: bool,
    /// The interval between pings to an otherwise silent server.
    pub(crate) ping_every: Duration,
    client: reqwest::Client,
}

impl Http {
    pub(crate) fn new(options: &Options) -> Result<Self, ClientError> {
        let base = Base::new(&options.server, options.plain_text_allowed)?;
        let bearer = options.token.as_deref().map(bearer).transpose()?;
        let builder = reqwest::Client::builder()
            .http1_only()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_WITHIN)
            .pool_idle_timeout(REUSED_WITHIN)
            .timeout(REQUEST_WITHIN);
        let builder = match base.is_tls() {
            true => builder.tls_backend_preconfigured(tls(options.trust.clone(), &base)?),
            // Plain text needs no roots, and must work where a machine has none.
            false => builder.tls_certs_only(std::iter::empty()),
        };
        let client = builder.build().map_err(|error| ClientError::Address {
            url: base.shown(),
            reason: causes(&error),
        })?;
        Ok(Self {
            pinned: base.is_tls() && matches!(options.trust, Trust::Pinned(_)),
            base,
            bearer,
            ping_every: options.ping_every,
            client,
        })
    }

    /// The same connections with another credential.
    pub(crate) fn with_token(&self, token: &str) -> Result<Self, ClientError> {
        Ok(Self {
            bearer: Some(bearer(token)?),
            ..self.clone()
        })
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<T, ClientError> {
        let mut url = self.base.api(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query.iter());
        }
        self.read(self.client.request(Method::GET, url)).await
    }

    /// Reads a list from its first page on, up to `at_most` entries.
    pub(crate) async fn list<P: Page + DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        at_most: usize,
    ) -> Result<Vec<P::Item>, ClientError> {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let limit = PAGE.min(at_most - all.len());
            let mut query = query.to_vec();
            query.push(("limit", limit.to_string()));
            query.extend(after.map(|after| ("after", after)));
            let page: P = self.get(path, &query).await?;
            let (items, next) = page.into_parts();
            // A page that brings nothing ends the list, or it would never end.
            let is_last = items.is_empty() || next.is_none();
            all.extend(items.into_iter().take(limit));
            if is_last || all.len() >= at_most {
                return Ok(all);
            }
            after = next;
        }
    }

    pub(crate) async fn call<B: Serialize, T: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        body: &B,
    ) -> Result<T, ClientError> {
        self.read(self.client.request(method, self.base.api(path)).json(body))
            .await
    }

    /// Asks for something that begins at most once under the key in this header.
    pub(crate) async fn start<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &B,
        header: &str,
        key: &str,
    ) -> Result<T, ClientError> {
        let request = self.client.request(Method::POST, self.base.api(path));
        self.read(request.header(header, key).json(body)).await
    }

    /// Sends bytes as they are.
    pub(crate) async fn bring<T: DeserializeOwned>(
        &self,
        path: &[&str],
        bytes: Vec<u8>,
    ) -> Result<T, ClientError> {
        let request = self.client.request(Method::POST, self.base.api(path));
        let request = request.header(CONTENT_TYPE, "application/octet-stream");
        self.read(request.body(bytes)).await
    }

    /// Asks for something whose answer is empty.
    pub(crate) async fn tell<B: Serialize>(
        &self,
        path: &[&str],
        body: &B,
    ) -> Result<(), ClientError> {
        let request = self.client.request(Method::POST, self.base.api(path));
        self.answer(request.json(body)).await.map(drop)
    }

    /// The reason that `/readyz` gives for not being ready; `None` where the server is ready.
    pub(crate) async fn not_ready(&self) -> Result<Option<String>, ClientError> {
        let request = self.client.request(Method::GET, self.base.ready());
        let mut response = request.send().await.map_err(|error| self.failed(&error))?;
        let status = response.status();
        let said = self.body(&mut response, MAX_PROBLEM_BYTES).await?;
        match status {
            StatusCode::OK => Ok(None),
            StatusCode::SERVICE_UNAVAILABLE => Ok(Some(clean_line(
                &String::from_utf8_lossy(&said),
                MAX_REASON,
            ))),
            _ => Err(self.refused(status, &said)),
        }
    }

    /// A connection for a WebSocket (RFC 6455, 4.1): that of the request before, where one was made just now.
    pub(crate) async fn upgrade(&self, url: Url) -> Result<Upgraded, ClientError> {
        let key = generate_key();
        let request = self.client.request(Method::GET, url);
        let request = request
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, &key)
            .timeout(CONNECT_WITHIN);
        let response = self.response(request, StatusCode::is_informational).await?;
        let accepts = response.headers().get(SEC_WEBSOCKET_ACCEPT);
        if accepts.is_none_or(|accepts| accepts != &derive_accept_key(key.as_bytes())) {
            return Err(self.protocol("it opens no WebSocket".into()));
        }
        let upgraded = response.upgrade().await;
        upgraded.map_err(|error| self.failed(&error))
    }

    pub(crate) async fn delete(&self, path: &[&str]) -> Result<(), ClientError> {
        let request = self.client.request(Method::DELETE, self.base.api(path));
        self.answer(request).await.map(drop)
    }

    async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let body = self.answer(request).await?;
        serde_json::from_slice(&body).map_err(|error| self.protocol(error.to_string()))
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Vec<u8>, ClientError> {
        let mut response = self.response(request, StatusCode::is_success).await?;
        self.body(&mut response, MAX_ANSWER_BYTES).await
    }

    /// The beginning of an answer that says yes.
    async fn response(
        &self,
        mut request: RequestBuilder,
        is_yes: fn(&StatusCode) -> bool,
    ) -> Result<Response, ClientError> {
        if let Some(bearer) = &self.bearer {
            request = request.header(AUTHORIZATION, bearer.clone());
        }
        let mut response = request.send().await.map_err(|error| self.failed(&error))?;
        let status = response.status();
        if is_yes(&status) {
            return Ok(response);
        }
        let is_json = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.contains("json"));
        let body = match is_json {
            true => self.body(&mut response, MAX_PROBLEM_BYTES).await?,
            false => Vec::new(),
        };
        Err(self.refused(status, &body))
    }

    async fn body(&self, response: &mut Response, at_most: usize) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.failed(&error))?
        {
            if body.len() + chunk.len() > at_most {
                return Err(self.protocol(format!("longer than {at_most} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// An answer that says no: the server's own words, or those of something between.
    fn refused(&self, status: StatusCode, body: &[u8]) -> ClientError {
        match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => ClientError::Refused(heard(problem)),
            Err(_) if status.is_server_error() => self.unreachable(format!("it says {status}")),
            Err(_) => self.protocol(format!("it says {status}")),
        }
    }

    pub(crate) fn unreachable(&self, reason: String) -> ClientError {
        ClientError::Unreachable {
            url: self.base.shown(),
            reason: peer_words(&reason),
            is_sent: true,
        }
    }

    pub(crate) fn protocol(&self, reason: String) -> ClientError {
        ClientError::Protocol {
            url: self.base.shown(),
            reason: peer_words(&reason),
        }
    }

    /// Tells a server that is not trusted from one that is not there.
    pub(crate) fn failed(&self, error: &(dyn std::error::Error + 'static)) -> ClientError {
        let mut cause = Some(error);
        while let Some(current) = cause {
            if let Some(tls) = tls_error(current)
                && matches!(
                    tls,
                    rustls::Error::InvalidCertificate(_) | rustls::Error::General(_)
                )
            {
                return ClientError::Untrusted {
                    url: self.base.shown(),
                    reason: peer_words(&tls.to_string()),
                };
            }
            cause = current.source();
        }
        let is_connect = error
            .downcast_ref::<reqwest::Error>()
            .is_some_and(reqwest::Error::is_connect);
        ClientError::Unreachable {
            url: self.base.shown(),
            reason: causes(error),
            is_sent: !is_connect,
        }
    }
}

fn bearer(token: &str) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
        .map_err(|_| ClientError::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

fn tls(trust: Trust, base: &Base) -> Result<rustls::ClientConfig, ClientError> {
    let config = shared_tls::client_config(trust).map_err(|error| ClientError::Address {
        url: base.shown(),
        reason: error.to_string(),
    })?;
    let mut config = config.as_ref().clone();
    // WebSockets need HTTP/1.1, and one protocol for everything is one thing less to go wrong.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The TLS error in this cause. IO errors hide it: one may hold another, and `source` of an IO error skips its content.
fn tls_error<'a>(mut cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    loop {
        match cause.downcast_ref::<std::io::Error>() {
            Some(io) => cause = io.get_ref()?,
            None => return cause.downcast_ref(),
        }
    }
}

/// A problem with words that are fit to be shown: it may be that of something which is no Gantry server.
pub(crate) fn heard(problem: Problem) -> Problem {
    Problem {
        page: peer_words(&problem.page),
        code: peer_words(&problem.code),
        status: problem.status,
        detail: clean_line(&problem.detail, MAX_DETAIL),
    }
}

/// The last cause says most: "connection refused" rather than "error sending request".
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    peer_words(&last.to_string())
}
