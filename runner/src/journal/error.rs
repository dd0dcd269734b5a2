//! The reasons why the journal cannot be used.

use std::{io, path::PathBuf};

use super::{MAX_DAMAGED, MAX_JOURNAL_BYTES, MAX_LINE_BYTES};

/// The reason why the journal cannot be opened, or did not remember something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// Nothing was changed; what ends can still be written while the reserve lasts.
    #[error("the disk has no room for {}: free some", .0.display())]
    DiskFull(PathBuf),
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "the journal is full: it may hold {} MiB, so let the server take what has ended",
        MAX_JOURNAL_BYTES / (1024 * 1024)
    )]
    TooLarge,
    #[error("a record of {bytes} bytes is longer than {MAX_LINE_BYTES}, so it is not kept")]
    TooLong { bytes: usize },
    #[error("a record cannot be written as JSON: {0}")]
    NotJson(serde_json::Error),
    #[error(
        "{} holds {MAX_DAMAGED} damaged journals already: check the disk, and move them elsewhere",
        .0.display()
    )]
    TooManyDamaged(PathBuf),
    #[error("the journal cannot be relied on: {0}; check the disk, and restart the runner")]
    Broken(String),
}
