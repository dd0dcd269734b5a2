//! The reasons that the server cannot serve requests now.

/// With less on the disk of its database file, in bytes, the server may fail in the middle of a request.
pub(crate) const DISK_KEPT_FREE: u64 = 16 * 1024 * 1024;

/// Requests should go to another server, or wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// The server will stop soon.
    #[error("the server stops")]
    Leaving,
    /// The operator lets it drain.
    #[error(
        "the server drains, and other servers take its work; gantry-server undrain takes that back"
    )]
    Draining,
    /// The server could not renew its lease.
    #[error(
        "the server could not renew its lease in the database for {silent_s} s, so other servers may have taken over its work; it works again once the database answers"
    )]
    Lease {
        /// The time since the last renewal, in seconds.
        silent_s: u64,
    },
    /// The database does not answer.
    #[error("the database does not answer")]
    Database,
    /// The disk of the database file is nearly full.
    #[error("the disk of the database has less than {} MiB free: make room there", DISK_KEPT_FREE >> 20)]
    Disk,
}
