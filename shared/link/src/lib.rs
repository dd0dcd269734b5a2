//! The runner link's behaviour without IO and clock, for both of its ends.
//!
//! [`runner`] and [`server`] are state machines: frames, requests and the passing of time go in,
//! frames and effects come out. Their drivers (the runner's daemon, the router, the played runner of the
//! router's simulation) carry the effects out. Times are counted from any fixed moment of the driver's
//! monotonic clock.

pub mod feed;
pub mod lent;
mod pulse;
pub mod received;
pub mod runner;
pub mod server;
pub mod wire;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
