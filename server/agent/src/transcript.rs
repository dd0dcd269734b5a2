//! The log as the engine sees it: turns, their steps, their calls. A pure fold: what is not the
//! engine's business, and what a newer writer has added, leaves no trace in it.
//!
//! A message may be accepted while an earlier turn still works, so events of different turns
//! interleave in the log; here each turn stands by itself, in the order of the inputs. Turns before which a person went
//! back are no part of it any more.

mod agents;
mod call;
mod rewind;
mod sent;
mod steers;
mod tasks;
mod turn;

use std::{collections::HashMap, sync::Arc};

use shared_types::{
    Digest, Event, OperationId, RunnerId, SessionEvent, Timestamp, TurnId,
    event::{
        CallOutcome, Extensions, FileSeen, HookEnd, HookEvent, InstructionFile, OfferedServer,
        Place, TodoItem, TurnLimit,
    },
};

use crate::tools::ACTIVE_STEPS;
pub(crate) use agents::{AgentCall, AgentEnd, Brief, KnownAgent, kept_worktree};
pub use call::Placed;
pub(crate) use call::{Approval, Call, CallResult, SentAs, Step};
pub(crate) use sent::Compacted;
pub(crate) use steers::Steer;
pub(crate) use tasks::LateEnd;
pub use tasks::{Task, tasks};
pub(crate) use turn::TurnLog;

/// The beginning of the text of a call that was not run.
pub(crate) const NOT_RUN: &str = "not run: ";

/// A session's turns, in the order of their inputs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Transcript {
    /// The folder in which commands start and paths begin, relative to the root; empty for the root
    /// itself.
    directory: Arc<str>,
    turns: Vec<TurnLog>,
    tasks: Vec<Task>,
    /// The number of the last task that was ever begun; 0 without one.
    last_task: u32,
    /// The operations that ended since the last input.
    ended: Vec<LateEnd>,
    /// Operations whose late end is known.
    settled: Vec<OperationId>,
    /// The state that turns hand on.
    shared: Shared,
    /// The role of the agent that works in the session.
    brief: Option<Arc<Brief>>,
    /// True if a call of another session has begun it, with the first message.
    is_of_call: bool,
    /// The agents that calls of the session have ever begun.
    agents: Vec<KnownAgent>,
}

/// The state of a conversation that its turns hand on to one another.
#[derive(Debug, Clone, Default, PartialEq)]
struct Shared {
    /// So many of the oldest calls are sent in short.
    left_out: u32,
    /// So many of the oldest parts are not sent at all: a message, an answer and a call with its result are
    /// one each.
    gone: u32,
    /// The last survey of a place.
    survey: Option<Arc<SurveyLog>>,
    /// The extensions that were found last.
    extensions: Arc<Extensions>,
    /// The number of failures of a hook in a row, by its file, event and action.
    hook_failures: HashMap<(String, HookEvent, String), u32>,
    /// The tools of tool servers that were offered last.
    offered: Arc<[OfferedServer]>,
    /// The operator's text with which the system prompt begins.
    base: Option<Arc<str>>,
    /// The to-do list.
    todo: Arc<[TodoItem]>,
    /// The text in place of the oldest parts, once the conversation was compacted.
    compacted: Option<Compacted>,
    /// The number of calls.
    calls: u32,
    /// The number of changes so far to what stands before the next answer: of what is sent, or of the language.
    prefix: u32,
    /// The language of the last turn that was claimed.
    language: Option<String>,
}

impl Shared {
    /// Hands the last survey to a turn that was claimed, and takes over its language.
    fn claimed(&mut self, turn: &mut TurnLog) {
        if !turn.is_surveyed {
            let runner = turn.runner();
            let last = self.survey.clone();
            turn.survey = last.filter(|survey| survey.runner == runner);
        }
        if let Some(settings) = &turn.settings
            && settings.language != self.language
        {
            self.language.clone_from(&settings.language);
            self.prefix += 1;
        }
    }
}

/// A look at a place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SurveyLog {
    /// The runner of the place.
    pub(crate) runner: Option<RunnerId>,
    /// The name of the runner and the isolation that is proved there, as they were when it was looked at.
    pub(crate) place: Option<Place>,
    pub(crate) system: String,
    pub(crate) folder: String,
    pub(crate) branch: Option<String>,
    /// The instructions there, those that count more last.
    pub(crate) instructions: Arc<[InstructionFile]>,
    /// Words on files that could not be read.
    pub(crate) unread: Vec<String>,
    /// The path and the digest of the file with the project's rules, if one was found.
    pub(crate) project: Option<(String, Digest)>,
}

impl Transcript {
    pub(crate) fn of(log: &[SessionEvent]) -> Self {
        let mut transcript = Self::default();
        for event in log {
            if let Some(known) = event.known() {
                transcript.apply(known, event.at);
            }
        }
        transcript
    }

    /// Takes in an event that follows those before; where something is recorded twice, the
    /// first stands.
    pub(crate) fn apply(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::SessionCreated { directory, .. } => {
                self.directory = directory.as_str().into();
            }
            Event::InputAccepted { .. } => self.apply_input(event, at),
            Event::PlaceSurveyed { .. } => self.apply_survey(event),
            Event::ExtensionsFound { turn, extensions } => {
                let found = Arc::new((**extensions).clone());
                self.shared.extensions = found.clone();
                if let Some(turn) = self.turn_mut(*turn) {
                    turn.extensions = found;
                }
            }
            Event::HookEnded { turn, end } => self.apply_hook(*turn, end),
            Event::TodoChanged {
                turn, items, found, ..
            } => {
                self.shared.todo = items.as_slice().into();
                let mut turns = self.turns.iter_mut().rev();
                if let Some(turn) = turns.find(|known| *found && known.id == *turn) {
                    turn.found = Some(self.shared.todo.clone());
                }
            }
            Event::OperationSettled { operation, summary } => self.settle(*operation, summary),
            Event::ConversationRewound { turn, .. } => self.rewind(*turn),
            _ => {
                self.apply_sent(event);
                self.apply_agents(event, at);
            }
        }
        self.apply_to_turn(event, at);
    }

    /// Begins the turn of an input, unless it has begun.
    fn apply_input(&mut self, event: &Event, at: Timestamp) {
        if let Event::InputAccepted {
            turn,
            parts,
            compacts,
            terms,
            ..
        } = event
            && self.turn(*turn).is_none()
        {
            let ended_before = std::mem::take(&mut self.ended);
            let input = (parts.clone(), at);
            let turn = TurnLog::new(*turn, input, ended_before);
            self.turns.push(TurnLog {
                compacts: compacts.clone(),
                terms: terms.clone(),
                ..turn
            });
        }
    }

    fn apply_survey(&mut self, event: &Event) {
        let Event::PlaceSurveyed {
            turn,
            place,
            system,
            folder,
            branch,
            instructions,
            unread,
            project,
        } = event
        else {
            return;
        };
        let runner = self.turn(*turn).and_then(TurnLog::runner);
        let before = self.survey_of(runner);
        let survey = Arc::new(SurveyLog {
            runner,
            place: place.as_deref().cloned(),
            system: system.clone(),
            folder: folder.clone(),
            branch: branch.clone(),
            instructions: match instructions {
                Some(instructions) => instructions.as_slice().into(),
                None => before.map_or_else(Arc::default, |before| before.instructions.clone()),
            },
            unread: unread.clone(),
            project: project
                .as_ref()
                .map(|file| (file.path.clone(), file.digest)),
        });
        self.shared.survey = Some(survey.clone());
        if let Some(turn) = self.turn_mut(*turn) {
            (turn.survey, turn.is_surveyed) = (Some(survey), true);
        }
    }

    fn apply_hook(&mut self, turn: TurnId, end: &HookEnd) {
        let hook = (end.from.at.clone(), end.on, end.action.clone());
        match end.failed {
            Some(_) => *self.shared.hook_failures.entry(hook).or_default() += 1,
            None => {
                self.shared.hook_failures.remove(&hook);
            }
        }
        if let Some(turn) = self.turn_mut(turn) {
            turn.hooks.push(end.clone());
        }
    }

    /// Applies an event to its turn, and hands on the state between the turns.
    fn apply_to_turn(&mut self, event: &Event, at: Timestamp) {
        let Some(id) = event.turn() else { return };
        // Not by `turn_mut`: the other fields are read beside it.
        let Some(turn) = self.turns.iter_mut().rev().find(|turn| turn.id == id) else {
            return;
        };
        let is_claim = matches!(event, Event::TurnClaimed { .. });
        if is_claim {
            turn.before.begins(&self.shared);
            turn.extensions = self.shared.extensions.clone();
            turn.offered = self.shared.offered.clone();
        }
        let steps = turn.steps.len();
        if let Some(task) = turn.apply(event, at) {
            self.last_task = self.last_task.max(task.number);
            self.tasks.push(task);
        }
        if is_claim {
            self.shared.claimed(turn);
        }
        for step in &mut turn.steps[steps..] {
            step.prefix = self.shared.prefix;
            for call in &mut step.calls {
                self.shared.calls = self.shared.calls.saturating_add(1);
                call.number = self.shared.calls;
            }
        }
    }

    pub(crate) fn directory(&self) -> &Arc<str> {
        &self.directory
    }

    pub(crate) fn turns(&self) -> &[TurnLog] {
        &self.turns
    }

    pub(crate) fn turn(&self, id: TurnId) -> Option<&TurnLog> {
        self.turns.iter().rev().find(|turn| turn.id == id)
    }

    fn turn_mut(&mut self, id: TurnId) -> Option<&mut TurnLog> {
        self.turns.iter_mut().rev().find(|turn| turn.id == id)
    }

    /// The turns up to and with this one: what the model knows while it works on it.
    pub(crate) fn up_to(&self, id: TurnId) -> &[TurnLog] {
        let place = self.turns.iter().rposition(|turn| turn.id == id);
        &self.turns[..place.map_or(0, |place| place + 1)]
    }

    /// The operator's text with which the system prompt begins.
    pub(crate) fn base(&self) -> Option<&str> {
        self.shared.base.as_deref()
    }

    /// The number of failures of this hook in a row.
    pub(crate) fn failures_of(&self, at: &str, on: HookEvent, action: &str) -> u32 {
        let hook = (at.to_owned(), on, action.to_owned());
        self.shared.hook_failures.get(&hook).copied().unwrap_or(0)
    }

    /// The to-do list.
    pub(crate) fn todo(&self) -> &[TodoItem] {
        &self.shared.todo
    }

    /// The last survey, if it was of a place of this runner.
    pub(crate) fn survey_of(&self, runner: Option<RunnerId>) -> Option<&Arc<SurveyLog>> {
        let last = self.shared.survey.as_ref();
        last.filter(|survey| survey.runner == runner)
    }

    /// Every call, the oldest first.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        let steps = self.turns.iter().flat_map(|turn| &turn.steps);
        steps.flat_map(|step| &step.calls)
    }

    /// The calls of every turn up to and with this one, the oldest first.
    pub(crate) fn calls_up_to(&self, id: TurnId) -> impl Iterator<Item = &Call> {
        let steps = self.up_to(id).iter().flat_map(|turn| &turn.steps);
        steps.flat_map(|step| &step.calls)
    }

    /// The files that the calls before this one read, wrote or edited where its turn works, the newest first.
    ///
    /// The calls before it are those of earlier turns, and those before it in its own turn. They have ended before it
    /// begins, so the files stay the same whatever is recorded after that.
    pub(crate) fn files_before(
        &self,
        id: TurnId,
        (step, ordinal): (u32, u32),
    ) -> impl Iterator<Item = &FileSeen> {
        let (of, call) = (self.turn(id), (step, ordinal as usize));
        let turns = self.up_to(id).iter().rev();
        turns.flat_map(move |turn| {
            let steps = turn.steps.iter().rev();
            let calls = steps.flat_map(|step| {
                let calls = step.calls.iter().enumerate().rev();
                calls.map(|(ordinal, call)| ((step.number, ordinal), call))
            });
            calls
                .filter(move |(place, before)| match turn.id == id {
                    true => *place < call,
                    false => of.is_some_and(|of| of.works_where(turn, before)),
                })
                .filter_map(|(_, call)| call.result.as_ref()?.file.as_ref())
        })
    }

    /// True if the tool of this name may be called at this step: within the last [`ACTIVE_STEPS`] steps before it a
    /// search has shown it, or it was used.
    pub(crate) fn is_active(&self, name: &str, (turn, number): (TurnId, u32)) -> bool {
        let steps = self.up_to(turn).iter().rev().flat_map(|known| {
            let steps = known.steps.iter().rev();
            steps.filter(move |step| known.id != turn || step.number < number)
        });
        let mut calls = steps.take(ACTIVE_STEPS).flat_map(|step| &step.calls);
        calls.any(|call| {
            call.result.as_ref().is_some_and(|result| {
                let used = result.outcome != CallOutcome::Refused;
                result.tools.iter().any(|found| found == name)
                    || used && call.asked.as_meant().name == name
            })
        })
    }

    /// The number of calls in the last so many steps of this turn.
    pub(crate) fn calls_of_last_steps(&self, id: TurnId, steps: usize) -> usize {
        let all = self.turn(id).map_or(&[][..], |turn| &turn.steps);
        let last = &all[all.len().saturating_sub(steps)..];
        last.iter().map(|step| step.calls.len()).sum()
    }

    /// Notes a wish to cancel that was heard before it was read.
    pub(crate) fn note_cancel(&mut self, id: TurnId) {
        if let Some(turn) = self.turn_mut(id) {
            turn.cancel_requested = true;
        }
    }

    /// Notes that this turn has reached a limit, before the model is asked for the summary.
    pub(crate) fn note_limit(&mut self, id: TurnId, limit: TurnLimit) {
        if let Some(turn) = self.turn_mut(id) {
            turn.limit = Some(limit);
        }
    }
}
