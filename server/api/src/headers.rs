//! Headers that every answer carries, whatever it is, so that no route can forget them: nothing is
//! stored on the way, nothing is taken for another type than it says, and a browser that shows an
//! answer runs nothing in it and puts it into no frame.

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::Response,
};

const ON_EVERYTHING: [(HeaderName, HeaderValue); 3] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
];

/// The answer with the headers of all answers.
pub(crate) async fn on_everything(mut response: Response) -> Response {
    response.headers_mut().extend(ON_EVERYTHING);
    response
}
