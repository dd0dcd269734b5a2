//! The files of a container: served by a program inside it, asked for by a daemon outside.
//!
//! The daemon never follows a path of a container: links, mounts and races in there belong to its
//! workload. So a small program runs in the container as the workload's user and drives one
//! [`crate::Host`] ([`serve`]). It speaks with the daemon ([`Inside`]) over a socket that it was
//! started with. [`Inside`] has the methods of a host, and its requests the same events.
//!
//! The workload can stop, replace or imitate the program. So the daemon believes it little:
//!
//! - every frame and every count has a bound; a frame that cannot be read ends the connection;
//! - an answer without a request is ignored: a request is announced at most once, and only one
//!   that changes something; an end must be one that the request can have;
//! - a descriptor must be an ordinary file, open for reading, and not of the kernel's file systems.

mod client;
mod follow;
mod hello;
mod received;
mod serve;
mod table;
mod wire;
mod words;

pub use client::{ConnectError, Inside};
pub use hello::Hello;
pub use serve::serve;

pub(crate) use client::Release;
pub(crate) use hello::entry as user_entry;

/// Requests of one container that may be under way at once.
const MAX_UNDER_WAY: usize = 1024;

/// Pieces of an upload that may be on their way to the program and not taken by its host yet.
const PIECES_WAITING: usize = 8;
