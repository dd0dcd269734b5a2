//! The web console as browsers get it: its page, its files, and the links that lead to it. Nobody is signed in here.
//!
//! `make test` builds the console where Node is there. What needs a built one is named `…_in_the_console`.

use std::path::Path;

use futures_util::future::join_all;
use reqwest::{
    Client, Method, Response,
    header::{self, HeaderName},
};
use tests::gantry::{Gantry, Process};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// What a browser sends when it goes to an address.
const GOES: (HeaderName, &str) = (
    header::ACCEPT,
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
);

/// Connections that a browser opens to a server at once.
const AT_ONCE: usize = 6;

const DIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/console/dist");

fn is_built() -> bool {
    Path::new(DIST).join("index.html").exists()
}

async fn ask(
    client: &Client,
    method: Method,
    url: String,
    headers: &[(HeaderName, &str)],
) -> Response {
    let mut request = client.request(method, url);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    request.send().await.expect("an answer")
}

fn said<'a>(answer: &'a Response, name: &HeaderName) -> &'a str {
    let value = answer.headers().get(name);
    value.map_or("", |value| value.to_str().expect("text"))
}

/// The addresses of the files that a page loads.
fn loaded(page: &str) -> Vec<&str> {
    let quoted = page.split('"');
    quoted.filter(|text| text.starts_with("/assets/")).collect()
}

/// The status and the rest of an answer to a request whose target no client would send.
async fn raw(gantry: &Gantry, target: &str) -> (u16, String) {
    let address = gantry.url().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let (name, accepts) = GOES;
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: {address}\r\n{name}: {accepts}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("text");
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok());
    (status.expect("a status"), answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_loads_the_page_and_keeps_its_files_in_the_console() {
    assert!(is_built(), "{DIST} is missing: run make console");
    let gantry = Gantry::practice().await;
    let client = Client::new();
    let at = |path: &str| format!("{}{path}", gantry.url());
    let page = ask(&client, Method::GET, at("/sessions/ses_1"), &[GOES]).await;
    assert_eq!(page.status(), 200);
    assert_eq!(
        said(&page, &header::CONTENT_TYPE),
        "text/html; charset=utf-8"
    );
    assert_eq!(said(&page, &header::CACHE_CONTROL), "no-cache");
    let policy = said(&page, &header::CONTENT_SECURITY_POLICY).to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
    assert!(!policy.contains("unsafe"), "{policy}");
    let etag = said(&page, &header::ETAG).to_owned();
    let page = page.text().await.expect("text");
    let has = [GOES, (header::IF_NONE_MATCH, etag.as_str())];
    let again = ask(&client, Method::GET, at("/"), &has).await;
    assert_eq!(again.status(), 304);

    let files = loaded(&page);
    assert!(files.iter().any(|file| file.ends_with(".js")), "{page}");
    for file in &files {
        let whole = ask(&client, Method::GET, at(file), &[]).await;
        assert_eq!(whole.status(), 200, "{file}");
        let kept = "public, max-age=31536000, immutable";
        assert_eq!(said(&whole, &header::CACHE_CONTROL), kept, "{file}");
        assert_eq!(said(&whole, &header::X_CONTENT_TYPE_OPTIONS), "nosniff");
        let size = whole.content_length().expect("a length");
        let head = ask(&client, Method::HEAD, at(file), &[]).await;
        assert_eq!(said(&head, &header::CONTENT_LENGTH), size.to_string());
        // The build leaves small files as they are.
        if !file.ends_with(".js") || size < 1024 {
            continue;
        }
        for coding in ["br", "gzip"] {
            let takes = [(header::ACCEPT_ENCODING, coding)];
            let coded = ask(&client, Method::GET, at(file), &takes).await;
            assert_eq!(said(&coded, &header::CONTENT_ENCODING), coding, "{file}");
            assert_eq!(said(&coded, &header::VARY), "accept-encoding");
            assert!(coded.content_length().expect("a length") < size);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_with_many_requests_gets_every_file_whole_in_the_console() {
    assert!(is_built(), "{DIST} is missing: run make console");
    let gantry = Gantry::practice().await;
    let page = ask(&Client::new(), Method::GET, gantry.url().into(), &[GOES]).await;
    let page = page.text().await.expect("text");
    let files = loaded(&page);
    for http2 in [false, true] {
        let loads = (0..AT_ONCE).map(async |_| {
            let client = match http2 {
                false => Client::builder(),
                true => Client::builder().http2_prior_knowledge(),
            };
            let client = client.build().expect("a client");
            let all = files.iter().cycle().take(30).map(async |file| {
                let url = format!("{}{file}", gantry.url());
                let answer = ask(&client, Method::GET, url, &[]).await;
                let size = answer.content_length().expect("a length");
                let bytes = answer.bytes().await.expect("a whole file");
                assert_eq!(bytes.len() as u64, size, "{file}");
            });
            join_all(all).await;
        });
        join_all(loads).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_server_and_an_invitation_print_the_link_to_open_in_the_console() {
    assert!(is_built(), "{DIST} is missing: run make console");
    let home = tempfile::tempdir().expect("a temporary folder");
    let arguments = ["run", "--listen", "127.0.0.1:0"].map(str::to_owned);
    let mut server = Process::start("gantry-server", &arguments, home.path(), &[]);
    let (mut code, mut url) = (String::new(), String::new());
    let link = loop {
        let line = server.line().await;
        if let Some(printed) = line.strip_prefix("sign-in code: ") {
            code = printed.to_owned();
        } else if let Some(printed) = line.strip_prefix("listening on ") {
            url = printed.to_owned();
        } else if let Some(printed) = line.strip_prefix("open ") {
            break printed.to_owned();
        }
    };
    assert_eq!(link, format!("{url}/sign-in#code={code}"));

    let gantry = Gantry::practice().await;
    let invited = gantry.cli(&["people", "invite", "ann"]).await;
    let printed = String::from_utf8_lossy(&invited.stdout).into_owned();
    let mut lines = printed.lines().skip(1);
    let (code, link) = (lines.next(), lines.next());
    let expected = code.map(|code| format!("{}/sign-in#code={code}", gantry.url()));
    assert_eq!(link, expected.as_deref(), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_no_page_is_a_problem_and_leads_to_no_file() {
    let gantry = Gantry::practice().await;
    // The folder above has this file, and its name is what each address is after.
    assert!(Path::new(DIST).with_file_name("package.json").exists());
    for target in [
        "/assets/../../package.json",
        "/../package.json",
        "/assets/%2e%2e/%2E%2e/package.json",
        "/%2e%2e%2fpackage.json",
        "/..%5cpackage.json",
        "/..\\package.json",
        "//../package.json",
        "/assets/none.js",
        "/assets/",
        "/api/none",
        "/install/none",
        "/problems/none/none",
    ] {
        let (status, answer) = raw(&gantry, target).await;
        assert_eq!(status, 404, "{target}\n{answer}");
        assert!(
            answer.contains("application/problem+json") && !answer.contains("gantry-console"),
            "{target}\n{answer}"
        );
    }
    let client = Client::new();
    for (method, path, accepts) in [
        (Method::GET, "/", "*/*"),
        (Method::GET, "/sign-in", "application/json"),
        (Method::POST, "/sign-in", GOES.1),
        (Method::GET, "/.sources", "*/*"),
        (Method::GET, "/index.html", "*/*"),
    ] {
        let url = format!("{}{path}", gantry.url());
        let answer = ask(&client, method, url, &[(header::ACCEPT, accepts)]).await;
        assert_eq!(answer.status(), 404, "{path}");
        let media_type = said(&answer, &header::CONTENT_TYPE);
        assert_eq!(media_type, "application/problem+json", "{path}");
        assert_eq!(said(&answer, &header::CACHE_CONTROL), "no-store", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_console_is_not_built_says_how_to_build_it() {
    let gantry = Gantry::practice().await;
    let page = ask(&Client::new(), Method::GET, gantry.url().into(), &[GOES]).await;
    assert_eq!(page.status(), 200);
    let says_how = page.text().await.expect("text").contains("make console");
    // A development build looks for it at each request.
    assert_eq!(says_how, !is_built());
}
