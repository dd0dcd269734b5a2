//! Conversations that are longer than the model's window.

use serde_json::{Value, json};
use shared_types::{
    Event,
    event::{CompactedBecause, LeftOutBecause, TurnOutcome},
};
use tests::{
    gantry::{Gantry, Setup, Told, eventually},
    model_server::{ModelServer, Reply, Step},
};

/// Bytes of a request that the model takes.
const WINDOW_BYTES: usize = 60_000;

/// A command that writes about as much as a result can show.
fn command(number: usize) -> Reply {
    let command = format!("head -c 9000 /dev/zero | tr '\\0' x; echo {number}");
    Reply::call("Shell", json!({ "command": command }))
}

/// How many results are left out after each time, and why.
fn left_out(told: &Told) -> Vec<(u32, LeftOutBecause)> {
    let known = told.events.iter().filter_map(|event| event.known());
    let left_out = known.filter_map(|event| match event {
        Event::ResultsLeftOut {
            results, because, ..
        } => Some((*results, *because)),
        _ => None,
    });
    left_out.collect()
}

fn says(request: &Value, words: &str) -> bool {
    request.to_string().contains(words)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_longer_than_the_window_goes_on_and_a_restart_sends_the_same_bytes() {
    let model = ModelServer::start().await;
    model.refuse_above(WINDOW_BYTES);
    let mut gantry = Gantry::scripted(&model).await;
    let _laptop = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    let held = Reply::Raw(vec![Step::Hold(std::sync::Arc::default())]);
    model.script((0..12).map(command).chain([held]).collect());
    let turn = talk.send("remember the word heliotrope").await;
    eventually("the last reply is held", || async {
        (model.replies_left() == 0).then_some(())
    })
    .await;
    let before = model.requests();
    gantry.kill_server().await;
    model.script(vec![Reply::text("done")]);
    gantry.start_server().await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let after = model.requests();
    assert_eq!(after.len(), before.len() + 1);
    let [held, again] = &after[after.len() - 2..] else {
        panic!("two requests")
    };
    assert_eq!(held.to_string(), again.to_string());
    let says_what_is_gone = says(again, "your first steps on the message above are left out");
    assert!(says_what_is_gone && says(again, "heliotrope"), "{again:#}");
    let left_out = left_out(&told);
    assert!(left_out.len() >= 2, "it was too long twice: {left_out:?}");
    assert!(
        left_out
            .iter()
            .all(|(results, because)| *results > 1 && *because == LeftOutBecause::Refused)
    );
    let refused = after
        .iter()
        .filter(|request| request.to_string().len() > WINDOW_BYTES);
    assert_eq!(
        refused.count(),
        left_out.len(),
        "each refusal leaves out enough at once"
    );

    model.script(
        (20..28)
            .map(command)
            .chain([Reply::text("again")])
            .collect(),
    );
    let told = talk.say("go on").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_is_known_is_never_overrun() {
    let model = ModelServer::start().await;
    model.refuse_above(WINDOW_BYTES);
    let gantry = Gantry::with(Setup {
        model: Some(model.base_url()),
        settings: "[model]\nwindow = 18000\n".to_owned(),
        ..Setup::default()
    })
    .await;
    let _laptop = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    model.summarizes("The numbers are counted.");
    // Numbers have many tokens for their bytes: a model that counts bytes takes all that fits by tokens.
    let numbers = (10..22).map(|number| {
        let command = format!("seq {number}000 {number}999");
        Reply::call("Shell", json!({ "command": command }))
    });
    model.script(numbers.chain([Reply::text("done")]).collect());
    let told = talk.say("go").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert_eq!(model.replies_left(), 0);
    let (wishes, others): (Vec<_>, Vec<_>) =
        model.asked().into_iter().partition(|asked| asked.is_wish());
    assert_eq!(others.len(), 13, "none is refused");
    for asked in wishes.iter().chain(&others) {
        assert!(asked.body.to_string().len() <= WINDOW_BYTES);
    }
    let shortened = told.events.iter().filter_map(|event| match event.known()? {
        Event::ContextCompacted { because, .. } => Some(*because == CompactedBecause::NearWindow),
        Event::ResultsLeftOut { because, .. } => Some(*because == LeftOutBecause::NearWindow),
        // That is done for no other reason.
        Event::ResultsMasked { .. } => Some(true),
        _ => None,
    });
    let shortened: Vec<_> = shortened.collect();
    assert!(
        !shortened.is_empty() && shortened.iter().all(|near_window| *near_window),
        "{shortened:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_message_and_long_results_of_one_answer_fit_into_a_small_window_and_the_session_goes_on()
 {
    let model = ModelServer::start().await;
    // 8,192 tokens of 3.5 bytes: vendors count fewer for words and schemas, which are most of these requests.
    model.refuse_above(8_192 * 7 / 2);
    model.summarizes("It was long.");
    let gantry = Gantry::with(Setup {
        model: Some(model.base_url()),
        settings: "[model]\nwindow = 8192\n".to_owned(),
        ..Setup::default()
    })
    .await;
    let _laptop = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    let calls = (0..5).map(|number| {
        let command = format!("head -c 20000 /dev/zero | tr '\\0' {number}; echo end {number}");
        (
            "Shell".to_owned(),
            json!({ "command": command }).to_string(),
        )
    });
    let five = Reply::calls("", calls.collect());
    model.script(vec![five, Reply::text("done")]);
    let long = format!("begin {}finish", "word ".repeat(8_000));
    let told = talk.say(&long).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let shortened = told.events.iter().filter_map(|event| event.known());
    let shortened: Vec<_> = shortened
        .filter_map(|event| match event {
            Event::ResultsLeftOut { shortened, .. } => Some(*shortened),
            _ => None,
        })
        .collect();
    assert_eq!(
        shortened.first(),
        Some(&1),
        "a person is told: {shortened:?}"
    );
    let requests = model.requests();
    let first = requests[0].to_string();
    assert!(first.contains("begin word") && first.contains("word finish"));
    assert!(
        first.contains("bytes of this message are left out here"),
        "the model is told"
    );
    let second = requests[1].to_string();
    assert!(
        (0..5).all(|number| second.contains(&format!("end {number}"))),
        "each result is there"
    );
    for number in 0..3 {
        model.script(vec![Reply::text("more")]);
        let told = talk.say(&format!("message {number}")).await;
        assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    }
    let asked = model.asked();
    let others = asked.iter().filter(|asked| !asked.is_wish());
    assert_eq!(others.count(), 5, "none was refused");
    assert!(
        asked
            .iter()
            .all(|asked| asked.body.to_string().len() <= 8_192 * 7 / 2)
    );

    // A model that counts more tokens than is estimated refuses, and is sent less.
    let least = first.len() - 2_500;
    model.refuse_above(least);
    model.script(vec![Reply::text("still here")]);
    let told = talk.say(&long).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let last = model.requests().last().expect("one").to_string();
    assert!(last.len() <= least && last.contains("word finish"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_at_all_fails_with_a_sentence() {
    let model = ModelServer::start().await;
    model.refuse_above(1_000);
    let gantry = Gantry::scripted(&model).await;
    let told = gantry.talk().await.say("go").await;
    assert_eq!(told.outcome, TurnOutcome::Failed);
    let reason = told.reason.unwrap_or_default();
    assert!(
        reason.contains("too long for the model")
            && reason.contains("all that may be left out of it is left out already"),
        "{reason}"
    );
}
