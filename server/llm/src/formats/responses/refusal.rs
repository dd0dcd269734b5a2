//! The next form of a request after a server has refused a part of it.

use super::request::ResponsesShape;

/// The form of the next attempt after this refusal; `None` if the refusal is not about the form. `said` is in lower
/// case. Each part is left out at most once.
pub(super) fn after_refusal(shape: ResponsesShape, said: &str) -> Option<ResponsesShape> {
    let says = |words: &[&str]| words.iter().any(|words| said.contains(words));
    if shape.summary && says(SUMMARY) {
        return Some(ResponsesShape {
            summary: false,
            ..shape
        });
    }
    if shape.include && says(INCLUDE) {
        // A server that does not know encrypted thoughts does not take them back either.
        return Some(ResponsesShape {
            include: false,
            reasoning: false,
            ..shape
        });
    }
    (shape.reasoning && says(REASONING)).then_some(ResponsesShape {
        reasoning: false,
        ..shape
    })
}

/// Words of a server that gives no summaries.
const SUMMARY: &[&str] = &["reasoning.summary", "reasoning summaries"];

/// Words of a server that does not take the field `include`, or not for this model.
const INCLUDE: &[&str] = &[
    "\"include\"",
    "'include'",
    "`include`",
    "\\\"include\\\"",
    "include[0]",
    "parameter: include",
    "encrypted content is not supported",
];

/// Words of a server that does not take the thoughts of this conversation: they came on another route, or stand where
/// they do not belong.
const REASONING: &[&str] = &[
    "invalid_encrypted_content",
    "encrypted content",
    "encrypted_content",
    "without its required following item",
    "without its required 'reasoning' item",
    "type 'reasoning'",
];

#[cfg(test)]
mod tests {
    use super::*;

    const WITHOUT_REASONING: ResponsesShape = ResponsesShape {
        include: true,
        summary: true,
        reasoning: false,
    };

    fn adapted(shape: ResponsesShape, said: &str) -> Option<ResponsesShape> {
        after_refusal(shape, &said.to_lowercase())
    }

    #[test]
    fn thoughts_that_a_server_does_not_take_are_left_out_once() {
        for said in [
            r#"{"error":{"message":"The encrypted content gAAA...DQ== could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}"#,
            r#"{"error":{"message":"Item 'rs_68' of type 'reasoning' was provided without its required following item.","type":"invalid_request_error","param":"input","code":null}}"#,
            r#"{"error":{"message":"Item 'fc_68' of type 'function_call' was provided without its required 'reasoning' item: 'rs_68'."}}"#,
            "[invalid_request_error] reasoning `encrypted_content` was not issued to this caller",
        ] {
            let first = ResponsesShape::default();
            assert_eq!(adapted(first, said), Some(WITHOUT_REASONING), "{said}");
            assert_eq!(adapted(WITHOUT_REASONING, said), None, "{said}");
        }
    }

    #[test]
    fn a_field_that_a_server_does_not_know_is_not_sent_again() {
        let without_include = ResponsesShape {
            include: false,
            reasoning: false,
            summary: true,
        };
        for said in [
            r#"{"error":{"message":"Encrypted content is not supported with this model.","param":"include","code":null}}"#,
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","include"],"msg":"Extra inputs are not permitted"}]}"#,
            r#"{"error":{"message":"Unsupported parameter: include"}}"#,
        ] {
            let first = ResponsesShape::default();
            assert_eq!(adapted(first, said), Some(without_include), "{said}");
        }
        let said = r#"{"error":{"message":"Your organization must be verified to generate reasoning summaries.","param":"reasoning.summary","code":"unsupported_value"}}"#;
        let without_summary = ResponsesShape {
            summary: false,
            ..ResponsesShape::default()
        };
        assert_eq!(
            adapted(ResponsesShape::default(), said),
            Some(without_summary)
        );
        assert_eq!(adapted(without_summary, said), None);
    }

    #[test]
    fn another_refusal_changes_nothing() {
        for said in [
            r#"{"error":{"message":"The requested model 'x' does not exist.","code":"model_not_found"}}"#,
            r#"{"error":{"message":"Your input includes too many images","param":"input"}}"#,
        ] {
            assert_eq!(adapted(ResponsesShape::default(), said), None, "{said}");
        }
    }
}
