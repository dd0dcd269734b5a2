//! What is shared between the test and the connections.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::http::HeaderMap;
use serde_json::Value;
use tokio::sync::watch;

use super::{Format, Reply};

/// A request that arrived.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The format in which it was written.
    pub format: Format,
    /// Its path.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Value,
}

/// The beginning of the message by which a server asks for a summary of the conversation.
const WISH: &str = "[From Gantry, not from the user";

impl Asked {
    /// True if the last message asks for a summary of the conversation. Only in the format of chats.
    pub fn is_wish(&self) -> bool {
        let last = self.body["messages"].as_array().and_then(|all| all.last());
        last.is_some_and(|last| last["content"].to_string().contains(WISH))
    }

    /// The text of a header; `None` where it is absent.
    pub fn header(&self, name: &str) -> Option<String> {
        let value = self.headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    }
}

/// The script and the requests. A lock suffices: it is a double, and nobody waits while holding it.
#[derive(Debug, Clone)]
pub(super) struct Script {
    state: Arc<Mutex<ScriptState>>,
    arrived: watch::Sender<usize>,
}

#[derive(Debug, Default)]
pub(super) struct ScriptState {
    /// A longer request does not fit into the model's window.
    pub(super) refuse_above: Option<usize>,
    /// The reply to each wish for a summary; without it a wish takes a reply of the script.
    pub(super) summary: Option<Reply>,
    /// The reply to the first other request after the next wish.
    pub(super) after_summary: Option<Reply>,
    /// True if the last request was a wish.
    summarized: bool,
    pub(super) models: Vec<String>,
    pub(super) replies: VecDeque<Reply>,
    pub(super) asked: Vec<Asked>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            arrived: watch::Sender::new(0),
        }
    }
}

impl Script {
    pub(super) fn state(&self) -> MutexGuard<'_, ScriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request; gives its number, from 0, and its reply.
    pub(super) fn arrive(&self, asked: Asked) -> (usize, Option<Reply>) {
        let mut state = self.state();
        let number = state.asked.len();
        let length = asked.body.to_string().len();
        let format = asked.format;
        let checked = format.check(&asked.body);
        let is_wish = asked.is_wish();
        let aside = match is_wish {
            true => state.summary.clone(),
            false if state.summarized => state.after_summary.take(),
            false => None,
        };
        state.summarized = is_wish;
        state.asked.push(asked);
        self.arrived.send_replace(number + 1);
        let reply = match (state.refuse_above, checked) {
            (Some(most), _) if length > most => Some(format.too_long(length, most)),
            (_, Err(message)) => Some(format.refusal(&message)),
            (_, Ok(())) => aside.or_else(|| state.replies.pop_front()),
        };
        (number, reply)
    }

    /// Waits until this many requests have arrived in all.
    pub(super) async fn wait_for(&self, count: usize) {
        let mut arrived = self.arrived.subscribe();
        arrived
            .wait_for(|arrived| *arrived >= count)
            .await
            .expect("the server holds the sender");
    }
}
