//! The tokens of a request: estimated by its text, and calibrated by what the vendor counted for earlier ones.

use server_llm::{Message, ModelInfo, ModelRequest};
use shared_types::event::{Part, Parts};

use super::tokens::tokens;
use crate::transcript::{Step, Transcript};

/// Tokens of a message, a call or a tool in a vendor's format beside its text.
const FRAME: usize = 6;

/// Tokens of an image, about.
const IMAGE: usize = 1_600;

/// Answers by which the estimate is calibrated: the newest of the same model.
const CALLS: usize = 10;

/// The least ratio of counted to estimated tokens, in percent. Below it a vendor counts something else, and its count
/// is not used: a false one must not hide that the window is full.
const LEAST_PERCENT: u64 = 40;

/// The greatest ratio by which an estimate is calibrated, in percent.
const MOST_PERCENT: u64 = 400;

/// The size of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// Its tokens by its text alone.
    pub(crate) raw: usize,
    /// Its tokens as the vendor will count them, about.
    pub(crate) tokens: usize,
}

/// The size of a request to this model. What the vendor counted for the request of the last answer is taken as it is
/// where this request only adds to that one.
pub(crate) fn size(transcript: &Transcript, model: &ModelInfo, request: &ModelRequest) -> Size {
    let raw = raw(request);
    let ratio = ratio(transcript, model);
    let calibrated =
        |raw: u64| usize::try_from(raw.saturating_mul(ratio).div_ceil(100)).unwrap_or(usize::MAX);
    let last = last_of(transcript, model).filter(|step| step.prefix == transcript.prefix());
    let tokens = match last.and_then(|step| Some((step, (raw as u64).checked_sub(step.estimated)?)))
    {
        Some((step, added)) => {
            let counted = usize::try_from(step.counted).unwrap_or(usize::MAX);
            counted.saturating_add(calibrated(added))
        }
        None => calibrated(raw as u64),
    };
    Size { raw, tokens }
}

/// The last answer of the session, where this model gave it and its tokens are known.
fn last_of<'a>(transcript: &'a Transcript, model: &ModelInfo) -> Option<&'a Step> {
    let steps = transcript
        .turns()
        .iter()
        .rev()
        .flat_map(|turn| turn.steps.iter().rev());
    let last = steps.into_iter().next()?;
    is_known(last, model).then_some(last)
}

fn is_known(step: &Step, model: &ModelInfo) -> bool {
    let is_of_model = step.model == model.name && step.origin.as_ref() == Some(&model.origin);
    let least = (step.estimated * LEAST_PERCENT).div_ceil(100);
    is_of_model && step.estimated > 0 && step.counted >= least
}

/// Counted tokens to estimated ones, in percent: the greatest of the newest answers, so that few requests are larger
/// than they are taken for.
fn ratio(transcript: &Transcript, model: &ModelInfo) -> u64 {
    let steps = transcript
        .turns()
        .iter()
        .rev()
        .flat_map(|turn| turn.steps.iter().rev());
    let known = steps.filter(|step| is_known(step, model)).take(CALLS);
    let ratios = known.map(|step| step.counted.saturating_mul(100).div_ceil(step.estimated));
    ratios.max().map_or(100, |ratio| ratio.min(MOST_PERCENT))
}

/// The tokens of a request by its text.
fn raw(request: &ModelRequest) -> usize {
    let tools = request.tools.iter().map(|tool| {
        FRAME
            + tokens(&tool.name)
            + tokens(&tool.description)
            + tokens(&tool.parameters.to_string())
    });
    let messages = request.messages.iter().map(of_message);
    tokens(&request.system) + tools.sum::<usize>() + messages.sum::<usize>()
}

/// The tokens of a message by its text.
pub(super) fn of_message(message: &Message) -> usize {
    FRAME + of_parts(message.parts())
}

fn of_parts(parts: &Parts) -> usize {
    let each = parts.0.iter().map(|part| match part {
        Part::Text { text } => tokens(text),
        Part::Reasoning { text, signature } => {
            // A signature is sent, and the vendor counts the thoughts alone.
            tokens(text).max(
                signature
                    .as_ref()
                    .map_or(0, |signature| signature.len() / 8),
            )
        }
        Part::Image { .. } => IMAGE,
        Part::ToolCall(call) => FRAME + tokens(&call.name) + tokens(&call.arguments),
        Part::Opaque { fields } => {
            let sizes = fields.values().map(|value| value.to_string().len() / 4);
            sizes.sum()
        }
    });
    each.sum()
}
