//! The time and address of each credential's last use. They are written at most once a minute, and no request waits
//! for that.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use server_store::{Store, SubjectRow};
use shared_types::{Clock, CredentialId};

/// Between two writes of one credential.
const WRITTEN_EVERY: Duration = Duration::from_secs(60);

/// The number of credentials whose last write is remembered. Beyond it, those not written lately are
/// forgotten.
const REMEMBERED: usize = 4096;

/// Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct LastUse(Arc<Mutex<HashMap<CredentialId, Duration>>>);

impl LastUse {
    /// The credential is used now, from this address.
    pub(super) fn note(
        &self,
        row: &SubjectRow,
        from: Option<IpAddr>,
        store: &Store,
        clock: &dyn Clock,
    ) {
        let now = clock.now();
        let recorded = row.last_used_at;
        if recorded.is_some_and(|at| now.since(at) < WRITTEN_EVERY)
            || !self.is_due(row.credential, clock.monotonic())
        {
            return;
        }
        let (store, tenant, credential) = (store.clone(), row.tenant, row.credential);
        tokio::spawn(async move {
            if let Err(error) = store.credential_used(tenant, credential, from, now).await {
                tracing::debug!(%error, "the use of a credential is not recorded");
            }
        });
    }

    /// True if the time of the last write is long enough ago. Then the caller counts as the writer.
    fn is_due(&self, credential: CredentialId, now: Duration) -> bool {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() >= REMEMBERED {
            written.retain(|_, at| now.saturating_sub(*at) < WRITTEN_EVERY);
        }
        let before = written.get(&credential);
        let due = before.is_none_or(|at| now.saturating_sub(*at) >= WRITTEN_EVERY);
        if due {
            written.insert(credential, now);
        }
        due
    }
}
