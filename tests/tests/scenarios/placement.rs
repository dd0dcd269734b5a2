use std::time::Duration;

use shared_api::RoleName;
use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    gantry::{Gantry, Setup, TO_BE_ENROLLED},
    proxy::Proxy,
    report::report,
};
use tokio::time::Instant;

/// What a removed runner is promised at most, where nothing is in the way.
const OFF_WITHIN: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn of_two_runners_the_chosen_one_is_used_and_the_record_says_so() {
    let gantry = Gantry::practice().await;
    let first = gantry.runner("first").await;
    let second = gantry.runner("second").await;
    gantry
        .client()
        .use_runner("second")
        .await
        .expect("it can be chosen");
    let mut talk = gantry.talk().await;
    let told = talk.say("run touch here").await;
    assert_eq!(told.places()[0].runner_name, "second");
    assert_eq!(
        (first.file("here"), second.file("here")),
        (None, Some(String::new()))
    );
    gantry
        .client()
        .use_runner("first")
        .await
        .expect("it can be chosen");
    let told = talk.say("run touch there").await;
    assert_eq!(told.places()[0].runner_name, "first");
    assert_eq!(
        (first.file("there"), second.file("there")),
        (Some(String::new()), None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_chosen_runner_offline_the_answer_says_since_when_and_nothing_ran_anywhere() {
    let gantry = Gantry::practice().await;
    let mut chosen = gantry.runner("chosen").await;
    let other = gantry.runner("other").await;
    assert_eq!(chosen.stop().await, Some(0));
    gantry.until_online("chosen", false).await;
    let told = gantry.talk().await.say("run touch ran").await;
    assert_eq!(told.outcome, TurnOutcome::Failed);
    let [(CallOutcome::Refused, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(
        text.contains("chosen") && text.contains("offline since 20"),
        "{text}"
    );
    assert!(told.places().is_empty());
    assert_eq!((chosen.file("ran"), other.file("ran")), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_runs_where_less_is_kept_apart_than_the_operator_demands() {
    let mut gantry = Gantry::with(Setup {
        settings: "[isolation]\nat_least = \"network\"\n".to_owned(),
        ..Setup::default()
    })
    .await;
    let runner = gantry.runner("laptop").await;
    let told = gantry.talk().await.say("run touch ran").await;
    let [(CallOutcome::Refused, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(
        text.contains("laptop") && text.contains("network is missing"),
        "{text}"
    );
    assert_eq!((told.places().len(), runner.file("ran")), (0, None));
    let listed = async |gantry: &Gantry| {
        let runners = gantry.cli(&["runners"]).await.stdout;
        String::from_utf8(runners).expect("text")
    };
    assert!(listed(&gantry).await.contains("none (reported)"));

    let id = gantry.client().runners().await.expect("a list")[0].id;
    let settings = format!("[isolation]\nbelieved = [\"{id}\"]\n");
    std::fs::write(gantry.home().join("gantry.toml"), settings).expect("it is written");
    gantry.stop_server().await;
    gantry.start_server().await;
    assert!(
        listed(&gantry)
            .await
            .contains("none (granted by the operator)")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_demands_isolation_and_counts_the_word_of_a_runner_only_once_an_admin_grants_it() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let cli = async |token: &str, words: &[&str]| {
        let mut command = gantry.terminal(words);
        let said = command.env("GANTRY_TOKEN", token).output().await;
        let said = said.expect("it runs");
        let text = [said.stdout, said.stderr].concat();
        (
            said.status.success(),
            String::from_utf8(text).expect("text"),
        )
    };
    let owner = gantry.token().to_owned();
    let ann = gantry.person("ann", RoleName::Member).await;
    cli(
        &owner,
        &["runners", "share", "laptop", "--with", "everyone"],
    )
    .await;
    let demand = ["config", "set", "isolation", "network"];
    let (done, said) = cli(&owner, &demand).await;
    assert!(!done && said.contains("for the whole tenant"), "{said}");
    let of_tenant = [&demand[..], &["--tenant"]].concat();
    assert!(!cli(&ann, &of_tenant).await.0, "a member");
    let (done, said) = cli(&owner, &["config", "set", "isolation", "walls", "--tenant"]).await;
    assert!(!done && said.contains("kill_tree"), "{said}");
    assert!(cli(&owner, &of_tenant).await.0);
    let exec = ["exec", "-r", "laptop", "--", "touch", "ran"];
    let (done, said) = cli(&ann, &exec).await;
    assert!(!done && said.contains("network is missing"), "{said}");
    assert_eq!(runner.file("ran"), None);
    // Nothing that this runner reports is missing any more, and still its word does not count.
    cli(&owner, &["config", "set", "isolation", "none", "--tenant"]).await;
    assert!(cli(&ann, &exec).await.0);
    assert!(cli(&ann, &["runners"]).await.1.contains("none (reported)"));
    let (done, said) = cli(&ann, &["runners", "trust", "laptop"]).await;
    assert!(!done && said.contains("admin"), "{said}");
    let (done, said) = cli(&owner, &["runners", "trust", "laptop"]).await;
    assert!(done && said.contains("none (granted by owner)"), "{said}");
    assert!(cli(&owner, &["audit"]).await.1.contains("runner.trusted"));
    let (_, said) = cli(&owner, &["runners", "distrust", "laptop"]).await;
    assert!(said.contains("none (reported)"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_runner_the_turn_ends_and_says_how_to_get_one() {
    let gantry = Gantry::practice().await;
    let told = gantry.talk().await.say("run touch ran").await;
    assert_eq!(told.outcome, TurnOutcome::Failed);
    let [(CallOutcome::Refused, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(text.contains("runner"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_runner_is_off_at_once_and_cannot_come_back() {
    let gantry = Gantry::practice().await;
    let mut runner = gantry.runner("laptop").await;
    let client = gantry.client();
    let id = client.runners().await.expect("a list")[0].id;
    client.remove_runner(id).await.expect("it is removed");
    assert!(client.runners().await.expect("a list").is_empty());
    assert_ne!(
        runner.ended().await,
        Some(0),
        "a runner that was removed says so and ends"
    );
    let told = gantry.talk().await.say("run touch ran").await;
    assert_eq!(told.calls()[0].0, CallOutcome::Refused);
    assert_eq!(runner.file("ran"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_runner_is_off_within_a_second_and_is_refused_when_it_calls_again() {
    let gantry = Gantry::practice().await;
    let proxy = Proxy::before(gantry.url()).await;
    let mut runner = gantry.runner_by_way_of(proxy.url(), "laptop").await;
    let client = gantry.client();
    let id = client.runners().await.expect("a list")[0].id;
    let began = Instant::now();
    client.remove_runner(id).await.expect("it is removed");
    assert_eq!(runner.ended().await, Some(TO_BE_ENROLLED));
    let took = began.elapsed();
    report(&format!(
        "a removed runner was off after {} ms; promised: {}",
        took.as_millis(),
        OFF_WITHIN.as_millis()
    ));
    assert!(took < OFF_WITHIN, "it was off after {took:?}");

    let before = proxy.passed().connections;
    runner.start();
    assert_eq!(runner.ended().await, Some(TO_BE_ENROLLED));
    assert!(proxy.passed().connections > before, "it did call");
    assert!(runner.log().contains("--replace"), "{}", runner.log());
}
