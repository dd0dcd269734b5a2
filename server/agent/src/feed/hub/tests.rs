use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use shared_types::{
    SessionId, Timestamp,
    event::{EventBody, Parts},
};

use super::*;
use crate::{Piece, Voice};

/// A piece of output.
fn output(offset: u64, data: Bytes) -> Live {
    Live::Output {
        turn: TurnId::from_u128(1),
        step: 1,
        ordinal: 0,
        operation: shared_types::OperationId::from_u128(1),
        stream: shared_sandbox::OutputStream::Stdout,
        offset,
        data,
    }
}

/// A piece that counts itself while it exists.
struct Counted(Arc<AtomicUsize>, [u8; 1000]);

impl Counted {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self(alive.clone(), [b'x'; 1000])
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.1
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn at(seq: u64, event: Event) -> SessionEvent {
    SessionEvent {
        seq,
        at: Timestamp::from_micros(0),
        body: EventBody::Known(event),
    }
}

#[tokio::test]
async fn a_watcher_that_takes_nothing_holds_a_bounded_number_of_pieces() {
    let (hub, session) = (LiveHub::start(), SessionId::from_u128(1));
    let alive = Arc::new(AtomicUsize::new(0));
    let watch = hub.watch(session).await.expect("the hub lives");
    for piece in 0..2000 {
        let data = Bytes::from_owner(Counted::new(&alive));
        hub.publish(session, output(piece * 1000, data));
        if piece % 100 == 0 {
            // All that was published before has been handled once this is answered.
            hub.watch(session).await.expect("the hub lives");
        }
    }
    hub.watch(session).await.expect("the hub lives");
    let held = alive.load(Ordering::SeqCst);
    assert!(held <= 100, "{held} pieces are held");
    drop(watch);
}

#[tokio::test]
async fn a_late_watcher_gets_the_tail_of_what_is_under_way_until_it_has_ended() {
    let (hub, session) = (LiveHub::start(), SessionId::from_u128(1));
    let turn = shared_types::TurnId::from_u128(1);
    for piece in 0..100 {
        hub.publish(session, output(piece * 1000, Bytes::from(vec![b'x'; 1000])));
        hub.watch(session).await.expect("the hub lives");
    }
    let watch = hub.watch(session).await.expect("the hub lives");
    let [Live::Output { offset, data, .. }] = &watch.under_way[..] else {
        panic!("{:?}", watch.under_way)
    };
    assert_eq!(*offset + data.len() as u64, 100_000);
    assert_eq!(data.len(), OUTPUT_PREFIX_BYTES);
    let ended = Event::TurnEnded {
        turn,
        outcome: shared_types::event::TurnOutcome::Completed,
        reason: None,
    };
    hub.appended(session, vec![at(1, ended)]).await;
    let watch = hub.watch(session).await.expect("the hub lives");
    assert!(watch.under_way.is_empty());
}

#[tokio::test]
async fn a_late_watcher_learns_what_is_waited_for_until_something_happens() {
    let (hub, session) = (LiveHub::start(), SessionId::from_u128(1));
    let turn = shared_types::TurnId::from_u128(1);
    let notice = Live::Notice {
        turn,
        text: "waiting".to_owned(),
    };
    hub.publish(session, notice.clone());
    let watch = hub.watch(session).await.expect("the hub lives");
    assert_eq!(watch.under_way, std::slice::from_ref(&notice));
    let by = shared_types::UserId::from_u128(2);
    // The next message waits behind the turn.
    let message = Event::InputAccepted {
        turn: shared_types::TurnId::from_u128(2),
        by,
        client_id: None,
        parts: Parts::text("and then?".to_owned()),
        compacts: None,
        terms: crate::testing::full(),
    };
    hub.appended(session, vec![at(1, message)]).await;
    let watch = hub.watch(session).await.expect("the hub lives");
    assert_eq!(watch.under_way, [notice]);
    hub.appended(
        session,
        vec![at(
            1,
            Event::CancelRequested {
                turn,
                by,
                why: None,
            },
        )],
    )
    .await;
    let watch = hub.watch(session).await.expect("the hub lives");
    assert_eq!(watch.under_way, []);
}

#[tokio::test]
async fn a_session_that_nobody_watches_and_nothing_happens_in_takes_no_room() {
    let mut rooms = Rooms::default();
    for number in 0..100 {
        let (reply, _watch) = oneshot::channel();
        rooms.handle(Command::Watch(
            SessionId::from_u128(number),
            Of::Here,
            reply,
        ));
    }
    assert_eq!(rooms.rooms.len(), 1, "only the newest is left");
}

#[tokio::test]
async fn output_that_the_hub_has_not_handled_is_bounded_in_bytes_and_hides_nothing_else() {
    const PIECE: usize = 64 * 1024;
    let (hub, session) = (LiveHub::start(), SessionId::from_u128(1));
    let mut watch = hub.watch(session).await.expect("the hub lives");
    // The hub's task does not run before this one waits.
    let pieces = OUTPUT_QUEUED_BYTES / PIECE;
    for piece in 0..2 * pieces {
        let data = Bytes::from(vec![b'x'; PIECE]);
        hub.publish(session, output((piece * PIECE) as u64, data));
    }
    let text = "waiting".to_owned();
    let turn = shared_types::TurnId::from_u128(1);
    hub.publish(session, Live::Notice { turn, text });
    for _ in 0..pieces {
        let heard = watch.signals.recv().await.expect("the hub lives");
        assert!(matches!(heard, Signal::Live(Live::Output { .. })));
    }
    let heard = watch.signals.recv().await.expect("the hub lives");
    assert!(matches!(heard, Signal::Live(Live::Notice { .. })));
    // What was handled has made room.
    hub.publish(session, output(0, Bytes::from(vec![b'x'; PIECE])));
    let heard = watch.signals.recv().await.expect("the hub lives");
    assert!(matches!(heard, Signal::Live(Live::Output { .. })));
}

/// A piece of an answer.
fn said(attempt: u32, part: u32, voice: Voice, offset: u64, text: &str) -> Live {
    let text = text.to_owned();
    Live::Said {
        turn: shared_types::TurnId::from_u128(1),
        step: 1,
        attempt,
        offset,
        piece: Piece { part, voice, text },
    }
}

#[tokio::test]
async fn a_late_watcher_gets_each_part_of_the_answer_so_far() {
    let (hub, session) = (LiveHub::start(), SessionId::from_u128(1));
    let pieces = |(part, voice)| {
        [
            said(1, part, voice, 0, "hm, "),
            said(1, part, voice, 4, "so"),
        ]
    };
    let parts = [
        (0, Voice::Reasoning),
        (1, Voice::Text),
        (2, Voice::Reasoning),
    ];
    for piece in parts.into_iter().flat_map(pieces) {
        hub.publish(session, piece);
    }
    let watch = hub.watch(session).await.expect("the hub lives");
    let whole = parts.map(|(part, voice)| said(1, part, voice, 0, "hm, so"));
    assert_eq!(watch.under_way, whole);
}

#[tokio::test]
async fn a_late_watcher_is_given_the_last_attempt_alone() {
    let (hub, session) = (LiveHub::start(), SessionId::from_u128(1));
    hub.publish(session, said(1, 0, Voice::Text, 0, "half"));
    hub.publish(session, said(1, 1, Voice::Text, 0, "more"));
    let last = said(2, 0, Voice::Text, 0, "whole");
    hub.publish(session, last.clone());
    let watch = hub.watch(session).await.expect("the hub lives");
    assert_eq!(watch.under_way, [last]);
}

#[tokio::test]
async fn a_late_watcher_is_not_given_what_was_taken_back() {
    let (hub, session) = (LiveHub::start(), SessionId::from_u128(1));
    let turn = shared_types::TurnId::from_u128(1);
    let said = |attempt, text: &str| said(attempt, 0, Voice::Text, 0, text);
    let void = Live::TakenBack {
        turn,
        step: 1,
        attempt: 1,
    };
    hub.publish(session, said(1, "half"));
    hub.publish(session, void.clone());
    let watch = hub.watch(session).await.expect("the hub lives");
    assert_eq!(watch.under_way, std::slice::from_ref(&void));
    hub.publish(session, said(2, "whole"));
    let watch = hub.watch(session).await.expect("the hub lives");
    assert_eq!(watch.under_way, [void, said(2, "whole")]);
}

#[tokio::test]
async fn watchers_hear_of_events_of_another_replica_and_lose_what_no_worker_here_goes_on_with() {
    let (hub, session) = (LiveHub::start(), SessionId::from_u128(1));
    let other = SessionId::from_u128(2);
    hub.publish(session, output(0, Bytes::from_static(b"building")));
    let mut watches = Vec::new();
    for session in [session, other] {
        watches.push(hub.watch(session).await.expect("the hub lives"));
    }
    assert_eq!(watches[0].under_way.len(), 1);
    hub.all_appended().await;
    for watch in &mut watches {
        let signal = watch.signals.recv().await.expect("the hub lives");
        assert!(matches!(signal, Signal::Appended(events) if events.is_empty()));
    }
    hub.idle(session).await;
    let late = hub.watch(session).await.expect("the hub lives");
    assert!(late.under_way.is_empty());
}
