//! Outcomes in their wire form. Lists that would not fit into a frame are cut, and say so.

use proto::v1::{self, ended::Outcome as Wire, runner_frame};
use shared_sandbox::{
    Edited, EntryKind, FileFailure, Globbed, Grepped, Listed, Outcome, ReadContent, Written,
};
use shared_types::{OperationId, limits::MAX_FRAME_BYTES};

use super::exit;

/// What a frame's list may take, so that the frame stays below [`MAX_FRAME_BYTES`].
const MAX_LIST_BYTES: usize = MAX_FRAME_BYTES - 64 * 1024;

/// What an element of a list takes on the wire beside its text, at most.
const ELEMENT_OVERHEAD: usize = 32;

/// The end of an operation.
pub(crate) fn ended(operation: OperationId, outcome: Outcome) -> v1::RunnerFrame {
    let outcome = match outcome {
        Outcome::Exited(record) => Wire::Exited(exit::to_wire(record)),
        Outcome::Read(content) => Wire::Read(read(content)),
        Outcome::Written(written) => Wire::Written(self::written(written)),
        Outcome::Edited(edited) => Wire::Edited(self::edited(edited)),
        Outcome::Listed(listed) => Wire::Listed(self::listed(listed)),
        Outcome::Globbed(globbed) => Wire::Globbed(self::globbed(globbed)),
        Outcome::Grepped(grepped) => Wire::Grepped(self::grepped(grepped)),
        Outcome::Downloaded(downloaded) => Wire::Downloaded(v1::Downloaded {
            bytes: downloaded.bytes,
            digest: downloaded.digest.as_bytes().to_vec(),
        }),
        Outcome::Failed(failure) => Wire::Failed(file_failure(failure)),
        Outcome::Refused(refusal) => Wire::Refused(refusal.into()),
    };
    super::from_runner(runner_frame::Kind::Ended(v1::Ended {
        operation: operation.to_string(),
        outcome: Some(outcome),
    }))
}

fn read(content: ReadContent) -> v1::ReadContent {
    v1::ReadContent {
        content: content.content,
        first_line: content.first_line,
        lines: content.lines,
        file_bytes: content.file_bytes,
        more: content.more,
    }
}

fn written(written: Written) -> v1::Written {
    let before = written.before.map(|digest| digest.as_bytes().to_vec());
    v1::Written {
        bytes: written.bytes,
        before: before.unwrap_or_default(),
        after: written.after.as_bytes().to_vec(),
    }
}

fn edited(edited: Edited) -> v1::Edited {
    v1::Edited {
        line: edited.line,
        replaced: edited.replaced,
        before: edited.before.as_bytes().to_vec(),
        after: edited.after.as_bytes().to_vec(),
    }
}

fn listed(listed: Listed) -> v1::Listed {
    let (entries, cut) = fitting(listed.entries, |entry| entry.name.len());
    v1::Listed {
        entries: entries
            .into_iter()
            .map(|entry| v1::ListedEntry {
                name: entry.name,
                kind: entry_kind(entry.kind).into(),
                bytes: entry.bytes,
            })
            .collect(),
        more: listed.more || cut,
    }
}

fn entry_kind(kind: EntryKind) -> v1::listed_entry::Kind {
    use v1::listed_entry::Kind;
    match kind {
        EntryKind::File => Kind::File,
        EntryKind::Directory => Kind::Directory,
        EntryKind::Link => Kind::Link,
        EntryKind::Other => Kind::Other,
    }
}

fn globbed(globbed: Globbed) -> v1::Globbed {
    let (paths, cut) = fitting(globbed.paths, String::len);
    v1::Globbed {
        paths,
        more: globbed.more || cut,
        unread_rules: globbed.unread_rules,
    }
}

fn grepped(grepped: Grepped) -> v1::Grepped {
    let (matches, cut) = fitting(grepped.matches, |found| found.path.len() + found.text.len());
    v1::Grepped {
        matches: matches
            .into_iter()
            .map(|found| v1::GrepMatch {
                path: found.path,
                line: found.line,
                text: found.text,
            })
            .collect(),
        more: grepped.more || cut,
        unread_rules: grepped.unread_rules,
    }
}

/// The first elements that fit into a frame, and whether any were left out.
fn fitting<T>(mut elements: Vec<T>, text_bytes: impl Fn(&T) -> usize) -> (Vec<T>, bool) {
    let mut bytes = 0;
    let too_many = elements.iter().position(|element| {
        bytes += text_bytes(element) + ELEMENT_OVERHEAD;
        bytes > MAX_LIST_BYTES
    });
    elements.truncate(too_many.unwrap_or(elements.len()));
    (elements, too_many.is_some())
}

fn file_failure(failure: FileFailure) -> v1::FileFailure {
    use v1::file_failure::Kind;
    let of = |kind: Kind, path: String| v1::FileFailure {
        kind: kind.into(),
        path,
        ..v1::FileFailure::default()
    };
    match failure {
        FileFailure::NotFound { path } => of(Kind::NotFound, path),
        FileFailure::OutsideWorkspace { path } => of(Kind::OutsideWorkspace, path),
        FileFailure::NotAFile { path } => of(Kind::NotAFile, path),
        FileFailure::NotADirectory { path } => of(Kind::NotADirectory, path),
        FileFailure::Denied { path } => of(Kind::Denied, path),
        FileFailure::Binary { path } => of(Kind::Binary, path),
        FileFailure::TooLarge { path, bytes, limit } => v1::FileFailure {
            number: bytes,
            limit,
            ..of(Kind::TooLarge, path)
        },
        FileFailure::NoMatch { path } => of(Kind::NoMatch, path),
        FileFailure::ManyMatches { path, count } => v1::FileFailure {
            number: count,
            ..of(Kind::ManyMatches, path)
        },
        FileFailure::Pattern { reason } => v1::FileFailure {
            reason,
            ..of(Kind::Pattern, String::new())
        },
        FileFailure::Changed { path } => of(Kind::Changed, path),
        FileFailure::OtherDigest { path } => of(Kind::OtherDigest, path),
        FileFailure::OtherSize { path, bytes } => v1::FileFailure {
            number: bytes,
            ..of(Kind::OtherSize, path)
        },
        FileFailure::DiskFull => of(Kind::DiskFull, String::new()),
        FileFailure::WorkspaceGone => of(Kind::WorkspaceGone, String::new()),
        FileFailure::TooSlow { limit_ms } => v1::FileFailure {
            number: limit_ms,
            ..of(Kind::TooSlow, String::new())
        },
        FileFailure::Io { reason } => v1::FileFailure {
            reason,
            ..of(Kind::Io, String::new())
        },
    }
}
