//! The exit code of a command that ended elsewhere.

use shared_api::OperationEnd;

/// The exit code for a command that never started, or whose end is unknown.
pub(crate) const UNKNOWN: u8 = 255;

/// The exit code of an operation that ended, and what there is to say about it.
pub(super) fn exit_code(end: &OperationEnd) -> (u8, Option<&str>) {
    let words = Some(end.words());
    match end {
        OperationEnd::Exited {
            code: Some(code),
            cause,
            ..
        } => (low_byte(*code), words.filter(|_| cause != "exited")),
        OperationEnd::Exited {
            signal: Some(signal),
            cause,
            ..
        } => (low_byte(128 + *signal), words.filter(|_| cause != "exited")),
        OperationEnd::Done { .. } => (0, None),
        _ => (UNKNOWN, words),
    }
}

fn low_byte(code: i32) -> u8 {
    code.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exited(code: Option<i32>, signal: Option<i32>, cause: &str) -> OperationEnd {
        OperationEnd::Exited {
            code,
            signal,
            cause: cause.into(),
            words: "the words".into(),
            stdout_bytes: 0,
            stderr_bytes: 0,
            wall_ms: 0,
        }
    }

    #[test]
    fn the_exit_code_is_the_commands_and_what_it_cannot_tell_is_said() {
        let words = Some("the words");
        assert_eq!(exit_code(&exited(Some(0), None, "exited")), (0, None));
        assert_eq!(exit_code(&exited(Some(7), None, "exited")), (7, None));
        assert_eq!(exit_code(&exited(None, Some(9), "exited")), (137, None));
        assert_eq!(exit_code(&exited(None, Some(15), "timeout")), (143, words));
        assert_eq!(exit_code(&exited(None, None, "exited")), (255, words));
        let lost = OperationEnd::Lost {
            words: "the words".into(),
        };
        assert_eq!(exit_code(&lost), (255, words));
    }
}
