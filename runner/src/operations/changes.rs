//! Changes that are written down, in this order, until nobody needs to know of them.
//!
//! One whose maker died is settled by what is at its paths. A runner of an earlier version may have made
//! the next change of a path before the end of the first was written down: then what that one found
//! there counts.

use std::collections::HashSet;

use runner_host::{Change, Effect, There};
use shared_types::OperationId;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Changes(Vec<(OperationId, Change)>);

impl Changes {
    pub(super) fn add(&mut self, operation: OperationId, change: Change) {
        self.0.push((operation, change));
    }

    /// The operation's change, and for each of its effects what the next change of that path found there.
    pub(super) fn of(&self, operation: OperationId) -> Option<(&Change, Vec<Option<There>>)> {
        let at = self.0.iter().rposition(|(id, _)| *id == operation)?;
        let change = &self.0[at].1;
        let later = self.0[at + 1..]
            .iter()
            .flat_map(|(_, later)| &later.effects);
        let found = |effect: &Effect| {
            let mut later = later.clone();
            let next = later.find(|later| later.path == effect.path)?;
            Some(next.before.clone())
        };
        Some((change, change.effects.iter().map(found).collect()))
    }

    pub(super) fn forget(&mut self, operation: OperationId) {
        self.0.retain(|(id, _)| *id != operation);
    }

    /// Forgets what has ended, but not what an earlier change may be settled by.
    pub(super) fn forget_ended(&mut self, is_open: impl Fn(OperationId) -> bool) {
        let mut open = HashSet::new();
        self.0.retain(|(id, change)| {
            let mut paths = change.effects.iter().map(|effect| &effect.path);
            let needed = paths.any(|path| open.contains(path));
            if is_open(*id) {
                open.extend(change.effects.iter().map(|effect| effect.path.clone()));
            }
            needed || is_open(*id)
        });
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (OperationId, &Change)> {
        self.0.iter().map(|(id, change)| (*id, change))
    }
}
