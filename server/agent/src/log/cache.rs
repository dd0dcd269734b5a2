//! The logs of sessions that worked lately, so that a turn reads only what was added since the one
//! before.
//!
//! A log only grows, so what was read of it stays true. What this server appends is added at once. If
//! another server has appended since, the rest is read. A database may be put back to an older state
//! under the running server. Then the last event or the next number does not fit, and all is read
//! again.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hashlink::LruCache;
use server_records::{LogRows, SessionError, SessionKey, StoredEvent};
use shared_types::{SessionEvent, Timestamp};

/// Bytes of events that are kept at most, of all sessions together.
const KEPT_BYTES: usize = 16 * 1024 * 1024;

/// The time for which a log is kept after its last use.
const KEPT_FOR: Duration = Duration::from_secs(10 * 60);

/// A cheap handle to the logs that this process knows.
#[derive(Clone)]
pub struct LogCache {
    kept: Arc<Mutex<Kept>>,
}

struct Kept {
    /// The one that was used last is the last.
    logs: LruCache<SessionKey, Known>,
    bytes: usize,
}

struct Known {
    log: Arc<Vec<SessionEvent>>,
    bytes: usize,
    used_at: Timestamp,
}

impl Default for LogCache {
    fn default() -> Self {
        Self::new()
    }
}

impl LogCache {
    /// A cache that knows none.
    pub fn new() -> Self {
        let kept = Kept {
            logs: LruCache::new_unbounded(),
            bytes: 0,
        };
        Self {
            kept: Arc::new(Mutex::new(kept)),
        }
    }

    /// The log of the session, in order: the whole one, or, where that is known already, up to the event of
    /// this number at least.
    ///
    /// # Errors
    /// [`SessionError::NotFound`] if there is no such session.
    pub async fn load(
        &self,
        rows: &dyn LogRows,
        key: SessionKey,
        at_least: Option<u64>,
        now: Timestamp,
    ) -> Result<Arc<Vec<SessionEvent>>, SessionError> {
        // While it is taken out no other load holds it, so it grows in place.
        let known = match self.with(|kept| kept.take(key)) {
            Some(known) if at_least.is_some_and(|seq| known.last_seq() >= seq) => Some(known),
            Some(known) => known.read_on(rows).await?,
            None => None,
        };
        let known = match known {
            Some(known) => known,
            None => Known::read(rows).await?,
        };
        let log = known.log.clone();
        self.with(|kept| kept.put(key, known, now));
        Ok(log)
    }

    /// Adds what was just appended to the session's log, if all before it is known. If another event is known at
    /// its place, the log is read again.
    pub fn appended(&self, key: SessionKey, events: &[SessionEvent]) {
        self.with(|kept| kept.add(key, events));
    }

    /// Drops the log of a session that was deleted.
    pub fn forget(&self, key: SessionKey) {
        self.with(|kept| kept.take(key));
    }

    fn with<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    fn take(&mut self, key: SessionKey) -> Option<Known> {
        let known = self.logs.remove(&key)?;
        self.bytes -= known.bytes;
        Some(known)
    }

    fn add(&mut self, key: SessionKey, events: &[SessionEvent]) {
        let Some(known) = self.logs.get_mut(&key) else {
            return;
        };
        let next = known.last_seq() + 1;
        match events.first().map(|event| event.seq) {
            Some(first) if first == next => {}
            Some(first) if first < next => {
                self.take(key);
                return;
            }
            _ => return,
        }
        let before = known.bytes;
        known.grow(events.iter().map(|event| StoredEvent {
            event: event.clone(),
            bytes: serde_json::to_vec(&event.body).map_or(0, |json| json.len()),
        }));
        self.bytes += known.bytes - before;
        while self.bytes > KEPT_BYTES
            && let Some((&oldest, _)) = self.logs.iter().next()
        {
            self.take(oldest);
        }
    }

    /// Makes room for it: those that were used least lately go, and all that were not used for long.
    fn put(&mut self, key: SessionKey, known: Known, now: Timestamp) {
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
    async fn read(rows: &dyn LogRows) -> Result<Self, SessionError> {
        let mut known = Self {
            log: Arc::default(),
            bytes: 0,
            used_at: Timestamp::from_micros(0),
        };
        known.grow(rows.read_from(1).await?);
        Ok(known)
    }

    /// With what was added since; nothing where the log does not go on from here.
    async fn read_on(mut self, rows: &dyn LogRows) -> Result<Option<Self>, SessionError> {
        let Some(last) = self.log.last() else {
            return Ok(None);
        };
        let mut added = rows.read_from(last.seq).await?;
        if added.first().is_none_or(|again| again.event != *last) {
            return Ok(None);
        }
        self.grow(added.split_off(1));
        Ok(Some(self))
    }

    fn last_seq(&self) -> u64 {
        self.log.last().map_or(0, |last| last.seq)
    }

    fn grow(&mut self, added: impl IntoIterator<Item = StoredEvent>) {
        let log = Arc::make_mut(&mut self.log);
        for StoredEvent { event, bytes } in added {
            self.bytes += bytes + size_of::<SessionEvent>();
            log.push(event);
        }
    }
}

#[cfg(test)]
mod tests;
