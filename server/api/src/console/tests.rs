use axum::{
    body::to_bytes,
    http::{HeaderName, HeaderValue, StatusCode},
};

use super::*;

/// A console as the build leaves it; what is said to be compressed is a text, to be told apart.
#[derive(rust_embed::Embed)]
#[folder = "src/console/tests/dist"]
struct Built;

/// A folder that is not there.
#[derive(rust_embed::Embed)]
#[folder = "src/console/tests/missing"]
#[allow_missing = true]
struct Missing;

const SCRIPT: &str = "/assets/app-1a2B_3c.js";

/// What a browser sends when it goes to an address.
const GOES: (HeaderName, &str) = (
    header::ACCEPT,
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
);

fn asked(headers: &[(HeaderName, &str)]) -> HeaderMap {
    let parsed = |(name, value): &(HeaderName, &str)| {
        let value = HeaderValue::from_str(value).expect("a header");
        (name.clone(), value)
    };
    headers.iter().map(parsed).collect()
}

fn get(path: &str, headers: &[(HeaderName, &str)]) -> Option<Response> {
    answer::<Built>(&Method::GET, path, &asked(headers))
}

async fn text(response: Response) -> String {
    let bytes = to_bytes(response.into_body(), usize::MAX).await;
    String::from_utf8(bytes.expect("a whole body").to_vec()).expect("text")
}

fn said<'a>(response: &'a Response, name: &HeaderName) -> &'a str {
    let value = response.headers().get(name);
    value.map_or("", |value| value.to_str().expect("text"))
}

#[tokio::test]
async fn each_address_to_which_a_browser_goes_is_the_same_page() {
    for path in [
        "/",
        "/sign-in",
        "/sessions/ses_1",
        "/runners",
        "/apiary",
        "/%E8%AE%BE",
    ] {
        let page = get(path, &[GOES]).expect("a page");
        assert_eq!(page.status(), StatusCode::OK, "{path}");
        for (name, value) in [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CACHE_CONTROL, "no-cache"),
            (header::VARY, "accept, accept-encoding"),
            (header::CONTENT_ENCODING, ""),
        ] {
            assert_eq!(said(&page, &name), value, "{name} of {path}");
        }
        let policy = said(&page, &header::CONTENT_SECURITY_POLICY).to_owned();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"));
        assert!(!policy.contains("unsafe") && !policy.contains("data:"));
        assert!(text(page).await.contains("<title>Gantry</title>"));
    }
}

#[test]
fn what_is_no_page_stays_a_problem() {
    let html = [GOES];
    for (path, headers) in [
        ("/", [(header::ACCEPT, "*/*")]),
        ("/", [(header::ACCEPT, "application/json")]),
        ("/", [(header::ACCEPT, "text/html;q=0")]),
        ("/api", html.clone()),
        ("/api/v2/sessions", html.clone()),
        ("/install/none", html.clone()),
        ("/shared", html.clone()),
        ("/problems/none/more", html.clone()),
        ("/livez/", html.clone()),
        ("/metrics/x", html.clone()),
        ("/assets/", html.clone()),
        ("/assets/other.js", html.clone()),
        ("*", html.clone()),
    ] {
        assert!(get(path, &headers).is_none(), "{path} {headers:?}");
    }
    let posted = answer::<Built>(&Method::POST, "/", &asked(&html));
    assert!(posted.is_none());
}

#[test]
fn no_address_leads_out_of_the_folder() {
    for path in [
        "/assets/../../tests.rs",
        "/assets/../index.html",
        "/../tests.rs",
        "/..",
        "/./",
        "/%2e%2e/tests.rs",
        "/%2E%2e%2ftests.rs",
        "/..%2ftests.rs",
        "/..%5Ctests.rs",
        "/..\\tests.rs",
        "/assets/%2e%2e/%2e%2e/tests.rs",
        "/assets/..%2f..%2ftests.rs",
        "//etc/passwd/..",
        "/assets//etc/passwd",
        "/assets/app-1a2B_3c.js%00",
    ] {
        assert!(get(path, &[GOES]).is_none(), "{path}");
        assert!(get(path, &[]).is_none(), "{path}");
    }
    let name = |path: &str| File::at::<Built>(path, &HeaderMap::new()).is_some();
    assert!(name("/icon.svg") && name(SCRIPT));
    for path in [
        "/.sources",
        "//icon.svg",
        "/assets",
        "/assets/app-1a2B_3c.js.br",
        "/index.html",
        "/etc/passwd",
    ] {
        assert!(!name(path), "{path}");
    }
}

#[tokio::test]
async fn a_file_comes_in_the_best_coding_that_the_client_takes() {
    for (takes, coding, content) in [
        ("gzip, deflate, br, zstd", "br", "in brotli\n"),
        ("GZIP;q=0.5", "gzip", "in gzip\n"),
        ("br;q=0, gzip", "gzip", "in gzip\n"),
        ("br;q=wrong, gzip;q=0.000", "", "console.log(\"plain\")\n"),
        ("identity", "", "console.log(\"plain\")\n"),
    ] {
        let file = get(SCRIPT, &[(header::ACCEPT_ENCODING, takes)]).expect("a file");
        assert_eq!(said(&file, &header::CONTENT_ENCODING), coding, "{takes}");
        let length = content.len().to_string();
        assert_eq!(said(&file, &header::CONTENT_LENGTH), length, "{takes}");
        let media_type = said(&file, &header::CONTENT_TYPE);
        assert_eq!(media_type, "text/javascript; charset=utf-8");
        assert_eq!(said(&file, &header::VARY), "accept-encoding");
        assert_eq!(text(file).await, content, "{takes}");
    }
    let takes = [(header::ACCEPT_ENCODING, "br, gzip")];
    let font = get("/assets/text-9.woff2", &takes).expect("a file");
    assert_eq!(said(&font, &header::CONTENT_ENCODING), "");
    assert_eq!(said(&font, &header::CONTENT_TYPE), "font/woff2");
}

#[tokio::test]
async fn a_file_named_by_its_digest_is_kept_and_each_other_is_asked_for_again() {
    let kept = "public, max-age=31536000, immutable";
    for (path, cached) in [(SCRIPT, kept), ("/icon.svg", "no-cache")] {
        let file = get(path, &[]).expect("a file");
        assert_eq!(said(&file, &header::CACHE_CONTROL), cached, "{path}");
        let etag = said(&file, &header::ETAG).to_owned();
        for (has, status) in [
            (etag.clone(), 304),
            (format!("\"other\", W/{etag}"), 304),
            ("*".into(), 304),
            ("\"other\"".into(), 200),
        ] {
            let again = get(path, &[(header::IF_NONE_MATCH, &has)]).expect("an answer");
            assert_eq!(again.status(), status, "{path} {has}");
            assert_eq!(said(&again, &header::ETAG), etag);
            assert_eq!(said(&again, &header::CACHE_CONTROL), cached);
            assert_eq!(text(again).await.is_empty(), status == 304);
        }
        let coded = get(SCRIPT, &[(header::ACCEPT_ENCODING, "br")]).expect("a file");
        assert_ne!(said(&coded, &header::ETAG), etag, "other bytes, other tag");
    }
}

#[tokio::test]
async fn head_tells_what_get_would_without_the_bytes() {
    for (path, headers) in [("/", vec![GOES]), (SCRIPT, vec![])] {
        let whole = get(path, &headers).expect("an answer");
        let head = answer::<Built>(&Method::HEAD, path, &asked(&headers)).expect("an answer");
        assert_eq!(head.headers(), whole.headers(), "{path}");
        assert_ne!(said(&head, &header::CONTENT_LENGTH), "0", "{path}");
        assert_eq!(text(head).await, "");
    }
}

#[tokio::test]
async fn a_server_without_the_console_says_how_to_build_it() {
    for path in ["/", "/sessions/ses_1"] {
        let page = answer::<Missing>(&Method::GET, path, &asked(&[GOES])).expect("a page");
        assert_eq!(page.status(), StatusCode::OK);
        assert!(text(page).await.contains("make console"));
    }
    for (path, headers) in [("/", vec![]), (SCRIPT, vec![GOES]), ("/icon.svg", vec![])] {
        let none = answer::<Missing>(&Method::GET, path, &asked(&headers));
        assert!(none.is_none(), "{path}");
    }
}
