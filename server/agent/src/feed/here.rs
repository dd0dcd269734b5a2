//! The work on a session that is under way at this replica, for another one that relays it to its own watchers.

use std::collections::VecDeque;

use shared_types::SessionId;
use tokio::sync::broadcast::error::RecvError;

use super::hub::{LiveHub, Signal, Watch};
use crate::Live;

/// See the module.
pub struct HereFeed {
    hub: LiveHub,
    session: SessionId,
    watch: Watch,
    queue: VecDeque<Live>,
}

impl HereFeed {
    /// Begins with that which is under way already. `None` only while the server stops.
    pub async fn start(hub: LiveHub, session: SessionId) -> Option<Self> {
        let mut watch = hub.watch_here(session).await?;
        let queue = std::mem::take(&mut watch.under_way).into();
        Some(Self {
            hub,
            session,
            watch,
            queue,
        })
    }

    /// The next piece; waits for it. Those that come from other replicas are left out, so that two replicas never relay
    /// to one another. A reader that is too slow gets all that is under way again. `None` once the server stops.
    pub async fn next(&mut self) -> Option<Live> {
        loop {
            if let Some(next) = self.queue.pop_front() {
                return Some(next);
            }
            match self.watch.signals.recv().await {
                Ok(Signal::Live(live)) => return Some(live),
                Ok(Signal::Appended(_) | Signal::Relayed(_)) => {}
                Err(RecvError::Lagged(_)) => {
                    *self = Self::start(self.hub.clone(), self.session).await?;
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }
}
