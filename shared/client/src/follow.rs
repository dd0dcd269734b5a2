//! A session as it happens: a task owns the connection, opens it anew when it is lost, and hands
//! over each item once, through a bounded channel.

use std::sync::Arc;

use shared_api::{ClientMessage, Live};
use shared_types::{Entropy, SessionEvent, SessionId};
use tokio::sync::mpsc;

use crate::{
    ClientError, backoff,
    cursor::{Broken, Cursor},
    http::Http,
    socket::Socket,
};

/// Items that may wait for a slow consumer before the connection is read no further.
const QUEUE: usize = 256;

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
    /// The connection is lost and is being opened anew; said once until it is back.
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

    /// The next item. Safe to abandon while it waits. `None` after the last one, which is an
    /// error.
    ///
    /// # Errors
    /// What connecting again cannot mend: the credential does not hold, there is no such session,
    /// the server speaks another protocol, or it has been gone for about 15 minutes.
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

/// Why a connection is over.
enum Over {
    /// Nobody listens any more.
    Unwatched,
    /// It failed; another one may help or not.
    Failed(ClientError),
}

impl Follower {
    async fn run(mut self) {
        let items = self.items.clone();
        loop {
            let over = tokio::select! {
                over = self.connection() => over,
                () = items.closed() => Over::Unwatched,
            };
            let Over::Failed(error) = over else { return };
            if self.again_after(error).await.is_err() {
                return;
            }
        }
    }

    /// Reads one connection to its end.
    async fn connection(&mut self) -> Over {
        let Err(over) = self.read().await;
        over
    }

    async fn read(&mut self) -> Result<std::convert::Infallible, Over> {
        let mut socket = Socket::connect(&self.http).await?;
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

    async fn recovered(&mut self) -> Result<(), Over> {
        self.failures = 0;
        if std::mem::take(&mut self.lost) {
            self.hand_over(Ok(Followed::Recovered)).await?;
        }
        Ok(())
    }

    /// Waits before the next connection, or says that there is no use.
    async fn again_after(&mut self, error: ClientError) -> Result<(), Over> {
        self.failures += 1;
        if !error.is_passing() || self.failures > GIVE_UP_AFTER {
            return self.hand_over(Err(error)).await.and(Err(Over::Unwatched));
        }
        if !std::mem::replace(&mut self.lost, true) {
            let reason = match error {
                ClientError::Unreachable { reason, .. } => reason,
                error => error.to_string(),
            };
            self.hand_over(Ok(Followed::Lost { reason })).await?;
        }
        let wait = backoff::before(self.failures, &*self.entropy);
        tokio::select! {
            () = tokio::time::sleep(wait) => Ok(()),
            () = self.items.closed() => Err(Over::Unwatched),
        }
    }

    async fn hand_over(&self, item: Result<Followed, ClientError>) -> Result<(), Over> {
        self.items.send(item).await.map_err(|_| Over::Unwatched)
    }

    fn broken(&self, broken: Broken) -> Over {
        Over::Failed(match broken {
            Broken::Gap { .. } => self.http.unreachable(broken.to_string()),
            Broken::Problem(problem) => ClientError::Refused(problem),
        })
    }
}

impl From<ClientError> for Over {
    fn from(error: ClientError) -> Self {
        Self::Failed(error)
    }
}
