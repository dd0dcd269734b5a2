//! What is set counts from the next message on, and the list says who has set it.

use serde_json::{Value, json};
use shared_api::RoleName;
use shared_types::{
    Event,
    event::{Choice, TurnOutcome},
};
use tests::{
    gantry::{Gantry, Setup, Told},
    model_server::{ModelServer, Reply},
};

/// What the terminal prints, and whether it was done.
async fn typed(gantry: &Gantry, arguments: &[&str]) -> (bool, String) {
    let output = gantry.cli(arguments).await;
    let words = [output.stdout, output.stderr].concat();
    let words = String::from_utf8_lossy(&words).into_owned();
    (output.status.success(), words)
}

/// One setting as the terminal lists it for programs.
async fn listed(gantry: &Gantry, name: &str, more: &[&str]) -> Value {
    let output = gantry.cli(&[&["config", "--json"], more].concat()).await;
    let settings: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let mut found = settings["settings"].as_array().expect("a list").iter();
    let found = found.find(|setting| setting["name"] == name);
    found.expect("each is listed").clone()
}

/// What the turn was run with: its choice of a runner, its model, language and steps.
fn ran_with(told: &Told) -> (Choice, String, Option<String>, u32) {
    let mut known = told.events.iter().filter_map(|event| event.known());
    let claim = known.find_map(|event| match event {
        Event::TurnClaimed {
            choice: Some(choice),
            settings: Some(settings),
            ..
        } => Some((choice.clone(), settings.clone())),
        _ => None,
    });
    let (choice, settings) = claim.expect("it was claimed");
    (choice, settings.model, settings.language, settings.steps)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_very_next_message_runs_on_the_runner_that_was_set_and_the_list_says_who_set_it() {
    let gantry = Gantry::practice().await;
    let laptop = gantry.runner("laptop").await;
    let alpha = gantry.runner("alpha").await;
    let mut talk = gantry.talk().await;
    talk.say("run touch one").await;
    assert_eq!(laptop.file("one"), Some(String::new()));

    let (set, words) = typed(&gantry, &["config", "set", "runner", "alpha"]).await;
    assert!(set && words.contains("user (owner)  just now"), "{words}");
    talk.say("run touch two").await;
    assert_eq!(
        (laptop.file("two"), alpha.file("two")),
        (None, Some(String::new()))
    );
    let runner = listed(&gantry, "runner", &[]).await;
    assert_eq!(
        (&runner["value"], &runner["set_by"], &runner["who"]),
        (&json!("alpha"), &json!("user"), &json!("owner"))
    );
    assert!(runner["since"].is_string(), "{runner}");

    // Two ways to say the same.
    typed(&gantry, &["runners", "use", "laptop"]).await;
    assert_eq!(listed(&gantry, "runner", &[]).await["value"], "laptop");
    let (pinned, words) = typed(
        &gantry,
        &["config", "set", "runner=alpha", "--session", "last"],
    )
    .await;
    assert!(pinned && words.contains("session (owner)"), "{words}");
    let pin = gantry.client().session(talk.session()).await;
    let pin = pin.expect("it is there").runner.expect("it is pinned");
    assert_eq!(pin.name, "alpha");
    talk.say("run touch three").await;
    assert_eq!(alpha.file("three"), Some(String::new()));
    let (unset, words) = typed(&gantry, &["config", "unset", "runner", "--session", "last"]).await;
    assert!(unset && words.contains("laptop  user (owner)"), "{words}");
    let (_, audit) = typed(&gantry, &["audit"]).await;
    assert_eq!(audit.matches("settings.changed").count(), 4, "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn model_language_and_steps_reach_the_model_and_nothing_answers_for_one_that_is_gone() {
    let model = ModelServer::start().await;
    let mut gantry = Gantry::with(Setup {
        model: Some(model.base_url()),
        settings: "[model]\nothers = [\"small\"]\n[defaults]\nsteps = 7\n".to_owned(),
        ..Setup::default()
    })
    .await;
    let _runner = gantry.runner("laptop").await;
    let steps = listed(&gantry, "steps", &[]).await;
    assert_eq!(
        (&steps["value"], &steps["set_by"]),
        (&json!("7"), &json!("operator"))
    );
    let set = [
        "config",
        "set",
        "model=small",
        "language=Swiss German",
        "steps=1",
    ];
    let (set, words) = typed(&gantry, &set).await;
    assert!(set && words.contains("generation 2"), "{words}");

    model.script(vec![
        Reply::call("Shell", json!({ "command": "true" })),
        Reply::text("I ran it."),
    ]);
    let mut talk = gantry.talk().await;
    let told = talk.say("go").await;
    assert_eq!(told.outcome, TurnOutcome::Failed);
    let reason = told.reason.clone().expect("a reason");
    assert!(
        reason.contains("limit of 1 steps; a summary stands above"),
        "{reason}"
    );
    let (_, named, language, steps) = ran_with(&told);
    assert_eq!(
        (&*named, language.as_deref(), steps),
        ("small", Some("Swiss German"), 1)
    );
    let request = model.requests().remove(0);
    assert_eq!(request["model"], "small");
    let system = request["messages"][0]["content"].as_str().expect("text");
    assert!(system.contains("answers in Swiss German"), "{system}");
    let me = gantry.client().me().await.expect("the owner");
    assert_eq!(me.model.name, "small");

    typed(
        &gantry,
        &["config", "set", "model=scripted", "--session", "last"],
    )
    .await;
    let chat = gantry.screen(&["chat", "-c"]);
    chat.until_shown("scripted · mode full · laptop").await;
    typed(&gantry, &["config", "unset", "model", "--session", "last"]).await;

    gantry.stop_server().await;
    std::fs::write(gantry.home().join("gantry.toml"), "").expect("it is written");
    gantry.start_server().await;
    let told = talk.say("go").await;
    assert_eq!(told.outcome, TurnOutcome::Failed);
    let reason = told.reason.expect("a reason");
    assert!(
        reason.contains("\"small\", which is chosen, is not offered any more")
            && reason.contains("offered: scripted"),
        "{reason}"
    );
    assert_eq!(model.requests().len(), 2, "no other model was asked");
    assert_eq!(
        listed(&gantry, "model", &[]).await["note"],
        "not offered any more"
    );
    typed(&gantry, &["config", "unset", "model", "steps"]).await;
    model.script(vec![Reply::text("hi")]);
    let told = talk.say("go").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert_eq!(model.requests()[2]["model"], "scripted");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_sets_for_all_who_have_set_nothing_and_a_viewer_sets_nothing() {
    let gantry = Gantry::practice().await;
    let pool = gantry.runner("pool").await;
    let (alone, words) = typed(&gantry, &["config", "set", "runner=pool", "--tenant"]).await;
    assert!(
        !alone && words.contains("runners share pool --with everyone"),
        "{words}"
    );
    typed(&gantry, &["runners", "share", "pool", "--with", "everyone"]).await;
    let (set, words) = typed(
        &gantry,
        &["config", "set", "runner=pool", "steps=9", "--tenant"],
    )
    .await;
    assert!(set && words.contains("set for the tenant; what counts for you is set by the user"));

    let bob = gantry.person("bob", RoleName::Member).await;
    let mut talk = gantry.talk_as(&bob).await;
    let told = talk.say("run touch here").await;
    let (choice, _, _, steps) = ran_with(&told);
    assert!(matches!(choice, Choice::Tenant { .. }), "{choice:?}");
    assert_eq!((steps, pool.file("here")), (9, Some(String::new())));
    let me = gantry
        .client_with(Some(bob.clone()))
        .me()
        .await
        .expect("bob");
    assert_eq!(
        (
            me.active_runner_name.as_deref(),
            me.active_runner_is_default
        ),
        (Some("pool"), true)
    );
    let exec = json!({ "exec": { "argv": ["true"] } }).to_string();
    let exec = gantry
        .ask_as(&bob, "post", "/api/v1/operations", Some(exec))
        .await;
    assert_eq!(
        exec.status, 201,
        "the default serves commands as well: {exec:?}"
    );

    let vera = gantry.person("vera", RoleName::Viewer).await;
    for (who, layer, needs) in [
        (&vera, "user", "takes the role member"),
        (&vera, "tenant", "takes the role admin"),
        (&bob, "tenant", "takes the role admin"),
    ] {
        let change = json!({ "layer": layer, "values": { "steps": "3" } });
        let change = Some(change.to_string());
        let refused = gantry
            .ask_as(who, "patch", "/api/v1/settings", change)
            .await;
        assert_eq!(refused.status, 403, "{refused:?}");
        let words = refused.body["detail"].as_str().expect("words");
        assert!(words.contains(needs), "{words}");
    }
    let runner = gantry.client().runners().await.expect("a list")[0].id;
    let removed = gantry.client().remove_runner(runner).await;
    removed.expect("it is there");
    assert_eq!(listed(&gantry, "runner", &[]).await["note"], "removed");
    let settings = gantry.ask_as(&vera, "get", "/api/v1/settings", None).await;
    assert_eq!(settings.status, 200, "a viewer looks: {settings:?}");
    let of_owner = format!("/api/v1/settings?session={}", gantry.talk().await.session());
    let hidden = gantry.ask_as(&bob, "get", &of_owner, None).await;
    assert_eq!(
        (hidden.status, &hidden.body["detail"]),
        (404, &json!("session not found"))
    );
}
