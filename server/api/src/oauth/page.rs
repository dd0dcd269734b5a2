//! The pages of OAuth: no script, no other files.

use std::fmt::Write as _;

use axum::{
    http::{HeaderValue, StatusCode, Uri, header},
    response::{Html, IntoResponse as _, Response},
};
use server_app::{OpContext, Scope};
use url::Url;

use super::CodeRequest;
use crate::{
    Doors,
    rest::html::{self, Escaped, document},
};

/// The page for a request that leads nowhere.
pub(super) fn refused(why: &str) -> Response {
    let body = format!(
        "<h1>This program cannot be let in</h1><p>{}.</p><p>Nothing was given to it. Begin again in the program.</p>",
        Escaped(why)
    );
    let page = Html(document("This program cannot be let in", &body));
    (StatusCode::BAD_REQUEST, html::HEADERS, page).into_response()
}

/// The page for a browser that shows no cookie. A browser shows none where another site led here: then the link does.
pub(super) fn signed_out(uri: &Uri) -> Response {
    let here = uri.path_and_query().map_or("/", |here| here.as_str());
    let body = format!(
        "<h1>Sign in to let a program in</h1><p>A program wants to use Gantry as you. <a href=\"{}\">Go on</a>, if you \
         are signed in here.</p><p>Else <a href=\"/sign-in\" target=\"_blank\" rel=\"noopener\">sign in</a> first, \
         then come back to this page and go on.</p>",
        Escaped(here)
    );
    let page = Html(document("Sign in to let a program in", &body));
    (StatusCode::UNAUTHORIZED, html::HEADERS, page).into_response()
}

/// The page on which a person lets a program in.
pub(super) async fn consent(doors: &Doors, ctx: &OpContext, request: &CodeRequest) -> Response {
    let asked = &request.asked;
    let person = match doors.app.access.me(ctx).await {
        Ok(me) => me.user.name,
        Err(_) => return refused("the server cannot do this now"),
    };
    let Some(place) = place(&asked.redirect_uri) else {
        return refused("the program's address cannot be read");
    };
    let mut body = format!(
        "<h1>Let {name} use Gantry as you?</h1>\n<p>You are <b>{person}</b>. The answer goes to <b>{place}</b>. The \
         program calls itself <b>{name}</b>, which the server cannot check. Go on only if you have just begun this in that \
         program.</p>\n<p>It could, until you end its key (for 90 days at most):</p>\n<ul>\n",
        name = Escaped(&request.client.name),
        person = Escaped(person),
        place = Escaped(&place),
    );
    for scope in &request.scopes {
        // Writing to a text does not fail.
        let _ = writeln!(body, "<li>{}</li>", means(*scope));
    }
    body.push_str("</ul>\n<form method=\"post\" action=\"/oauth/authorize\">\n");
    let scopes: Vec<_> = request.scopes.iter().map(Scope::to_string).collect();
    for (name, value) in [
        ("response_type", asked.response_type.as_str()),
        ("client_id", &asked.client_id),
        ("redirect_uri", &asked.redirect_uri),
        ("code_challenge", &asked.code_challenge),
        ("code_challenge_method", &asked.code_challenge_method),
        ("scope", &scopes.join(" ")),
        ("state", &asked.state),
        ("resource", &asked.resource),
    ] {
        let value = Escaped(value);
        let _ = writeln!(
            body,
            "<input type=\"hidden\" name=\"{name}\" value=\"{value}\">"
        );
    }
    body.push_str(
        "<button name=\"decision\" value=\"allow\">Let it in</button>\n\
         <button name=\"decision\" value=\"deny\">Do not</button>\n</form>\n",
    );
    let page = Html(document("Let a program in", &body));
    let mut response = (html::HEADERS, page).into_response();
    // Browsers hold the answer to a form to the same rule.
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'self' {place}"
    );
    if let Ok(policy) = HeaderValue::try_from(policy) {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    // Without it the form would name no origin.
    let same_origin = HeaderValue::from_static("same-origin");
    response
        .headers_mut()
        .insert(header::REFERRER_POLICY, same_origin);
    response
}

/// The scheme, host and port of an address; of a program's own scheme that alone.
fn place(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let scheme = url.scheme();
    Some(match (scheme, url.host_str(), url.port()) {
        ("http" | "https", Some(host), Some(port)) => format!("{scheme}://{host}:{port}"),
        ("http" | "https", Some(host), None) => format!("{scheme}://{host}"),
        _ => format!("{scheme}:"),
    })
}

/// The rights of a scope, in words for people.
fn means(scope: Scope) -> &'static str {
    match scope {
        Scope::Exec => "run commands and change files on your runners, without asking you",
        Scope::Chat => "read your sessions, and give work to your agents",
        Scope::Read => "look at your sessions, operations, runners and settings",
        Scope::Runners => "add, share and remove runners",
        Scope::Metrics => "read the metrics of the server",
        Scope::Admin => "manage keys, people and settings",
    }
}
