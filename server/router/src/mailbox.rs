//! An [`OutputInbox`] between two tasks: a link's task puts in and never waits, an operation's task takes
//! out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared_link::server::{ControlAnswer, InboxError, InboxSeat, Mail, OutputInbox};
use shared_sandbox::OutputStream;
use tokio::sync::Notify;

/// The taking end. It belongs to the operation's task.
#[derive(Debug)]
pub(crate) struct Mailbox {
    shared: Arc<SharedInbox>,
}

/// The putting end for one seat. It belongs to a link's task; dropping it detaches.
#[derive(Debug)]
pub(crate) struct Post {
    shared: Arc<SharedInbox>,
    seat: InboxSeat,
}

#[derive(Debug, Default)]
struct SharedInbox {
    inbox: Mutex<OutputInbox>,
    changed: Notify,
    answered: Notify,
}

impl Mailbox {
    /// An empty mailbox whose reader has stdout and stderr up to these offsets.
    pub(crate) fn starting_at(offsets: [u64; 2]) -> Self {
        Self {
            shared: Arc::new(SharedInbox {
                inbox: Mutex::new(OutputInbox::starting_at(offsets)),
                ..SharedInbox::default()
            }),
        }
    }

    /// Takes a new seat, and returns the offsets at which stdout and stderr continue.
    pub(crate) fn attach(&mut self) -> (Post, [u64; 2]) {
        let (seat, offsets) = self.shared.lock().attach();
        let shared = Arc::clone(&self.shared);
        (Post { shared, seat }, offsets)
    }

    /// The next answer to a request that was passed on. Cancel-safe.
    pub(crate) async fn answer(&self) -> ControlAnswer {
        loop {
            if let Some(answer) = self.answered() {
                return answer;
            }
            self.shared.answered.notified().await;
        }
    }

    /// The next answer, if one came already.
    pub(crate) fn answered(&self) -> Option<ControlAnswer> {
        self.shared.lock().take_answer()
    }

    /// The next mail. Cancel-safe: nothing is lost when the future is dropped.
    pub(crate) async fn next(&self) -> Mail {
        loop {
            if let Some(mail) = self.shared.lock().take() {
                return mail;
            }
            self.shared.changed.notified().await;
        }
    }

    /// See [`OutputInbox::taken`].
    pub(crate) fn taken(&mut self, stream: OutputStream, up_to: u64) -> Option<u64> {
        self.shared.lock().taken(stream, up_to)
    }
}

impl shared_link::server::Post for Post {
    fn put(&self, mail: Mail) -> Result<(), InboxError> {
        let put = self.shared.lock().put(self.seat, mail);
        self.shared.changed.notify_one();
        put
    }

    fn put_answer(&self, answer: ControlAnswer) -> Result<(), InboxError> {
        let put = self.shared.lock().put_answer(self.seat, answer);
        self.shared.answered.notify_one();
        put
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        // Only output can break a rule.
        let _ = shared_link::server::Post::put(self, Mail::Detached);
    }
}

impl SharedInbox {
    fn lock(&self) -> MutexGuard<'_, OutputInbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
