use std::sync::Mutex;

use shared_types::{
    entropy::SeededEntropy,
    event::{Finish, Origin, Parts},
};

use super::*;
use crate::{Piece, Voice};

const SECOND: Duration = Duration::from_secs(1);

/// The answer, as it is said.
fn word() -> ModelEvent {
    ModelEvent::Said(Piece {
        part: 0,
        voice: Voice::Text,
        text: "word".to_owned(),
    })
}

fn failure(error: ModelError) -> Failure {
    Failure::from(error)
}

#[test]
fn only_what_may_pass_is_tried_again_and_only_so_often() {
    let options = RetryOptions::default();
    let text = String::new;
    for (error, passing) in [
        (ModelError::Unauthenticated(text()), false),
        (ModelError::QuotaExhausted(text()), false),
        (ModelError::Overflow(text()), false),
        (ModelError::Refused(text()), false),
        (ModelError::RateLimited(text()), true),
        (ModelError::Unavailable(text()), true),
        (ModelError::Broken(text()), true),
        (ModelError::TimedOut(text()), true),
    ] {
        let failure = failure(error);
        for attempt in 1..=6 {
            let delay = next_delay(&options, attempt, &failure, 0);
            assert_eq!(
                delay.is_some(),
                passing && attempt < 5,
                "{failure:?} at attempt {attempt}"
            );
        }
    }
}

#[test]
fn the_delay_is_drawn_below_a_doubling_bound_and_not_below_what_the_vendor_asked_for() {
    let options = RetryOptions {
        attempts: 100,
        ..RetryOptions::default()
    };
    let (none, half, full) = (0, u64::MAX / 2, u64::MAX);
    for (attempt, dice, asked, expected) in [
        (1, none, None, Duration::ZERO),
        (1, full, None, SECOND),
        (1, half, None, SECOND / 2),
        (3, full, None, 4 * SECOND),
        (6, full, None, 30 * SECOND),
        (99, full, None, 30 * SECOND),
        (1, none, Some(7 * SECOND), 7 * SECOND),
        (5, full, Some(7 * SECOND), 16 * SECOND),
        (1, none, Some(60 * SECOND), 60 * SECOND),
    ] {
        let failure = Failure {
            error: ModelError::Unavailable(String::new()),
            retry_after: asked,
            is_unasked: false,
        };
        assert_eq!(
            next_delay(&options, attempt, &failure, dice),
            Some(expected),
            "attempt {attempt}, dice {dice}, asked {asked:?}"
        );
    }
}

#[test]
fn where_a_vendor_that_is_asked_too_often_names_no_time_the_attempts_take_about_a_minute() {
    let options = RetryOptions::default();
    let waits = |dice: u64| -> Duration {
        let refused = failure(ModelError::RateLimited(String::new()));
        let waits = (1..).map_while(|attempt| next_delay(&options, attempt, &refused, dice));
        waits.sum()
    };
    assert_eq!(waits(0), (4 + 8 + 15 + 15) * SECOND);
    assert_eq!(waits(u64::MAX), (8 + 16 + 30 + 30) * SECOND);
}

/// Fails as often as it has failures, saying a word each time, and then answers.
struct Failing(Mutex<Vec<Failure>>);

#[async_trait]
impl Vendor for Failing {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            name: "failing".to_owned(),
            practice: false,
            profile: crate::Profile::default(),
            origin: Origin::default(),
            paid_by: shared_types::PaidBy::default(),
        }
    }

    async fn attempt(
        &self,
        _request: &ModelRequest,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, Failure> {
        let _ = events.send(word()).await;
        match self.0.lock().expect("no test panics holding it").pop() {
            Some(failure) => Err(failure),
            None => Ok(Answer {
                parts: Parts::text("word"),
                finish: Finish::Complete,
                usage: Default::default(),
                model: String::new(),
                first_byte: None,
            }),
        }
    }
}

async fn answer(failures: Vec<ModelError>) -> (Result<Answer, ModelError>, Vec<ModelEvent>) {
    let options = RetryOptions {
        first_delay: Duration::ZERO,
        ..RetryOptions::default()
    };
    answer_after(failures.into_iter().map(failure).collect(), options).await
}

async fn answer_after(
    failures: Vec<Failure>,
    options: RetryOptions,
) -> (Result<Answer, ModelError>, Vec<ModelEvent>) {
    let model = Retry::new(
        Failing(Mutex::new(failures)),
        options,
        Arc::new(SeededEntropy::new(1)),
    );
    let request = ModelRequest::default();
    let (sender, mut receiver) = mpsc::channel(100);
    let answer = model.answer(request, sender).await;
    let mut events = Vec::new();
    while let Some(event) = receiver.recv().await {
        // A test of its own looks at the reports of attempts.
        if !matches!(event, ModelEvent::Attempted(_)) {
            events.push(event);
        }
    }
    (answer, events)
}

#[tokio::test]
async fn every_attempt_that_was_made_is_reported_with_its_outcome() {
    let cooling = Failure {
        error: ModelError::Unavailable("it cools down".to_owned()),
        retry_after: None,
        is_unasked: true,
    };
    let down = failure(ModelError::Unavailable("it is down".to_owned()));
    let options = RetryOptions {
        first_delay: Duration::ZERO,
        ..RetryOptions::default()
    };
    let vendor = Failing(Mutex::new(vec![cooling, down]));
    let model = Retry::new(vendor, options, Arc::new(SeededEntropy::new(1)));
    let (sender, mut receiver) = mpsc::channel(100);
    let answer = model.answer(ModelRequest::default(), sender).await;
    answer.expect("the third attempt succeeds");
    let mut reported = Vec::new();
    while let Some(event) = receiver.recv().await {
        if let ModelEvent::Attempted(attempted) = event {
            reported.push((attempted.number, attempted.outcome));
        }
    }
    assert_eq!(reported, [(1, "unavailable"), (3, "ok")]);
}

#[tokio::test]
async fn a_vendor_that_cools_down_is_not_waited_for_where_another_one_answers() {
    let cooling = Failure {
        error: ModelError::Unavailable("it cools down".to_owned()),
        retry_after: Some(SECOND),
        is_unasked: true,
    };
    let options = RetryOptions {
        gives_way: true,
        ..RetryOptions::default()
    };
    let (answer, events) = answer_after(vec![cooling], options).await;
    answer.expect_err("another one is asked");
    assert_eq!(events, [ModelEvent::Attempt { number: 1 }, word()]);
}

#[tokio::test]
async fn an_answer_that_broke_off_starts_again_under_the_next_number() {
    let (answer, events) = answer(vec![ModelError::Broken("cut".to_owned())]).await;
    assert_eq!(answer.expect("the second attempt succeeds").text(), "word");
    assert_eq!(
        events,
        [
            ModelEvent::Attempt { number: 1 },
            word(),
            ModelEvent::Retrying {
                after: Duration::ZERO,
                reason: "failing broke its answer off".to_owned(),
                next: 2,
                of: 5,
            },
            ModelEvent::Attempt { number: 2 },
            word(),
        ]
    );
}

#[tokio::test]
async fn after_the_last_attempt_the_error_says_how_many_there_were() {
    let failures = vec![ModelError::Unavailable("it is down".to_owned()); 9];
    let (answer, events) = answer(failures).await;
    let error = answer.expect_err("it always fails");
    assert_eq!(error.to_string(), "it is down (tried 5 times)");
    let attempts = events
        .iter()
        .filter(|event| matches!(event, ModelEvent::Attempt { .. }));
    assert_eq!(attempts.count(), 5);
}

#[tokio::test]
async fn a_final_error_is_passed_on_at_once() {
    let (answer, events) = answer(vec![ModelError::Overflow("too long".to_owned())]).await;
    assert_eq!(answer, Err(ModelError::Overflow("too long".to_owned())));
    assert_eq!(events.len(), 2);
}

#[tokio::test]
async fn a_vendor_that_asks_for_more_than_a_minute_is_not_waited_for_and_its_time_is_told() {
    for (asked, words) in [
        (61, "wait 1 min 1 s"),
        (90 * 60, "wait 1 h 30 min"),
        (7 * 3600 + 1, "wait 7 h"),
    ] {
        let refused = Failure {
            error: ModelError::RateLimited("429".to_owned()),
            retry_after: Some(asked * SECOND),
            is_unasked: false,
        };
        let (answer, events) = answer_after(vec![refused], RetryOptions::default()).await;
        let error = answer.expect_err("it is not asked again").to_string();
        assert!(error.contains(words) && error.contains("(429)"), "{error}");
        assert_eq!(events.len(), 2, "{events:?}");
    }
}

#[tokio::test]
async fn the_wait_for_a_vendor_that_cools_down_is_not_said_to_be_the_vendors_demand() {
    let cooling = Failure {
        error: ModelError::Unavailable("connection refused".to_owned()),
        retry_after: Some(115 * SECOND),
        is_unasked: true,
    };
    let (answer, _) = answer_after(vec![cooling], RetryOptions::default()).await;
    assert_eq!(
        answer.expect_err("it is not asked").to_string(),
        "the model is left alone for 1 min 55 s after its failures; send the message again then (connection refused)"
    );
}

#[tokio::test(start_paused = true)]
async fn the_next_attempt_waits_for_as_long_as_the_vendor_asked() {
    let refused = Failure {
        error: ModelError::RateLimited("429".to_owned()),
        retry_after: Some(7 * SECOND),
        is_unasked: false,
    };
    let model = Retry::new(
        Failing(Mutex::new(vec![refused])),
        RetryOptions::default(),
        Arc::new(SeededEntropy::new(1)),
    );
    let (events, _heard) = mpsc::channel(100);
    let request = ModelRequest::default();
    let began = tokio::time::Instant::now();
    let answer = model.answer(request, events).await;
    answer.expect("the second attempt succeeds");
    assert_eq!(began.elapsed(), 7 * SECOND);
}
