//! Arguments of a tool call. The model wrote them, so nothing about them is trusted; each way in
//! which they can be wrong gives one message that names the argument and lists the known ones.

use serde_json::{Map, Value, json};
use shared_types::limits::MAX_PATH_BYTES;

/// An argument that a tool takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// True if it must be there; one that need not be may also be null.
    pub required: bool,
    /// Its meaning and its default, for the model.
    pub about: &'static str,
}

impl Parameter {
    /// An argument that must be there.
    pub const fn required(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self {
            name,
            kind,
            required: true,
            about,
        }
    }

    /// An argument that may be absent or null.
    pub const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self {
            name,
            kind,
            required: false,
            about,
        }
    }
}

/// The kinds of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    Text {
        /// True if it may be empty.
        empty: bool,
        /// The most bytes that it may have.
        at_most: usize,
        /// The advice for an argument that is too long.
        instead: &'static str,
    },
    /// A command for the shell; not empty. A list of words is taken as well.
    Command {
        /// The most bytes that it may have.
        at_most: usize,
        /// The advice for an argument that is too long.
        instead: &'static str,
    },
    /// A whole number.
    Number {
        /// The least.
        from: u64,
        /// The greatest.
        to: u64,
    },
    /// True or false.
    Flag,
}

impl Kind {
    /// The path of something in the workspace; not empty.
    pub const PATH: Self = Self::Text {
        empty: false,
        at_most: MAX_PATH_BYTES,
        instead: "use a shorter path",
    };

    /// The path of a directory; empty for the root of the workspace.
    pub const DIRECTORY: Self = Self::Text {
        empty: true,
        at_most: MAX_PATH_BYTES,
        instead: "use a shorter path",
    };

    /// A pattern to search for; not empty.
    pub const PATTERN: Self = Self::Text {
        empty: false,
        at_most: MAX_PATH_BYTES,
        instead: "use a shorter pattern",
    };
}

/// Arguments that are there as the tool declares them.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    given: Map<String, Value>,
}

/// The reason that a call cannot be run, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadArguments(String);

impl BadArguments {
    /// With these words: lower case, no full stop.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl Arguments {
    /// Checks what the model wrote against what the tool declares.
    ///
    /// # Errors
    /// If it is not a JSON object, or an argument is missing, unknown, of the wrong type or out
    /// of bounds.
    pub fn check(written: &str, parameters: &[Parameter]) -> Result<Self, BadArguments> {
        let bad =
            |what: String| BadArguments::new(format!("{what}; {}", the_known_ones(parameters)));
        // Some vendors write nothing where there are no arguments.
        let written = if written.trim().is_empty() {
            "{}"
        } else {
            written
        };
        let value = serde_json::from_str(written)
            .map_err(|error| bad(format!("the arguments are not valid JSON ({error})")))?;
        let Value::Object(mut given) = value else {
            return Err(bad("the arguments are not a JSON object".to_owned()));
        };
        for parameter in parameters {
            check_one(parameter, &mut given).map_err(&bad)?;
        }
        let known = |name: &String| {
            parameters.iter().any(|known| known.name == name)
                || CHANGE_NOTHING.contains(&name.as_str())
        };
        match given.keys().find(|name| !known(name)) {
            Some(name) => Err(bad(format!("there is no argument {:?}", shortened(name)))),
            None => Ok(Self { given }),
        }
    }

    /// Takes arguments of a tool that has a schema of its own, and checks only their form.
    ///
    /// # Errors
    /// If they are not a JSON object.
    pub fn free(written: &str) -> Result<Self, BadArguments> {
        let written = if written.trim().is_empty() {
            "{}"
        } else {
            written
        };
        match serde_json::from_str(written) {
            Ok(Value::Object(given)) => Ok(Self { given }),
            Ok(_) => Err(BadArguments::new("the arguments are not a JSON object")),
            Err(error) => Err(BadArguments::new(format!(
                "the arguments are not valid JSON ({error})"
            ))),
        }
    }

    /// All of them.
    pub fn object(&self) -> &Map<String, Value> {
        &self.given
    }

    /// A string; empty where it was not given.
    pub fn text(&self, name: &str) -> &str {
        self.given
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// A number, where it was given.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.given.get(name).and_then(Value::as_u64)
    }

    /// A flag; false where it was not given.
    pub fn flag(&self, name: &str) -> bool {
        self.given
            .get(name)
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }
}

/// The JSON Schema of an object with these arguments.
pub(super) fn schema(parameters: &[Parameter]) -> Value {
    let properties: Map<_, _> = parameters
        .iter()
        .map(|parameter| {
            let mut schema = match parameter.kind {
                Kind::Text { .. } | Kind::Command { .. } => json!({ "type": "string" }),
                Kind::Number { from, to } => {
                    json!({ "type": "integer", "minimum": from, "maximum": to })
                }
                Kind::Flag => json!({ "type": "boolean" }),
            };
            schema["description"] = parameter.about.into();
            (parameter.name.to_owned(), schema)
        })
        .collect();
    let required: Vec<_> = parameters
        .iter()
        .filter(|parameter| parameter.required)
        .map(|parameter| parameter.name)
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Arguments that models add to any tool, and without which a call does the same. Every other one that is not
/// known is refused: a command without its `cwd` is another command.
const CHANGE_NOTHING: &[&str] = &[
    "comment",
    "description",
    "explanation",
    "purpose",
    "rationale",
    "reason",
    "reasoning",
    "thought",
    "title",
];

fn check_one(parameter: &Parameter, given: &mut Map<String, Value>) -> Result<(), String> {
    let name = parameter.name;
    let Some(value) = given.get_mut(name) else {
        return match parameter.required {
            true => Err(format!("the argument \"{name}\" is missing")),
            false => Ok(()),
        };
    };
    if value.is_null() && !parameter.required {
        given.remove(name);
        return Ok(());
    }
    match parameter.kind {
        Kind::Text {
            empty,
            at_most,
            instead,
        } => check_text(name, value, empty, (at_most, instead)),
        Kind::Command { at_most, instead } => {
            if let Some(command) = words(value).map(|words| command(&words)) {
                *value = command.into();
            }
            check_text(name, value, false, (at_most, instead))
        }
        Kind::Number { from, to } => {
            let number = whole(value).ok_or_else(|| not_a(name, "a whole number", value))?;
            if !(from..=to).contains(&number) {
                return Err(format!(
                    "the argument \"{name}\" is {number}; it must be from {from} to {to}"
                ));
            }
            *value = number.into();
            Ok(())
        }
        Kind::Flag => {
            let flag = flag(value).ok_or_else(|| not_a(name, "true or false", value))?;
            *value = flag.into();
            Ok(())
        }
    }
}

fn check_text(
    name: &str,
    value: &Value,
    may_be_empty: bool,
    (at_most, instead): (usize, &str),
) -> Result<(), String> {
    let text = value
        .as_str()
        .ok_or_else(|| not_a(name, "a string", value))?;
    if text.is_empty() && !may_be_empty {
        return Err(format!("the argument \"{name}\" is empty"));
    }
    if text.len() > at_most {
        return Err(format!(
            "the argument \"{name}\" has {} bytes; at most {at_most} fit: {instead}",
            text.len()
        ));
    }
    Ok(())
}

/// The words of a list that has nothing else.
fn words(value: &Value) -> Option<Vec<&str>> {
    let words = value.as_array()?;
    words.iter().map(Value::as_str).collect()
}

/// The command that a program would be started with by these words. A shell's own command is that.
fn command(words: &[&str]) -> String {
    match words {
        [
            "sh" | "bash" | "/bin/sh" | "/bin/bash",
            "-c" | "-lc",
            command,
        ] => (*command).to_owned(),
        [command] => (*command).to_owned(),
        words => words
            .iter()
            .map(|word| quoted(word))
            .collect::<Vec<_>>()
            .join(" "),
    }
}

/// A word as the shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./=:,@%+".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A flag, also where the model wrote it as a string.
fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::String(text) => text.trim().to_ascii_lowercase().parse().ok(),
        value => value.as_bool(),
    }
}

/// A whole number, also where the model wrote it as `5.0` or as a string.
fn whole(value: &Value) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Value::String(text) = value {
        return text.trim().parse().ok();
    }
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && (0.0..EXACT).contains(&number)).then_some(number as u64)
    })
}

fn not_a(name: &str, expected: &str, value: &Value) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    format!("the argument \"{name}\" must be {expected}, not {found}")
}

/// The beginning of a name that the model made up.
pub(super) fn shortened(name: &str) -> &str {
    &name[..name.floor_char_boundary(64)]
}

fn the_known_ones(parameters: &[Parameter]) -> String {
    let known: Vec<_> = parameters
        .iter()
        .map(|parameter| match parameter.required {
            true => parameter.name.to_owned(),
            false => format!("{} (optional)", parameter.name),
        })
        .collect();
    format!("the arguments are {}", known.join(", "))
}

#[cfg(test)]
mod tests;
