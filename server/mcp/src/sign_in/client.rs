//! The client, as authorization servers know it: registered before, by a document at its own address, or registered now.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::{Method, RequestBuilder, header::AUTHORIZATION};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared_types::clean::peer_words;
use url::form_urlencoded::byte_serialize;

use super::{Found, MAX_WORD_BYTES, SignInError, SignIns, tokens::refusal};

/// The ways in which a client shows who it is, the best one first.
const METHODS: [Showing; 3] = [Showing::Basic, Showing::Post, Showing::None];

/// A client that the authorization server knows already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownClient {
    /// Its id.
    pub id: String,
    /// Its secret, where it has one.
    pub secret: Option<String>,
    /// The issuer of the authorization server that knows it. The secret goes nowhere else.
    pub issuer: Option<String>,
}

/// The client itself.
#[derive(Debug, Clone, Copy)]
pub struct Own<'a> {
    /// The address to which the browser comes back.
    pub redirect: &'a str,
    /// The address of the document about the client, where it is reached over https from everywhere.
    pub document: Option<&'a str>,
    /// The client, where the person has registered it.
    pub known: Option<&'a KnownClient>,
}

/// The client, as one authorization server knows it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) id: String,
    secret: Option<String>,
    method: Showing,
}

/// The way in which the client shows its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Showing {
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
    #[serde(rename = "none")]
    None,
}

impl Showing {
    fn word(self) -> &'static str {
        match self {
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::None => "none",
        }
    }

    /// The best way of these; without any the one that each server knows (RFC 8414, section 2).
    fn of(methods: &[String]) -> Self {
        let is_there = |method: &Self| methods.iter().any(|known| known == method.word());
        METHODS.into_iter().find(is_there).unwrap_or(Self::Basic)
    }
}

/// The document about the client at this address (OAuth Client ID Metadata Document), which comes back to this address.
pub fn document(at: &str, redirect: &str) -> Value {
    let mut document = registration(redirect, Showing::None);
    document["client_id"] = at.into();
    document
}

fn registration(redirect: &str, method: Showing) -> Value {
    json!({
        "client_name": "Gantry",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method.word(),
        "application_type": application(redirect),
    })
}

/// The type of the application: one at a host of its own machine is native (OpenID Connect Registration, section 2).
fn application(redirect: &str) -> &'static str {
    match redirect.starts_with("https://") {
        true => "web",
        false => "native",
    }
}

impl SignIns {
    /// The client, as the authorization server knows it or gets to know it now.
    pub(super) async fn identity(
        &self,
        found: &Found,
        own: &Own<'_>,
    ) -> Result<Identity, SignInError> {
        let authority = &found.authority;
        if let Some(KnownClient { id, secret, issuer }) = own.known {
            match issuer {
                Some(issuer) if *issuer != authority.issuer => {
                    return Err(SignInError::other_issuer(&authority.issuer, issuer));
                }
                None if secret.is_some() => {
                    return Err(SignInError::Unbound(peer_words(&authority.issuer)));
                }
                _ => {}
            }
            let method = match secret {
                Some(_) => match Showing::of(&authority.methods) {
                    Showing::Post => Showing::Post,
                    Showing::Basic | Showing::None => Showing::Basic,
                },
                None => Showing::None,
            };
            return Ok(Identity {
                id: id.clone(),
                secret: secret.clone(),
                method,
            });
        }
        if let Some(document) = own.document.filter(|_| authority.takes_documents) {
            return Ok(Identity {
                id: document.to_owned(),
                secret: None,
                method: Showing::None,
            });
        }
        let Some(at) = &authority.registration_endpoint else {
            let (issuer, redirect) = (peer_words(&authority.issuer), own.redirect.to_owned());
            return Err(SignInError::NoClient(issuer, redirect));
        };
        let method = Showing::of(&authority.methods);
        let request = self.client.request(Method::POST, at)?;
        let request = request.json(&registration(own.redirect, method));
        let (status, answer) = self.ask(at, request).await?;
        let answer = answer.unwrap_or_default();
        if !(200..300).contains(&status) {
            return Err(refusal(status, &answer));
        }
        let word = |name: &str| {
            let word = answer[name].as_str().map(str::to_owned);
            word.filter(|word| !word.is_empty() && word.len() <= MAX_WORD_BYTES)
        };
        let id = word("client_id");
        let id = id.ok_or_else(|| SignInError::Form("it registers without an id".to_owned()))?;
        let secret = word("client_secret");
        let given = answer["token_endpoint_auth_method"].as_str();
        let given = METHODS
            .into_iter()
            .find(|method| given == Some(method.word()));
        let method = match secret {
            Some(_) => given.unwrap_or(method),
            None => Showing::None,
        };
        Ok(Identity { id, secret, method })
    }
}

impl Identity {
    /// The request with the client's name, and its form filled in.
    pub(super) fn shown(
        &self,
        request: RequestBuilder,
        form: &mut Vec<(&'static str, String)>,
    ) -> RequestBuilder {
        let coded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        match (self.method, &self.secret) {
            (Showing::Basic, Some(secret)) => {
                let both = format!("{}:{}", coded(&self.id), coded(secret));
                let value = format!("Basic {}", STANDARD.encode(both));
                let value = reqwest::header::HeaderValue::try_from(value);
                match value {
                    Ok(mut value) => {
                        value.set_sensitive(true);
                        request.header(AUTHORIZATION, value)
                    }
                    Err(_) => request,
                }
            }
            (Showing::Post, Some(secret)) => {
                form.push(("client_id", self.id.clone()));
                form.push(("client_secret", secret.clone()));
                request
            }
            _ => {
                form.push(("client_id", self.id.clone()));
                request
            }
        }
    }
}
