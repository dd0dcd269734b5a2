//! A person signs in with a browser: the cookie, the tickets for streams, and every way in which they do
//! not count.

use serde_json::json;
use shared_api::{ClientMessage, RoleName};
use shared_types::SessionId;
use tests::{
    browser::{Browser, OWN_PAGE, set_cookie},
    gantry::{Answer, Gantry, Setup},
    socket::{Heard, Socket},
};
use tokio_tungstenite::tungstenite::Message;

const STREAM: &str = "/api/v1/stream";

async fn signed_in(gantry: &Gantry) -> Browser<'_> {
    Browser::sign_in(gantry, &gantry.sign_in_code().await).await
}

fn origin(origin: &str) -> [(&'static str, String); 1] {
    [("origin", origin.to_owned())]
}

/// Opens the stream of sessions with a new ticket, from the server's own page.
async fn stream(gantry: &Gantry, browser: &Browser<'_>) -> Socket {
    let path = format!("{STREAM}?ticket={}", browser.ticket(None).await);
    Socket::open_with(gantry, &origin(gantry.url()), &path, "ServerMessage").await
}

/// Reads until the server says goodbye; returns the code.
async fn goodbye(mut socket: Socket) -> Option<u16> {
    loop {
        if let Heard::Closed(code) = socket.next().await {
            return code;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_signs_in_works_follows_a_session_and_signs_out() {
    let gantry = Gantry::practice().await;
    let browser = signed_in(&gantry).await;
    for attribute in [
        "Path=/",
        "Secure",
        "HttpOnly",
        "SameSite=Strict",
        "Max-Age=2592000",
    ] {
        assert!(
            browser.set_cookie.contains(attribute),
            "{}",
            browser.set_cookie
        );
    }
    assert!(
        browser
            .set_cookie
            .starts_with("__Host-gantry=gantry_browser_")
    );
    assert!(!browser.set_cookie.to_lowercase().contains("domain"));

    let me = browser.ask("get", "/api/v1/me", json!({})).await;
    assert_eq!(
        (me.status, &me.body["user"]["name"]),
        (200, &"owner".into())
    );
    let made = browser.ask("post", "/api/v1/sessions", json!({})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let session: SessionId = serde_json::from_value(made.body["id"].clone()).expect("an id");
    let mut stream = stream(&gantry, &browser).await;
    let subscribe = ClientMessage::Subscribe { session, after: 0 };
    let subscribe = serde_json::to_string(&subscribe).expect("JSON");
    stream.say(Message::text(subscribe)).await;
    assert_eq!(stream.hears().await["type"], "event");

    let listed = gantry.cli(&["keys", "list"]).await.stdout;
    let listed = String::from_utf8(listed).expect("text");
    let line = listed.lines().find(|line| line.contains(" browser "));
    let line = line.unwrap_or_else(|| panic!("{listed}"));
    assert!(
        line.contains("127.0.0.1") && line.contains("Firefox"),
        "{line}"
    );

    let out = browser.request("post", "/api/v1/browser/sign-out");
    let out = out.send().await.expect("an answer");
    assert_eq!(out.status(), 204);
    let gone = set_cookie(&out).expect("a header");
    assert!(
        gone.starts_with("__Host-gantry=;") && gone.contains("Max-Age=0"),
        "{gone}"
    );
    assert_eq!(goodbye(stream).await, Some(1008));
    let again = browser.ask("get", "/api/v1/me", json!({})).await;
    assert_eq!(again.status, 401);
    let detail = again.body["detail"].as_str().expect("words");
    assert!(detail.contains("sign in again with a code"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_counts_only_from_a_page_of_this_very_server() {
    let gantry = Gantry::practice().await;
    let browser = signed_in(&gantry).await;
    let own = ("origin", gantry.url());
    // Another program on this machine: of the same site, so the browser sends it the cookie.
    let neighbour = ("origin", "http://127.0.0.1:3000");
    let site = |site| ("sec-fetch-site", site);
    for (headers, reads, writes) in [
        (vec![OWN_PAGE], 200, 201),
        (vec![own], 200, 201),
        (vec![], 200, 403),
        (vec![site("none")], 200, 403),
        (vec![site("same-site")], 403, 403),
        (vec![site("cross-site")], 403, 403),
        (vec![site("same-site"), neighbour], 403, 403),
        (vec![neighbour], 403, 403),
        (vec![("origin", "null")], 403, 403),
        (vec![("origin", "https://evil.example"), OWN_PAGE], 403, 403),
        (vec![("host", "evil.example"), OWN_PAGE], 421, 421),
    ] {
        let read = browser.request_with("get", "/api/v1/sessions", &headers);
        let write = browser.request_with("post", "/api/v1/sessions", &headers);
        let (read, write) = (
            Answer::to(read).await,
            Answer::to(write.json(&json!({}))).await,
        );
        assert_eq!((read.status, write.status), (reads, writes), "{headers:?}");
        if writes == 403 {
            assert_eq!(write.body["code"], "foreign_origin", "{headers:?}");
        }
    }
    // A key is not sent by a browser of itself, so it needs no page.
    let by_key = gantry
        .ask("post", "/api/v1/sessions", Some("{}".into()))
        .await;
    assert_eq!(by_key.status, 201);
    let as_bearer = gantry
        .ask_as(browser.secret(), "get", "/api/v1/me", None)
        .await;
    assert_eq!(as_bearer.status, 401, "{as_bearer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_of_another_site_signs_its_reader_in_and_the_code_stays_good() {
    let gantry = Gantry::practice().await;
    let code = gantry.sign_in_code().await;
    for headers in [
        vec![],
        vec![("sec-fetch-site", "cross-site")],
        vec![("origin", "http://127.0.0.1:3000")],
    ] {
        let refused = Browser::try_to_sign_in(&gantry, &code, &headers).await;
        assert_eq!(refused.status(), 403, "{headers:?}");
        assert_eq!(set_cookie(&refused), None);
    }
    let browser = Browser::sign_in(&gantry, &code).await;
    let again = Browser::try_to_sign_in(&gantry, &code, &[OWN_PAGE]).await;
    assert_eq!(again.status(), 401, "it works once");
    let log = gantry.log();
    assert!(
        !log.contains(browser.secret()) && !log.contains("gantry_browser_"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn over_plain_http_a_browser_signs_in_on_the_servers_own_machine_alone() {
    let plain = "[server]\nnames = [\"gantry.example\"]\n";
    let proxied = format!("{plain}behind_proxy = true\n");
    for (settings, signs_in) in [(plain.to_owned(), false), (proxied, true)] {
        let gantry = Gantry::with(Setup {
            settings,
            ..Setup::default()
        })
        .await;
        let code = gantry.sign_in_code().await;
        let headers = [OWN_PAGE, ("host", "gantry.example")];
        let answer = Browser::try_to_sign_in(&gantry, &code, &headers).await;
        let https_only = answer.headers().get("strict-transport-security");
        assert_eq!(https_only.is_some(), signs_in);
        assert_eq!(answer.status().as_u16(), if signs_in { 200 } else { 403 });
        let said = answer.text().await.expect("text");
        assert!(signs_in || said.contains("over HTTPS"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_opens_its_own_stream_once_and_a_cookie_opens_none() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let browser = signed_in(&gantry).await;
    let exec = json!({ "runner": "laptop", "exec": { "argv": ["sleep", "1000"] } });
    let started = browser.ask("post", "/api/v1/operations", exec).await;
    let operation = started.body["id"].as_str().expect("an id").to_owned();
    let of_operation = format!("/api/v1/operations/{operation}/stream");
    let own = origin(gantry.url());
    let cookie = ("cookie", browser.cookie().to_owned());
    let refused = async |headers: &[(&'static str, String)], path: String| {
        Socket::refused_with(&gantry, headers, &path).await
    };

    let with_cookie = [
        cookie,
        own[0].clone(),
        ("sec-fetch-site", "same-origin".to_owned()),
    ];
    assert_eq!(refused(&with_cookie, STREAM.to_owned()).await, 401);
    assert_eq!(refused(&with_cookie, of_operation.clone()).await, 401);

    let ticket = browser.ticket(None).await;
    let at = |path: &str| format!("{path}?ticket={ticket}");
    assert_eq!(
        refused(&own, at(&of_operation)).await,
        401,
        "it is for another stream"
    );
    for foreign in ["http://127.0.0.1:3000", "https://evil.example", "null"] {
        assert_eq!(
            refused(&origin(foreign), at(STREAM)).await,
            403,
            "{foreign}"
        );
    }
    let opened = Socket::open_with(&gantry, &own, &at(STREAM), "ServerMessage").await;
    assert_eq!(refused(&own, at(STREAM)).await, 401, "it was used");
    let bearer = gantry.ask_as(&ticket, "get", "/api/v1/me", None).await;
    assert_eq!(bearer.status, 401, "it signs nothing in");
    drop(opened);

    let other = browser.ticket(Some(&operation)).await;
    let path = format!("{of_operation}?stdout=0&stderr=0&ticket={other}");
    assert_eq!(refused(&own, format!("{STREAM}?ticket={other}")).await, 401);
    let mut following = Socket::open_with(&gantry, &own, &path, "OperationServerMessage").await;
    assert_eq!(following.hears().await["type"], "operation");
    assert!(refused(&own, path).await == 401);
    let nothing = json!({ "operation": "op_00000000000000000000000000" });
    let nothing = browser.ask("post", "/api/v1/stream-tickets", nothing).await;
    assert_eq!(nothing.status, 404, "{nothing:?}");
    assert!(!gantry.log().contains("gantry_ticket_"), "{}", gantry.log());
    let cancel = format!("/api/v1/operations/{operation}/cancel");
    browser.ask("post", &cancel, json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_is_revoked_and_a_person_who_is_removed_lose_their_streams() {
    let gantry = Gantry::practice().await;
    let owner = gantry.client();
    let browser = signed_in(&gantry).await;
    let open = stream(&gantry, &browser).await;
    let keys = owner.keys().await.expect("a list");
    let key = keys.iter().find(|key| key.kind == "browser");
    let key = key.expect("it is listed").id.to_string();
    let removed = gantry.cli(&["keys", "remove", &key]).await;
    assert!(removed.status.success(), "{removed:?}");
    assert_eq!(goodbye(open).await, Some(1008));
    assert_eq!(
        browser.ask("get", "/api/v1/me", json!({})).await.status,
        401
    );

    let invited = owner.invite("ann", RoleName::Viewer).await;
    let invited = invited.expect("she is invited");
    let anns = Browser::sign_in(&gantry, &invited.code).await;
    let refused = anns.ask("post", "/api/v1/sessions", json!({})).await;
    assert_eq!(refused.status, 403, "a viewer's browser only looks");
    let open = stream(&gantry, &anns).await;
    let left_over = anns.ticket(None).await;
    owner
        .remove_person(invited.person.id)
        .await
        .expect("she is removed");
    assert_eq!(goodbye(open).await, Some(1008));
    let late = format!("{STREAM}?ticket={left_over}");
    assert_eq!(
        Socket::refused_with(&gantry, &origin(gantry.url()), &late).await,
        401
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_account_acts_under_its_own_name_and_goes_like_a_person() {
    let gantry = Gantry::practice().await;
    let cli = async |arguments: &[&str]| {
        let output = gantry.cli(arguments).await;
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (
            output.status.success(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (done, _, said) = cli(&["people", "add-service", "deploy", "--role", "owner"]).await;
    assert!(!done && said.contains("cannot be an owner"), "{said}");
    let (done, _, said) = cli(&["people", "add-service", "Deploy"]).await;
    assert!(
        done && said.contains("keys add KEY --service deploy"),
        "{said}"
    );
    let (done, _, said) = cli(&["people", "invite", "deploy"]).await;
    assert!(!done && said.contains("is a service account"), "{said}");
    let (done, key, said) = cli(&[
        "keys",
        "add",
        "ci",
        "--service",
        "deploy",
        "--scope",
        "chat,admin",
    ])
    .await;
    assert!(
        done && said.contains("acts as deploy, for: chat,admin"),
        "{said}"
    );
    let (done, _, said) = cli(&[
        "keys",
        "add",
        "x",
        "--service",
        "deploy",
        "--scope",
        "metrics",
    ])
    .await;
    assert!(
        !done && said.contains("with the role member can have no key"),
        "{said}"
    );

    let deploy = gantry.client_with(Some(key.trim().to_owned()));
    assert_eq!(deploy.me().await.expect("it holds").user.name, "deploy");
    deploy.create_session("").await.expect("a member may");
    deploy.create_key("own").await.expect("it has the scope");
    let (_, log, _) = cli(&["audit", "--who", "deploy"]).await;
    assert!(log.contains("deploy  credential.created  own"), "{log}");
    let (_, people, _) = cli(&["people"]).await;
    assert!(
        people.contains("deploy  member  service account, last used"),
        "{people}"
    );
    let (_, keys, _) = cli(&["keys", "list", "--service", "deploy"]).await;
    assert!(keys.contains("ci") && keys.contains("own"), "{keys}");

    let id = gantry.client().people().await.expect("a list");
    let id = id
        .iter()
        .find(|person| person.is_service)
        .expect("it is listed")
        .id;
    let bobs = gantry.person("bob", RoleName::Member).await;
    let path = format!("/api/v1/service-accounts/{id}/keys");
    let refused = gantry.ask_as(&bobs, "get", &path, None).await;
    assert_eq!(refused.status, 403, "only admins manage them");
    let (done, _, said) = cli(&["people", "remove", "--yes", "deploy"]).await;
    assert!(done, "{said}");
    deploy.me().await.expect_err("its keys end with it");
}
