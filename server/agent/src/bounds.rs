//! The retries and waits of a turn that no deployment may change. The ones that a deployment may change
//! are in [`crate::EngineLimits`].

use std::time::Duration;

/// The number of attempts to attach to an operation whose events broke off.
pub(crate) const ATTACH_AT_MOST: u32 = 3;

/// The time for which a turn listens, once a runner is back, to output from before its return.
pub(crate) const AFTER_RETURN: Duration = Duration::from_secs(10);

/// The number of times that a call that only reads is run again after its operation was lost.
pub(crate) const RERUNS_AT_MOST: u32 = 2;

/// The time for reading the output and the end of a command once its turn goes on, if the time to wait
/// for it is over.
pub(crate) const CATCH_UP_WITHIN: Duration = Duration::from_secs(1);
