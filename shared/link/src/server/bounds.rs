//! The bounds of what the server's end of a link tries again, and for how long it waits.

use std::time::Duration;

/// The number of attempts on one link to send an operation whose owner gets a newer epoch in
/// between. After that the next link sends it.
pub(super) const EPOCHS: u32 = 8;

/// The shortest pause before a runner without room is sent the same operation again, even if it
/// asks for less.
pub(super) const RESEND_AFTER_AT_LEAST: Duration = Duration::from_millis(100);

/// The longest such pause. A runner that asks for more is not waited for.
pub(super) const RESEND_AFTER_AT_MOST: Duration = Duration::from_secs(10);
