//! `gantry-supervisor` and what a daemon needs to use it.
//!
//! A supervisor runs one command at a time, decides alone whether it runs at all, and outlives the
//! daemon.
//! The binary (`src/bin/gantry-supervisor`) has one thread, no async runtime and no configuration
//! but its arguments; this library is what both ends agree on, and the daemon's end.
//!
//! An operation is a directory (see [`Directory`]). Its *fate* is a file that only one party can
//! link: the supervisor, after it has put the child behind a gate and before it opens that gate, or
//! a daemon that fences the operation. So at most one of "it ran" and "it never runs" is true, even
//! if any of these processes dies at any moment. Its *end* is a file of the same kind. Everything
//! else (the socket, the waiting supervisors) only makes this fast.
//!
//! The daemon never forks. It spawns one small process (`posix_spawn`) that supervisors are forked
//! from. They wait in a [`SupervisorPool`], with their files made and the child that becomes the command
//! already behind its gate. None of them needs that process any further, and where it is gone the
//! next order spawns another. A supervisor whose command is forgotten soon after its end clears its
//! directory away, gives it another name, and waits again. Then no file is made for a command, and
//! none is removed.
//!
//! The binary depends on nothing of its host: it is linked statically (`build.rs`), so that it can be
//! mounted into any container.

mod directory;
mod entry;
mod fault;
mod operation;
mod pool;
mod process;
mod protocol;
mod realm;
mod record;
mod recover;
mod request;
mod spool;
mod tree;
mod wire;

pub use directory::Directory;
pub use entry::{MAX_ORDER_BYTES, ORDERS, Order, OrderOutcome, Orders, PROGRAMS_LOCK};
pub use fault::{Fault, FaultAction, FaultPoint};
pub use operation::{
    Cut, IdleSupervisor, OperationEnd, OperationError, Spent, SupervisedOperation, SupervisorEvent,
};
pub use pool::{PoolError, PoolOptions, SupervisorPool};
pub use process::{ProcessId, boot_id, is_in_container};
pub use protocol::{
    FromSupervisor, MAX_INPUT_BYTES, MAX_NAME_BYTES, OLDEST_VERSION, ToSupervisor, VERSION,
    agreed_version,
};
pub use realm::Realm;
pub use record::{
    Cause, CommandTimes, ExitRecord, Fate, MAX_REASON_BYTES, NotStarted, ProcessIdentity,
    RecordError, RecordFile, ReportedEnd, SpoolEnd, StartRecord,
};
pub use recover::{Recovered, ask_to_end, end_by_force, recover, remove, settle};
pub use request::{
    CommandRequest, CommandTerms, CommandUser, MAX_CLAIM_BYTES, RequestError, SpoolBounds, Streams,
    Sync, WhenFull, WorkingDirectory, unrenewed_for,
};
pub use spool::{Gap, GapLog, SpoolPiece, SpoolReader, SpoolStream, Tail};
pub use tree::{
    Ground, KillChoice, KillMethod, Leaf, LeafNames, descendants, members_of_session,
    remove_abandoned,
};
pub use wire::{FrameError, MAX_FRAME_BYTES, Outbox, WireFrame, WireInbox};
