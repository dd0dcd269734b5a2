use axum::{
    Extension, Router, body::Body, http::Request as HttpRequest, middleware::from_fn, routing::get,
};
use shared_types::{TokenKind, entropy::SeededEntropy};
use tower::ServiceExt as _;

use super::*;

fn token(seed: u64) -> Token {
    Token::generate(TokenKind::Browser, &SeededEntropy::new(seed))
}

fn parts(method: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = HttpRequest::builder().method(method).uri("/api/v1/me");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).expect("it is a request").into_parts().0
}

#[test]
fn a_cookie_counts_only_from_a_page_of_this_very_server() {
    let site = |site| ("sec-fetch-site", site);
    let origin = |origin| ("origin", origin);
    let own = origin("https://gantry.example:7443");
    for (method, headers, counts) in [
        ("POST", vec![site("same-origin")], true),
        ("POST", vec![site("same-site")], false),
        ("POST", vec![site("cross-site"), own], false),
        ("POST", vec![site("none")], false),
        ("POST", vec![site("same-origin"), site("cross-site")], false),
        ("POST", vec![], false),
        ("POST", vec![own], true),
        ("DELETE", vec![], false),
        ("PATCH", vec![own], true),
        ("POST", vec![origin("https://GANTRY.example.:7443")], true),
        ("POST", vec![own, own], false),
        ("POST", vec![origin("http://gantry.example:7443")], false),
        ("POST", vec![origin("https://gantry.example:7444")], false),
        ("POST", vec![origin("https://gantry.example")], false),
        ("POST", vec![origin("https://evil.example:7443")], false),
        ("POST", vec![origin("null")], false),
        ("GET", vec![], true),
        ("GET", vec![site("none")], true),
        ("GET", vec![site("same-origin")], true),
        ("GET", vec![site("same-site")], false),
        ("GET", vec![site("cross-site")], false),
        ("GET", vec![origin("https://evil.example")], false),
        ("HEAD", vec![], true),
    ] {
        let all = [&[("host", "gantry.example:7443")], headers.as_slice()].concat();
        let parts = parts(method, &all);
        assert_eq!(is_own_page(&parts, true), counts, "{method} {headers:?}");
    }
}

#[test]
fn a_port_that_goes_without_saying_may_be_said() {
    for (https, host, origin, own) in [
        (true, "gantry.example:443", "https://gantry.example", true),
        (true, "gantry.example", "https://gantry.example:443", true),
        (false, "localhost:80", "http://localhost", true),
        (false, "localhost", "http://localhost:443", false),
        (false, "[::1]:7000", "http://[::1]:7000", true),
        (false, "localhost:7000", "http://localhost:3000", false),
        (false, "localhost:7000", "http://127.0.0.1:7000", false),
    ] {
        let parts = parts("POST", &[("host", host), ("origin", origin)]);
        assert_eq!(is_own_page(&parts, https), own, "{origin} asks {host}");
    }
}

#[test]
fn the_cookie_is_found_among_others_and_of_two_none_counts() {
    let of = |lines: &[&str]| {
        let lines: Vec<_> = lines.iter().map(|line| ("cookie", *line)).collect();
        cookie(&parts("GET", &lines).headers)
    };
    assert_eq!(of(&["a=b; __Host-gantry=x; c=d"]).as_deref(), Some("x"));
    assert_eq!(of(&["a=b", "__Host-gantry=x"]).as_deref(), Some("x"));
    assert_eq!(of(&["__Host-gantry=x; __Host-gantry=y"]), None);
    assert_eq!(of(&["gantry=x", "__host-gantry=x", "nonsense"]), None);
    assert_eq!(of(&[]), None);
}

#[test]
fn the_browser_is_told_to_keep_the_cookie_to_itself() {
    let token = token(1);
    let header = given(&token, Duration::from_secs(60));
    assert!(header.is_sensitive(), "it shows in no debug output");
    let said = header.to_str().expect("text");
    let (value, attributes) = said.split_once("; ").expect("it has attributes");
    assert_eq!(value, format!("__Host-gantry={}", token.reveal()));
    let mut attributes: Vec<_> = attributes.split("; ").collect();
    attributes.sort_unstable();
    let expected = [
        "HttpOnly",
        "Max-Age=60",
        "Path=/",
        "SameSite=Strict",
        "Secure",
    ];
    assert_eq!(attributes, expected, "and no Domain");
    assert!(taken_away().to_str().expect("text").contains("Max-Age=0"));
}

#[tokio::test]
async fn a_new_cookie_goes_along_with_any_answer_and_signing_out_is_the_last_word() {
    let renews = async |Extension(fresh): Extension<Fresh>| {
        fresh.set(given(&token(2), Duration::from_secs(60)));
        axum::http::StatusCode::NOT_FOUND
    };
    let signs_out = async |Extension(fresh): Extension<Fresh>| {
        fresh.set(given(&token(2), Duration::from_secs(60)));
        [(header::SET_COOKIE, taken_away())]
    };
    let routes = Router::new()
        .route("/renews", get(renews))
        .route("/signs-out", get(signs_out))
        .route("/plain", get(async || "hello"))
        .layer(from_fn(cookies));
    for (path, given_one) in [
        ("/renews", Some(true)),
        ("/signs-out", Some(false)),
        ("/plain", None),
    ] {
        let request = HttpRequest::get(path).header("cookie", "__Host-gantry=x");
        let request = request.body(Body::empty()).expect("it is a request");
        let Ok(answer) = routes.clone().oneshot(request).await;
        let said = answer.headers().get_all(header::SET_COOKIE).iter();
        let said: Vec<_> = said.map(|said| said.to_str().expect("text")).collect();
        let expected = given_one.map(|given_one| match given_one {
            true => given(&token(2), Duration::from_secs(60)),
            false => taken_away(),
        });
        let expected: Vec<_> = expected
            .iter()
            .map(|one| one.to_str().expect("text"))
            .collect();
        assert_eq!(said, expected, "{path}");
    }
}
