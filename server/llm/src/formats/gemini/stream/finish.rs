//! The reasons with which Google ends an answer, or gives none.

use shared_types::{clean::clean_line, event::Finish};

use crate::{ModelError, formats::broken};

/// Longest reason that is quoted, in characters.
const MAX_REASON: usize = 80;

/// Reads the reason with which an answer ended; `None` where it has not.
///
/// # Errors
/// Fails if the answer broke off or was withheld. The request is repeated where that can help.
pub(super) fn finish(reason: &str) -> Result<Option<Finish>, ModelError> {
    match reason {
        "" | "FINISH_REASON_UNSPECIFIED" => Ok(None),
        "STOP" => Ok(Some(Finish::Complete)),
        "MAX_TOKENS" | "CONTINUATION" => Ok(Some(Finish::Length)),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "ESCALATION"
        | "MODEL_ARMOR"
        | "PUP_LIMITED_DISABLED"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Err(withheld("the answer", reason)),
        // The same request would end so again.
        "MISSING_THOUGHT_SIGNATURE" => Err(ModelError::Refused(
            "the model misses the signature of an earlier thought (MISSING_THOUGHT_SIGNATURE): start a new session, or use another model"
                .to_owned(),
        )),
        // What the model wrote, such as MALFORMED_FUNCTION_CALL. Another try may go better.
        _ => Err(broken(&format!(
            "the model server broke the answer off ({})",
            clean_line(reason, MAX_REASON)
        ))),
    }
}

/// Reads the reason for which Google does not let the model answer.
///
/// # Errors
/// Fails if there is one.
pub(super) fn blocked(reason: &str) -> Result<(), ModelError> {
    match reason {
        "" | "BLOCK_REASON_UNSPECIFIED" | "BLOCKED_REASON_UNSPECIFIED" => Ok(()),
        reason => Err(withheld("an answer to this message", reason)),
    }
}

fn withheld(what: &str, reason: &str) -> ModelError {
    ModelError::Refused(format!(
        "the model's provider withheld {what} (content filter: {}): say it in other words",
        clean_line(reason, MAX_REASON)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_the_end_that_it_means() {
        assert_eq!(finish("STOP"), Ok(Some(Finish::Complete)));
        assert_eq!(finish("MAX_TOKENS"), Ok(Some(Finish::Length)));
        assert_eq!(finish("FINISH_REASON_UNSPECIFIED"), Ok(None));
        for reason in [
            "SAFETY",
            "RECITATION",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "LANGUAGE",
            "IMAGE_SAFETY",
        ] {
            let error = finish(reason).expect_err("it was withheld");
            assert!(matches!(error, ModelError::Refused(_)), "{reason}: {error}");
            assert!(error.message().contains("withheld"), "{error}");
            assert!(error.message().contains(reason), "{error}");
        }
        for reason in [
            "MALFORMED_FUNCTION_CALL",
            "UNEXPECTED_TOOL_CALL",
            "MALFORMED_RESPONSE",
            "TOO_MANY_TOOL_CALLS",
            "OTHER",
            "NOVEL\u{1b}",
        ] {
            let error = finish(reason).expect_err("it broke off");
            assert!(matches!(error, ModelError::Broken(_)), "{reason}: {error}");
            assert!(!error.message().contains('\u{1b}'), "{error}");
        }
        let error = finish("MISSING_THOUGHT_SIGNATURE").expect_err("it is no answer");
        assert!(!error.is_passing(), "{error}");
    }

    #[test]
    fn a_message_that_is_blocked_is_not_asked_again() {
        assert_eq!(blocked("BLOCK_REASON_UNSPECIFIED"), Ok(()));
        for reason in ["SAFETY", "OTHER", "PROHIBITED_CONTENT"] {
            let error = blocked(reason).expect_err("it is blocked");
            assert!(!error.is_passing(), "{reason}: {error}");
        }
    }
}
