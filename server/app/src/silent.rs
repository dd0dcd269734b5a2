//! Operations that are open on a runner that does not come back are lost at last, with or without a
//! reader that waits (docs/internals/contracts.md#a15). [`crate::silence`] says when.

use std::{sync::Arc, time::Duration};

use server_store::Store;
use shared_types::Clock;

use crate::AppError;

/// Settles the operations whose runner will never report on them.
pub(crate) struct Silent {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    /// The longest silence of a runner.
    pub(crate) lost_after: Duration,
}

impl Silent {
    /// Settles all that is due, a page at a time, so that others can write in between.
    pub(crate) async fn settle(&self) -> Result<(), AppError> {
        loop {
            let now = self.clock.now();
            let (settled, _) = self.store.lose_silent(self.lost_after, now).await?;
            if settled == 0 {
                return Ok(());
            }
            tracing::info!(operations = settled, "silent runners' operations are lost");
        }
    }
}
