//! The wait of a turn that has nothing else to do.

use crate::{OperationId, Timestamp, event::Awaited};

/// A tool call of a turn whose worker has let go of the turn until there is more to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallWait {
    /// The model call that asked for it, from 1.
    pub step: u32,
    /// The place of the call in the answer, from 0.
    pub ordinal: u32,
    /// The operation whose end it waits for.
    pub operation: OperationId,
    /// Tells if the call waits only for its command, or also for a link of the operation's runner.
    pub awaits: Awaited,
    /// Then it waits no longer.
    pub until: Timestamp,
    /// Then a command that still runs goes on in the background; nothing, where that is not known.
    pub listens_until: Option<Timestamp>,
}
