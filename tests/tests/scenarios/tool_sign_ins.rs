//! Tool servers of the web: people sign in to them, and what is secret of them is seen nowhere.

pub(super) mod double;

use std::fs;

use reqwest::redirect::Policy;
use serde_json::{Value, json};
use shared_api::RoleName;
use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    browser::Browser,
    gantry::{Gantry, Setup, Talk},
    model_server::{ModelServer, Reply},
};

use self::double::ToolServer;

/// A server that may ask loopback, and the model that it asks.
async fn gantry() -> (Gantry, ModelServer) {
    let model = ModelServer::start().await;
    let setup = Setup {
        model: Some(model.base_url()),
        settings: "[web]\nallow = [\"127.0.0.0/8\"]\n".to_owned(),
        ..Setup::default()
    };
    (Gantry::with(setup).await, model)
}

pub(super) async fn done(gantry: &Gantry, arguments: &[&str]) -> String {
    let output = gantry.cli(arguments).await;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    told
}

/// Begins a sign-in as whoever has this token, and agrees as this person. Returns the address to which the browser is sent
/// back.
pub(super) async fn agreed(gantry: &Gantry, token: &str, person: &str) -> String {
    let body = json!({ "server": "tracker" }).to_string();
    let begun = gantry
        .ask_as(token, "post", "/api/v1/tool-servers/sign-in", Some(body))
        .await;
    assert_eq!(begun.status, 200, "{}", begun.body);
    sent_back(begun.body["url"].as_str().expect("an address"), person).await
}

/// The address to which the authorization server sends a browser back in which this person agrees.
pub(super) async fn sent_back(url: &str, person: &str) -> String {
    let browser = reqwest::Client::builder().redirect(Policy::none());
    let browser = browser.build().expect("it can be set up");
    let sent = browser.get(format!("{url}&person={person}")).send().await;
    let sent = sent.expect("an answer");
    let location = sent.headers()["location"].to_str().expect("text");
    location.to_owned()
}

pub(super) async fn answered(gantry: &Gantry, token: &str, address: &str) -> (u16, Value) {
    let at = "/api/v1/tool-servers/sign-in/answer";
    let body = json!({ "address": address }).to_string();
    let answer = gantry.ask_as(token, "post", at, Some(body)).await;
    (answer.status, answer.body)
}

async fn sign_in_state(gantry: &Gantry, token: &str) -> Value {
    let listed = gantry
        .ask_as(token, "get", "/api/v1/tool-servers", None)
        .await;
    listed.body["tool_servers"][0]["sign_in"].clone()
}

/// The outcome and the text of a call of the server's tool.
pub(super) async fn who(talk: &mut Talk, model: &ModelServer) -> (CallOutcome, String) {
    let call = Reply::call("mcp__tracker__whoami", json!({}));
    model.script(vec![call, Reply::text("done")]);
    let told = talk.say("who am I?").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let calls = told.calls();
    let (outcome, text) = calls.first().expect("a call");
    (*outcome, (*text).to_owned())
}

/// All bytes of the server's folder: database, logs and output.
pub(super) fn stored(gantry: &Gantry) -> Vec<u8> {
    let mut folders = vec![gantry.home().join("server")];
    let mut bytes = gantry.log().into_bytes();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it is there") {
            let path = entry.expect("it can be read").path();
            match path.is_dir() {
                true => folders.push(path),
                false => bytes.extend(fs::read(path).unwrap_or_default()),
            }
        }
    }
    bytes
}

/// The place of a word in them, with some of what stands before it.
pub(super) fn found(bytes: &[u8], word: &str) -> Option<String> {
    let mut windows = bytes.windows(word.len());
    let at = windows.position(|window| window == word.as_bytes())?;
    let before = &bytes[at.saturating_sub(200)..at + word.len()];
    Some(String::from_utf8_lossy(before).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_in_to_a_tool_server_and_nobody_else_uses_that_sign_in() {
    let (gantry, model) = gantry().await;
    let server = ToolServer::start().await;
    let bob = gantry.person("bob", RoleName::Member).await;
    let add = ["mcp", "add", "tracker", "--tenant", "--url", &server.mcp()];
    done(&gantry, &add).await;
    assert_eq!(sign_in_state(&gantry, gantry.token()).await, "none");

    // A turn goes on without the server, and says so to the model; the person is told what to do.
    let mut talk = gantry.talk().await;
    model.script(vec![Reply::text("done")]);
    talk.say("hello").await;
    let request = model.requests().pop().expect("a request").to_string();
    assert!(
        request.contains("missing now") && request.contains("tracker"),
        "{request}"
    );
    let listed = done(&gantry, &["mcp"]).await;
    assert!(
        listed.contains("sign in: gantry mcp login tracker"),
        "{listed}"
    );
    let shown = done(&gantry, &["show", &talk.session().to_string()]).await;
    assert!(shown.contains("gantry mcp login tracker"), "{shown}");

    let back = agreed(&gantry, gantry.token(), "ada").await;
    let path = back.strip_prefix(gantry.url()).expect("this server's");
    // A browser that another site leads here shows no cookie: the page leads to itself, and takes nothing.
    let stranger = gantry.request("get", path).send().await.expect("a page");
    assert!(stranger.headers().contains_key("refresh"));
    let again = format!("{path}&again=1");
    let stranger = gantry.request("get", &again).send().await.expect("a page");
    assert_eq!(stranger.status(), 401);
    let (status, told) = answered(&gantry, &bob, &back).await;
    assert_eq!(status, 409, "a sign-in of another person: {told}");
    let forged = back.replace("&iss=", "&iss=https%3A%2F%2Felsewhere.example%2F&x=");
    let browser = Browser::sign_in(&gantry, &gantry.sign_in_code().await).await;
    let page = browser.request("get", path).send().await.expect("a page");
    assert_eq!(page.status(), 200, "{:?}", page.text().await);
    let (status, _) = answered(&gantry, gantry.token(), &back).await;
    assert_eq!(status, 409, "a state that was used");
    let (status, _) = answered(&gantry, gantry.token(), &forged).await;
    assert_eq!(status, 409, "a state that was used, with another issuer");

    assert_eq!(sign_in_state(&gantry, gantry.token()).await, "signed_in");
    let (outcome, text) = who(&mut talk, &model).await;
    assert_eq!(outcome, CallOutcome::Completed, "{text}");
    assert!(text.contains("you are ada"), "{text}");
    assert_eq!(sign_in_state(&gantry, &bob).await, "none");
    server.told().asked.clear();
    let (outcome, text) = who(&mut gantry.talk_as(&bob).await, &model).await;
    assert_ne!(outcome, CallOutcome::Completed, "{text}");
    let asked = std::mem::take(&mut server.told().asked);
    assert!(
        !asked.is_empty() && asked.iter().all(|(token, _)| token.is_none()),
        "{asked:?}"
    );

    let tokens = server.told().tokens();
    let bytes = stored(&gantry);
    for token in &tokens {
        assert_eq!(found(&bytes, token), None, "it is stored in the clear");
    }
    done(&gantry, &["mcp", "logout", "tracker"]).await;
    assert!(
        server
            .told()
            .revoked
            .iter()
            .all(|token| tokens.contains(token))
    );
    assert_eq!(server.told().revoked.len(), 1);
    assert_eq!(sign_in_state(&gantry, gantry.token()).await, "none");
    let (outcome, _) = who(&mut talk, &model).await;
    assert_ne!(outcome, CallOutcome::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_another_issuer_brings_no_token() {
    let (gantry, _model) = gantry().await;
    let server = ToolServer::start().await;
    done(&gantry, &["mcp", "add", "tracker", "--url", &server.mcp()]).await;
    for (from, to, words) in [
        (
            "&iss=http",
            "&iss=https%3A%2F%2Felsewhere.example&x=http",
            "elsewhere.example",
        ),
        ("&iss=", "&x=", "does not say which"),
        ("&code=", "&error=access_denied&x=", "access_denied"),
    ] {
        let back = agreed(&gantry, gantry.token(), "ada")
            .await
            .replace('?', "?&");
        assert!(back.contains(from), "{back}");
        let (status, told) = answered(&gantry, gantry.token(), &back.replace(from, to)).await;
        assert_eq!(status, 409);
        assert!(told.to_string().contains(words), "{told}");
    }
    assert_eq!(sign_in_state(&gantry, gantry.token()).await, "none");
    assert_eq!(server.told().tokens(), Vec::<String>::new());
    // A server that is described as another one gets no sign-in at all.
    server.told().calls_itself = Some("https://elsewhere.example/mcp".to_owned());
    let body = json!({ "server": "tracker" }).to_string();
    let refused = gantry
        .ask("post", "/api/v1/tool-servers/sign-in", Some(body))
        .await;
    assert_eq!(refused.status, 409, "{}", refused.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_is_spent_once_however_many_calls_want_another_token() {
    let (gantry, model) = gantry().await;
    let server = ToolServer::start().await;
    done(&gantry, &["mcp", "add", "tracker", "--url", &server.mcp()]).await;
    // So short that each request renews it.
    server.told().good_for = 1;
    let back = agreed(&gantry, gantry.token(), "ada").await;
    answered(&gantry, gantry.token(), &back).await;
    model.script(vec![Reply::text("done"); 4]);
    let mut talks = Vec::new();
    for _ in 0..4 {
        talks.push(gantry.talk().await);
    }
    let turns = talks.iter_mut().map(|talk| talk.say("hello"));
    futures_util::future::join_all(turns).await;
    let renewals = server.told().renewals;
    assert!(renewals >= 4, "{renewals}");
    assert_eq!(server.told().thefts, 0);
    let (outcome, text) = who(&mut talks[0], &model).await;
    assert_eq!(
        (outcome, text.contains("you are ada")),
        (CallOutcome::Completed, true),
        "{text}"
    );
}

/// Registers the tool server with a client whose secret this is, for this authorization server.
async fn with_client(gantry: &Gantry, server: &ToolServer, issuer: Option<&str>) -> (u16, Value) {
    let oauth = json!({ "clientId": "known", "clientSecret": SECRET, "issuer": issuer });
    let text = json!({ "mcpServers": { "tracker": { "url": server.mcp(), "oauth": oauth } } });
    let new = json!({ "kind": "mcp", "name": "tracker", "text": text.to_string() }).to_string();
    let put = gantry.ask("put", "/api/v1/extensions", Some(new)).await;
    (put.status, put.body)
}

const SECRET: &str = "s3cret-of-a-client";

#[tokio::test(flavor = "multi_thread")]
async fn a_client_secret_and_tokens_go_to_the_declared_authorization_server_alone() {
    let (gantry, model) = gantry().await;
    let (server, elsewhere) = (ToolServer::start().await, ToolServer::start().await);
    for double in [&server, &elsewhere] {
        (double.told().takes_secrets, double.told().good_for) = (true, 1);
    }
    let (status, told) = with_client(&gantry, &server, None).await;
    assert_eq!(status, 422, "{told}");
    assert!(told.to_string().contains("--issuer"), "{told}");
    let (status, told) = with_client(&gantry, &server, Some(&server.base)).await;
    assert_eq!(status, 200, "{told}");
    let back = agreed(&gantry, gantry.token(), "ada").await;
    assert_eq!(answered(&gantry, gantry.token(), &back).await.0, 200);

    // The tool server names another authorization server from now on. Tokens are renewed where they came from.
    server.told().authority = Some(elsewhere.base.clone());
    let mut talk = gantry.talk().await;
    let (outcome, text) = who(&mut talk, &model).await;
    assert_eq!(outcome, CallOutcome::Completed, "{text}");
    assert!(server.told().renewals > 0);
    let forms = server.told().forms.clone();
    assert!(forms.iter().all(|form| form["client_secret"] == SECRET));
    // A new sign-in there is refused, and says what to do.
    let body = json!({ "server": "tracker" }).to_string();
    let at = "/api/v1/tool-servers/sign-in";
    let refused = gantry.ask("post", at, Some(body.clone())).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    let words = refused.body.to_string();
    assert!(
        words.contains(&elsewhere.base) && words.contains("--issuer"),
        "{words}"
    );

    // With another one declared, the tokens of the first are used no more.
    let (status, told) = with_client(&gantry, &server, Some(&elsewhere.base)).await;
    assert_eq!(status, 200, "{told}");
    assert_eq!(sign_in_state(&gantry, gantry.token()).await, "needed");
    let renewals = server.told().renewals;
    server.told().asked.clear();
    model.script(vec![Reply::text("done")]);
    talk.say("hello").await;
    let asked = server.told().asked.clone();
    assert!(
        !asked.is_empty() && asked.iter().all(|(token, _)| token.is_none()),
        "{asked:?}"
    );
    assert_eq!(server.told().renewals, renewals);
    assert_eq!(elsewhere.told().forms, Vec::new());
    // A secret that nobody writes again goes to no other authorization server.
    let oauth = json!({ "clientId": "known", "clientSecret": "(hidden)", "issuer": server.base });
    let text = json!({ "mcpServers": { "tracker": { "url": server.mcp(), "oauth": oauth } } });
    let kept = json!({ "kind": "mcp", "name": "tracker", "text": text.to_string() }).to_string();
    let kept = gantry.ask("put", "/api/v1/extensions", Some(kept)).await;
    assert_eq!(kept.status, 422, "{}", kept.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_goes_to_no_other_address() {
    let (gantry, model) = gantry().await;
    let (server, elsewhere) = (ToolServer::start().await, ToolServer::start().await);
    elsewhere.told().is_open = true;
    done(&gantry, &["mcp", "add", "tracker", "--url", &server.mcp()]).await;
    let back = agreed(&gantry, gantry.token(), "ada").await;
    answered(&gantry, gantry.token(), &back).await;
    server.told().sends_on = Some(elsewhere.mcp());
    model.script(vec![Reply::text("done")]);
    gantry.talk().await.say("hello").await;
    assert!(server.told().asked.iter().any(|(token, _)| token.is_some()));
    assert_eq!(elsewhere.told().asked.len(), 0);
    // The same name at another address is another server.
    done(
        &gantry,
        &["mcp", "add", "tracker", "--url", &elsewhere.mcp()],
    )
    .await;
    model.script(vec![Reply::text("done")]);
    gantry.talk().await.say("hello").await;
    let asked = std::mem::take(&mut elsewhere.told().asked);
    assert!(
        !asked.is_empty() && asked.iter().all(|(token, _)| token.is_none()),
        "{asked:?}"
    );
}

/// A program that answers with the value of its variable KEY, as a tool server in the shell.
const PROGRAM: &str = r#"while IFS= read -r line; do
id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*'"method":"initialize"'*) r='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}';;
*'"method":"tools/list"'*) r='"result":{"tools":[{"name":"whoami","inputSchema":{"type":"object"}}]}';;
*'"method":"tools/call"'*) r='"result":{"content":[{"type":"text","text":"'"$(printf %s "$KEY" | rev)"'"}]}';;
*'"id"'*) r='"error":{"code":-32601,"message":"no"}';;
*) continue;;
esac
printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$r"
done"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_values_of_a_tool_server_are_seen_nowhere_and_reach_it() {
    const KEY: &str = "s3cret-canary-4d1f";
    const YEK: &str = "f1d4-yranac-terc3s";
    let (gantry, model) = gantry().await;
    let runner = gantry.runner("laptop").await;
    let server = ToolServer::start().await;
    server.told().is_open = true;
    let header = format!("X-Key: {KEY}");
    done(
        &gantry,
        &[
            "mcp",
            "add",
            "tracker",
            "--url",
            &server.mcp(),
            "--header",
            &header,
        ],
    )
    .await;
    let mut talk = gantry.talk().await;
    let (outcome, text) = who(&mut talk, &model).await;
    assert_eq!(outcome, CallOutcome::Completed, "{text}");
    assert!(
        server
            .told()
            .asked
            .iter()
            .all(|(_, key)| key.as_deref() == Some(KEY))
    );

    // A person's own value stands for a reference.
    let add = [
        "mcp",
        "add",
        "tracker",
        "--url",
        &server.mcp(),
        "--header",
        "X-Key: ${MINE}",
    ];
    done(&gantry, &add).await;
    model.script(vec![Reply::text("done"); 2]);
    talk.say("hello").await;
    let shown = done(&gantry, &["show", &talk.session().to_string()]).await;
    assert!(shown.contains("gantry mcp values set MINE"), "{shown}");
    let put = async |host: &str| {
        let value = json!({ "name": "MINE", "host": host, "value": YEK }).to_string();
        let put = gantry.ask("put", "/api/v1/tool-values", Some(value)).await;
        assert_eq!(put.status, 200);
    };
    // Whoever declares a server chooses its address: a value for another host does not go there.
    put("other.example").await;
    server.told().asked.clear();
    talk.say("hello again").await;
    let shown = done(&gantry, &["show", &talk.session().to_string()]).await;
    assert!(shown.contains("goes to other.example alone"), "{shown}");
    assert!(server.told().asked.is_empty());
    put(&server.mcp()).await;
    server.told().asked.clear();
    let (outcome, text) = who(&mut gantry.talk().await, &model).await;
    assert_eq!(outcome, CallOutcome::Completed, "{text}");
    assert!(
        server
            .told()
            .asked
            .iter()
            .all(|(_, key)| key.as_deref() == Some(YEK))
    );

    // The same server as a program: the value that is not written again stays.
    let variable = format!("KEY={KEY}");
    done(
        &gantry,
        &[
            "mcp", "add", "tracker", "--env", &variable, "--", "sh", "-c", PROGRAM,
        ],
    )
    .await;
    let (outcome, text) = who(&mut talk, &model).await;
    assert_eq!(
        (outcome, text.contains(YEK)),
        (CallOutcome::Completed, true),
        "{text}"
    );
    done(
        &gantry,
        &[
            "mcp",
            "add",
            "tracker",
            "--env",
            "KEY=(hidden)",
            "--",
            "sh",
            "-c",
            PROGRAM,
        ],
    )
    .await;
    let (_, text) = who(&mut talk, &model).await;
    assert!(text.contains(YEK), "{text}");
    done(&gantry, &["mcp", "remove", "tracker"]).await;

    // And in a file of the project, which is read again when the server starts.
    let file = json!({ "mcpServers": { "tracker": { "command": "sh", "args": ["-c", PROGRAM], "env": { "KEY": KEY } } } });
    fs::write(runner.workspace().join(".mcp.json"), file.to_string()).expect("it is written");
    model.script(vec![Reply::text("done")]);
    talk.say("look").await;
    let session = talk.session().to_string();
    done(
        &gantry,
        &["extensions", "trust", "--yes", "--session", &session],
    )
    .await;
    let (outcome, text) = who(&mut talk, &model).await;
    assert_eq!(
        (outcome, text.contains(YEK)),
        (CallOutcome::Completed, true),
        "{text}"
    );

    let at = format!("/api/v1/sessions/{session}/extensions");
    for path in [
        at.as_str(),
        "/api/v1/extensions",
        "/api/v1/tool-servers",
        "/api/v1/audit",
    ] {
        let answer = gantry.ask("get", path, None).await;
        assert!(!answer.body.to_string().contains(KEY), "{path}");
    }
    assert_eq!(
        found(&stored(&gantry), KEY),
        None,
        "it is stored in the clear"
    );
}
