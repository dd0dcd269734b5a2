//! The signature of a thought: over the thought, and over everything before it.
//!
//! The vendor binds thoughts of its newer models to the system prompt, the tools and all earlier messages, each as it
//! was sent. Cache marks do not count.

use serde_json::{Value, json};

use super::{super::pieces::seal, blocks, messages};

/// The signature of the first thought in the answer to this request.
pub(super) fn of_next(request: &Value, thought: &str) -> String {
    match messages(request) {
        // The vendor goes on with an answer that it has begun.
        [before @ .., last] if last["role"] == "assistant" => {
            of(request, before, &blocks(&last["content"]), thought)
        }
        all => of(request, all, &[], thought),
    }
}

/// The signature of a thought behind these messages, and behind these blocks of its own message.
pub(super) fn of(request: &Value, before: &[Value], begun: &[Value], thought: &str) -> String {
    let messages = before
        .iter()
        .map(|message| json!([message["role"], plain(&blocks(&message["content"]))]));
    let prefix = json!([
        plain(&blocks(&request["system"])),
        plain(request["tools"].as_array().map_or(&[], Vec::as_slice)),
        messages.collect::<Value>(),
        plain(begun),
    ]);
    format!("{}.{}", of_thought(thought), seal(&prefix))
}

/// The part of the signature that depends on the thought alone.
pub(super) fn of_thought(thought: &str) -> String {
    seal(&thought.into())
}

/// The blocks without cache marks.
fn plain(blocks: &[Value]) -> Value {
    let mut blocks = blocks.to_vec();
    for block in &mut blocks {
        if let Some(fields) = block.as_object_mut() {
            fields.remove("cache_control");
        }
    }
    blocks.into()
}
