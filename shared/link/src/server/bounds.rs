//! The bounds of what the server's end of a link tries again, and for how long it waits.

use std::time::Duration;

/// How often an operation is asked for at once whose owner gets a newer epoch meanwhile. Then it is left
/// to the next link.
pub(super) const EPOCHS: u32 = 8;

/// The shortest pause before a runner without room is sent the same operation again, whatever it asks for.
pub(super) const RESEND_AFTER_AT_LEAST: Duration = Duration::from_millis(100);

/// The longest such pause. A runner that asks for more is not waited for.
pub(super) const RESEND_AFTER_AT_MOST: Duration = Duration::from_secs(10);
