//! The wire between server and runner: generated messages, the bytes that are signed, the agreement
//! on the keys of a seal, and the conversions of ids, refusals and incarnations. And the wire between
//! the servers of one database (`peer_v1`).
//!
//! Domain types do not derive their wire form; wire types stop at the door. Requests and outcomes
//! are converted where they are used: in the router on one side, in the runner on the other.

pub mod agreement;
pub mod codec;
pub mod convert;
pub mod dismissal;
pub mod enrolling;
pub mod http1;
pub mod public_key;
pub mod sealing;
pub mod signing;

/// `gantry.runner.v1`, as generated from `proto/gantry/runner/v1`.
#[expect(
    missing_docs,
    clippy::all,
    reason = "generated; the .proto files are the documentation"
)]
pub mod v1 {
    tonic::include_proto!("gantry.runner.v1");
}

/// `gantry.peer.v1`, as generated from `proto/gantry/peer/v1`.
#[expect(
    missing_docs,
    clippy::all,
    reason = "generated; the .proto files are the documentation"
)]
pub mod peer_v1 {
    include!(concat!(env!("OUT_DIR"), "/peer/gantry.peer.v1.rs"));
}

/// The version of the link protocol that this build speaks.
pub const PROTOCOL_VERSION: u32 = 3;

/// The oldest version that this build still speaks. From the first release on that is the one before;
/// versions 1 and 2 were never released.
pub const OLDEST_PROTOCOL_VERSION: u32 = 3;
