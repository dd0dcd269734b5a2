//! Hints that lists are different: a client watches lists, hears which of them changed, and reads those again.
//!
//! A hint carries nothing of its list. So it may come once too often, and rights are decided where the list is read. One
//! client costs one set of lists, however slowly it reads.

mod hub;
mod pending;

use std::{collections::BTreeSet, sync::Arc};

use server_records::{Change, Pace, Whose};
use shared_types::Topic;
use tokio::time::{Instant, sleep_until};

pub(crate) use hub::ChangeHub;
use hub::{Place, Watcher};
pub use pending::ChangeHint;

use crate::{OpContext, gate::Gate, rights::Action};

/// The use cases of this file.
#[derive(Clone)]
pub struct Changes {
    gate: Gate,
    hub: ChangeHub,
}

/// The lists that one client watches, until it is dropped.
pub struct Watch {
    watcher: Arc<Watcher>,
    _place: Place,
}

impl Changes {
    pub(crate) fn of(gate: &Gate, hub: ChangeHub) -> Self {
        let gate = gate.clone();
        Self { gate, hub }
    }

    /// Those of these lists that the user may read.
    pub fn readable(&self, ctx: &OpContext, topics: &BTreeSet<Topic>) -> BTreeSet<Topic> {
        let may = |topic: &&Topic| self.gate.may(ctx, read_by(**topic));
        topics.iter().filter(may).copied().collect()
    }

    /// Watches those of these lists that the user may read. The first hint names all of them: what changed between an
    /// earlier read and this call is not missed.
    pub fn watch(&self, ctx: &OpContext, topics: &BTreeSet<Topic>) -> Watch {
        let watcher = Watcher::of(self.readable(ctx, topics), Instant::now());
        Watch {
            _place: self.hub.enter(ctx.tenant, ctx.user, &watcher),
            watcher,
        }
    }

    /// The operator's settings were read again, of which no row tells.
    pub(crate) fn reloaded(&self) {
        let changes = [
            Topic::Settings,
            Topic::Models,
            Topic::Runners,
            Topic::Permissions,
        ];
        let changes = changes.map(|topic| Change {
            tenant: None,
            topic,
            whose: Whose::Everyone,
            pace: Pace::Prompt,
        });
        self.hub.tell(changes.into());
    }
}

impl Watch {
    /// The next hint, once it is time for it. Safe to cancel.
    pub async fn next(&mut self) -> ChangeHint {
        loop {
            let due = match self.watcher.take(Instant::now()) {
                Ok(hint) => return hint,
                Err(due) => due,
            };
            let more = self.watcher.more();
            match due {
                Some(due) => tokio::select! {
                    () = sleep_until(due) => {}
                    () = more => {}
                },
                None => more.await,
            }
        }
    }
}

/// The action by which the list is read.
fn read_by(topic: Topic) -> Action {
    match topic {
        Topic::Sessions => Action::ReadSession,
        Topic::Approvals => Action::SeeApprovals,
        Topic::Runners => Action::SeeRunner,
        Topic::JoinTokens => Action::EndJoinToken,
        Topic::Sandboxes => Action::SeeSandbox,
        Topic::Operations => Action::ReadOperation,
        Topic::Settings | Topic::Models | Topic::Permissions => Action::SeeSettings,
        Topic::People => Action::SeePeople,
        Topic::Keys => Action::SeeKeys,
    }
}

#[cfg(test)]
mod tests;
