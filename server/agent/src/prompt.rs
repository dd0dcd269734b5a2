//! The request to the model: a pure function of the log. The same log gives the same bytes. A
//! request stays the beginning of every later one in the turn, so that a vendor's cache of prefixes
//! holds.

mod bytes;
mod messages;
mod room;
mod short;
mod surroundings;
mod system;

use server_llm::{Message, ModelInfo, ModelRequest};
use shared_types::TurnId;

pub(crate) use room::{BYTES_PER_TOKEN, Need, make as make_room};

pub(crate) use surroundings::instructions_in;

use self::{messages::View, system::system};
use crate::{
    context::tokens::tokens,
    tools::ToolSet,
    transcript::{Call, Transcript},
};

/// The request for the next answer in this turn, to this model.
pub(crate) fn request(
    transcript: &Transcript,
    turn: TurnId,
    model: &ModelInfo,
    tools: &ToolSet,
) -> ModelRequest {
    ModelRequest {
        system: system(transcript, turn, tools),
        messages: messages::messages(transcript, turn, model, View::of(transcript)),
        tools: tools.specs(),
        images: server_llm::Images::new(),
        trace: None,
    }
}

/// The numbers of parts that may stand before what is sent, where the last step of the turn stays.
pub(crate) fn begins(transcript: &Transcript, turn: TurnId) -> Vec<usize> {
    room::begins(transcript, turn, 1)
}

/// The messages of what stands behind so many of the oldest parts.
pub(crate) fn tail(
    transcript: &Transcript,
    turn: TurnId,
    model: &ModelInfo,
    gone: usize,
) -> Vec<Message> {
    let known = View::of(transcript);
    let gone = gone.max(known.gone);
    messages::tail(transcript, turn, model, View { gone, ..known })
}

/// The tokens of a call that is sent in short.
pub(crate) fn masked_tokens(call: &Call) -> usize {
    let short = short::Short::of(call);
    let result = call.result.as_ref().map(|result| result.parts.words());
    let arguments = short.arguments.as_deref().unwrap_or(&call.asked.arguments);
    let result = short.result.as_deref().or(result.as_deref());
    tokens(arguments) + result.map_or(0, tokens)
}

/// The approximate length of a request, in bytes.
pub(crate) fn bytes(request: &ModelRequest) -> usize {
    bytes::bytes_of(request)
}
