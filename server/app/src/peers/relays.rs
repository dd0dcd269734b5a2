//! The choice of what is relayed: the work of other servers on the sessions that people follow here.
//!
//! The stored turns decide. Hints and followers that come and go only say at which of them to look, and every few
//! seconds a look at all finds the rest.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use server_records::SessionKey;
use server_store::{HeldTurn, StoreError};
use tokio::{
    sync::Notify,
    time::{MissedTickBehavior, interval},
};
use tokio_util::task::AbortOnDropHandle;

use super::{Peers, known::KnownPeers, relay::Relay};

/// Sessions that are relayed at once. Those who follow more see their text once it is in the log.
const RELAYS_AT_ONCE: usize = 512;

/// The pause between looks at all sessions that are followed or relayed.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Sessions that one statement asks for.
const SESSIONS_AT_ONCE: usize = 4096;

/// See the module.
pub(super) struct Relays {
    of: Peers,
    peers: Arc<KnownPeers>,
    running: HashMap<SessionKey, Running>,
}

/// A relay that runs.
struct Running {
    held: HeldTurn,
    grown: Arc<Notify>,
    task: AbortOnDropHandle<()>,
}

impl Relays {
    pub(super) fn new(of: &Peers, peers: Arc<KnownPeers>) -> Self {
        Self {
            of: of.clone(),
            peers,
            running: HashMap::new(),
        }
    }

    /// Begins and ends relays until it is dropped.
    pub(super) async fn run(mut self) {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let sessions = tokio::select! {
                _ = looks.tick() => self.all(),
                changed = self.of.seen.to_look_at() => changed,
            };
            if let Err(error) = self.look_at(sessions).await {
                // The next look at all finds the same.
                tracing::debug!(%error, "the turns of other servers cannot be read");
            }
        }
    }

    fn all(&self) -> BTreeSet<SessionKey> {
        let followed = self.of.seen.followed().into_iter();
        followed.chain(self.running.keys().copied()).collect()
    }

    async fn look_at(&mut self, sessions: BTreeSet<SessionKey>) -> Result<(), StoreError> {
        let sessions: Vec<_> = sessions.into_iter().collect();
        for some in sessions.chunks(SESSIONS_AT_ONCE) {
            let (store, here) = (&self.of.store, self.of.replica);
            let held = store.turns_held_elsewhere(here, some.iter().copied());
            let held = held.await?.into_iter().map(|held| (held.of, held));
            let mut held: HashMap<_, _> = held.collect();
            for of in some {
                let is_followed = self.of.seen.is_followed(*of);
                let held = held.remove(of).filter(|_| is_followed);
                self.relay(*of, held).await;
            }
        }
        let relayed = self.running.keys().copied().collect();
        self.of.seen.relayed(relayed);
        Ok(())
    }

    /// Relays this turn of the session, or none.
    async fn relay(&mut self, of: SessionKey, held: Option<HeldTurn>) {
        if let Some(running) = self.running.get(&of) {
            if held.as_ref() == Some(&running.held) && !running.task.is_finished() {
                running.grown.notify_one();
                return;
            }
            self.end(of).await;
        }
        if let Some(held) = held
            && self.running.len() < RELAYS_AT_ONCE
        {
            self.begin(held);
        }
    }

    fn begin(&mut self, held: HeldTurn) {
        let peer = self.peers.at(held.replica, &held.address);
        let grown = Arc::new(Notify::new());
        let relay = Relay {
            store: self.of.store.clone(),
            hub: self.of.hub.clone(),
            peer,
            entropy: self.of.entropy.clone(),
            held: held.clone(),
            grown: grown.clone(),
        };
        let task = AbortOnDropHandle::new(tokio::spawn(relay.run()));
        self.running.insert(held.of, Running { held, grown, task });
    }

    async fn end(&mut self, of: SessionKey) {
        if let Some(running) = self.running.remove(&of) {
            running.task.abort();
            // Once it is over no piece of it comes any more.
            let _ = running.task.await;
            self.of.hub.end_relay(of.session).await;
        }
    }
}
