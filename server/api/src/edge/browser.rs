//! Browsers: the cookie that signs a page's requests in, and the proof that the page is the server's own.
//!
//! A browser sends its cookies with the requests of every page. So a request that a cookie signs in has to prove that a
//! page of this server makes it. `Sec-Fetch-Site` proves it, because no page can set that header. If a browser does not
//! send it, `Origin` has to be the server's own. A request that changes something and has neither is refused.
//!
//! The prefix `__Host-` makes the browser refuse a cookie from another host or a plain connection. A cookie has no
//! port, so the browser also sends it to other servers of the same host name.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    extract::{FromRequestParts, Request},
    http::{HeaderMap, HeaderName, HeaderValue, Method, header, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use cookie::{Cookie, SameSite};
use server_app::AppError;
use shared_types::Token;

use crate::{
    Doors,
    edge::hosts,
    rest::{Code, Refused, respond},
};

/// The name of the cookie.
const NAME: &str = "__Host-gantry";

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The value of the cookie, where the request carries one. Of several none counts: the prefix allows one.
pub(crate) fn cookie(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).into_iter();
    let mut ours = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(Cookie::split_parse)
        .filter_map(Result::ok)
        .filter(|cookie| cookie.name() == NAME);
    match (ours.next(), ours.next()) {
        (Some(one), None) => Some(one.value().to_owned()),
        _ => None,
    }
}

/// The header that gives the browser this cookie.
pub(crate) fn given(token: &Token, valid_for: Duration) -> HeaderValue {
    header_of(token.reveal(), valid_for)
}

/// The header that takes the browser's cookie away.
pub(crate) fn taken_away() -> HeaderValue {
    header_of(String::new(), Duration::ZERO)
}

fn header_of(value: String, valid_for: Duration) -> HeaderValue {
    let seconds = i64::try_from(valid_for.as_secs()).unwrap_or(i64::MAX);
    let cookie = Cookie::build((NAME, value))
        .path("/")
        .secure(true)
        .http_only(true)
        .same_site(SameSite::Strict)
        .max_age(cookie::time::Duration::seconds(seconds));
    let mut header = HeaderValue::try_from(cookie.to_string()).expect("a token is base64url");
    header.set_sensitive(true);
    header
}

/// The new cookie for the browser, if it changes; an extension of every request with a cookie.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fresh(Arc<Mutex<Option<HeaderValue>>>);

impl Fresh {
    /// This goes along with the answer.
    pub(crate) fn set(&self, header: HeaderValue) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(header);
    }

    fn take(&self) -> Option<HeaderValue> {
        let mut header = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        header.take()
    }
}

/// Sends a new cookie along with the answer, whatever the answer is.
pub(crate) async fn cookies(mut request: Request, next: Next) -> Response {
    if !request.headers().contains_key(header::COOKIE) {
        return next.run(request).await;
    }
    let fresh = Fresh::default();
    request.extensions_mut().insert(fresh.clone());
    let mut response = next.run(request).await;
    // The answer's own comes first: signing out is the last word.
    if let Some(header) = fresh.take()
        && !response.headers().contains_key(header::SET_COOKIE)
    {
        response.headers_mut().insert(header::SET_COOKIE, header);
    }
    response
}

/// A request that a page of the server's own makes; see the module.
pub(crate) struct OwnPage;

impl FromRequestParts<Doors> for OwnPage {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, doors: &Doors) -> Result<Self, Response> {
        match is_own_page(parts, doors.https) {
            true => Ok(Self),
            false => Err(foreign_page()),
        }
    }
}

/// A request over a way on which a browser keeps the cookie to itself: TLS, or the machine's own loopback.
pub(crate) struct Private;

impl FromRequestParts<Doors> for Private {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, doors: &Doors) -> Result<Self, Response> {
        match doors.https || hosts::is_on_loopback(&parts.uri, &parts.headers) {
            true => Ok(Self),
            false => Err(Refused::from(AppError::Forbidden(
                "a browser signs in over HTTPS, or on the server's own machine at localhost: start the \
                 server with --tls, or behind a proxy that ends TLS (behind_proxy under [server])"
                    .into(),
            ))
            .into_response()),
        }
    }
}

fn is_own_page(parts: &Parts, https: bool) -> bool {
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    match one(&parts.headers, SEC_FETCH_SITE) {
        HeaderContent::Once("same-origin") => true,
        // The person typed the address.
        HeaderContent::Once("none") => reads,
        HeaderContent::Once(_) | HeaderContent::Unclear => false,
        HeaderContent::Nothing => match one(&parts.headers, header::ORIGIN) {
            HeaderContent::Once(origin) => {
                let scheme = if https { "https" } else { "http" };
                hosts::is_own_origin(origin, scheme, &parts.uri, &parts.headers)
            }
            HeaderContent::Nothing => reads,
            HeaderContent::Unclear => false,
        },
    }
}

/// The content of a header.
enum HeaderContent<'a> {
    Nothing,
    Once(&'a str),
    /// It is there twice, or is no text.
    Unclear,
}

fn one(headers: &HeaderMap, name: HeaderName) -> HeaderContent<'_> {
    let mut values = headers.get_all(name).into_iter();
    match (values.next(), values.next()) {
        (None, _) => HeaderContent::Nothing,
        (Some(value), None) => value
            .to_str()
            .map_or(HeaderContent::Unclear, HeaderContent::Once),
        (Some(_), Some(_)) => HeaderContent::Unclear,
    }
}

pub(crate) fn foreign_page() -> Response {
    respond(Code::ForeignOrigin.problem(
        "a browser's request counts only from a page of this very server, which Sec-Fetch-Site or \
         Origin has to say; a program needs no cookie but a key: gantry keys add NAME",
    ))
}

#[cfg(test)]
mod tests;
