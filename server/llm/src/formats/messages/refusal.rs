//! The next form of a request after a server has refused a part of it.
//!
//! Servers that speak this format do not know all of it, and models differ in the thoughts that they take. The words
//! of a refusal decide, and each part is changed at most once.

use serde_json::Value;
use shared_types::event::Part;

use super::request::{MessagesShape, ThinkingRequest};
use crate::{Message, ModelRequest};

/// The form of the next attempt after this refusal; `None` if the refusal is not about the form.
pub(super) fn after_refusal(
    shape: MessagesShape,
    said: &str,
    request: &ModelRequest,
) -> Option<MessagesShape> {
    if shape.cache && said.contains("cache_control") {
        return Some(MessagesShape {
            cache: false,
            ..shape
        });
    }
    if shape.output.is_none()
        && let Some(most) = most_output(said)
    {
        return Some(MessagesShape {
            output: Some(most),
            ..shape
        });
    }
    let asks = shape.thinking == ThinkingRequest::AsProfiled;
    if said.contains(THOUGHTS_MISSED) {
        return asks.then_some(MessagesShape {
            thinking: ThinkingRequest::NotHere,
            ..shape
        });
    }
    if is_about_own(said, request) {
        return shape.own.then_some(MessagesShape {
            own: false,
            ..shape
        });
    }
    (asks && said.contains("thinking")).then_some(MessagesShape {
        thinking: ThinkingRequest::Never,
        ..shape
    })
}

/// The part of this form that holds for every conversation with the server.
pub(super) fn remembered(shape: MessagesShape) -> MessagesShape {
    MessagesShape {
        thinking: match shape.thinking {
            ThinkingRequest::NotHere => ThinkingRequest::AsProfiled,
            asked => asked,
        },
        own: true,
        ..shape
    }
}

/// The words of the vendor about an answer without thoughts, where it was asked for some.
const THOUGHTS_MISSED: &str = "expected `thinking`";

/// The words of a refusal of thoughts that were sent back: of another model, changed, or bound to a prefix that has
/// changed since.
const OWN_REFUSED: &[&str] = &[
    "invalid `signature` in `thinking`",
    "blocks in the latest assistant message cannot be modified",
    "bound to a different",
    "prefix_mismatch",
];

fn is_about_own(said: &str, request: &ModelRequest) -> bool {
    if OWN_REFUSED.iter().any(|words| said.contains(words)) {
        return true;
    }
    // The place of a block in the conversation: the field `thinking` of the request has no such place.
    let is_in_messages = said.contains("messages.");
    is_in_messages && sent_names(request).any(|name| said.contains(&name.to_lowercase()))
}

/// The names of the vendor's own blocks and fields in the conversation.
fn sent_names(request: &ModelRequest) -> impl Iterator<Item = &str> {
    let answers = request.messages.iter().filter_map(|message| match message {
        Message::Assistant { parts } => Some(&parts.0),
        _ => None,
    });
    answers.flatten().flat_map(|part| {
        let (kind, fields) = match part {
            Part::Reasoning {
                signature: Some(_), ..
            } => (Some("thinking"), None),
            Part::Opaque { fields } => (fields.get("type").and_then(Value::as_str), None),
            Part::ToolCall(call) => (None, Some(&call.opaque)),
            _ => (None, None),
        };
        let fields = fields.into_iter().flat_map(|fields| fields.keys());
        kind.into_iter().chain(fields.map(String::as_str))
    })
}

/// The limit that the vendor names in `max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens`.
fn most_output(said: &str) -> Option<u32> {
    let (_, numbers) = said.split_once("max_tokens: ")?;
    let (_, most) = numbers.split_once(" > ")?;
    let digits = most.find(|letter: char| !letter.is_ascii_digit())?;
    most[..digits].parse().ok().filter(|most| *most > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use shared_types::event::Parts;

    use super::*;

    /// A conversation with thoughts and a block of the vendor's own.
    fn conversation() -> ModelRequest {
        let fields = json!({ "type": "server_tool_use", "id": "s" });
        let fields: Map<_, _> = fields.as_object().cloned().expect("an object");
        let thought = Part::Reasoning {
            text: "hm".to_owned(),
            signature: Some("S".to_owned()),
        };
        let said = Part::Text {
            text: "hi".to_owned(),
        };
        ModelRequest {
            system: String::new(),
            messages: vec![Message::Assistant {
                parts: Parts(vec![thought, Part::Opaque { fields }, said]),
            }],
            tools: Vec::new(),
            images: crate::Images::new(),
            trace: None,
        }
    }

    fn adapted(shape: MessagesShape, said: &str) -> Option<MessagesShape> {
        after_refusal(shape, &said.to_lowercase(), &conversation())
    }

    const MISSED: &str = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block";
    const CHANGED_PREFIX: &str = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".";

    #[test]
    fn the_words_of_a_refusal_say_what_to_change() {
        let first = MessagesShape::default();
        let without_own = MessagesShape {
            own: false,
            ..first
        };
        let thinking = |thinking| MessagesShape { thinking, ..first };
        for (said, expected) in [
            (
                "tools.0.cache_control: Extra inputs are not permitted",
                MessagesShape {
                    cache: false,
                    ..first
                },
            ),
            (
                "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku",
                MessagesShape {
                    output: Some(8192),
                    ..first
                },
            ),
            (
                "thinking: Extra inputs are not permitted",
                thinking(ThinkingRequest::Never),
            ),
            (
                "adaptive thinking is not supported on this model",
                thinking(ThinkingRequest::Never),
            ),
            (MISSED, thinking(ThinkingRequest::NotHere)),
            (CHANGED_PREFIX, without_own),
            (
                "messages.1.content.0: Invalid `signature` in `thinking` block",
                without_own,
            ),
            (
                "messages.7.content.12: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
                without_own,
            ),
            (
                "messages.0.content.0: unknown variant `thinking`, expected `text`",
                without_own,
            ),
            (
                "messages.0.content.1: Input tag 'server_tool_use' found using 'type' does not match any of the expected tags",
                without_own,
            ),
        ] {
            assert_eq!(adapted(first, said), Some(expected), "{said}");
        }
    }

    #[test]
    fn another_refusal_changes_nothing_and_no_part_is_changed_twice() {
        assert_eq!(
            adapted(MessagesShape::default(), "messages.0: unexpected role"),
            None
        );
        let last = MessagesShape {
            cache: false,
            thinking: ThinkingRequest::NotHere,
            own: false,
            output: Some(1),
        };
        for said in [
            "cache_control",
            MISSED,
            CHANGED_PREFIX,
            "thinking: no",
            "max_tokens: 9 > 8,",
        ] {
            assert_eq!(adapted(last, said), None, "{said}");
        }
    }

    #[test]
    fn what_one_conversation_needs_is_not_remembered_for_others() {
        let first = MessagesShape::default();
        let of_one = MessagesShape {
            thinking: ThinkingRequest::NotHere,
            own: false,
            ..first
        };
        assert_eq!(remembered(of_one), first);
        let of_all = MessagesShape {
            cache: false,
            thinking: ThinkingRequest::Never,
            output: Some(8192),
            ..first
        };
        assert_eq!(remembered(of_all), of_all);
    }
}
