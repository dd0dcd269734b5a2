//! The questions of a server to a person.

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use shared_types::clean::clean;

/// Longest question, in bytes.
const MAX_WORDS_BYTES: usize = 4096;

/// A question of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    /// Its words, harmless.
    pub message: String,
    /// The JSON Schema of the answer: an object with texts, numbers, flags and choices.
    pub schema: Value,
}

/// The answer to it.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitAnswer {
    /// A person gives it.
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

impl Elicitation {
    /// The question with these parameters; nothing if it asks for something else, such as to open an address.
    fn read(params: &Value) -> Option<Self> {
        let mode = params["mode"].as_str().unwrap_or("form");
        let message = params["message"].as_str()?;
        let schema = &params["requestedSchema"];
        if mode != "form" || !schema.is_object() || !crate::schema::is_bounded(schema) {
            return None;
        }
        let end = message.floor_char_boundary(MAX_WORDS_BYTES);
        Some(Self {
            message: clean(&message[..end]),
            schema: schema.clone(),
        })
    }

    /// The answer without the parts that the schema does not name, and with its defaults.
    fn completed(&self, mut content: Map<String, Value>) -> Map<String, Value> {
        let Some(known) = self.schema["properties"].as_object() else {
            return Map::new();
        };
        content.retain(|name, _| known.contains_key(name));
        for (name, schema) in known {
            if let Some(default) = schema.get("default")
                && !content.contains_key(name)
            {
                content.insert(name.clone(), default.clone());
            }
        }
        content
    }
}

/// The result of a request `elicitation/create` with these parameters.
pub(crate) async fn answer(person: &dyn Person, params: &Value) -> Value {
    let Some(question) = Elicitation::read(params) else {
        return json!({ "action": "decline" });
    };
    match person.elicit(question.clone()).await {
        ElicitAnswer::Accept(content) => {
            json!({ "action": "accept", "content": question.completed(content) })
        }
        ElicitAnswer::Decline => json!({ "action": "decline" }),
        ElicitAnswer::Cancel => json!({ "action": "cancel" }),
    }
}
