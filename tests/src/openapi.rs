//! Whether JSON is what an OpenAPI document says: types, required and known properties,
//! references, lists, alternatives and closed sets of words. What the document does not name is an
//! error, because a document that leaves something out is not true.

use serde_json::{Map, Value};

/// A document as the server serves it.
pub struct Document(Value);

/// One method at one address.
pub struct Operation<'a> {
    /// Such as `get`.
    pub method: &'a str,
    /// With places for ids, such as `/api/v1/sessions/{id}`.
    pub path: &'a str,
    document: &'a Document,
    said: &'a Value,
}

impl Document {
    /// From its JSON.
    pub fn new(json: Value) -> Self {
        Self(json)
    }

    /// Every documented operation.
    pub fn operations(&self) -> Vec<Operation<'_>> {
        let paths = self.0["paths"].as_object().expect("paths").iter();
        paths
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().expect("methods").iter();
                methods.map(|(method, said)| Operation {
                    method,
                    path,
                    document: self,
                    said,
                })
            })
            .collect()
    }

    /// The operation at this address.
    ///
    /// # Panics
    /// If the document does not have it.
    pub fn operation(&self, method: &str, path: &str) -> Operation<'_> {
        let mut operations = self.operations().into_iter();
        operations
            .find(|operation| operation.method == method && operation.path == path)
            .unwrap_or_else(|| panic!("the document lacks {method} {path}"))
    }

    /// What is wrong with a value that should be of the component with this name.
    ///
    /// # Errors
    /// The first thing that is not as the document says, and where.
    pub fn check_component(&self, name: &str, value: &Value) -> Result<(), String> {
        self.check(&self.0["components"]["schemas"][name], value, name)
    }

    fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let schema = self.resolve(schema)?;
        if let Some(one_of) = schema["oneOf"].as_array() {
            let fits = one_of.iter().map(|schema| self.check(schema, value, at));
            let (good, bad): (Vec<_>, Vec<_>) = fits.partition(Result::is_ok);
            return match good.len() {
                1 => Ok(()),
                number => Err(format!("{at}: {number} alternatives fit {value}: {bad:?}")),
            };
        }
        let Some(types) = types(schema) else {
            return Err(format!(
                "{at}: the document does not say what it is: {schema}"
            ));
        };
        if !types.iter().any(|name| is_of(value, name)) {
            return Err(format!("{at}: {value} is none of {types:?}"));
        }
        if let Some(words) = schema["enum"].as_array()
            && !words.contains(value)
        {
            return Err(format!("{at}: {value} is none of {words:?}"));
        }
        check_bounds(schema, value, at)?;
        match value {
            Value::Array(items) => items.iter().enumerate().try_for_each(|(place, item)| {
                self.check(&schema["items"], item, &format!("{at}[{place}]"))
            }),
            Value::Object(fields) => self.check_fields(schema, fields, at),
            _ => Ok(()),
        }
    }

    fn check_fields(
        &self,
        schema: &Value,
        fields: &Map<String, Value>,
        at: &str,
    ) -> Result<(), String> {
        // An object without properties is one whose content the document leaves open.
        let Some(properties) = schema["properties"].as_object() else {
            return Ok(());
        };
        for name in schema["required"].as_array().into_iter().flatten() {
            let name = name.as_str().expect("a name");
            if !fields.contains_key(name) {
                return Err(format!("{at}: {name} is required and missing"));
            }
        }
        for (name, value) in fields {
            let Some(schema) = properties.get(name) else {
                return Err(format!("{at}: {name} is not documented"));
            };
            self.check(schema, value, &format!("{at}.{name}"))?;
        }
        Ok(())
    }

    /// The smallest value that a schema allows: only what is required, and all of it small.
    fn smallest(&self, schema: &Value) -> Value {
        let schema = self.resolve(schema).expect("it is in the document");
        if let Some(first) = schema["enum"].get(0) {
            return first.clone();
        }
        if !schema["example"].is_null() {
            return schema["example"].clone();
        }
        if let Some(first) = schema["oneOf"].get(0) {
            return self.smallest(first);
        }
        let types = types(schema).expect("a type");
        match types[0] {
            "string" => {
                let letters = schema["minLength"].as_u64().unwrap_or(0);
                "x".repeat(usize::try_from(letters).expect("a length"))
                    .into()
            }
            "integer" | "number" => schema["minimum"].as_u64().unwrap_or(0).into(),
            "boolean" => false.into(),
            "array" => Vec::<Value>::new().into(),
            "object" => {
                let required = schema["required"].as_array().into_iter().flatten();
                let names = required.map(|name| name.as_str().expect("a name"));
                let fields = names.map(|name| {
                    let value = self.smallest(&schema["properties"][name]);
                    (name.to_owned(), value)
                });
                Value::Object(fields.collect())
            }
            _ => Value::Null,
        }
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> Result<&'a Value, String> {
        let Some(reference) = schema["$ref"].as_str() else {
            return Ok(schema);
        };
        let pointer = reference.trim_start_matches('#');
        let found = self.0.pointer(pointer);
        found.ok_or_else(|| format!("the document lacks {reference}"))
    }
}

impl Operation<'_> {
    /// Whether it takes no credential.
    pub fn is_open(&self) -> bool {
        self.said["security"] == serde_json::json!([{}])
    }

    /// Whether it may answer with this status.
    pub fn answers(&self, status: u16) -> bool {
        self.said["responses"][status.to_string()].is_object()
    }

    /// Whether it takes a body.
    pub fn has_body(&self) -> bool {
        self.said["requestBody"].is_object()
    }

    /// Whether it takes JSON.
    pub fn has_json(&self) -> bool {
        self.json().is_object()
    }

    fn json(&self) -> &Value {
        &self.said["requestBody"]["content"]["application/json"]["schema"]
    }

    /// The smallest body that the document allows; none where it takes no body.
    pub fn smallest_body(&self) -> Option<String> {
        let json = || self.document.smallest(self.json()).to_string();
        self.has_body().then(|| {
            if self.has_json() {
                json()
            } else {
                String::new()
            }
        })
    }

    /// The smallest query that the document allows, such as `?offset=0`; empty where it needs none.
    pub fn smallest_query(&self) -> String {
        let parameters = self.said["parameters"].as_array().into_iter().flatten();
        let needed = parameters.filter(|said| said["in"] == "query" && said["required"] == true);
        let pairs = needed.map(|said| {
            let name = said["name"].as_str().expect("a name");
            format!("{name}={}", self.document.smallest(&said["schema"]))
        });
        match pairs.collect::<Vec<_>>() {
            none if none.is_empty() => String::new(),
            pairs => format!("?{}", pairs.join("&")),
        }
    }

    /// The names of its parameters in this place, such as `query`.
    pub fn parameters(&self, place: &str) -> Vec<&str> {
        let parameters = self.said["parameters"].as_array().into_iter().flatten();
        parameters
            .filter(|parameter| parameter["in"] == place)
            .filter_map(|parameter| parameter["name"].as_str())
            .collect()
    }

    /// The greatest number that a parameter may be, where it has one.
    pub fn greatest(&self, parameter: &str) -> Option<u64> {
        let parameters = self.said["parameters"].as_array().into_iter().flatten();
        let mut named = parameters.filter(|said| said["name"] == parameter);
        named.next()?["schema"]["maximum"].as_u64()
    }

    /// What it is called in the clients that are made from the document.
    pub fn id(&self) -> Option<&str> {
        self.said["operationId"].as_str()
    }

    /// What is wrong with a request body that the server should take.
    ///
    /// # Errors
    /// The first thing that is not as the document says, and where.
    pub fn check_request(&self, body: &Value) -> Result<(), String> {
        self.document.check(self.json(), body, "request")
    }

    /// What is wrong with an answer: its status, its content type and its body.
    ///
    /// # Errors
    /// The first thing that is not as the document says, and where.
    pub fn check_answer(&self, status: u16, kind: &str, body: &Value) -> Result<(), String> {
        let response = &self.said["responses"][status.to_string()];
        if !response.is_object() {
            return Err(format!("status {status} is not documented"));
        }
        if response["description"].as_str().is_none_or(str::is_empty) {
            return Err(format!("status {status} has no description"));
        }
        let Some(content) = response["content"].as_object() else {
            return match body {
                Value::Null if kind.is_empty() => Ok(()),
                _ => Err(format!("status {status} has a body that is not documented")),
            };
        };
        let Some(content) = content.get(kind) else {
            let kinds: Vec<_> = content.keys().collect();
            return Err(format!(
                "status {status} is {kind:?}, documented are {kinds:?}"
            ));
        };
        match kind.ends_with("json") {
            true => self.document.check(&content["schema"], body, "answer"),
            // Its bytes are described by their kind alone.
            false => Ok(()),
        }
    }
}

/// Bounds of numbers, and of texts in letters.
fn check_bounds(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let letters = value.as_str().map(|text| text.chars().count() as f64);
    for (measured, least, most) in [
        (value.as_f64(), "minimum", "maximum"),
        (letters, "minLength", "maxLength"),
    ] {
        let Some(measured) = measured else { continue };
        let (least, most) = (schema[least].as_f64(), schema[most].as_f64());
        if least.is_some_and(|least| measured < least) || most.is_some_and(|most| measured > most) {
            return Err(format!("{at}: {measured} is out of bounds: {schema}"));
        }
    }
    Ok(())
}

/// The names of the types that a value may have.
fn types(schema: &Value) -> Option<Vec<&str>> {
    match &schema["type"] {
        Value::String(name) => Some(vec![name]),
        Value::Array(names) => Some(names.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_unknown_or_of_another_type_is_found() {
        let document = Document::new(json!({ "components": { "schemas": {
            "List": { "type": "object", "required": ["items"], "properties": {
                "items": { "type": "array", "items": { "$ref": "#/components/schemas/Item" } } } },
            "Item": { "oneOf": [
                { "type": "object", "required": ["kind", "size"], "properties": {
                    "kind": { "type": "string", "enum": ["big"] },
                    "size": { "type": ["integer", "null"] } } },
                { "type": "object", "required": ["kind"], "properties": {
                    "kind": { "type": "string", "enum": ["small"] } } } ] },
            "Word": { "type": "string", "minLength": 1, "maxLength": 2 },
            "Page": { "type": "integer", "minimum": 1, "maximum": 9 },
            "Bad": { "$ref": "#/components/schemas/Nothing" },
        } } }));
        let check = |name: &str, value: Value| document.check_component(name, &value);
        let item = |item: Value| check("List", json!({ "items": [item] }));
        assert_eq!(item(json!({ "kind": "big", "size": null })), Ok(()));
        assert_eq!(item(json!({ "kind": "small" })), Ok(()));
        assert!(item(json!({ "kind": "big" })).is_err());
        assert!(item(json!({ "kind": "big", "size": 0.5 })).is_err());
        assert!(item(json!({ "kind": "medium" })).is_err());
        assert!(item(json!({ "kind": "small", "size": 1 })).is_err());
        assert!(check("List", json!({})).is_err());
        assert!(check("List", json!([])).is_err());
        assert!(check("Bad", json!({})).is_err());
        assert_eq!(check("Word", json!("äö")), Ok(()));
        assert!(check("Word", json!("")).is_err() && check("Word", json!("abc")).is_err());
        assert_eq!(check("Page", json!(9)), Ok(()));
        assert!(check("Page", json!(0)).is_err() && check("Page", json!(10)).is_err());
    }
}
