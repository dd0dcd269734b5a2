//! Operations that are open on a runner that does not come back are lost at last, with or without a
//! reader that waits (docs/internals/contracts.md#a15). [`crate::silence`] says when.

use std::{sync::Arc, time::Duration};

use server_store::Store;
use shared_link::server::lost_to_silence;
use shared_types::Clock;

use server_agent::feed::LiveHub;

use crate::{AppError, ports::lost};

/// Settles the operations whose runner will never report on them.
pub(crate) struct Silent {
    pub(crate) store: Store,
    pub(crate) hub: LiveHub,
    pub(crate) clock: Arc<dyn Clock>,
    /// The longest silence of a runner.
    pub(crate) lost_after: Duration,
}

impl Silent {
    /// Settles all that is due, a page at a time, so that others can write in between.
    pub(crate) async fn settle(&self) -> Result<(), AppError> {
        let lost = lost(lost_to_silence()).map_err(AppError::unavailable)?;
        loop {
            let now = self.clock.now();
            let (settled, late) = self.store.lose_silent(self.lost_after, &lost, now).await?;
            for session in late {
                self.hub.appended(session, Vec::new()).await;
            }
            if settled == 0 {
                return Ok(());
            }
            self.hub.look_at_waits();
            tracing::info!(operations = settled, "silent runners' operations are lost");
        }
    }
}
