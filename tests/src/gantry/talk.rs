//! A conversation, followed as the terminal follows it.

use shared_api::Live;
use shared_client::{Client, Follow, Followed};
use shared_types::{
    Event, OperationId, SessionEvent, SessionId, TurnId,
    event::{CallOutcome, Part, Parts, Place, TurnOutcome},
};

use super::{Gantry, PATIENCE};

/// How much of what was heard is told where a wait was in vain.
const HEARD_LAST: usize = 16;

/// One session and what was heard of it so far.
pub struct Talk {
    client: Client,
    session: SessionId,
    follow: Follow,
    /// Everything that was heard, in order.
    pub heard: Vec<Followed>,
}

/// What one turn came to.
pub struct Told {
    /// Its events.
    pub events: Vec<SessionEvent>,
    /// How it ended.
    pub outcome: TurnOutcome,
    /// Why, where it did not complete.
    pub reason: Option<String>,
}

impl Talk {
    pub(super) async fn begin(client: Client) -> Self {
        let session = client.create_session("").await.expect("a session").id;
        Self {
            follow: client.follow(session, 0),
            client,
            session,
            heard: Vec::new(),
        }
    }

    /// The same session from its beginning on, followed and used through another server.
    pub fn through(&self, other: &Gantry) -> Self {
        let client = other.client();
        Self {
            follow: client.follow(self.session, 0),
            client,
            session: self.session,
            heard: Vec::new(),
        }
    }

    /// The session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Sends a message and waits for the turn's end.
    pub async fn say(&mut self, text: &str) -> Told {
        let turn = self.send(text).await;
        self.ended(turn).await
    }

    /// Sends a message.
    pub async fn send(&mut self, text: &str) -> TurnId {
        self.client
            .send(self.session, text, &self.client.new_client_id())
            .await
            .expect("the message is accepted")
            .turn
    }

    /// Asks to stop the turn that is under way.
    pub async fn cancel(&mut self) {
        self.client
            .cancel(self.session)
            .await
            .expect("the wish is accepted");
    }

    /// Waits for the turn's end.
    pub async fn ended(&mut self, turn: TurnId) -> Told {
        self.until("the turn ends", |item| matches!(event(item), Some(Event::TurnEnded { turn: ended, .. }) if *ended == turn)).await;
        let events: Vec<SessionEvent> = self
            .heard
            .iter()
            .filter_map(recorded)
            .filter(|event| event.known().and_then(Event::turn) == Some(turn))
            .cloned()
            .collect();
        let Some(Event::TurnEnded {
            outcome, reason, ..
        }) = events.last().and_then(SessionEvent::known)
        else {
            panic!("the end of a turn is its last event");
        };
        let (outcome, reason) = (*outcome, reason.clone());
        Told {
            events,
            outcome,
            reason,
        }
    }

    /// Waits until this much of a command's output has been seen.
    pub async fn until_output(&mut self, text: &str) {
        self.until(&format!("the output {text:?} arrives"), |item| matches!(item, Followed::Live(Live::Output { text: seen, .. }) if seen.contains(text))).await;
    }

    /// Waits until a piece of the model's text with these words has been seen.
    pub async fn until_said(&mut self, words: &str) {
        self.until(
            &format!("the model says {words:?}"),
            |item| matches!(item, Followed::Live(Live::Text { text, .. }) if text.contains(words)),
        )
        .await;
    }

    /// Waits until a notice with these words has been seen.
    pub async fn until_notice(&mut self, words: &str) {
        self.until(&format!("a notice says {words:?}"), |item| matches!(item, Followed::Live(Live::Notice { text, .. }) if text.contains(words))).await;
    }

    /// Waits until a call of the turn was placed on a runner.
    pub async fn until_placed(&mut self) {
        self.until("a call is placed", |item| {
            matches!(event(item), Some(Event::CallPlaced { step: 1.., .. }))
        })
        .await;
    }

    /// Waits until an answer of the model that asks for this tool is recorded.
    pub async fn until_asked_for(&mut self, tool: &str) {
        self.until(&format!("the model asks for {tool}"), |item| {
            matches!(event(item), Some(Event::AnswerRecorded { parts, .. })
                if parts.calls().any(|call| call.name == tool))
        })
        .await;
    }

    /// Waits until the end of an operation has become known whose call had ended; returns how it
    /// ended, in words for people.
    pub async fn until_settled(&mut self) -> String {
        self.until("an operation is settled", |item| {
            matches!(event(item), Some(Event::OperationSettled { .. }))
        })
        .await;
        match self.heard.last().and_then(event) {
            Some(Event::OperationSettled { summary, .. }) => summary.clone(),
            other => panic!("{other:?} is no end"),
        }
    }

    async fn until(&mut self, what: &str, is_it: impl Fn(&Followed) -> bool) {
        loop {
            let Ok(item) = tokio::time::timeout(PATIENCE, self.follow.next()).await else {
                let last = self.heard.len().saturating_sub(HEARD_LAST);
                panic!(
                    "it did not happen within {PATIENCE:?}: {what}; heard last: {:#?}",
                    &self.heard[last..]
                );
            };
            let item = item.expect("following goes on").expect("following goes on");
            let found = is_it(&item);
            self.heard.push(item);
            if found {
                return;
            }
        }
    }
}

impl Gantry {
    /// Asks for one call in a new conversation.
    ///
    /// # Panics
    /// If it does not end like this, or the model is not told these words of it.
    pub async fn tells(&self, message: &str, outcome: CallOutcome, words: &str) {
        let told = self.talk().await.say(message).await;
        let [(ended, text)] = told.calls()[..] else {
            panic!("one call: {:?}", told.calls())
        };
        assert_eq!(ended, outcome, "{text}");
        assert!(text.contains(words), "it should say {words:?}: {text}");
    }
}

/// The text of a message, which has one part of text at most.
fn text_of(parts: &Parts) -> &str {
    let mut texts = parts.0.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.next().unwrap_or_default();
    assert_eq!(texts.next(), None, "one text at most");
    text
}

impl Told {
    /// The answer that ended the turn.
    pub fn answer(&self) -> &str {
        let texts = self.known().filter_map(|event| match event {
            Event::AnswerRecorded { parts, .. } => Some(text_of(parts)),
            _ => None,
        });
        texts.last().unwrap_or_default()
    }

    /// How each call ended and what the model was told of it, in order.
    pub fn calls(&self) -> Vec<(CallOutcome, &str)> {
        let ended = self.known().filter_map(|event| match event {
            Event::CallEnded { outcome, parts, .. } => Some((*outcome, text_of(parts))),
            _ => None,
        });
        ended.collect()
    }

    /// Where the operation of each call was placed, in order. The survey of the place is no call, and has step 0.
    pub fn places(&self) -> Vec<&Place> {
        let placed = self.known().filter_map(|event| match event {
            Event::CallPlaced {
                step: 1.., place, ..
            } => Some(place),
            _ => None,
        });
        placed.collect()
    }

    /// The operations of the calls, in order.
    pub fn operations(&self) -> Vec<OperationId> {
        let placed = self.known().filter_map(|event| match event {
            Event::CallPlaced {
                step: 1..,
                operation,
                ..
            } => Some(*operation),
            _ => None,
        });
        placed.collect()
    }

    fn known(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().filter_map(SessionEvent::known)
    }
}

fn recorded(item: &Followed) -> Option<&SessionEvent> {
    match item {
        Followed::Event(event) => Some(event),
        _ => None,
    }
}

fn event(item: &Followed) -> Option<&Event> {
    recorded(item)?.known()
}
