//! Headers that every answer carries, whatever it is, so that no route can forget them: nothing is
//! stored on the way, nothing is taken for another type than it says, and a browser that shows an
//! answer runs nothing in it, puts it into no frame, lets no page of another site have it or hold its
//! window, and tells no other site where it was read.

use axum::{
    extract::State,
    http::{HeaderName, HeaderValue, header},
    response::Response,
};

const ON_EVERYTHING: [(HeaderName, HeaderValue); 6] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// If the server has TLS, a browser uses nothing else for a year.
const OVER_TLS: (HeaderName, HeaderValue) = (
    header::STRICT_TRANSPORT_SECURITY,
    HeaderValue::from_static("max-age=31536000"),
);

/// The answer with the headers of all answers. A page may have a policy of its own.
pub(crate) async fn on_everything(State(https): State<bool>, mut response: Response) -> Response {
    for (name, value) in ON_EVERYTHING.into_iter().chain(https.then_some(OVER_TLS)) {
        response.headers_mut().entry(name).or_insert(value);
    }
    response
}
