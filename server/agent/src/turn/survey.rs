//! The look at the place of a turn's calls, before the model is asked: the system, the branch, and the instructions that
//! people left there. A place that does not answer at once is not waited for: the first call will find out.

use std::time::Duration;

use shared_sandbox::{
    Consent, Operation, OperationEvent, OperationLimits, Outcome, Request, Survey, Surveyed,
};
use shared_types::{
    Effect, Event, Mode, OperationId, OperationKey, Owner, RefusalCode,
    clean::clean_line,
    event::{InstructionFile, Place, ProjectFile, TodoState},
};
use tokio::time::{Instant, timeout_at};

use super::{Turn, TurnError};
use crate::{extensions::FOUND_BYTES, transcript::TurnLog};

/// The time for the look.
const WITHIN: Duration = Duration::from_secs(3);

/// Most bytes of all instructions.
const MAX_BYTES: u64 = 32 * 1024;

/// Most files of instructions.
const MAX_FILES: usize = 32;

/// Longest name or word on a file, in bytes.
pub(super) const MAX_NAME: usize = 1024;

/// The step of its operation; no answer has it.
const STEP: u32 = 0;

/// Most looks of a turn. A look whose end is stored already is made again: texts with secrets are not stored.
const LOOKS: u32 = 3;

/// The end of a look.
enum Look {
    /// Its news are recorded.
    Recorded,
    /// Its end was stored without its news: the server that waited for it stopped.
    Known,
    /// It has no end in time.
    Open,
}

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
        // An agent has a task of its own.
        let is_asked = is_first && self.transcript.brief().is_none();
        let Some(place) = self.folder().filter(|_| is_asked) else {
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
        self.survey().await?;
        self.extended_without_look().await?;
        self.offer_tools().await
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
        let until = Instant::now() + WITHIN;
        let cancel = self.cancel.clone();
        for attempt in 0..LOOKS {
            let operation = self.look(attempt);
            let id = operation.id;
            let seen = tokio::select! {
                biased;
                () = cancel.cancelled() => Ok(Look::Open),
                seen = self.see(operation, until) => seen,
            };
            match seen? {
                Look::Recorded => return Ok(()),
                Look::Known => {}
                Look::Open => {
                    self.ports.sandbox.leave(id).await;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn look(&self, attempt: u32) -> Operation {
        let owner = Owner::Session(self.ports.session);
        let key = OperationKey::Call {
            turn: self.id,
            step: STEP,
            ordinal: 0,
            attempt,
        };
        let request = Request::Survey(Survey {
            path: String::new(),
            max_bytes: MAX_BYTES,
            of_user: self.has_own_runner(),
            extension_bytes: FOUND_BYTES,
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
            // Of an agent's turn, and no more than a read: so that a place which admits approved calls only shows it.
            consent: Consent::Agent(Mode::Plan),
            trace: None,
        }
    }

    /// True if the runner is the user's own: then the instructions in the home of the machine's user are the user's.
    fn has_own_runner(&self) -> bool {
        let turn = self.transcript.turn(self.id);
        let settings = turn.and_then(|turn| turn.settings.as_ref());
        settings.is_some_and(|settings| settings.own_runner)
    }

    /// Records what is seen.
    async fn see(&mut self, operation: Operation, until: Instant) -> Result<Look, TurnError> {
        let id = operation.id;
        let started = timeout_at(until, self.ports.sandbox.start(operation)).await;
        let Ok(Ok(mut running)) = started else {
            return Ok(Look::Open);
        };
        loop {
            match timeout_at(until, running.events.recv()).await {
                Ok(Some(OperationEvent::Ended(outcome))) => {
                    let Some(token) = running.events.end_token() else {
                        return Ok(Look::Known);
                    };
                    self.extended_by_look(&running.place, &outcome).await?;
                    let project = self.project_found(&running.place, &outcome).await?;
                    let event = self.surveyed(&running.place, &outcome, project.map(Box::new));
                    let log = &self.ports.log;
                    log.record_end(event.clone(), id, &outcome).await?;
                    token.spend();
                    self.transcript.apply(&event, self.engine.clock.now());
                    return Ok(Look::Recorded);
                }
                Ok(Some(OperationEvent::Unreachable { .. }) | None) | Err(_) => {
                    return Ok(Look::Open);
                }
                Ok(Some(_)) => {}
            }
        }
    }

    /// The event with the news of the place. Texts and names come from a runner, and are bounded and cleaned here.
    fn surveyed(
        &self,
        place: &Place,
        outcome: &Outcome,
        project: Option<Box<ProjectFile>>,
    ) -> Event {
        let turn = self.transcript.turn(self.id);
        let before = self.transcript.survey_of(turn.and_then(TurnLog::runner));
        let seen = match outcome {
            Outcome::Surveyed(seen) => seen.clone(),
            // An earlier release of a runner does not know how to look.
            Outcome::Refused(refusal) if refusal.code == RefusalCode::Unsupported => nothing(),
            // It could not look this time: nothing is known to have changed.
            _ => {
                return Event::PlaceSurveyed {
                    turn: self.id,
                    place: Some(Box::new(place.clone())),
                    system: before.map_or_else(String::new, |before| before.system.clone()),
                    folder: before.map_or_else(String::new, |before| before.folder.clone()),
                    branch: before.and_then(|before| before.branch.clone()),
                    instructions: None,
                    unread: Vec::new(),
                    project,
                };
            }
        };
        let mut left = usize::try_from(MAX_BYTES).unwrap_or(usize::MAX);
        let files = seen.instructions.into_iter().take(MAX_FILES).map(|file| {
            let text = file.text[..file.text.floor_char_boundary(left)].to_owned();
            left -= text.len();
            InstructionFile {
                path: clean_line(&file.path, MAX_NAME),
                cut: file.cut || text.len() < file.text.len(),
                bytes: file.bytes,
                text,
            }
        });
        let files: Vec<_> = files.collect();
        let known = before.map(|before| &before.instructions[..]);
        let is_known = known.unwrap_or_default() == files;
        let unread = seen.unread.iter().take(MAX_FILES);
        let unread = unread.map(|skipped| clean_line(&skipped.failure.to_string(), MAX_NAME));
        Event::PlaceSurveyed {
            turn: self.id,
            place: Some(Box::new(place.clone())),
            system: clean_line(&seen.system, MAX_NAME),
            folder: clean_line(&seen.folder, MAX_NAME),
            branch: seen.branch.map(|branch| clean_line(&branch, MAX_NAME)),
            instructions: (!is_known).then_some(files),
            unread: unread.collect(),
            project,
        }
    }
}

/// A place of which nothing is known.
fn nothing() -> Surveyed {
    Surveyed {
        system: String::new(),
        folder: String::new(),
        branch: None,
        instructions: Vec::new(),
        unread: Vec::new(),
        project: None,
        extensions: Vec::new(),
    }
}
