//! Two servers on one database that answer one another: what is under way at one is seen at the other while it is.

use std::sync::Arc;

use shared_api::Live;
use shared_client::Followed;
use shared_types::{Event, event::TurnOutcome};
use tests::{
    gantry::{Gantry, Setup, Talk},
    model_server::{ModelServer, Reply, Step},
    postgres::Postgres,
    work::Work,
};
use tokio::sync::Notify;

/// A server, and another one beside it; both answer other servers.
async fn two(postgres: &Postgres, model: Option<&ModelServer>) -> (Gantry, Gantry) {
    let one = Gantry::with(Setup {
        database: Some(postgres.database()),
        model: model.map(ModelServer::base_url),
        settings: "[peers]\nlisten = \"127.0.0.1:0\"\n".to_owned(),
        ..Setup::default()
    })
    .await;
    let other = one.another().await;
    (one, other)
}

/// A model that stops in the middle of its first answer until it is told to go on.
async fn held_in_the_middle() -> (ModelServer, Arc<Notify>) {
    let (model, hold) = (ModelServer::start().await, Arc::new(Notify::new()));
    model.script(vec![Reply::Raw(vec![
        Step::text("half an answer"),
        Step::Hold(hold.clone()),
        Step::text(", and the rest"),
        Step::end(),
    ])]);
    (model, hold)
}

fn has_ended(talk: &Talk) -> bool {
    let is_end = |item: &Followed| matches!(item, Followed::Event(event) if matches!(event.known(), Some(Event::TurnEnded { .. })));
    talk.heard.iter().any(is_end)
}

/// The text of the newest attempt that came while the model gave it.
fn said(talk: &Talk) -> String {
    let (mut said, mut newest) = (String::new(), 0);
    for item in &talk.heard {
        if let Followed::Live(Live::Text { attempt, text, .. }) = item {
            if *attempt > newest {
                newest = *attempt;
                said.clear();
            }
            said.push_str(text);
        }
    }
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_seen_at_the_other_server_while_the_model_gives_it() {
    let postgres = Postgres::start();
    let (model, hold) = held_in_the_middle().await;
    let (here, there) = two(&postgres, Some(&model)).await;
    let mut talk = here.talk().await;
    let mut far = talk.through(&there);
    let turn = talk.send("go on").await;
    far.until_said("half an answer").await;
    let mut late = talk.through(&there);
    late.until_said("half an answer").await;
    assert!(!has_ended(&far) && !has_ended(&late));
    hold.notify_one();
    for follower in [&mut far, &mut late] {
        let told = follower.ended(turn).await;
        assert_eq!(told.outcome, TurnOutcome::Completed);
        assert_eq!(said(follower), "half an answer, and the rest");
    }
    let url = format!("{}/gantry.peer.v1.Peer/Follow", there.url());
    let public = reqwest::Client::new().post(url).send().await;
    let public = public.expect("it answers").status();
    assert_eq!(public, 404, "the public port has no call for servers");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_output_of_a_command_is_seen_at_the_other_server_while_it_runs() {
    let postgres = Postgres::start();
    let (here, there) = two(&postgres, None).await;
    let runner = here.runner("laptop").await;
    let mut talk = here.talk().await;
    let mut far = talk.through(&there);
    let work = Work(6);
    let turn = talk
        .send(&format!("run echo begun; {}", work.until_enough()))
        .await;
    far.until_output("begun").await;
    assert!(!has_ended(&far));
    work.is_enough(&runner.workspace());
    assert_eq!(far.ended(turn).await.outcome, TurnOutcome::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_a_killed_server_is_seen_to_begin_its_answer_again_at_the_other() {
    let postgres = Postgres::start();
    let (model, _hold) = held_in_the_middle().await;
    let (mut here, there) = two(&postgres, Some(&model)).await;
    let mut talk = here.talk().await;
    let mut far = talk.through(&there);
    let turn = talk.send("go on").await;
    far.until_said("half an answer").await;
    model.script(vec![Reply::text("the whole answer")]);
    here.kill_server().await;
    let told = far.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed);
    assert_eq!(said(&far), "the whole answer");
    let answers = told
        .events
        .iter()
        .filter(|event| matches!(event.known(), Some(Event::AnswerRecorded { .. })));
    assert_eq!(answers.count(), 1);
    let seqs: Vec<_> = far.heard.iter().filter_map(seq).collect();
    assert!(seqs.windows(2).all(|two| two[0] < two[1]), "{seqs:?}");
}

fn seq(item: &Followed) -> Option<u64> {
    match item {
        Followed::Event(event) => Some(event.seq),
        _ => None,
    }
}
