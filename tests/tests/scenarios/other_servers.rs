//! A runner and a server that do not fit: whoever typed the address, or upgraded one of the two,
//! gets one line that says so.

use axum::{
    Router,
    http::{StatusCode, header},
    routing::any,
};
use proto::{OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION, v1};
use serde_json::json;
use shared_types::{OsEntropy, Token, clean::is_harmless};
use tests::{
    gantry::{Runner, binary, eventually},
    other_server::{OtherServer, Says},
    peer::Key,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tonic::{Code, Status};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_another_version_ends_the_runner_with_one_line() {
    for version in [OLDEST_PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 6] {
        let server = OtherServer::start(Says::Welcome(v1::Welcome {
            generation: 1,
            protocol_version: version,
            ..v1::Welcome::default()
        }))
        .await;
        let said = last_line(&server).await;
        let words = format!("the server speaks version {version} of the link protocol");
        assert!(said.contains(&words), "{said}");
        assert!(
            said.contains("install the gantry-runner that fits"),
            "{said}"
        );
        assert!(!said.contains("--replace"), "that would not help: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_too_old_for_its_server_says_so_in_the_servers_words_and_keeps_trying() {
    let status = Status::failed_precondition("this runner is of yesterday: upgrade gantry-runner");
    let server = OtherServer::start(Says::Status(status)).await;
    let mut runner = Runner::enrol(&server.url, &server.token, "laptop").await;
    runner.start();
    eventually("it says so a second time", || async {
        let words = "of yesterday: upgrade gantry-runner";
        (runner.log().matches(words).count() >= 2).then_some(())
    })
    .await;
    let log = runner.log();
    assert!(!log.contains("--replace"), "that would not help: {log}");
    assert_eq!(runner.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_where_something_else_answers_is_said_to_be_no_gantry_server() {
    let stranger = Runner::stranger();
    for (what, url) in everything_else().await {
        let output = stranger.try_enrol(&url, &a_token(), "laptop").await;
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(!output.status.success(), "{what}");
        assert_eq!(said.trim_end().lines().count(), 1, "{what}: {said}");
        let words = format!("no Gantry server answers at {url}: check the address");
        assert!(said.contains(&words), "{what}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_whose_server_became_something_else_says_so_and_keeps_trying() {
    let routes = Router::new().fallback(any(|| async { StatusCode::FORBIDDEN }));
    let server = OtherServer::start(Says::Nothing).await;
    let mut runner = Runner::enrol(&server.url, &server.token, "laptop").await;
    let url = server.becomes(routes).await;
    runner.start();
    eventually("it says so a second time", || async {
        let log = runner.log();
        let words = format!("no Gantry server answers at {url}");
        (log.matches(&words).count() >= 2).then_some(())
    })
    .await;
    assert_eq!(runner.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_writes_no_line_and_no_title_on_the_terminal_of_who_enrols_or_signs_in() {
    let stranger = Runner::stranger();
    let mut heard = Vec::new();
    for url in forgers().await {
        let output = stranger.try_enrol(&url, &a_token(), "laptop").await;
        assert!(!output.status.success(), "{output:?}");
        heard.push(output);
    }
    let problem = json!({ "code": "not_found", "status": 404, "detail": FORGED }).to_string();
    let media_type = [(header::CONTENT_TYPE, "application/problem+json")];
    let answer = move || async move { (StatusCode::NOT_FOUND, media_type, problem) };
    let url = serve(Router::new().fallback(any(answer))).await;
    let code = stranger.home().join("code");
    std::fs::write(&code, "gantry_code_x\n").expect("it is written");
    let mut login = tokio::process::Command::new(binary("gantry"));
    let login = login
        .args(["login", "--server", &url])
        .env("GANTRY_HOME", stranger.home())
        .stdin(std::fs::File::open(&code).expect("it is there"))
        .output();
    heard.push(login.await.expect("it starts"));
    for output in heard {
        let said = String::from_utf8(output.stdout).expect("text")
            + &String::from_utf8(output.stderr).expect("text");
        let lines: Vec<_> = said.trim_end().split('\n').collect();
        assert!(!lines.is_empty() && said.len() < 4000, "{said}");
        assert!(
            !lines.iter().any(|line| line.starts_with("runner: ")),
            "{said:?}"
        );
        assert!(
            lines.iter().all(|line| line.chars().all(is_harmless)),
            "{said:?}"
        );
        assert!(
            said.contains("no⏎runner: enrolled, all is well"),
            "{said:?}"
        );
    }
}

/// Sets the title, and begins a line of its own.
const FORGED: &str = "no\u{1b}]0;owned\u{7}\r\nrunner: enrolled, all is well\u{202e}";

/// Servers that refuse each call of enrolment with forged words: as gRPC, and over HTTP/1.1.
async fn forgers() -> Vec<String> {
    let mut urls = Vec::new();
    for code in [Code::PermissionDenied, Code::InvalidArgument] {
        let answer = move || async move {
            let status = Status::new(code, FORGED.repeat(20));
            status.into_http::<axum::body::Body>()
        };
        urls.push(serve(Router::new().fallback(any(answer))).await);
    }
    let words = "no%1B]0;owned%07%0D%0Arunner: enrolled, all is well".repeat(20);
    let head = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\ngrpc-status: 3";
    urls.push(speak(format!("{head}\r\ngrpc-message: {words}\r\n\r\n")).await);
    urls
}

/// Enrols with the server, runs to the daemon's own end and returns the line that it leaves.
async fn last_line(server: &OtherServer) -> String {
    let mut runner = Runner::enrol(&server.url, &server.token, "laptop").await;
    runner.start();
    assert_eq!(runner.ended().await, Some(1));
    let log = runner.log();
    let lines: Vec<_> = log
        .lines()
        .filter(|line| line.starts_with("gantry-runner: "))
        .collect();
    let [line] = lines[..] else {
        panic!("one line for people: {log}");
    };
    line.to_owned()
}

fn a_token() -> String {
    let pin = Key::generate().public().try_into().expect("32 bytes");
    Token::join(pin, &OsEntropy).reveal()
}

/// What may listen where somebody expects Gantry.
async fn everything_else() -> Vec<(&'static str, String)> {
    let page = Router::new().fallback(any(|| async { (StatusCode::NOT_FOUND, "<html>") }));
    let empty = Router::new().fallback(any(|| async { StatusCode::UNAUTHORIZED }));
    vec![
        ("a web server", serve(page).await),
        ("a proxy that wants a password", serve(empty).await),
        (
            "HTTP/1.1 only",
            speak(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await,
        ),
        ("another protocol", speak(b"SSH-2.0-OpenSSH_9.2\r\n").await),
        ("nothing but a close", speak(b"").await),
    ]
}

/// Serves these routes for as long as the test runs.
async fn serve(routes: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

/// Answers whatever comes with these bytes, and closes.
async fn speak(answer: impl AsRef<[u8]> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // The other end may close first.
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(answer.as_ref()).await;
        }
    });
    url
}
