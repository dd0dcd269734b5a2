//! The questions of a server to the person of its session.
//!
//! A server may ask while a call of it is under way. A form becomes one question for each of its fields, in words that
//! name the server; an address is shown, and the person opens it. Nothing is ever opened or filled in for the person.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::{Map, Value};
use server_agent::{AskedByServer, ServerAnswer, ServerQuestion};
use server_mcp::{ElicitAnswer, Elicitation, Field, Person, Wants};
use tokio::sync::{mpsc, oneshot};

/// Most choices that are offered by themselves; more are part of the question's words.
const MAX_CHOICES: usize = 7;

/// Most times that a person is asked for one field.
const MAX_TRIES: usize = 3;

/// The choice to leave a field out, or to take its default.
const NO_VALUE: &str = "(no value)";

/// The same where a person writes a value: a list of choices would take digits for itself.
const NO_WORDS: &str = "-";

/// The choice to refuse the server. Some surfaces have no other way to do that.
const DECLINE: &str = "(decline)";

/// The choice that says that an address was opened.
const OPENED: &str = "I have opened it, and am done there";

type Question = (ServerQuestion, oneshot::Sender<ServerAnswer>);

/// The way from a connection to the people of the call that is under way.
#[derive(Clone)]
pub(super) struct PeopleOfCall {
    server: Arc<str>,
    asks: Arc<Mutex<Option<mpsc::Sender<Question>>>>,
}

/// The call whose people are asked, until it is dropped.
pub(super) struct CallWithPeople<'a> {
    of: &'a PeopleOfCall,
    asked: mpsc::Receiver<Question>,
}

impl PeopleOfCall {
    /// Without a call under way each question is cancelled.
    pub(super) fn of(server: &str) -> Self {
        Self {
            server: server.into(),
            asks: Arc::default(),
        }
    }

    fn set(&self, asks: Option<mpsc::Sender<Question>>) {
        *self.asks.lock().unwrap_or_else(PoisonError::into_inner) = asks;
    }

    /// From now on the questions of the server are those of this call.
    pub(super) fn of_call(&self) -> CallWithPeople<'_> {
        let (asks, asked) = mpsc::channel(1);
        self.set(Some(asks));
        CallWithPeople { of: self, asked }
    }

    async fn ask(&self, text: String, choices: Vec<String>) -> ServerAnswer {
        let asks = self
            .asks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let (reply, answer) = oneshot::channel();
        let Some(asks) = asks else {
            return ServerAnswer::Nobody;
        };
        match asks.send((ServerQuestion { text, choices }, reply)).await {
            Ok(()) => answer.await.unwrap_or(ServerAnswer::Nobody),
            Err(_) => ServerAnswer::Nobody,
        }
    }

    /// A value for a field; nothing where the person leaves it out.
    async fn value(
        &self,
        message: &str,
        field: &Field,
        place: &str,
    ) -> Result<Option<Value>, ElicitAnswer> {
        let mut wrong = String::new();
        for _ in 0..MAX_TRIES {
            let (text, choices) = field_words(&self.server, message, field, place, &wrong);
            let has_none = !field.required || field.default.is_some();
            match self.ask(text, choices).await {
                ServerAnswer::Said(said) if said.trim() == DECLINE => {
                    return Err(ElicitAnswer::Decline);
                }
                ServerAnswer::Said(said)
                    if has_none && [NO_VALUE, NO_WORDS].contains(&said.trim()) =>
                {
                    return Ok(None);
                }
                ServerAnswer::Said(said) => match field.value(&said) {
                    Ok(value) => return Ok(Some(value)),
                    Err(why) => wrong = why,
                },
                ServerAnswer::Declined => return Err(ElicitAnswer::Decline),
                ServerAnswer::Nobody => return Err(ElicitAnswer::Cancel),
            }
        }
        Err(ElicitAnswer::Cancel)
    }

    async fn filled(&self, message: &str, fields: &[Field]) -> ElicitAnswer {
        if fields.is_empty() {
            let text = format!("{}\n\nMay it go on?", asks(&self.server, message));
            let choices = vec!["yes".to_owned(), "no".to_owned()];
            return match self.ask(text, choices).await {
                ServerAnswer::Said(said) if said.trim() == "yes" => {
                    ElicitAnswer::Accept(Map::new())
                }
                ServerAnswer::Nobody => ElicitAnswer::Cancel,
                ServerAnswer::Said(_) | ServerAnswer::Declined => ElicitAnswer::Decline,
            };
        }
        let mut content = Map::new();
        for (at, field) in fields.iter().enumerate() {
            let place = match fields.len() {
                1 => String::new(),
                all => format!(" ({} of {all})", at + 1),
            };
            match self.value(message, field, &place).await {
                Ok(Some(value)) => {
                    content.insert(field.name.clone(), value);
                }
                Ok(None) => {}
                Err(answer) => return answer,
            }
        }
        ElicitAnswer::Accept(content)
    }

    async fn opened(&self, message: &str, url: &str, host: &str) -> ElicitAnswer {
        let text = address_words(&self.server, message, url, host);
        let choices = vec![OPENED.to_owned(), DECLINE.to_owned()];
        match self.ask(text, choices).await {
            ServerAnswer::Said(said) if said.trim() == OPENED => ElicitAnswer::Accept(Map::new()),
            ServerAnswer::Nobody => ElicitAnswer::Cancel,
            ServerAnswer::Said(_) | ServerAnswer::Declined => ElicitAnswer::Decline,
        }
    }
}

#[async_trait]
impl Person for PeopleOfCall {
    fn is_there(&self) -> bool {
        true
    }

    async fn elicit(&self, question: Elicitation) -> ElicitAnswer {
        let Elicitation { message, wants } = &question;
        match wants {
            Wants::Fields(fields) => self.filled(message, fields).await,
            Wants::Opened(url) => {
                let host = url.host_str().unwrap_or_default();
                self.opened(message, url.as_str(), host).await
            }
        }
    }
}

impl CallWithPeople<'_> {
    /// Passes questions on to these people, for as long as it is polled.
    pub(super) async fn pass_on(&mut self, people: &dyn AskedByServer) -> std::convert::Infallible {
        loop {
            match self.asked.recv().await {
                Some((question, reply)) => {
                    let answer = people.ask(question).await;
                    // The server may not wait for it any more.
                    let _ = reply.send(answer);
                }
                None => std::future::pending::<()>().await,
            }
        }
    }
}

impl Drop for CallWithPeople<'_> {
    fn drop(&mut self) {
        self.of.set(None);
    }
}

fn asks(server: &str, message: &str) -> String {
    format!("The tool server {server} asks: {}", message.trim())
}

/// The question for one field, and the answers to choose from.
fn field_words(
    server: &str,
    message: &str,
    field: &Field,
    place: &str,
    wrong: &str,
) -> (String, Vec<String>) {
    let mut text = format!("{}\n\n{}{place}", asks(server, message), field.name);
    let lines = [field.words.clone(), field.form()];
    let is_new = |line: &&String| !line.is_empty() && !line.eq_ignore_ascii_case(&field.name);
    for line in lines.iter().filter(is_new) {
        text.push_str(&format!("\n{line}"));
    }
    let known = field.choices();
    let mut choices: Vec<String> = Vec::new();
    let default = field.default_words().filter(|default| !default.is_empty());
    if let Some(default) = &default {
        text.push_str(&format!("\nusually: {default}"));
    }
    let without = match (&default, field.required) {
        (Some(_), _) => "take that",
        (None, false) => "leave it out",
        (None, true) => "",
    };
    match known.len() {
        1..=MAX_CHOICES => {
            choices.extend(known.iter().map(|choice| (*choice).to_owned()));
            if !without.is_empty() {
                choices.push(NO_VALUE.to_owned());
            }
            choices.push(DECLINE.to_owned());
        }
        many => {
            if many > 0 {
                text.push_str(&format!("\none of these: {}", known.join(", ")));
            }
            text.push('\n');
            if !without.is_empty() {
                text.push_str(&format!("\nTo {without}, answer {NO_WORDS}"));
            }
            text.push_str(&format!("\nTo refuse the server, answer {DECLINE}"));
        }
    }
    if field.is_secret() {
        text.push_str(&format!(
            "\n\nThis looks like a secret. Your answer goes to the tool server {server}, and this conversation keeps it. \
             A server should ask for secrets on a page of its own."
        ));
    }
    if !wrong.is_empty() {
        text.push_str(&format!("\n\nYour last answer was not taken: {wrong}."));
    }
    (text, choices)
}

fn address_words(server: &str, message: &str, url: &str, host: &str) -> String {
    let plain = match url.starts_with("https:") {
        true => "",
        false => " The connection to it is not encrypted.",
    };
    format!(
        "{}\n\nIt wants you to open this address in a browser:\n{url}\n\nIts host is {host}. Open it only if you expect \
         that.{plain} Gantry does not open it, and does not see what you do there.",
        asks(server, message)
    )
}
