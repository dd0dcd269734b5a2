//! The rules of requests that the vendor holds to, as far as a conversation can break them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{blocks, messages, signature};

/// Most cache marks of one request.
const MAX_MARKS: usize = 4;

/// Holds a request to the rules.
///
/// # Errors
/// Fails with the vendor's words about the first rule that is broken.
pub(in super::super) fn check(request: &Value) -> Result<(), String> {
    if request["max_tokens"].as_u64().unwrap_or(0) == 0 {
        return Err("max_tokens: Field required".to_owned());
    }
    let marks = marks(request);
    if marks > MAX_MARKS {
        return Err(format!(
            "A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {marks}."
        ));
    }
    let messages = messages(request);
    for (place, message) in messages.iter().enumerate() {
        let expected = ["user", "assistant"][place % 2];
        if message["role"] != expected {
            return Err(format!(
                "messages.{place}: roles must alternate between \"user\" and \"assistant\", beginning with \"user\""
            ));
        }
        let blocks = blocks(&message["content"]);
        if blocks.is_empty() {
            return Err(format!("messages.{place}: content must be non-empty"));
        }
        texts(place, &blocks)?;
        if expected == "assistant" {
            answer(request, place, &blocks)?;
        }
        results(messages, place, &blocks)?;
    }
    match messages.last() {
        None => Err("messages: at least one message is required".to_owned()),
        Some(last) => unfinished(last),
    }
}

/// The marks in the whole request.
fn marks(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            let own = usize::from(fields.get("cache_control").is_some_and(Value::is_object));
            own + fields.values().map(marks).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(marks).sum(),
        _ => 0,
    }
}

fn texts(place: usize, blocks: &[Value]) -> Result<(), String> {
    let mut texts = blocks.iter().filter(|block| block["type"] == "text");
    match texts.any(|block| {
        block["text"]
            .as_str()
            .is_none_or(|text| text.trim().is_empty())
    }) {
        true => Err(format!(
            "messages.{place}: text content blocks must contain non-whitespace text"
        )),
        false => Ok(()),
    }
}

/// An answer ends in no thought, and each of its thoughts is the vendor's own and follows what it followed.
fn answer(request: &Value, place: usize, blocks: &[Value]) -> Result<(), String> {
    if blocks.last().is_some_and(|last| last["type"] == "thinking") {
        return Err(format!(
            "messages.{place}: The final block in an assistant message cannot be `thinking`."
        ));
    }
    for (index, block) in blocks
        .iter()
        .enumerate()
        .filter(|(_, block)| block["type"] == "thinking")
    {
        let thought = block["thinking"].as_str().unwrap_or_default();
        let signed = block["signature"].as_str().unwrap_or_default();
        let invalid =
            format!("messages.{place}.content.{index}: Invalid `signature` in `thinking` block");
        if !signed.starts_with(&signature::of_thought(thought)) {
            return Err(invalid);
        }
        let before = &messages(request)[..place];
        if signed != signature::of(request, before, &blocks[..index], thought) {
            return Err(format!(
                "{invalid}. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
            ));
        }
    }
    Ok(())
}

/// Calls have results at the beginning of the next message, and results have calls in the message before.
fn results(messages: &[Value], place: usize, content: &[Value]) -> Result<(), String> {
    let calls = ids(content, "tool_use", "id");
    let next = messages
        .get(place + 1)
        .map(|next| blocks(&next["content"]))
        .unwrap_or_default();
    let first: Vec<_> = next
        .iter()
        .take_while(|block| block["type"] == "tool_result")
        .cloned()
        .collect();
    let answered = ids(&first, "tool_result", "tool_use_id");
    if let Some(id) = calls.difference(&answered).next() {
        return Err(format!(
            "messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        ));
    }
    let before = place
        .checked_sub(1)
        .map(|before| blocks(&messages[before]["content"]))
        .unwrap_or_default();
    let asked = ids(&before, "tool_use", "id");
    if let Some(id) = ids(content, "tool_result", "tool_use_id")
        .difference(&asked)
        .next()
    {
        return Err(format!(
            "messages.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}."
        ));
    }
    let letters = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    match calls
        .iter()
        .find(|id| id.is_empty() || !id.chars().all(letters))
    {
        Some(id) => Err(format!(
            "messages.{place}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$': {id}"
        )),
        None => Ok(()),
    }
}

fn ids(blocks: &[Value], kind: &str, field: &str) -> BTreeSet<String> {
    let blocks = blocks.iter().filter(|block| block["type"] == kind);
    let ids = blocks.filter_map(|block| block[field].as_str());
    ids.map(str::to_owned).collect()
}

/// An answer that the vendor is to go on with does not end in white space.
fn unfinished(last: &Value) -> Result<(), String> {
    let blocks = blocks(&last["content"]);
    let text = blocks
        .last()
        .and_then(|block| block["text"].as_str())
        .unwrap_or_default();
    match last["role"] == "assistant" && text.ends_with(char::is_whitespace) {
        true => {
            Err("messages: final assistant content cannot end with trailing whitespace".to_owned())
        }
        false => Ok(()),
    }
}
