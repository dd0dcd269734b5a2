use shared_types::{
    SessionEvent, SessionId, Timestamp, TurnId,
    event::{EventBody, Finish, Parts, Usage},
};
use tokio::sync::broadcast::error::TryRecvError;

use super::super::{LiveHub, Signal, Watch};
use crate::{Live, Piece, Voice, feed::HereFeed};
use shared_types::Event;

const SESSION: SessionId = SessionId::from_u128(1);
const TURN: TurnId = TurnId::from_u128(2);

fn said(step: u32, attempt: u32, offset: u64, text: &str) -> Live {
    Live::Said {
        turn: TURN,
        step,
        attempt,
        offset,
        piece: Piece {
            part: 0,
            voice: Voice::Text,
            text: text.to_owned(),
        },
    }
}

fn recorded(step: u32) -> Vec<SessionEvent> {
    vec![SessionEvent {
        seq: 2,
        at: Timestamp::from_micros(0),
        body: EventBody::Known(Event::AnswerRecorded {
            turn: TURN,
            step,
            model: "m".to_owned(),
            origin: None,
            parts: Parts::default(),
            finish: Finish::Complete,
            usage: Usage::default(),
            estimated: 0,
            model_ms: 0,
            limit: None,
        }),
    }]
}

/// What was shown since the last time.
async fn shown(hub: &LiveHub, watch: &mut Watch) -> Vec<Live> {
    // All that was said to the hub before has been handled once this is answered.
    hub.watch(SESSION).await.expect("the hub lives");
    let mut shown = Vec::new();
    loop {
        match watch.signals.try_recv() {
            Ok(Signal::Live(live) | Signal::Relayed(live)) => shown.push(live),
            Ok(Signal::Appended(_)) => {}
            Err(TryRecvError::Empty) => return shown,
            Err(error) => panic!("{error}"),
        }
    }
}

async fn watched() -> (LiveHub, Watch) {
    let hub = LiveHub::start();
    let watch = hub.watch(SESSION).await.expect("the hub lives");
    (hub, watch)
}

#[tokio::test]
async fn what_is_under_way_elsewhere_is_shown_here_and_relayed_to_no_third() {
    let (hub, mut watch) = watched().await;
    hub.relay(SESSION, said(1, 1, 0, "far")).await;
    assert_eq!(shown(&hub, &mut watch).await, [said(1, 1, 0, "far")]);
    let late = hub.watch(SESSION).await.expect("the hub lives");
    assert_eq!(late.under_way, [said(1, 1, 0, "far")]);
    let mut here = HereFeed::start(hub.clone(), SESSION)
        .await
        .expect("the hub lives");
    hub.relay(SESSION, said(1, 1, 3, " away")).await;
    hub.publish(SESSION, said(2, 1, 0, "near"));
    assert_eq!(here.next().await, Some(said(2, 1, 0, "near")));
}

#[tokio::test]
async fn a_piece_that_is_later_than_the_event_that_replaced_it_is_not_shown() {
    let (hub, mut watch) = watched().await;
    hub.relay(SESSION, said(1, 1, 0, "an ")).await;
    hub.settle_relayed(SESSION, recorded(1)).await;
    hub.relay(SESSION, said(1, 1, 3, "answer")).await;
    hub.relay(SESSION, said(2, 1, 0, "next")).await;
    let seen = shown(&hub, &mut watch).await;
    assert_eq!(seen, [said(1, 1, 0, "an "), said(2, 1, 0, "next")]);
}

#[tokio::test]
async fn a_stream_that_is_made_anew_leaves_a_late_watcher_each_word_once() {
    let (hub, _watch) = watched().await;
    hub.relay(SESSION, said(1, 1, 0, "one ")).await;
    hub.relay(SESSION, said(1, 1, 4, "two ")).await;
    // Some words were lost with the stream before.
    hub.relay(SESSION, said(1, 1, 0, "one two three ")).await;
    hub.relay(SESSION, said(1, 1, 14, "four")).await;
    let late = hub.watch(SESSION).await.expect("the hub lives");
    assert_eq!(late.under_way, [said(1, 1, 0, "one two three four")]);
}

#[tokio::test]
async fn an_answer_that_another_worker_begins_again_is_a_later_attempt() {
    let (hub, mut watch) = watched().await;
    hub.relay(SESSION, said(1, 2, 0, "lost")).await;
    hub.end_relay(SESSION).await;
    let late = hub.watch(SESSION).await.expect("the hub lives");
    assert_eq!(late.under_way, []);
    hub.publish(SESSION, said(1, 1, 0, "taken over"));
    hub.publish(SESSION, said(2, 1, 0, "the next step"));
    let seen = shown(&hub, &mut watch).await;
    assert_eq!(
        seen[1..],
        [said(1, 3, 0, "taken over"), said(2, 1, 0, "the next step")]
    );
}
