//! How patient the doors are with a connection, whatever protocol it speaks, and what they let
//! strangers have: connections on which no credential was shown yet.
//!
//! A connection lives as long as it is used: what outlives its request (a link, a WebSocket) may be
//! silent for as long as it likes, because each end keeps asking whether the other one lives. Where a
//! greatest age is set, it is asked to connect again then.

use std::time::Duration;

/// Every wait of a connection, and the bounds of strangers; the default is what a deployment has that sets nothing.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A connection that does not say what it wants within this time is closed.
    pub first_request_within: Duration,
    /// A connection on which no request began for this long takes no more; those under way go on.
    pub quiet_at_most: Duration,
    /// A request whose answer does not begin within this time is given up, mostly because its body
    /// does not come.
    pub answer_within: Duration,
    /// What takes none of what it is sent for this long is cut off.
    pub taken_within: Duration,
    /// How often a quiet connection is asked whether it lives, so that what lies between keeps it
    /// open as well.
    pub keep_alive_every: Duration,
    /// How long it may take to answer.
    pub keep_alive_within: Duration,
    /// Connections without a credential that may come from one address.
    pub strangers_per_address: usize,
    /// Memory that all connections without a credential may hold together, in bytes.
    pub strangers_hold_bytes: usize,
    /// About how old a client's WebSocket becomes, give or take a tenth; the client is asked to connect
    /// again then. Runners' links have a greatest age of their own.
    pub age_at_most: Option<Duration>,
}

impl Limits {
    /// How long a request may wait for something and still be answered in time.
    pub(crate) fn waits_at_most(&self) -> Duration {
        self.answer_within.mul_f32(0.9)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            first_request_within: Duration::from_secs(10),
            quiet_at_most: Duration::from_secs(60),
            answer_within: Duration::from_secs(30),
            taken_within: Duration::from_secs(60),
            keep_alive_every: Duration::from_secs(20),
            keep_alive_within: Duration::from_secs(20),
            // So many runners behind one address may come back at once, after a restart.
            strangers_per_address: 1024,
            strangers_hold_bytes: 64 * 1024 * 1024,
            age_at_most: None,
        }
    }
}
