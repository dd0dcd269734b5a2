//! The console's files: which one an address names, in which coding it is sent, and its headers.

use std::borrow::Cow;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rust_embed::{EmbeddedFile, RustEmbed};

include!(concat!(env!("OUT_DIR"), "/dist.rs"));

/// The file that all pages are.
const PAGE: &str = "index.html";

/// The folder of the files whose names have the digest of their content.
const NAMED_BY_DIGEST: &str = "assets/";

/// What a page of the console may load: this server's own files, and pictures that the page itself has made (an image
/// that is pasted). It has no style or script within it, and no page of another site has it in a frame. A worker
/// follows the policy of its own script, so that each file carries it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
    font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; frame-ancestors 'none'; \
    base-uri 'none'; form-action 'none'";

/// The codings in which the build writes files, best first, with the endings of their names.
const CODINGS: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];

/// The media types of what the build makes, by the ending of the name.
const TYPES: [(&str, &str); 14] = [
    ("css", "text/css; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/x-icon"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("md", "text/markdown; charset=utf-8"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("webmanifest", "application/manifest+json"),
    ("webp", "image/webp"),
    ("woff2", "font/woff2"),
];

/// One file, in the coding that the client takes.
pub(super) struct File {
    /// Its name below the folder, without the ending of a coding.
    name: String,
    coding: Option<&'static str>,
    embedded: EmbeddedFile,
}

impl File {
    /// The file that this address names. The page itself has no address of its own.
    pub(super) fn at<Built: RustEmbed>(path: &str, headers: &HeaderMap) -> Option<Self> {
        let name = path.strip_prefix('/')?;
        (is_name(name) && name != PAGE).then(|| Self::named::<Built>(name, headers))?
    }

    /// The page; `None` if the console is not built.
    pub(super) fn page<Built: RustEmbed>(headers: &HeaderMap) -> Option<Self> {
        Self::named::<Built>(PAGE, headers)
    }

    fn named<Built: RustEmbed>(name: &str, headers: &HeaderMap) -> Option<Self> {
        let of = |coding, embedded| Self {
            name: name.to_owned(),
            coding,
            embedded,
        };
        let mut takes = CODINGS.into_iter();
        takes
            .find_map(|(coding, ending)| {
                let taken = weight(headers, header::ACCEPT_ENCODING, coding) > 0.0;
                let coded = taken.then(|| Built::get(&format!("{name}{ending}")))?;
                coded.map(|embedded| of(Some(coding), embedded))
            })
            .or_else(|| Built::get(name).map(|embedded| of(None, embedded)))
    }

    /// The answer: the file, or that the client has it already.
    pub(super) fn answer(self, method: &Method, asked: &HeaderMap) -> Response {
        let etag = self.etag();
        let mut response = match has_already(asked, &etag) {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => self.whole(method),
        };
        let (kept, varies) = match () {
            () if self.name.starts_with(NAMED_BY_DIGEST) => {
                ("public, max-age=31536000, immutable", "accept-encoding")
            }
            () if self.name == PAGE => ("no-cache", "accept, accept-encoding"),
            () => ("no-cache", "accept-encoding"),
        };
        let etag = HeaderValue::try_from(etag).expect("base64url is a header's text");
        response.headers_mut().insert(header::ETAG, etag);
        for (name, value) in [
            (header::CACHE_CONTROL, kept),
            (header::VARY, varies),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (HeaderName::from_static("x-robots-tag"), "noindex"),
        ] {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(name, value);
        }
        response
    }

    fn whole(&self, method: &Method) -> Response {
        let bytes = match &self.embedded.data {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => Bytes::from(bytes.clone()),
        };
        let length = HeaderValue::from(bytes.len());
        let body = match *method {
            Method::HEAD => Body::empty(),
            _ => Body::from(bytes),
        };
        let mut response = body.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_LENGTH, length);
        headers.insert(header::CONTENT_TYPE, media_type(&self.name));
        if let Some(coding) = self.coding {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
        }
        response
    }

    /// The digest of its bytes, so that each coding has its own.
    fn etag(&self) -> String {
        let digest = self.embedded.metadata.sha256_hash();
        format!("\"{}\"", URL_SAFE_NO_PAD.encode(digest))
    }
}

/// True for names that the build gives. No part begins with a dot, so that no name leads out of the folder, and what
/// a build keeps for itself there has no address. A coding is chosen by a header, never by a name.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let mut letters = part.bytes();
        !part.is_empty()
            && !part.starts_with('.')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || b"._-".contains(&letter))
    };
    name.split('/').all(is_part) && !CODINGS.iter().any(|(_, ending)| name.ends_with(ending))
}

fn media_type(name: &str) -> HeaderValue {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let known = TYPES.into_iter().find(|(known, _)| *known == ending);
    HeaderValue::from_static(known.map_or("application/octet-stream", |(_, media_type)| media_type))
}

/// True if `If-None-Match` names this tag.
fn has_already(asked: &HeaderMap, etag: &str) -> bool {
    items(asked, header::IF_NONE_MATCH)
        .any(|item| item == "*" || item.strip_prefix("W/").unwrap_or(item) == etag)
}

/// The weight, 0 to 1, that a header such as `Accept` gives to exactly this name; 0 if it does not name it.
pub(super) fn weight(headers: &HeaderMap, header: HeaderName, name: &str) -> f32 {
    let given = items(headers, header).find_map(|item| {
        let mut parts = item.split(';').map(str::trim);
        let is_it = parts.next()?.eq_ignore_ascii_case(name);
        is_it.then(|| {
            let q = parts.find_map(|part| {
                let (key, value) = part.split_once('=')?;
                key.trim().eq_ignore_ascii_case("q").then(|| value.trim())
            });
            q.map_or(1.0, |q| q.parse().unwrap_or(0.0))
        })
    });
    given.unwrap_or(0.0)
}

/// The items of a header that is a list, without empty ones.
fn items(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(name).into_iter();
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(str::trim)
        .filter(|item| !item.is_empty())
}
