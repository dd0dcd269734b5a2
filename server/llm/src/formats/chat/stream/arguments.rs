//! The arguments of a call as they were meant, where a model or a server did not write one JSON object.

use serde_json::{Deserializer, Map, Value};

/// The object that the text can only mean; `None` where it is one already, or means none.
pub(super) fn mended(written: &str) -> Option<String> {
    if is_object(written) {
        return None;
    }
    object(written).map(|object| Value::Object(object).to_string())
}

pub(super) fn is_object(written: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(written).is_ok()
}

fn object(written: &str) -> Option<Map<String, Value>> {
    let text = with_breaks_escaped(without_fence(written.trim()));
    let mut values = Deserializer::from_str(&text).into_iter::<Value>();
    let mut objects = Vec::new();
    let mut end = 0;
    while let Some(Ok(value)) = values.next() {
        match value {
            Value::Object(object) => objects.push(object),
            // Encoded twice.
            Value::String(inner) if objects.is_empty() && inner.len() < written.len() => {
                objects.push(object(&inner)?);
            }
            _ => return None,
        }
        end = values.byte_offset();
    }
    // A brace too many.
    if !text[end..]
        .chars()
        .all(|letter| letter == '}' || letter.is_whitespace())
    {
        return None;
    }
    // Some servers send an empty object before the pieces of the real one, or the whole once more.
    let mut real = objects.iter().filter(|object| !object.is_empty());
    match real.next() {
        None => objects.into_iter().next(),
        Some(first) => real.all(|other| other == first).then(|| first.clone()),
    }
}

/// The inside of a fenced block.
fn without_fence(text: &str) -> &str {
    let Some(inside) = text
        .strip_prefix("```")
        .and_then(|text| text.strip_suffix("```"))
    else {
        return text;
    };
    let language = |letter: char| letter.is_ascii_alphanumeric();
    inside.trim_start_matches(language).trim()
}

/// The text with the control characters inside of its strings escaped.
fn with_breaks_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let (mut in_string, mut after_backslash) = (false, false);
    for letter in text.chars() {
        match letter {
            letter if in_string && letter.is_ascii_control() => {
                escaped.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            letter => escaped.push(letter),
        }
        in_string ^= letter == '"' && !after_backslash;
        after_backslash = in_string && letter == '\\' && !after_backslash;
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_only_mean_one_object_becomes_it() {
        for (written, meant) in [
            ("```json\n{\"a\":1}\n```", r#"{"a":1}"#),
            ("```{\"a\":1}```", r#"{"a":1}"#),
            (r#""{\"a\":\"b\"}""#, r#"{"a":"b"}"#),
            (r#"{"a":1}}"#, r#"{"a":1}"#),
            (r#"{"a":1}{"a":1}"#, r#"{"a":1}"#),
            (r#"{}{"a":1}"#, r#"{"a":1}"#),
            (r#"{}{}"#, "{}"),
            ("{\"a\":\"b\nc\\\"\td\"}", r#"{"a":"b\nc\"\td"}"#),
        ] {
            assert_eq!(mended(written).as_deref(), Some(meant), "{written}");
        }
    }

    #[test]
    fn what_is_an_object_or_none_stays_as_it_is() {
        for written in [
            r#"{"a":1}"#,
            "{}",
            "",
            r#"{"a":"b"#,
            r#"{"a":1}{"b":2}"#,
            r#"{"a":1} and more"#,
            "[1]",
            "7",
            r#""words""#,
            "```\nls\n```",
        ] {
            assert_eq!(mended(written), None, "{written}");
        }
    }
}
