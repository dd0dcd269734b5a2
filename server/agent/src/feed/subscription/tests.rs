use std::sync::{Arc, Mutex};

use shared_types::{
    Timestamp, UserId,
    event::{EventBody, Parts},
};

use super::*;
use crate::{Piece, Voice};

const SESSION: SessionId = SessionId::from_u128(1);

/// The log of a session, in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<SessionEvent>>>);

#[async_trait]
impl EventSource for Log {
    type Error = &'static str;

    async fn after(&self, seq: u64, limit: u32) -> Result<Vec<SessionEvent>, Self::Error> {
        let log = self.0.lock().expect("no test panics with it");
        let after = log.iter().filter(|event| event.seq > seq);
        Ok(after.take(limit as usize).cloned().collect())
    }

    fn stopping(&self) -> Self::Error {
        "the hub has stopped"
    }
}

/// A message at this place of the log.
fn message(seq: u64, length: usize) -> SessionEvent {
    SessionEvent {
        seq,
        at: Timestamp::from_micros(0),
        body: EventBody::Known(Event::InputAccepted {
            turn: TurnId::from_u128(1),
            by: UserId::from_u128(1),
            client_id: None,
            parts: Parts::text("x".repeat(length)),
            compacts: None,
            terms: crate::testing::full(),
        }),
    }
}

/// A follower that has caught up with a session, whose log has one event.
struct Scene {
    log: Log,
    follower: Subscription<Log>,
}

impl Scene {
    async fn new() -> Self {
        let log = Log(Arc::new(Mutex::new(vec![message(1, 10)])));
        let follower = Subscription::start(log.clone(), LiveHub::start(), SESSION, 0).await;
        let mut scene = Self {
            log,
            follower: follower.expect("the hub is there"),
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
        let events = numbers.into_iter().map(|seq| message(seq, length));
        let hub = &self.follower.hub;
        hub.appended(SESSION, events.collect()).await;
    }

    /// Adds events to the log without a hint; returns the last number of the log.
    fn work(&self) -> u64 {
        let mut log = self.log.0.lock().expect("no test panics with it");
        log.extend((2..6).map(|seq| message(seq, 10)));
        5
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
        let last = scene.work();
        scene.hint(numbers, length).await;
        for seq in 2..=last {
            assert_eq!(scene.next().await, seq.to_string());
        }
    }
}

#[tokio::test]
async fn hints_that_come_in_another_order_lose_no_event() {
    let mut scene = Scene::new().await;
    let last = scene.work();
    scene.hint([last], 10).await;
    scene.hint([2], 10).await;
    // It has handled them once it answers.
    drop(scene.follower.hub.watch(SESSION).await);
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
        hub.publish(SESSION, live);
    }
    // It has handled them once it answers.
    drop(hub.watch(SESSION).await);
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
