//! The next form of a request after a server has refused a part of it.

use super::request::{GeminiSchema, GeminiShape};

/// The form of the next attempt after this refusal; `None` if the refusal is not about the form. `said` is in lower
/// case. Each part is changed at most once.
pub(super) fn after_refusal(shape: GeminiShape, said: &str) -> Option<GeminiShape> {
    let says = |words: &[&str]| words.iter().any(|words| said.contains(words));
    if says(SIGNATURE) {
        return match says(MISSED) {
            true => (!shape.unchecked).then_some(GeminiShape {
                unchecked: true,
                ..shape
            }),
            false => shape.signatures.then_some(GeminiShape {
                signatures: false,
                ..shape
            }),
        };
    }
    if shape.schema == GeminiSchema::Json
        && says(&["parametersjsonschema", "parameters_json_schema"])
    {
        return Some(GeminiShape {
            schema: GeminiSchema::OpenApi,
            ..shape
        });
    }
    (shape.thoughts && says(THOUGHTS)).then_some(GeminiShape {
        thoughts: false,
        ..shape
    })
}

/// Words of a refusal about the signature of a thought.
const SIGNATURE: &[&str] = &["thought_signature", "thought signature", "thoughtsignature"];

/// Words of a server that wants more than it was sent.
const MISSED: &[&str] = &["missing", "is required"];

/// Words of a server whose model does not show its thoughts.
const THOUGHTS: &[&str] = &[
    "thinkingconfig",
    "thinking_config",
    "includethoughts",
    "include_thoughts",
    "thinking is not",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn adapted(shape: GeminiShape, said: &str) -> Option<GeminiShape> {
        after_refusal(shape, &said.to_lowercase())
    }

    #[test]
    fn a_signature_that_is_missed_is_added_and_one_that_is_refused_is_left_out() {
        let missed = r#"[{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:write_file` , position 8.","status":"INVALID_ARGUMENT"}}]"#;
        let wrong = r#"{"error":{"code":400,"message":"Thought signature is not valid.","status":"INVALID_ARGUMENT"}}"#;
        let with = GeminiShape {
            unchecked: true,
            ..GeminiShape::default()
        };
        assert_eq!(adapted(GeminiShape::default(), missed), Some(with));
        assert_eq!(adapted(with, missed), None);
        let without = GeminiShape {
            signatures: false,
            ..GeminiShape::default()
        };
        assert_eq!(adapted(GeminiShape::default(), wrong), Some(without));
        assert_eq!(adapted(without, wrong), None);
        let neither = GeminiShape {
            unchecked: true,
            ..without
        };
        assert_eq!(adapted(without, missed), Some(neither));
        assert_eq!(adapted(with, wrong), Some(neither));
    }

    #[test]
    fn a_field_that_a_server_does_not_know_is_not_sent_again() {
        let said = r#"{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"parametersJsonSchema\" at 'tools[0].function_declarations[0]': Cannot find field.","status":"INVALID_ARGUMENT"}}"#;
        let open_api = GeminiShape {
            schema: GeminiSchema::OpenApi,
            ..GeminiShape::default()
        };
        assert_eq!(adapted(GeminiShape::default(), said), Some(open_api));
        assert_eq!(adapted(open_api, said), None);
        let silent = GeminiShape {
            thoughts: false,
            ..GeminiShape::default()
        };
        for said in [
            "Thinking is not enabled for models/gemini-2.0-flash",
            "Unknown name \"thinkingConfig\" at 'generation_config': Cannot find field.",
        ] {
            assert_eq!(
                adapted(GeminiShape::default(), said),
                Some(silent),
                "{said}"
            );
            assert_eq!(adapted(silent, said), None, "{said}");
        }
    }

    #[test]
    fn another_refusal_changes_nothing() {
        for said in [
            "API key not valid. Please pass a valid API key.",
            "User location is not supported for the API use.",
        ] {
            assert_eq!(adapted(GeminiShape::default(), said), None, "{said}");
        }
    }
}
