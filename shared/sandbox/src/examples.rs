//! Examples for tests: requests, outcomes and failures of every kind, with a value of its own in each
//! field. A kind without an example does not compile, and every test that goes over all kinds takes
//! them from here.

use std::num::NonZeroU64;

use shared_types::{Digest, DigestAlgorithm, FileDigest, Refusal, RefusalCode};

use crate::{
    Command, Download, Downloaded, Edit, Edited, EntryKind, Exec, ExitCause, ExitRecord,
    ExitStatus, FileFailure, Found, Glob, Globbed, Grep, GrepMatch, Grepped, Instructions, List,
    Listed, ListedEntry, MadeDirectory, MakeDirectory, Move, Moved, Nearest, NotStarted, Outcome,
    Pack, Packed, ProjectFile, Read, ReadContent, Remove, Removed, Request, Retention, Skipped,
    Stat, StreamEnd, Survey, Surveyed, TerminalSize, Unpack, Unpacked, Upload, Write, Written,
};

/// Makes a function that gives examples of each variant; one without any does not compile.
macro_rules! examples {
    ($(
        $(#[$doc:meta])*
        fn $name:ident() -> Vec<$type:ty> {
            $($variant:pat => [$($example:expr),+ $(,)?],)*
        }
    )*) => {$(
        $(#[$doc])*
        ///
        /// # Panics
        /// An example is not of the kind that it stands for.
        pub fn $name() -> Vec<$type> {
            let _: fn(&$type) = |one| match one { $($variant => (),)* };
            let mut examples = Vec::new();
            $(for example in [$($example),+] {
                assert!(matches!(&example, $variant), "{example:?}");
                examples.push(example);
            })*
            examples
        }
    )*};
}

examples! {
    /// Requests of every kind.
    fn requests() -> Vec<Request> {
        Request::Exec(_) => [
            Request::Exec(Exec::new(Command::Shell(text("echo one; echo two")))),
            Request::Exec(Exec {
                command: Command::Argv(vec![text("cat"), text("-")]),
                directory: text("a/folder"),
                environment: [(text("NAME"), text("value"))].into(),
                merged: true,
                input: true,
                terminal: Some(TerminalSize { rows: 24, columns: 80 }),
                retention: Retention::All,
                idle_for_ms: NonZeroU64::new(1500),
            }),
        ],
        Request::Read(_) => [Request::Read(Read {
            path: path(),
            first_line: 1,
            max_lines: 2,
            max_bytes: 3,
        })],
        Request::Write(_) => [Request::Write(Write {
            path: path(),
            content: b"content".to_vec(),
        })],
        Request::Edit(_) => [
            Request::Edit(Edit {
                path: path(),
                old: text("one"),
                new: text("two"),
                every: true,
                expected: None,
            }),
            Request::Edit(Edit {
                path: path(),
                old: text("one"),
                new: text("two"),
                every: false,
                expected: Some(digest()),
            }),
        ],
        Request::List(_) => [
            Request::List(List {
                path: path(),
                max_entries: 4,
                tree: false,
                after: String::new(),
            }),
            Request::List(List {
                path: path(),
                max_entries: 4,
                tree: true,
                after: text("a/last"),
            }),
        ],
        Request::Glob(_) => [Request::Glob(Glob {
            path: path(),
            pattern: text("**/*.rs"),
            max_paths: 5,
        })],
        Request::Grep(_) => [Request::Grep(Grep {
            path: path(),
            pattern: text("needle"),
            files: text("*.rs"),
            ignore_case: true,
            max_matches: 6,
        })],
        Request::Download(_) => [
            Request::Download(Download { path: path(), algorithm: DigestAlgorithm::Sha256, max_bytes: 0 }),
            Request::Download(Download { path: path(), algorithm: DigestAlgorithm::Blake3, max_bytes: 7 }),
        ],
        Request::Upload(_) => [
            Request::Upload(Upload {
                path: path(),
                bytes: 7,
                digest: digest(),
                mode: Some(0o755),
                modified_us: None,
            }),
            Request::Upload(Upload {
                path: path(),
                bytes: 7,
                digest: Digest::of(b"content").into(),
                mode: None,
                modified_us: None,
            }),
        ],
        Request::Stat(_) => [Request::Stat(Stat { path: path(), follow: true })],
        Request::MakeDirectory(_) => [Request::MakeDirectory(MakeDirectory { path: path() })],
        Request::Move(_) => [Request::Move(Move {
            from: path(),
            to: text("another/file"),
            replace: true,
        })],
        Request::Remove(_) => [Request::Remove(Remove {
            path: path(),
            tree: true,
        })],
        Request::Pack(_) => [Request::Pack(Pack {
            path: path(),
            entries: vec![text("one"), text("two/three")],
            algorithm: DigestAlgorithm::Blake3,
        })],
        Request::Unpack(_) => [Request::Unpack(Unpack {
            path: path(),
            bytes: 9,
            digest: digest(),
        })],
        Request::Survey(_) => [Request::Survey(Survey { path: path(), max_bytes: 10, of_user: true, extension_bytes: 20 })],
    }

    /// Outcomes of every kind.
    fn ends() -> Vec<Outcome> {
        Outcome::Exited(_) => [
            Outcome::Exited(exited(ExitStatus::Code(0), ExitCause::Exited)),
            Outcome::Exited(exited(ExitStatus::Signal(9), ExitCause::Timeout)),
        ],
        Outcome::Read(_) => [
            Outcome::Read(ReadContent {
                content: b"content".to_vec(),
                first_line: 1,
                lines: 2,
                file_bytes: 3,
                more: true,
                digest: None,
            }),
            Outcome::Read(ReadContent {
                content: b"content".to_vec(),
                first_line: 1,
                lines: 1,
                file_bytes: 7,
                more: false,
                digest: Some(digest()),
            }),
        ],
        Outcome::Written(_) => [
            Outcome::Written(Written {
                bytes: 7,
                before: None,
                after: digest(),
            }),
            Outcome::Written(Written {
                bytes: 7,
                before: Some(Digest::of(b"before").into()),
                after: Digest::of(b"content").into(),
            }),
        ],
        Outcome::Edited(_) => [Outcome::Edited(Edited {
            line: 1,
            replaced: 2,
            before: Digest::of(b"one"),
            after: Digest::of(b"two"),
        })],
        Outcome::Listed(_) => [Outcome::Listed(Listed {
            entries: entry_kinds().into_iter().map(entry).collect(),
            more: true,
        })],
        Outcome::Globbed(_) => [Outcome::Globbed(Globbed {
            paths: vec![path()],
            more: true,
            unread_rules: 1,
        })],
        Outcome::Grepped(_) => [Outcome::Grepped(Grepped {
            matches: vec![GrepMatch {
                path: path(),
                line: 1,
                text: text("needle"),
            }],
            more: true,
            unread_rules: 2,
            skipped: vec![Skipped {
                path: path(),
                failure: FileFailure::Binary { path: path() },
            }],
            more_skipped: 3,
        })],
        Outcome::Downloaded(_) => [Outcome::Downloaded(Downloaded {
            bytes: 7,
            digest: digest(),
        })],
        Outcome::Found(_) => [
            Outcome::Found(Found {
                kind: EntryKind::File,
                bytes: 8,
                mode: 0o640,
                modified_us: -1,
                leads_to: None,
            }),
            Outcome::Found(Found {
                kind: EntryKind::Link,
                bytes: 0,
                mode: 0o777,
                modified_us: 1,
                leads_to: Some(path()),
            }),
        ],
        Outcome::MadeDirectory(_) => [Outcome::MadeDirectory(MadeDirectory { made: true })],
        Outcome::Moved(_) => [Outcome::Moved(Moved {
            kind: EntryKind::Directory,
            replaced: true,
        })],
        Outcome::Removed(_) => [Outcome::Removed(Removed { kind: EntryKind::Link })],
        Outcome::Packed(_) => [Outcome::Packed(Packed {
            bytes: 11,
            digest: digest(),
            skipped: vec![skipped()],
        })],
        Outcome::Unpacked(_) => [Outcome::Unpacked(Unpacked {
            entries: 12,
            skipped: vec![skipped()],
        })],
        Outcome::Surveyed(_) => [Outcome::Surveyed(Surveyed {
            system: text("a system"),
            folder: text("/a/folder"),
            branch: Some(text("main")),
            instructions: vec![Instructions {
                path: path(),
                text: text("be brief"),
                bytes: 13,
                cut: true,
            }],
            unread: vec![skipped()],
            project: Some(Box::new(ProjectFile {
                path: path(),
                text: text("deny = []"),
            })),
            extensions: vec![Instructions {
                path: path(),
                text: text("{}"),
                bytes: 2,
                cut: false,
            }],
        })],
        Outcome::Failed(_) => [Outcome::Failed(FileFailure::DiskFull)],
        Outcome::Refused(_) => [Outcome::Refused(
            Refusal::new(RefusalCode::ResourceExhausted, "later"),
        )],
    }

    /// Failures of every kind.
    fn failures() -> Vec<FileFailure> {
        FileFailure::NotFound { .. } => [FileFailure::NotFound { path: path() }],
        FileFailure::OutsideWorkspace { .. } => [FileFailure::OutsideWorkspace { path: path() }],
        FileFailure::NotAFile { .. } => [FileFailure::NotAFile { path: path() }],
        FileFailure::NotADirectory { .. } => [FileFailure::NotADirectory { path: path() }],
        FileFailure::Denied { .. } => [FileFailure::Denied { path: path() }],
        FileFailure::Binary { .. } => [FileFailure::Binary { path: path() }],
        FileFailure::TooLarge { .. } => [FileFailure::TooLarge {
            path: path(),
            bytes: 5,
            limit: 4,
        }],
        FileFailure::NoMatch { .. } => [
            FileFailure::NoMatch { path: path(), nearest: None },
            FileFailure::NoMatch { path: path(), nearest: Some(Nearest::Nowhere) },
            FileFailure::NoMatch {
                path: path(),
                nearest: Some(Nearest::Lines {
                    line: 3,
                    lines: vec![text("\tone"), String::new()],
                    differences: vec![text("line 3 is indented with a tab where your text has 4 spaces")],
                }),
            },
        ],
        FileFailure::ManyMatches { .. } => [
            FileFailure::ManyMatches { path: path(), count: 2, lines: Vec::new() },
            FileFailure::ManyMatches { path: path(), count: 2, lines: vec![3, 5] },
        ],
        FileFailure::Pattern { .. } => [FileFailure::Pattern { reason: text("a bracket is open") }],
        FileFailure::Changed { .. } => [
            FileFailure::Changed { path: path(), since_read: false },
            FileFailure::Changed { path: path(), since_read: true },
        ],
        FileFailure::OtherDigest { .. } => [FileFailure::OtherDigest { path: path() }],
        FileFailure::OtherSize { .. } => [FileFailure::OtherSize {
            path: path(),
            bytes: 6,
        }],
        FileFailure::Exists { .. } => [FileFailure::Exists { path: path() }],
        FileFailure::NotEmpty { .. } => [FileFailure::NotEmpty { path: path() }],
        FileFailure::PartlyRemoved { .. } => [FileFailure::PartlyRemoved {
            path: path(),
            reason: text("permission is denied"),
        }],
        FileFailure::DiskFull => [FileFailure::DiskFull],
        FileFailure::WorkspaceGone => [FileFailure::WorkspaceGone],
        FileFailure::TooSlow { .. } => [FileFailure::TooSlow { limit_ms: 7 }],
        FileFailure::Io { .. } => [FileFailure::Io { reason: text("input/output error") }],
    }

    /// Every way in which a process may have ended.
    fn statuses() -> Vec<ExitStatus> {
        ExitStatus::Code(_) => [ExitStatus::Code(3)],
        ExitStatus::Signal(_) => [ExitStatus::Signal(9)],
        ExitStatus::NotStarted(_) => [ExitStatus::NotStarted(NotStarted::MissingShell)],
        ExitStatus::Unknown => [ExitStatus::Unknown],
    }

    /// Every reason not to start a process.
    fn not_started() -> Vec<NotStarted> {
        NotStarted::MissingProgram(_) => [NotStarted::MissingProgram(text("name"))],
        NotStarted::MissingInterpreter(_) => [NotStarted::MissingInterpreter(text("name"))],
        NotStarted::MissingShell => [NotStarted::MissingShell],
        NotStarted::MissingDirectory(_) => [NotStarted::MissingDirectory(text("name"))],
        NotStarted::OutsideWorkspace(_) => [NotStarted::OutsideWorkspace(text("name"))],
        NotStarted::WorkspaceGone => [NotStarted::WorkspaceGone],
        NotStarted::Denied(_) => [NotStarted::Denied(text("name"))],
        NotStarted::NotAProgram(_) => [NotStarted::NotAProgram(text("name"))],
        NotStarted::TooLarge => [NotStarted::TooLarge],
        NotStarted::NoProcess => [NotStarted::NoProcess],
        NotStarted::DiskFull => [NotStarted::DiskFull],
        NotStarted::Host(_) => [NotStarted::Host(text("out of luck"))],
    }

    /// Every cause of a process's end.
    fn causes() -> Vec<ExitCause> {
        ExitCause::Exited => [ExitCause::Exited],
        ExitCause::Timeout => [ExitCause::Timeout],
        ExitCause::Idle => [ExitCause::Idle],
        ExitCause::Cancelled => [ExitCause::Cancelled],
        ExitCause::Orphaned => [ExitCause::Orphaned],
        ExitCause::OutOfMemory => [ExitCause::OutOfMemory],
        ExitCause::DiskFull => [ExitCause::DiskFull],
        ExitCause::SupervisorLost => [ExitCause::SupervisorLost],
        ExitCause::HostReboot => [ExitCause::HostReboot],
        ExitCause::SandboxStopped => [ExitCause::SandboxStopped],
    }

    /// Everything that an entry of a directory can be.
    fn entry_kinds() -> Vec<EntryKind> {
        EntryKind::File => [EntryKind::File],
        EntryKind::Directory => [EntryKind::Directory],
        EntryKind::Link => [EntryKind::Link],
        EntryKind::Other => [EntryKind::Other],
    }
}

/// Outcomes of every kind, and among them every failure and every way in which a process may end.
pub fn outcomes() -> Vec<Outcome> {
    let statuses = statuses().into_iter();
    let not_started = not_started().into_iter().map(ExitStatus::NotStarted);
    let exits = statuses
        .chain(not_started)
        .map(|status| exited(status, ExitCause::Exited));
    let causes = causes().into_iter();
    let exits = exits.chain(causes.map(|cause| exited(ExitStatus::Code(0), cause)));
    let failures = failures().into_iter().map(Outcome::Failed);
    let outcomes = ends().into_iter().chain(failures);
    outcomes.chain(exits.map(Outcome::Exited)).collect()
}

/// An end of a process, with a value of its own in each field.
pub fn exited(status: ExitStatus, cause: ExitCause) -> ExitRecord {
    ExitRecord {
        status,
        cause,
        stdout: StreamEnd {
            offset: 5,
            checksum: Some(6),
        },
        stderr: StreamEnd {
            offset: 7,
            checksum: None,
        },
        wall_ms: 8,
        cpu_us: 9,
        max_rss_bytes: 10,
        tree_gone: true,
    }
}

fn entry(kind: EntryKind) -> ListedEntry {
    ListedEntry {
        name: format!("{kind:?}"),
        kind,
        bytes: 4,
        mode: 0o755,
        leads_to: (kind == EntryKind::Link).then(path),
        is_replaced: kind == EntryKind::Other,
        is_unreadable: kind == EntryKind::Directory,
    }
}

fn skipped() -> Skipped {
    Skipped {
        path: path(),
        failure: FileFailure::Changed {
            path: path(),
            since_read: false,
        },
    }
}

fn digest() -> FileDigest {
    DigestAlgorithm::Blake3.of(b"content")
}

fn path() -> String {
    text("a/file")
}

fn text(text: &str) -> String {
    text.to_owned()
}
