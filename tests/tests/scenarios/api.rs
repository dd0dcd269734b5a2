//! The OpenAPI document is true: what it names is there, and what the server answers is what it
//! says, for good requests and for bad ones.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use shared_api::RoleName;
use shared_types::{ApprovalId, OperationId, RunnerId, SandboxId, UserId};
use tests::{
    asked,
    browser::{Browser, OWN_PAGE},
    gantry::{Answer, Gantry, Setup, eventually},
    model_server::{ModelServer, Reply},
    openapi::{Document, Operation},
};

use super::{
    rewinds,
    tool_sign_ins::{double::ToolServer, sent_back},
};

/// The address of sandboxes.
pub(super) const SANDBOXES: &str = "/api/v1/sandboxes";

/// An id of every kind, of things that do not exist.
const NOTHING: [&str; 7] = [
    "ses_00000000000000000000000000",
    "run_00000000000000000000000000",
    "crd_00000000000000000000000000",
    "op_00000000000000000000000000",
    "usr_00000000000000000000000000",
    "apr_00000000000000000000000000",
    "rul_00000000000000000000000000",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_route_is_there_and_answers_with_a_documented_status() {
    let gantry = Gantry::practice().await;
    let document = document(&gantry).await;
    let operations = document.operations();
    assert!(operations.len() > 10, "the document names the routes");
    for operation in operations {
        for id in NOTHING {
            let path = operation.path.replace("{id}", id);
            let body = operation.has_body().then(|| "{}".to_owned());
            let answer = gantry.ask(operation.method, &path, body).await;
            assert_true(&operation, &answer);
            let detail = answer.body["detail"].as_str().unwrap_or_default();
            assert!(!detail.contains("no such address"), "{path}: {detail}");
        }
        assert_eq!(
            operation.parameters("path").len(),
            operation.path.matches('{').count(),
            "{}",
            operation.path
        );
    }
    let nowhere = gantry.ask("get", "/api/v1/nowhere", None).await;
    assert_eq!(nowhere.status, 404);
    document
        .check_component("Problem", &nowhere.body)
        .expect("it is a problem");
    assert_eq!(gantry.ask("patch", "/api/v1/me", None).await.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_good_answer_has_the_documented_shape() {
    let gantry = Gantry::with(Setup {
        settings: "[web]\nallow = [\"127.0.0.0/8\"]\n".to_owned(),
        ..Setup::default()
    })
    .await;
    let runner = gantry.runner("laptop").await;
    let told = gantry.talk().await.say("run echo hi").await;
    assert_eq!(told.calls().len(), 1);
    asked::propose(&runner.workspace(), "allow = [\"Shell(make *)\"]");
    let document = document(&gantry).await;
    let mut api = Api::new(&gantry, &document);

    api.call("get", "/api/v1/me", "", None).await;
    let session = api
        .call(
            "post",
            "/api/v1/sessions",
            "",
            Some(json!({ "title": "a" })),
        )
        .await;
    let session = session["id"].as_str().expect("an id").to_owned();
    api.call("get", "/api/v1/sessions", "", None).await;
    api.call("get", "/api/v1/sessions/{id}", &session, None)
        .await;
    api.call("get", "/api/v1/usage", "", None).await;
    let status = api.call("get", "/api/v1/status", "", None).await;
    assert_eq!(status["runners"], json!({ "online": 1, "away": 0 }));
    assert_eq!(status["replicas"][0]["this"], true, "{status}");
    let servers = api.call("get", "/api/v1/replicas", "", None).await;
    assert_eq!(servers["replicas"][0]["links"], 1, "{servers}");
    for path in ["context", "usage", "usage/turns"] {
        let path = format!("/api/v1/sessions/{{id}}/{path}");
        api.call("get", &path, &session, None).await;
    }
    let images = "/api/v1/sessions/{id}/images";
    let image = api.send(("post", images), (&session, ""), "GIF89a".to_owned());
    let digest = image.await["digest"].as_str().expect("a digest").to_owned();
    let at = format!("{}/{digest}", images.replace("{id}", &session));
    api.answered(("get", "/api/v1/sessions/{id}/images/{digest}"), &at, None)
        .await;
    let pin = json!({ "runner": "laptop" });
    let pinned = api
        .call("put", "/api/v1/sessions/{id}/runner", &session, Some(pin))
        .await;
    assert_eq!(pinned["runner"]["name"], "laptop");
    api.call("delete", "/api/v1/sessions/{id}/runner", &session, None)
        .await;
    api.sets_and_unsets(&session).await;
    api.asks_and_sets_rules().await;
    let with_models = Gantry::with(Setup {
        settings: "[model]\nprivate_addresses = true\n".to_owned(),
        ..Setup::default()
    })
    .await;
    let mut of_models = Api::new(&with_models, &document);
    of_models.adds_and_removes_a_model_account().await;
    api.seen.extend(of_models.seen);
    api.shares_and_deletes_a_session().await;
    api.call("post", "/api/v1/sessions/{id}/cancel", &session, None)
        .await;
    let message = json!({ "text": "run sleep 1000", "client_id": "1" });
    api.call(
        "post",
        "/api/v1/sessions/{id}/messages",
        &session,
        Some(message),
    )
    .await;
    api.call("post", "/api/v1/sessions/{id}/cancel", &session, None)
        .await;
    let compacts = json!({ "text": "/compact the port", "compacts": "the port", "client_id": "2" });
    api.call(
        "post",
        "/api/v1/sessions/{id}/messages",
        &session,
        Some(compacts),
    )
    .await;
    rewinds::goes_back(&mut api, &gantry).await;
    api.call("get", "/api/v1/commands", "", None).await;
    for line in ["/status", "/help", "/new"] {
        let command = json!({ "line": line, "client_id": line });
        let path = "/api/v1/sessions/{id}/commands";
        api.call("post", path, &session, Some(command)).await;
    }
    let events = api
        .call("get", "/api/v1/sessions/{id}/events", &session, None)
        .await;
    assert!(!events["events"].as_array().expect("a list").is_empty());

    let operation = told.operations()[0].to_string();
    let listed = api.call("get", "/api/v1/operations", "", None).await;
    // The other message's may have been placed before it was cancelled.
    let listed = listed["operations"].as_array().expect("a list");
    assert!(
        listed
            .iter()
            .any(|listed| listed["id"] == operation.as_str())
    );
    let output = api
        .call("get", "/api/v1/operations/{id}/output", &operation, None)
        .await;
    assert_eq!(output["data"], "aGkK");
    let cancelled = api
        .call("post", "/api/v1/operations/{id}/cancel", &operation, None)
        .await;
    assert_eq!(cancelled["answer"], "already_exited");
    let ended = api
        .call("get", "/api/v1/operations/{id}", &operation, None)
        .await;
    assert_eq!(ended["end"]["code"], 0, "{ended}");
    api.runs_an_operation().await;

    let mut talk = gantry.talk().await;
    talk.say("run in the background: sleep 1000").await;
    let session = talk.session().to_string();
    let tasks = api
        .call("get", "/api/v1/sessions/{id}/tasks", &session, None)
        .await;
    assert_eq!(tasks["tasks"][0]["number"], 1);
    assert_eq!(tasks["tasks"][0]["ended"], Value::Null);

    let runners = api.call("get", "/api/v1/runners", "", None).await;
    assert_eq!(runners["runners"].as_array().expect("a list").len(), 1);
    let choice = json!({ "runner": "laptop" });
    let runner = api.call("put", "/api/v1/me/runner", "", Some(choice)).await;
    api.call("delete", "/api/v1/me/runner", "", None).await;
    let runner = runner["id"].as_str().expect("an id").to_owned();
    let runner = runner.as_str();
    api.is_shared_with_people(runner).await;
    api.call("delete", "/api/v1/runners/{id}", runner, None)
        .await;
    let wish = json!({ "name": "next", "valid_for_s": 60 });
    let token = api
        .call("post", "/api/v1/join-tokens", "", Some(wish))
        .await;
    let token = token["id"].as_str().expect("an id").to_owned();
    let tokens = api.call("get", "/api/v1/join-tokens", "", None).await;
    assert_eq!(tokens["join_tokens"][0]["id"], token);
    api.call("delete", "/api/v1/join-tokens/{id}", &token, None)
        .await;

    let key = api
        .call("post", "/api/v1/keys", "", Some(json!({ "name": "ci" })))
        .await;
    api.call("get", "/api/v1/keys", "", None).await;
    let key = key["entry"]["id"].as_str().expect("an id").to_owned();
    api.call("delete", "/api/v1/keys/{id}", &key, None).await;

    let code = tokio::process::Command::new(tests::gantry::binary("gantry-server"))
        .arg("sign-in-code")
        .env_clear()
        .env("GANTRY_HOME", gantry.home())
        .output()
        .await
        .expect("it starts");
    let code = String::from_utf8(code.stdout).expect("text");
    let sign_in = json!({ "code": code.trim(), "device": "test" });
    api.call("post", "/api/v1/sign-in", "", Some(sign_in)).await;
    api.has_a_browser_and_a_service_account().await;
    // Those of sandboxes need an engine (`docker::every_good_answer_about_a_sandbox_has_the_documented_shape`).
    api.was_seen_whole(|path| !path.starts_with(SANDBOXES));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_not_documented_is_refused_by_its_name() {
    let gantry = Gantry::practice().await;
    let document = document(&gantry).await;
    let session = gantry
        .client()
        .create_session("")
        .await
        .expect("a session")
        .id;
    let mut refused = 0;
    for operation in document.operations() {
        let noun = operation.path.split('/').nth(3);
        let id = match noun {
            Some("operations") => OperationId::from_u128(1).to_string(),
            Some("people" | "service-accounts") => UserId::from_u128(1).to_string(),
            Some("runners") => RunnerId::from_u128(1).to_string(),
            Some("sandboxes") => SandboxId::from_u128(1).to_string(),
            Some("approvals") => ApprovalId::from_u128(1).to_string(),
            _ => session.to_string(),
        };
        let path = operation.path.replace("{id}", &id);
        let mut answers = Vec::new();
        if operation.has_json() {
            let body = json!({ "surprise": true }).to_string();
            answers.push((
                Some("surprise"),
                gantry.ask(operation.method, &path, Some(body)).await,
            ));
            for nonsense in ["", "{", "[]", "null", "\"text\"", "{\"name\":7,\"text\":7}"] {
                let body = Some(nonsense.to_owned());
                answers.push((None, gantry.ask(operation.method, &path, body).await));
            }
            answers.push((None, gantry.ask(operation.method, &path, None).await));
        }
        if operation.path == "/api/v1/settings" && operation.has_json() {
            // Fields in their order: nothing would say which settings are taken back.
            let body = json!({ "layer": "user", "values": [null, null] }).to_string();
            let answer = gantry.ask(operation.method, &path, Some(body)).await;
            answers.push((Some("values is a list"), answer));
        }
        if !operation.parameters("query").is_empty() {
            for (query, word) in [("surprise=1", "surprise"), ("limit=many", "limit")] {
                let path = format!("{path}?{query}");
                answers.push((Some(word), gantry.ask(operation.method, &path, None).await));
            }
        }
        for (word, answer) in answers {
            refused += 1;
            assert_eq!(
                answer.status, 422,
                "{} {path}: {answer:?}",
                operation.method
            );
            assert_true(&operation, &answer);
            let detail = answer.body["detail"].as_str().expect("a detail");
            assert!(word.is_none_or(|word| detail.contains(word)), "{detail}");
        }
    }
    assert!(refused > 20, "{refused}");
    let log = gantry.client().session(session).await.expect("it is there");
    assert_eq!(log.last_seq, 1, "nothing was said in it");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_nothing_of_another_kind_or_of_no_form_gets_the_same_answer() {
    let gantry = Gantry::practice().await;
    let document = document(&gantry).await;
    let session = gantry
        .client()
        .create_session("")
        .await
        .expect("a session")
        .id;
    let key = gantry
        .client()
        .create_key("k")
        .await
        .expect("a key")
        .entry
        .id;
    // A key is another kind for all but keys, a session for all but sessions.
    let (session, key) = (session.to_string(), key.to_string());
    let mut tried = 0;
    for operation in document.operations() {
        if operation.parameters("path").is_empty() {
            continue;
        }
        let of_another_kind = if operation.path.contains("/keys/") {
            &session
        } else {
            &key
        };
        let long = "x".repeat(4000);
        let mut first: Option<Value> = None;
        for id in NOTHING.into_iter().chain([
            of_another_kind.as_str(),
            "nonsense",
            "SES_00000000000000000000000000",
            "ses_0000000000000000000000000",
            "%00",
            "%F0%9F%A6%80",
            &long,
        ]) {
            let path = operation.path.replace("{id}", id);
            let path = path + &operation.smallest_query();
            let body = operation.smallest_body();
            let answer = gantry.ask(operation.method, &path, body).await;
            assert_eq!(answer.status, 404, "{path}: {answer:?}");
            assert_true(&operation, &answer);
            let same = first.get_or_insert_with(|| answer.body.clone());
            assert_eq!(&answer.body, same, "{path}");
            tried += 1;
        }
    }
    assert!(tried > 50, "{tried}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_has_a_name_of_its_own_and_no_list_gives_more_than_it_says() {
    let gantry = Gantry::practice().await;
    let document = document(&gantry).await;
    let session = gantry.client().create_session("").await;
    let session = session.expect("a session").id;
    let link = gantry.client().share_session(session, None).await;
    let link = link.expect("a link").path.replace("/shared/", "");
    let session = session.to_string();
    let client = gantry.client();
    let account = client.add_service_account("deploy", RoleName::Member);
    let account = account.await.expect("a service account").id.to_string();
    let (mut names, mut bounded) = (BTreeSet::new(), 0);
    for operation in document.operations() {
        let name = operation.id().expect("a name");
        assert!(names.insert(name.to_owned()), "{name} is there twice");
        let Some(most) = operation.greatest("limit") else {
            assert!(!operation.parameters("query").contains(&"limit"), "{name}");
            continue;
        };
        bounded += 1;
        let id = match operation.path.split('/').nth(3) {
            Some("operations") => &OperationId::from_u128(1).to_string(),
            Some("service-accounts") => &account,
            _ => &session,
        };
        let path = operation.path.replace("{id}", id).replace("{link}", &link);
        for (limit, refused) in [(0, true), (1, false), (most, false), (most + 1, true)] {
            let path = format!("{path}?limit={limit}");
            let answer = gantry.ask(operation.method, &path, None).await;
            assert_eq!(answer.status == 422, refused, "{path}: {answer:?}");
            assert_true(&operation, &answer);
            let said = answer.body["detail"].as_str().unwrap_or_default();
            assert!(!refused || said.contains(&format!("1 to {most}")), "{said}");
        }
    }
    assert_eq!(bounded, 15);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_code_of_a_problem_has_a_page_that_a_stranger_can_read() {
    let gantry = Gantry::practice().await;
    let read = async |path: &str| {
        let answer = gantry.request("get", path).send().await.expect("an answer");
        let policy = answer.headers()["content-security-policy"].to_str();
        assert!(policy.expect("text").starts_with("default-src 'none'"));
        (answer.status().as_u16(), answer.text().await.expect("text"))
    };
    let (status, list) = read("/problems").await;
    assert_eq!(status, 200);
    let pages = list.split("href=\"").skip(1);
    let pages: Vec<_> = pages.filter_map(|rest| rest.split('"').next()).collect();
    for page in &pages {
        let (status, text) = read(page).await;
        let word = page.strip_prefix("/problems/").expect("one of them");
        assert!(status == 200 && text.contains(word), "{page}: {text}");
    }
    let wrong = gantry.ask("get", "/api/v1/nowhere", None).await;
    let page = wrong.body["type"].as_str().expect("an address");
    assert!(pages.contains(&page), "{page} is one of {pages:?}");
    for nothing in ["/problems/nonsense", "/problems/%ff", "/problems/<b>"] {
        let (status, text) = read(nothing).await;
        assert!(status == 404 && !text.contains("<b>"), "{nothing}: {text}");
    }
}

/// Requests that are good, and the operations that they tried.
pub(super) struct Api<'a> {
    gantry: &'a Gantry,
    document: &'a Document,
    seen: BTreeSet<(String, String)>,
}

impl<'a> Api<'a> {
    pub(super) fn new(gantry: &'a Gantry, document: &'a Document) -> Self {
        Self {
            gantry,
            document,
            seen: BTreeSet::new(),
        }
    }

    /// Somebody is invited, gets a runner, another role, and goes.
    async fn is_shared_with_people(&mut self, runner: &str) {
        let ann = json!({ "name": "ann", "role": "viewer" });
        let invited = self.call("post", "/api/v1/people", "", Some(ann)).await;
        let ann = invited["person"]["id"].as_str().expect("an id").to_owned();
        self.call("get", "/api/v1/people", "", None).await;
        let of = "/api/v1/runners/{id}";
        for verb in ["share", "unshare"] {
            let with = Some(json!({ "with": "ann" }));
            self.call("post", &format!("{of}/{verb}"), runner, with)
                .await;
        }
        let change = Some(json!({ "name": "laptop", "draining": true }));
        let changed = self.call("patch", of, runner, change).await;
        assert_eq!(changed["drained_by"], "owner");
        let change = Some(json!({ "draining": false }));
        self.call("patch", of, runner, change).await;
        for verb in ["take", "trust", "distrust"] {
            self.call("post", &format!("{of}/{verb}"), runner, None)
                .await;
        }
        let role = Some(json!({ "role": "member" }));
        self.call("put", "/api/v1/people/{id}/role", &ann, role)
            .await;
        self.call("delete", "/api/v1/people/{id}", &ann, None).await;
        let log = self.call("get", "/api/v1/audit", "", None).await;
        let last = log["entries"].as_array().and_then(|entries| entries.last());
        assert_eq!(last.expect("an entry")["what"], "person.removed");
    }

    /// An account at a provider is added, tried, listed and removed.
    async fn adds_and_removes_a_model_account(&mut self) {
        let model = ModelServer::start().await;
        model.script(vec![Reply::call("ping", "{}"), Reply::text("pong")]);
        let at = "/api/v1/model-accounts";
        let account = json!({
            "provider": "openai", "base_url": model.base_url(), "models": ["m"], "key": "sk-key",
        });
        let added = self.call("post", at, "", Some(account)).await;
        let id = added["account"]["id"].as_str().expect("an id").to_owned();
        let named = Some(json!({ "name": "m" }));
        self.call("post", "/api/v1/models/test", "", named).await;
        let listed = self.call("get", "/api/v1/models", "", None).await;
        assert_eq!(listed["accounts"][0]["name"], "openai");
        let one = format!("{at}/{{id}}");
        self.call("delete", &one, &id, None).await;
    }

    /// A person is asked and answers, and sets, tries and removes a rule.
    async fn asks_and_sets_rules(&mut self) {
        let client = self.gantry.client();
        let session = client.create_session("").await.expect("a session").id;
        let asked = asked::about(&client, session, "touch asked").await;
        let at = "/api/v1/approvals";
        self.call("get", at, "", None).await;
        let one = format!("{at}/{{id}}");
        self.call("get", &one, &asked.id.to_string(), None).await;
        let answer = json!({
            "digest": asked.digest, "answer": { "outcome": "denied", "words": "not now" },
        });
        let answered = format!("{one}/answer");
        self.call("post", &answered, &asked.id.to_string(), Some(answer))
            .await;
        asked::mode(&client, "full").await;
        let at = "/api/v1/permissions";
        let rule = json!({ "rule": "Shell(make *)", "decision": "allow" });
        let added = self.call("post", at, "", Some(rule)).await;
        let listed = self.call("get", at, "", None).await;
        assert_eq!(listed["rules"][0]["id"], added["id"]);
        let test = json!({ "text": "make all", "mode": "ask" });
        let told = self
            .call("post", "/api/v1/permissions/test", "", Some(test))
            .await;
        assert_eq!(told["rule"], "Shell(make *)");
        let id = added["id"].as_str().expect("an id").to_owned();
        self.call("delete", "/api/v1/permissions/{id}", &id, None)
            .await;
        self.trusts_a_project(&session.to_string()).await;
        self.registers_a_skill(&session.to_string()).await;
    }

    /// A skill is registered, listed, shown and removed; what a session found is looked at, and a file is trusted no more.
    async fn registers_a_skill(&mut self, session: &str) {
        let at = "/api/v1/extensions";
        let skill = json!({
            "kind": "skill", "name": "pdf", "source": "/home/me/pdf",
            "text": "---\nname: pdf\ndescription: Fill PDF forms.\n---\nUse a tool.",
        });
        let put = self.call("put", at, "", Some(skill)).await;
        let listed = self.call("get", at, "", None).await;
        assert_eq!(listed["extensions"][0]["id"], put["id"]);
        let id = put["id"].as_str().expect("an id").to_owned();
        let one = format!("{at}/{{id}}");
        assert_eq!(self.call("get", &one, &id, None).await["layer"], "user");
        self.call("delete", &one, &id, None).await;
        self.signs_in_to_a_tool_server().await;
        let of = "/api/v1/sessions/{id}/extensions";
        self.call("get", of, session, None).await;
        let untrust = json!({ "path": ".mcp.json" });
        self.call("post", of, session, Some(untrust)).await;
        let server = json!({ "kind": "mcp", "name": "far", "text":
            r#"{"mcpServers": {"far": {"type": "http", "url": "http://127.0.0.1:9/mcp"}}}"# });
        self.call("put", at, "", Some(server)).await;
        let of = "/api/v1/sessions/{id}/tool-servers";
        let listed = self.call("get", of, session, None).await;
        assert_eq!(listed["servers"][0]["from"]["trusted"], true);
        let far = json!({ "name": "far" });
        let tested = self.call("post", of, session, Some(far)).await;
        assert!(tested["found"]["failed"].is_string(), "{tested}");
    }

    /// A tool server is registered, listed, signed in to and out of.
    async fn signs_in_to_a_tool_server(&mut self) {
        let server = ToolServer::start().await;
        let declared =
            json!({ "mcpServers": { "tracker": { "type": "http", "url": server.mcp() } } });
        let put = json!({ "kind": "mcp", "name": "tracker", "text": declared.to_string() });
        self.call("put", "/api/v1/extensions", "", Some(put)).await;
        let described = server
            .mcp()
            .replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
        let there = json!({ "address": described });
        let read = self.call("post", "/api/v1/extension-downloads", "", Some(there));
        let content = STANDARD.decode(read.await["content"].as_str().expect("base64"));
        assert!(
            String::from_utf8_lossy(&content.expect("base64")).contains("authorization_servers")
        );
        let at = "/api/v1/tool-servers";
        let named = json!({ "server": "tracker" });
        let (sign_in, sign_out) = (format!("{at}/sign-in"), format!("{at}/sign-out"));
        let begun = self.call("post", &sign_in, "", Some(named.clone())).await;
        let url = begun["url"].as_str().expect("an address");
        let back = sent_back(url, "ada").await;
        let answer = json!({ "address": back });
        let answered = self
            .call("post", &format!("{sign_in}/answer"), "", Some(answer))
            .await;
        assert_eq!(answered["server"], "tracker");
        let listed = self.call("get", at, "", None).await;
        assert_eq!(listed["tool_servers"][0]["sign_in"], "signed_in");
        self.call("post", &sign_out, "", Some(named)).await;
        let value = json!({ "name": "TOKEN", "host": "a.example", "value": "x" });
        let at = "/api/v1/tool-values";
        self.call("put", at, "", Some(value)).await;
        assert_eq!(
            self.call("get", at, "", None).await["values"][0]["name"],
            "TOKEN"
        );
    }

    /// The file with rules that the session found is looked at, trusted, listed, and trusted no more.
    async fn trusts_a_project(&mut self, session: &str) {
        let of = "/api/v1/sessions/{id}/permissions";
        let proposed = self.call("get", of, session, None).await;
        assert_eq!(proposed["rules"][0]["rule"], "Shell(make *)");
        let at = "/api/v1/permissions/projects";
        let trust = json!({ "session": session, "digest": proposed["digest"] });
        let trusted = self.call("post", at, "", Some(trust)).await;
        let listed = self.call("get", "/api/v1/permissions", "", None).await;
        assert_eq!(listed["rules"][0]["file"], trusted);
        let id = trusted["id"].as_str().expect("an id").to_owned();
        self.call("delete", &format!("{at}/{{id}}"), &id, None)
            .await;
    }

    /// Settings are set, taken back and listed, also those of a session.
    async fn sets_and_unsets(&mut self, session: &str) {
        let at = "/api/v1/settings";
        let change = json!({
            "layer": "user", "values": { "runner": "laptop", "steps": "9" }, "generation": null,
        });
        let changed = self.call("patch", at, "", Some(change)).await;
        let generation = changed["generation"].as_u64().expect("a number");
        let change = json!({
            "layer": "session", "session": session, "values": { "language": "German" },
            "generation": generation,
        });
        self.call("patch", at, "", Some(change)).await;
        let of_session = format!("{at}?session={session}");
        let listed = self.answered(("get", at), &of_session, None).await;
        // The server of these tests is started in a mode.
        let set_by = ["user", "default", "session", "user", "operator", "default"];
        for (setting, set_by) in listed["settings"]
            .as_array()
            .expect("a list")
            .iter()
            .zip(set_by)
        {
            assert_eq!(setting["set_by"], set_by, "{setting}");
        }
        let change = json!({ "layer": "user", "values": { "model": null, "steps": null } });
        let changed = self.call("patch", at, "", Some(change)).await;
        assert_eq!(changed["settings"][3]["set_by"], "default");
    }

    /// A browser signs in and out; a service account gets a key, and a page a ticket.
    async fn has_a_browser_and_a_service_account(&mut self) {
        let of = "/api/v1/service-accounts";
        let account = json!({ "name": "deploy", "role": "member" });
        let added = self.call("post", of, "", Some(account)).await;
        let id = added["id"].as_str().expect("an id").to_owned();
        let keys = format!("{of}/{{id}}/keys");
        let key = json!({ "name": "ci", "scopes": ["chat"], "valid_for_s": 60 });
        self.call("post", &keys, &id, Some(key)).await;
        self.call("get", &keys, &id, None).await;
        let tickets = "/api/v1/stream-tickets";
        self.call("post", tickets, "", Some(json!({}))).await;

        let code = self.gantry.sign_in_code().await;
        let sign_in = json!({ "code": code, "device": "test" });
        let (signed_in, out) = ("/api/v1/browser/sign-in", "/api/v1/browser/sign-out");
        let request = self.gantry.request("post", signed_in).json(&sign_in);
        let request = request.header(OWN_PAGE.0, OWN_PAGE.1);
        self.checked(("post", signed_in), Answer::to(request).await);
        let code = self.gantry.sign_in_code().await;
        let browser = Browser::sign_in(self.gantry, &code).await;
        let request = browser.request("post", out);
        self.checked(("post", out), Answer::to(request).await);
    }

    /// A session is renamed, read by a link, and deleted.
    async fn shares_and_deletes_a_session(&mut self) {
        let begun = self.call("post", "/api/v1/sessions", "", Some(json!({})));
        let session = begun.await["id"].as_str().expect("an id").to_owned();
        let of = "/api/v1/sessions/{id}";
        let change = json!({ "title": "the build", "archived": true });
        let changed = self.call("patch", of, &session, Some(change)).await;
        assert_eq!(changed["title"], "the build");
        let links = format!("{of}/links");
        let share = Some(json!({ "valid_for_s": 3600 }));
        let link = self.call("post", &links, &session, share).await;
        let link = link["path"].as_str().expect("a path").to_owned();
        let link = link.strip_prefix("/shared/").expect("where it is shown");
        let shared = self.call("get", "/api/v1/shared/{link}", link, None).await;
        assert_eq!(shared["title"], "the build");
        self.call("get", "/api/v1/shared/{link}/events", link, None)
            .await;
        let ended = self.call("delete", &links, &session, None).await;
        assert_eq!(ended["links"], 1);
        self.call("delete", of, &session, None).await;
    }

    /// An operation of the caller's own, with everything that can be passed on to it.
    async fn runs_an_operation(&mut self) {
        let of = "/api/v1/operations/{id}";
        let exec = json!({ "argv": ["cat"], "terminal": { "rows": 24, "columns": 80 } });
        let start = json!({ "runner": "laptop", "exec": exec, "timeout_ms": 60_000 });
        let started = self.call("post", "/api/v1/operations", "", Some(start));
        let id = started.await["id"].as_str().expect("an id").to_owned();
        let size = json!({ "rows": 50, "columns": 132 });
        self.call("post", &format!("{of}/resize"), &id, Some(size))
            .await;
        let input = format!("{of}/input");
        let taken = self.send(("post", &input), (&id, "?offset=0"), "hi\n".to_owned());
        assert_eq!(taken.await["offset"], 3);
        // One that ends it may be overtaken by its end.
        let harmless = json!({ "signal": "continue" });
        self.call("post", &format!("{of}/signal"), &id, Some(harmless))
            .await;
        let cancel = format!("{of}/cancel").replace("{id}", &id);
        self.gantry.ask("post", &cancel, None).await;
        eventually("it ends", async || {
            let seen = self.gantry.ask("get", &of.replace("{id}", &id), None).await;
            (seen.body["state"] == "ended").then_some(())
        })
        .await;
    }

    /// A request that the document allows and the server carries out; returns the answer's body.
    pub(super) async fn call(
        &mut self,
        method: &str,
        path: &str,
        id: &str,
        body: Option<Value>,
    ) -> Value {
        let operation = self.document.operation(method, path);
        if let Some(body) = &body {
            let checked = operation.check_request(body);
            checked.unwrap_or_else(|wrong| panic!("{method} {path}: {wrong}"));
        }
        assert_eq!(operation.has_body(), body.is_some(), "{method} {path}");
        let body = body.map(|body| body.to_string());
        let at = path.replace("{id}", id).replace("{link}", id);
        self.answered((method, path), &at, body).await
    }

    /// The same with a body that is no JSON.
    async fn send(&mut self, of: (&str, &str), (id, query): (&str, &str), body: String) -> Value {
        let path = of.1.replace("{id}", id) + query;
        self.answered(of, &path, Some(body)).await
    }

    async fn answered(
        &mut self,
        (method, path): (&str, &str),
        at: &str,
        body: Option<String>,
    ) -> Value {
        let answer = self.gantry.ask(method, at, body).await;
        self.checked((method, path), answer)
    }

    /// A good answer, as the document says.
    fn checked(&mut self, (method, path): (&str, &str), answer: Answer) -> Value {
        let operation = self.document.operation(method, path);
        assert!(
            (200..300).contains(&answer.status),
            "{method} {path}: {answer:?}"
        );
        assert_true(&operation, &answer);
        self.seen.insert((method.to_owned(), path.to_owned()));
        answer.body
    }

    /// Every documented operation at these paths was tried.
    pub(super) fn was_seen_whole(&self, at: impl Fn(&str) -> bool) {
        for operation in self.document.operations() {
            if !at(operation.path) {
                continue;
            }
            let one = (operation.method.to_owned(), operation.path.to_owned());
            assert!(self.seen.contains(&one), "{one:?} was not tried");
        }
    }
}

pub(super) async fn document(gantry: &Gantry) -> Document {
    let answer = gantry.ask("get", "/api/v1/openapi.json", None).await;
    assert_eq!(answer.status, 200);
    Document::new(answer.body)
}

fn assert_true(operation: &Operation<'_>, answer: &Answer) {
    let checked = operation.check_answer(answer.status, &answer.kind, &answer.body);
    checked.unwrap_or_else(|wrong| {
        panic!(
            "{} {}: {wrong}: {answer:?}",
            operation.method, operation.path
        )
    });
    if answer.status >= 400 {
        let code = answer.body["code"].as_str().expect("a code");
        assert_eq!(answer.body["type"], format!("/problems/{code}"));
    }
}
