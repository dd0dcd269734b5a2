//! Models of people's own accounts: added with a key that works, asked in any format, and answering in place of one
//! another. A key shows nowhere.

use shared_api::{AddModelAccount, ModelState, OfferedModel, Payer, RoleName, SetBy, SettingName};
use shared_types::event::TurnOutcome;
use tests::{
    gantry::{Gantry, Setup},
    model_server::{Format, ModelServer, Reply, Said},
};

/// A key that is looked for wherever it must not be.
const CANARY: &str = "sk-canary-0123456789-abcdefghij";

/// A server whose people may name model servers of this machine.
async fn gantry() -> Gantry {
    Gantry::with(Setup {
        settings: "[model]\nprivate_addresses = true\n".to_owned(),
        ..Setup::default()
    })
    .await
}

fn account(provider: &str, base_url: &str, model: &str) -> AddModelAccount {
    AddModelAccount {
        provider: provider.to_owned(),
        name: None,
        format: None,
        base_url: Some(base_url.to_owned()),
        models: vec![model.to_owned()],
        key: Some(CANARY.to_owned()),
        of_tenant: false,
    }
}

/// The answer to the small request with which an account is tried.
fn ping() -> Reply {
    Reply::call("ping", "{}")
}

#[tokio::test(flavor = "multi_thread")]
async fn one_session_goes_through_four_vendors_and_none_sees_another_ones_state() {
    let gantry = gantry().await;
    let _runner = gantry.runner("laptop").await;
    let client = gantry.client();
    let (mut models, base) = (
        Vec::new(),
        |server: &ModelServer, provider: &str| match provider {
            "openai" | "deepseek" => server.base_url(),
            _ => server.root_url().to_owned(),
        },
    );
    for (provider, model) in [
        ("anthropic", "claude-t"),
        ("openai", "gpt-t"),
        ("deepseek", "deepseek-t"),
        ("gemini", "gemini-t"),
    ] {
        let server = ModelServer::start().await;
        server.script(vec![ping()]);
        let new = account(provider, &base(&server, provider), model);
        let added = client
            .add_model_account(&new)
            .await
            .expect("its model answers");
        assert!(added.probe.calls_tools && added.probe.streams, "{added:?}");
        models.push((model, server));
    }
    let mut talk = gantry.talk().await;
    for round in 0..2 {
        for (model, server) in &models {
            let thought = format!("thought of {model} {round}");
            let said = |text: &str, calls: Vec<(String, String)>| {
                Reply::Said(Said {
                    thoughts: thought.clone(),
                    text: text.to_owned(),
                    calls,
                    ..Said::default()
                })
            };
            let shell = serde_json::json!({ "command": format!("echo {model}") }).to_string();
            server.script(vec![
                said("", vec![("Shell".to_owned(), shell)]),
                said(&format!("done by {model} {round}"), Vec::new()),
            ]);
            let chosen = gantry.cli(&["config", "set", "model", model]).await;
            assert!(chosen.status.success(), "{chosen:?}");
            let turn = talk.send("go").await;
            let ended = talk.ended(turn).await;
            assert_eq!(ended.outcome, TurnOutcome::Completed, "{:?}", ended.reason);
            assert_eq!(ended.answer(), format!("done by {model} {round}"));
        }
    }
    let formats = [
        Format::Messages,
        Format::Responses,
        Format::Chat,
        Format::Gemini,
    ];
    for ((model, server), format) in models.iter().zip(formats) {
        let asked = server.asked();
        assert!(asked.iter().all(|asked| asked.format == format), "{model}");
        let last = asked.last().expect("it was asked").body.to_string();
        for (other, _) in &models {
            assert!(
                last.contains(&format!("done by {other} 0")),
                "no words are lost: {last}"
            );
            if other != model {
                assert!(
                    !last.contains(&format!("thought of {other}")),
                    "thoughts of {other} for {model}: {last}"
                );
            }
        }
    }
    assert!(!gantry.log().contains(CANARY));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_refused_is_not_stored_and_one_that_works_shows_nowhere() {
    let gantry = gantry().await;
    let client = gantry.client();
    let server = ModelServer::start().await;
    server.script(vec![
        Reply::refusal(401, &format!("no such key: {CANARY}")),
        ping(),
    ]);
    let new = account("openai", &server.base_url(), "gpt-t");
    let refused = client
        .add_model_account(&new)
        .await
        .expect_err("it is refused");
    let words = refused.to_string();
    assert!(
        words.contains("does not accept the key") && !words.contains(CANARY),
        "{words}"
    );
    assert!(client.models().await.expect("a list").accounts.is_empty());
    client.add_model_account(&new).await.expect("it answers");
    let keys = server.authorizations();
    assert_eq!(keys, vec![Some(format!("Bearer {CANARY}")); 2]);

    let listed = client.models().await.expect("a list");
    assert_eq!(listed.accounts[0].paid_by, Payer::Own);
    assert!(listed.accounts[0].has_key);
    let answered = gantry.ask("get", "/api/v1/models", None).await;
    let audit = gantry.ask("get", "/api/v1/audit", None).await;
    for shown in [
        answered.body.to_string(),
        audit.body.to_string(),
        gantry.log(),
    ] {
        assert!(!shown.contains(CANARY), "{shown}");
    }
    let bobs = gantry.person("bob", RoleName::Member).await;
    let bob = gantry.client_with(Some(bobs));
    assert!(
        bob.models().await.expect("a list").accounts.is_empty(),
        "it is the owner's own"
    );
    let removed = client.remove_model_account(listed.accounts[0].id).await;
    removed.expect("it is there");
    assert!(client.models().await.expect("a list").accounts.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_of_the_tenant_is_an_admins_to_add_and_everyones_to_use() {
    let gantry = gantry().await;
    let bobs = gantry.person("bob", RoleName::Member).await;
    let bob = gantry.client_with(Some(bobs));
    let server = ModelServer::start().await;
    server.script(vec![ping(), Reply::text("hello bob")]);
    let new = AddModelAccount {
        of_tenant: true,
        ..account("openai", &server.base_url(), "gpt-t")
    };
    bob.add_model_account(&new)
        .await
        .expect_err("a member may not");
    assert!(server.asked().is_empty(), "the right is asked for first");
    let added = gantry.client().add_model_account(&new).await;
    let id = added.expect("an owner may").account.id;
    let listed = bob.models().await.expect("a list");
    assert!(
        listed
            .models
            .iter()
            .any(|model| model.name == "gpt-t" && model.is_default)
    );
    bob.remove_model_account(id)
        .await
        .expect_err("a member may not");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_model_answers_where_a_key_is_refused_and_a_vendor_is_overloaded() {
    let gantry = gantry().await;
    let client = gantry.client();
    let mut servers = Vec::new();
    for (provider, model) in [("anthropic", "claude-t"), ("deepseek", "deepseek-t")] {
        let server = ModelServer::start().await;
        server.script(vec![ping()]);
        let base_url = match provider {
            "anthropic" => server.root_url().to_owned(),
            _ => server.base_url(),
        };
        let added = client
            .add_model_account(&account(provider, &base_url, model))
            .await;
        added.expect("its model answers");
        servers.push(server);
    }
    servers[0].script(vec![Reply::refusal(401, "the key was revoked")]);
    servers[1].script(vec![Reply::text("I answer")]);
    let chosen = ["config", "set", "model", "claude-t, deepseek-t"];
    assert!(gantry.cli(&chosen).await.status.success());
    let output = gantry.cli(&["chat", "go"]).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let noted = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("I answer"), "{text}{noted}");
    let moved = "anthropic refuses the key; asking deepseek-t instead (deepseek)";
    let all = format!("{text}{noted}");
    assert!(all.contains(moved), "{all}");
    let listed = client.models().await.expect("a list").models;
    let state = listed
        .iter()
        .find(|model| model.name == "claude-t")
        .expect("it is listed");
    assert!(
        state
            .reason
            .as_deref()
            .unwrap_or_default()
            .contains("revoked"),
        "{state:?}"
    );
    servers[0].script(vec![ping()]);
    client.test_model("claude-t").await.expect("it answers");
    let listed = client.models().await.expect("a list").models;
    let is_ready = |model: &OfferedModel| model.state == ModelState::Ready;
    assert!(listed.iter().all(is_ready), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_with_another_model_and_its_person_keeps_the_usual_one() {
    let gantry = gantry().await;
    for (provider, model) in [("deepseek", "deepseek-t"), ("openai", "gpt-t")] {
        let server = ModelServer::start().await;
        server.script(vec![ping(), Reply::text(format!("I am {model}"))]);
        let new = account(provider, &server.base_url(), model);
        let added = gantry.client().add_model_account(&new).await;
        added.expect("its model answers");
        // It answers for as long as the test runs.
        std::mem::forget(server);
    }
    let screen = gantry.screen(&["chat", "--model", "gpt-t"]);
    screen.until_shown("/help").await;
    screen.type_in("who are you?\r");
    screen.until_shown("I am gpt-t").await;
    screen.type_in("/model nonsense\r");
    screen
        .until_shown("no model \"nonsense\" may be used here")
        .await;
    screen.type_in("/model -\r");
    screen
        .until_shown("from the next step on: deepseek-t")
        .await;
    screen.type_in("and now?\r");
    screen.until_shown("I am deepseek-t").await;
    screen.type_in("/model gpt-t\r");
    screen.until_shown("from the next step on: gpt-t").await;
    let settings = gantry.client().settings(None).await.expect("settings");
    let model = settings
        .settings
        .iter()
        .find(|it| it.name == SettingName::Model);
    assert_eq!(model.expect("it counts").set_by, SetBy::Default);

    let refused = gantry.cli(&["chat", "--model", "nonsense", "hello"]).await;
    assert_eq!(refused.status.code(), Some(1));
    let sessions = gantry.client().sessions(10).await;
    assert_eq!(sessions.expect("a list").len(), 1, "none began for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_a_private_network_is_refused_unless_the_operator_allows_it() {
    let gantry = Gantry::practice().await;
    let server = ModelServer::start().await;
    server.script(vec![ping()]);
    for address in [
        server.base_url(),
        "http://169.254.169.254/latest".to_owned(),
    ] {
        let new = account("openai", &address, "gpt-t");
        let refused = gantry.client().add_model_account(&new).await;
        let words = refused.expect_err("it is private").to_string();
        assert!(words.contains("private_addresses"), "{words}");
    }
    assert!(server.asked().is_empty());
}
