//! Turns that wait without a worker (docs/internals/contracts.md#c5): the hints that wake them, and
//! the view of them for watchers.
//!
//! The rows alone tell if a wait is over ([`server_records::TurnRows::to_wake`]). A hint only says
//! that a look is worth it. Without a hint, the look comes when the next wait is over, and now and
//! then.

mod view;
mod wake;

pub(crate) use view::View;
pub use view::WaitingCall;
#[cfg(test)]
pub(crate) use view::show_waiting;
pub(crate) use wake::{wake_queued, wake_waiting};
