//! The questions of a server to a person: a form of a few fields, or an address to be opened.

mod field;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use shared_types::clean::clean;
use tokio::sync::watch;
use url::Url;

pub use self::field::Field;

/// Longest question, in bytes.
const MAX_WORDS_BYTES: usize = 2048;

/// Most fields of a form.
const MAX_FIELDS: usize = 16;

/// Longest address, in bytes.
const MAX_URL_BYTES: usize = 2048;

/// A question of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    /// Its words, harmless.
    pub message: String,
    /// The form of its answer.
    pub wants: Wants,
}

/// The thing that a server wants of a person.
#[derive(Debug, Clone, PartialEq)]
pub enum Wants {
    /// Values for these fields.
    Fields(Vec<Field>),
    /// That the person opens this address.
    Opened(Url),
}

/// The answer to it.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitAnswer {
    /// A person gives it; without values for an address.
    Accept(Map<String, Value>),
    /// A person does not want to.
    Decline,
    /// No person answered.
    Cancel,
}

/// The people who answer a server's questions.
#[async_trait]
pub trait Person: Send + Sync {
    /// True if there are any: then servers are told so.
    fn is_there(&self) -> bool;

    /// The answer. Dropping the future withdraws the question.
    async fn elicit(&self, question: Elicitation) -> ElicitAnswer;
}

/// No people.
#[derive(Debug, Clone, Copy)]
pub struct NobodyThere;

#[async_trait]
impl Person for NobodyThere {
    fn is_there(&self) -> bool {
        false
    }

    async fn elicit(&self, _: Elicitation) -> ElicitAnswer {
        ElicitAnswer::Cancel
    }
}

/// People, with the number of questions that they have not answered yet. The time of a call stands still while one is open.
pub(crate) struct Asked {
    person: Arc<dyn Person>,
    open: watch::Sender<usize>,
}

impl Asked {
    pub(crate) fn new(person: Arc<dyn Person>) -> Self {
        Self {
            person,
            open: watch::Sender::new(0),
        }
    }

    pub(crate) fn open(&self) -> watch::Receiver<usize> {
        self.open.subscribe()
    }
}

/// A question that is not answered yet, until it is dropped.
struct Open<'a>(&'a watch::Sender<usize>);

impl<'a> Open<'a> {
    fn new(open: &'a watch::Sender<usize>) -> Self {
        open.send_modify(|open| *open += 1);
        Self(open)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

#[async_trait]
impl Person for Asked {
    fn is_there(&self) -> bool {
        self.person.is_there()
    }

    async fn elicit(&self, question: Elicitation) -> ElicitAnswer {
        let _open = Open::new(&self.open);
        self.person.elicit(question).await
    }
}

impl Elicitation {
    /// The question with these parameters; nothing if it asks for something that no person can be shown.
    fn read(params: &Value) -> Option<Self> {
        let message = params["message"].as_str()?;
        let end = message.floor_char_boundary(MAX_WORDS_BYTES);
        let wants = match params["mode"].as_str().unwrap_or("form") {
            "form" => Wants::Fields(fields(&params["requestedSchema"])?),
            "url" => Wants::Opened(address(params["url"].as_str()?)?),
            _ => return None,
        };
        Some(Self {
            message: clean(&message[..end]),
            wants,
        })
    }

    /// The answer without the parts that the form does not name, and with its defaults.
    fn completed(&self, mut content: Map<String, Value>) -> Option<Map<String, Value>> {
        let Wants::Fields(fields) = &self.wants else {
            return None;
        };
        content.retain(|name, _| fields.iter().any(|field| field.name == *name));
        for field in fields {
            if let Some(default) = &field.default
                && !content.contains_key(&field.name)
            {
                content.insert(field.name.clone(), default.clone());
            }
        }
        Some(content)
    }
}

/// The fields of a form, those that are required first.
fn fields(schema: &Value) -> Option<Vec<Field>> {
    let properties = schema["properties"].as_object()?;
    if properties.len() > MAX_FIELDS {
        return None;
    }
    let required = schema["required"].as_array();
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
    let fields = properties
        .iter()
        .map(|(name, schema)| Field::read(name, schema, is_required(name)));
    let mut fields: Vec<_> = fields.collect::<Option<_>>()?;
    fields.sort_by_key(|field| !field.required);
    Some(fields)
}

/// An address that a person may open in a browser.
fn address(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    let is_web = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
    (text.len() <= MAX_URL_BYTES && is_plain && is_web).then_some(url)
}

/// The result of a request `elicitation/create` with these parameters.
pub(crate) async fn answer(person: &dyn Person, params: &Value) -> Value {
    let Some(question) = Elicitation::read(params) else {
        return json!({ "action": "decline" });
    };
    match person.elicit(question.clone()).await {
        ElicitAnswer::Accept(content) => match question.completed(content) {
            Some(content) => json!({ "action": "accept", "content": content }),
            None => json!({ "action": "accept" }),
        },
        ElicitAnswer::Decline => json!({ "action": "decline" }),
        ElicitAnswer::Cancel => json!({ "action": "cancel" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(params: Value) -> Option<Elicitation> {
        Elicitation::read(&params)
    }

    #[test]
    fn a_question_that_no_person_can_be_shown_is_none() {
        let form = |schema: Value| read(json!({ "message": "?", "requestedSchema": schema }));
        let text = json!({ "type": "string" });
        assert!(form(json!({ "type": "object", "properties": { "a": text } })).is_some());
        for schema in [
            Value::Null,
            json!({ "type": "object" }),
            json!({ "properties": { "a": { "type": "object" } } }),
            json!({ "properties": { "a": { "type": "array", "items": { "type": "object" } } } }),
            json!({ "properties": { "a": { "$ref": "#" } } }),
            json!({ "properties": (0..17).map(|n| (n.to_string(), text.clone())).collect::<Map<_, _>>() }),
        ] {
            assert_eq!(form(schema.clone()), None, "{schema}");
        }
        let opened = |url: &str| read(json!({ "mode": "url", "message": "?", "url": url }));
        assert!(opened("https://example.org/a?b=c").is_some());
        for url in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://a@b.org",
            "x",
            "https://",
        ] {
            assert_eq!(opened(url), None, "{url}");
        }
        assert_eq!(read(json!({ "mode": "new", "message": "?" })), None);
    }

    #[test]
    fn required_fields_come_first_and_an_answer_has_the_defaults() {
        let schema = json!({ "properties": { "a": { "type": "integer", "default": 7 }, "b": { "type": "string" } },
            "required": ["b"] });
        let form = read(json!({ "message": "?", "requestedSchema": schema })).expect("a form");
        let Wants::Fields(fields) = &form.wants else {
            panic!("{form:?}");
        };
        let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        let given = Map::from_iter([("b".to_owned(), json!("x")), ("c".to_owned(), json!(1))]);
        assert_eq!(
            form.completed(given).map(Value::Object),
            Some(json!({ "a": 7, "b": "x" }))
        );
    }
}
