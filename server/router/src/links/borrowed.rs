//! Links that other replicas hold, and lend to this one.
//!
//! While a caller here follows a runner that has no link here, one task searches the rows for the link. If another replica
//! holds it, the task borrows it. A borrowed link then serves as a link of this replica. The holder still keeps output and
//! lets the runner forget.
//!
//! A borrowed link is over with the call to its holder. Operations go on: they attach to the next link, by id and offset.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream::BoxStream};
use proto::v1;
use server_records::{LinkHolder, LinkState};
use shared_link::server::Linked;
use shared_types::{Generation, OperationId, RunnerId, backoff::full_jitter};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};

use super::{Links, RunnerConnection, handle::LinkHandle, registry::Borrowing};

/// The way to the replicas that hold links.
#[async_trait]
pub trait LinkHolders: Send + Sync {
    /// Borrows a link. `orders` are frames for the runner; the call ends with their sender. Once this returns, the
    /// holder lends exactly the link that is named, until the answers end.
    ///
    /// # Errors
    /// The reason, in words: the holder cannot be reached, or does not hold the link.
    async fn borrow(
        &self,
        link: &LinkHolder,
        orders: mpsc::Receiver<Box<v1::ServerFrame>>,
    ) -> Result<BoxStream<'static, LentAnswer>, NotLent>;
}

/// Something that comes over a borrowed link.
#[derive(Debug, Clone, PartialEq)]
pub enum LentAnswer {
    /// A frame, as the runner would send it.
    Frame(v1::RunnerFrame),
    /// Another reader has taken this operation over, whose output is kept nowhere.
    Superseded(OperationId),
}

/// The reason why a link is not lent.
#[derive(Debug, Clone)]
pub struct NotLent(pub String);

/// Orders that wait on their way to the holder.
const ORDERS: usize = 64;

/// The pause between looks at the row of a runner without a link. Hints make most of them earlier.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The pause between two checks whether a borrowed link still has a follower.
const IN_USE_CHECKED_EVERY: Duration = Duration::from_secs(30);

/// The longest pause before the first further attempt where a link could not be borrowed or broke.
const AGAIN_FIRST: Duration = Duration::from_millis(100);

/// The longest pause before any. The holder may have died: then its lease ends, and the row with it.
const AGAIN_LONGEST: Duration = Duration::from_secs(2);

/// A borrowed link that lasted for so long is looked for again at once.
const USED_WELL_AFTER: Duration = Duration::from_secs(1);

/// The longest time in which a holder lends. Callers wait about as long for a runner that is just linking.
const LENT_WITHIN: Duration = Duration::from_secs(5);

/// The search for one runner's link.
pub(super) struct Borrower {
    pub(super) links: Links,
    pub(super) holders: Arc<dyn LinkHolders>,
    pub(super) runner: RunnerId,
    pub(super) search: Borrowing,
}

/// A borrowed link that is used: closed also if the task is dropped.
struct InUse(LinkHandle);

/// The way in which the use of a borrowed link ended.
enum Used {
    /// The link is over.
    ToItsEnd,
    /// Nobody follows the connection any more, and the search is over.
    NoMore,
}

impl Borrower {
    /// Looks until nobody follows the connection any more, or the runner has linked here.
    pub(super) async fn run(self) {
        let over = self.search.over.clone();
        over.run_until_cancelled_owned(self.look_again_and_again())
            .await;
    }

    async fn look_again_and_again(self) {
        let mut failures = 0;
        loop {
            let pause = match self.links.serving.rows.holder(self.runner).await {
                Ok(LinkState::Elsewhere(link)) if link.address.is_some() => {
                    let began = Instant::now();
                    match self.borrow(&link).await {
                        Ok(Used::NoMore) => return,
                        Ok(Used::ToItsEnd) if began.elapsed() > USED_WELL_AFTER => {
                            failures = 0;
                            continue;
                        }
                        Ok(Used::ToItsEnd) => {}
                        Err(NotLent(why)) => {
                            tracing::debug!(runner.id = %self.runner, replica.id = %link.replica, why, "a link is not lent; trying again");
                        }
                    }
                    failures += 1;
                    self.spread(failures)
                }
                // It takes its place here in a moment, or its end could not be stored.
                Ok(LinkState::Here(_)) => {
                    failures += 1;
                    self.spread(failures)
                }
                Ok(LinkState::Elsewhere(_) | LinkState::Absent) => LOOK_EVERY,
                Ok(LinkState::Barred(why)) => {
                    let (registry, none) = (&self.links.registry, Generation(0));
                    registry.turned_away(self.runner, none, why).await;
                    LOOK_EVERY
                }
                Err(error) => {
                    tracing::debug!(runner.id = %self.runner, %error, "the row of a link cannot be read; trying again");
                    AGAIN_LONGEST
                }
            };
            self.tell(RunnerConnection::Offline { since: None }).await;
            if self.is_over().await {
                return;
            }
            tokio::select! {
                () = self.search.changed.notified() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Uses the link until it is over or of no use.
    async fn borrow(&self, link: &LinkHolder) -> Result<Used, NotLent> {
        let (outbound, orders) = mpsc::channel(ORDERS);
        let lent = timeout(LENT_WITHIN, self.holders.borrow(link, orders)).await;
        let mut answers = lent.map_err(|_| NotLent("it does not answer".to_owned()))??;
        let linked = Linked {
            generation: link.generation,
            incarnation: link.incarnation.clone(),
        };
        let link = InUse(LinkHandle::borrow(linked, outbound));
        self.tell(RunnerConnection::Online(link.0.clone())).await;
        loop {
            let answer = tokio::select! {
                answer = answers.next() => answer,
                () = sleep(IN_USE_CHECKED_EVERY) => {
                    if self.is_over().await {
                        return Ok(Used::NoMore);
                    }
                    continue;
                }
            };
            let heard = match answer {
                Some(LentAnswer::Frame(frame)) => {
                    link.0.with(|open| open.frame(frame, Duration::ZERO))
                }
                Some(LentAnswer::Superseded(id)) => link.0.with(|open| {
                    open.machine.superseded(id);
                    Ok(())
                }),
                None => break,
            };
            if let Ok(Err(over)) = heard {
                tracing::warn!(runner.id = %self.runner, ?over, "a replica that lends a link broke the protocol");
                break;
            }
        }
        // Callers wait while the row is read again.
        self.tell(RunnerConnection::Linking).await;
        Ok(Used::ToItsEnd)
    }

    async fn tell(&self, connection: RunnerConnection) {
        let registry = &self.links.registry;
        registry
            .borrowed(self.runner, &self.search, connection)
            .await;
    }

    async fn is_over(&self) -> bool {
        let registry = &self.links.registry;
        registry.end_borrowing(self.runner, &self.search).await
    }

    fn spread(&self, attempt: u32) -> Duration {
        let mut random = [0; 8];
        self.links.serving.entropy.fill(&mut random);
        full_jitter(
            AGAIN_FIRST,
            AGAIN_LONGEST,
            attempt,
            u64::from_be_bytes(random),
        )
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.close();
    }
}
