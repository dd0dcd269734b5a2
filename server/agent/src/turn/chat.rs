//! Calls that begin another conversation of the user.
//!
//! The conversation and the event of its call are one transaction, so a worker that takes the turn over begins no second
//! one. It ends the call by what the log has.

use server_records::NewChat;
use shared_types::{
    Mode, SessionEvent, SessionId,
    clean::clean_line,
    event::{Terms, TurnSettings},
};

use super::{
    Turn, TurnError,
    site::Site,
    told::{self, not_run},
};
use crate::{
    session::LogError,
    tools::{CREATE_CHAT, ChatAsk, NEVER_RAN, Rendered},
    transcript::Step,
};

/// Most conversations that one turn begins.
const CHATS_OF_TURN: usize = 4;

/// Longest title, in characters.
const MAX_TITLE: usize = 200;

/// The facts on which a call that begins a conversation depends, as the log has them.
pub(super) struct ChatScene {
    /// The conversation that the call has begun.
    begun: Option<SessionId>,
    /// Those that other calls of the turn have begun, and those that calls before this one in its answer begin.
    of_turn: usize,
    /// True if no person wrote the message of the turn.
    is_of_agent: bool,
    model: Option<String>,
    terms: Terms,
    mode: Mode,
}

/// The point to which such a call was brought.
pub(super) enum Begun {
    /// It has just begun the conversation, with this event.
    Now(SessionEvent),
    /// It has ended.
    Ended(Rendered),
}

impl ChatScene {
    /// Of the call at this place of the step.
    pub(super) fn of(turn: &Turn<'_>, step: &Step, ordinal: u32) -> Option<Self> {
        let log = turn.transcript.turn(turn.id)?;
        let begun = log.steps.iter().flat_map(|step| &step.calls);
        let begun = begun.filter(|call| call.chat.is_some()).count();
        let before = step.calls.iter().take(ordinal as usize);
        let before = before.filter(|call| {
            call.result.is_none()
                && call.chat.is_none()
                && call.asked.as_meant().name == CREATE_CHAT
        });
        let model = log
            .settings
            .as_ref()
            .map(|settings: &TurnSettings| settings.model.clone());
        Some(Self {
            begun: step.calls.get(ordinal as usize)?.chat,
            of_turn: begun + before.count(),
            is_of_agent: turn.transcript.is_begun_by_call(turn.id),
            model: model.filter(|model| !model.is_empty()),
            terms: log.terms.clone(),
            mode: log.mode(),
        })
    }

    /// True if the call has begun its conversation.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }
}

/// Brings the call to its end, or to where it has begun the conversation.
pub(super) async fn run(
    site: &Site<'_>,
    scene: &ChatScene,
    ask: &ChatAsk,
) -> Result<Begun, TurnError> {
    if let Some(session) = scene.begun {
        return Ok(Begun::Ended(Rendered::completed(format!(
            "the conversation {session} has begun; the user opens it with /resume {session}"
        ))));
    }
    if site.cancel.is_cancelled() {
        return Ok(Begun::Ended(told::cancelled(NEVER_RAN.to_owned())));
    }
    let new = match new(site, scene, ask) {
        Ok(new) => new,
        Err(why) => return Ok(Begun::Ended(not_run(why))),
    };
    match site.ports.log.start_chat(&new).await {
        Ok(started) => Ok(Begun::Now(started)),
        Err(LogError::Refused(why)) => Ok(Begun::Ended(not_run(why))),
        Err(error) => Err(error.into()),
    }
}

fn new(site: &Site<'_>, scene: &ChatScene, ask: &ChatAsk) -> Result<NewChat, String> {
    if scene.is_of_agent {
        return Err(
            "an agent has begun this conversation itself: it may begin another one once a person has written in it"
                .to_owned(),
        );
    }
    if scene.of_turn >= CHATS_OF_TURN {
        return Err(format!(
            "a turn begins at most {CHATS_OF_TURN} conversations, and this one has: say what is left"
        ));
    }
    let mode = ask.mode.map_or(scene.mode, |mode| mode.min(scene.mode));
    let place = site.place;
    Ok(NewChat {
        turn: place.turn,
        step: place.step,
        ordinal: place.ordinal,
        title: clean_line(&ask.title, MAX_TITLE),
        message: ask.message.clone(),
        model: scene.model.clone(),
        terms: Terms {
            unattended: scene.terms.unattended,
            mode: Some(mode),
            allow: scene.terms.allow.clone(),
            steps: scene.terms.steps,
            ceiling: Some(mode),
            tokens: scene.terms.tokens,
        },
        sessions_at_most: site.engine.limits.sessions_at_most,
    })
}
