//! Arguments that come in pieces, each with the path of its place.
//!
//! A path is a JSON Path with names and numbers alone (RFC 9535), such as `$.files[0].name`.

use serde_json::{Map, Value};

use super::form;
use crate::ModelError;

/// Most steps of a path.
const MAX_STEPS: usize = 64;

/// Most entries of one list.
const MAX_ENTRIES: usize = 4096;

/// One step of a path.
#[derive(Debug, PartialEq, Eq)]
enum PathStep {
    Name(String),
    Number(usize),
}

/// The arguments with these pieces at their places. A text grows by each piece of it; of other values the last counts.
///
/// # Errors
/// Fails if a piece has no place in them.
pub(super) fn placed(
    arguments: Map<String, Value>,
    pieces: Vec<Value>,
) -> Result<Value, ModelError> {
    let mut arguments = Value::Object(arguments);
    for mut piece in pieces {
        let path = piece["jsonPath"].as_str().and_then(steps);
        let path = path.ok_or_else(|| form("a piece of arguments has no path"))?;
        let mut place = &mut arguments;
        for step in path {
            place = inside(place, step)?;
        }
        if let Some(more) = piece["stringValue"].as_str() {
            match place {
                Value::String(text) => text.push_str(more),
                place => *place = more.into(),
            }
            continue;
        }
        let values = ["numberValue", "boolValue"].map(|name| piece[name].take());
        let value = values.into_iter().find(|value| !value.is_null());
        *place = value.unwrap_or_default();
    }
    Ok(arguments)
}

/// The place within this value. What is not there yet begins.
fn inside(value: &mut Value, step: PathStep) -> Result<&mut Value, ModelError> {
    if value.is_null() {
        *value = match step {
            PathStep::Name(_) => Value::Object(Map::new()),
            PathStep::Number(_) => Value::Array(Vec::new()),
        };
    }
    match (value, step) {
        (Value::Object(fields), PathStep::Name(name)) => {
            Ok(fields.entry(name).or_insert(Value::Null))
        }
        (Value::Array(entries), PathStep::Number(number)) if number < MAX_ENTRIES => {
            if entries.len() <= number {
                entries.resize(number + 1, Value::Null);
            }
            Ok(&mut entries[number])
        }
        _ => Err(form("a piece of arguments has no place in them")),
    }
}

/// The steps of a path; `None` if it is none.
fn steps(path: &str) -> Option<Vec<PathStep>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix('.') {
            let end = behind.find(['.', '[']).unwrap_or(behind.len());
            steps.push(PathStep::Name(behind[..end].to_owned()));
            rest = &behind[end..];
        } else {
            let behind = rest.strip_prefix('[')?;
            let quote = behind.chars().next().filter(|first| "'\"".contains(*first));
            let (inside, after) = match quote {
                Some(quote) => behind[1..].split_once(&format!("{quote}]"))?,
                None => behind.split_once(']')?,
            };
            steps.push(match quote {
                Some(_) => PathStep::Name(inside.to_owned()),
                None => PathStep::Number(inside.parse().ok()?),
            });
            rest = after;
        }
        if steps.len() > MAX_STEPS {
            return None;
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_come_together_at_their_places() {
        let pieces = vec![
            json!({ "jsonPath": "$.command", "stringValue": "ls ", "willContinue": true }),
            json!({ "jsonPath": "$.command", "stringValue": "-l" }),
            json!({ "jsonPath": "$.files[1].name", "stringValue": "b" }),
            json!({ "jsonPath": "$['odd name'][\"x.y\"]", "numberValue": 7 }),
            json!({ "jsonPath": "$.deep", "boolValue": false }),
            json!({ "jsonPath": "$.none", "nullValue": "NULL_VALUE" }),
        ];
        let begun = json!({ "known": 1 });
        let begun = begun.as_object().expect("fields").clone();
        assert_eq!(
            placed(begun, pieces).expect("they fit"),
            json!({
                "known": 1,
                "command": "ls -l",
                "files": [null, { "name": "b" }],
                "odd name": { "x.y": 7 },
                "deep": false,
                "none": null,
            })
        );
    }

    #[test]
    fn a_piece_without_a_place_is_refused() {
        let deep = format!("${}", ".a".repeat(MAX_STEPS + 1));
        for path in [
            json!("command"),
            json!("$.files[1000000000000]"),
            json!("$.files[-1]"),
            json!("$.files[0"),
            json!("$.known.inside"),
            json!("$.known[0]"),
            json!("$x"),
            json!(deep),
            json!(7),
            Value::Null,
        ] {
            let begun = json!({ "known": 1 });
            let begun = begun.as_object().expect("fields").clone();
            let piece = json!({ "jsonPath": path, "stringValue": "x" });
            assert!(placed(begun, vec![piece]).is_err(), "{path}");
        }
    }
}
