//! Fulfils the sandbox contract's requests on a host: the files of one workspace, and the plans of
//! commands in it; and the files of a container, by a program inside it (`inside`).
//!
//! Rules: it knows nothing of identity, links or attaching (the `runner` crate keeps the table of
//! operations and calls [`Host::perform`] once for each). It starts no process (a supervisor
//! carries a [`CommandPlan`] out). The kernel resolves a path beneath the workspace root; text is never
//! compared. Every end is sent once.

mod change;
mod environment;
mod files;
mod host;
mod inside;
mod performing;
mod plan;
#[cfg(test)]
mod testing;
mod text;
mod workspace;

pub use change::{Announced, Change, ChangeIdentity, Effect, SettledChange, There};
pub use environment::allowed_environment;
pub use files::OpenFile;
pub use host::{HeldTurn, Host, HostOptions};
pub use inside::{ConnectError, Hello, Inside, serve};
pub use performing::{HostEvent, Performing, StopRequest, Uploading};
pub use plan::{Account, CommandPlan, Inhabited, Unplanned, Whereabouts};
pub use workspace::WorkspaceError;
