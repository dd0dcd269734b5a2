//! The events that a reader of an operation receives, and the right to store its end.

use std::fmt;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

use crate::OperationEvent;

/// The events of one operation, for one reader. Dropping it stops nothing.
#[async_trait]
pub trait Events: Send + fmt::Debug {
    /// The next event. Nothing after the end, and nothing where the sandbox gives the stream up before it:
    /// ask for the operation again. Cancel-safe.
    async fn recv(&mut self) -> Option<OperationEvent>;

    /// The bytes of stdout and of stderr that are known to have come. This reader may not have read that far
    /// yet.
    fn came(&self) -> [u64; 2];

    /// Takes the right to store the end that came. Nothing where the end is stored already, or is another
    /// reader's to store.
    fn end_token(&mut self) -> Option<EndToken>;
}

/// A channel's end: what comes through it is stored by its sender.
#[async_trait]
impl Events for mpsc::Receiver<OperationEvent> {
    async fn recv(&mut self) -> Option<OperationEvent> {
        mpsc::Receiver::recv(self).await
    }

    fn came(&self) -> [u64; 2] {
        [0, 0]
    }

    fn end_token(&mut self) -> Option<EndToken> {
        None
    }
}

/// The right to store the end of one operation, together with what its holder concludes from it. While it
/// is held the sandbox does not store the end. Dropped, it goes back: then the sandbox stores the end alone.
#[derive(Debug)]
#[must_use = "dropped, the sandbox stores the end"]
pub struct EndToken(oneshot::Sender<()>);

/// The sandbox's side of an [`EndToken`].
#[derive(Debug)]
pub struct EndTokenGiven(oneshot::Receiver<()>);

impl EndToken {
    /// A token, and the sandbox's side of it.
    pub fn give() -> (Self, EndTokenGiven) {
        let (token, given) = oneshot::channel();
        (Self(token), EndTokenGiven(given))
    }

    /// Reports that the holder has stored exactly the end that it received.
    pub fn spend(self) {
        // A sandbox that is gone finds the end where it is stored.
        let _ = self.0.send(());
    }
}

impl EndTokenGiven {
    /// Waits until the token is spent (`true`) or dropped. Cancel-safe.
    pub async fn is_spent(&mut self) -> bool {
        (&mut self.0).await.is_ok()
    }

    /// True if the token is spent by now.
    pub fn is_spent_by_now(&mut self) -> bool {
        self.0.try_recv().is_ok()
    }
}
