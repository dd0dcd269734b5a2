//! Calls that are written as JSON, and the tools that their names mean.

use serde_json::{Deserializer, Map, Value};

use crate::{ToolSpec, formats::bare_name};

/// Longest name of a tool that is read, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 128;

/// The names of the field with the arguments.
const ARGUMENTS: &[&str] = &["arguments", "parameters", "input", "args"];

/// The kinds that a call may say it is of.
const TYPES: &[&str] = &["function", "function_call", "tool_call", "tool_use"];

/// A call of a tool that was offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextCall {
    /// The name of the tool, as it was offered.
    pub(super) name: String,
    /// The arguments, as JSON where the model wrote JSON.
    pub(super) arguments: String,
}

/// The signs around JSON that say that it is a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallBounds {
    /// None: only an object with arguments that are an object is a call. Any other one is data.
    None,
    /// Tags: bad arguments are those of a call, and the check of the tool tells the model what is wrong.
    Tags,
}

/// The first value of the text, and the text behind it.
pub(super) fn value(text: &str) -> Option<(Value, &str)> {
    let mut values = Deserializer::from_str(text).into_iter();
    let value = values.next()?.ok()?;
    Some((value, &text[values.byte_offset()..]))
}

/// The calls that this value is: one, an array of them, or an object with such an array. `None` where any part of it
/// is something else.
pub(super) fn calls(
    value: &Value,
    tools: &[ToolSpec],
    bounds: CallBounds,
) -> Option<Vec<TextCall>> {
    let inside = value.get("tool_calls").filter(|_| fields(value) == 1);
    match inside.unwrap_or(value) {
        Value::Array(items) if !items.is_empty() => {
            let calls = items.iter().map(|item| call(item, tools, bounds));
            calls.collect()
        }
        one => Some(vec![call(one, tools, bounds)?]),
    }
}

fn fields(value: &Value) -> usize {
    value.as_object().map_or(0, Map::len)
}

/// One call: `{"name", "arguments"}`, or in the form of OpenAI, `{"type", "function": {"name", "arguments"}}`.
fn call(value: &Value, tools: &[ToolSpec], bounds: CallBounds) -> Option<TextCall> {
    let outer = value.as_object()?;
    let is_of_call = |(name, value): (&String, &Value)| match name.as_str() {
        "id" | "index" | "name" | "function" => true,
        "type" => value.as_str().is_some_and(|it| TYPES.contains(&it)),
        other => ARGUMENTS.contains(&other),
    };
    if !outer.iter().all(is_of_call) {
        return None;
    }
    let inner = match outer.get("function") {
        Some(function) => {
            let is_twofold = outer.keys().any(|name| is_own(name));
            let function = function.as_object().filter(|_| !is_twofold)?;
            function
                .keys()
                .all(|name| is_own(name))
                .then_some(function)?
        }
        None => outer,
    };
    let tool = offered(tools, inner.get("name")?.as_str()?)?;
    let mut given = ARGUMENTS.iter().filter_map(|name| inner.get(*name));
    let arguments = match (given.next(), given.next()) {
        (None, _) if bounds == CallBounds::Tags => "{}".to_owned(),
        (Some(given), None) => arguments(given, bounds)?,
        _ => return None,
    };
    Some(TextCall {
        name: tool.name.clone(),
        arguments,
    })
}

fn is_own(name: &str) -> bool {
    name == "name" || ARGUMENTS.contains(&name)
}

fn arguments(given: &Value, bounds: CallBounds) -> Option<String> {
    let is_object = |text: &str| serde_json::from_str::<Map<String, Value>>(text).is_ok();
    match given {
        Value::Object(_) => Some(given.to_string()),
        Value::String(text) if is_object(text) || bounds == CallBounds::Tags => Some(text.clone()),
        Value::Null if bounds == CallBounds::Tags => Some("{}".to_owned()),
        other => (bounds == CallBounds::Tags).then(|| other.to_string()),
    }
}

/// The offered tool that a name means: that of this name, or else the only one with this name in other letters, or
/// else the only one with this alias.
pub(super) fn offered<'a>(tools: &'a [ToolSpec], name: &str) -> Option<&'a ToolSpec> {
    let bare = bare_name(name);
    let exact = tools.iter().find(|tool| tool.name == name);
    exact
        .or_else(|| only(tools, |tool| tool.name.eq_ignore_ascii_case(bare)))
        .or_else(|| {
            only(tools, |tool| {
                let mut aliases = tool.aliases.iter();
                aliases.any(|alias| alias.eq_ignore_ascii_case(bare))
            })
        })
}

fn only(tools: &[ToolSpec], fits: impl Fn(&ToolSpec) -> bool) -> Option<&ToolSpec> {
    let mut fitting = tools.iter().filter(|tool| fits(tool));
    match (fitting.next(), fitting.next()) {
        (Some(tool), None) => Some(tool),
        _ => None,
    }
}
