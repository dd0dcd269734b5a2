//! What a page in a browser may do with a server on the machine, or in the network, of the person who
//! looks at it.

use reqwest::{
    Client, Method, Response,
    header::{self, HeaderName},
};
use tests::gantry::{Gantry, Setup};

/// A name that an attacker makes lead to the server, as DNS rebinding does.
const EVIL: &str = "evil.example";

/// A client that finds the server under each of these names, over HTTP/1.1 or HTTP/2.
fn led_to(gantry: &Gantry, names: &[&str], http2: bool) -> Client {
    let address = gantry.url().trim_start_matches("http://");
    let address = address.parse().expect("an address and port");
    let mut client = Client::builder();
    for name in names {
        client = client.resolve(name, address);
    }
    if http2 {
        client = client.http2_prior_knowledge();
    }
    client.build().expect("a client")
}

fn port(gantry: &Gantry) -> &str {
    gantry.url().rsplit(':').next().expect("a port")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_made_to_lead_to_the_server_gets_nothing_over_any_protocol() {
    let settings = "[server]\nnames = [\"gantry.example\"]\n".to_owned();
    let gantry = Gantry::with(Setup {
        settings,
        ..Setup::default()
    })
    .await;
    for http2 in [false, true] {
        let client = led_to(&gantry, &[EVIL, "gantry.example"], http2);
        let ask = async |host: &str, path: &str, method: Method| {
            let url = format!("http://{host}:{}{path}", port(&gantry));
            let request = client.request(method, url).bearer_auth(gantry.token());
            request.send().await.expect("an answer")
        };
        for path in ["/livez", "/api/v1/me", "/api/v1/sign-in", "/metrics", "/"] {
            for method in [Method::GET, Method::POST] {
                let answer = ask(EVIL, path, method).await;
                assert_eq!(answer.status(), 421, "{path} over {:?}", answer.version());
                let said = answer.text().await.expect("text");
                assert!(said.contains("names under [server]"), "{said}");
            }
        }
        for host in ["gantry.example", "localhost", "127.0.0.1"] {
            let answer = ask(host, "/api/v1/me", Method::GET).await;
            assert_eq!(answer.status(), 200, "{host}");
        }
        let grpc = client
            .post(format!(
                "http://{EVIL}:{}/gantry.runner.v1.Enrolment/Identify",
                port(&gantry)
            ))
            .header(header::CONTENT_TYPE, "application/grpc");
        let answer = grpc.send().await.expect("an answer");
        assert_eq!(answer.headers()["grpc-status"], "7", "permission denied");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_site_neither_changes_anything_nor_follows_a_session() {
    let gantry = Gantry::practice().await;
    let client = led_to(&gantry, &[], false);
    let from = async |origin: Option<&str>, path: &str, websocket: bool| {
        let url = format!("{}{path}", gantry.url());
        let mut request = match websocket {
            false => client.post(url).json(&serde_json::json!({})),
            true => client
                .get(url)
                .header(header::CONNECTION, "upgrade")
                .header(header::UPGRADE, "websocket")
                .header(header::SEC_WEBSOCKET_VERSION, "13")
                .header(header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ=="),
        };
        if let Some(origin) = origin {
            request = request.header(header::ORIGIN, origin);
        }
        let answer = request.bearer_auth(gantry.token()).send().await;
        answer.expect("an answer").status().as_u16()
    };
    let ours = gantry.url().to_owned();
    for (origin, may) in [
        (None, true),
        (Some(ours.as_str()), true),
        (Some("http://localhost:3000"), true),
        (Some("https://evil.example"), false),
        (Some("http://192.168.1.50"), false),
        (Some("null"), false),
    ] {
        let (made, followed) = if may { (201, 101) } else { (403, 403) };
        assert_eq!(
            from(origin, "/api/v1/sessions", false).await,
            made,
            "{origin:?}"
        );
        assert_eq!(
            from(origin, "/api/v1/stream", true).await,
            followed,
            "{origin:?}"
        );
    }
    let sessions = gantry.client().sessions(10).await.expect("a list");
    assert_eq!(sessions.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_stored_nowhere_and_can_be_no_page() {
    let gantry = Gantry::practice().await;
    let client = led_to(&gantry, &[EVIL], false);
    let token = gantry.token();
    let ask = async |method: Method, path: &str, token: &str, body: &'static str| {
        let request = client.request(method, format!("{}{path}", gantry.url()));
        let request = request.bearer_auth(token).body(body);
        request.send().await.expect("an answer")
    };
    let rebound = client.get(format!("http://{EVIL}:{}/livez", port(&gantry)));
    let grpc = client
        .post(format!(
            "{}/gantry.runner.v1.Enrolment/Identify",
            gantry.url()
        ))
        .header(header::CONTENT_TYPE, "application/grpc");
    let answers: Vec<(u16, Response)> = vec![
        (200, ask(Method::GET, "/livez", "", "").await),
        (200, ask(Method::GET, "/api/v1/me", token, "").await),
        (200, ask(Method::GET, "/metrics", token, "").await),
        (401, ask(Method::GET, "/api/v1/me", "wrong", "").await),
        (404, ask(Method::GET, "/", "", "").await),
        (404, ask(Method::GET, "/api/v1/sessions/x", token, "").await),
        (405, ask(Method::DELETE, "/api/v1/me", token, "").await),
        (422, ask(Method::POST, "/api/v1/sign-in", "", "{").await),
        (421, rebound.send().await.expect("an answer")),
        (200, grpc.send().await.expect("an answer")),
    ];
    for (status, answer) in answers {
        assert_eq!(answer.status(), status, "{}", answer.url());
        for (name, value) in [
            (header::CACHE_CONTROL, "no-store"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (
                header::CONTENT_SECURITY_POLICY,
                "default-src 'none'; frame-ancestors 'none'",
            ),
            (header::REFERRER_POLICY, "no-referrer"),
            (
                HeaderName::from_static("cross-origin-opener-policy"),
                "same-origin",
            ),
            (
                HeaderName::from_static("cross-origin-resource-policy"),
                "same-origin",
            ),
        ] {
            let said = answer.headers().get_all(&name).iter().collect::<Vec<_>>();
            assert_eq!(said, [value], "{name} of {status} {}", answer.url());
        }
    }
}
