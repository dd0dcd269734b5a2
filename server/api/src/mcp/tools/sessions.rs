//! Sessions: their list, their messages, and the answer of an agent that works.

use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use server_app::{AppError, Followed, MAX_CALL_TEXT_BYTES, Page, SessionFilter, Subscription};
use shared_types::{
    Event, SessionId, TurnId,
    event::{Question, TurnOutcome},
    limits::MAX_EVENTS_PAGE,
};
use tokio::time::{Instant, timeout_at};

use super::{Said, arguments, object};
use crate::mcp::{
    Client,
    calls::{PROGRESS_EVERY, Progress},
};

/// Most sessions in one answer.
const SESSIONS_AT_ONCE: u32 = 50;

/// Sessions in one answer, where the caller names no number.
const SESSIONS_USUALLY: u32 = 20;

/// Longest text of one message that is shown, in bytes.
const MAX_MESSAGE_SHOWN: usize = 4 * 1024;

/// Longest arguments of a tool call that are shown, in bytes.
const MAX_ARGUMENTS_SHOWN: usize = 256;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    #[serde(default)]
    search: String,
    limit: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    id: SessionId,
    before: Option<u64>,
}

pub(super) fn list_schema() -> Value {
    object(
        json!({
            "search": { "type": "string", "maxLength": 256, "description": "Only sessions with this text in their titles." },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": SESSIONS_AT_ONCE,
                "description": "At most this many; default 20.",
            },
        }),
        &[],
    )
}

pub(super) fn read_schema() -> Value {
    object(
        json!({
            "id": { "type": "string", "description": "The id of the session (ses_…)." },
            "before": {
                "type": "integer",
                "minimum": 1,
                "description": "Only what stands before this number; the result says where to read on backwards.",
            },
        }),
        &["id"],
    )
}

/// The user's sessions, each as a line of JSON.
pub(super) async fn list(client: &Client, given: Map<String, Value>) -> Result<Said, AppError> {
    let ListArguments { search, limit } = arguments(given)?;
    let limit = limit.unwrap_or(SESSIONS_USUALLY);
    if !(1..=SESSIONS_AT_ONCE).contains(&limit) {
        return Err(AppError::Invalid(format!(
            "limit is {limit}; give 1 to {SESSIONS_AT_ONCE}"
        )));
    }
    let filter = SessionFilter {
        archived: false,
        title: &search,
        agents_of: None,
    };
    let page = Page { after: None, limit };
    let sessions = &client.doors.app.sessions;
    let (found, more) = sessions.list(&client.ctx, filter, page).await?;
    let mut text: String = found
        .iter()
        .map(|session| {
            let state = match (session.waiting_approvals, session.running_turn) {
                (0, None) => "idle",
                (0, Some(_)) => "working",
                _ => "waits for a person",
            };
            let line = json!({
                "id": session.id,
                "title": session.title,
                "state": state,
                "used_at": session.updated_at,
            });
            format!("{line}\n")
        })
        .collect();
    if more {
        text.push_str("[there are more: search by title]");
    }
    Ok(Said::text(match text.is_empty() {
        true => "[no session]".to_owned(),
        false => text,
    }))
}

/// The last messages of a session before a place in its log, as many as one result holds.
pub(super) async fn read(client: &Client, given: Map<String, Value>) -> Result<Said, AppError> {
    let ReadArguments { id, before } = arguments(given)?;
    let sessions = &client.doors.app.sessions;
    let row = sessions.get(&client.ctx, id).await?;
    let before = before.map_or(row.last_seq + 1, |before| before.min(row.last_seq + 1));
    let first = before.saturating_sub(MAX_EVENTS_PAGE.into()).max(1);
    let limit = u32::try_from(before - first).unwrap_or(MAX_EVENTS_PAGE);
    let (events, _) = match limit {
        0 => (Vec::new(), false),
        limit => sessions.events(&client.ctx, id, first - 1, limit).await?,
    };
    let (mut shown, mut bytes, mut begins_at) = (Vec::new(), 0, before);
    for event in events.iter().rev() {
        let text = event.known().and_then(message);
        bytes += text.as_ref().map_or(0, String::len);
        if bytes > MAX_CALL_TEXT_BYTES - MAX_MESSAGE_SHOWN {
            break;
        }
        begins_at = event.seq;
        shown.extend(text);
    }
    shown.reverse();
    let mut text = shown.concat();
    if begins_at > 1 {
        let _ = write!(
            text,
            "[there is more: read_session with before {begins_at}]"
        );
    }
    Ok(Said::text(match text.is_empty() {
        true => "[nothing was said]".to_owned(),
        false => text,
    }))
}

/// The words of an event that is part of a conversation.
fn message(event: &Event) -> Option<String> {
    match event {
        Event::InputAccepted { parts, .. } | Event::InputSteered { parts, .. } => {
            Some(format!("person: {}\n", short(&parts.words())))
        }
        Event::AnswerRecorded { parts, .. } => {
            let mut text = String::new();
            let words = parts.words();
            if !words.is_empty() {
                let _ = writeln!(text, "agent: {}", short(&words));
            }
            for call in parts.calls() {
                let call = call.as_meant();
                let arguments = cut(&call.arguments, MAX_ARGUMENTS_SHOWN);
                let _ = writeln!(text, "agent calls {} {arguments}", call.name);
            }
            Some(text)
        }
        Event::TurnEnded {
            outcome, reason, ..
        } if *outcome != TurnOutcome::Completed => {
            let reason = reason.as_deref().unwrap_or("the turn did not complete");
            Some(format!("[{reason}]\n"))
        }
        Event::ConversationRewound { before, .. } => Some(format!(
            "[a person went back to before the message {before:?}]\n"
        )),
        _ => None,
    }
}

fn short(text: &str) -> String {
    cut(text, MAX_MESSAGE_SHOWN)
}

fn cut(text: &str, at_most: usize) -> String {
    match text.len() > at_most {
        true => format!("{}…", &text[..text.floor_char_boundary(at_most)]),
        false => text.to_owned(),
    }
}

/// Waits until the agent of a session has answered, needs a person, or this time is over.
pub(super) async fn answer(
    client: &Client,
    id: SessionId,
    wait_for: Duration,
    progress: &Progress<'_>,
) -> Result<Said, AppError> {
    let until = Instant::now() + wait_for;
    let sessions = &client.doors.app.sessions;
    let row = sessions.get(&client.ctx, id).await?;
    let from = row.last_seq.saturating_sub(MAX_EVENTS_PAGE.into());
    let mut work = Work {
        open: row.running_turn.into_iter().collect(),
        ..Work::default()
    };
    let mut following = sessions.follow(&client.ctx, id, from).await?;
    let (mut is_over, mut caught_up) = (false, false);
    while !(caught_up && (is_over || work.needs_no_wait())) {
        let tick = Instant::now() + PROGRESS_EVERY;
        match timeout_at(tick.min(until), next(&mut following)).await {
            Ok(followed) => match followed? {
                Some(event) => work.hear(&event),
                None => caught_up = true,
            },
            // The log that is there is read whole, however short the time is.
            Err(_) => is_over = Instant::now() >= until,
        }
        if is_over && !caught_up {
            match next(&mut following).await? {
                Some(event) => work.hear(&event),
                None => caught_up = true,
            }
        }
        if tick <= Instant::now() {
            progress.tell(&work.state(id)).await;
        }
    }
    Ok(Said::text(work.words(id)))
}

/// The next event; nothing once all that are there were given.
async fn next(following: &mut Subscription) -> Result<Option<Event>, AppError> {
    loop {
        match following.next().await? {
            Followed::Event(event) => {
                if let Some(event) = event.known() {
                    return Ok(Some(event.clone()));
                }
            }
            Followed::CaughtUp(_) => return Ok(None),
            Followed::Live(_) => {}
        }
    }
}

/// The work of an agent, as its log tells it.
#[derive(Debug, Default)]
struct Work {
    /// Turns that have not ended.
    open: BTreeSet<TurnId>,
    /// The last words of the agent since the last message.
    answer: String,
    /// The reason for which the last turn did not complete.
    failure: Option<String>,
    /// The question that waits for a person.
    question: Option<String>,
}

impl Work {
    fn hear(&mut self, event: &Event) {
        match event {
            Event::InputAccepted { turn, .. } => {
                self.open.insert(*turn);
                self.answer.clear();
                self.failure = None;
            }
            Event::AnswerRecorded { parts, .. } => {
                let words = parts.words();
                if !words.is_empty() {
                    self.answer = words.into_owned();
                }
            }
            Event::ApprovalAsked { question, .. } => self.question = Some(asked(question)),
            Event::ApprovalAnswered { .. } => self.question = None,
            Event::TurnEnded {
                turn,
                outcome,
                reason,
            } => {
                self.open.remove(turn);
                self.question = None;
                self.failure =
                    match outcome {
                        TurnOutcome::Completed => None,
                        _ => Some(reason.clone().unwrap_or_else(|| {
                            "the turn was stopped before it completed".to_owned()
                        })),
                    };
            }
            _ => {}
        }
    }

    fn needs_no_wait(&self) -> bool {
        self.open.is_empty() || self.question.is_some()
    }

    fn state(&self, id: SessionId) -> String {
        match (&self.question, &self.failure, self.open.is_empty()) {
            (Some(question), _, _) => format!(
                "the agent of {id} waits for a person to answer in Gantry (gantry approvals): {question}"
            ),
            (None, _, false) => format!(
                "the agent of {id} still works; wait on with read_task {{\"id\":\"{id}\"}}, or stop it with stop_task"
            ),
            (None, Some(failure), true) => {
                format!("the work in {id} did not complete: {failure}")
            }
            (None, None, true) if self.answer.is_empty() => {
                format!("nothing was asked of the agent of {id} yet; give it work with start_task")
            }
            (None, None, true) => format!("the work in {id} is completed"),
        }
    }

    fn words(&self, id: SessionId) -> String {
        let mut text = cut(&self.answer, MAX_CALL_TEXT_BYTES);
        if !text.is_empty() {
            text.push('\n');
        }
        text + &format!("[{}]", self.state(id))
    }
}

/// A question to a person, in a line.
fn asked(question: &Question) -> String {
    match question {
        Question::Call(call) => {
            let text = cut(&call.text, MAX_ARGUMENTS_SHOWN);
            format!("may the agent call {}: {text}", call.tool)
        }
        Question::Free { text, .. } => short(text),
        Question::Plan { .. } => "may the agent carry out its plan".to_owned(),
    }
}
