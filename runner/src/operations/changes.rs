//! Changes of files that are written down, in this order, until nobody needs to know of them.
//!
//! One whose maker died is settled by what the file holds, or by what the next change of the same file
//! found: that one may have been made before the end of the first was written down.

use std::collections::HashSet;

use runner_host::Change;
use shared_types::OperationId;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Changes(Vec<(OperationId, Change)>);

impl Changes {
    pub(super) fn add(&mut self, operation: OperationId, change: Change) {
        self.0.push((operation, change));
    }

    /// The operation's change, and the next one of the same file.
    pub(super) fn of(&self, operation: OperationId) -> Option<(&Change, Option<&Change>)> {
        let at = self.0.iter().rposition(|(id, _)| *id == operation)?;
        let change = &self.0[at].1;
        let mut later = self.0[at + 1..].iter().map(|(_, later)| later);
        Some((change, later.find(|later| later.path == change.path)))
    }

    pub(super) fn forget(&mut self, operation: OperationId) {
        self.0.retain(|(id, _)| *id != operation);
    }

    /// Forgets what has ended, but not what an earlier change may be settled by.
    pub(super) fn forget_ended(&mut self, is_open: impl Fn(OperationId) -> bool) {
        let mut open = HashSet::new();
        self.0.retain(|(id, change)| {
            let needed = open.contains(&change.path);
            if is_open(*id) {
                open.insert(change.path.clone());
            }
            needed || is_open(*id)
        });
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (OperationId, &Change)> {
        self.0.iter().map(|(id, change)| (*id, change))
    }
}
