//! The audit of what is refused to runners, and to peers that claim to be one
//! (docs/internals/contracts.md#b1).
//!
//! Everything that is refused is told, but a flood must not fill the disk: in a minute, the first
//! refusal from an address for a reason is recorded at once, and those that follow are counted and
//! recorded together when the minute is over. Addresses beyond a bound are counted as one. A stranger
//! has no tenant: what is refused to one is told to the tenant that runs the server, the first.

use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

use serde_json::json;
use server_store::{Actor, AuditEntry, Origin, Store, StoreError};
use shared_types::{Clock, TenantId};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// For how long refusals are counted together.
const TOGETHER: Duration = Duration::from_secs(60);

/// Addresses, by reason and subject, that are told apart within [`TOGETHER`]; the rest is counted as
/// [`ELSEWHERE`].
const TOLD_APART: usize = 32;

/// What stands for all addresses beyond [`TOLD_APART`].
const ELSEWHERE: &str = "elsewhere";

/// Refusals that may wait to be counted; whoever is refused then waits for its answer.
const WAITING: usize = 64;

/// Something that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Refusal {
    /// What was, such as `runner.enrolment_refused`.
    pub(crate) kind: &'static str,
    /// Why.
    pub(crate) reason: &'static str,
    /// Whose log it belongs to; none for strangers.
    pub(crate) tenant: Option<TenantId>,
    /// What was asked for, where it is known here: an id.
    pub(crate) subject: String,
    /// Where it was asked from; see [`place`].
    pub(crate) from: String,
}

/// Speaks to the task that counts.
#[derive(Clone)]
pub(crate) struct Refusals {
    told: mpsc::Sender<Refusal>,
}

impl Refusals {
    /// Starts to count; with `stop`, what was counted is recorded.
    pub(crate) fn start(
        store: Store,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
        tasks: &TaskTracker,
    ) -> Self {
        let (told, inbox) = mpsc::channel(WAITING);
        let counter = Counter {
            store,
            clock,
            counted: HashMap::new(),
        };
        tasks.spawn(counter.run(inbox, stop));
        Self { told }
    }

    /// Tells of a refusal. A server that stops tells of no more.
    pub(crate) async fn tell(&self, refusal: Refusal) {
        let _ = self.told.send(refusal).await;
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

struct Counter {
    store: Store,
    clock: Arc<dyn Clock>,
    /// How many came since the first one was recorded.
    counted: HashMap<Refusal, u64>,
}

impl Counter {
    async fn run(mut self, mut inbox: mpsc::Receiver<Refusal>, stop: CancellationToken) {
        let mut over = interval_at(Instant::now() + TOGETHER, TOGETHER);
        over.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(refusal) = inbox.recv() => self.count(refusal).await,
                _ = over.tick() => self.record_all().await,
                () = stop.cancelled() => break,
            }
        }
        inbox.close();
        while let Some(refusal) = inbox.recv().await {
            self.count(refusal).await;
        }
        self.record_all().await;
    }

    async fn count(&mut self, mut refusal: Refusal) {
        if self.counted.len() >= TOLD_APART && !self.counted.contains_key(&refusal) {
            refusal.from = ELSEWHERE.to_owned();
            refusal.subject.clear();
        }
        if let Some(more) = self.counted.get_mut(&refusal) {
            *more += 1;
            return;
        }
        self.record(&refusal, 1).await;
        self.counted.insert(refusal, 0);
    }

    async fn record_all(&mut self) {
        for (refusal, more) in std::mem::take(&mut self.counted) {
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
            tracing::error!(%error, kind, reason, address, subject, count, "a refusal cannot be recorded");
        }
    }

    async fn write(&self, refusal: &Refusal, count: u64) -> Result<(), StoreError> {
        let tenant = match refusal.tenant {
            Some(tenant) => tenant,
            None => match self.store.first_owner().await? {
                Some((tenant, _)) => tenant,
                // Nobody is there yet who could read it.
                None => return Ok(()),
            },
        };
        let entry = AuditEntry {
            actor: Actor::System,
            kind: refusal.kind,
            subject: refusal.subject.clone(),
            detail: json!({ "reason": refusal.reason, "from": refusal.from, "count": count }),
            origin: Origin::default(),
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
        Refusal {
            kind: "test.refused",
            reason: "test",
            tenant: None,
            subject: String::new(),
            from: place(Some([192, 0, 2, from].into())),
        }
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
                refusals.tell(refusal(from)).await;
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

    #[test]
    fn one_customers_network_is_one_place() {
        let place = |text: &str| place(Some(text.parse().expect("an address")));
        assert_eq!(place("192.0.2.1"), "192.0.2.1");
        assert_eq!(place("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(place("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
    }
}
