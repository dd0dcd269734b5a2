//! The turns that one process carries at the same time. A turn that finds no place waits for one.
//!
//! A place that becomes free goes to the next tenant that waits, in turn, and within a tenant to the turn that has waited
//! longest. Of the turns of agents only a few of a tenant have a place at once. So a tenant with a thousand turns delays the first turn of another one by the end of one turn.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use shared_types::TenantId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// See the module. Clones share the places.
#[derive(Debug, Clone)]
pub(super) struct Permits(Arc<Mutex<Places>>);

/// The right to carry a turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    /// Absent while the turn waits for other servers.
    place: Option<Permit>,
    /// Of an agent's turn: one of the tenant's places for these.
    _of_agents: Option<OwnedSemaphorePermit>,
}

impl Held {
    /// Gives the place to another turn. The place among the tenant's agents stays with this one.
    pub(super) fn give_back_place(&mut self) {
        self.place = None;
    }

    /// Waits for a place again.
    pub(super) async fn take_place(&mut self, permits: &Permits, tenant: TenantId) {
        self.place = Some(permits.place(tenant).await);
    }
}

#[derive(Debug)]
struct Places {
    free: usize,
    /// Most turns of agents of one tenant that have a place at once.
    agents_at_once: usize,
    /// The places for agents of the tenants that use some.
    agents: HashMap<TenantId, Arc<Semaphore>>,
    /// The tenants that wait, in the order in which they are served. None of them is without a turn.
    waiting: VecDeque<(TenantId, VecDeque<oneshot::Sender<Permit>>)>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit(Option<Permits>);

impl Permits {
    /// So many places, and of these so many for the agents of each tenant.
    pub(super) fn new(at_once: usize, agents_at_once: usize) -> Self {
        Self(Arc::new(Mutex::new(Places {
            free: at_once,
            agents_at_once: agents_at_once.max(1),
            agents: HashMap::new(),
            waiting: VecDeque::new(),
        })))
    }

    /// A place, if one is free.
    pub(super) fn try_acquire(&self) -> Option<Permit> {
        let mut places = self.lock();
        places.free = places.free.checked_sub(1)?;
        Some(Permit(Some(self.clone())))
    }

    /// A place for a turn of this tenant, once it is its turn; of an agent's turn also one of the tenant's places for
    /// agents, before that. Cancel-safe.
    pub(super) async fn acquire(&self, tenant: TenantId, for_agent: bool) -> Held {
        let of_agents = match for_agent {
            true => {
                let agents = self.lock().of_agents(tenant);
                // Nothing closes it.
                agents.acquire_owned().await.ok()
            }
            false => None,
        };
        Held {
            place: Some(self.place(tenant).await),
            _of_agents: of_agents,
        }
    }

    async fn place(&self, tenant: TenantId) -> Permit {
        loop {
            let given = {
                let mut places = self.lock();
                if places.free > 0 {
                    places.free -= 1;
                    return Permit(Some(self.clone()));
                }
                let (give, given) = oneshot::channel();
                places.wait(tenant, give);
                given
            };
            // The sender goes with the permit alone.
            if let Ok(permit) = given.await {
                return permit;
            }
        }
    }

    /// Gives a place that has become free to the next one that waits.
    fn release(self) {
        let mut permits = self;
        loop {
            let next = {
                let mut places = permits.lock();
                let next = places.next();
                places.free += usize::from(next.is_none());
                next
            };
            let Some(next) = next else { return };
            // One that waits no longer gives it back: not by its drop, which would go one level deeper for each.
            let Err(mut back) = next.send(Permit(Some(permits))) else {
                return;
            };
            match back.0.take() {
                Some(back) => permits = back,
                None => return,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    /// The places of this tenant for agents. Those that no turn has or waits for are forgotten.
    fn of_agents(&mut self, tenant: TenantId) -> Arc<Semaphore> {
        self.agents
            .retain(|_, agents| Arc::strong_count(agents) > 1);
        let agents = self.agents.entry(tenant);
        let agents_at_once = self.agents_at_once;
        agents
            .or_insert_with(|| Arc::new(Semaphore::new(agents_at_once)))
            .clone()
    }

    fn wait(&mut self, tenant: TenantId, turn: oneshot::Sender<Permit>) {
        match self.waiting.iter_mut().find(|(of, _)| *of == tenant) {
            Some((_, turns)) => turns.push_back(turn),
            None => self.waiting.push_back((tenant, VecDeque::from([turn]))),
        }
    }

    fn next(&mut self) -> Option<oneshot::Sender<Permit>> {
        let (tenant, mut turns) = self.waiting.pop_front()?;
        let next = turns.pop_front();
        if !turns.is_empty() {
            self.waiting.push_back((tenant, turns));
        }
        next
    }
}

impl From<Permit> for Held {
    fn from(place: Permit) -> Self {
        Self {
            place: Some(place),
            _of_agents: None,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(permits) = self.0.take() {
            permits.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, future::BoxFuture};

    use super::*;

    /// A turn of this tenant that waits.
    fn waiting(permits: &Permits, tenant: u128) -> BoxFuture<'static, Permit> {
        let permits = permits.clone();
        let mut turn = async move { permits.place(TenantId::from_u128(tenant)).await }.boxed();
        assert!((&mut turn).now_or_never().is_none(), "no place is free");
        turn
    }

    #[test]
    fn tenants_take_turns_and_within_one_the_first_comes_first() {
        let permits = Permits::new(1, 1);
        let mut held = permits.try_acquire();
        assert!(held.is_some() && permits.try_acquire().is_none());
        let turns = [(1, "a"), (1, "b"), (1, "c"), (2, "x"), (3, "y"), (2, "z")];
        let mut turns = turns.map(|(tenant, name)| (name, Some(waiting(&permits, tenant))));
        let mut served = Vec::new();
        while let Some(permit) = held.take() {
            drop(permit);
            for (name, turn) in &mut turns {
                if let Some(permit) = turn.as_mut().and_then(|turn| turn.now_or_never()) {
                    (held, *turn) = (Some(permit), None);
                    served.push(*name);
                    break;
                }
            }
        }
        assert_eq!(served, ["a", "x", "y", "b", "z", "c"]);
        assert!(permits.try_acquire().is_some(), "the place is free again");
    }

    #[tokio::test]
    async fn a_tenant_has_few_agents_at_work_at_once_and_leaves_places_to_others() {
        let permits = Permits::new(4, 2);
        let of = |tenant, for_agent| {
            let permits = permits.clone();
            async move {
                permits
                    .acquire(TenantId::from_u128(tenant), for_agent)
                    .await
            }
            .boxed()
        };
        let (first, _second) = (of(1, true).await, of(1, true).await);
        let mut third = of(1, true);
        assert!((&mut third).now_or_never().is_none(), "two are at work");
        let _another = of(2, true).await;
        let own = of(1, false).await;
        drop(first);
        assert!((&mut third).now_or_never().is_some());
        drop((own, third));
        assert!(permits.lock().agents.len() <= 2);
    }

    #[test]
    fn a_place_is_not_lost_with_a_turn_that_waits_no_longer() {
        let permits = Permits::new(1, 1);
        let held = permits.try_acquire();
        let (gone, last) = (waiting(&permits, 1), waiting(&permits, 1));
        drop(gone);
        drop(held);
        let permit = last.now_or_never().expect("it has the place");
        assert!(permits.try_acquire().is_none());
        drop(permit);
        // One that had its place and did not take it.
        let held = permits.try_acquire();
        let given = waiting(&permits, 1);
        drop(held);
        drop(given);
        assert!(permits.try_acquire().is_some());
    }
}
