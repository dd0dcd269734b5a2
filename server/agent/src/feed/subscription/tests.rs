use shared_types::{
    Timestamp,
    event::{EventBody, Parts},
};

use server_agent::{Piece, Voice};

use super::*;
use crate::{SessionTerms, testing::Fixture};

/// A follower that has caught up with a new session, whose log has one event.
struct Scene {
    fixture: Fixture,
    session: SessionId,
    follower: Subscription,
}

impl Scene {
    async fn new() -> Self {
        let fixture = Fixture::practice().await;
        let terms = SessionTerms::default();
        let session = fixture.app.sessions.create(&fixture.ctx, &terms).await;
        let session = session.expect("a session").id;
        let follower = fixture.app.sessions.follow(&fixture.ctx, session, 0).await;
        let mut scene = Self {
            fixture,
            session,
            follower: follower.expect("it is ours"),
        };
        assert_eq!(scene.next().await, "1");
        assert_eq!(scene.next().await, "caught up");
        scene
    }

    /// The number of the next event.
    async fn next(&mut self) -> String {
        match self.follower.next().await.expect("the store answers") {
            Followed::Event(event) => event.seq.to_string(),
            Followed::CaughtUp(_) => "caught up".to_owned(),
            Followed::Live(_) => "live".to_owned(),
        }
    }

    /// Says that the log has grown by events of these numbers.
    async fn hint(&self, numbers: impl IntoIterator<Item = u64>, length: usize) {
        let events = numbers.into_iter().map(|seq| SessionEvent {
            seq,
            at: Timestamp::from_micros(0),
            body: EventBody::Known(Event::InputAccepted {
                turn: TurnId::from_u128(1),
                by: self.fixture.ctx.user,
                client_id: None,
                parts: Parts::text("x".repeat(length)),
            }),
        });
        let hub = &self.follower.hub;
        hub.appended(self.session, events.collect()).await;
    }

    /// Sends a message, and waits until its turn is over; returns the last number of the log.
    async fn work(&mut self) -> u64 {
        let Fixture { app, ctx, .. } = &self.fixture;
        let sent = app
            .sessions
            .send(ctx, self.session, None, "hello".to_owned());
        sent.await.expect("it is accepted");
        let (_, log) = self.fixture.until_ended(self.session).await;
        log.last().expect("an event").seq
    }
}

#[tokio::test]
async fn what_comes_with_a_hint_and_is_next_is_given_without_a_look_at_the_store() {
    let mut scene = Scene::new().await;
    // The store knows nothing of these.
    scene.hint([2, 3], 10).await;
    scene.hint([3, 4], 10).await;
    assert_eq!(scene.next().await, "2");
    assert_eq!(scene.next().await, "3");
    assert_eq!(scene.next().await, "4");
}

#[tokio::test]
async fn what_is_not_next_or_too_long_for_a_hint_is_read_from_the_store() {
    for (numbers, length) in [(vec![9], 10), (vec![2], 20_000), (vec![], 10)] {
        let mut scene = Scene::new().await;
        let last = scene.work().await;
        // As if every hint of it had been lost.
        let signals = scene.follower.watch.signals.resubscribe();
        scene.follower.watch.signals = signals;
        scene.hint(numbers, length).await;
        for seq in 2..=last {
            assert_eq!(scene.next().await, seq.to_string());
        }
    }
}

#[tokio::test]
async fn hints_that_come_in_another_order_lose_no_event() {
    let mut scene = Scene::new().await;
    let last = scene.work().await;
    let signals = scene.follower.watch.signals.resubscribe();
    scene.follower.watch.signals = signals;
    scene.hint([last], 10).await;
    scene.hint([2], 10).await;
    // It has handled them once it answers.
    drop(scene.follower.hub.watch(scene.session).await);
    for seq in 2..=last {
        assert_eq!(scene.next().await, seq.to_string());
    }
}

#[tokio::test]
async fn words_that_came_faster_than_they_were_taken_are_one_piece() {
    let mut scene = Scene::new().await;
    let piece = |attempt, offset, text: &str| Live::Said {
        turn: TurnId::from_u128(1),
        step: 1,
        attempt,
        offset,
        piece: Piece {
            part: 0,
            voice: Voice::Text,
            text: text.to_owned(),
        },
    };
    let hub = scene.follower.hub.clone();
    for live in [
        piece(1, 0, "now "),
        piece(1, 4, "it "),
        piece(1, 8, "lacks a letter"),
        piece(2, 0, "anew "),
        piece(2, 5, "it is whole"),
    ] {
        hub.publish(scene.session, live);
    }
    // It has handled them once it answers.
    drop(hub.watch(scene.session).await);
    for expected in [
        piece(1, 0, "now it "),
        piece(1, 8, "lacks a letter"),
        piece(2, 0, "anew it is whole"),
    ] {
        match scene.follower.next().await.expect("the hub is there") {
            Followed::Live(live) => assert_eq!(live, expected),
            other => panic!("{other:?}"),
        }
    }
}
