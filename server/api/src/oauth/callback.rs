//! The other side of OAuth: a person's browser comes back from the authorization server of a tool server.
//!
//! A browser that another site leads here shows no cookie. So the page leads to itself once, and then the browser shows
//! it. Without a cookie nothing is taken: the answer counts only for the person who began the sign-in.

use axum::{
    Json,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode, Uri, header},
    response::{Html, IntoResponse as _, Response},
};
use server_app::{SignInAnswer, client_document};

use super::{Base, form};
use crate::{
    Doors,
    rest::{
        Signed,
        html::{self, Escaped, document},
    },
};

/// The parameter of a page that has led to itself.
const AGAIN: &str = "again=1";

#[derive(serde::Deserialize)]
struct StateWord {
    #[serde(default)]
    state: String,
}

/// The state and the answer in the query of the address at which a browser came back.
pub(crate) fn answer_of(query: &str) -> Option<(String, SignInAnswer)> {
    let StateWord { state } = form(query.as_bytes())?;
    let answer: SignInAnswer = form(query.as_bytes())?;
    let says = !answer.code.is_empty() || !answer.error.is_empty();
    (!state.is_empty() && says).then_some((state, answer))
}

/// The document by which authorization servers know this client.
pub(super) async fn client(Base(base): Base) -> Response {
    Json(client_document(&base)).into_response()
}

/// The page to which the browser comes back.
pub(super) async fn callback(
    signed: Result<Signed, Response>,
    State(doors): State<Doors>,
    uri: Uri,
) -> Response {
    let query = uri.query().unwrap_or_default();
    let Some((state, answer)) = answer_of(query) else {
        return failed("the address is not whole");
    };
    let Ok(Signed(ctx)) = signed else {
        return signed_out(query);
    };
    match doors.app.tool_sign_ins.finish(&ctx, &state, &answer).await {
        Ok(server) => page(
            StatusCode::OK,
            &format!("Signed in to {server}"),
            "<p>Your agents use it from the next message on. You can close this page.</p>",
        ),
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(why: &str) -> Response {
    let body = format!(
        "<p>{}.</p><p>Nothing was stored. Begin again with <code>gantry mcp login NAME</code>, or in the console.</p>",
        Escaped(why)
    );
    page(
        StatusCode::BAD_REQUEST,
        "The sign-in did not succeed",
        &body,
    )
}

/// The page for a browser that shows no cookie.
fn signed_out(query: &str) -> Response {
    let is_again = query.split('&').any(|part| part == AGAIN);
    if !is_again {
        let here = format!("/oauth/callback?{query}&{AGAIN}");
        let title = "One moment";
        let body = format!("<p><a href=\"{}\">Go on</a></p>", Escaped(&here));
        let mut response = page(StatusCode::OK, title, &body);
        if let Ok(refresh) = HeaderValue::try_from(format!("0;url={here}")) {
            let name = HeaderName::from_static("refresh");
            response.headers_mut().insert(name, refresh);
        }
        return response;
    }
    page(
        StatusCode::UNAUTHORIZED,
        "Sign in to Gantry to go on",
        "<p>This browser is not signed in to Gantry. <a href=\"/sign-in\" target=\"_blank\" rel=\"noopener\">Sign in</a> as \
         the person who began this, then load this page again.</p><p>Or give the address of this page to the command that \
         began it: <code>gantry mcp login NAME --paste</code>. Give it to nobody else.</p>",
    )
}

fn page(status: StatusCode, title: &str, body: &str) -> Response {
    let body = format!("<h1>{}</h1>\n{body}", Escaped(title));
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    let page = Html(document(title, &body));
    (status, html::HEADERS, no_store, page).into_response()
}
