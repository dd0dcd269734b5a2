//! Secrets that people and programs give, looked for wherever none belongs: files, logs, metrics, lists of
//! processes, errors.

use std::path::Path;

use serde_json::json;
use shared_api::RoleName;
use tests::{
    collector::Collector,
    gantry::{Gantry, Setup, binary, eventually},
    model_server::{ModelServer, Reply},
};

/// The key of the model, as the operator gives it.
const MODEL_KEY: &str = "sk-canary-0b7e9d1f44";

/// The key of a person's own account at a vendor.
const OWN_KEY: &str = "sk-own-canary-93c1d27be0";

/// The key of the provider of searches, as the operator gives it.
const SEARCH_KEY: &str = "search-canary-2f8e61b07d";

/// The password of a database, as the operator gives it.
const PASSWORD: &str = "canary-5e1c0a77d2";

/// Secrets, by what they are.
struct Canaries(Vec<(&'static str, String)>);

impl Canaries {
    /// That none of them stands in this text.
    fn are_not_in(&self, place: &str, text: &[u8]) {
        for (what, secret) in &self.0 {
            let found = text
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!found, "{what} stands in {place}");
        }
    }

    /// That none of them stands in a file of this folder.
    fn are_not_below(&self, folder: &Path) -> usize {
        let mut files = 0;
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            match entry.file_type().expect("it is there") {
                kind if kind.is_dir() => files += self.are_not_below(&path),
                kind if kind.is_file() => {
                    let text = std::fs::read(&path).expect("it is ours");
                    self.are_not_in(&path.display().to_string(), &text);
                    files += 1;
                }
                _ => {}
            }
        }
        files
    }

    /// That none of them stands in the command line or the environment of a process.
    fn are_in_no_process(&self) {
        for process in std::fs::read_dir("/proc").expect("there is one").flatten() {
            for file in ["cmdline", "environ"] {
                // A process that ends meanwhile has none.
                let path = process.path().join(file);
                let text = std::fs::read(&path).unwrap_or_default();
                self.are_not_in(&path.display().to_string(), &text);
            }
        }
    }
}

/// Gives every secret once, each on its usual way, and wrongly after that. Returns them, and the answers.
async fn given(gantry: &Gantry) -> (Canaries, Vec<u8>) {
    let owner = gantry.client();
    let invited = owner.invite("ann", RoleName::Member).await;
    let invitation = invited.expect("there is room").code;
    let signed_in = gantry
        .client_with(None)
        .sign_in(&invitation, "laptop")
        .await;
    let sign_in = signed_in.expect("the code is good").token;
    let code = gantry.sign_in_code().await;
    gantry
        .client_with(None)
        .sign_in(&code, "second")
        .await
        .expect("the code is good");
    let made = owner.create_key("ci").await.expect("a key");
    let mut talk = gantry.talk_as(&made.key).await;
    talk.say("hello").await;
    let join = gantry.join_token("other").await;
    let link = owner.share_session(owner.create_session("").await.expect("a session").id, None);
    let link = link.await.expect("a link").path.replace("/shared/", "");
    let shared = gantry
        .request("get", &format!("/shared/{link}"))
        .send()
        .await;
    assert!(shared.expect("an answer").status().is_success());

    let mut said = Vec::new();
    owner.remove_key(made.entry.id).await.expect("it is there");
    for token in [&made.key, &join, &link, &code] {
        let answer = gantry.ask_as(token, "get", "/api/v1/me", None).await;
        assert_eq!(answer.status, 401, "{answer:?}");
        said.extend(answer.body.to_string().into_bytes());
    }
    for code in [&invitation, &made.key] {
        let body = json!({ "code": code, "device": "x" }).to_string();
        let answer = gantry.ask("post", "/api/v1/sign-in", Some(body)).await;
        assert_eq!(answer.status, 401, "{answer:?}");
        said.extend(answer.body.to_string().into_bytes());
    }
    let wrong = gantry
        .ask("get", &format!("/api/v1/shared/{join}"), None)
        .await;
    assert_eq!(wrong.status, 404);
    said.extend(wrong.body.to_string().into_bytes());
    let secrets = [
        ("the model's key", MODEL_KEY.to_owned()),
        ("a person's own key", OWN_KEY.to_owned()),
        ("the key of searches", SEARCH_KEY.to_owned()),
        ("an invitation", invitation),
        ("a sign-in", sign_in),
        ("a sign-in code", code),
        ("an API key", made.key),
        ("a join token", join),
        ("a link to a session", link),
    ];
    (Canaries(secrets.to_vec()), said)
}

/// Adds an account with a key of the owner's own, which its vendor refuses in words that name it: at first, and in the
/// middle of a turn. Returns what the server said.
async fn own_key_is_refused(gantry: &Gantry) -> Vec<u8> {
    let vendor = ModelServer::start().await;
    let refusal = || Reply::refusal(401, &format!("Incorrect API key provided: {OWN_KEY}"));
    vendor.script(vec![refusal(), Reply::call("ping", "{}"), refusal()]);
    let account = json!({
        "provider": "openai", "name": "mine", "base_url": vendor.base_url(), "models": ["gpt-t"], "key": OWN_KEY,
    });
    let mut said = Vec::new();
    for status in [422, 200] {
        let answer = gantry.ask("post", "/api/v1/model-accounts", Some(account.to_string()));
        let answer = answer.await;
        assert_eq!(answer.status, status, "{answer:?}");
        said.extend(answer.body.to_string().into_bytes());
    }
    let chat = gantry
        .cli(&["chat", "--model", "mine/gpt-t", "go on"])
        .await;
    said.extend([chat.stdout, chat.stderr].concat());
    let listed = gantry
        .ask("get", "/api/v1/models", None)
        .await
        .body
        .to_string();
    assert!(
        listed.contains("Incorrect API key provided: [key]"),
        "{listed}"
    );
    said.extend(listed.into_bytes());
    assert_eq!(vendor.authorizations().len(), 3, "the vendor got the key");
    said
}

/// A backup of the server, unpacked.
async fn backup(gantry: &Gantry) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("backup.tar.gz");
    let path = file.to_str().expect("text");
    let made = gantry.operator(&["backup", path]).output().await;
    assert!(made.expect("it runs").status.success());
    let mut unpacked = tokio::process::Command::new("tar");
    unpacked.arg("-xzf").arg(&file).arg("-C").arg(folder.path());
    assert!(unpacked.status().await.expect("it runs").success());
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_that_is_given_stands_where_none_belongs() {
    let (model, folder) = (
        ModelServer::start().await,
        tempfile::tempdir().expect("a folder"),
    );
    // The first is refused in words that name the key, as vendors do.
    model.script(vec![
        Reply::refusal(401, &format!("Incorrect API key provided: {MODEL_KEY}")),
        Reply::call("web_search", json!({ "query": "a provider that is away" })),
        Reply::call(
            "Shell",
            json!({ "command": "sleep 1000", "background": true }),
        ),
        Reply::text("it runs"),
    ]);
    let key = folder.path().join("model.key");
    std::fs::write(&key, MODEL_KEY).expect("it is written");
    let search_key = folder.path().join("search.key");
    std::fs::write(&search_key, SEARCH_KEY).expect("it is written");
    let collector = Collector::start().await;
    let traces = collector.settings();
    let gantry = Gantry::with(Setup {
        model: Some(model.base_url()),
        settings: format!(
            "{traces}[log]\nfilter = \"debug\"\n[model]\nkey_file = {key:?}\nprivate_addresses = true\n\
             [web.search]\nprovider = \"brave\"\nurl = \"http://127.0.0.1:1\"\nkey_file = {search_key:?}\n"
        ),
        ..Setup::default()
    })
    .await;
    let runner = gantry.runner("laptop").await;
    let (canaries, mut said) = given(&gantry).await;
    said.extend(own_key_is_refused(&gantry).await);
    // A command runs, and inherits nothing that it should not.
    let mut talk = gantry.talk().await;
    talk.say("go on").await;
    let authorizations = model.authorizations();
    let sent = Some(format!("Bearer {MODEL_KEY}"));
    assert!(
        authorizations.contains(&sent),
        "the model got its key: {authorizations:?}"
    );

    canaries.are_not_in("an error", &said);
    canaries.are_in_no_process();
    let metrics = gantry
        .request("get", "/metrics")
        .bearer_auth(gantry.token());
    let metrics = metrics.send().await.expect("an answer").bytes().await;
    canaries.are_not_in("/metrics", &metrics.expect("text"));
    for noun in [
        "audit", "keys", "people", "sessions", "runners", "models", "usage",
    ] {
        let listed = gantry.ask("get", &format!("/api/v1/{noun}"), None).await;
        canaries.are_not_in(noun, listed.body.to_string().as_bytes());
    }
    let log = gantry.log();
    assert!(log.contains("DEBUG"), "the log has everything");
    // The database, the outputs and the log lie in the home.
    assert!(canaries.are_not_below(&gantry.home()) > 3);
    assert!(canaries.are_not_below(&runner.home()) > 3);
    assert!(canaries.are_not_below(backup(&gantry).await.path()) > 1);
    let asked = async || {
        let spans = collector.spans();
        spans
            .iter()
            .any(|span| span.failure.is_some())
            .then_some(spans)
    };
    let spans = eventually("the span of a refused call", asked).await;
    canaries.are_not_in("a span", format!("{spans:?}").as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_databases_password_stands_in_no_refusal_to_start() {
    let home = tempfile::tempdir().expect("a folder");
    for url in [
        format!("postgres://gantry:{PASSWORD}@127.0.0.1:1/gantry"),
        format!("postgres://gantry:{PASSWORD}@127.0.0.1:port/gantry"),
        format!("mysql://gantry:{PASSWORD}@127.0.0.1/gantry"),
        format!("postgres://gantry:{PASSWORD}@127.0.0.1:1/gantry?password={PASSWORD}&x=y"),
    ] {
        let settings = format!("[database]\nurl = {url:?}\n[log]\nfilter = \"debug\"\n");
        std::fs::write(home.path().join("gantry.toml"), settings).expect("it is written");
        let mut server = tokio::process::Command::new(binary("gantry-server"));
        server.args(["run", "--listen", "127.0.0.1:0"]).env_clear();
        let refused = server.env("GANTRY_HOME", home.path()).output().await;
        let refused = refused.expect("it starts");
        assert!(!refused.status.success(), "{refused:?}");
        let said = [refused.stdout, refused.stderr].concat();
        let said = String::from_utf8(said).expect("text");
        assert!(!said.is_empty() && !said.contains(PASSWORD), "{said}");
    }
}
