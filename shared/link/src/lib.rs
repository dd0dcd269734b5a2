//! The runner link's behaviour without IO and clock, for both of its ends.
//!
//! [`runner`] and [`server`] are state machines: frames, requests and the passing of time go in,
//! frames and effects come out. Whoever drives them (the runner's daemon, the router, the
//! simulation in `tests/`) carries the effects out and decides nothing. Times are counted from
//! any fixed moment of the driver's monotonic clock.

pub mod feed;
mod pulse;
pub mod received;
pub mod runner;
pub mod server;
pub mod wire;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
