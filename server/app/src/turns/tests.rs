use std::sync::Arc;

use async_trait::async_trait;
use server_llm::{Answer, Message, Model, ModelError, ModelEvent, ModelInfo, ModelRequest};
use shared_types::{
    Event, SessionEvent,
    event::{Finish, Origin, Parts, TurnOutcome, Usage},
};
use tokio::sync::mpsc;

use crate::{NewMessage, testing::Fixture};

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
        let sent = (fixture.app.sessions).send(&fixture.ctx, session, NewMessage::of(text));
        async { sent.await.expect("it is accepted").turn }
    };
    let turn = send("panic").await;
    let (outcome, log) = fixture.until_ended(session).await;
    assert_eq!(outcome, TurnOutcome::Failed);
    let known: Vec<_> = log.iter().filter_map(SessionEvent::known).collect();
    let claims = known.iter().filter(|event| event.kind() == "turn.claimed");
    assert_eq!(claims.count(), 3);
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
