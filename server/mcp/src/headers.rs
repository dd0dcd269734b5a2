//! The headers of streamable HTTP that repeat parts of a request's body
//! (<https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata>).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

/// The largest integer that each program reads as it was written.
const MAX_INTEGER: i64 = (1 << 53) - 1;

/// An argument that is repeated in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamHeader {
    /// The names of the properties on the way to it.
    path: Vec<String>,
    /// The header's own part of its name.
    name: String,
}

/// The arguments of a tool with this schema that are repeated in headers.
///
/// # Errors
/// The schema marks one in a way that is not permitted: then the tool is not used.
pub(crate) fn of_schema(schema: &Value) -> Result<Vec<ParamHeader>, String> {
    let mut found = Vec::new();
    walk(schema, &mut Vec::new(), &mut found)?;
    let marks = count(schema, false);
    if marks != found.len() {
        return Err("it marks an argument for a header where that is not possible".to_owned());
    }
    for (place, header) in found.iter().enumerate() {
        let same = |other: &ParamHeader| other.name.eq_ignore_ascii_case(&header.name);
        if found[..place].iter().any(same) {
            return Err("two of its arguments have one header".to_owned());
        }
    }
    Ok(found)
}

fn walk(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<ParamHeader>,
) -> Result<(), String> {
    let Some(properties) = schema["properties"].as_object() else {
        return Ok(());
    };
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(header) = property.get("x-mcp-header") {
            let header = header.as_str().filter(|header| is_token(header));
            let header = header.ok_or("its header for an argument has no valid name")?;
            if !matches!(
                property["type"].as_str(),
                Some("string" | "integer" | "boolean")
            ) {
                return Err(
                    "its header is for an argument that is no text, integer or flag".to_owned(),
                );
            }
            found.push(ParamHeader {
                path: path.clone(),
                name: header.to_owned(),
            });
        }
        walk(property, path, found)?;
        path.pop();
    }
    Ok(())
}

/// The number of marks anywhere in a schema. The name of a property is none.
fn count(schema: &Value, names: bool) -> usize {
    match schema {
        Value::Array(items) => items.iter().map(|item| count(item, false)).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let here = usize::from(!names && name == "x-mcp-header");
                let is_data =
                    !names && matches!(name.as_str(), "default" | "enum" | "const" | "examples");
                match is_data {
                    true => 0,
                    false => here + count(value, !names && name == "properties"),
                }
            })
            .sum(),
        _ => 0,
    }
}

/// True for a name of a header (RFC 9110, section 5.1).
fn is_token(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.len() <= 128 && name.bytes().all(is_letter)
}

/// The headers of a call with these arguments.
pub(crate) fn of_call(
    headers: &[ParamHeader],
    arguments: &Map<String, Value>,
) -> Vec<(String, String)> {
    let pairs = headers.iter().filter_map(|header| {
        let (first, rest) = header.path.split_first()?;
        let mut value = arguments.get(first)?;
        for name in rest {
            value = value.get(name)?;
        }
        Some((format!("Mcp-Param-{}", header.name), encoded(&text(value)?)))
    });
    pairs.collect()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => (-MAX_INTEGER..=MAX_INTEGER)
                .contains(&whole)
                .then(|| whole.to_string()),
            // `5.0` is an integer as well.
            (None, Some(float)) if float.fract() == 0.0 && float.abs() <= MAX_INTEGER as f64 => {
                Some(format!("{float:.0}"))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The value as a header carries it.
pub(crate) fn encoded(value: &str) -> String {
    let is_plain = value
        .bytes()
        .all(|byte| byte == b' ' || byte == b'\t' || byte.is_ascii_graphic());
    let is_trimmed = value.trim_matches([' ', '\t']) == value;
    let is_marked = value.starts_with("=?base64?") && value.ends_with("?=");
    match is_plain && is_trimmed && !is_marked {
        true => value.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_encoded_as_the_specification_shows() {
        for (value, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("", ""),
        ] {
            assert_eq!(encoded(value), header);
        }
    }

    #[test]
    fn marked_arguments_are_found_by_their_path() {
        let schema = json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "at": { "type": "object", "properties": { "n": { "type": "integer", "x-mcp-header": "N" } } },
        } });
        let headers = of_schema(&schema).unwrap();
        let call = json!({ "region": "eu", "at": { "n": 5 } });
        let pairs = of_call(&headers, call.as_object().unwrap());
        assert_eq!(pairs.len(), 2);
        assert!(pairs.contains(&("Mcp-Param-N".to_owned(), "5".to_owned())));
        assert!(of_call(&headers, &Map::new()).is_empty());
    }

    #[test]
    fn marks_that_are_not_permitted_refuse_the_tool() {
        let of = |property: Value| of_schema(&json!({ "type": "object", "properties": property }));
        for property in [
            json!({ "a": { "type": "string", "x-mcp-header": "" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "My Region" } }),
            json!({ "a": { "type": "number", "x-mcp-header": "A" } }),
            json!({ "a": { "type": "array", "items": { "type": "string", "x-mcp-header": "A" } } }),
            json!({ "a": { "anyOf": [{ "type": "string", "x-mcp-header": "A" }] } }),
            json!({ "a": { "type": "string", "x-mcp-header": "A" }, "b": { "type": "string", "x-mcp-header": "a" } }),
        ] {
            assert!(of(property.clone()).is_err(), "{property}");
        }
        // A property that has the name of the mark is none.
        assert!(
            of(json!({ "x-mcp-header": { "type": "string" } }))
                .unwrap()
                .is_empty()
        );
    }
}
