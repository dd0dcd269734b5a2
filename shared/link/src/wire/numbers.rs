//! The bound of the numbers in a runner's frames, held before anything counts with them.
//!
//! A number above [`MAX_NUMBER`] in a frame about the link itself ends the link. In a result it ends
//! only the operation: the runner would send the same result again over every later link.

use shared_sandbox::{FileFailure, Outcome};
use shared_types::{Refusal, RefusalCode, limits::MAX_NUMBER};

use super::Malformed;

/// A number of the link itself.
pub(crate) fn number(what: &str, number: u64) -> Result<u64, Malformed> {
    match number <= MAX_NUMBER {
        true => Ok(number),
        false => Err(Malformed(format!(
            "{what} is {number}, which no runner can mean: at most {MAX_NUMBER} is allowed"
        ))),
    }
}

/// The outcome, or a refusal in its place where a number in it is too large.
///
/// What only reads is refused as invalid. Of a command or a change the server then does not know what
/// it did, so it is lost.
pub(crate) fn believed(outcome: Outcome) -> Outcome {
    let Some((what, number)) = too_large(&outcome) else {
        return outcome;
    };
    let code = match outcome {
        Outcome::Exited(_)
        | Outcome::Written(_)
        | Outcome::Edited(_)
        | Outcome::MadeDirectory(_)
        | Outcome::Moved(_)
        | Outcome::Removed(_) => RefusalCode::Lost,
        Outcome::Read(_)
        | Outcome::Listed(_)
        | Outcome::Globbed(_)
        | Outcome::Grepped(_)
        | Outcome::Downloaded(_)
        | Outcome::Found(_)
        | Outcome::Failed(_)
        | Outcome::Refused(_) => RefusalCode::Invalid,
    };
    Outcome::Refused(Refusal::new(
        code,
        format!(
            "the runner's answer says {number} for {what}, which cannot be: its result is not used; \
             update gantry-runner there, and look at the host"
        ),
    ))
}

/// The first number that is too large, and what it stands for.
fn too_large(outcome: &Outcome) -> Option<(&'static str, u64)> {
    let first = |numbers: &[(&'static str, u64)]| {
        let is_too_large = |(_, number): &&(&'static str, u64)| *number > MAX_NUMBER;
        numbers.iter().find(is_too_large).copied()
    };
    match outcome {
        Outcome::Exited(record) => first(&[
            ("the length of stdout", record.stdout.offset),
            ("the length of stderr", record.stderr.offset),
            ("the time that it ran", record.wall_ms),
            ("its processor time", record.cpu_us),
            ("its memory", record.max_rss_bytes),
        ]),
        Outcome::Read(read) => first(&[
            ("the first line", read.first_line),
            ("the count of lines", read.lines),
            ("the size of the file", read.file_bytes),
        ]),
        Outcome::Written(written) => first(&[("the size of the file", written.bytes)]),
        Outcome::Edited(edited) => first(&[
            ("the line of the change", edited.line),
            ("the count of changes", edited.replaced),
        ]),
        Outcome::Listed(listed) => {
            let sizes = listed.entries.iter().map(|entry| entry.bytes);
            first(&[("the size of an entry", sizes.max().unwrap_or(0))])
        }
        Outcome::Grepped(grepped) => {
            let lines = grepped.matches.iter().map(|found| found.line);
            first(&[("the line of a match", lines.max().unwrap_or(0))])
        }
        Outcome::Downloaded(downloaded) => first(&[("the size of the file", downloaded.bytes)]),
        Outcome::Found(found) => first(&[("the size of the file", found.bytes)]),
        Outcome::Failed(failure) => match failure {
            FileFailure::TooLarge { bytes, limit, .. } => {
                first(&[("the size of the file", *bytes), ("its own limit", *limit)])
            }
            FileFailure::ManyMatches { count, .. } => first(&[("the count of matches", *count)]),
            FileFailure::OtherSize { bytes, .. } => first(&[("the announced size", *bytes)]),
            FileFailure::TooSlow { limit_ms } => first(&[("its time limit", *limit_ms)]),
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
            | FileFailure::Io { .. } => None,
        },
        Outcome::Globbed(_)
        | Outcome::MadeDirectory(_)
        | Outcome::Moved(_)
        | Outcome::Removed(_)
        | Outcome::Refused(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use shared_sandbox::{Downloaded, ReadContent, Written};
    use shared_types::Digest;

    use super::*;

    fn read(number: u64) -> Outcome {
        Outcome::Read(ReadContent {
            content: b"a".to_vec(),
            first_line: 1,
            lines: number,
            file_bytes: 1,
            more: false,
        })
    }

    fn code(outcome: Outcome) -> Option<RefusalCode> {
        match believed(outcome) {
            Outcome::Refused(refusal) => Some(refusal.code),
            _ => None,
        }
    }

    #[test]
    fn a_number_up_to_the_bound_is_believed() {
        assert_eq!(believed(read(MAX_NUMBER)), read(MAX_NUMBER));
        assert_eq!(number("it", MAX_NUMBER), Ok(MAX_NUMBER));
    }

    #[test]
    fn a_larger_one_makes_a_read_invalid_and_a_change_lost() {
        let (bytes, digest) = (MAX_NUMBER + 1, Digest::of(b"a"));
        let written = Outcome::Written(Written {
            bytes,
            before: None,
            after: digest,
        });
        assert_eq!(code(read(u64::MAX)), Some(RefusalCode::Invalid));
        assert_eq!(
            code(Outcome::Downloaded(Downloaded { bytes, digest })),
            Some(RefusalCode::Invalid)
        );
        assert_eq!(code(written), Some(RefusalCode::Lost));
        assert!(number("it", bytes).is_err());
    }
}
