//! The reason with which the vendor ends an answer.

use serde_json::Value;
use shared_types::{clean::clean_line, event::Finish};

use crate::{ModelError, formats::broken};

/// Longest foreign words that are quoted, in characters.
const MAX_QUOTED: usize = 200;

/// The end of an answer, as the vendor tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MessagesFinish {
    /// Its reason is known.
    Known(Finish),
    /// The vendor goes on once it is sent back the answer.
    Paused,
    /// Its reason is not known. The answer is whole where the stream's own end mark follows.
    Unknown(String),
}

/// Reads the reason with which an answer ended.
///
/// # Errors
/// Fails if the answer was withheld, or does not fit into the model's window.
pub(super) fn finish(reason: &str, details: &Value) -> Result<MessagesFinish, ModelError> {
    match reason {
        "end_turn" | "tool_use" | "stop_sequence" => Ok(MessagesFinish::Known(Finish::Complete)),
        "max_tokens" => Ok(MessagesFinish::Known(Finish::Length)),
        "pause_turn" => Ok(MessagesFinish::Paused),
        "refusal" => Err(withheld(details)),
        "model_context_window_exceeded" => Err(ModelError::Overflow(
            "the conversation and the answer are too long for the model: start a new session, or use a model with a larger context"
                .to_owned(),
        )),
        _ => Ok(MessagesFinish::Unknown(reason.to_owned())),
    }
}

/// The error for an answer that ended with this reason and is not whole.
pub(super) fn broke_off(reason: &str) -> ModelError {
    let reason = clean_line(reason, MAX_QUOTED);
    broken(&format!("the model server broke the answer off ({reason})"))
}

fn withheld(details: &Value) -> ModelError {
    let told = ["explanation", "category"]
        .into_iter()
        .find_map(|field| details[field].as_str().filter(|told| !told.is_empty()));
    let told = clean_line(told.unwrap_or("content filter"), MAX_QUOTED);
    let told = told.trim_end_matches('.');
    ModelError::Refused(format!(
        "the model's provider withheld the answer ({told}): say it in other words"
    ))
}
