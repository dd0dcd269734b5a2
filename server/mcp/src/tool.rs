//! The tools, resources and prompts of a server, checked.

use serde_json::Value;
use shared_types::clean::{clean, clean_line};

use crate::{
    bounds::{MAX_DESCRIPTION_BYTES, MAX_TOOL_NAME_BYTES},
    headers::{self, ParamHeader},
    schema,
};

/// Longest name of a resource or a prompt in a list, in characters.
const MAX_TITLE: usize = 200;

/// The tools of a server that can be used, and words on the others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tools {
    /// Those that can be used, in the server's order, each name once.
    pub tools: Vec<Tool>,
    /// The others, each with the reason.
    pub refused: Vec<String>,
}

/// A tool of a server. All of it is the server's word.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name, as the server knows it.
    pub name: String,
    /// Its purpose and use, harmless and bounded; may be empty.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub schema: Value,
    /// The server's word on what it does.
    pub annotations: Annotations,
    /// The arguments that are repeated in headers.
    pub(crate) headers: Vec<ParamHeader>,
}

/// A server's word on what a tool does. It is a hint for people, and never a reason to trust.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Annotations {
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy something; absent where the server does not say.
    pub destructive: Option<bool>,
}

/// A resource of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// Its name, for people.
    pub name: String,
}

/// A prompt of a server: a text that people ask for by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Its name, as the server knows it.
    pub name: String,
    /// Its purpose, for people.
    pub description: String,
    /// The values that it takes, in their order.
    pub arguments: Vec<PromptArgument>,
}

/// A value that a prompt takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// True if it must be there.
    pub required: bool,
}

impl Tools {
    /// Adds a tool that a server lists, or the reason why it is not used.
    pub(crate) fn add(&mut self, written: &Value) {
        match Tool::read(written) {
            Ok(tool) if self.tools.iter().any(|known| known.name == tool.name) => {
                self.refuse(written, "another one has its name");
            }
            Ok(tool) => self.tools.push(tool),
            Err(why) => self.refuse(written, &why),
        }
    }

    pub(crate) fn refuse(&mut self, written: &Value, why: &str) {
        let name = clean_line(written["name"].as_str().unwrap_or_default(), 64);
        self.refused.push(format!("tool {name:?}: {why}"));
    }
}

impl Tool {
    fn read(written: &Value) -> Result<Self, String> {
        let name = written["name"].as_str().unwrap_or_default();
        if name.is_empty() || name.len() > MAX_TOOL_NAME_BYTES || name.chars().any(char::is_control)
        {
            return Err("it has no usable name".to_owned());
        }
        let schema = schema::checked(written["inputSchema"].clone())?;
        let annotations = &written["annotations"];
        Ok(Self {
            name: name.to_owned(),
            description: description(written),
            headers: headers::of_schema(&schema)?,
            schema,
            annotations: Annotations {
                read_only: annotations["readOnlyHint"] == true,
                destructive: annotations["destructiveHint"].as_bool(),
            },
        })
    }
}

impl Resource {
    pub(crate) fn read(written: &Value) -> Option<Self> {
        let uri = written["uri"].as_str()?;
        (clean_line(uri, MAX_TITLE * 4) == uri).then(|| Self {
            uri: uri.to_owned(),
            name: clean_line(written["name"].as_str().unwrap_or_default(), MAX_TITLE),
        })
    }
}

impl Prompt {
    /// Its name as one word: without spaces.
    pub fn word(&self) -> String {
        one_word(&self.name)
    }

    /// The words by which a person asks for it: `SERVER:PROMPT NEEDED [OTHER]`.
    pub fn usage(&self, server: &str) -> String {
        let mut usage = format!("{server}:{}", self.word());
        for PromptArgument { name, required } in &self.arguments {
            let name = one_word(name).to_uppercase();
            usage.push_str(&match required {
                true => format!(" {name}"),
                false => format!(" [{name}]"),
            });
        }
        usage
    }

    pub(crate) fn read(written: &Value) -> Option<Self> {
        let name = written["name"].as_str()?;
        let arguments = written["arguments"].as_array();
        let arguments = arguments.into_iter().flatten().filter_map(|argument| {
            Some(PromptArgument {
                name: clean_line(argument["name"].as_str()?, MAX_TITLE),
                required: argument["required"] == true,
            })
        });
        (clean_line(name, MAX_TITLE) == name).then(|| Self {
            name: name.to_owned(),
            description: clean_line(
                written["description"].as_str().unwrap_or_default(),
                MAX_TITLE,
            ),
            arguments: arguments.collect(),
        })
    }
}

fn one_word(name: &str) -> String {
    let letter = |letter: char| match letter.is_whitespace() {
        true => '_',
        false => letter,
    };
    name.chars().map(letter).collect()
}

fn description(written: &Value) -> String {
    let words = written["description"]
        .as_str()
        .or(written["title"].as_str());
    let cleaned = clean(words.unwrap_or_default().trim());
    match cleaned.len() > MAX_DESCRIPTION_BYTES {
        false => cleaned,
        true => {
            let end = cleaned.floor_char_boundary(MAX_DESCRIPTION_BYTES - '…'.len_utf8());
            format!("{}…", &cleaned[..end])
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_that_cannot_be_used_is_named_and_the_others_count() {
        let object = json!({ "type": "object" });
        let mut tools = Tools::default();
        for written in [
            json!({ "name": "good", "inputSchema": object, "description": "x".repeat(5000),
                    "annotations": { "readOnlyHint": true, "destructiveHint": "yes" } }),
            json!({ "name": "good", "inputSchema": object }),
            json!({ "name": "a\u{7}b", "inputSchema": object }),
            json!({ "name": "none" }),
            json!(5),
        ] {
            tools.add(&written);
        }
        let [tool] = &tools.tools[..] else {
            panic!("{tools:?}");
        };
        assert!(tool.description.len() <= MAX_DESCRIPTION_BYTES && tool.description.ends_with('…'));
        assert_eq!(
            tool.annotations,
            Annotations {
                read_only: true,
                destructive: None
            }
        );
        assert_eq!(tools.refused.len(), 4, "{:?}", tools.refused);
        assert!(tools.refused.iter().all(|words| !words.contains('\u{7}')));
    }
}
