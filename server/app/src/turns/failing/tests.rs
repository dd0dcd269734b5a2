use std::sync::Arc;

use async_trait::async_trait;
use server_llm::{Answer, Message, Model, ModelError, ModelEvent, ModelInfo, ModelRequest};
use shared_types::{
    Event, SessionEvent,
    event::{Finish, Origin, Parts, TurnOutcome, Usage},
};
use tokio::sync::mpsc;

use super::*;
use crate::testing::Fixture;

/// Panics where the last message tells it to.
struct Fragile;

#[async_trait]
impl Model for Fragile {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            name: "fragile".to_owned(),
            practice: false,
            profile: server_llm::Profile::default(),
            paid_by: shared_types::PaidBy::default(),
            origin: Origin::default(),
        }
    }

    async fn answer(
        &self,
        request: ModelRequest,
        _: mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let last = request.messages.last();
        assert!(
            !matches!(last, Some(Message::User { parts }) if parts.words() == "panic"),
            "the model panics, as the test wants"
        );
        Ok(Answer {
            parts: Parts::text("fine"),
            finish: Finish::Complete,
            usage: Usage::default(),
            model: String::new(),
            first_byte: None,
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_worker_panics_three_times_fails_and_the_session_goes_on() {
    let fixture = Fixture::with(Arc::new(Fragile)).await;
    let session = fixture.session().await;
    let send = |text: &str| {
        let sent = (fixture.app.sessions).send(&fixture.ctx, session, None, text.to_owned());
        async { sent.await.expect("it is accepted").turn }
    };
    let turn = send("panic").await;
    let (outcome, log) = fixture.until_ended(session).await;
    assert_eq!(outcome, TurnOutcome::Failed);
    let known: Vec<_> = log.iter().filter_map(SessionEvent::known).collect();
    let claims = known.iter().filter(|event| event.kind() == "turn.claimed");
    assert_eq!(claims.count(), FAILURES_AT_MOST as usize);
    let Some(Event::TurnEnded {
        turn: ended,
        reason,
        ..
    }) = known.last()
    else {
        panic!("the end is the last event");
    };
    let reason = reason.as_deref().unwrap_or_default();
    assert_eq!(*ended, turn);
    assert!(
        reason.contains("3 times")
            && reason.contains("panicked")
            && reason.contains("another message"),
        "{reason}"
    );
    let next = send("go on").await;
    let mut following =
        (fixture.app.sessions.follow(&fixture.ctx, session, 0).await).expect("it is there");
    loop {
        if let crate::Followed::Event(event) = following.next().await.expect("the store answers")
            && let Some(Event::TurnEnded { turn, outcome, .. }) = event.known()
            && *turn == next
        {
            assert_eq!(*outcome, TurnOutcome::Completed);
            return;
        }
    }
}

#[test]
fn a_turn_is_given_up_at_the_third_failure_or_at_once_where_it_is_to_stop() {
    let given_up = |count, cancel_requested| {
        given_up(&TurnFailures {
            count,
            cancel_requested,
        })
    };
    assert_eq!(given_up(2, false), None);
    assert_eq!(given_up(3, false), Some(TurnOutcome::Failed));
    assert_eq!(given_up(1, true), Some(TurnOutcome::Cancelled));
}

#[test]
fn a_store_that_does_not_answer_is_no_fault_of_the_turn() {
    let busy = || server_store::StoreError::Unavailable("the disk is slow".into());
    assert!(!Obstacle::Store(busy()).is_the_turns_own());
    let unavailable = TurnError::LogUnavailable(busy().to_string());
    assert!(!Obstacle::Turn(unavailable).is_the_turns_own());
    let refused = TurnError::LogRefused("it is too large".to_owned());
    assert!(Obstacle::Turn(refused).is_the_turns_own());
}
