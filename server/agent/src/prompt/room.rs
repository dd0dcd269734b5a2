//! What is left out where a conversation is too long for the model: the results of its oldest tool
//! calls, and with each of them the long arguments of its call.
//!
//! What is left out is recorded as an event before the model is asked, and the request is made from
//! the log alone: after a restart the model is sent the same bytes. Messages of users, answers and
//! the last steps of the turn stay. More is left out at once than is needed, so that the beginning of
//! the request stays the same for many steps, and a vendor's cache of prefixes holds.

use serde_json::{Map, Value};
use server_llm::{Message, ModelRequest};
use shared_types::{
    Event, TurnId,
    event::{LeftOutBecause, ToolCall},
};

use super::{request, short::Short};
use crate::{
    tools::ToolSet,
    transcript::{Call, Transcript},
};

/// Bytes of a request that are taken for one token. Vendors count 3 to 4 bytes of English or of code,
/// and fewer of some other scripts: the estimate is a little too high for most conversations.
const BYTES_PER_TOKEN: usize = 3;

/// Part of the model's window up to which a request may grow, in percent; the answer needs the rest.
const FULL_PERCENT: usize = 90;

/// Part of the model's window, or of a request that the model refused, to which a request is cut, in
/// percent.
const CUT_TO_PERCENT: usize = 60;

/// Steps of the turn whose results stay; where that does not leave out enough, the last one's stay.
const LAST_STEPS: usize = 3;

/// What a message or a call takes in a vendor's format beside its text, in bytes.
const FRAME_BYTES: usize = 64;

/// Why room is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// The request may not fit into a window of so many tokens.
    Window(usize),
    /// The model refused the request as too long; its window is known or not.
    Refused(Option<usize>),
}

/// The event that leaves out what must be left out before this step; nothing where the request fits,
/// or where nothing more may be left out.
pub(crate) fn make(
    transcript: &Transcript,
    (turn, step): (TurnId, u32),
    model: &str,
    tools: &ToolSet,
    need: Need,
) -> Option<Event> {
    let before = bytes_of(&request(transcript, turn, model, tools));
    let bytes = |window: usize| window.saturating_mul(BYTES_PER_TOKEN);
    let (most, cut_to, because) = match need {
        Need::Window(window) => (
            percent(bytes(window), FULL_PERCENT),
            percent(bytes(window), CUT_TO_PERCENT),
            LeftOutBecause::NearWindow,
        ),
        // Any request that is shorter than the refused one is worth a try.
        Need::Refused(window) => (
            before.saturating_sub(1),
            percent(
                window.map_or(before, |window| bytes(window).min(before)),
                CUT_TO_PERCENT,
            ),
            LeftOutBecause::Refused,
        ),
    };
    if before <= most {
        return None;
    }
    let calls: Vec<&Call> = transcript.calls_up_to(turn).collect();
    let known = transcript.left_out() as usize;
    let mut cut = Cut::none(known, before);
    for last_steps in [LAST_STEPS, 1] {
        let stay = transcript.calls_of_last_steps(turn, last_steps);
        let may_go = &calls[..calls.len().saturating_sub(stay)];
        cut.go_on(may_go, cut_to);
        if cut.size <= most {
            break;
        }
    }
    if cut.size >= before {
        return None;
    }
    let left_out = calls[..cut.through]
        .iter()
        .map(|call| Short::of(call).saved());
    let left_out: Vec<_> = left_out.filter(|saved| *saved > 0).collect();
    Some(Event::ResultsLeftOut {
        turn,
        step,
        through: u32::try_from(cut.through).unwrap_or(u32::MAX),
        results: u32::try_from(left_out.len()).unwrap_or(u32::MAX),
        bytes: left_out.iter().sum::<usize>() as u64,
        because,
    })
}

/// How far the conversation is cut.
struct Cut {
    /// So many of its oldest calls are left out.
    through: usize,
    /// The bytes of the request then.
    size: usize,
}

impl Cut {
    fn none(through: usize, size: usize) -> Self {
        Self { through, size }
    }

    /// Leaves out one call after the other, of those that may go, until the request has this size.
    fn go_on(&mut self, may_go: &[&Call], cut_to: usize) {
        for call in may_go.iter().skip(self.through) {
            if self.size <= cut_to {
                return;
            }
            self.size = self.size.saturating_sub(Short::of(call).saved());
            self.through += 1;
        }
    }
}

fn percent(whole: usize, percent: usize) -> usize {
    whole / 100 * percent + whole % 100 * percent / 100
}

/// About as many bytes as a vendor's format needs for the request.
fn bytes_of(request: &ModelRequest) -> usize {
    let ModelRequest {
        system,
        messages,
        tools,
        trace: _,
    } = request;
    let tools = tools.iter().map(|tool| {
        let schema = tool.parameters.to_string();
        FRAME_BYTES + tool.name.len() + tool.description.len() + schema.len()
    });
    let messages = messages.iter().map(|message| {
        FRAME_BYTES
            + match message {
                Message::User { text } => text.len(),
                Message::Assistant {
                    text,
                    calls,
                    opaque,
                } => {
                    let calls = calls.iter().map(bytes_of_call);
                    text.len()
                        + opaque.before_text.len()
                        + bytes_of_fields(&opaque.fields)
                        + calls.sum::<usize>()
                }
                Message::ToolResult {
                    vendor_id, text, ..
                } => vendor_id.len() + text.len(),
            }
    });
    system.len() + tools.sum::<usize>() + messages.sum::<usize>()
}

fn bytes_of_call(call: &ToolCall) -> usize {
    FRAME_BYTES
        + call.vendor_id.len()
        + call.name.len()
        + call.arguments.len()
        + bytes_of_fields(&call.opaque)
}

/// The fields of a vendor's own; they are sent as they are written here.
fn bytes_of_fields(fields: &Map<String, Value>) -> usize {
    let each = fields.iter();
    each.map(|(name, value)| name.len() + value.to_string().len())
        .sum()
}

#[cfg(test)]
mod tests;
