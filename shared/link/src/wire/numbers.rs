//! The bound of the numbers in a runner's frames, held before anything counts with them.
//!
//! A number above [`MAX_NUMBER`] in a frame about the link itself ends the link. In a result it ends
//! only the operation: the runner would send the same result again over every later link.

use shared_sandbox::Outcome;
use shared_types::{Refusal, RefusalCode, limits::MAX_NUMBER};

use super::{Malformed, outcome};

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
/// The refusal of a read is "invalid". After a command or a change the server does not know what
/// was done, so the operation is lost.
pub(crate) fn believed(outcome: Outcome) -> Outcome {
    let mut numbers = outcome::numbers(&outcome).into_iter();
    let Some((what, number)) = numbers.find(|(_, number)| *number > MAX_NUMBER) else {
        return outcome;
    };
    let code = match outcome.tells_of_a_change() {
        true => RefusalCode::Lost,
        false => RefusalCode::Invalid,
    };
    Outcome::Refused(Refusal::new(
        code,
        format!(
            "the runner's answer says {number} for {what}, which cannot be: its result is not used; \
             update gantry-runner there, and look at the host"
        ),
    ))
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
            digest: None,
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
        let (bytes, digest) = (MAX_NUMBER + 1, Digest::of(b"a").into());
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
