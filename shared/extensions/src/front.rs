//! The head of a Markdown file: YAML between two lines of `---`.

use serde_json::{Map, Value};

use crate::Invalid;

/// The line before and behind the head.
const FENCE: &str = "---";

/// Longest head, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// A Markdown file with its head.
#[derive(Debug, Clone, PartialEq)]
pub struct Front<'a> {
    /// The values of the head, by their keys.
    pub head: Map<String, Value>,
    /// The text behind it.
    pub body: &'a str,
}

/// A head that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFront {
    /// It begins and does not end.
    #[error("its head has no second line of ---")]
    Open,
    /// It is too long.
    #[error("its head has more than {MAX_HEAD_BYTES} bytes")]
    Long,
    /// It is no YAML of the form `key: value`.
    #[error("its head is no YAML of the form \"key: value\"")]
    Form,
}

impl From<InvalidFront> for Invalid {
    fn from(error: InvalidFront) -> Self {
        Self::new(error.to_string())
    }
}

impl<'a> Front<'a> {
    /// Reads a file. One without a head has no values.
    ///
    /// Many files that people have hold a colon in an unquoted value, which YAML forbids. So a head that is no YAML is
    /// read again line by line.
    ///
    /// # Errors
    /// [`InvalidFront`].
    pub fn read(text: &'a str) -> Result<Self, InvalidFront> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some(rest) = after_fence(text) else {
            return Ok(Self {
                head: Map::new(),
                body: text,
            });
        };
        let (mut at, mut end) = (0, None);
        for line in rest.split_inclusive('\n') {
            if line.trim_end() == FENCE {
                end = Some((at, at + line.len()));
                break;
            }
            at += line.len();
        }
        let (head_end, body_from) = end.ok_or(InvalidFront::Open)?;
        if head_end > MAX_HEAD_BYTES {
            return Err(InvalidFront::Long);
        }
        let head = &rest[..head_end];
        Ok(Self {
            head: yaml(head)
                .or_else(|| by_line(head))
                .ok_or(InvalidFront::Form)?,
            body: rest[body_from..].trim_start_matches(['\r', '\n']),
        })
    }

    /// A value as a text; numbers and flags count as theirs.
    pub fn text(&self, key: &str) -> Option<String> {
        match self.head.get(key)? {
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            _ => None,
        }
    }

    /// A list of names, which may be written as a list or as a text with commas or spaces between them.
    pub fn names(&self, key: &str) -> Option<Vec<String>> {
        let names: Vec<String> = match self.head.get(key)? {
            Value::Array(values) => {
                let texts = values.iter().filter_map(Value::as_str);
                texts.map(|text| text.trim().to_owned()).collect()
            }
            Value::String(text) => outside_parentheses(text),
            _ => return None,
        };
        Some(names.into_iter().filter(|name| !name.is_empty()).collect())
    }

    /// A flag.
    pub fn flag(&self, key: &str) -> bool {
        matches!(self.head.get(key), Some(Value::Bool(true)))
            || self
                .text(key)
                .is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }
}

fn after_fence(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once('\n')?;
    (first.trim_end() == FENCE).then_some(rest)
}

fn yaml(head: &str) -> Option<Map<String, Value>> {
    if head.trim().is_empty() {
        return Some(Map::new());
    }
    match serde_saphyr::from_str::<Value>(head).ok()? {
        Value::Object(head) => Some(head),
        Value::Null => Some(Map::new()),
        _ => None,
    }
}

/// Each line that begins with a key and a colon is a value; what is indented, or a list, belongs to none.
fn by_line(head: &str) -> Option<Map<String, Value>> {
    let mut values = Map::new();
    for line in head.lines() {
        let is_indented = line.starts_with([' ', '\t', '-', '#']);
        let Some((key, value)) = line.split_once(':').filter(|_| !is_indented) else {
            continue;
        };
        let value = value.trim();
        let quoted = |mark: char| value.strip_prefix(mark)?.strip_suffix(mark);
        let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
        values.insert(key.trim().to_owned(), Value::String(value.to_owned()));
    }
    (!values.is_empty()).then_some(values)
}

/// Splits at commas and spaces that stand in no parentheses: `Bash(git add *), Read` has two names.
fn outside_parentheses(text: &str) -> Vec<String> {
    let (mut names, mut name, mut depth) = (Vec::new(), String::new(), 0_u32);
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' | ' ' | '\t' | '\n' if depth == 0 => {
                names.push(std::mem::take(&mut name));
                continue;
            }
            _ => {}
        }
        name.push(letter);
    }
    names.push(name);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_yaml_and_the_rest_is_the_body() {
        let front =
            Front::read("---\nname: pdf\ntools:\n  - Read\n  - Bash(git *)\n---\n\n# Use\n")
                .unwrap();
        assert_eq!(front.text("name").as_deref(), Some("pdf"));
        assert_eq!(front.names("tools").unwrap(), ["Read", "Bash(git *)"]);
        assert_eq!(front.body, "# Use\n");
    }

    #[test]
    fn a_head_with_an_unquoted_colon_is_read_line_by_line() {
        let text = "---\nname: reviewer\ndescription: Use it when: code changed. Example: \"x\"\ntools: Read, Bash(git add *)\n---\nGo";
        let front = Front::read(text).unwrap();
        assert_eq!(
            front.text("description").as_deref(),
            Some("Use it when: code changed. Example: \"x\"")
        );
        assert_eq!(front.names("tools").unwrap(), ["Read", "Bash(git add *)"]);
    }

    #[test]
    fn a_file_without_a_head_is_all_body() {
        assert_eq!(Front::read("# Only text\n").unwrap().body, "# Only text\n");
    }

    #[test]
    fn a_head_that_does_not_end_is_refused() {
        assert_eq!(Front::read("---\nname: x\n"), Err(InvalidFront::Open));
        let long = format!("---\na: {}\n---\n", "x".repeat(MAX_HEAD_BYTES));
        assert_eq!(Front::read(&long), Err(InvalidFront::Long));
    }
}
