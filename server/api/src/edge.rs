//! The edge: connections before any route is chosen, and the layers around every route.
//!
//! `serve` accepts connections and holds what strangers may take. The other files are one layer each: host names,
//! cookies, time limits, seats of streams, headers, measures and traces.

pub(crate) mod browser;
pub(crate) mod fair;
pub(crate) mod headers;
pub(crate) mod hosts;
pub(crate) mod in_time;
pub(crate) mod limits;
pub(crate) mod measured;
pub(crate) mod seats;
pub(crate) mod serve;
pub(crate) mod traced;

pub use hosts::HostNames;
pub use limits::Limits;
pub use serve::{ConnectionPermit, Door, Peer, serve};
