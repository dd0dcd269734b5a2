//! Calls that are written as elements, with an element for each argument.

use serde_json::{Map, Value};

use super::shape::{MAX_NAME_BYTES, TextCall, offered};
use crate::ToolSpec;

/// The words of a form.
struct Form {
    /// Before the name of the tool.
    call: &'static str,
    /// Before the name of an argument.
    argument: &'static str,
    /// Behind the last argument.
    close: &'static str,
    /// True if names stand in quotation marks.
    has_marks: bool,
}

/// `<invoke name="Shell"><parameter name="command">ls</parameter></invoke>`.
const INVOKE: Form = Form {
    call: "<invoke name=",
    argument: "<parameter name=",
    close: "</invoke>",
    has_marks: true,
};

/// `<function=Shell><parameter=command>ls</parameter></function>`, as Qwen's coders write it.
const FUNCTION: Form = Form {
    call: "<function=",
    argument: "<parameter=",
    close: "</function>",
    has_marks: false,
};

/// The end of an argument.
const CLOSE_ARGUMENT: &str = "</parameter>";

/// The beginnings of the forms.
pub(super) const BEGINNINGS: [&str; 2] = [INVOKE.call, FUNCTION.call];

/// The call with which this text begins, and the text behind it.
pub(super) fn call<'t>(text: &'t str, tools: &[ToolSpec]) -> Option<(TextCall, &'t str)> {
    let mut forms = [INVOKE, FUNCTION].into_iter();
    let form = forms.find(|form| text.starts_with(form.call))?;
    let (name, rest) = name(&text[form.call.len()..], &form)?;
    let tool = offered(tools, name)?;
    let mut rest = rest.trim_start();
    let mut arguments = Map::new();
    while let Some(behind) = rest.strip_prefix(form.argument) {
        let (name, behind) = self::name(behind, &form)?;
        let (written, behind) = behind.split_once(CLOSE_ARGUMENT)?;
        let value = value(tool, name, unframed(written));
        if arguments.insert(name.to_owned(), value).is_some() {
            return None;
        }
        rest = behind.trim_start();
    }
    let rest = rest.strip_prefix(form.close)?;
    let call = TextCall {
        name: tool.name.clone(),
        arguments: Value::Object(arguments).to_string(),
    };
    Some((call, rest))
}

/// The name in a tag, and the text behind the tag.
fn name<'t>(text: &'t str, form: &Form) -> Option<(&'t str, &'t str)> {
    let near = &text[..text.floor_char_boundary(MAX_NAME_BYTES)];
    let (tag, _) = near.split_once('>')?;
    let marked = |mark: char| tag.trim().strip_prefix(mark)?.strip_suffix(mark);
    let name = match form.has_marks {
        true => marked('"').or_else(|| marked('\''))?,
        false => tag.trim(),
    };
    (!name.contains(['"', '\'', '<'])).then_some((name, &text[tag.len() + 1..]))
}

/// The value without the breaks of a tag that stands on a line of its own.
fn unframed(written: &str) -> &str {
    match written.strip_prefix('\n') {
        Some(inside) => inside.strip_suffix('\n').unwrap_or(inside),
        None => written,
    }
}

/// The value of an argument: JSON, but for arguments that are text.
fn value(tool: &ToolSpec, name: &str, written: &str) -> Value {
    let kind = &tool.parameters["properties"][name]["type"];
    let json = match kind.as_str() {
        Some("string") | None => None,
        Some(_) => serde_json::from_str(written.trim()).ok(),
    };
    json.unwrap_or_else(|| written.into())
}
