//! A field of a form: its words, and the value that a person's words are.

use serde_json::{Number, Value};
use shared_types::clean::{clean, clean_line};

/// Longest name of a field, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// Longest words about a field, in bytes.
const MAX_WORDS_BYTES: usize = 1024;

/// Most values to choose from.
const MAX_CHOICES: usize = 64;

/// Longest of them, in bytes.
const MAX_CHOICE_BYTES: usize = 200;

/// Words in the name or description of a field that asks for a secret.
const SECRETS: [&str; 11] = [
    "password",
    "passwort",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "api key",
    "api_key",
    "apikey",
    "private key",
    "credential",
];

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name; the answer has its value under it.
    pub name: String,
    /// Its title and description, harmless; may be empty.
    pub words: String,
    /// True if an answer must have it.
    pub required: bool,
    /// Its value if the person gives none.
    pub default: Option<Value>,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Text {
        at_least: usize,
        at_most: usize,
    },
    Number {
        whole: bool,
        least: f64,
        most: f64,
    },
    Flag,
    One(Vec<Choice>),
    Many {
        of: Vec<Choice>,
        at_least: usize,
        at_most: usize,
    },
}

/// A value to choose, and the words for it.
#[derive(Debug, Clone, PartialEq)]
struct Choice {
    value: String,
    words: String,
}

impl Field {
    /// The field with this schema; nothing if no person can be asked for such a value.
    pub(super) fn read(name: &str, schema: &Value, required: bool) -> Option<Self> {
        if name.len() > MAX_NAME_BYTES
            || clean_line(name, MAX_NAME_BYTES) != name
            || name.is_empty()
        {
            return None;
        }
        let size = |name: &str, otherwise: usize| {
            let size = schema[name]
                .as_u64()
                .and_then(|size| usize::try_from(size).ok());
            size.unwrap_or(otherwise)
        };
        let kind = match (schema["type"].as_str(), choices(schema)) {
            (Some("string") | None, Some(of)) => Kind::One(of?),
            (Some("string"), None) => Kind::Text {
                at_least: size("minLength", 0),
                at_most: size("maxLength", usize::MAX),
            },
            (Some(kind @ ("integer" | "number")), None) => Kind::Number {
                whole: kind == "integer",
                least: schema["minimum"].as_f64().unwrap_or(f64::MIN),
                most: schema["maximum"].as_f64().unwrap_or(f64::MAX),
            },
            (Some("boolean"), None) => Kind::Flag,
            (Some("array"), None) => Kind::Many {
                of: choices(&schema["items"])??,
                at_least: size("minItems", 0),
                at_most: size("maxItems", usize::MAX),
            },
            _ => return None,
        };
        let word = |name: &str| schema[name].as_str().unwrap_or_default();
        let words = format!("{}\n{}", word("title"), word("description"));
        let end = words.floor_char_boundary(MAX_WORDS_BYTES);
        let mut field = Self {
            name: name.to_owned(),
            words: clean(words[..end].trim()),
            required,
            default: None,
            kind,
        };
        let default = schema.get("default").filter(|default| !default.is_null());
        field.default = default.filter(|default| field.takes(default)).cloned();
        Some(field)
    }

    /// True if it asks for something that looks like a secret.
    pub fn is_secret(&self) -> bool {
        let words = format!("{} {}", self.name, self.words).to_lowercase();
        SECRETS.iter().any(|secret| words.contains(secret))
    }

    /// The values to choose from, in words for people; empty where words of their own are wanted.
    pub fn choices(&self) -> Vec<&str> {
        match &self.kind {
            Kind::Flag => vec!["yes", "no"],
            Kind::One(of) => of.iter().map(|choice| choice.words.as_str()).collect(),
            Kind::Text { .. } | Kind::Number { .. } | Kind::Many { .. } => Vec::new(),
        }
    }

    /// The form of a value that is not chosen, in words for people; may be empty.
    pub fn form(&self) -> String {
        match &self.kind {
            Kind::Flag | Kind::One(_) => String::new(),
            Kind::Text { at_least, at_most } => match (*at_least, *at_most) {
                (0, usize::MAX) => String::new(),
                (least, usize::MAX) => format!("at least {least} letters"),
                (0, most) => format!("at most {most} letters"),
                (least, most) => format!("{least} to {most} letters"),
            },
            Kind::Number { whole, least, most } => {
                let kind = if *whole { "a whole number" } else { "a number" };
                let least = (*least > f64::MIN).then(|| format!(" of at least {least}"));
                let most = (*most < f64::MAX).then(|| format!(" up to {most}"));
                format!(
                    "{kind}{}{}",
                    least.unwrap_or_default(),
                    most.unwrap_or_default()
                )
            }
            Kind::Many { of, .. } => {
                let of: Vec<_> = of.iter().map(|choice| choice.words.as_str()).collect();
                format!("any of these, with commas between them: {}", of.join(", "))
            }
        }
    }

    /// The default in words for people.
    pub fn default_words(&self) -> Option<String> {
        let words = |value: &str| match &self.kind {
            Kind::One(of) | Kind::Many { of, .. } => {
                let choice = of.iter().find(|choice| choice.value == value);
                choice.map_or_else(|| value.to_owned(), |choice| choice.words.clone())
            }
            _ => clean_line(value, MAX_CHOICE_BYTES),
        };
        Some(match self.default.as_ref()? {
            Value::Bool(flag) => if *flag { "yes" } else { "no" }.to_owned(),
            Value::String(text) => words(text),
            Value::Array(of) => {
                let of: Vec<_> = of.iter().filter_map(Value::as_str).map(words).collect();
                of.join(", ")
            }
            other => other.to_string(),
        })
    }

    /// The value that a person's words are.
    ///
    /// # Errors
    /// They are none that fits; the text says what does.
    pub fn value(&self, said: &str) -> Result<Value, String> {
        let said = said.trim();
        let value = match &self.kind {
            Kind::Text { .. } => Value::from(said),
            Kind::Number { whole: true, .. } => {
                let number = said.parse::<i64>();
                number
                    .map_err(|_| format!("{said:?} is no whole number"))?
                    .into()
            }
            Kind::Number { whole: false, .. } => {
                let number = said.parse().ok().and_then(Number::from_f64);
                number
                    .ok_or_else(|| format!("{said:?} is no number"))?
                    .into()
            }
            Kind::Flag => match said.to_lowercase().as_str() {
                "yes" | "y" | "true" | "1" => true.into(),
                "no" | "n" | "false" | "0" => false.into(),
                _ => return Err("answer yes or no".to_owned()),
            },
            Kind::One(of) => chosen(of, said)?.into(),
            Kind::Many { of, .. } => {
                let said = said
                    .split(',')
                    .map(str::trim)
                    .filter(|said| !said.is_empty());
                let values: Result<Vec<_>, _> = said.map(|said| chosen(of, said)).collect();
                values?.into()
            }
        };
        match self.takes(&value) {
            true => Ok(value),
            false => Err(format!("it does not fit; wanted: {}", self.form())),
        }
    }

    fn takes(&self, value: &Value) -> bool {
        let knows = |of: &[Choice], value: &Value| of.iter().any(|choice| value == &choice.value);
        match (&self.kind, value) {
            (Kind::Text { at_least, at_most }, Value::String(text)) => {
                (*at_least..=*at_most).contains(&text.chars().count())
            }
            (Kind::Number { whole, least, most }, Value::Number(number)) => {
                let fits = number
                    .as_f64()
                    .is_some_and(|number| (*least..=*most).contains(&number));
                fits && (!whole || number.is_i64() || number.is_u64())
            }
            (Kind::Flag, Value::Bool(_)) => true,
            (Kind::One(of), value) => knows(of, value),
            (
                Kind::Many {
                    of,
                    at_least,
                    at_most,
                },
                Value::Array(values),
            ) => {
                (*at_least..=*at_most).contains(&values.len())
                    && values.iter().all(|value| knows(of, value))
            }
            _ => false,
        }
    }
}

/// The value that these words name, or that they are.
fn chosen(of: &[Choice], said: &str) -> Result<String, String> {
    let is_it = |choice: &&Choice| choice.words.eq_ignore_ascii_case(said) || choice.value == said;
    let found = of.iter().find(is_it);
    let found = found.ok_or_else(|| format!("{said:?} is none of the values to choose from"))?;
    Ok(found.value.clone())
}

/// The values that a schema lists, if it lists some; nothing within where they are none that people can be shown.
fn choices(schema: &Value) -> Option<Option<Vec<Choice>>> {
    let list = ["enum", "oneOf", "anyOf"]
        .iter()
        .find_map(|name| schema[*name].as_array())?;
    let names = schema["enumNames"].as_array();
    let choice = |(at, item): (usize, &Value)| {
        let value = item.as_str().or(item["const"].as_str())?;
        let name = names.and_then(|names| names.get(at)?.as_str());
        let words = item["title"].as_str().or(name).unwrap_or(value);
        let words = clean_line(words, MAX_CHOICE_BYTES);
        (value.len() <= MAX_CHOICE_BYTES && !words.is_empty()).then(|| Choice {
            value: value.to_owned(),
            words,
        })
    };
    if list.is_empty() || list.len() > MAX_CHOICES {
        return Some(None);
    }
    Some(list.iter().enumerate().map(choice).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_words_of_a_person_become_values_of_each_kind() {
        for (schema, said, value) in [
            (json!({ "type": "string" }), " Anna ", Ok(json!("Anna"))),
            (json!({ "type": "string", "maxLength": 2 }), "Anna", Err(())),
            (
                json!({ "type": "integer", "minimum": 1 }),
                "7",
                Ok(json!(7)),
            ),
            (json!({ "type": "integer", "minimum": 1 }), "0", Err(())),
            (json!({ "type": "integer" }), "1.5", Err(())),
            (
                json!({ "type": "number", "maximum": 2 }),
                "1.5",
                Ok(json!(1.5)),
            ),
            (json!({ "type": "number" }), "NaN", Err(())),
            (json!({ "type": "boolean" }), "Yes", Ok(json!(true))),
            (json!({ "type": "boolean" }), "perhaps", Err(())),
            (
                json!({ "type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"] }),
                "green",
                Ok(json!("g")),
            ),
            (
                json!({ "type": "string", "oneOf": [{ "const": "r", "title": "Red" }] }),
                "r",
                Ok(json!("r")),
            ),
            (json!({ "type": "string", "enum": ["r"] }), "blue", Err(())),
            (
                json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } }),
                "b, a",
                Ok(json!(["b", "a"])),
            ),
            (
                json!({ "type": "array", "minItems": 2, "items": { "anyOf": [{ "const": "a", "title": "A" }] } }),
                "A",
                Err(()),
            ),
        ] {
            let field = Field::read("f", &schema, true).expect("a field");
            assert_eq!(field.value(said).map_err(drop), value, "{schema} {said}");
        }
    }

    #[test]
    fn a_default_that_does_not_fit_is_none_and_a_secret_is_seen_by_its_words() {
        let read = |name: &str, schema: Value| Field::read(name, &schema, false).expect("a field");
        assert_eq!(
            read("a", json!({ "type": "integer", "default": "x" })).default,
            None
        );
        let flag = read("a", json!({ "type": "boolean", "default": false }));
        assert_eq!(flag.default_words().as_deref(), Some("no"));
        assert!(
            read(
                "key",
                json!({ "type": "string", "description": "Your API key" })
            )
            .is_secret()
        );
        assert!(!read("title", json!({ "type": "string" })).is_secret());
    }
}
