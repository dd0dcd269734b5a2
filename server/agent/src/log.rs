//! The log of a session under one worker: it is kept between turns, written under the worker's epoch, counted and
//! traced.
//!
//! The stored rows are the truth ([`server_records::LogRows`]). The cache spares reads, and metrics and spans are made
//! where an event is recorded, so no phase of a turn names either.

mod cache;
mod measured;
mod spans;
mod stored;

pub use cache::LogCache;
pub(crate) use measured::{Counted, RunningTurn};
pub(crate) use spans::TurnSpans;
pub(crate) use stored::{SessionSink, StoredLog};
