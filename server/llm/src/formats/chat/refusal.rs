//! The next form of a request after a server has refused a part of it.
//!
//! Servers that call themselves compatible do not agree on the content of a message. Some demand a
//! part that others refuse, and a conversation can have begun with another model. So the words of a
//! refusal decide, and each part is changed at most once.

use super::{
    own::Own,
    request::{ChatShape, OwnParts},
};
use crate::{Message, ModelRequest};

/// The form of the next attempt after this refusal; `None` if the refusal is not about the form.
pub(super) fn after_refusal(
    shape: ChatShape,
    said: &str,
    request: &ModelRequest,
) -> Option<ChatShape> {
    if shape.usage && said.contains("stream_options") {
        return Some(ChatShape {
            usage: false,
            ..shape
        });
    }
    let own = own(said, request)?;
    (shape.own == OwnParts::AsTheyCame).then_some(ChatShape { own, ..shape })
}

fn own(said: &str, request: &ModelRequest) -> Option<OwnParts> {
    let is_missed = MISSED.iter().any(|words| said.contains(words));
    if is_missed && said.contains("reasoning_content") {
        return Some(OwnParts::WithReasoning);
    }
    if is_missed && said.contains("thought_signature") {
        return Some(OwnParts::WithSignatures);
    }
    let mut sent = request.messages.iter().flat_map(fields);
    sent.any(|name| said.contains(&name.to_lowercase()))
        .then_some(OwnParts::LeftOut)
}

/// Words of a server that wants more than it was sent.
const MISSED: &[&str] = &["missing", "must be passed", "is required"];

/// The names of the vendor's own fields.
fn fields(message: &Message) -> Vec<String> {
    match message {
        Message::Assistant { parts } => {
            let of_calls = parts.calls().flat_map(|call| call.opaque.keys().cloned());
            let own = Own::of(parts).fields.into_iter().map(|(name, _)| name);
            of_calls.chain(own).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use shared_types::event::Parts;

    use super::*;

    const FIRST: ChatShape = ChatShape {
        usage: true,
        own: OwnParts::AsTheyCame,
    };

    fn adapted(shape: ChatShape, said: &str) -> Option<ChatShape> {
        let own = Own {
            fields: Map::from_iter([("reasoning_content".to_owned(), json!("hm"))]),
            ..Own::default()
        };
        let mut parts = Parts::text("hi");
        parts.0.extend(own.into_parts().into_iter().flatten());
        let request = ModelRequest {
            system: String::new(),
            messages: vec![Message::Assistant { parts }],
            tools: Vec::new(),
            images: crate::Images::new(),
            trace: None,
        };
        after_refusal(shape, &said.to_lowercase(), &request)
    }

    #[test]
    fn the_words_of_a_refusal_say_what_to_change() {
        for (said, own) in [
            (
                "The `reasoning_content` in the thinking mode must be passed back to the API.",
                OwnParts::WithReasoning,
            ),
            (
                "Missing `reasoning_content` field in the assistant message at message index 2.",
                OwnParts::WithReasoning,
            ),
            (
                "Function call is missing a thought_signature in functionCall parts.",
                OwnParts::WithSignatures,
            ),
            (
                "'messages.1' : property 'reasoning_content' is unsupported",
                OwnParts::LeftOut,
            ),
        ] {
            let expected = Some(ChatShape { own, ..FIRST });
            assert_eq!(adapted(FIRST, said), expected, "{said}");
        }
        let without_usage = Some(ChatShape {
            usage: false,
            ..FIRST
        });
        assert_eq!(
            adapted(FIRST, "stream_options: no such field"),
            without_usage
        );
    }

    #[test]
    fn another_refusal_changes_nothing_and_no_part_is_changed_twice() {
        assert_eq!(adapted(FIRST, "no such model"), None);
        let last = ChatShape {
            usage: false,
            own: OwnParts::LeftOut,
        };
        assert_eq!(adapted(last, "stream_options"), None);
        assert_eq!(adapted(last, "reasoning_content is missing"), None);
    }
}
