//! The web console: the built files of `server/console/dist`, from the server's own binary and port.
//!
//! A release has the files in it; a development build reads the folder when it is asked. Where there are none, each
//! page says how to build the console.
//!
//! Each address that no other route has is an address of a page, if a browser goes there: it asks for HTML. All pages
//! are the one file `index.html`, whose script shows what the address names. To everything else the answer is a
//! problem, as for each address that does not exist.
//!
//! These answers need no credential. They depend on the address and on `Accept`, `Accept-Encoding` and
//! `If-None-Match` alone, so they are the same for all clients. The bytes of a release's files are the program's own:
//! to answer a stranger takes no memory for them.

mod files;

use axum::{
    http::{HeaderMap, Method, Uri, header},
    response::{Html, IntoResponse as _, Response},
};
use rust_embed::RustEmbed;

use self::files::{Dist, File};
use crate::rest::{html, no_such_route};

/// The first parts of addresses that belong to programs, or to pages of another kind. No page of the console is below
/// them.
const OF_OTHERS: [&str; 10] = [
    "api", "assets", "install", "livez", "mcp", "metrics", "oauth", "problems", "readyz", "shared",
];

/// True if this server has the console: it was built.
pub fn has_console() -> bool {
    File::page::<Dist>(&HeaderMap::new()).is_some()
}

/// The answer to each request that no other route takes.
pub(crate) async fn page_or_problem(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    match answer::<Dist>(&method, uri.path(), &headers) {
        Some(response) => response,
        None => no_such_route().await,
    }
}

/// A file of the console, or its page; `None` if the address is neither.
fn answer<Built: RustEmbed>(method: &Method, path: &str, headers: &HeaderMap) -> Option<Response> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    let file = match File::at::<Built>(path, headers) {
        Some(file) => file,
        None if is_page(path) && files::weight(headers, header::ACCEPT, "text/html") > 0.0 => {
            match File::page::<Built>(headers) {
                Some(page) => page,
                None => return Some(not_built()),
            }
        }
        None => return None,
    };
    Some(file.answer(method, headers))
}

/// True for the address of a page. One with `.` or `..` in it is none, however it is written.
fn is_page(path: &str) -> bool {
    let plain = path.to_ascii_lowercase();
    let plain = plain.replace("%2e", ".");
    let plain = plain.replace("%2f", "/").replace("%5c", "/");
    let mut parts = plain.split(['/', '\\']);
    !parts.clone().any(|part| matches!(part, "." | ".."))
        && parts.nth(1).is_some_and(|part| !OF_OTHERS.contains(&part))
}

/// The page of a server that was built without the console.
fn not_built() -> Response {
    let body = "<h1>The web console is not built</h1>\n\
        <p>The server runs, without its web console. Build it where the server's sources are, with Node 20.19 or newer \
        and npm:</p>\n<pre>make console</pre>\n\
        <p>A development build shows it when you reload this page; <code>make up</code> builds it as well where Node \
        is installed. Build a release of the server again after that.</p>\n\
        <p>The terminal needs no console: <code>gantry login</code>, then <code>gantry chat</code>.</p>\n";
    let page = Html(html::document("The web console is not built", body));
    (html::HEADERS, page).into_response()
}

#[cfg(test)]
mod tests;
