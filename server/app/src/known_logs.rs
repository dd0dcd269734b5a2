//! The logs of sessions that worked lately, so that a turn reads only what was added since the one
//! before.
//!
//! A log only grows, so what was read of it stays true. Where a database was put back to an older
//! state under the running server, the last event is gone or another one, and all is read again.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hashlink::LruCache;
use server_store::{Store, StoreError, StoredEvent};
use shared_types::{SessionEvent, SessionId, TenantId, Timestamp};

/// Bytes of events that are kept at most, of all sessions together.
const KEPT_BYTES: usize = 16 * 1024 * 1024;

/// How long a log is kept after its last use, where others are used.
const KEPT_FOR: Duration = Duration::from_secs(10 * 60);

/// A session, by its tenant.
type Key = (TenantId, SessionId);

/// A cheap handle to the logs that this process knows.
#[derive(Clone)]
pub(crate) struct KnownLogs {
    kept: Arc<Mutex<Kept>>,
}

struct Kept {
    /// The one that was used last is the last.
    logs: LruCache<Key, Known>,
    bytes: usize,
}

struct Known {
    log: Arc<Vec<SessionEvent>>,
    bytes: usize,
    used_at: Timestamp,
}

impl KnownLogs {
    pub(crate) fn new() -> Self {
        let kept = Kept {
            logs: LruCache::new_unbounded(),
            bytes: 0,
        };
        Self {
            kept: Arc::new(Mutex::new(kept)),
        }
    }

    /// The whole log of the session, in order.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such session.
    pub(crate) async fn load(
        &self,
        store: &Store,
        key: Key,
        now: Timestamp,
    ) -> Result<Arc<Vec<SessionEvent>>, StoreError> {
        // While it is taken out no other load holds it, so it grows in place.
        let known = match self.with(|kept| kept.take(key)) {
            Some(known) => known.read_on(store, key).await?,
            None => None,
        };
        let known = match known {
            Some(known) => known,
            None => Known::read(store, key).await?,
        };
        let log = known.log.clone();
        self.with(|kept| kept.put(key, known, now));
        Ok(log)
    }

    /// Drops the log of a session that was deleted.
    pub(crate) fn forget(&self, key: Key) {
        self.with(|kept| kept.take(key));
    }

    fn with<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    fn take(&mut self, key: Key) -> Option<Known> {
        let known = self.logs.remove(&key)?;
        self.bytes -= known.bytes;
        Some(known)
    }

    /// Makes room for it: those that were used least lately go, and all that were not used for long.
    fn put(&mut self, key: Key, known: Known, now: Timestamp) {
        self.take(key);
        if known.bytes > KEPT_BYTES {
            return;
        }
        self.bytes += known.bytes;
        self.logs.insert(
            key,
            Known {
                used_at: now,
                ..known
            },
        );
        while let Some((&oldest, known)) = self.logs.iter().next()
            && (self.bytes > KEPT_BYTES || now.since(known.used_at) > KEPT_FOR)
        {
            self.take(oldest);
        }
    }
}

impl Known {
    async fn read(store: &Store, (tenant, session): Key) -> Result<Self, StoreError> {
        let mut known = Self {
            log: Arc::default(),
            bytes: 0,
            used_at: Timestamp::from_micros(0),
        };
        known.grow(store.log_from(tenant, session, 1).await?);
        Ok(known)
    }

    /// With what was added since; nothing where the log does not go on from here.
    async fn read_on(
        mut self,
        store: &Store,
        (tenant, session): Key,
    ) -> Result<Option<Self>, StoreError> {
        let Some(last) = self.log.last() else {
            return Ok(None);
        };
        let mut added = store.log_from(tenant, session, last.seq).await?;
        if added.first().is_none_or(|again| again.event != *last) {
            return Ok(None);
        }
        self.grow(added.split_off(1));
        Ok(Some(self))
    }

    fn grow(&mut self, added: Vec<StoredEvent>) {
        let log = Arc::make_mut(&mut self.log);
        for StoredEvent { event, bytes } in added {
            self.bytes += bytes + size_of::<SessionEvent>();
            log.push(event);
        }
    }
}

#[cfg(test)]
mod tests;
