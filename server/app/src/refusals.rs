//! The audit of refusals: to people and their keys, to runners, and to peers that claim to be one
//! (docs/internals/contracts.md#b1).
//!
//! Every refusal counts, but a flood must not fill the disk. In a minute, the first refusal of a kind is
//! recorded at once. Those that follow are counted and recorded together when the minute is over. Of one
//! person only some kinds are told apart, and of strangers some addresses; those beyond that count as one.
//! A stranger has no tenant: its refusals go to the log of the tenant that runs the server, the first.

use std::{
    borrow::Cow,
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Map, Value};
use server_store::{Actor, AuditEntry, AuditOrigin, Store, StoreError};
use shared_types::{Clock, CredentialId, TenantId};
use tokio::{
    sync::Notify,
    time::{Instant, MissedTickBehavior, interval_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{OpContext, Parts, rights::Action};

/// For how long refusals are counted together.
const TOGETHER: Duration = Duration::from_secs(60);

/// Refusals of strangers, by address, reason and subject, that are told apart within [`TOGETHER`]; the
/// rest is counted as [`ELSEWHERE`].
const TOLD_APART: usize = 32;

/// Refusals of one person, by action, reason and subject, that are told apart within [`TOGETHER`].
const TOLD_APART_OF_ONE: usize = 16;

/// The name of all addresses beyond [`TOLD_APART`].
const ELSEWHERE: &str = "elsewhere";

/// The audit log's word for a refused request of a person.
const ACCESS: &str = "access.refused";

/// Something that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Refusal {
    /// The kind, such as `enrolment.refused`.
    pub(crate) kind: &'static str,
    /// The reason.
    pub(crate) reason: Cow<'static, str>,
    /// The tenant in whose log it belongs; none for strangers.
    pub(crate) tenant: Option<TenantId>,
    /// The actor of the request.
    pub(crate) actor: Actor,
    /// With which credential, where that is known.
    pub(crate) credential: Option<CredentialId>,
    /// The action that a person asked for.
    pub(crate) action: Option<Action>,
    /// The id of the object of the request, if it is known here.
    pub(crate) subject: String,
    /// The address of the request; see [`place`].
    pub(crate) from: String,
}

impl Refusal {
    /// A refusal of a peer that has not proved to be a user or a runner.
    pub(crate) fn of_stranger(kind: &'static str, reason: &'static str, from: String) -> Self {
        Self {
            kind,
            reason: reason.into(),
            tenant: None,
            actor: Actor::System,
            credential: None,
            action: None,
            subject: String::new(),
            from,
        }
    }

    /// A refusal of a person who has signed in.
    pub(crate) fn of_person(
        ctx: &OpContext,
        action: Action,
        reason: impl Into<Cow<'static, str>>,
        subject: String,
    ) -> Self {
        Self {
            reason: reason.into(),
            tenant: Some(ctx.tenant),
            actor: Actor::User(ctx.user),
            credential: Some(ctx.credential),
            action: Some(action),
            subject,
            ..Self::of_stranger(ACCESS, "", place(ctx.from))
        }
    }

    /// The same, told apart from fewer.
    fn coarse(mut self) -> Self {
        if self.actor == Actor::System {
            self.from = ELSEWHERE.to_owned();
        }
        self.action = None;
        self.credential = None;
        self.subject.clear();
        self
    }
}

/// Takes refusals, and wakes the task that records them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals {
    counted: Arc<Mutex<Counted>>,
    wake: Arc<Notify>,
}

/// The refusals of this minute, within the bounds of the module.
#[derive(Debug, Default)]
struct Counted {
    /// The number of each since the first one.
    more: HashMap<Refusal, u64>,
    /// First ones that are not recorded yet.
    fresh: Vec<Refusal>,
}

impl Refusals {
    /// Starts to record; with `stop`, what was counted is recorded.
    pub(crate) fn of(parts: &Parts, tasks: &TaskTracker) -> Self {
        let (store, clock) = (parts.store.clone(), parts.clock.clone());
        Self::start(store, clock, parts.stop.clone(), tasks)
    }

    fn start(
        store: Store,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
        tasks: &TaskTracker,
    ) -> Self {
        let told = Self::default();
        let recorder = Recorder {
            store,
            clock,
            told: told.clone(),
        };
        tasks.spawn(recorder.run(stop));
        told
    }

    /// Tells of a refusal.
    pub(crate) fn tell(&self, refusal: Refusal) {
        if self.locked().count(refusal) {
            self.wake.notify_one();
        }
    }

    fn locked(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    /// True if the refusal must be recorded at once.
    fn count(&mut self, mut refusal: Refusal) -> bool {
        if !self.more.contains_key(&refusal) {
            let bound = match refusal.actor {
                Actor::System => TOLD_APART,
                Actor::User(_) | Actor::Runner(_) => TOLD_APART_OF_ONE,
            };
            let others = self.more.keys().filter(|one| one.actor == refusal.actor);
            if others.count() >= bound {
                refusal = refusal.coarse();
            }
        }
        if let Some(more) = self.more.get_mut(&refusal) {
            *more += 1;
            return false;
        }
        self.more.insert(refusal.clone(), 0);
        self.fresh.push(refusal);
        true
    }
}

/// An address as limits and logs know it: of IPv6, the network that one customer gets whole.
pub(crate) fn place(address: Option<IpAddr>) -> String {
    match address.map(|address| address.to_canonical()) {
        None => String::new(),
        Some(IpAddr::V4(address)) => address.to_string(),
        Some(IpAddr::V6(address)) => {
            let network = address.to_bits() >> 64 << 64;
            format!("{}/64", std::net::Ipv6Addr::from_bits(network))
        }
    }
}

struct Recorder {
    store: Store,
    clock: Arc<dyn Clock>,
    told: Refusals,
}

impl Recorder {
    async fn run(self, stop: CancellationToken) {
        let mut over = interval_at(Instant::now() + TOGETHER, TOGETHER);
        over.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.told.wake.notified() => self.record_fresh().await,
                _ = over.tick() => self.record_all().await,
                () = stop.cancelled() => break,
            }
        }
        self.record_all().await;
    }

    async fn record_fresh(&self) {
        let fresh = std::mem::take(&mut self.told.locked().fresh);
        for refusal in fresh {
            self.record(&refusal, 1).await;
        }
    }

    async fn record_all(&self) {
        self.record_fresh().await;
        let counted = std::mem::take(&mut *self.told.locked());
        for refusal in &counted.fresh {
            self.record(refusal, 1).await;
        }
        for (refusal, more) in counted.more {
            if more > 0 {
                self.record(&refusal, more).await;
            }
        }
    }

    async fn record(&self, refusal: &Refusal, count: u64) {
        let Refusal {
            kind,
            reason,
            from: address,
            subject,
            ..
        } = refusal;
        if let Err(error) = self.write(refusal, count).await {
            tracing::error!(%error, kind, %reason, address, subject, count, "a refusal cannot be recorded");
        }
    }

    async fn write(&self, refusal: &Refusal, count: u64) -> Result<(), StoreError> {
        let tenant = match refusal.tenant {
            Some(tenant) => tenant,
            None => match self.store.first_owner().await? {
                Some((tenant, _)) => tenant,
                // There is no tenant yet that could read it.
                None => return Ok(()),
            },
        };
        let mut detail = Map::new();
        if let Some(action) = refusal.action {
            detail.insert("action".to_owned(), action.to_string().into());
        }
        detail.insert("reason".to_owned(), refusal.reason.as_ref().into());
        // A stranger's address is recorded as limits know it; a person's as of any deed.
        let address = match refusal.actor {
            Actor::System => None,
            Actor::User(_) | Actor::Runner(_) => refusal.from.parse().ok(),
        };
        if address.is_none() {
            detail.insert("from".to_owned(), refusal.from.as_str().into());
        }
        detail.insert("count".to_owned(), count.into());
        let entry = AuditEntry {
            actor: refusal.actor,
            kind: refusal.kind,
            subject: refusal.subject.clone(),
            detail: Value::Object(detail),
            origin: AuditOrigin {
                credential: refusal.credential,
                address,
            },
        };
        let recorded = self.store.record_audit(tenant, entry, self.clock.now());
        recorded.await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    fn refusal(from: u8) -> Refusal {
        let from = place(Some([192, 0, 2, from].into()));
        Refusal::of_stranger("test.refused", "test", from)
    }

    #[tokio::test]
    async fn a_flood_is_told_whole_in_few_rows_and_the_stop_loses_none() {
        let fixture = Fixture::practice().await;
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let clock: Arc<dyn Clock> = Arc::new(shared_types::SystemClock::new());
        let store = fixture.app.store.clone();
        let refusals = Refusals::start(store.clone(), clock, stop.clone(), &tasks);
        for _ in 0..100 {
            for from in 0..100 {
                refusals.tell(refusal(from));
            }
        }
        stop.cancel();
        tasks.close();
        tasks.wait().await;
        let rows = store.audit_after(fixture.ctx.tenant, 0, 1000).await;
        let mut rows = rows.expect("it answers");
        rows.retain(|row| row.kind == "test.refused");
        let count = |row: &server_store::AuditRow| row.detail["count"].as_u64().expect("a number");
        assert_eq!(rows.iter().map(count).sum::<u64>(), 10_000);
        assert_eq!(rows.len(), 2 * (TOLD_APART + 1));
        let last: u64 = rows
            .iter()
            .filter(|row| row.detail["from"] == ELSEWHERE)
            .map(count)
            .sum();
        assert_eq!(last, 10_000 - 100 * TOLD_APART as u64);
    }

    #[tokio::test]
    async fn a_person_who_tries_everything_is_told_in_few_rows_and_hides_nobody_else() {
        let fixture = Fixture::practice().await;
        let refusals = Refusals::default();
        let sweep = |ctx: &OpContext| {
            for number in 0..100 {
                for action in Action::ALL {
                    let subject = format!("ses_{number}");
                    refusals.tell(Refusal::of_person(ctx, *action, "test", subject));
                }
            }
        };
        sweep(&fixture.ctx);
        let other = OpContext {
            user: shared_types::UserId::from_u128(7),
            ..fixture.ctx.clone()
        };
        sweep(&other);
        let counted = refusals.locked();
        for ctx in [&fixture.ctx, &other] {
            let of_one = counted.more.iter();
            let of_one = of_one.filter(|(refusal, _)| refusal.actor == Actor::User(ctx.user));
            let counts: Vec<u64> = of_one.map(|(_, more)| more + 1).collect();
            assert_eq!(counts.len(), TOLD_APART_OF_ONE + 1);
            assert_eq!(counts.iter().sum::<u64>(), 100 * Action::ALL.len() as u64);
        }
    }

    #[test]
    fn one_customers_network_is_one_place() {
        let place = |text: &str| place(Some(text.parse().expect("an address")));
        assert_eq!(place("192.0.2.1"), "192.0.2.1");
        assert_eq!(place("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(place("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
    }
}
