use async_trait::async_trait;
use server_records::{HintNews, SessionKey};
use shared_types::{SessionId, TenantId};
use tokio::{
    sync::mpsc,
    task::{JoinHandle, yield_now},
    time::advance,
};

use super::*;

const HERE: ReplicaId = ReplicaId::from_u128(1);

/// Keeps what is sent, and when.
struct Sent {
    begun: Instant,
    sent: Mutex<Vec<(Duration, BTreeSet<Hint>)>>,
    refuses: Mutex<bool>,
}

#[async_trait]
impl HintWire for Sent {
    async fn send(&self, texts: Vec<String>) -> Result<(), PortError> {
        if *self.refuses.lock().expect("no panic") {
            return Err(PortError::new("the database is away"));
        }
        let read = texts.iter().map(|text| HintBatch::read(text).hints);
        let hints = read.flatten().collect();
        let mut sent = self.sent.lock().expect("no panic");
        sent.push((self.begun.elapsed(), hints));
        Ok(())
    }

    async fn listen(&self, _: mpsc::Sender<HintNews>) {}
}

impl Sent {
    /// Since it was asked last, after all tasks have done what they can.
    async fn since(&self) -> Vec<(Duration, BTreeSet<Hint>)> {
        for _ in 0..16 {
            yield_now().await;
        }
        std::mem::take(&mut *self.sent.lock().expect("no panic"))
    }

    fn refuses(&self, refuses: bool) {
        *self.refuses.lock().expect("no panic") = refuses;
    }
}

fn started() -> (Outbox, Arc<Sent>, CancellationToken, JoinHandle<()>) {
    let (outbox, stop) = (Outbox::default(), CancellationToken::new());
    let wire = Arc::new(Sent {
        begun: Instant::now(),
        sent: Mutex::default(),
        refuses: Mutex::default(),
    });
    let sending = outbox.clone().send_by(wire.clone(), HERE, stop.clone());
    (outbox, wire, stop, tokio::spawn(sending))
}

fn session(id: usize) -> Hint {
    Hint::Session(SessionKey {
        tenant: TenantId::from_u128(1),
        session: SessionId::from_u128(id as u128),
    })
}

#[tokio::test(start_paused = true)]
async fn a_hint_is_sent_at_once_and_those_of_the_next_window_together_and_each_once() {
    let (outbox, wire, _stop, _task) = started();
    outbox.note(Hint::Waits);
    let first = (Duration::ZERO, BTreeSet::from([Hint::Waits]));
    assert_eq!(wire.since().await, [first]);
    for _ in 0..3 {
        outbox.note(session(1));
        outbox.note(session(2));
    }
    assert_eq!(wire.since().await, [], "the window is not over");
    advance(WINDOW).await;
    let both = BTreeSet::from([session(1), session(2)]);
    assert_eq!(wire.since().await, [(WINDOW, both)]);
    advance(10 * WINDOW).await;
    outbox.note(session(1));
    let later = (11 * WINDOW, BTreeSet::from([session(1)]));
    assert_eq!(wire.since().await, [later]);
}

#[tokio::test(start_paused = true)]
async fn more_hints_than_may_wait_become_one_that_stands_for_all() {
    let (outbox, wire, _stop, _task) = started();
    for id in 0..WAITING_AT_MOST {
        outbox.note(session(id));
        outbox.note(session(id));
    }
    let [(_, sent)] = &wire.since().await[..] else {
        panic!("they wait together");
    };
    assert_eq!(sent.len(), WAITING_AT_MOST);
    for id in 0..=WAITING_AT_MOST + 1 {
        outbox.note(session(id));
    }
    advance(WINDOW).await;
    let all = BTreeSet::from([Hint::All]);
    assert_eq!(wire.since().await, [(WINDOW, all)]);
}

#[tokio::test(start_paused = true)]
async fn hints_that_were_not_sent_are_made_up_for_once_the_database_answers() {
    let (outbox, wire, _stop, _task) = started();
    wire.refuses(true);
    outbox.note(session(1));
    assert_eq!(wire.since().await, []);
    outbox.note(session(2));
    advance(SEND_AGAIN_AFTER).await;
    assert_eq!(wire.since().await, []);
    wire.refuses(false);
    advance(SEND_AGAIN_AFTER).await;
    let all = BTreeSet::from([Hint::All]);
    assert_eq!(wire.since().await, [(2 * SEND_AGAIN_AFTER, all)]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_sends_what_is_left() {
    let (outbox, wire, stop, task) = started();
    outbox.note(session(1));
    assert_eq!(wire.since().await.len(), 1);
    outbox.note(session(2));
    stop.cancel();
    task.await.expect("no panic");
    let [(_, sent)] = &wire.since().await[..] else {
        panic!("it is sent");
    };
    assert_eq!(*sent, BTreeSet::from([session(2)]));
}
