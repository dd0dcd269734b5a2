//! The time limits of connections, in every protocol, and the bounds of strangers: connections that have not shown a
//! credential yet.
//!
//! A connection lives as long as it is used. A link or a WebSocket may be silent for any time, because each end keeps
//! asking if the other one lives. If a greatest age is set, the server then asks the client to connect again.

use std::time::Duration;

/// Every time limit of a connection, and the bounds of strangers. The default is that of a deployment without settings.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A connection without a request within this time is closed.
    pub first_request_within: Duration,
    /// A connection on which no request began for this long takes no more; those under way go on.
    pub quiet_at_most: Duration,
    /// A request whose answer does not begin within this time is given up, mostly because its body
    /// does not come.
    pub answer_within: Duration,
    /// A peer that reads nothing of its answer for this long is cut off.
    pub taken_within: Duration,
    /// The interval between pings on a quiet connection, so that devices on the way keep it open as well.
    pub keep_alive_every: Duration,
    /// The longest wait for the answer to such a ping.
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
    /// The longest wait of a request that can still be answered in time.
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
