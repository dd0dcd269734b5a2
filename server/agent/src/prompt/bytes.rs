//! The approximate length of a request.

use serde_json::{Map, Value};
use server_llm::{Message, ModelRequest};
use shared_types::event::{Part, Parts, ToolCall};

/// The bytes of a message or a call in a vendor's format beside its text.
const FRAME_BYTES: usize = 64;

/// The bytes of text that cost about as much as an image.
const IMAGE_BYTES: usize = 4800;

/// Longest name of a tool that is sent, in bytes.
const NAME_BYTES: usize = 64;

/// About as many bytes as a vendor's format needs for the request.
pub(super) fn bytes_of(request: &ModelRequest) -> usize {
    let ModelRequest {
        system,
        messages,
        tools,
        images: _,
        trace: _,
    } = request;
    let tools = tools.iter().map(|tool| {
        let schema = tool.parameters.to_string();
        FRAME_BYTES + tool.name.len() + tool.description.len() + schema.len()
    });
    let messages = messages.iter().map(|message| {
        FRAME_BYTES
            + match message {
                Message::User { parts } | Message::Assistant { parts } => bytes_of_parts(parts),
                Message::ToolResult {
                    vendor_id, parts, ..
                } => vendor_id.len() + bytes_of_parts(parts),
            }
    });
    system.len() + tools.sum::<usize>() + messages.sum::<usize>()
}

fn bytes_of_parts(parts: &Parts) -> usize {
    let parts = parts.0.iter().map(|part| match part {
        Part::Text { text } => text.len(),
        Part::Reasoning { text, signature } => {
            text.len() + signature.as_ref().map_or(0, String::len)
        }
        Part::Image { .. } => IMAGE_BYTES,
        Part::ToolCall(call) => bytes_of_call(call),
        Part::Opaque { fields } => bytes_of_fields(fields),
    });
    parts.sum()
}

fn bytes_of_call(call: &ToolCall) -> usize {
    FRAME_BYTES
        + call.vendor_id.len()
        + call.name.len().min(NAME_BYTES)
        + call.arguments.len()
        + bytes_of_fields(&call.opaque)
}

/// The fields of a vendor's own; they are sent as they are written here.
pub(super) fn bytes_of_fields(fields: &Map<String, Value>) -> usize {
    let each = fields.iter();
    each.map(|(name, value)| name.len() + value.to_string().len())
        .sum()
}
