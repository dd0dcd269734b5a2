//! How operations end, from the wire.

use proto::v1;
use shared_sandbox::{
    Downloaded, Edited, EntryKind, FileFailure, Globbed, GrepMatch, Grepped, Listed, ListedEntry,
    Outcome, ReadContent, Request, Written,
};
use shared_types::Digest;

use super::{Malformed, exit};

/// The outcome of an operation.
pub(crate) fn outcome(wire: Option<v1::ended::Outcome>) -> Result<Outcome, Malformed> {
    use v1::ended::Outcome as Wire;
    Ok(match wire {
        None => {
            return Err(Malformed::new(
                "an operation's end carries no known outcome",
            ));
        }
        Some(Wire::Exited(record)) => Outcome::Exited(exit::from_wire(record)?),
        Some(Wire::Read(read)) => Outcome::Read(ReadContent {
            content: read.content,
            first_line: read.first_line,
            lines: read.lines,
            file_bytes: read.file_bytes,
            more: read.more,
        }),
        Some(Wire::Written(written)) => Outcome::Written(Written {
            bytes: written.bytes,
            before: match written.before.as_slice() {
                [] => None,
                before => Some(digest(before)?),
            },
            after: digest(&written.after)?,
        }),
        Some(Wire::Edited(edited)) => Outcome::Edited(Edited {
            line: edited.line,
            replaced: edited.replaced,
            before: digest(&edited.before)?,
            after: digest(&edited.after)?,
        }),
        Some(Wire::Listed(listed)) => Outcome::Listed(Listed {
            entries: listed
                .entries
                .into_iter()
                .map(entry)
                .collect::<Result<_, _>>()?,
            more: listed.more,
        }),
        Some(Wire::Globbed(globbed)) => Outcome::Globbed(Globbed {
            paths: globbed.paths,
            more: globbed.more,
            unread_rules: globbed.unread_rules,
        }),
        Some(Wire::Grepped(grepped)) => Outcome::Grepped(Grepped {
            matches: grepped.matches.into_iter().map(grep_match).collect(),
            more: grepped.more,
            unread_rules: grepped.unread_rules,
        }),
        Some(Wire::Downloaded(downloaded)) => Outcome::Downloaded(Downloaded {
            bytes: downloaded.bytes,
            digest: digest(&downloaded.digest)?,
        }),
        Some(Wire::Failed(failure)) => Outcome::Failed(file_failure(failure)?),
        Some(Wire::Refused(refusal)) => Outcome::Refused(refusal.into()),
    })
}

/// Tells whether an outcome is one that a certain kind of request can have.
pub type Expects = fn(&Outcome) -> bool;

/// How an operation that asks for this can end, beside being refused.
pub fn expected(request: &Request) -> Expects {
    use Outcome::{
        Downloaded, Edited, Exited, Failed, Globbed, Grepped, Listed, Read, Refused, Written,
    };
    match request {
        Request::Exec(_) => |end| matches!(end, Exited(_) | Refused(_)),
        Request::Read(_) => |end| matches!(end, Read(_) | Failed(_) | Refused(_)),
        Request::Download(_) => |end| matches!(end, Downloaded(_) | Failed(_) | Refused(_)),
        Request::Write(_) | Request::Upload(_) => {
            |end| matches!(end, Written(_) | Failed(_) | Refused(_))
        }
        Request::Edit(_) => |end| matches!(end, Edited(_) | Failed(_) | Refused(_)),
        Request::List(_) => |end| matches!(end, Listed(_) | Failed(_) | Refused(_)),
        Request::Glob(_) => |end| matches!(end, Globbed(_) | Failed(_) | Refused(_)),
        Request::Grep(_) => |end| matches!(end, Grepped(_) | Failed(_) | Refused(_)),
    }
}

fn digest(bytes: &[u8]) -> Result<Digest, Malformed> {
    Digest::from_slice(bytes).ok_or_else(|| Malformed::new("a digest is not 32 bytes long"))
}

fn entry(wire: v1::ListedEntry) -> Result<ListedEntry, Malformed> {
    use v1::listed_entry::Kind;
    let kind = match wire.kind() {
        Kind::File => EntryKind::File,
        Kind::Directory => EntryKind::Directory,
        Kind::Link => EntryKind::Link,
        Kind::Other => EntryKind::Other,
        Kind::Unspecified => return Err(Malformed::new("a directory's entry is of no known kind")),
    };
    Ok(ListedEntry {
        name: wire.name,
        kind,
        bytes: wire.bytes,
    })
}

fn grep_match(wire: v1::GrepMatch) -> GrepMatch {
    GrepMatch {
        path: wire.path,
        line: wire.line,
        text: wire.text,
    }
}

fn file_failure(wire: v1::FileFailure) -> Result<FileFailure, Malformed> {
    use v1::file_failure::Kind;
    let kind = wire.kind();
    let (path, reason) = (super::words(&wire.path), super::words(&wire.reason));
    Ok(match kind {
        Kind::NotFound => FileFailure::NotFound { path },
        Kind::OutsideWorkspace => FileFailure::OutsideWorkspace { path },
        Kind::NotAFile => FileFailure::NotAFile { path },
        Kind::NotADirectory => FileFailure::NotADirectory { path },
        Kind::Denied => FileFailure::Denied { path },
        Kind::Binary => FileFailure::Binary { path },
        Kind::TooLarge => FileFailure::TooLarge {
            path,
            bytes: wire.number,
            limit: wire.limit,
        },
        Kind::NoMatch => FileFailure::NoMatch { path },
        Kind::ManyMatches => FileFailure::ManyMatches {
            path,
            count: wire.number,
        },
        Kind::Pattern => FileFailure::Pattern { reason },
        Kind::Changed => FileFailure::Changed { path },
        Kind::OtherDigest => FileFailure::OtherDigest { path },
        Kind::OtherSize => FileFailure::OtherSize {
            path,
            bytes: wire.number,
        },
        Kind::DiskFull => FileFailure::DiskFull,
        Kind::WorkspaceGone => FileFailure::WorkspaceGone,
        Kind::TooSlow => FileFailure::TooSlow {
            limit_ms: wire.number,
        },
        Kind::Io => FileFailure::Io { reason },
        Kind::Unspecified => return Err(Malformed::new("a file failure is of no known kind")),
    })
}
