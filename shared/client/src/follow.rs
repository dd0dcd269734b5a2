//! The client's side of a session's WebSocket. A task owns the connection, reconnects when it is lost, and hands over
//! each item once, through a bounded channel.

use std::{sync::Arc, time::Duration};

use shared_api::{ClientMessage, Live, ServerMessage};
use shared_types::{Entropy, SessionEvent, SessionId};
use tokio::sync::mpsc;

use crate::{
    ClientError, backoff,
    cursor::{BrokenOrder, Cursor},
    http::Http,
    socket::ClientSocket,
};

/// Items that may wait for a slow consumer before the connection is read no further.
const QUEUE: usize = 256;

/// The longest wait, at the server's request, for a new connection that is not reported to the person.
pub(crate) const UNTOLD_WAIT: Duration = Duration::from_secs(1);

/// The reason for a longer wait.
pub(crate) const ASKED: &str = "the server asks to connect again";

/// Failures in a row after which a server counts as gone: about a quarter of an hour.
const GIVE_UP_AFTER: u32 = 180;

/// Something that a follower hears.
#[derive(Debug, Clone, PartialEq)]
pub enum Followed {
    /// The next event of the log: each once, in order, without gaps.
    Event(Box<SessionEvent>),
    /// Something under way. The pieces of a text follow one another without gap or repetition
    /// from offset 0 of its attempt; the event that records the answer may hold more of it.
    Live(Live),
    /// Everything up to here was in the log already; what follows happens now.
    CaughtUp {
        /// The number of the newest event.
        seq: u64,
    },
    /// The connection is lost and the client reconnects; reported once until it is back. A server that asked the client
    /// to reconnect, and is back within about a second, is not reported.
    Lost {
        /// Why, for people.
        reason: String,
    },
    /// The connection is back; what was missed comes next.
    Recovered,
}

/// A session as it happens. Dropping it ends the connection.
#[derive(Debug)]
pub struct Follow {
    items: mpsc::Receiver<Result<Followed, ClientError>>,
}

impl Follow {
    pub(crate) fn start(
        http: Http,
        entropy: Arc<dyn Entropy>,
        session: SessionId,
        after: u64,
    ) -> Self {
        let (items, receiver) = mpsc::channel(QUEUE);
        let follower = Follower {
            http,
            entropy,
            session,
            cursor: Cursor::new(session, after),
            items,
            lost: false,
            failures: 0,
        };
        tokio::spawn(follower.run());
        Self { items: receiver }
    }

    /// Waits for the next item; `None` after the last one, which is an error. A caller may drop the future while it
    /// waits.
    ///
    /// # Errors
    /// Fails when reconnecting cannot help: the credential is not valid, there is no such session, the server speaks
    /// another protocol, or it was away for about 15 minutes.
    pub async fn next(&mut self) -> Option<Result<Followed, ClientError>> {
        self.items.recv().await
    }
}

struct Follower {
    http: Http,
    entropy: Arc<dyn Entropy>,
    session: SessionId,
    cursor: Cursor,
    items: mpsc::Sender<Result<Followed, ClientError>>,
    lost: bool,
    failures: u32,
}

/// The reason why a connection has ended.
enum FollowEnd {
    /// The consumer is gone.
    Unwatched,
    /// It failed; another one may help or not.
    Failed(ClientError),
    /// The server asks for another one within this time.
    Asked(Duration),
}

impl Follower {
    async fn run(mut self) {
        let items = self.items.clone();
        loop {
            let over = tokio::select! {
                over = self.connection() => over,
                () = items.closed() => FollowEnd::Unwatched,
            };
            let again = match over {
                FollowEnd::Unwatched => return,
                FollowEnd::Failed(error) => self.again_after(error).await,
                FollowEnd::Asked(within) => self.again_within(within).await,
            };
            if again.is_err() {
                return;
            }
        }
    }

    /// Reads one connection to its end.
    async fn connection(&mut self) -> FollowEnd {
        let Err(over) = self.read().await;
        over
    }

    async fn read(&mut self) -> Result<std::convert::Infallible, FollowEnd> {
        let mut socket = ClientSocket::connect(&self.http).await?;
        self.cursor.connected();
        let subscribe = ClientMessage::Subscribe {
            session: self.session,
            after: self.cursor.after(),
        };
        socket.say(&subscribe).await?;
        let mut items = Vec::new();
        let mut subscribed = false;
        loop {
            let message = socket.hear().await?;
            if let ServerMessage::Reconnect { within_ms } = message {
                return Err(FollowEnd::Asked(Duration::from_millis(within_ms.into())));
            }
            self.cursor
                .accept(message, &mut items)
                .map_err(|broken| self.broken(broken))?;
            if !subscribed && !items.is_empty() {
                subscribed = true;
                self.recovered().await?;
            }
            for item in items.drain(..) {
                self.hand_over(Ok(item)).await?;
            }
        }
    }

    async fn recovered(&mut self) -> Result<(), FollowEnd> {
        self.failures = 0;
        if std::mem::take(&mut self.lost) {
            self.hand_over(Ok(Followed::Recovered)).await?;
        }
        Ok(())
    }

    /// Waits before the next connection, or says that there is no use.
    async fn again_after(&mut self, error: ClientError) -> Result<(), FollowEnd> {
        self.failures += 1;
        if !error.is_passing() || self.failures > GIVE_UP_AFTER {
            return self
                .hand_over(Err(error))
                .await
                .and(Err(FollowEnd::Unwatched));
        }
        let reason = match error {
            ClientError::Unreachable { reason, .. } => reason,
            error => error.to_string(),
        };
        self.tell_lost(reason).await?;
        self.pause(backoff::before(self.failures, &*self.entropy))
            .await
    }

    /// Waits before the connection that the server asks for.
    async fn again_within(&mut self, within: Duration) -> Result<(), FollowEnd> {
        let wait = backoff::asked(within, &*self.entropy);
        if wait > UNTOLD_WAIT {
            self.tell_lost(ASKED.to_owned()).await?;
        }
        self.pause(wait).await
    }

    /// Says that there is no connection, once until it is back.
    async fn tell_lost(&mut self, reason: String) -> Result<(), FollowEnd> {
        match std::mem::replace(&mut self.lost, true) {
            true => Ok(()),
            false => self.hand_over(Ok(Followed::Lost { reason })).await,
        }
    }

    async fn pause(&self, wait: Duration) -> Result<(), FollowEnd> {
        tokio::select! {
            () = tokio::time::sleep(wait) => Ok(()),
            () = self.items.closed() => Err(FollowEnd::Unwatched),
        }
    }

    async fn hand_over(&self, item: Result<Followed, ClientError>) -> Result<(), FollowEnd> {
        self.items
            .send(item)
            .await
            .map_err(|_| FollowEnd::Unwatched)
    }

    fn broken(&self, broken: BrokenOrder) -> FollowEnd {
        FollowEnd::Failed(match broken {
            BrokenOrder::Gap { .. } => self.http.unreachable(broken.to_string()),
            BrokenOrder::Problem(problem) => ClientError::Refused(problem),
        })
    }
}

impl From<ClientError> for FollowEnd {
    fn from(error: ClientError) -> Self {
        Self::Failed(error)
    }
}
