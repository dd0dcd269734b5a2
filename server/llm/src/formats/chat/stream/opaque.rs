//! The vendor's own fields of an answer, which grow from the pieces of a stream.
//!
//! Only the vendor knows their meaning, so one set of rules serves all vendors:
//!
//! - strings are joined, except labels such as `type`, which each piece repeats;
//! - objects are merged field by field;
//! - the objects of a list that carry an `index` are merged by it, unless their `type` or `id`
//!   differ; everything else in a list is appended;
//! - of any other values the latest counts, and `null` changes nothing.

use serde_json::{Map, Value};

/// Most entries of one list. Pieces are sought in it.
const MAX_ITEMS: usize = 1024;

/// Fields that name a thing and are not a part of its content.
const LABELS: &[&str] = &["type", "id", "format", "name", "role", "channel", "status"];

/// More entries than [`MAX_ITEMS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMany;

/// Takes the fields of one piece into those so far. A field without content leaves no trace.
///
/// # Errors
/// Fails if a list grows too long.
pub(super) fn merge_fields(
    known: &mut Map<String, Value>,
    piece: Map<String, Value>,
) -> Result<(), TooMany> {
    for (name, value) in piece {
        if has_content(&value) {
            merge_field(known, name, value)?;
        }
    }
    Ok(())
}

/// True if a field has content to send back. An empty string counts, because DeepSeek demands its
/// field even if it is empty.
pub(super) fn has_content(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

/// About how many bytes a value takes.
pub(super) fn weight(value: &Value) -> usize {
    const EACH: usize = 16;
    EACH + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields_weight(fields),
        _ => 0,
    }
}

/// About how many bytes these fields take.
pub(super) fn fields_weight(fields: &Map<String, Value>) -> usize {
    let each = fields.iter();
    each.map(|(name, value)| name.len() + weight(value)).sum()
}

fn merge_field(known: &mut Map<String, Value>, name: String, value: Value) -> Result<(), TooMany> {
    let is_label = LABELS.contains(&name.as_str());
    match known.get_mut(&name) {
        Some(_) if value.is_null() => Ok(()),
        Some(known) if is_label => {
            *known = value;
            Ok(())
        }
        Some(known) => merge(known, value),
        None => {
            let value = match value {
                // Its entries may be pieces of one another.
                Value::Array(items) => joined(Vec::new(), items)?,
                value => value,
            };
            known.insert(name, value);
            Ok(())
        }
    }
}

fn merge(known: &mut Value, piece: Value) -> Result<(), TooMany> {
    match (known, piece) {
        (_, Value::Null) => {}
        (Value::String(known), Value::String(piece)) => known.push_str(&piece),
        (Value::Object(known), Value::Object(piece)) => {
            for (name, value) in piece {
                merge_field(known, name, value)?;
            }
        }
        (Value::Array(known), Value::Array(piece)) => {
            let before = std::mem::take(known);
            let Value::Array(after) = joined(before, piece)? else {
                return Ok(());
            };
            *known = after;
        }
        (known, piece) => *known = piece,
    }
    Ok(())
}

fn joined(mut known: Vec<Value>, pieces: Vec<Value>) -> Result<Value, TooMany> {
    for piece in pieces {
        match known.iter().rposition(|known| are_one(known, &piece)) {
            Some(place) => merge(&mut known[place], piece)?,
            None if known.len() == MAX_ITEMS => return Err(TooMany),
            None => known.push(piece),
        }
    }
    Ok(Value::Array(known))
}

/// True if these are pieces of one thing. The index alone does not prove it: a summary and the
/// encrypted thoughts after it can share one.
fn are_one(known: &Value, piece: &Value) -> bool {
    let given =
        |value: &Value, name: &str| value.get(name).filter(|value| !value.is_null()).cloned();
    let differ = |name: &str| {
        let both = given(known, name).zip(given(piece, name));
        both.is_some_and(|(known, piece)| known != piece)
    };
    let (Some(known), Some(piece)) = (given(known, "index"), given(piece, "index")) else {
        return false;
    };
    known == piece && !differ("type") && !differ("id")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(pieces: &[Value]) -> Value {
        let mut known = Map::new();
        for piece in pieces {
            let piece = piece.as_object().expect("fields").clone();
            merge_fields(&mut known, piece).expect("it is small");
        }
        Value::Object(known)
    }

    #[test]
    fn strings_are_joined_and_what_has_no_content_leaves_no_trace() {
        let pieces = [
            json!({ "reasoning_content": "", "audio": null, "annotations": [] }),
            json!({ "reasoning_content": "I t" }),
            json!({ "reasoning_content": "hink" }),
            json!({ "reasoning_content": null }),
        ];
        assert_eq!(merged(&pieces), json!({ "reasoning_content": "I think" }));
        assert_eq!(merged(&pieces[..1]), json!({ "reasoning_content": "" }));
    }

    #[test]
    fn pieces_with_one_index_are_one_entry_unless_they_are_of_another_type_or_id() {
        let piece = |fields: Value| json!({ "reasoning_details": [fields] });
        let details = merged(&[
            piece(json!({ "type": "reasoning.text", "index": 0, "text": "a", "signature": null })),
            piece(json!({ "type": "reasoning.text", "index": 0, "text": "a" })),
            piece(json!({ "type": "reasoning.text", "index": 0, "signature": "S1" })),
            piece(json!({ "type": "reasoning.encrypted", "index": 0, "id": "x", "data": "E1" })),
            piece(json!({ "type": "reasoning.encrypted", "index": 0, "id": "y", "data": "E2" })),
            piece(json!({ "type": "reasoning.text", "index": 1, "text": "b" })),
            piece(json!({ "type": "unnumbered" })),
            piece(json!({ "type": "unnumbered" })),
        ]);
        assert_eq!(
            details["reasoning_details"],
            json!([
                { "type": "reasoning.text", "index": 0, "text": "aa", "signature": "S1" },
                { "type": "reasoning.encrypted", "index": 0, "id": "x", "data": "E1" },
                { "type": "reasoning.encrypted", "index": 0, "id": "y", "data": "E2" },
                { "type": "reasoning.text", "index": 1, "text": "b" },
                { "type": "unnumbered" },
                { "type": "unnumbered" },
            ])
        );
    }

    #[test]
    fn objects_are_merged_field_by_field() {
        let fields = merged(&[
            json!({ "extra_content": { "google": { "thought_signature": "AB" } } }),
            json!({ "extra_content": { "google": { "thought_signature": "CD", "thought": true } } }),
        ]);
        assert_eq!(
            fields["extra_content"]["google"],
            json!({ "thought_signature": "ABCD", "thought": true })
        );
    }

    #[test]
    fn a_list_is_bounded() {
        let mut known = Map::new();
        let one = json!({ "list": [1] });
        let results: Vec<_> = (0..=MAX_ITEMS)
            .map(|_| merge_fields(&mut known, one.as_object().expect("fields").clone()))
            .collect();
        assert_eq!(
            results.iter().filter(|result| result.is_ok()).count(),
            MAX_ITEMS
        );
    }
}
