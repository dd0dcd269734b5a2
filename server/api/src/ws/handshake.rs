//! The beginning of a WebSocket (RFC 6455, 4.2).

use axum::{
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName};
use hyper::upgrade::OnUpgrade;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::rest::{Code, respond};

/// The version of the protocol that the server speaks.
const VERSION: HeaderValue = HeaderValue::from_static("13");
/// Bytes of a client's key.
const KEY_BYTES: usize = 16;

/// A request that may become a WebSocket.
pub(super) struct Handshake {
    accept: HeaderValue,
    /// Gives the connection, once the client has the answer.
    upgrade: OnUpgrade,
}

impl Handshake {
    pub(super) fn of(parts: &mut Parts) -> Result<Self, NoHandshake> {
        let accept = accept(&parts.headers)?;
        let upgrade = parts.extensions.remove::<OnUpgrade>();
        let upgrade = upgrade.ok_or(NoHandshake::NotAsked)?;
        Ok(Self { accept, upgrade })
    }

    /// The two halves: what opens the connection, and what the client is answered.
    pub(super) fn split(self) -> (OnUpgrade, Response) {
        let switched = [
            (header::CONNECTION, HeaderValue::from_static("upgrade")),
            (header::UPGRADE, HeaderValue::from_static("websocket")),
            (header::SEC_WEBSOCKET_ACCEPT, self.accept),
        ];
        let answer = (StatusCode::SWITCHING_PROTOCOLS, switched).into_response();
        (self.upgrade, answer)
    }
}

/// The reason why a request becomes no WebSocket.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum NoHandshake {
    /// It does not ask for one.
    #[error("this address speaks WebSocket, over HTTP/1.1")]
    NotAsked,
    /// It speaks another version of the protocol.
    #[error("this address speaks version 13 of WebSocket")]
    Version,
    /// It has no key, or one that is none.
    #[error("sec-websocket-key has to be 16 bytes in base64")]
    Key,
}

impl IntoResponse for NoHandshake {
    fn into_response(self) -> Response {
        let code = match self {
            Self::Version => Code::UpgradeRequired,
            Self::NotAsked | Self::Key => Code::BadRequest,
        };
        let mut response = respond(code.problem(self.to_string()));
        if self == Self::Version {
            let websocket = HeaderValue::from_static("websocket");
            response.headers_mut().insert(header::UPGRADE, websocket);
            let headers = response.headers_mut();
            headers.insert(header::SEC_WEBSOCKET_VERSION, VERSION);
        }
        response
    }
}

/// The proof that the server has understood the client's key.
fn accept(headers: &HeaderMap) -> Result<HeaderValue, NoHandshake> {
    let says = |name: HeaderName, word: &str| {
        let values = headers.get_all(name).into_iter();
        let mut words = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(',').map(str::trim));
        words.any(|said| said.eq_ignore_ascii_case(word))
    };
    if !says(header::CONNECTION, "upgrade") || !says(header::UPGRADE, "websocket") {
        return Err(NoHandshake::NotAsked);
    }
    if headers.get(header::SEC_WEBSOCKET_VERSION) != Some(&VERSION) {
        return Err(NoHandshake::Version);
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    let key = key.filter(|key| {
        let bytes = STANDARD.decode(key.as_bytes());
        bytes.is_ok_and(|bytes| bytes.len() == KEY_BYTES)
    });
    let accept = derive_accept_key(key.ok_or(NoHandshake::Key)?.as_bytes());
    accept.parse().map_err(|_| NoHandshake::Key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 6455, 1.3, with one header changed or left out.
    fn with(name: &str, value: Option<&str>) -> Result<HeaderValue, NoHandshake> {
        let example = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let mut headers = HeaderMap::new();
        for (known, usual) in example {
            let said = if known == name { value } else { Some(usual) };
            if let Some(said) = said {
                headers.insert(known, said.parse().expect("a header's value"));
            }
        }
        accept(&headers)
    }

    #[test]
    fn a_handshake_is_accepted_as_in_the_standard() {
        let accept = with("", None).expect("it is fine");
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn what_is_no_handshake_is_refused_by_what_is_wrong_with_it() {
        for (name, value, why) in [
            ("connection", None, NoHandshake::NotAsked),
            ("upgrade", Some("h2c"), NoHandshake::NotAsked),
            ("sec-websocket-version", Some("8"), NoHandshake::Version),
            ("sec-websocket-version", None, NoHandshake::Version),
            ("sec-websocket-key", None, NoHandshake::Key),
            ("sec-websocket-key", Some("c2hvcnQ="), NoHandshake::Key),
            ("sec-websocket-key", Some("not base64"), NoHandshake::Key),
        ] {
            assert_eq!(with(name, value), Err(why), "{name}: {value:?}");
        }
    }
}
