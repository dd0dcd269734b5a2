//! The reason with which a server ends an answer.

use shared_types::{clean::clean_line, event::Finish};

use crate::ModelError;

/// The end of an answer, as the server reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChatFinish {
    /// Its reason is known.
    Known(Finish),
    /// Its reason is not. The answer is whole where the stream's own end mark follows.
    Unknown(String),
}

/// Reads the reason with which an answer ended.
///
/// # Errors
/// Fails if the answer broke off or was withheld. The request is repeated where that can help.
pub(super) fn finish(reason: &str) -> Result<ChatFinish, ModelError> {
    match reason.to_ascii_lowercase().replace('-', "_").as_str() {
        "stop" | "stop_sequence" | "tool_calls" | "tool_call" | "function_call" | "eos"
        | "eos_token" | "end" | "end_turn" | "complete" | "tool_use" => {
            Ok(ChatFinish::Known(Finish::Complete))
        }
        "length" | "max_tokens" | "model_length" => Ok(ChatFinish::Known(Finish::Length)),
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
        "error" | "abort" | "aborted" | "cancelled" | "canceled" | "timeout" => {
            Err(broke_off(reason))
        }
        _ => Ok(ChatFinish::Unknown(reason.to_owned())),
    }
}

/// The error for an answer that ended with this reason and is not whole.
pub(super) fn broke_off(reason: &str) -> ModelError {
    ModelError::Broken(format!(
        "the model server broke the answer off ({}): if this repeats, look at the model server's log",
        shown(reason)
    ))
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
    fn known_reasons_end_an_answer_well_and_others_do_not_say() {
        for reason in [
            "stop",
            "STOP",
            "tool_calls",
            "function_call",
            "eos",
            "end_turn",
            "tool-calls",
        ] {
            let complete = Ok(ChatFinish::Known(Finish::Complete));
            assert_eq!(finish(reason), complete, "{reason}");
        }
        assert_eq!(finish("novel"), Ok(ChatFinish::Unknown("novel".to_owned())));
        for reason in ["length", "max_tokens", "MAX_TOKENS", "model_length"] {
            assert_eq!(
                finish(reason),
                Ok(ChatFinish::Known(Finish::Length)),
                "{reason}"
            );
        }
    }

    #[test]
    fn what_broke_off_is_tried_again_and_then_named_but_not_what_was_withheld() {
        let named = ["error", "abort", "insufficient_system_resource"];
        let named = named.map(|reason| (reason, finish(reason).expect_err("it broke off")));
        for (reason, error) in named
            .into_iter()
            .chain([("new\u{1b}", broke_off("new\u{1b}"))])
        {
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
