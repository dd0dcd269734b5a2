//! What the formats share: the cutting of streams, and seals on what has to come back unchanged.

use bytes::Bytes;
use serde_json::Value;
use shared_types::Digest;

/// The sizes of the pieces in turn: small and odd, so that characters and line ends are cut.
const PIECE_SIZES: [usize; 6] = [1, 7, 64, 3, 301, 2];

/// The bytes in pieces of odd sizes.
pub(super) fn odd(bytes: &[u8]) -> Vec<Bytes> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    for size in PIECE_SIZES.into_iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at(size.min(rest.len()));
        pieces.push(Bytes::copy_from_slice(piece));
        rest = after;
    }
    pieces
}

/// The text in at most 16 pieces, as a model would speak it.
pub(super) fn spoken(text: &str) -> Vec<&str> {
    let size = (text.len() / 16).max(4);
    let mut rest = text;
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let mut end = size.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    parts
}

/// An event with a name, as OpenAI's Responses and Anthropic send it.
pub(super) fn named_event(data: &Value) -> Bytes {
    let name = data["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// The id of a call.
pub(super) fn call_id(number: usize, place: usize) -> String {
    format!("call_{number}_{place}")
}

/// A text that depends on the whole value, as a signature does.
pub(super) fn seal(value: &Value) -> String {
    Digest::of(value.to_string().as_bytes()).to_string()
}

/// The list in this field; empty where there is none.
pub(super) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}
