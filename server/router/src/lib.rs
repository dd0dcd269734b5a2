//! The router: picks the place of each operation, and is itself a sandbox.
//!
//! [`SandboxRouter`] fulfils the sandbox contract over the links of enrolled runners, so the
//! engine cannot tell here from there. Placement is pure; its result is committed before anything
//! is sent, and a stored operation is never placed again (docs/internals/contracts.md#a1 to #a4).
//! The router reaches the store only through the ports in [`server_records`], and runs nothing itself.

mod bounds;
mod collect;
mod frame;
pub mod links;
mod mailbox;
pub mod placement;
mod reaper;
mod sandbox_router;

pub use collect::{Collected, OperationReader};
pub use reaper::{Reaper, SilenceLimits};
pub use sandbox_router::{SandboxRouter, not_allowed};

#[cfg(test)]
mod tests;
