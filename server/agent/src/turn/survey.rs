//! The look at the place of a turn's calls, before the model is asked: the system, the branch, and the instructions that
//! people left there. A place that does not answer at once is not waited for: the first call will find out.

use std::time::Duration;

use shared_sandbox::{
    Operation, OperationEvent, OperationLimits, Outcome, Request, Survey, Surveyed,
};
use shared_types::{
    Effect, Event, OperationId, OperationKey, Owner,
    event::{InstructionFile, TodoState},
};
use tokio::time::{Instant, timeout_at};

use super::{Turn, TurnError};

/// The time for the look.
const WITHIN: Duration = Duration::from_secs(3);

/// Most bytes of all instructions.
const MAX_BYTES: u64 = 32 * 1024;

/// The attempt, step and ordinal of its operation: no call has these.
const STEP: u32 = 0;

impl Turn<'_> {
    /// The name of the folder of the turn's calls: that of its runner, workspace and directory.
    pub(super) fn folder(&self) -> Option<String> {
        let turn = self.transcript.turn(self.id)?;
        let choice = turn.choice.as_ref()?;
        let (runner, _) = choice.runner()?;
        let workspace = choice.workspace().unwrap_or_default();
        Some(format!(
            "{runner}/{workspace}/{}",
            self.transcript.directory()
        ))
    }

    /// At the beginning of a session, goes on with the to-do list that an earlier one left in the same folder.
    async fn find_todo(&mut self) -> Result<(), TurnError> {
        let is_first = self
            .transcript
            .turns()
            .first()
            .is_some_and(|first| first.id == self.id);
        let Some(place) = self.folder().filter(|_| is_first) else {
            return Ok(());
        };
        let items = self.ports.log.todo_of_place(&place).await?;
        if items.iter().all(|item| item.state == TodoState::Done) {
            return Ok(());
        }
        let found = Event::TodoChanged {
            turn: self.id,
            items,
            place,
            found: true,
        };
        self.record(found).await
    }

    /// Brings what the model is told first up to date, at the beginning of a turn: the operator's text, and the place.
    pub(super) async fn prepare(&mut self) -> Result<(), TurnError> {
        let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
        if !turn.steps.is_empty() {
            return Ok(());
        }
        let base = self.ports.models.base_prompt();
        if base.as_deref() != self.transcript.base() {
            let text = base.map(|base| base.to_string());
            let turn = self.id;
            self.record(Event::PromptChanged { turn, text }).await?;
        }
        self.survey().await
    }

    /// Looks at the place, unless that was done in this turn, or there is none.
    async fn survey(&mut self) -> Result<(), TurnError> {
        let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
        let has_place = turn
            .choice
            .as_ref()
            .is_some_and(|choice| choice.runner().is_some());
        if turn.is_surveyed || !has_place {
            return Ok(());
        }
        if turn.found.is_none() {
            self.find_todo().await?;
        }
        let operation = self.look();
        let id = operation.id;
        let until = Instant::now() + WITHIN;
        let cancel = self.cancel.clone();
        let seen = tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(false),
            seen = self.see(operation, until) => seen,
        };
        if !seen? {
            self.ports.sandbox.leave(id).await;
        }
        Ok(())
    }

    fn look(&self) -> Operation {
        let owner = Owner::Session(self.ports.session);
        let key = OperationKey::Call {
            turn: self.id,
            step: STEP,
            ordinal: 0,
            attempt: 0,
        };
        let request = Request::Survey(Survey {
            path: String::new(),
            max_bytes: MAX_BYTES,
        });
        Operation {
            id: OperationId::derive(&self.ports.scope, &owner, &key),
            owner,
            key,
            epoch: self.epoch,
            effect: Effect::Pure,
            limits: OperationLimits {
                start_within: WITHIN,
                run_for: WITHIN,
            },
            request: request.of_directory(self.transcript.directory()),
            trace: None,
        }
    }

    /// Records what is seen; returns whether the operation came to its end.
    async fn see(&mut self, operation: Operation, until: Instant) -> Result<bool, TurnError> {
        let id = operation.id;
        let started = timeout_at(until, self.ports.sandbox.start(operation)).await;
        let Ok(Ok(mut running)) = started else {
            return Ok(false);
        };
        loop {
            match timeout_at(until, running.events.recv()).await {
                Ok(Some(OperationEvent::Ended(outcome))) => {
                    let Some(token) = running.events.end_token() else {
                        return Ok(false);
                    };
                    let event = self.surveyed(&outcome);
                    let log = &self.ports.log;
                    log.record_end(event.clone(), id, &outcome).await?;
                    token.spend();
                    self.transcript.apply(&event, self.engine.clock.now());
                    return Ok(true);
                }
                Ok(Some(OperationEvent::Unreachable { .. }) | None) | Err(_) => return Ok(false),
                Ok(Some(_)) => {}
            }
        }
    }

    fn surveyed(&self, outcome: &Outcome) -> Event {
        let Outcome::Surveyed(seen) = outcome else {
            // An earlier release of a runner does not know how to look.
            return Event::PlaceSurveyed {
                turn: self.id,
                system: String::new(),
                folder: String::new(),
                branch: None,
                instructions: Some(Vec::new()).filter(|_| self.has_instructions()),
                unread: Vec::new(),
            };
        };
        let Surveyed {
            system,
            folder,
            branch,
            instructions,
            unread,
        } = seen.clone();
        let files = instructions.into_iter().map(|file| InstructionFile {
            path: file.path,
            text: file.text,
            bytes: file.bytes,
            cut: file.cut,
        });
        let files: Vec<_> = files.collect();
        let before = self
            .transcript
            .survey()
            .map(|before| &before.instructions[..]);
        let is_known = before.unwrap_or_default() == files;
        Event::PlaceSurveyed {
            turn: self.id,
            system,
            folder,
            branch,
            instructions: (!is_known).then_some(files),
            unread: unread
                .iter()
                .map(|skipped| skipped.failure.to_string())
                .collect(),
        }
    }

    fn has_instructions(&self) -> bool {
        let before = self.transcript.survey();
        before.is_some_and(|before| !before.instructions.is_empty())
    }
}
