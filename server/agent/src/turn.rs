//! A turn: the state of one claim of it, and the script that carries it to its end.
//!
//! A phase records its results before the next phase begins, and the next phase is chosen from the
//! record. So the worker that runs the turn again after a crash goes on from the log.
//!
//! The workers stand here too. `dispatcher` has a worker for each session with work, `worker` claims and carries
//! turns, and `failing` gives up a turn whose worker failed too often.

mod abandon;
mod again;
mod agent;
mod answer;
mod bench;
mod call;
mod calls;
mod chat;
mod compaction;
mod conclusion;
mod consent;
mod context_edit;
mod dispatcher;
mod extend;
mod failing;
mod feeding;
mod guarded;
mod history;
mod hook;
mod hooked;
pub(crate) mod limit;
mod listen;
mod next;
mod permits;
mod project;
mod recall;
mod seen;
mod server;
pub(crate) mod show;
mod site;
mod speech;
mod steers;
mod survey;
mod task;
mod told;
mod web;
mod work;
mod worker;
mod worktree;

use std::sync::Arc;

use server_llm::Model;
use shared_types::{CallWait, Epoch, Event, SessionEvent, TurnId, event::TurnOutcome};
use tokio_util::sync::CancellationToken;

use crate::{
    engine::{Carried, Claim, Engine},
    session::{LogError, SessionPorts},
    tools::ToolSet,
    transcript::Transcript,
    wait::WaitingCall,
};
pub(crate) use abandon::abandon;
pub use bench::{Bench, SessionModels, SessionServers, TurnSandboxes};
pub use dispatcher::Turns;
pub(crate) use dispatcher::{RETRY_AFTER, START_PAGE};
use next::{Next, next};
pub use work::TurnWork;

/// The reason that a turn goes no further here. It stays unfinished, and the worker that runs it
/// again resumes it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnError {
    /// A newer worker has the session.
    #[error("carry on with the turn: a newer worker has taken the session over")]
    StaleEpoch,
    /// Nothing can be recorded or read now.
    #[error("carry on with the turn: {0}")]
    LogUnavailable(String),
    /// The log cannot be read, or what the turn records is refused: trying again may change nothing.
    #[error("carry on with the turn: {0}")]
    LogRefused(String),
    /// The log holds an event that this release cannot read: what it did is not known here, so nothing
    /// is done on top of it.
    #[error(
        "carry on with the turn: event {seq} of the log ({kind}) cannot be read by this release of the \
         server; upgrade it, or start a new session"
    )]
    Unreadable {
        /// Its place in the log.
        seq: u64,
        /// Its kind.
        kind: String,
    },
    /// The log holds no input that starts this turn.
    #[error("carry on with the turn: the session's log has no message that starts it")]
    NotInLog,
}

impl From<LogError> for TurnError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::StaleEpoch => Self::StaleEpoch,
            LogError::Unavailable(reason) => Self::LogUnavailable(reason),
            LogError::Refused(reason) => Self::LogRefused(reason),
            LogError::UntakenSteers => Self::LogRefused(error.to_string()),
        }
    }
}

/// One claim of a turn.
pub(crate) struct Turn<'a> {
    engine: &'a Engine,
    ports: &'a SessionPorts,
    id: TurnId,
    epoch: Epoch,
    /// The waits of its calls before this claim.
    waited: Vec<CallWait>,
    /// The epoch of a worker that was lost in the phase that comes first.
    interrupted: Option<Epoch>,
    /// Fires when someone wishes the turn to stop, whether it was heard or read in the log.
    cancel: CancellationToken,
    transcript: Transcript,
    /// The tools that this turn may use.
    tools: Arc<ToolSet>,
    /// The calls that were found to wait, where nothing else is left to do.
    waiting: Vec<WaitingCall>,
    /// The window of the model that answered last, in tokens, where it is known.
    window: Option<usize>,
}

impl<'a> Turn<'a> {
    pub(crate) async fn load(
        engine: &'a Engine,
        ports: &'a SessionPorts,
        claim: Claim,
        cancel: &CancellationToken,
    ) -> Result<Self, TurnError> {
        let Claim {
            turn: id,
            epoch,
            waited,
            interrupted,
        } = claim;
        let log = ports.log.load().await?;
        if let Some((seq, kind)) = unreadable(&log) {
            return Err(TurnError::Unreadable {
                seq,
                kind: kind.to_owned(),
            });
        }
        let transcript = Transcript::of(&log);
        let cancel = cancel.child_token();
        let turn = transcript.turn(id).ok_or(TurnError::NotInLog)?;
        if turn.cancel_requested {
            cancel.cancel();
        }
        Ok(Self {
            engine,
            ports,
            id,
            epoch,
            waited,
            interrupted,
            cancel,
            tools: Arc::new(ToolSet::of_turn(&engine.sources, &transcript, id)),
            transcript,
            waiting: Vec::new(),
            window: engine.limits.model_window,
        })
    }

    /// The script.
    pub(crate) async fn run(mut self) -> Result<Carried, TurnError> {
        loop {
            let next = self.next().await?;
            if next.asks_model() && self.engine.lets_go() {
                return Ok(Carried::LetGo);
            }
            match next {
                Next::AskModel { step } => self.ask_model(step).await?,
                Next::AskForSummary { step, limit } => {
                    self.transcript.note_limit(self.id, limit);
                    self.ask_model(step).await?;
                }
                Next::Compact { focus } => self.compact_as_asked(&focus).await?,
                Next::RunCalls { step, pending } => self.run_calls(step, &pending).await?,
                Next::End { outcome, reason } => self.end(outcome, reason).await?,
                Next::Wait(calls) => return Ok(Carried::Waits(calls)),
                Next::Ended(outcome) => return Ok(Carried::Ended(outcome)),
            }
            self.interrupted = None;
        }
    }

    async fn next(&mut self) -> Result<Next, TurnError> {
        self.note_stop().await?;
        let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
        Ok(next(turn, &self.waiting, &self.engine.limits))
    }

    /// The models to ask for the next answer, in their order; at least one.
    ///
    /// # Errors
    /// The one that is chosen cannot be used; the text says what to do.
    async fn chain(&self) -> Result<Vec<Arc<dyn Model>>, String> {
        let turn = self.transcript.turn(self.id);
        let settings = turn.and_then(|turn| turn.settings.as_ref());
        let of_turn = settings.map(|settings| settings.model.as_str());
        self.ports.models.chain(of_turn).await
    }

    /// Ends the turn, or learns of the messages that joined it before that.
    async fn end(&mut self, outcome: TurnOutcome, reason: Option<String>) -> Result<(), TurnError> {
        match outcome {
            TurnOutcome::Completed if self.before_stop().await? => return Ok(()),
            TurnOutcome::Failed => {
                self.before_failure(reason.as_deref().unwrap_or_default())
                    .await?
            }
            _ => {}
        }
        self.settle_worktree().await?;
        let ended = self.ended(outcome, reason);
        let untaken = match self.ports.log.record(vec![ended.clone()]).await {
            Err(error @ LogError::UntakenSteers) => error,
            recorded => {
                recorded?;
                self.transcript.apply(&ended, self.engine.clock.now());
                return Ok(());
            }
        };
        match self.hear_steers().await? {
            Some(_) => Ok(()),
            None => Err(untaken.into()),
        }
    }

    fn ended(&self, outcome: TurnOutcome, reason: Option<String>) -> Event {
        Event::TurnEnded {
            turn: self.id,
            outcome,
            reason,
        }
    }

    /// Makes two events durable together, and only then part of what the turn knows.
    async fn record_both(&mut self, first: Event, second: Event) -> Result<(), TurnError> {
        let events = vec![first.clone(), second.clone()];
        self.ports.log.record(events).await?;
        for event in [first, second] {
            self.transcript.apply(&event, self.engine.clock.now());
        }
        Ok(())
    }

    /// Makes the event durable, and only then part of what the turn knows.
    async fn record(&mut self, event: Event) -> Result<(), TurnError> {
        self.ports.log.record(vec![event.clone()]).await?;
        self.transcript.apply(&event, self.engine.clock.now());
        Ok(())
    }
}

/// The first event of a kind that the engine acts on and that this release cannot read.
fn unreadable(log: &[SessionEvent]) -> Option<(u64, &str)> {
    let mut found = log.iter().filter_map(|event| {
        let kind = event.unreadable()?;
        Some((event.seq, kind))
    });
    found.next()
}
