//! The JSON Schema of an answer: the wish for it, and the check of the answer. Nothing is fetched for it.

use std::{fs::File, io::Read as _, path::Path};

use anyhow::{Context as _, bail};
use jsonschema::Validator;
use serde_json::Value;

/// Largest file of a schema, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// Most faults that the model is told of, and the longest text about them, in bytes.
const MAX_FAULTS: usize = 5;
const MAX_TEXT: usize = 2000;

/// A schema.
pub(super) struct Schema {
    text: String,
    validator: Validator,
}

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is too long or is no JSON Schema.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let file = File::open(path).with_context(|| format!("failed to read {shown}"))?;
        let mut text = String::new();
        file.take(MAX_BYTES + 1)
            .read_to_string(&mut text)
            .with_context(|| format!("failed to read {shown}"))?;
        if text.len() as u64 > MAX_BYTES {
            bail!(
                "{shown} is longer than {} KiB: use a shorter schema",
                MAX_BYTES / 1024
            );
        }
        Self::of(text).with_context(|| format!("{shown} is no JSON Schema"))
    }

    fn of(text: String) -> anyhow::Result<Self> {
        let schema: Value = serde_json::from_str(&text)?;
        // Without the features for it no reference to another document is resolved.
        let validator =
            jsonschema::validator_for(&schema).map_err(|wrong| anyhow::anyhow!("{wrong}"))?;
        Ok(Self { text, validator })
    }

    /// The wish behind the message.
    pub(super) fn wish(&self) -> String {
        format!(
            "\n\nYour last answer must be one JSON value and nothing else. It must fit this JSON Schema:\n{}",
            self.text.trim()
        )
    }

    /// The value of an answer.
    ///
    /// # Errors
    /// The reason why it does not fit, in words for the model.
    pub(super) fn value(&self, answer: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(unfenced(answer))
            .map_err(|wrong| format!("it is not one JSON value: {wrong}"))?;
        let faults = self.validator.iter_errors(&value).take(MAX_FAULTS);
        let faults: Vec<_> = faults
            .map(|fault| format!("{fault} (at {:?})", fault.instance_path().to_string()))
            .collect();
        match faults.is_empty() {
            true => Ok(value),
            false => {
                let mut text = faults.join("; ");
                text.truncate(text.floor_char_boundary(MAX_TEXT));
                Err(text)
            }
        }
    }
}

/// The message that asks for an answer that fits.
pub(super) fn again(why: &str) -> String {
    format!(
        "Your answer does not fit the JSON Schema: {why}. Answer again, with the JSON value alone."
    )
}

/// The text inside of one fence of Markdown, if that is all.
fn unfenced(answer: &str) -> &str {
    let trimmed = answer.trim();
    let Some(rest) = trimmed.strip_prefix("```") else {
        return trimmed;
    };
    let body = rest.split_once('\n').map_or("", |(_, body)| body);
    match body.trim_end().strip_suffix("```") {
        Some(inside) => inside,
        None => trimmed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        let text = r#"{"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"}}}"#;
        Schema::of(text.to_owned()).expect("it is one")
    }

    #[test]
    fn an_answer_is_taken_bare_or_in_a_fence_and_says_why_it_does_not_fit() {
        let value = serde_json::json!({ "ok": true });
        for answer in ["{\"ok\":true}", "```json\n{\"ok\":true}\n```\n"] {
            assert_eq!(schema().value(answer), Ok(value.clone()), "{answer}");
        }
        for (answer, why) in [
            ("yes", "not one JSON value"),
            ("{\"ok\":1}", "/ok"),
            ("{}", "ok"),
            ("{\"ok\":true} and more", "not one JSON value"),
        ] {
            let said = schema().value(answer).expect_err("it does not fit");
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_schema_that_names_another_document_is_refused() {
        for text in [
            "{\"$ref\":\"https://example.org/s.json\"}",
            "{\"type\":7}",
            "[",
        ] {
            assert!(Schema::of(text.to_owned()).is_err(), "{text}");
        }
    }
}
