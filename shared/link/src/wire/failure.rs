//! Failures of file operations, in both directions.

use proto::v1::{self, file_failure::Kind};
use shared_sandbox::FileFailure;

use super::{Malformed, alike::OnWire};

/// Makes both directions from one list: each failure with its fields, and what they are called on the
/// wire. A failure that is missing does not compile.
macro_rules! failures {
    ($($kind:ident { $($field:ident: $wire:ident),* },)*) => {
        impl OnWire<Malformed> for FileFailure {
            type Wire = v1::FileFailure;

            fn to_wire(self) -> v1::FileFailure {
                match self {
                    $(Self::$kind { $($field),* } => v1::FileFailure {
                        kind: Kind::$kind.into(),
                        $($wire: $field,)*
                        ..v1::FileFailure::default()
                    },)*
                }
            }

            fn from_wire(wire: v1::FileFailure) -> Result<Self, Malformed> {
                let wire = v1::FileFailure {
                    path: super::words(&wire.path),
                    reason: super::words(&wire.reason),
                    ..wire
                };
                Ok(match wire.kind() {
                    $(Kind::$kind => Self::$kind { $($field: wire.$wire),* },)*
                    Kind::Unspecified => {
                        return Err(Malformed::new("a file failure is of no known kind"));
                    }
                })
            }
        }
    };
}

failures! {
    NotFound { path: path },
    OutsideWorkspace { path: path },
    NotAFile { path: path },
    NotADirectory { path: path },
    Denied { path: path },
    Binary { path: path },
    TooLarge { path: path, bytes: number, limit: limit },
    NoMatch { path: path },
    ManyMatches { path: path, count: number },
    Pattern { reason: reason },
    Changed { path: path },
    OtherDigest { path: path },
    OtherSize { path: path, bytes: number },
    Exists { path: path },
    NotEmpty { path: path },
    PartlyRemoved { path: path, reason: reason },
    DiskFull {},
    WorkspaceGone {},
    TooSlow { limit_ms: number },
    Io { reason: reason },
}

/// The numbers in a failure, and what they stand for.
pub(super) fn numbers(failure: &FileFailure) -> Vec<(&'static str, u64)> {
    match failure {
        FileFailure::TooLarge { bytes, limit, .. } => {
            vec![("the size of the file", *bytes), ("its own limit", *limit)]
        }
        FileFailure::ManyMatches { count, .. } => vec![("the count of matches", *count)],
        FileFailure::OtherSize { bytes, .. } => vec![("the announced size", *bytes)],
        FileFailure::TooSlow { limit_ms } => vec![("its time limit", *limit_ms)],
        FileFailure::NotFound { .. }
        | FileFailure::OutsideWorkspace { .. }
        | FileFailure::NotAFile { .. }
        | FileFailure::NotADirectory { .. }
        | FileFailure::Denied { .. }
        | FileFailure::Binary { .. }
        | FileFailure::NoMatch { .. }
        | FileFailure::Pattern { .. }
        | FileFailure::Changed { .. }
        | FileFailure::OtherDigest { .. }
        | FileFailure::Exists { .. }
        | FileFailure::NotEmpty { .. }
        | FileFailure::PartlyRemoved { .. }
        | FileFailure::DiskFull
        | FileFailure::WorkspaceGone
        | FileFailure::Io { .. } => Vec::new(),
    }
}
