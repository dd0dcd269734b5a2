//! How often a turn tries something again, and how long it waits, where no deployment may change it. What
//! one may change is in [`crate::EngineLimits`].

use std::time::Duration;

/// How often an operation whose events broke off is attached to.
pub(crate) const ATTACH_AT_MOST: u32 = 3;

/// How long what was written meanwhile is listened to once a runner is back.
pub(crate) const AFTER_RETURN: Duration = Duration::from_secs(10);

/// How often a call that only reads is run anew after its operation was lost.
pub(crate) const RERUNS_AT_MOST: u32 = 2;

/// How long what a command wrote and how it ended may take to be read once its turn goes on, where the
/// time that it was waited for is over.
pub(crate) const CATCH_UP_WITHIN: Duration = Duration::from_secs(1);
