//! The hints of other servers, applied to the parts of this one that wait for commits.

use std::{sync::Arc, time::Duration};

use server_agent::{Turns, feed::LiveHub};
use server_records::{Change, Hint, HintBatch, HintNews, Pace, SessionKey, Whose};
use server_router::links::Links;
use shared_telemetry::server::{HINT_BATCHES, HINTS};
use shared_types::{ReplicaId, Topic};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep_until},
};

use super::SeenLogs;
use crate::{access::RightsChanges, changes::ChangeHub, commits::Commits, elsewhere::Elsewhere};

/// The least time between two times that anything may be different: then every follower reads.
pub(super) const ALL_EVERY: Duration = Duration::from_secs(1);

/// The pause before a look at waits of which another server told. That one looks at once, and mostly claims the turn.
pub(super) const WAITS_AFTER: Duration = Duration::from_millis(100);

/// The parts of this server that wait for commits of other servers. The cache of logs is none of them: it asks the
/// store for what came since.
#[derive(Clone)]
pub(crate) struct Listeners {
    pub(super) turns: Turns,
    hub: LiveHub,
    changes: ChangeHub,
    rights: RightsChanges,
    seen: SeenLogs,
    links: Links,
    elsewhere: Elsewhere,
    /// A replica has stopped, or is to drain.
    pub(crate) replicas: Arc<Notify>,
}

/// Reads what comes, and applies it.
pub(super) struct HintReader {
    listeners: Listeners,
    replica: ReplicaId,
    all_told: Option<Instant>,
    all_due: Option<Instant>,
    waits_due: Option<Instant>,
}

impl Listeners {
    pub(super) fn of(commits: &Commits, turns: &Turns, links: &Links) -> Self {
        Self {
            turns: turns.clone(),
            hub: commits.hub.clone(),
            changes: commits.changes.clone(),
            rights: commits.rights.clone(),
            seen: commits.seen.clone(),
            links: links.clone(),
            elsewhere: commits.elsewhere.clone(),
            replicas: Arc::default(),
        }
    }

    /// Another server has added to the log of the session.
    pub(super) async fn session(&self, of: SessionKey) {
        self.hub.appended(of.session, Vec::new()).await;
        self.seen.appended_elsewhere(of);
        self.turns.changed_elsewhere(of).await;
    }

    /// Other servers may have changed anything.
    pub(crate) async fn all(&self) {
        self.hub.all_appended().await;
        self.turns.all_changed_elsewhere().await;
        self.hub.look_at_waits();
        self.links.all_changed_elsewhere().await;
        self.rights.tell(None);
        self.elsewhere.tell();
        let lists = Topic::ALL.map(|topic| Change {
            tenant: None,
            topic,
            whose: Whose::Everyone,
            pace: Pace::Prompt,
        });
        self.changes.tell(lists.into());
    }
}

impl HintReader {
    pub(super) fn new(listeners: Listeners, replica: ReplicaId) -> Self {
        Self {
            listeners,
            replica,
            all_told: None,
            all_due: None,
            waits_due: None,
        }
    }

    /// Applies all that comes, until the sender is gone.
    pub(super) async fn read(mut self, mut news: mpsc::Receiver<HintNews>) {
        loop {
            let due = self.all_due.into_iter().chain(self.waits_due).min();
            tokio::select! {
                one = news.recv() => match one {
                    Some(HintNews::Listens) => self.apply(Hint::All).await,
                    Some(HintNews::Heard(text)) => self.hear(&text).await,
                    None => return,
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
            self.apply_due().await;
        }
    }

    async fn hear(&mut self, text: &str) {
        let batch = HintBatch::read(text);
        if batch.is_from(self.replica) {
            return;
        }
        HINTS.add(&["received"], batch.hints.len() as u64);
        HINT_BATCHES.add(&["received"], 1);
        for hint in batch.hints {
            self.apply(hint).await;
        }
    }

    async fn apply(&mut self, hint: Hint) {
        match hint {
            Hint::All => {
                let now = Instant::now();
                let due = self.all_told.map_or(now, |told| told + ALL_EVERY);
                self.all_due = Some(due.max(now));
            }
            Hint::Session(of) => self.listeners.session(of).await,
            Hint::Waits => {
                self.waits_due
                    .get_or_insert_with(|| Instant::now() + WAITS_AFTER);
            }
            Hint::Link(runner) => {
                let links = self.listeners.links.clone();
                // Beside the hints that follow, because it reads a row.
                tokio::spawn(async move { links.changed_elsewhere(runner).await });
            }
            Hint::Cancels => self.listeners.elsewhere.tell(),
            Hint::Rights(tenant) => {
                self.listeners.rights.tell(tenant);
                self.listeners.elsewhere.tell();
            }
            Hint::Turn(of) => self.listeners.turns.offered(of).await,
            Hint::Replicas => self.listeners.replicas.notify_one(),
            Hint::List(change) => self.listeners.changes.tell(vec![change]),
        }
    }

    async fn apply_due(&mut self) {
        let now = Instant::now();
        if self.all_due.is_some_and(|due| due <= now) {
            (self.all_told, self.all_due) = (Some(now), None);
            self.listeners.all().await;
        }
        if self.waits_due.is_some_and(|due| due <= now) {
            self.waits_due = None;
            self.listeners.hub.look_at_waits();
        }
    }
}
