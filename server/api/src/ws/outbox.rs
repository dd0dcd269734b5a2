//! The messages that wait for a client: few, and few bytes.

use std::{future::pending, sync::Arc};

use serde::Serialize;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
};
use tokio_tungstenite::tungstenite::Message;

/// Messages that may wait for a slow client.
const MESSAGES: usize = 16;
/// Bytes that may wait for a slow client; a message that is larger waits alone.
const BYTES: u32 = 256 * 1024;
/// Asides that may wait before no more of the client's messages are heard.
const ASIDES: usize = 4;

/// The entry of the queue; clones share the bound.
#[derive(Clone)]
pub(super) struct Outbox {
    queue: mpsc::Sender<QueuedMessage>,
    room: Arc<Semaphore>,
}

/// A message on its way.
pub(super) struct QueuedMessage {
    pub(super) message: Message,
    /// Held until the client's system has all of it.
    pub(super) room: OwnedSemaphorePermit,
}

/// Room for one message.
pub(super) struct MessageRoom {
    place: mpsc::OwnedPermit<QueuedMessage>,
    bytes: OwnedSemaphorePermit,
}

impl Outbox {
    pub(super) fn new() -> (Self, mpsc::Receiver<QueuedMessage>) {
        let (queue, inbox) = mpsc::channel(MESSAGES);
        let room = Arc::new(Semaphore::new(BYTES as usize));
        (Self { queue, room }, inbox)
    }

    /// Waits for room; false once the client takes no more.
    pub(super) async fn send(&self, message: &impl Serialize) -> bool {
        let Some(message) = json(message) else {
            return false;
        };
        let Some(room) = self.room(message.len()).await else {
            return false;
        };
        room.put(message);
        true
    }

    /// Waits for room for a message of so many bytes; none once the client takes no more. Room that is
    /// not used is given back.
    pub(super) async fn room(&self, bytes: usize) -> Option<MessageRoom> {
        let bytes = u32::try_from(bytes).unwrap_or(BYTES).min(BYTES);
        let bytes = tokio::select! {
            room = self.room.clone().acquire_many_owned(bytes) => room.ok()?,
            () = self.queue.closed() => return None,
        };
        let place = self.queue.clone().reserve_owned().await.ok()?;
        Some(MessageRoom { place, bytes })
    }
}

/// Messages beside the followed content, mostly complaints. Each waits for room by itself, so that their sender is not
/// delayed.
pub(super) struct Asides {
    outbox: Outbox,
    waiting: JoinSet<bool>,
}

impl Asides {
    pub(super) fn to(outbox: Outbox) -> Self {
        Self {
            outbox,
            waiting: JoinSet::new(),
        }
    }

    /// True if there are few waiting ones.
    pub(super) fn have_room(&self) -> bool {
        self.waiting.len() < ASIDES
    }

    /// Sends this once there is room for it.
    pub(super) fn say(&mut self, message: impl Serialize + Send + Sync + 'static) {
        let outbox = self.outbox.clone();
        self.waiting
            .spawn(async move { outbox.send(&message).await });
    }

    /// Waits until one of them was sent. Safe to cancel.
    pub(super) async fn said(&mut self) {
        if self.waiting.join_next().await.is_none() {
            pending().await
        }
    }
}

impl MessageRoom {
    /// Sends this, which has at most the bytes that were asked for.
    pub(super) fn put(mut self, message: Message) {
        let unused = self.bytes.num_permits().saturating_sub(message.len());
        drop(self.bytes.split(unused));
        self.place.send(QueuedMessage {
            message,
            room: self.bytes,
        });
    }
}

/// The message as JSON text.
pub(super) fn json(message: &impl Serialize) -> Option<Message> {
    match serde_json::to_string(message) {
        Ok(text) => Some(Message::text(text)),
        Err(error) => {
            tracing::error!(%error, "a message could not be written as JSON");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use shared_api::ServerMessage;
    use shared_types::SessionId;

    use super::*;

    fn of_bytes(bytes: usize) -> ServerMessage {
        let problem = shared_api::Problem::new("x", 400, "x".repeat(bytes));
        ServerMessage::Problem {
            session: Some(SessionId::from_u128(1)),
            problem,
        }
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_has_few_bytes_waiting_and_a_large_message_waits_alone() {
        let (outbox, mut inbox) = Outbox::new();
        let half = of_bytes(BYTES as usize / 2);
        assert!(outbox.send(&half).await);
        assert_eq!(outbox.send(&half).now_or_never(), None, "it waits for room");
        drop(inbox.recv().await);
        let large = of_bytes(4 * BYTES as usize);
        assert!(outbox.send(&large).await);
        assert_eq!(outbox.send(&of_bytes(1)).now_or_never(), None);
        drop(inbox.recv().await);
        assert!(outbox.send(&half).await);
    }

    #[tokio::test]
    async fn whoever_complains_to_a_client_that_reads_nothing_does_not_wait_for_it() {
        let (outbox, mut inbox) = Outbox::new();
        assert!(
            outbox.send(&of_bytes(4 * BYTES as usize)).await,
            "nothing else has room"
        );
        let mut asides = Asides::to(outbox);
        for _ in 0..ASIDES {
            assert!(asides.have_room());
            asides.say(of_bytes(1));
        }
        assert!(!asides.have_room(), "the client is heard no further");
        assert_eq!(asides.said().now_or_never(), None);
        drop(inbox.recv().await);
        asides.said().await;
        assert!(asides.have_room());
    }

    #[tokio::test]
    async fn room_that_was_kept_for_a_larger_message_is_given_back() {
        let (outbox, _inbox) = Outbox::new();
        let all = outbox.room(BYTES as usize).now_or_never().flatten();
        all.expect("all of it is free").put(Message::binary("x"));
        let rest = outbox.room(BYTES as usize - 1).now_or_never().flatten();
        assert!(rest.is_some(), "one byte waits, and no more");
        assert!(outbox.room(1).now_or_never().is_none());
    }
}
