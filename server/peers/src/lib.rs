//! The calls between the servers that share a database: the listener for other servers, and the way to theirs.
//!
//! Both ends show a certificate of the database's cluster key (`shared_tls::peer`), and that is the whole right. The
//! listener has the service for peers alone, and no other port has that. HTTP/2 carries all calls between two servers
//! over one connection, and pings find a server that vanished.

mod connect;
mod listen;
mod service;
mod wire;

pub use connect::PeerClient;
pub use listen::serve;

use std::time::Duration;

use shared_types::limits::MAX_FRAME_BYTES;

/// A connection on which something is asked is probed after this long without a word.
const PING_EVERY: Duration = Duration::from_secs(5);
/// The answer to a probe comes within this time, or the connection is lost.
const PING_WITHIN: Duration = Duration::from_secs(5);
/// TCP and TLS together take this long at most.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// The largest message, in bytes: a frame of a link, and the message around it.
const MAX_MESSAGE_BYTES: usize = MAX_FRAME_BYTES + 1024;
/// The most calls at once from one peer: 512 relays, and one for each runner whose link it borrows.
const CALLS_PER_PEER: u32 = 16 * 1024;
/// Bytes of one call that are sent and not read yet.
const UNREAD_PER_CALL_BYTES: u32 = 256 * 1024;
/// Bytes of all calls on one connection that are sent and not read yet.
const UNREAD_PER_PEER_BYTES: u32 = 4 * 1024 * 1024;
