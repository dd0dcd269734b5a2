//! The choice of a runner's current link (docs/internals/contracts.md#a4). A newer link replaces
//! the older, an older one is turned away, and the end of an older one never ends a newer.

use shared_types::{Generation, Timestamp};

/// The connection of a runner; `L` is a handle to its link.
#[derive(Debug, Clone)]
pub enum RunnerConnection<L> {
    /// No link.
    Offline {
        /// When it was last heard of here.
        since: Option<Timestamp>,
    },
    /// It links; the verdicts on its inventory are not on their way yet.
    Linking,
    /// Its link carries operations.
    Online(L),
    /// Its credential was withdrawn; it never comes back.
    Revoked,
}

/// The reason why a link is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnedAway {
    /// A newer one is there.
    Older,
    /// The runner was revoked.
    Revoked,
    /// The runner is locked: it cannot come back under its identity, and its operations are not
    /// lost before it is revoked.
    Locked,
}

/// One runner's links.
#[derive(Debug)]
pub struct Slot<L> {
    connection: RunnerConnection<L>,
    current: Option<Generation>,
    /// The highest that was ever let in.
    newest: Option<Generation>,
}

impl<L> Slot<L> {
    /// Of a runner that has not linked yet.
    pub fn new() -> Self {
        Self {
            connection: RunnerConnection::Offline { since: None },
            current: None,
            newest: None,
        }
    }

    /// The present connection of the runner.
    pub fn connection(&self) -> &RunnerConnection<L> {
        &self.connection
    }

    /// True if there is a link.
    pub fn is_taken(&self) -> bool {
        self.current.is_some()
    }

    /// The generation of the current link.
    pub fn current(&self) -> Option<Generation> {
        self.current
    }

    /// True if this is the current link.
    pub fn is_current(&self, generation: Generation) -> bool {
        self.current == Some(generation)
    }

    /// Makes this link the current one; an older one is to end.
    ///
    /// # Errors
    /// It is not to be served.
    pub fn register(&mut self, generation: Generation) -> Result<(), TurnedAway> {
        if matches!(self.connection, RunnerConnection::Revoked) {
            return Err(TurnedAway::Revoked);
        }
        if self.newest.is_some_and(|newest| generation <= newest) {
            return Err(TurnedAway::Older);
        }
        self.current = Some(generation);
        self.newest = self.current;
        self.connection = RunnerConnection::Linking;
        Ok(())
    }

    /// The link carries operations from now on. Returns whether it is the current one.
    pub fn ready(&mut self, generation: Generation, link: L) -> bool {
        let current = self.current == Some(generation);
        if current {
            self.connection = RunnerConnection::Online(link);
        }
        current
    }

    /// The link ended. Returns whether it was the current one.
    pub fn unregister(&mut self, generation: Generation, since: Timestamp) -> bool {
        let current = self.current == Some(generation);
        if current {
            self.current = None;
            let since = Some(since);
            self.connection = RunnerConnection::Offline { since };
        }
        current
    }

    /// The runner never comes back; a link that it has is to end.
    pub fn revoke(&mut self) {
        self.current = None;
        self.connection = RunnerConnection::Revoked;
    }
}

impl<L> Default for Slot<L> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_link_is_turned_away_also_where_the_newer_one_has_ended() {
        let mut slot = Slot::<()>::new();
        assert_eq!(slot.register(Generation(2)), Ok(()));
        assert!(slot.unregister(Generation(2), Timestamp::from_micros(0)));
        assert_eq!(slot.register(Generation(1)), Err(TurnedAway::Older));
        assert_eq!(slot.register(Generation(3)), Ok(()));
    }
}
