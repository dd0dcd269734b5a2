//! What waits for a client of the stream: a few messages, and few bytes.

use std::sync::Arc;

use shared_api::ServerMessage;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Messages that may wait for a slow client.
const MESSAGES: usize = 16;
/// Bytes that may wait for a slow client; a message that is larger waits alone.
const BYTES: u32 = 256 * 1024;

/// Where messages are put; clones share the bound.
#[derive(Clone)]
pub(super) struct Outbox {
    queue: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
}

/// A message on its way.
pub(super) struct Waiting {
    pub(super) text: String,
    /// Held until the client's system has all of it.
    pub(super) room: OwnedSemaphorePermit,
}

impl Outbox {
    pub(super) fn new() -> (Self, mpsc::Receiver<Waiting>) {
        let (queue, inbox) = mpsc::channel(MESSAGES);
        let room = Arc::new(Semaphore::new(BYTES as usize));
        (Self { queue, room }, inbox)
    }

    /// Waits for room; false once the client takes no more.
    pub(super) async fn send(&self, message: &ServerMessage) -> bool {
        let text = match serde_json::to_string(message) {
            Ok(text) => text,
            Err(error) => {
                tracing::error!(%error, "a message could not be written as JSON");
                return false;
            }
        };
        let bytes = u32::try_from(text.len()).unwrap_or(BYTES).min(BYTES);
        let room = tokio::select! {
            room = self.room.clone().acquire_many_owned(bytes) => room,
            () = self.queue.closed() => return false,
        };
        let Ok(room) = room else { return false };
        self.queue.send(Waiting { text, room }).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use shared_types::SessionId;

    use super::*;

    fn of_bytes(bytes: usize) -> ServerMessage {
        let problem = shared_api::Problem {
            code: "x".repeat(bytes),
            status: 400,
            detail: String::new(),
        };
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
}
