use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use server_llm::{Answer, Model, ModelError, ModelEvent, ModelInfo, ModelRequest};
use shared_types::{
    Event, SessionEvent,
    event::{Origin, TurnOutcome},
};
use tokio::{sync::mpsc, time::timeout};

use crate::{NewMessage, testing::Fixture};

/// Says nothing, for ever, or panics.
struct Mute {
    panics: bool,
}

#[async_trait]
impl Model for Mute {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            name: "mute".to_owned(),
            practice: false,
            profile: server_llm::Profile::default(),
            paid_by: shared_types::PaidBy::default(),
            origin: Origin::default(),
        }
    }

    async fn answer(
        &self,
        _: ModelRequest,
        _: mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        assert!(!self.panics, "the model panics, as the test wants");
        std::future::pending().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_worked_on_also_when_its_sender_leaves_while_it_is_accepted() {
    let fixture = Fixture::practice().await;
    for microseconds in (0..5000).step_by(200) {
        let session = fixture.session().await;
        let sending = (fixture.app.sessions).send(&fixture.ctx, session, NewMessage::of("hello"));
        let _ = timeout(Duration::from_micros(microseconds), sending).await;
        // Whoever leaves before the message was looked at has not sent it.
        let log = fixture.app.sessions.events(&fixture.ctx, session, 0, 9);
        let (log, _) = log.await.expect("the session is there");
        let accepted =
            |event: &SessionEvent| matches!(event.known(), Some(Event::InputAccepted { .. }));
        if log.iter().any(accepted) {
            fixture.until_ended(session).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_no_worker_has_taken_yet_can_be_cancelled() {
    let fixture = Fixture::with(Arc::new(Mute { panics: false })).await;
    let sessions = &fixture.app.sessions;
    for _ in 0..20 {
        let session = fixture.session().await;
        let sent = sessions.send(&fixture.ctx, session, NewMessage::of("hello"));
        let turn = sent.await.expect("it is accepted").turn;
        let cancelled = sessions.cancel(&fixture.ctx, session).await;
        assert_eq!(cancelled.expect("the session is there"), Some(turn));
        let (outcome, _) = fixture.until_ended(session).await;
        assert_eq!(outcome, TurnOutcome::Cancelled);
        let again = sessions.cancel(&fixture.ctx, session).await;
        assert_eq!(again.expect("the session is there"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_worker_panics_is_taken_up_again_and_can_be_cancelled() {
    let fixture = Fixture::with(Arc::new(Mute { panics: true })).await;
    let session = fixture.session().await;
    let sessions = &fixture.app.sessions;
    let sent = sessions.send(&fixture.ctx, session, NewMessage::of("hello"));
    let turn = sent.await.expect("it is accepted").turn;
    let mut following = (sessions.follow(&fixture.ctx, session, 0).await).expect("it is there");
    loop {
        let next = following.next().await.expect("the store answers");
        if let crate::Followed::Event(event) = next
            && matches!(event.known(), Some(Event::TurnClaimed { .. }))
        {
            break;
        }
    }
    let cancelled = sessions.cancel(&fixture.ctx, session).await;
    assert_eq!(cancelled.expect("the session is there"), Some(turn));
    let (outcome, _) = fixture.until_ended(session).await;
    assert_eq!(outcome, TurnOutcome::Cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_leaves_the_turn_to_the_next_start() {
    let fixture = Fixture::with(Arc::new(Mute { panics: false })).await;
    let session = fixture.session().await;
    let sessions = &fixture.app.sessions;
    let sent = sessions.send(&fixture.ctx, session, NewMessage::of("hello"));
    sent.await.expect("it is accepted");
    fixture.stop.cancel();
    fixture.app.idle().await;
    fixture.app.close().await;
}
