//! A connection over streamable HTTP: each request is a POST, and its answer is JSON or a stream of events.

mod events;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use reqwest::{
    Method, RequestBuilder, Response,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::{Value, json};
use server_web::{CheckedClient, WebError};
use shared_types::clean::peer_words;
use tokio::time::sleep;
use url::Url;

use self::events::{Events, ServerEvent};
use crate::{
    Era, McpError,
    bounds::{
        MAX_MESSAGE_BYTES, MAX_RESUMES, MAX_TOKEN_BYTES, RESUME_AT_LEAST, RESUME_AT_MOST,
        RESUME_USUALLY,
    },
    elicit::{self, Person},
    era::MODERN,
    headers::encoded,
    message::{self, Incoming, RpcError},
    sign_in::{Access, Challenge, MAX_REFUSALS},
};

/// Headers of the protocol and of HTTP itself, which no setting replaces.
const RESERVED: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];

/// The address of a server, and the headers with which it is asked.
#[derive(Clone)]
pub struct Remote {
    client: CheckedClient,
    url: Url,
    headers: HeaderMap,
    access: Option<Arc<dyn Access>>,
}

impl fmt::Debug for Remote {
    /// The headers may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("host", &self.url.host_str())
            .finish_non_exhaustive()
    }
}

impl Remote {
    /// The server at this address, asked through this client with these headers.
    ///
    /// # Errors
    /// The address may not be asked for, or a header is none that can be set.
    pub fn new(
        client: CheckedClient,
        url: &str,
        headers: &BTreeMap<String, String>,
    ) -> Result<Self, McpError> {
        let url = client.url(url)?;
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let bad = || {
                McpError::Form(format!(
                    "{:?} is no header that can be set",
                    peer_words(name)
                ))
            };
            let name = HeaderName::try_from(name).map_err(|_| bad())?;
            let mut value = HeaderValue::try_from(value).map_err(|_| bad())?;
            let is_reserved =
                RESERVED.contains(&name.as_str()) || name.as_str().starts_with("mcp-param-");
            if is_reserved {
                return Err(bad());
            }
            value.set_sensitive(true);
            map.insert(name, value);
        }
        Ok(Self {
            client,
            url,
            headers: map,
            access: None,
        })
    }

    /// The same server, asked in a person's name. A header that says who asks goes before it.
    #[must_use]
    pub fn with_access(mut self, access: Arc<dyn Access>) -> Self {
        if !self.headers.contains_key(AUTHORIZATION) {
            self.access = Some(access);
        }
        self
    }

    fn request(&self, method: Method) -> Result<RequestBuilder, McpError> {
        let request = self.client.request(method, &self.url)?;
        Ok(request.headers(self.headers.clone()))
    }
}

/// An open connection.
pub(crate) struct HttpLink {
    remote: Remote,
    person: Arc<dyn Person>,
    changed: Arc<AtomicBool>,
    /// The words of the handshake, where there was one.
    handshake: Mutex<Handshake>,
}

#[derive(Debug, Clone, Default)]
struct Handshake {
    version: Option<&'static str>,
    session: Option<HeaderValue>,
}

/// An answer, and the status of HTTP that came with it.
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) outcome: Result<Value, RpcError>,
}

/// A request, as both eras send it.
pub(crate) struct Asked<'a> {
    pub(crate) era: Era,
    pub(crate) id: u64,
    pub(crate) method: &'a str,
    pub(crate) params: &'a Value,
    /// Arguments that are repeated in headers.
    pub(crate) headers: &'a [(String, String)],
}

impl HttpLink {
    pub(crate) fn open(remote: Remote, person: Arc<dyn Person>, changed: Arc<AtomicBool>) -> Self {
        Self {
            remote,
            person,
            changed,
            handshake: Mutex::default(),
        }
    }

    /// The version that the handshake agreed on.
    pub(crate) fn speak(&self, version: &'static str) {
        self.handshake().version = Some(version);
    }

    /// Forgets the session, which the server has forgotten. The next request begins another.
    pub(crate) fn forget(&self) {
        *self.handshake() = Handshake::default();
    }

    /// True if the server has named a session.
    pub(crate) fn has_session(&self) -> bool {
        self.handshake().session.is_some()
    }

    fn handshake(&self) -> std::sync::MutexGuard<'_, Handshake> {
        self.handshake
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a request. Dropping the future closes its stream.
    pub(crate) async fn exchange(&self, asked: &Asked<'_>) -> Result<Answered, McpError> {
        let body = message::request(asked.id, asked.method, asked.params);
        let mut request = self.post(asked.era, &body)?;
        if asked.era == Era::Modern {
            request = request.header("Mcp-Method", asked.method);
            let name = asked.params["name"]
                .as_str()
                .or(asked.params["uri"].as_str());
            if let Some(name) = name {
                request = request.header("Mcp-Name", encoded(name));
            }
            for (name, value) in asked.headers {
                request = request.header(name, value);
            }
        }
        let response = self.send(request).await?;
        if asked.method == "initialize" {
            let session = response.headers().get("mcp-session-id").cloned();
            self.handshake().session = session.filter(|session| session.len() <= MAX_TOKEN_BYTES);
        }
        let status = response.status();
        let is_stream = kind(&response).starts_with("text/event-stream");
        if status.is_success() && is_stream {
            let outcome = self.stream(response, asked).await?;
            let status = status.as_u16();
            return Ok(Answered { status, outcome });
        }
        let body = self.body(response).await?;
        match Incoming::read(&body) {
            Some(Incoming::Response(id, outcome)) if id == asked.id => Ok(Answered {
                status: status.as_u16(),
                outcome,
            }),
            Some(Incoming::Response(_, Err(error)) | Incoming::Error(error))
                if !status.is_success() =>
            {
                Ok(Answered {
                    status: status.as_u16(),
                    outcome: Err(error),
                })
            }
            _ if status.is_success() => Err(McpError::Form("its answer is no message".to_owned())),
            _ => Err(McpError::Status(status.as_u16())),
        }
    }

    /// Sends a message that wants no answer.
    pub(crate) async fn notify(&self, era: Era, message: &Value) -> Result<(), McpError> {
        let response = self.send(self.post(era, message)?).await?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(McpError::Status(response.status().as_u16())),
        }
    }

    /// Ends the session, where the server has named one.
    pub(crate) async fn close(&self) {
        let request = self.remote.request(Method::DELETE);
        if self.has_session()
            && let Ok(request) = request
        {
            // The server forgets a session that is not used, too.
            let _ = self.send(self.with_handshake(request)).await;
        }
    }

    fn post(&self, era: Era, message: &Value) -> Result<RequestBuilder, McpError> {
        let request = self.remote.request(Method::POST)?;
        let request = request
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .body(message.to_string());
        Ok(match era {
            Era::Modern => request.header("MCP-Protocol-Version", MODERN),
            Era::Legacy => self.with_handshake(request),
        })
    }

    fn with_handshake(&self, mut request: RequestBuilder) -> RequestBuilder {
        let Handshake { version, session } = self.handshake().clone();
        if let Some(version) = version {
            request = request.header("MCP-Protocol-Version", version);
        }
        match session {
            Some(session) => request.header("Mcp-Session-Id", session),
            None => request,
        }
    }

    /// Sends a request. One that the server refuses for want of the right token has had no effect: it is sent again with
    /// another token, where there is one.
    async fn send(&self, request: RequestBuilder) -> Result<Response, McpError> {
        let access = self.remote.access.as_deref();
        let (mut request, mut refusals) = (Some(request), 0);
        loop {
            let again = request.as_ref().and_then(RequestBuilder::try_clone);
            let Some(mut asked) = request.take() else {
                return Err(McpError::Unauthorized(None));
            };
            let token = match access {
                Some(access) => access.token().await?,
                None => None,
            };
            if let Some(token) = &token {
                asked = asked.bearer_auth(token.expose());
            }
            let sent = asked.send().await;
            let response =
                sent.map_err(|error| CheckedClient::unreachable(&self.remote.url, &error))?;
            let status = response.status().as_u16();
            if !matches!(status, 401 | 403) {
                return Ok(response);
            }
            let challenge = Challenge::of(status, response.headers());
            let is_answered = match access {
                Some(access) if challenge.wants_token() && refusals < MAX_REFUSALS => {
                    access.refused(token.as_ref(), &challenge).await?
                }
                _ => false,
            };
            if !is_answered {
                return Err(McpError::Unauthorized(challenge.told()));
            }
            (request, refusals) = (again, refusals + 1);
        }
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, McpError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk(&mut response).await? {
            if body.len() + chunk.len() > MAX_MESSAGE_BYTES {
                return Err(McpError::TooLarge(MAX_MESSAGE_BYTES));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    async fn chunk(&self, response: &mut Response) -> Result<Option<bytes::Bytes>, McpError> {
        let chunk = response.chunk().await;
        chunk.map_err(|_| McpError::Web(self.broken("the connection broke off")))
    }

    fn broken(&self, cause: &str) -> WebError {
        CheckedClient::broken(&self.remote.url, cause)
    }

    /// Reads a stream up to the answer. A stream of the earlier era that breaks off is taken up behind its last event.
    async fn stream(
        &self,
        mut response: Response,
        asked: &Asked<'_>,
    ) -> Result<Result<Value, RpcError>, McpError> {
        let (mut last, mut pause, mut resumes) = (None, RESUME_USUALLY, 0);
        loop {
            let mut events = Events::default();
            let ended = loop {
                let chunk = match self.chunk(&mut response).await {
                    Ok(Some(chunk)) => chunk,
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                };
                for event in events.push(&chunk)? {
                    let ServerEvent { id, retry, data } = event;
                    last = id.or(last);
                    pause = retry.map_or(pause, |retry| {
                        Duration::from_millis(retry).min(RESUME_AT_MOST)
                    });
                    if let Some(outcome) = self.take(&data, asked.era, Some(asked.id)).await? {
                        return Ok(outcome);
                    }
                }
            };
            let broken = ended.unwrap_or_else(|| {
                McpError::Web(self.broken("its stream ended before the answer"))
            });
            let Some(id) = last.as_deref().filter(|_| asked.era == Era::Legacy) else {
                return Err(broken);
            };
            if resumes == MAX_RESUMES {
                return Err(broken);
            }
            resumes += 1;
            sleep(pause).await;
            let request = self.remote.request(Method::GET)?;
            let request = request
                .header(ACCEPT, "text/event-stream")
                .header("Last-Event-ID", id);
            response = self.send(self.with_handshake(request)).await?;
            if !response.status().is_success() {
                return Err(broken);
            }
        }
    }

    /// Listens to what a server of the earlier era says outside its answers, where it offers that. Returns once it does
    /// not, or has broken off too often without a word.
    pub(crate) async fn listen(&self) {
        let (mut last, mut pause, mut silent) = (None::<String>, RESUME_USUALLY, 0);
        while silent < MAX_RESUMES {
            silent += 1;
            let Ok(request) = self.remote.request(Method::GET) else {
                return;
            };
            let mut request = self
                .with_handshake(request)
                .header(ACCEPT, "text/event-stream");
            if let Some(id) = &last {
                request = request.header("Last-Event-ID", id);
            }
            match self.send(request).await {
                Ok(response) if kind(&response).starts_with("text/event-stream") => {
                    let mut response = response;
                    let mut events = Events::default();
                    while let Ok(Some(chunk)) = self.chunk(&mut response).await {
                        let Ok(new) = events.push(&chunk) else {
                            return;
                        };
                        for ServerEvent { id, retry, data } in new {
                            silent = 0;
                            last = id.or(last);
                            pause = retry.map_or(pause, |retry| {
                                Duration::from_millis(retry).clamp(RESUME_AT_LEAST, RESUME_AT_MOST)
                            });
                            if let Err(error) = self.take(&data, Era::Legacy, None).await {
                                tracing::debug!(%error, "a tool server did not take an answer");
                            }
                        }
                    }
                }
                Ok(response) if response.status().is_client_error() => return,
                Ok(_) | Err(_) => {}
            }
            sleep(pause).await;
        }
    }

    /// Takes a message of a stream; returns the answer to the request with this id, if it is that.
    async fn take(
        &self,
        data: &str,
        era: Era,
        id: Option<u64>,
    ) -> Result<Option<Result<Value, RpcError>>, McpError> {
        let reply = match Incoming::read(data.as_bytes()) {
            Some(Incoming::Response(of, outcome)) if Some(of) == id => return Ok(Some(outcome)),
            Some(Incoming::Error(error)) if id.is_some() => return Ok(Some(Err(error))),
            Some(Incoming::Notification { method, .. }) => {
                if method == "notifications/tools/list_changed" {
                    self.changed.store(true, Ordering::Relaxed);
                }
                return Ok(None);
            }
            Some(Incoming::Request { id, method, params }) if era == Era::Legacy => {
                match method.as_str() {
                    "ping" => message::response(&id, Ok(json!({}))),
                    "elicitation/create" if self.person.is_there() => {
                        let answer = elicit::answer(&*self.person, &params).await;
                        message::response(&id, Ok(answer))
                    }
                    _ => message::response(&id, Err((-32601, "this client does not do that"))),
                }
            }
            _ => return Ok(None),
        };
        self.notify(era, &reply).await?;
        Ok(None)
    }
}

fn kind(response: &Response) -> String {
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    kind.unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
