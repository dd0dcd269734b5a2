//! Sign-in to tool servers of the web, in a person's name: OAuth 2.1 as the protocol's specification of authorization
//! says, in both eras (<https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization>).
//!
//! A server refuses and says where it is described ([`Challenge`]). From there a client finds the authorization server
//! ([`SignIns::find`]), shows who it is, and sends the person's browser there ([`SignIns::begin`]). The browser comes back
//! with a code, which is exchanged for tokens ([`SignIns::redeem`]). Tokens are renewed ([`SignIns::refresh`]) and given
//! back ([`SignIns::revoke`]).
//!
//! - All that is read comes from strangers: it is bounded, no redirect is followed, and a server of https leads to https
//!   alone.
//! - An authorization server is known by its issuer, which is compared letter by letter.
//! - Nothing is stored here: [`Begun`] and [`Grant`] are secrets that the caller keeps.

mod challenge;
mod client;
mod find;
mod tokens;

use std::{collections::BTreeSet, fmt, time::Duration};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::{Method, RequestBuilder, Response, header::ACCEPT};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use server_web::{CheckedClient, WebError};
use shared_types::{Digest, clean::peer_words};
use tokio::time::timeout;
use url::Url;

pub use self::{
    challenge::Challenge,
    client::{KnownClient, Own, document},
    find::Found,
};
use self::{client::Identity, find::Authority};
use crate::{Era, McpError, era, message};

/// Most times that one request is sent again because the server refused its token.
pub(crate) const MAX_REFUSALS: usize = 2;

/// Largest document of a server about itself, and largest answer with tokens, in bytes.
const MAX_DOCUMENT_BYTES: usize = 64 * 1024;

/// The time for one answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Longest token, code, issuer, and list of scopes, in bytes.
const MAX_WORD_BYTES: usize = 16 * 1024;

/// Most scopes that are asked for at once.
const MAX_SCOPES: usize = 64;

/// The right to ask a server in a person's name.
#[async_trait]
pub trait Access: Send + Sync {
    /// The token to send with a request; nothing where there is none.
    ///
    /// # Errors
    /// There should be one, and it cannot be had.
    async fn token(&self) -> Result<Option<AccessToken>, McpError>;

    /// The server has refused a request with this token, or without one. Returns true if another try may be answered.
    ///
    /// # Errors
    /// The sign-in failed.
    async fn refused(
        &self,
        token: Option<&AccessToken>,
        challenge: &Challenge,
    ) -> Result<bool, McpError>;
}

/// A token that is sent to a server. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken(String);

impl AccessToken {
    /// Takes a token.
    pub fn new(token: String) -> Self {
        Self(token)
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken")
    }
}

/// The reason why a sign-in does not succeed, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// An address cannot be used or reached.
    #[error("{0}")]
    Web(#[from] WebError),
    /// There was no answer in time.
    #[error("{host} gave no answer within {} s", ANSWER_WITHIN.as_secs())]
    TimedOut {
        /// The host.
        host: String,
    },
    /// The tool server does not say where to sign in.
    #[error("the tool server wants a sign-in, but does not say where: {0}")]
    NotFound(String),
    /// The words of the servers do not fit together: one of them may be an impostor.
    #[error("the sign-in is refused for your safety: {0}")]
    Unsafe(String),
    /// The client is not known, and cannot make itself known.
    #[error(
        "the authorization server {0} lets no client in that it does not know: register Gantry there with the address {1}, then give what you get: gantry mcp add NAME --url URL --client-id ID --client-secret --issuer {0}"
    )]
    NoClient(String, String),
    /// The client has a secret, and it is not known for which authorization server.
    #[error(
        "the client secret is for no authorization server yet, and the tool server names {0}: if the client is registered there, add the server again with --issuer {0}"
    )]
    Unbound(String),
    /// The authorization server refused.
    #[error("the authorization server refused: {words} ({code})")]
    Refused {
        /// The code of OAuth.
        code: String,
        /// Its words, harmless and on one line.
        words: String,
    },
    /// An answer has not the form of one.
    #[error("the authorization server broke its protocol: {0}")]
    Form(String),
}

impl SignInError {
    /// The tool server names this authorization server, and another one is declared.
    fn other_issuer(named: &str, declared: &str) -> Self {
        let (named, declared) = (peer_words(named), peer_words(declared));
        Self::Unsafe(format!(
            "the tool server names the authorization server {named}, and it is declared with {declared}; if you know that the new one is right, add the server again with --issuer {named}"
        ))
    }

    /// True if the grant is of no use any more, so that only a new sign-in helps.
    pub fn ends_grant(&self) -> bool {
        matches!(self, Self::Refused { code, .. }
            if matches!(code.as_str(), "invalid_grant" | "invalid_client" | "unauthorized_client"))
    }
}

/// A sign-in that waits for the person's browser. It is a secret.
#[derive(Clone, Serialize, Deserialize)]
pub struct Begun {
    /// The word by which the browser's answer is known.
    pub state: String,
    verifier: String,
    redirect: String,
    #[serde(flatten)]
    party: Party,
    /// True if the authorization server names itself in each answer.
    says_issuer: bool,
}

/// The parties of a sign-in and of its tokens.
#[derive(Clone, Serialize, Deserialize)]
struct Party {
    issuer: String,
    token_endpoint: String,
    revocation_endpoint: Option<String>,
    client: Identity,
    resource: String,
    scopes: BTreeSet<String>,
}

/// The answer that a browser brings.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// The code; empty where the person or the server refused.
    pub code: String,
    /// The issuer, where the server names itself.
    pub iss: Option<String>,
    /// The code of the refusal.
    pub error: String,
    /// The words on it.
    pub error_description: String,
}

/// The tokens of one person for one server. It is a secret.
#[derive(Clone, Serialize, Deserialize)]
pub struct Grant {
    #[serde(flatten)]
    party: Party,
    access: String,
    refresh: Option<String>,
    /// The seconds that the access token is good for, from when it was given; absent where it is not said.
    pub good_for: Option<u64>,
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Begun({})", self.party.issuer)
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Grant({})", self.party.issuer)
    }
}

impl Begun {
    /// The issuer at which the person signs in.
    pub fn issuer(&self) -> &str {
        &self.party.issuer
    }

    /// The scopes that were asked for.
    pub fn scopes(&self) -> &BTreeSet<String> {
        &self.party.scopes
    }
}

impl Grant {
    /// The token to send.
    pub fn access(&self) -> AccessToken {
        AccessToken(self.access.clone())
    }

    /// The issuer that gave it.
    pub fn issuer(&self) -> &str {
        &self.party.issuer
    }

    /// The scopes that it has, as far as they are known.
    pub fn scopes(&self) -> &BTreeSet<String> {
        &self.party.scopes
    }

    /// True if it can be renewed.
    pub fn can_be_refreshed(&self) -> bool {
        self.refresh.is_some()
    }
}

/// Signs people in; cheap to clone.
#[derive(Debug, Clone)]
pub struct SignIns {
    client: CheckedClient,
}

impl SignIns {
    /// Signs in through this client, in the networks that it reaches.
    pub fn new(client: CheckedClient) -> Self {
        Self { client }
    }

    /// The address to which the person's browser goes, and the sign-in that waits for its answer. Asks for the scopes of
    /// the refusal, else for those that the server names, together with these.
    ///
    /// # Errors
    /// The client cannot make itself known, or the authorization server has no PKCE.
    pub async fn begin(
        &self,
        found: &Found,
        challenge: &Challenge,
        also: &BTreeSet<String>,
        own: &Own<'_>,
        mut random: impl FnMut(&mut [u8]) + Send,
    ) -> Result<(Url, Begun), SignInError> {
        let Authority {
            issuer,
            authorization_endpoint,
            ..
        } = &found.authority;
        let client = self.identity(found, own).await?;
        let mut word = || {
            let mut bytes = [0; 32];
            random(&mut bytes);
            URL_SAFE_NO_PAD.encode(bytes)
        };
        let (state, verifier) = (word(), word());
        let challenged = URL_SAFE_NO_PAD.encode(Digest::of(verifier.as_bytes()).as_bytes());
        let scopes = found.scopes(challenge, also);
        let mut url = authorization_endpoint.clone();
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &client.id)
                .append_pair("redirect_uri", own.redirect)
                .append_pair("code_challenge", &challenged)
                .append_pair("code_challenge_method", "S256")
                .append_pair("state", &state)
                .append_pair("resource", &found.resource);
            if !scopes.is_empty() {
                query.append_pair("scope", &joined(&scopes));
            }
            if scopes.contains("offline_access") {
                // OpenID Connect gives a refresh token only with the person's explicit consent.
                query.append_pair("prompt", "consent");
            }
        }
        let begun = Begun {
            state,
            verifier,
            redirect: own.redirect.to_owned(),
            says_issuer: found.authority.says_issuer,
            party: Party {
                issuer: issuer.clone(),
                token_endpoint: found.authority.token_endpoint.to_string(),
                revocation_endpoint: found
                    .authority
                    .revocation_endpoint
                    .as_ref()
                    .map(Url::to_string),
                client,
                resource: found.resource.clone(),
                scopes,
            },
        };
        Ok((url, begun))
    }

    /// The refusal of the server at this address to one who shows no token. One that does not refuse says nothing.
    ///
    /// # Errors
    /// It cannot be reached.
    pub async fn challenge(&self, server: &Url) -> Result<Challenge, SignInError> {
        let request = self.client.request(Method::POST, server)?;
        let params = era::params(Era::Modern, false, Map::new());
        let request = request
            .header(ACCEPT, "application/json, text/event-stream")
            .header("MCP-Protocol-Version", Era::Modern.version())
            .header("Mcp-Method", "server/discover")
            .json(&message::request(1, "server/discover", &params));
        let asked = async {
            let sent = request.send().await;
            let response = sent.map_err(|error| CheckedClient::unreachable(server, &error))?;
            Ok(Challenge::of(
                response.status().as_u16(),
                response.headers(),
            ))
        };
        let host = server.host_str().unwrap_or_default();
        let asked = timeout(ANSWER_WITHIN, asked).await;
        asked.unwrap_or_else(|_| {
            Err(SignInError::TimedOut {
                host: host.to_owned(),
            })
        })
    }

    /// JSON at this address; nothing where there is none.
    async fn json(&self, url: &Url) -> Result<Option<Value>, SignInError> {
        let request = self.client.request(Method::GET, url)?;
        let (status, value) = self
            .ask(url, request.header(ACCEPT, "application/json"))
            .await?;
        Ok(value.filter(|value| (200..300).contains(&status) && value.is_object()))
    }

    /// The status of an answer, and its JSON if it is any.
    async fn ask(
        &self,
        url: &Url,
        request: RequestBuilder,
    ) -> Result<(u16, Option<Value>), SignInError> {
        let asked = async {
            let sent = request.send().await;
            let response = sent.map_err(|error| CheckedClient::unreachable(url, &error))?;
            let status = response.status().as_u16();
            let body = body(url, response).await?;
            Ok((status, serde_json::from_slice(&body).ok()))
        };
        let host = url.host_str().unwrap_or_default();
        let asked = timeout(ANSWER_WITHIN, asked).await;
        asked.unwrap_or_else(|_| {
            Err(SignInError::TimedOut {
                host: host.to_owned(),
            })
        })
    }
}

async fn body(url: &Url, mut response: Response) -> Result<Vec<u8>, SignInError> {
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await;
        let chunk = chunk.map_err(|_| CheckedClient::broken(url, "the connection broke off"))?;
        let Some(chunk) = chunk else { return Ok(body) };
        if body.len() + chunk.len() > MAX_DOCUMENT_BYTES {
            return Err(CheckedClient::broken(url, "it has more than 64 KiB").into());
        }
        body.extend_from_slice(&chunk);
    }
}

/// An address that a server of this scheme names.
fn led_to(client: &CheckedClient, from: &Url, written: &str) -> Result<Url, SignInError> {
    let url = client.url(written)?;
    if from.scheme() == "https" && url.scheme() != "https" {
        let host = peer_words(url.host_str().unwrap_or_default());
        return Err(SignInError::Unsafe(format!(
            "{host} is not asked over https"
        )));
    }
    Ok(url)
}

fn joined(scopes: &BTreeSet<String>) -> String {
    scopes
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The scopes in a text, as OAuth writes them (RFC 6749, section 3.3).
fn scopes_of(text: &str) -> BTreeSet<String> {
    let is_scope = |word: &&str| {
        word.len() <= 512
            && word
                .bytes()
                .all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
    };
    text.split_ascii_whitespace()
        .filter(is_scope)
        .take(MAX_SCOPES)
        .map(str::to_owned)
        .collect()
}

/// The texts of a list.
fn texts(list: &Value) -> impl Iterator<Item = &str> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str)
        .filter(|text| text.len() <= MAX_WORD_BYTES)
}

#[cfg(test)]
mod tests;
