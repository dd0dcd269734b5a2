//! `/problems`: a page for each code of a problem, to which the `type` of an answer leads.

use axum::{
    extract::{Path, rejection::PathRejection},
    http::StatusCode,
    response::{Html, IntoResponse, Response},
};

use super::{About, Code};
use crate::rest::html::{self, Escaped};

/// The list of all codes.
pub(crate) async fn all() -> Response {
    let items: String = Code::ALL.iter().map(|code| item(&code.about())).collect();
    let body = format!("<h1>Problems</h1>\n<ul>\n{items}</ul>\n");
    (html::HEADERS, Html(html::document("Problems", &body))).into_response()
}

/// The page of one code.
pub(crate) async fn one(code: Result<Path<String>, PathRejection>) -> Response {
    let known = code.ok().and_then(|Path(word)| Code::of(&word));
    let Some(code) = known else {
        let body =
            "<h1>There is no such problem</h1>\n<p><a href=\"/problems\">All problems</a></p>\n";
        let page = Html(html::document("There is no such problem", body));
        return (StatusCode::NOT_FOUND, html::HEADERS, page).into_response();
    };
    let about = code.about();
    let body = format!(
        "<h1>{}</h1>\n<p class=\"note\">{} (status {})</p>\n<p>{}</p>\n<p>{}</p>\n\
         <p><a href=\"/problems\">All problems</a></p>\n",
        Escaped(about.title),
        Escaped(about.word),
        about.status.as_u16(),
        Escaped(about.means),
        Escaped(about.remedy),
    );
    (html::HEADERS, Html(html::document(about.title, &body))).into_response()
}

fn item(about: &About) -> String {
    format!(
        "<li><a href=\"/problems/{word}\">{word}</a>: {title}</li>\n",
        word = Escaped(about.word),
        title = Escaped(about.title)
    )
}
