//! Changes that are written down, in this order, until their results are not needed any more.
//!
//! A change whose maker died is settled by what is at its paths. A runner of an earlier version may
//! have made the next change of a path before the end of the first was written down. Then what the
//! next change found there counts. Paths of two sandboxes are never the same.

use std::collections::HashSet;

use runner_host::{Change, Effect, There};
use shared_types::{OperationId, SandboxId};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Changes(Vec<Made>);

#[derive(Debug)]
struct Made {
    operation: OperationId,
    sandbox: Option<SandboxId>,
    change: Change,
}

impl Changes {
    pub(super) fn add(
        &mut self,
        operation: OperationId,
        sandbox: Option<SandboxId>,
        change: Change,
    ) {
        self.0.push(Made {
            operation,
            sandbox,
            change,
        });
    }

    /// The operation's change, and for each of its effects what the next change of that path found there.
    pub(super) fn of(&self, operation: OperationId) -> Option<(&Change, Vec<Option<There>>)> {
        let at = self
            .0
            .iter()
            .rposition(|made| made.operation == operation)?;
        let Made {
            sandbox, change, ..
        } = &self.0[at];
        let later = self.0[at + 1..]
            .iter()
            .filter(|later| later.sandbox == *sandbox)
            .flat_map(|later| &later.change.effects);
        let found = |effect: &Effect| {
            let mut later = later.clone();
            let next = later.find(|later| later.path == effect.path)?;
            Some(next.before.clone())
        };
        Some((change, change.effects.iter().map(found).collect()))
    }

    pub(super) fn forget(&mut self, operation: OperationId) {
        self.0.retain(|made| made.operation != operation);
    }

    /// Forgets what has ended, but not what an earlier change may be settled by.
    pub(super) fn forget_ended(&mut self, is_open: impl Fn(OperationId) -> bool) {
        let mut open = HashSet::new();
        self.0.retain(|made| {
            let paths = made.change.effects.iter().map(|effect| &effect.path);
            let places = paths.map(|path| (made.sandbox, path.clone()));
            let needed = places.clone().any(|place| open.contains(&place));
            if is_open(made.operation) {
                open.extend(places);
            }
            needed || is_open(made.operation)
        });
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (OperationId, Option<SandboxId>, &Change)> {
        let all = self.0.iter();
        all.map(|made| (made.operation, made.sandbox, &made.change))
    }
}
