//! Servers on one database that come, go, drain, and lose the database: what an operator sees and does.

use std::sync::Arc;

use serde_json::{Value, json};
use shared_types::{Event, ReplicaId, event::TurnOutcome};
use tests::{
    gantry::{Gantry, Setup, Told, eventually},
    model_server::{ModelServer, Reply, Step},
    postgres::Postgres,
};
use tokio::sync::Notify;

/// A server, and another one beside it, that have seen one another.
async fn two(postgres: &Postgres, model: &ModelServer) -> (Gantry, Gantry) {
    let one = Gantry::with(Setup {
        database: Some(postgres.database()),
        model: Some(model.base_url()),
        settings: "[peers]\nlisten = \"127.0.0.1:0\"\n".to_owned(),
        ..Setup::default()
    })
    .await;
    let other = one.another().await;
    for server in [&one, &other] {
        eventually("each has seen the other renew", || async {
            let all = replicas(server).await;
            let seen = all.iter().filter(|one| one["renewed_ms_ago"].is_u64());
            (seen.count() == 2).then_some(())
        })
        .await;
    }
    (one, other)
}

async fn replicas(gantry: &Gantry) -> Vec<Value> {
    let listed = gantry.ask("get", "/api/v1/replicas", None).await;
    assert_eq!(listed.status, 200, "{listed:?}");
    listed.body["replicas"].as_array().expect("a list").clone()
}

/// The entry of the server that answers.
async fn this(gantry: &Gantry) -> Value {
    let all = replicas(gantry).await;
    let this = all.into_iter().find(|one| one["this"] == true);
    this.expect("it lists itself")
}

/// A model that holds its first answer until it is told to go on, and asks for a tool with it.
async fn held() -> (ModelServer, Arc<Notify>) {
    let (model, hold) = (ModelServer::start().await, Arc::new(Notify::new()));
    let call = json!({ "index": 0, "id": "c1", "type": "function",
        "function": { "name": "todo_list", "arguments": "{}" } });
    model.script(vec![
        Reply::Raw(vec![
            Step::text("let me see"),
            Step::Hold(hold.clone()),
            Step::delta(&json!({ "tool_calls": [call] })),
            Step::end_with("tool_calls"),
        ]),
        Reply::text("done"),
    ]);
    (model, hold)
}

/// The replicas that claimed the turn, one after the other.
fn claims(told: &Told) -> Vec<ReplicaId> {
    let claims = told.events.iter().filter_map(|event| match event.known() {
        Some(Event::TurnClaimed { replica, .. }) => Some(*replica),
        _ => None,
    });
    claims.collect()
}

/// Waits until the server is ready, or is not and says this.
async fn until_ready(gantry: &Gantry, or_says: Option<&str>) {
    let what = format!("/readyz says {or_says:?}");
    eventually(&what, || async {
        let url = format!("{}/readyz", gantry.url());
        let answer = reqwest::get(url).await.ok()?;
        let is_ready = answer.status().is_success();
        let said = answer.text().await.ok()?;
        match or_says {
            None => is_ready.then_some(()),
            Some(words) => (!is_ready && said.contains(words)).then_some(()),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_drains_gives_its_turn_and_its_links_away_and_takes_none_until_undrained() {
    let postgres = Postgres::start();
    let (model, hold) = held().await;
    let (here, there) = two(&postgres, &model).await;
    let _runner = here.runner("laptop").await;
    let mut talk = here.talk().await;
    let turn = talk.send("go on").await;
    talk.until_said("let me see").await;
    let seen = this(&here).await;
    assert_eq!((&seen["links"], &seen["turns"]), (&json!(1), &json!(1)));

    let mut drain = here.operator(&["drain", "--wait", "60"]);
    let drained = tokio::spawn(async move { drain.output().await.expect("it starts") });
    until_ready(&here, Some("drains")).await;
    until_ready(&there, None).await;
    eventually("its link is gone", || async {
        (this(&here).await["links"] == 0).then_some(())
    })
    .await;
    assert!(!drained.is_finished(), "its model still answers");
    hold.notify_one();
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed);
    let claims = claims(&told);
    assert_eq!(claims.len(), 2, "{claims:?}");
    let other = this(&there).await["id"].clone();
    assert_eq!(json!(claims[1]), other, "the other one has carried it on");
    let drained = drained.await.expect("it does not panic");
    let said = String::from_utf8_lossy(&drained.stdout);
    assert!(
        drained.status.success() && said.contains("is empty"),
        "{drained:?}"
    );

    model.script(vec![Reply::text("here I am")]);
    let turn = talk.send("and now").await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed);
    let id = this(&here).await["id"].clone();
    let claimed = |told: &Told| {
        let last = told
            .events
            .iter()
            .rev()
            .find_map(|event| match event.known() {
                Some(Event::TurnClaimed { replica, .. }) => Some(json!(replica)),
                _ => None,
            });
        last.expect("it was claimed")
    };
    assert_eq!(
        claimed(&told),
        other,
        "a message that came here is worked on there"
    );
    let id_text = id.as_str().expect("a text");
    let undrained = there
        .operator(&["undrain", "--replica", id_text])
        .output()
        .await
        .expect("it starts");
    assert!(undrained.status.success(), "{undrained:?}");
    until_ready(&here, None).await;
    here.until_online("laptop", true).await;
    model.script(vec![Reply::text("here again")]);
    let turn = talk.send("once more").await;
    assert_eq!(claimed(&talk.ended(turn).await), id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_a_server_that_stops_in_order_goes_on_without_waiting_for_its_lease() {
    let postgres = Postgres::start();
    let (model, _hold) = held().await;
    let (mut here, there) = two(&postgres, &model).await;
    let mut talk = here.talk().await;
    let mut far = talk.through(&there);
    let turn = talk.send("go on").await;
    far.until_said("let me see").await;
    let stopped = here.stop_server();
    let (told, stopped) = tokio::join!(far.ended(turn), stopped);
    assert_eq!((told.outcome, stopped), (TurnOutcome::Completed, Some(0)));
    assert_eq!(replicas(&there).await.len(), 1);
    let log = there.log();
    assert!(!log.contains("has not renewed its lease"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_whose_database_is_away_say_so_and_work_again_once_it_is_back() {
    let postgres = Postgres::start();
    let model = ModelServer::start().await;
    let (here, there) = two(&postgres, &model).await;
    let mut talk = here.talk().await;
    postgres.stop();
    for server in [&here, &there] {
        until_ready(server, Some("could not renew its lease")).await;
    }
    postgres.start_again();
    for server in [&here, &there] {
        until_ready(server, None).await;
    }
    model.script(vec![Reply::text("back")]);
    let turn = talk.send("are you there?").await;
    assert_eq!(talk.ended(turn).await.outcome, TurnOutcome::Completed);
    for server in [&here, &there] {
        let log = server.log();
        assert!(!log.contains("held this one for dead"), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_stopped_and_wakes_finds_its_turn_done_by_the_other() {
    let postgres = Postgres::start();
    let (model, hold) = held().await;
    let (here, there) = two(&postgres, &model).await;
    let mut talk = here.talk().await;
    let mut far = talk.through(&there);
    let turn = talk.send("go on").await;
    far.until_said("let me see").await;
    model.script(vec![Reply::text("done")]);
    here.signal_server("STOP");
    let told = far.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed);
    here.signal_server("CONT");
    // The answer that it still waited for is of no use to it.
    hold.notify_one();
    eventually("it knows that it was held for dead", || async {
        here.log().contains("held this one for dead").then_some(())
    })
    .await;
    until_ready(&here, None).await;
    let mut near = talk.through(&here);
    let seen = near.ended(turn).await;
    let seqs = |told: &Told| {
        told.events
            .iter()
            .map(|event| event.seq)
            .collect::<Vec<_>>()
    };
    assert_eq!(seqs(&seen), seqs(&told));
    let ends = seen.events.iter();
    let ends = ends.filter(|event| matches!(event.known(), Some(Event::TurnEnded { .. })));
    assert_eq!(ends.count(), 1);
}
