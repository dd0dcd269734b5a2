//! The logs that people follow through this server, and the newest event of each that was announced. It also notes the
//! sessions whose turns `crate::peers` should read.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use server_records::SessionKey;
use shared_types::SessionEvent;
use tokio::sync::Notify;

/// See the module. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct SeenLogs(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    seen: Mutex<Seen>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Seen {
    followers: HashMap<SessionKey, usize>,
    /// Of the sessions at which the last look was.
    newest: HashMap<SessionKey, u64>,
    /// Absent where nothing is relayed.
    relays: Option<RelayNotes>,
}

/// Notes for the relays.
#[derive(Debug, Default)]
struct RelayNotes {
    /// The sessions at whose turns they are to look.
    changed: BTreeSet<SessionKey>,
    /// The sessions whose work is relayed now.
    relayed: BTreeSet<SessionKey>,
}

/// One follower of a log, until it is dropped.
#[derive(Debug)]
pub(crate) struct FollowedLog {
    seen: SeenLogs,
    of: SessionKey,
}

impl SeenLogs {
    /// The log has one more follower.
    pub(crate) fn follow(&self, of: SessionKey) -> FollowedLog {
        *self.lock().followers.entry(of).or_default() += 1;
        self.look_at(of);
        FollowedLog {
            seen: self.clone(),
            of,
        }
    }

    /// This server has appended these events, and tells of them. Where other events stand before them that it has not
    /// seen, the next look finds those.
    pub(crate) fn appended(&self, of: SessionKey, events: &[SessionEvent]) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            return;
        };
        if self.is_relayed(of) {
            self.look_at(of);
        }
        if let Some(newest) = self.lock().newest.get_mut(&of)
            && first.seq == *newest + 1
        {
            *newest = last.seq;
        }
    }

    /// The sessions that have followers.
    pub(crate) fn followed(&self) -> Vec<SessionKey> {
        self.lock().followers.keys().copied().collect()
    }

    /// Takes the numbers of the newest events that a look has found, and returns the sessions whose followers may not
    /// know theirs.
    pub(super) fn grown(&self, found: Vec<(SessionKey, u64)>) -> Vec<SessionKey> {
        let mut seen = self.lock();
        let is_new = |(of, seq): &&(SessionKey, u64)| seen.newest.get(of) != Some(seq);
        let grown = found.iter().filter(is_new).map(|(of, _)| *of).collect();
        seen.newest = found.into_iter().collect();
        grown
    }

    /// Another server has added to the log.
    pub(super) fn appended_elsewhere(&self, of: SessionKey) {
        if self.is_followed(of) {
            self.look_at(of);
        }
    }

    pub(crate) fn is_followed(&self, of: SessionKey) -> bool {
        self.lock().followers.contains_key(&of)
    }

    /// Begins to note changes for the relays.
    pub(crate) fn begin_relays(&self) {
        self.lock().relays.get_or_insert_default();
    }

    /// Waits for sessions at whose turns the relays are to look.
    pub(crate) async fn to_look_at(&self) -> BTreeSet<SessionKey> {
        loop {
            let changed = self
                .lock()
                .relays
                .as_mut()
                .map(|notes| std::mem::take(&mut notes.changed));
            match changed {
                Some(changed) if !changed.is_empty() => return changed,
                _ => self.0.changed.notified().await,
            }
        }
    }

    /// Notes the sessions whose work is relayed from now on.
    pub(crate) fn relayed(&self, sessions: BTreeSet<SessionKey>) {
        if let Some(notes) = &mut self.lock().relays {
            notes.relayed = sessions;
        }
    }

    fn is_relayed(&self, of: SessionKey) -> bool {
        let seen = self.lock();
        let notes = seen.relays.as_ref();
        notes.is_some_and(|notes| notes.relayed.contains(&of))
    }

    fn look_at(&self, of: SessionKey) {
        if let Some(notes) = &mut self.lock().relays {
            notes.changed.insert(of);
            self.0.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FollowedLog {
    fn drop(&mut self) {
        let mut seen = self.seen.lock();
        if let Some(followers) = seen.followers.get_mut(&self.of) {
            *followers -= 1;
            if *followers == 0 {
                seen.followers.remove(&self.of);
                drop(seen);
                self.seen.look_at(self.of);
            }
        }
    }
}
