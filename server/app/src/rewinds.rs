//! Going back to before a message of a session: the conversation, the files that its agents changed since, or both.
//!
//! The files go first, then the conversation. A file is changed only where its content now is what the last call left, and
//! becomes what it was; so a request that broke off in between is sent again, and goes on where it stopped. The other way
//! round the message would be no part of the conversation any more, and no one could ask for its files.

mod files;

use std::sync::Arc;

use server_agent::{EarlierMessage, Turns};
use server_records::SessionKey;
use server_store::Store;
use shared_types::{Clock, Event, SessionEvent, SessionId, TurnId};

pub use files::FilePutBack;

use crate::{
    AppError, OpContext, gate::Gate, operations::Operations, rights::Action, shielded::shielded,
};

/// The use cases of this file.
#[derive(Clone)]
pub struct Rewinds {
    pub(crate) store: Store,
    pub(crate) gate: Gate,
    pub(crate) turns: Turns,
    pub(crate) operations: Operations,
    pub(crate) clock: Arc<dyn Clock>,
}

/// A wish to go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoBack {
    /// The turn that the message started: it and all later ones go.
    pub turn: TurnId,
    /// True if the conversation goes back.
    pub conversation: bool,
    /// True if the files go back.
    pub files: bool,
}

/// The outcome of a step back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WentBack {
    /// The message before which it went, to be written anew.
    pub text: String,
    /// The files that calls have changed since; empty where they were not asked for.
    pub files: Vec<FilePutBack>,
}

impl Rewinds {
    /// The messages of the conversation to which the user can go back, the oldest first.
    ///
    /// # Errors
    /// If the user has no such session.
    pub async fn messages(
        &self,
        ctx: &OpContext,
        session: SessionId,
    ) -> Result<Vec<EarlierMessage>, AppError> {
        self.gate.session(ctx, Action::ReadSession, session).await?;
        Ok(server_agent::messages(&self.log(ctx, session).await?))
    }

    /// Goes back to before a message. Files that are not put back are named with the reason, and hold nothing up.
    ///
    /// # Errors
    /// If the user has no such session or it has no such message; if a turn works, waits or is queued, or the message is no
    /// part of the conversation any more; if a runner with one of the files cannot be reached or used. Then no file was
    /// changed, but where the runner went away in between; and the conversation is as it was.
    pub async fn go_back(
        &self,
        ctx: &OpContext,
        session: SessionId,
        back: GoBack,
    ) -> Result<WentBack, AppError> {
        self.gate.session(ctx, Action::SendMessage, session).await?;
        if !back.conversation && !back.files {
            return Err(AppError::Invalid(
                "nothing was asked for: set conversation, files or both".to_owned(),
            ));
        }
        let unfinished = self.store.unfinished_turn(ctx.tenant, session).await?;
        if unfinished.is_some() {
            return Err(AppError::Conflict(
                "a turn of the session works or waits; stop it first: /stop, or gantry cancel SESSION"
                    .to_owned(),
            ));
        }
        let log = self.log(ctx, session).await?;
        let messages = server_agent::messages(&log);
        let message = messages.into_iter().find(|one| one.turn == back.turn);
        let message = message.ok_or_else(|| no_such(&log, back.turn))?;
        let files = match back.files {
            true => self.put_back(ctx, &log, back.turn).await?,
            false => Vec::new(),
        };
        if back.conversation {
            let (this, ctx, turn) = (self.clone(), ctx.clone(), back.turn);
            shielded(async move {
                let now = this.clock.now();
                let back = (turn, ctx.user);
                let rewound = this.store.rewind(ctx.tenant, session, back, now);
                rewound.await.map_err(AppError::from)
            })
            .await?;
        }
        Ok(WentBack {
            text: message.text,
            files,
        })
    }

    async fn log(
        &self,
        ctx: &OpContext,
        session: SessionId,
    ) -> Result<Arc<Vec<SessionEvent>>, AppError> {
        let of = SessionKey {
            tenant: ctx.tenant,
            session,
        };
        Ok(self.turns.log(of).await?)
    }
}

/// The refusal of a turn that is no part of the conversation.
fn no_such(log: &[SessionEvent], turn: TurnId) -> AppError {
    let was_sent = log.iter().any(
        |event| matches!(event.known(), Some(Event::InputAccepted { turn: of, .. }) if *of == turn),
    );
    match was_sent {
        true => AppError::Conflict(
            "the message is no part of the conversation any more; choose another one: /rewind"
                .to_owned(),
        ),
        false => AppError::NotFound("message"),
    }
}
