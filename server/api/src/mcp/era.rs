//! The version of the protocol that a request speaks, and the checks that come with it.
//!
//! Source: "Versioning and Compatibility" and "Streamable HTTP" of the revision 2026-07-28; "Transports" of 2025-11-25.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};
use shared_types::Digest;

use super::{
    SESSION_ID,
    message::{
        Fault, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, Request, UNSUPPORTED_VERSION,
    },
};

/// The version without a handshake.
pub(super) const MODERN: &str = "2026-07-28";

/// The versions with a handshake, the newest first.
pub(super) const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// The key of the version in a request's `_meta`.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Longest session id that is taken, in bytes.
const MAX_SESSION_BYTES: usize = 128;

/// The era of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Era {
    /// Up to 2025-11-25.
    Legacy {
        /// The name that the client was given at its beginning.
        session: Option<String>,
    },
    /// From 2026-07-28 on.
    Modern,
}

impl Era {
    /// The key of the operation of a call, made of the client's name and the request's id. A client of 2026-07-28 has
    /// no name that lasts.
    pub(super) fn key_of(&self, id: Option<&Value>) -> Option<String> {
        let Self::Legacy {
            session: Some(session),
        } = self
        else {
            return None;
        };
        let id = id.filter(|id| id.is_string() || id.is_number())?;
        Some(format!(
            "mcp-{}",
            Digest::of(format!("{session}\0{id}").as_bytes())
        ))
    }
}

/// The versions that are spoken here, the newest first.
pub(super) fn supported() -> Vec<&'static str> {
    [MODERN].into_iter().chain(LEGACY).collect()
}

/// The era of a request.
///
/// # Errors
/// If the version is not spoken here, or the headers are not those that the version asks for.
pub(super) fn era(headers: &HeaderMap, request: &Request) -> Result<Era, Fault> {
    let header = text(headers, &VERSION)?;
    let meta = request.params.get("_meta").and_then(Value::as_object);
    let of_meta = meta.and_then(|meta| meta.get(META_VERSION));
    let is_legacy = |version: &str| LEGACY.contains(&version);
    if of_meta.is_none() && header.is_none_or(is_legacy) {
        return session(headers).map(|session| Era::Legacy { session });
    }
    let version = match of_meta.map(|version| version.as_str()) {
        Some(Some(version)) => version,
        Some(None) => return Err(bad_params(&format!("_meta {META_VERSION:?} is no text"))),
        None if header == Some(MODERN) || header.is_none() => {
            return Err(bad_params(&format!("_meta has no {META_VERSION:?}")));
        }
        None => header.unwrap_or_default(),
    };
    if header != Some(version) {
        return Err(mismatch(&VERSION, version));
    }
    if version != MODERN {
        let message = "this version of the protocol is not spoken here";
        return Err(Fault::bad(UNSUPPORTED_VERSION, message)
            .with_data(json!({ "supported": supported(), "requested": version })));
    }
    if !meta.is_some_and(has_capabilities) {
        return Err(bad_params(&format!("_meta has no {META_CAPABILITIES:?}")));
    }
    if text(headers, &METHOD)? != Some(request.method.as_str()) {
        return Err(mismatch(&METHOD, &request.method));
    }
    named(headers, request)?;
    Ok(Era::Modern)
}

/// The client's name in the era of handshakes.
///
/// # Errors
/// If it cannot be one.
pub(super) fn session(headers: &HeaderMap) -> Result<Option<String>, Fault> {
    let session = text(headers, &SESSION_ID)?;
    match session.is_some_and(|session| session.len() > MAX_SESSION_BYTES) {
        true => Err(Fault::bad(
            INVALID_REQUEST,
            "Mcp-Session-Id is too long; initialize again",
        )),
        false => Ok(session.map(str::to_owned)),
    }
}

fn has_capabilities(meta: &Map<String, Value>) -> bool {
    meta.get(META_CAPABILITIES).is_some_and(Value::is_object)
}

/// Checks the header that repeats which tool is called.
fn named(headers: &HeaderMap, request: &Request) -> Result<(), Fault> {
    let field = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let Some(name) = request.params.get(field).and_then(Value::as_str) else {
        return Err(bad_params(&format!("params has no {field}")));
    };
    let header = text(headers, &NAME)?.and_then(decoded);
    match header.as_deref() == Some(name) {
        true => Ok(()),
        false => Err(mismatch(&NAME, name)),
    }
}

/// The value of a header that may be written in Base64.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let inner = value
        .strip_prefix("=?base64?")
        .and_then(|value| value.strip_suffix("?="));
    let Some(inner) = inner else {
        return Some(value.into());
    };
    let bytes = BASE64_STANDARD.decode(inner).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Fault> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().map(|value| value.to_str());
    match (value, values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value)),
        _ => Err(Fault::bad(
            HEADER_MISMATCH,
            format!("the header {name} is there twice, or is no ASCII"),
        )),
    }
}

fn mismatch(name: &HeaderName, of_body: &str) -> Fault {
    let message = format!(
        "the header {name} is missing, or is not {of_body:?} as in the message; send both alike"
    );
    Fault::bad(HEADER_MISMATCH, message)
}

fn bad_params(why: &str) -> Fault {
    Fault::bad(INVALID_PARAMS, why)
}
