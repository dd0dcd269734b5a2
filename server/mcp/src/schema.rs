//! The schemas of tools' arguments: bounded, whole in themselves, and without recursion.

use serde_json::{Map, Value};
use shared_types::clean::clean;

use crate::bounds::{MAX_JSON_LEVELS, MAX_SCHEMA_BYTES, MAX_SCHEMA_LEVELS};

/// Words whose value has a schema for each name.
const OF_NAMES: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];

/// Words whose value is a schema, or a list of schemas.
const OF_SCHEMAS: [&str; 14] = [
    "items",
    "prefixItems",
    "additionalProperties",
    "additionalItems",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "anyOf",
    "allOf",
    "oneOf",
    "unevaluatedProperties",
];

/// The schema of a tool's arguments, as models are given it: its words for people are harmless.
///
/// # Errors
/// The schema is too large or too deep, refers to itself or to another document, or describes no object.
pub(crate) fn checked(schema: Value) -> Result<Value, String> {
    if schema["type"] != "object" {
        return Err("its arguments are no object".to_owned());
    }
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(format!(
            "its schema has {bytes} bytes; at most {MAX_SCHEMA_BYTES} are taken"
        ));
    }
    if !is_bounded(&schema) {
        return Err("its schema is nested too deep".to_owned());
    }
    Walk {
        root: &schema,
        open: Vec::new(),
    }
    .schema(&schema, 1)?;
    Ok(harmless(schema))
}

/// True if the JSON is not nested deeper than any schema has to be.
pub(crate) fn is_bounded(value: &Value) -> bool {
    fn fits(value: &Value, levels: usize) -> bool {
        match value {
            _ if levels == 0 => false,
            Value::Array(items) => items.iter().all(|item| fits(item, levels - 1)),
            Value::Object(fields) => fields.values().all(|field| fits(field, levels - 1)),
            _ => true,
        }
    }
    fits(value, MAX_JSON_LEVELS)
}

/// A walk through a schema. The references that are open lead back to themselves if they are met again.
struct Walk<'a> {
    root: &'a Value,
    open: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, schema: &'a Value, level: usize) -> Result<(), String> {
        if level > MAX_SCHEMA_LEVELS {
            return Err(format!(
                "its schema is nested more than {MAX_SCHEMA_LEVELS} deep"
            ));
        }
        let Value::Object(fields) = schema else {
            return Ok(());
        };
        for word in ["$ref", "$dynamicRef", "$recursiveRef"] {
            match fields.get(word) {
                None => {}
                Some(Value::String(to)) => self.reference(to, level)?,
                Some(_) => return Err(format!("its schema has a {word} that is no text")),
            }
        }
        for word in OF_NAMES {
            // Definitions count where they are used.
            let is_used = !matches!(word, "$defs" | "definitions");
            let named = fields
                .get(word)
                .and_then(Value::as_object)
                .filter(|_| is_used);
            for schema in named.into_iter().flat_map(Map::values) {
                self.schema(schema, level + 1)?;
            }
        }
        for word in OF_SCHEMAS {
            match fields.get(word) {
                Some(Value::Array(schemas)) => {
                    for schema in schemas {
                        self.schema(schema, level + 1)?;
                    }
                }
                Some(schema) => self.schema(schema, level + 1)?,
                None => {}
            }
        }
        Ok(())
    }

    /// Goes on with the schema that is referred to. Nothing is ever fetched.
    fn reference(&mut self, to: &'a str, level: usize) -> Result<(), String> {
        let Some(path) = to.strip_prefix('#') else {
            return Err("its schema refers to another document, which is not fetched".to_owned());
        };
        if self.open.contains(&to) {
            return Err("its schema refers to itself".to_owned());
        }
        let found = self.root.pointer(path);
        let found = found.ok_or("its schema refers to a part that it has not")?;
        self.open.push(to);
        self.schema(found, level + 1)?;
        self.open.pop();
        Ok(())
    }
}

/// The schema with harmless words for people. All else keeps its meaning.
fn harmless(schema: Value) -> Value {
    match schema {
        Value::Array(items) => items.into_iter().map(harmless).collect(),
        Value::Object(fields) => {
            let field = |(name, value)| match value {
                Value::String(text) if name == "description" || name == "title" => {
                    (name, clean(&text).into())
                }
                value => (name, harmless(value)),
            };
            Value::Object(fields.into_iter().map(field).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        let mut schema = json!({ "type": "string" });
        for _ in 1..levels {
            schema = json!({ "type": "object", "properties": { "a": schema } });
        }
        schema
    }

    #[test]
    fn ten_levels_are_taken_and_eleven_are_not() {
        assert!(checked(nested(10)).is_ok());
        assert!(
            checked(nested(11))
                .unwrap_err()
                .contains("more than 10 deep")
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_or_elsewhere_is_refused() {
        let of = |defs: Value, to: &str| {
            checked(
                json!({ "type": "object", "$defs": defs, "properties": { "a": { "$ref": to } } }),
            )
        };
        let tree = json!({ "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } });
        assert_eq!(
            of(tree, "#/$defs/node").unwrap_err(),
            "its schema refers to itself"
        );
        assert_eq!(
            of(json!({}), "#").unwrap_err(),
            "its schema refers to itself"
        );
        let ring =
            json!({ "a": { "$ref": "#/$defs/b" }, "b": { "anyOf": [{ "$ref": "#/$defs/a" }] } });
        assert!(of(ring, "#/$defs/a").is_err());
        assert!(
            of(json!({}), "https://example.org/s.json")
                .unwrap_err()
                .contains("not fetched")
        );
        assert!(of(json!({}), "#/$defs/none").is_err());
        // The same part twice is no recursion.
        let twice = checked(json!({
            "type": "object", "$defs": { "d": { "type": "string" } },
            "properties": { "a": { "$ref": "#/$defs/d" }, "b": { "$ref": "#/$defs/d" } },
        }));
        assert!(twice.is_ok());
    }

    #[test]
    fn a_schema_that_is_large_or_no_object_is_refused() {
        let large = json!({ "type": "object", "description": "x".repeat(MAX_SCHEMA_BYTES) });
        assert!(checked(large).unwrap_err().contains("bytes"));
        for other in [
            json!(null),
            json!({}),
            json!({ "type": "string" }),
            json!([]),
        ] {
            assert!(checked(other).is_err());
        }
        let mut deep = json!(1);
        for _ in 0..MAX_JSON_LEVELS {
            deep = json!([deep]);
        }
        assert!(checked(json!({ "type": "object", "default": deep })).is_err());
    }

    #[test]
    fn words_for_people_are_harmless_and_values_stay() {
        let schema = json!({
            "type": "object",
            "properties": { "a": { "type": "string", "description": "x\u{1b}[2Jy", "enum": ["\u{1}"] } },
        });
        let checked = checked(schema).unwrap();
        assert_eq!(checked["properties"]["a"]["description"], "xy");
        assert_eq!(checked["properties"]["a"]["enum"][0], "\u{1}");
    }
}
