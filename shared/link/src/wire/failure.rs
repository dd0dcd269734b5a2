//! Failures of file operations, in both directions.

use proto::v1::{self, file_failure::Kind};
use shared_sandbox::{FileFailure, Nearest};
use shared_types::clean::clean;

use super::{
    Malformed,
    alike::{Field, OnWire, Unread},
};

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
                        $($wire: Field::put($field),)*
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
                    $(Kind::$kind => Self::$kind { $($field: Field::take(wire.$wire)?),* },)*
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
    NoMatch { path: path, nearest: nearest },
    ManyMatches { path: path, count: number, lines: lines },
    Pattern { reason: reason },
    Changed { path: path, since_read: since_read },
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

impl Field<Option<v1::Nearest>> for Option<Nearest> {
    fn put(self) -> Option<v1::Nearest> {
        Some(match self? {
            Nearest::Nowhere => v1::Nearest::default(),
            Nearest::Lines {
                line,
                lines,
                differences,
            } => v1::Nearest {
                line,
                lines,
                differences,
            },
        })
    }

    /// The lines keep their white space, which may be the difference.
    fn take(wire: Option<v1::Nearest>) -> Result<Self, Unread> {
        let Some(wire) = wire else { return Ok(None) };
        if wire.line == 0 {
            return Ok(Some(Nearest::Nowhere));
        }
        let mut room = Nearest::MAX_BYTES;
        let lines = wire.lines.iter().take(Nearest::MAX_LINES).map(|line| {
            let line = clean(line).replace('\n', "⏎");
            let line = &line[..line.floor_char_boundary(room)];
            room -= line.len();
            line.to_owned()
        });
        let lines = lines.collect();
        let differences = wire.differences.iter().take(Nearest::MAX_DIFFERENCES);
        Ok(Some(Nearest::Lines {
            line: wire.line,
            lines,
            differences: differences.map(|words| super::words(words)).collect(),
        }))
    }
}

/// The numbers in a failure, and what they stand for.
pub(super) fn numbers(failure: &FileFailure) -> Vec<(&'static str, u64)> {
    match failure {
        FileFailure::TooLarge { bytes, limit, .. } => {
            vec![("the size of the file", *bytes), ("its own limit", *limit)]
        }
        FileFailure::NoMatch {
            nearest: Some(Nearest::Lines { line, .. }),
            ..
        } => vec![("the line of the nearest place", *line)],
        FileFailure::ManyMatches { count, lines, .. } => vec![
            ("the count of matches", *count),
            (
                "the line of a match",
                lines.iter().copied().max().unwrap_or(0),
            ),
        ],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_runner_keep_their_tabs_and_are_harmless_and_bounded() {
        let nearest = v1::Nearest {
            line: 7,
            lines: vec!["\tone\x1b[2J\ntwo".to_owned(), "é".repeat(1000), "x".into()],
            differences: vec!["line 7\nis long ".repeat(1000); 100],
        };
        let Ok(Some(Nearest::Lines {
            lines, differences, ..
        })) = Field::take(Some(nearest))
        else {
            panic!("it is read");
        };
        assert_eq!((lines[0].as_str(), lines[2].as_str()), ("\tone⏎two", ""));
        let bytes: usize = lines.iter().map(String::len).sum();
        assert!((1000..=Nearest::MAX_BYTES).contains(&bytes), "{bytes}");
        assert_eq!(differences.len(), Nearest::MAX_DIFFERENCES);
        assert!(differences[0].starts_with("line 7⏎is long"));
    }

    #[test]
    fn a_file_that_changed_since_it_was_read_is_of_a_kind_that_earlier_releases_know() {
        let changed = |since_read| FileFailure::Changed {
            path: "a".to_owned(),
            since_read,
        };
        let before: v1::FileFailure = changed(false).to_wire();
        let wire = v1::FileFailure {
            since_read: false,
            ..changed(true).to_wire()
        };
        assert_eq!(wire, before);
    }
}
