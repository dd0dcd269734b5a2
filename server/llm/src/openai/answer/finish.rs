//! The reason with which a server ends an answer.

use shared_types::{clean::clean_line, event::Finish};

use crate::ModelError;

/// What the end of an answer means. Only these reasons stand for a whole answer; with any other
/// one it broke off, and is asked for again where that can help.
pub(super) fn finish(reason: &str) -> Result<Finish, ModelError> {
    match reason.to_ascii_lowercase().as_str() {
        "stop" | "tool_calls" | "function_call" | "eos" | "end_turn" | "tool_use" => {
            Ok(Finish::Complete)
        }
        "length" | "max_tokens" | "model_length" => Ok(Finish::Length),
        "model_context_window_exceeded" => Err(ModelError::Overflow(
            "the conversation and the answer are too long for the model: start a new session, or use a model with a larger context"
                .to_owned(),
        )),
        "content_filter" | "safety" | "sensitive" | "refusal" => Err(ModelError::Refused(
            "the model's provider withheld the answer (content filter): say it in other words"
                .to_owned(),
        )),
        "insufficient_system_resource" => Err(ModelError::Unavailable(
            "the model server broke the answer off for want of resources: try again later"
                .to_owned(),
        )),
        reason => Err(ModelError::Broken(format!(
            "the model server broke the answer off ({}): if this repeats, look at the model server's log",
            shown(reason)
        ))),
    }
}

/// Longest reason that is quoted, in characters.
const MAX_REASON: usize = 80;

fn shown(reason: &str) -> String {
    clean_line(reason, MAX_REASON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_reasons_end_an_answer_well() {
        for reason in [
            "stop",
            "STOP",
            "tool_calls",
            "function_call",
            "eos",
            "end_turn",
        ] {
            assert_eq!(finish(reason), Ok(Finish::Complete), "{reason}");
        }
        for reason in ["length", "max_tokens", "MAX_TOKENS", "model_length"] {
            assert_eq!(finish(reason), Ok(Finish::Length), "{reason}");
        }
    }

    #[test]
    fn every_other_reason_is_tried_again_and_then_named_but_not_what_was_withheld() {
        for reason in [
            "error",
            "abort",
            "insufficient_system_resource",
            "new\u{1b}",
        ] {
            let error = finish(reason).expect_err("it broke off");
            assert!(error.is_passing(), "{reason}: {error}");
            assert!(error.message().contains("broke the answer off"), "{error}");
            assert!(!error.message().contains('\u{1b}'), "{error}");
        }
        let error = finish("model_context_window_exceeded").expect_err("it broke off");
        assert!(matches!(error, ModelError::Overflow(_)), "{error}");
        for reason in ["content_filter", "SAFETY"] {
            let error = finish(reason).expect_err("it was withheld");
            assert!(!error.is_passing(), "{reason}: {error}");
        }
    }
}
