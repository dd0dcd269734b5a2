//! The outcomes of operations, in both directions. Lists that would not fit into a frame are cut,
//! and say so.

use proto::v1::{self, ended::Outcome as Wire, runner_frame};
use shared_sandbox::{
    FileFailure, Globbed, Grepped, Listed, Outcome, Packed, Skipped, Surveyed, Unpacked,
};
use shared_types::{OperationId, Refusal, limits::MAX_FRAME_BYTES};

use super::{
    Malformed,
    alike::{Field, OnWire, alike},
    failure,
};

/// The most bytes of a frame's list, so that the frame stays below [`MAX_FRAME_BYTES`].
const MAX_LIST_BYTES: usize = MAX_FRAME_BYTES - 64 * 1024;

/// The most bytes of an element of a list on the wire, beside its text.
const ELEMENT_OVERHEAD: usize = 32;

/// Makes both directions from one list of kinds; a kind that is missing does not compile.
macro_rules! outcomes {
    ($($kind:ident)*) => {
        /// The end of an operation.
        pub fn ended(operation: OperationId, outcome: Outcome) -> v1::RunnerFrame {
            let outcome = match outcome {
                $(Outcome::$kind(end) => Wire::$kind(OnWire::<Malformed>::to_wire(end)),)*
            };
            super::from_runner(runner_frame::Kind::Ended(v1::Ended {
                operation: operation.to_string(),
                outcome: Some(outcome),
            }))
        }

        /// The outcome of an operation.
        pub(crate) fn outcome(wire: Option<Wire>) -> Result<Outcome, Malformed> {
            match wire {
                $(Some(Wire::$kind(end)) => OnWire::<Malformed>::from_wire(end).map(Outcome::$kind),)*
                None => Err(Malformed::new("an operation's end carries no known outcome")),
            }
        }
    };
}

outcomes! {
    Exited Read Written Edited Listed Globbed Grepped Downloaded Found MadeDirectory Moved Removed
    Packed Unpacked Surveyed Failed Refused
}

/// The numbers in an outcome, and what they stand for.
pub(super) fn numbers(outcome: &Outcome) -> Vec<(&'static str, u64)> {
    match outcome {
        Outcome::Exited(record) => vec![
            ("the length of stdout", record.stdout.offset),
            ("the length of stderr", record.stderr.offset),
            ("the time that it ran", record.wall_ms),
            ("its processor time", record.cpu_us),
            ("its memory", record.max_rss_bytes),
        ],
        Outcome::Read(read) => vec![
            ("the first line", read.first_line),
            ("the count of lines", read.lines),
            ("the size of the file", read.file_bytes),
        ],
        Outcome::Written(written) => vec![("the size of the file", written.bytes)],
        Outcome::Edited(edited) => vec![
            ("the line of the change", edited.line),
            ("the count of changes", edited.replaced),
        ],
        Outcome::Listed(listed) => {
            let sizes = listed.entries.iter().map(|entry| entry.bytes);
            vec![("the size of an entry", sizes.max().unwrap_or(0))]
        }
        Outcome::Grepped(grepped) => {
            let lines = grepped.matches.iter().map(|found| found.line);
            let mut numbers = vec![
                ("the line of a match", lines.max().unwrap_or(0)),
                ("the count of files", grepped.more_skipped),
            ];
            numbers.extend(skipped_numbers(&grepped.skipped));
            numbers
        }
        Outcome::Downloaded(downloaded) => vec![("the size of the file", downloaded.bytes)],
        Outcome::Found(found) => vec![("the size of the file", found.bytes)],
        Outcome::Packed(packed) => {
            let mut numbers = vec![("the size of the archive", packed.bytes)];
            numbers.extend(skipped_numbers(&packed.skipped));
            numbers
        }
        Outcome::Unpacked(unpacked) => skipped_numbers(&unpacked.skipped),
        Outcome::Surveyed(surveyed) => {
            let sizes = surveyed.instructions.iter().map(|file| file.bytes);
            let mut numbers = vec![("the size of a file", sizes.max().unwrap_or(0))];
            numbers.extend(skipped_numbers(&surveyed.unread));
            numbers
        }
        Outcome::Failed(failure) => failure::numbers(failure),
        Outcome::Globbed(_)
        | Outcome::MadeDirectory(_)
        | Outcome::Moved(_)
        | Outcome::Removed(_)
        | Outcome::Refused(_) => Vec::new(),
    }
}

alike! {
    ReadContent { content, first_line, lines, file_bytes, more, digest }
    Written { bytes, before, after }
    Edited { line, replaced, before, after }
    ListedEntry { name, kind, bytes, mode, leads_to, is_replaced, is_unreadable }
    GrepMatch { path, line, text }
    Downloaded { bytes, digest }
    Found { kind, bytes, mode, modified_us, leads_to }
    MadeDirectory { made }
    Moved { kind, replaced }
    Removed { kind }
    Instructions { path, text, bytes, cut }
    ProjectFile { path, text }
}

fn skipped_numbers(skipped: &[Skipped]) -> Vec<(&'static str, u64)> {
    let each = skipped.iter().map(|one| &one.failure);
    each.flat_map(failure::numbers).collect()
}

impl OnWire<Malformed> for Skipped {
    type Wire = v1::Skipped;

    fn to_wire(self) -> v1::Skipped {
        v1::Skipped {
            path: self.path,
            failure: Some(self.failure.to_wire()),
        }
    }

    fn from_wire(wire: v1::Skipped) -> Result<Self, Malformed> {
        let unread = || Malformed::new("an entry that was left out carries no failure");
        Ok(Self {
            path: wire.path,
            failure: FileFailure::from_wire(wire.failure.ok_or_else(unread)?)?,
        })
    }
}

impl OnWire<Malformed> for Packed {
    type Wire = v1::Packed;

    fn to_wire(self) -> v1::Packed {
        v1::Packed {
            bytes: self.bytes,
            digest: Field::put(self.digest),
            skipped: all_to_wire(self.skipped),
        }
    }

    fn from_wire(wire: v1::Packed) -> Result<Self, Malformed> {
        Ok(Self {
            bytes: wire.bytes,
            digest: Field::take(wire.digest)?,
            skipped: all_from_wire(wire.skipped)?,
        })
    }
}

impl OnWire<Malformed> for Unpacked {
    type Wire = v1::Unpacked;

    fn to_wire(self) -> v1::Unpacked {
        v1::Unpacked {
            entries: self.entries,
            skipped: all_to_wire(self.skipped),
        }
    }

    fn from_wire(wire: v1::Unpacked) -> Result<Self, Malformed> {
        Ok(Self {
            entries: wire.entries,
            skipped: all_from_wire(wire.skipped)?,
        })
    }
}

impl OnWire<Malformed> for Surveyed {
    type Wire = v1::Surveyed;

    fn to_wire(self) -> v1::Surveyed {
        let (instructions, _) =
            fitting(self.instructions, |file| file.path.len() + file.text.len());
        v1::Surveyed {
            system: self.system,
            folder: self.folder,
            branch: self.branch,
            instructions: all_to_wire(instructions),
            unread: all_to_wire(self.unread),
            project: self.project.map(|file| OnWire::<Malformed>::to_wire(*file)),
            extensions: all_to_wire(self.extensions),
        }
    }

    fn from_wire(wire: v1::Surveyed) -> Result<Self, Malformed> {
        let project = wire.project.map(OnWire::<Malformed>::from_wire);
        let project = project.transpose()?;
        Ok(Self {
            system: wire.system,
            folder: wire.folder,
            branch: wire.branch,
            instructions: all_from_wire(wire.instructions)?,
            unread: all_from_wire(wire.unread)?,
            project: project.map(Box::new),
            extensions: all_from_wire(wire.extensions)?,
        })
    }
}

impl OnWire<Malformed> for Listed {
    type Wire = v1::Listed;

    fn to_wire(self) -> v1::Listed {
        let (entries, cut) = fitting(self.entries, |entry| {
            entry.name.len() + entry.leads_to.as_ref().map_or(0, String::len)
        });
        v1::Listed {
            entries: all_to_wire(entries),
            more: self.more || cut,
        }
    }

    fn from_wire(wire: v1::Listed) -> Result<Self, Malformed> {
        Ok(Self {
            entries: all_from_wire(wire.entries)?,
            more: wire.more,
        })
    }
}

impl OnWire<Malformed> for Globbed {
    type Wire = v1::Globbed;

    fn to_wire(self) -> v1::Globbed {
        let (paths, cut) = fitting(self.paths, String::len);
        v1::Globbed {
            paths,
            more: self.more || cut,
            unread_rules: self.unread_rules,
        }
    }

    fn from_wire(wire: v1::Globbed) -> Result<Self, Malformed> {
        Ok(Self {
            paths: wire.paths,
            more: wire.more,
            unread_rules: wire.unread_rules,
        })
    }
}

impl OnWire<Malformed> for Grepped {
    type Wire = v1::Grepped;

    fn to_wire(self) -> v1::Grepped {
        let (matches, cut) = fitting(self.matches, |found| found.path.len() + found.text.len());
        v1::Grepped {
            matches: all_to_wire(matches),
            more: self.more || cut,
            unread_rules: self.unread_rules,
            skipped: all_to_wire(self.skipped),
            more_skipped: self.more_skipped,
        }
    }

    fn from_wire(wire: v1::Grepped) -> Result<Self, Malformed> {
        Ok(Self {
            matches: all_from_wire(wire.matches)?,
            more: wire.more,
            unread_rules: wire.unread_rules,
            skipped: all_from_wire(wire.skipped)?,
            more_skipped: wire.more_skipped,
        })
    }
}

impl OnWire<Malformed> for Refusal {
    type Wire = v1::Refusal;

    fn to_wire(self) -> v1::Refusal {
        self.into()
    }

    fn from_wire(wire: v1::Refusal) -> Result<Self, Malformed> {
        Ok(wire.into())
    }
}

fn all_to_wire<T: OnWire<Malformed>>(all: Vec<T>) -> Vec<T::Wire> {
    all.into_iter().map(T::to_wire).collect()
}

fn all_from_wire<T: OnWire<Malformed>>(all: Vec<T::Wire>) -> Result<Vec<T>, Malformed> {
    all.into_iter().map(T::from_wire).collect()
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

#[cfg(test)]
mod tests;
