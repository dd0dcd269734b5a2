//! The relay of one turn that another server works on, to those who follow its session here.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use server_agent::feed::LiveHub;
use server_store::{HeldTurn, Store, StoreError};
use shared_types::{Entropy, backoff::full_jitter};
use tokio::{sync::Notify, time::sleep};

use super::{FollowError, Peer};

/// The longest pause before the first further attempt at a stream that is broken.
const AGAIN_FIRST: Duration = Duration::from_millis(200);
/// The longest pause before any.
const AGAIN_LONGEST: Duration = Duration::from_secs(3);
/// Failures in a row after which the log says that the other server does not answer. One that stops in order fails
/// fewer times before its turns are taken over.
const FAILURES_TOLD: u32 = 3;
/// Events that are read at once.
const EVENTS_AT_ONCE: u32 = 64;

/// See the module.
pub(super) struct Relay {
    pub(super) store: Store,
    pub(super) hub: LiveHub,
    pub(super) peer: Arc<dyn Peer>,
    pub(super) entropy: Arc<dyn Entropy>,
    pub(super) held: HeldTurn,
    /// Told when the session's log has grown.
    pub(super) grown: Arc<Notify>,
}

impl Relay {
    /// Relays until it is dropped: the stored turn says how long.
    pub(super) async fn run(self) {
        tokio::join!(self.read_log(), self.pass_on());
    }

    /// Tells the hub which pieces the log has replaced.
    async fn read_log(&self) {
        let of = self.held.of;
        let mut cursor = self.held.input_seq.saturating_sub(1);
        loop {
            let read = self.settle(&mut cursor).await;
            if let Err(error) = read {
                // The next hint, or the next look, finds the same.
                tracing::debug!(session.id = %of.session, %error, "the log of a relayed session cannot be read");
            }
            self.grown.notified().await;
        }
    }

    async fn settle(&self, cursor: &mut u64) -> Result<(), StoreError> {
        let of = self.held.of;
        loop {
            let (store, after) = (&self.store, *cursor);
            let page = store.events_after(of.tenant, of.session, after, EVENTS_AT_ONCE);
            let page = page.await?;
            let is_last = page.len() < EVENTS_AT_ONCE as usize;
            if let Some(newest) = page.last() {
                *cursor = newest.seq;
                self.hub.settle_relayed(of.session, page).await;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    async fn pass_on(&self) {
        let mut failures = 0;
        loop {
            let error = match self.peer.follow(self.held.of).await {
                Ok(mut pieces) => loop {
                    match pieces.next().await {
                        Some(Ok(live)) => {
                            failures = 0;
                            self.hub.relay(self.held.of.session, live).await;
                        }
                        Some(Err(error)) => break error,
                        None => break FollowError("it has ended the stream".to_owned()),
                    }
                },
                Err(error) => error,
            };
            failures += 1;
            self.tell(&error, failures);
            let mut random = [0; 8];
            self.entropy.fill(&mut random);
            let random = u64::from_be_bytes(random);
            sleep(full_jitter(AGAIN_FIRST, AGAIN_LONGEST, failures, random)).await;
        }
    }

    fn tell(&self, error: &FollowError, failures: u32) {
        let (session, replica) = (self.held.of.session, self.held.replica);
        if failures == FAILURES_TOLD {
            tracing::warn!(replica.id = %replica, address = self.held.address, session.id = %session, %error, "another server does not answer; its text and output are shown once they are in the log");
        } else {
            tracing::debug!(replica.id = %replica, session.id = %session, %error, "a relay is broken; trying again");
        }
    }
}
