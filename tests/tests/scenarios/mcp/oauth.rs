//! A person lets a program in by a page in the browser, and the program gets a key of that person.

use std::collections::BTreeMap;

use reqwest::{Response, redirect::Policy};
use serde_json::{Value, json};
use tests::{browser::Browser, gantry::Gantry};

use super::client::McpClient;

// RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const HERE: &str = "http://127.0.0.1:9/callback";
const ELSEWHERE: &str = "http://127.0.0.1:10/callback";

#[tokio::test(flavor = "multi_thread")]
async fn a_person_lets_a_program_in_and_its_key_is_in_the_list_and_ends_there() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let stranger = gantry
        .request("post", "/mcp")
        .send()
        .await
        .expect("an answer");
    assert_eq!(stranger.status(), 401);
    let points = stranger.headers()["www-authenticate"]
        .to_str()
        .expect("text")
        .to_owned();
    let at = points.split('"').nth(1).expect("an address").to_owned();
    let at = at.strip_prefix(gantry.url()).expect("this server's");
    let resource = get(&gantry, at).await;
    assert_eq!(resource["resource"], format!("{}/mcp", gantry.url()));
    assert_eq!(resource["authorization_servers"], json!([gantry.url()]));
    let server = get(&gantry, "/.well-known/oauth-authorization-server").await;
    assert_eq!(server["issuer"], gantry.url());
    assert_eq!(server["code_challenge_methods_supported"], json!(["S256"]));

    let client = registered(&gantry, "Claude <b>Code</b>").await;
    let browser = Browser::sign_in(&gantry, &gantry.sign_in_code().await).await;
    let asked = params(
        &client,
        &[("scope", "exec read admin"), ("redirect_uri", ELSEWHERE)],
    );
    let page = browser
        .request_with("get", &address(&asked), &[("sec-fetch-site", "none")])
        .send()
        .await
        .expect("a page");
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"]
        .to_str()
        .expect("text")
        .to_owned();
    assert!(
        policy.contains("form-action 'self' http://127.0.0.1:10"),
        "{policy}"
    );
    let html = page.text().await.expect("text");
    assert!(
        html.contains("Claude &lt;b&gt;Code&lt;/b&gt;") && !html.contains("<b>Code"),
        "{html}"
    );
    assert!(
        html.contains("run commands") && !html.contains("manage keys"),
        "{html}"
    );

    let fields = fields(&html);
    let denied = decided(&browser, &fields, "deny").await;
    assert_eq!(denied["error"], "access_denied");
    let sent = decided(&browser, &fields, "allow").await;
    assert_eq!(
        (sent["state"].as_str(), sent["iss"].as_str()),
        ("a b", gantry.url())
    );
    let code = &sent["code"];
    for (field, wrong) in [
        ("code_verifier", "wrong"),
        ("redirect_uri", HERE),
        ("client_id", "other"),
        ("code", "other"),
    ] {
        let refused = exchanged(&gantry, &client, code, (field, wrong)).await;
        assert_eq!(refused["error"], "invalid_grant", "{field}: {refused}");
    }
    let granted = exchanged(&gantry, &client, code, ("", "")).await;
    assert_eq!(
        (&granted["token_type"], &granted["scope"]),
        (&json!("Bearer"), &json!("exec read"))
    );
    let again = exchanged(&gantry, &client, code, ("", "")).await;
    assert_eq!(again["error"], "invalid_grant", "{again}");
    // Five codes were wrong so far. After ten in a minute no guess is told more than to wait.
    for _ in 0..5 {
        exchanged(&gantry, &client, code, ("code", "other")).await;
    }
    let waits = exchanged(&gantry, &client, code, ("code", "other")).await;
    assert_eq!(waits["error"], "temporarily_unavailable", "{waits}");

    let token = granted["access_token"].as_str().expect("a token");
    let program = McpClient::begun(&gantry, token).await;
    let (said, failed) = program.call("exec", json!({ "command": "echo hi" })).await;
    assert!(!failed && said.starts_with("hi\n"), "{said}");
    let (said, failed) = program.call("start_task", json!({ "message": "x" })).await;
    assert!(failed && said.contains("scope chat"), "{said}");
    let keys = gantry.ask("get", "/api/v1/keys", None).await.body;
    let keys = keys["keys"].as_array().expect("keys");
    let key = keys
        .iter()
        .find(|key| key["name"] == "Claude <b>Code</b>")
        .expect("the key");
    assert_eq!(key["scopes"], json!(["exec", "read"]));
    assert!(key["expires_at"].is_string(), "{key}");
    let at = format!("/api/v1/keys/{}", key["id"].as_str().expect("an id"));
    assert_eq!(gantry.ask("delete", &at, None).await.status, 204);
    let refused = gantry
        .ask_as(token, "post", "/mcp", Some("{}".to_owned()))
        .await;
    assert_eq!(refused.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_program_gets_a_code_by_another_way_than_the_persons_own_click() {
    let gantry = Gantry::practice().await;
    let client = registered(&gantry, "A program").await;
    let browser = Browser::sign_in(&gantry, &gantry.sign_in_code().await).await;
    // Without a cookie, and from another site, which gets none along.
    let signed_out = gantry.request("get", &address(&params(&client, &[])));
    let signed_out = signed_out.send().await.expect("a page");
    assert_eq!(signed_out.status(), 401);
    assert!(
        signed_out
            .text()
            .await
            .expect("text")
            .contains("Sign in to let a program in")
    );
    let mut fields = params(&client, &[]);
    fields.insert("decision".to_owned(), "allow".to_owned());
    let origin = ("sec-fetch-site", "cross-site");
    let foreign = browser.request_with("post", "/oauth/authorize", &[origin]);
    let foreign = foreign
        .body(encoded(&fields))
        .send()
        .await
        .expect("an answer");
    assert_eq!(foreign.status(), 403);

    // A person is told where it is not known whose the address is.
    for (name, value) in [
        ("redirect_uri", "https://evil.example/callback"),
        ("redirect_uri", "javascript:alert(1)"),
        ("client_id", "unknown"),
        ("client_id", "gantry_client_e30"),
    ] {
        let shown = asked(&browser, &params(&client, &[(name, value)])).await;
        assert_eq!(shown.status(), 400, "{name} {value}");
        assert!(shown.headers().get("location").is_none());
    }
    // Else the program is told.
    for (name, value, error) in [
        ("response_type", "token", "unsupported_response_type"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge", "", "invalid_request"),
        ("resource", "https://other.example/mcp", "invalid_target"),
        ("scope", "admin metrics", "invalid_scope"),
    ] {
        let sent = asked(&browser, &params(&client, &[(name, value)])).await;
        assert_eq!(sent_back(&sent)["error"], error, "{name} {value}");
    }
    let bad = json!({ "redirect_uris": ["http://evil.example/"] }).to_string();
    let bad = gantry.request("post", "/oauth/register").body(bad);
    let bad = bad.header("content-type", "application/json").send().await;
    assert_eq!(bad.expect("an answer").status(), 400);
}

async fn get(gantry: &Gantry, path: &str) -> Value {
    let answer = gantry.request("get", path).send().await.expect("an answer");
    assert_eq!(answer.status(), 200, "{path}");
    answer.json().await.expect("JSON")
}

/// The id of a program that registers.
async fn registered(gantry: &Gantry, name: &str) -> String {
    let body =
        json!({ "client_name": name, "redirect_uris": [HERE], "application_type": "native" });
    let request = gantry.request("post", "/oauth/register").json(&body);
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), 201);
    let answer: Value = answer.json().await.expect("JSON");
    answer["client_id"].as_str().expect("an id").to_owned()
}

/// The parameters of a request for a code, with these in place of the usual ones.
fn params(client: &str, others: &[(&str, &str)]) -> BTreeMap<String, String> {
    let usual = [
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", HERE),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("state", "a b"),
    ];
    let all = usual.iter().chain(others);
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn encoded(fields: &BTreeMap<String, String>) -> String {
    let url = reqwest::Url::parse_with_params("http://x/", fields).expect("a URL");
    url.query().unwrap_or_default().to_owned()
}

fn address(fields: &BTreeMap<String, String>) -> String {
    format!("/oauth/authorize?{}", encoded(fields))
}

/// The hidden fields of a form.
fn fields(html: &str) -> BTreeMap<String, String> {
    let hidden = html.split("<input type=\"hidden\" name=\"").skip(1);
    hidden
        .map(|field| {
            let (name, rest) = field.split_once("\" value=\"").expect("a value");
            let value = rest.split('"').next().expect("an end");
            (name.to_owned(), value.replace("&amp;", "&"))
        })
        .collect()
}

/// Follows no redirect.
async fn send(request: reqwest::RequestBuilder) -> Response {
    let request = request.build().expect("a request");
    let http = reqwest::Client::builder()
        .no_proxy()
        .redirect(Policy::none());
    let http = http.build().expect("a client");
    http.execute(request).await.expect("an answer")
}

async fn asked(browser: &Browser<'_>, fields: &BTreeMap<String, String>) -> Response {
    let request = browser.request_with("get", &address(fields), &[("sec-fetch-site", "none")]);
    send(request).await
}

async fn decided(
    browser: &Browser<'_>,
    fields: &BTreeMap<String, String>,
    decision: &str,
) -> BTreeMap<String, String> {
    let mut fields = fields.clone();
    fields.insert("decision".to_owned(), decision.to_owned());
    let request = browser.request("post", "/oauth/authorize");
    sent_back(&send(request.body(encoded(&fields))).await)
}

/// The parameters with which the browser is sent back to the program.
fn sent_back(answer: &Response) -> BTreeMap<String, String> {
    assert_eq!(answer.status(), 303, "{answer:?}");
    let location = answer.headers()["location"].to_str().expect("text");
    let url = reqwest::Url::parse(location).expect("a URL");
    let pairs = url.query_pairs();
    pairs
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

/// The answer to a code, with one field that is wrong.
async fn exchanged(
    gantry: &Gantry,
    client: &str,
    code: &str,
    (field, wrong): (&str, &str),
) -> Value {
    let good = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", ELSEWHERE),
        ("client_id", client),
        ("code_verifier", VERIFIER),
    ];
    let fields = good.map(|(name, value)| {
        let value = if name == field { wrong } else { value };
        (name.to_owned(), value.to_owned())
    });
    let request = gantry.request("post", "/oauth/token");
    let request = request.body(encoded(&fields.into_iter().collect()));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let answer = request.send().await.expect("an answer");
    answer.json().await.expect("JSON")
}
