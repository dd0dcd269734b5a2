//! Those who watch lists, by tenant and person, and the people whom a change concerns.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use server_records::{Change, Whose};
use server_store::Store;
use shared_types::{SessionId, TenantId, Topic, UserId};
use tokio::{
    sync::{
        Notify,
        mpsc::{self, error::TrySendError},
    },
    time::Instant,
};

use super::{ChangeHint, pending::Pending};

/// Changes that may wait until it is known whom they concern; everyone of the tenant hears of more.
const UNADDRESSED: usize = 1024;

/// Owners that are known without asking the store again.
const OWNERS_KNOWN: usize = 16 * 1024;

/// A cheap handle.
#[derive(Clone)]
pub(crate) struct ChangeHub {
    watchers: Arc<Mutex<Watchers>>,
    unaddressed: mpsc::Sender<Change>,
}

type Watchers = HashMap<TenantId, HashMap<UserId, Vec<Arc<Watcher>>>>;

/// Changes of which it is not known yet whom they concern.
pub(crate) struct Unaddressed(mpsc::Receiver<Change>);

/// One client that watches lists.
#[derive(Debug)]
pub(super) struct Watcher {
    topics: BTreeSet<Topic>,
    pending: Mutex<Pending>,
    more: Notify,
}

/// The place of a watcher in the hub, which it leaves when this is dropped.
pub(super) struct Place {
    hub: ChangeHub,
    tenant: TenantId,
    user: UserId,
    watcher: Arc<Watcher>,
}

impl ChangeHub {
    /// A hub, and the changes that [`Unaddressed::addressed`] has to work on.
    pub(crate) fn new() -> (Self, Unaddressed) {
        let (unaddressed, waiting) = mpsc::channel(UNADDRESSED);
        let hub = Self {
            watchers: Arc::default(),
            unaddressed,
        };
        (hub, Unaddressed(waiting))
    }

    /// These lists may be different. It never waits.
    pub(crate) fn tell(&self, changes: Vec<Change>) {
        for change in changes {
            match change.whose {
                Whose::Everyone => self.mark(&change, None),
                Whose::User(user) => self.mark(&change, Some(user)),
                // Whoever begins to watch now reads afterwards.
                _ if !self.is_watched(&change) => {}
                _ => match self.unaddressed.try_send(change) {
                    Ok(()) => {}
                    Err(TrySendError::Full(change) | TrySendError::Closed(change)) => {
                        self.mark(&change, None);
                    }
                },
            }
        }
    }

    pub(super) fn enter(&self, tenant: TenantId, user: UserId, watcher: &Arc<Watcher>) -> Place {
        let mut watchers = self.lock();
        let of_user = watchers.entry(tenant).or_default().entry(user).or_default();
        of_user.push(watcher.clone());
        Place {
            hub: self.clone(),
            tenant,
            user,
            watcher: watcher.clone(),
        }
    }

    /// True if anyone of the tenant watches the list.
    fn is_watched(&self, change: &Change) -> bool {
        let watchers = self.lock();
        let mut all = concerned(&watchers, change.tenant, None);
        all.any(|watcher| watcher.topics.contains(&change.topic))
    }

    /// Notes the change for this person, or for everyone.
    fn mark(&self, change: &Change, user: Option<UserId>) {
        let session = match (user, change.whose) {
            (Some(_), Whose::OfSession(session)) => Some(session),
            _ => None,
        };
        let watchers = self.lock();
        for watcher in concerned(&watchers, change.tenant, user) {
            watcher.add(change, session);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Watchers> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The watchers of this person, or of all, in this tenant, or in all.
fn concerned(
    watchers: &Watchers,
    tenant: Option<TenantId>,
    user: Option<UserId>,
) -> impl Iterator<Item = &Arc<Watcher>> {
    let (one, all) = match tenant {
        Some(tenant) => (watchers.get(&tenant), None),
        None => (None, Some(watchers.values())),
    };
    let tenants = one.into_iter().chain(all.into_iter().flatten());
    let people = tenants.flat_map(move |people| {
        let (one, all) = match user {
            Some(user) => (people.get(&user), None),
            None => (None, Some(people.values())),
        };
        one.into_iter().chain(all.into_iter().flatten())
    });
    people.flatten()
}

impl Unaddressed {
    /// Finds whom each change concerns, and notes it for them. Where that cannot be found, everyone hears of it.
    pub(crate) async fn addressed(mut self, store: Store, hub: ChangeHub) {
        let mut owners = HashMap::<Whose, UserId>::new();
        while let Some(change) = self.0.recv().await {
            let Some(tenant) = change.tenant else {
                hub.mark(&change, None);
                continue;
            };
            let owner = match owners.get(&change.whose) {
                Some(owner) => Some(*owner),
                None => match store.reader_of(tenant, change.whose).await {
                    Ok(owner) => owner,
                    Err(error) => {
                        tracing::debug!(%error, "the owner of a change cannot be read; everyone hears of it");
                        None
                    }
                },
            };
            if let Some(owner) = owner {
                if owners.len() >= OWNERS_KNOWN {
                    owners.clear();
                }
                owners.insert(change.whose, owner);
            }
            hub.mark(&change, owner);
        }
    }
}

impl Watcher {
    /// One that is to hear of all these lists at once.
    pub(super) fn of(topics: BTreeSet<Topic>, now: Instant) -> Arc<Self> {
        Arc::new(Self {
            pending: Mutex::new(Pending::of(&topics, now)),
            topics,
            more: Notify::new(),
        })
    }

    fn add(&self, change: &Change, session: Option<SessionId>) {
        if self.topics.contains(&change.topic) {
            self.pending().add(change.topic, change.pace, session);
            self.more.notify_one();
        }
    }

    /// See [`Pending::take`].
    pub(super) fn take(&self, now: Instant) -> Result<ChangeHint, Option<Instant>> {
        self.pending().take(now)
    }

    /// Waits until there is more to tell than at the last [`Watcher::take`].
    pub(super) async fn more(&self) {
        self.more.notified().await;
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut watchers = self.hub.lock();
        let Some(people) = watchers.get_mut(&self.tenant) else {
            return;
        };
        if let Some(of_user) = people.get_mut(&self.user) {
            of_user.retain(|watcher| !Arc::ptr_eq(watcher, &self.watcher));
            if of_user.is_empty() {
                people.remove(&self.user);
            }
        }
        if people.is_empty() {
            watchers.remove(&self.tenant);
        }
    }
}
