//! The log as the engine sees it: turns, their steps, their calls. A pure fold: what is not the
//! engine's business, and what a newer writer has added, leaves no trace in it.
//!
//! A message may be accepted while an earlier turn still works, so events of different turns
//! interleave in the log; here each turn stands by itself, in the order of the inputs. Turns before which a person went
//! back are no part of it any more.

mod rewind;
mod steers;

use std::{collections::HashMap, ops::RangeInclusive, sync::Arc};

use shared_types::{
    ApprovalId, Digest, Event, Isolation, Mode, OperationId, RunnerId, SessionEvent, SessionId,
    Timestamp, TurnId,
    event::{
        Answer, Awaited, CallOutcome, Choice, Extensions, FileSeen, Finish, HookDecision, HookEnd,
        HookEvent, InstructionFile, OfferedServer, Origin, Parts, Place, Role, StopReason, Terms,
        TodoItem, ToolCall, TurnLimit, TurnOutcome, TurnSettings,
    },
};

use crate::{
    hooks::HookPoint,
    tools::{ACTIVE_STEPS, bounded},
};
use rewind::Before;
pub(crate) use steers::Steer;

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
    /// The agents that calls of the session have ever begun.
    agents: Vec<KnownAgent>,
}

/// An agent that a call has begun, and that others may send messages to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KnownAgent {
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) description: String,
    pub(crate) session: SessionId,
    /// The end of its last turn for a call; nothing while it works for one.
    pub(crate) idle_since: Option<Timestamp>,
}

/// The task of the agent that works in a session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Brief {
    pub(crate) name: String,
    /// The number of agents above it and with it.
    pub(crate) depth: u32,
    pub(crate) role: Role,
}

/// An agent that works for a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentCall {
    pub(crate) name: String,
    pub(crate) session: SessionId,
    /// The turn in which it works.
    pub(crate) turn: TurnId,
    /// True if the call does not wait for its end.
    pub(crate) background: bool,
    /// The tokens that it may use.
    pub(crate) tokens: u64,
    /// The time at which it was begun.
    pub(crate) at: Timestamp,
    pub(crate) ended: Option<AgentEnd>,
}

/// The end of an agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentEnd {
    pub(crate) outcome: TurnOutcome,
    pub(crate) reason: Option<String>,
    pub(crate) answer: String,
    /// The tokens that it used.
    pub(crate) tokens: u64,
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
    /// How often a hook failed in a row, by its file, event and action.
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

/// The text in place of the oldest parts of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Compacted {
    /// It stands for so many parts.
    pub(crate) gone: u32,
    /// The facts that code carried over.
    pub(crate) carried: Arc<str>,
    /// The summary by the model; may be empty.
    pub(crate) summary: Arc<str>,
}

/// A call whose command goes on in the background.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its number in the session, from 1.
    pub number: u32,
    /// The turn of its call.
    pub turn: TurnId,
    /// The model call that asked for it, from 1.
    pub step: u32,
    /// The place of the call in the answer, from 0.
    pub ordinal: u32,
    /// The model's call.
    pub asked: ToolCall,
    /// The place where it runs.
    pub placed: Placed,
    /// Its end, in words for people; nothing while it runs, as far as is known.
    pub ended: Option<String>,
}

/// The tasks of a session with this log, by number.
pub fn tasks(log: &[SessionEvent]) -> Vec<Task> {
    Transcript::of(log).tasks
}

/// The end of an operation that came after its call had a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LateEnd {
    /// The turn of its call.
    pub(crate) turn: TurnId,
    /// Its task, where it went on in the background.
    pub(crate) task: Option<u32>,
    /// The name of its agent, where it has one.
    pub(crate) agent: Option<String>,
    /// The model's call.
    pub(crate) asked: ToolCall,
    /// The end, in words.
    pub(crate) summary: String,
}

/// The record of one turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TurnLog {
    pub(crate) id: TurnId,
    pub(crate) input: Parts,
    /// The terms of the input for the turn.
    pub(crate) terms: Terms,
    /// Present if it asks to compact the conversation: what matters most in it. The model is not sent the input.
    pub(crate) compacts: Option<String>,
    /// True once that was done.
    pub(crate) is_compacted: bool,
    /// Most bytes that are sent of the input.
    pub(crate) longest: usize,
    /// The time at which the input was accepted.
    pub(crate) asked_at: Timestamp,
    /// The operations that ended since the input before, after their calls had a result.
    pub(crate) ended_before: Vec<LateEnd>,
    /// The place of its calls; nothing if it was not claimed, or was claimed by an earlier release.
    pub(crate) choice: Option<Choice>,
    /// The settings of the turn; nothing if it was not claimed, or was claimed by an earlier
    /// release.
    pub(crate) settings: Option<TurnSettings>,
    /// The mode in which the user has its plan carried out.
    pub(crate) agreed: Option<Mode>,
    /// The last survey of a place, up to this turn.
    pub(crate) survey: Option<Arc<SurveyLog>>,
    /// The to-do list that an earlier session had left, if it was found in this turn.
    pub(crate) found: Option<Arc<[TodoItem]>>,
    /// True once the place of the turn was looked at.
    pub(crate) is_surveyed: bool,
    /// The extensions that it may use.
    pub(crate) extensions: Arc<Extensions>,
    /// The ends of its hooks.
    pub(crate) hooks: Vec<HookEnd>,
    /// The tools of tool servers that the model is offered in it.
    pub(crate) offered: Arc<[OfferedServer]>,
    /// The state before it, to go back to.
    before: Before,
    /// The messages that joined it while it worked.
    steers: Vec<Steer>,
    pub(crate) steps: Vec<Step>,
    /// The limit that it has reached: its next answer is the last one, a summary.
    pub(crate) limit: Option<TurnLimit>,
    pub(crate) cancel_requested: bool,
    /// True if that was so that a newer message takes its place.
    pub(crate) is_interrupted: bool,
    pub(crate) ended: Option<TurnOutcome>,
}

/// One answer of the model with the calls that it asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) number: u32,
    /// The model that answered.
    pub(crate) model: String,
    /// The wire format and the account that the answer came from; `None` if an earlier release recorded it.
    pub(crate) origin: Option<Origin>,
    /// The answer; its calls are in `calls`, with their results.
    pub(crate) parts: Parts,
    /// Most bytes that are sent of the text; its calls share as many.
    pub(crate) longest: usize,
    /// The number of changes before it to what stood before it ([`Transcript::prefix`]).
    pub(crate) prefix: u32,
    /// The tokens of the request, as the server estimated them and as the vendor counted them; 0 where unknown.
    pub(crate) estimated: u64,
    pub(crate) counted: u64,
    /// The tokens that were sent and came back, as the vendor counted them.
    pub(crate) tokens: u64,
    /// The time that the model took, in milliseconds; 0 where unknown.
    pub(crate) model_ms: u64,
    /// The limit that the turn had reached before it: this is the summary.
    pub(crate) limit: Option<TurnLimit>,
    pub(crate) finish: Finish,
    pub(crate) calls: Vec<Call>,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// Its number in the session, from 1.
    pub(crate) number: u32,
    pub(crate) asked: ToolCall,
    /// The newest question to people about it.
    pub(crate) approval: Option<Approval>,
    /// Once an operation of it was placed, it may have happened.
    pub(crate) placed: Option<Placed>,
    /// The agent that works for it.
    pub(crate) agent: Option<AgentCall>,
    /// The time at which it was sent to a tool server: from then on it may have happened.
    pub(crate) requested: Option<Timestamp>,
    pub(crate) result: Option<CallResult>,
    /// The end of its operation, in words, where that came after the result.
    pub(crate) settled: Option<String>,
    /// The form in which the model is sent the result.
    pub(crate) sent: SentAs,
}

/// A question to people about a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Approval {
    pub(crate) id: ApprovalId,
    /// The number of it among the questions about the call, from 1.
    pub(crate) number: u32,
    /// The digest of the request that is approved; nothing if nothing is asked of a runner.
    pub(crate) plan: Option<Digest>,
    /// After that no answer counts.
    pub(crate) until: Timestamp,
    /// The outcome, once there is one.
    pub(crate) answer: Option<Answer>,
}

/// The form in which the model is sent a result.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum SentAs {
    /// As it is.
    #[default]
    Whole,
    /// In short.
    Masked {
        /// The call that had changed the file since, where it read one.
        stale_by: Option<u32>,
    },
    /// As this text.
    Edited(Arc<str>),
}

/// The place of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The time at which an operation of it was first placed.
    pub at: Timestamp,
    /// The one that was placed last.
    pub operation: OperationId,
    /// The place of that one.
    pub place: Place,
}

/// The result of a call, for the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallResult {
    pub(crate) outcome: CallOutcome,
    pub(crate) parts: Parts,
    /// No runner could be given it.
    pub(crate) unplaced: bool,
    /// The event that it still waited for.
    pub(crate) awaits: Option<Awaited>,
    /// The file that it read, wrote or edited.
    pub(crate) file: Option<FileSeen>,
    /// The whole text, where the result is a part of it.
    pub(crate) whole: Option<Digest>,
    /// The tools that it found.
    pub(crate) tools: Vec<String>,
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
            Event::InputAccepted {
                turn,
                parts,
                compacts,
                terms,
                ..
            } if self.turn(*turn).is_none() => {
                let ended_before = std::mem::take(&mut self.ended);
                let input = (parts.clone(), at);
                let turn = TurnLog::new(*turn, input, ended_before);
                self.turns.push(TurnLog {
                    compacts: compacts.clone(),
                    terms: terms.clone(),
                    ..turn
                });
            }
            Event::PlaceSurveyed {
                turn,
                place,
                system,
                folder,
                branch,
                instructions,
                unread,
                project,
            } => {
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
                        None => {
                            before.map_or_else(Arc::default, |before| before.instructions.clone())
                        }
                    },
                    unread: unread.clone(),
                    project: project
                        .as_ref()
                        .map(|file| (file.path.clone(), file.digest)),
                });
                self.shared.survey = Some(survey.clone());
                let mut turns = self.turns.iter_mut().rev();
                if let Some(turn) = turns.find(|known| known.id == *turn) {
                    (turn.survey, turn.is_surveyed) = (Some(survey), true);
                }
            }
            Event::ExtensionsFound { turn, extensions } => {
                let found = Arc::new((**extensions).clone());
                self.shared.extensions = found.clone();
                let mut turns = self.turns.iter_mut().rev();
                if let Some(turn) = turns.find(|known| known.id == *turn) {
                    turn.extensions = found;
                }
            }
            Event::HookEnded { turn, end } => {
                let hook = (end.from.at.clone(), end.on, end.action.clone());
                match end.failed {
                    Some(_) => *self.shared.hook_failures.entry(hook).or_default() += 1,
                    None => {
                        self.shared.hook_failures.remove(&hook);
                    }
                }
                let mut turns = self.turns.iter_mut().rev();
                if let Some(turn) = turns.find(|known| known.id == *turn) {
                    turn.hooks.push((**end).clone());
                }
            }
            Event::ToolsOffered { turn, servers } => {
                // The tools stand before the conversation.
                self.shared.prefix += 1;
                self.shared.offered = servers.as_slice().into();
                let mut turns = self.turns.iter_mut().rev();
                if let Some(turn) = turns.find(|known| known.id == *turn) {
                    turn.offered = self.shared.offered.clone();
                }
            }
            Event::TodoChanged {
                turn, items, found, ..
            } => {
                self.shared.todo = items.as_slice().into();
                let mut turns = self.turns.iter_mut().rev();
                if let Some(turn) = turns.find(|known| *found && known.id == *turn) {
                    turn.found = Some(self.shared.todo.clone());
                }
            }
            Event::PromptChanged { text, .. } => {
                self.shared.prefix += 1;
                self.shared.base = text.as_deref().map(Arc::from);
            }
            Event::ResultsMasked { turn, calls, .. } => {
                self.keep_sent(*turn);
                self.shared.prefix += 1;
                for range in calls {
                    self.mask(range.first..=range.last);
                }
            }
            Event::ContextEdited {
                turn, call, text, ..
            } => {
                self.keep_sent(*turn);
                self.shared.prefix += 1;
                let mut calls = self.turns.iter_mut().flat_map(|turn| &mut turn.steps);
                let call = calls
                    .find_map(|step| step.calls.iter_mut().find(|known| known.number == *call));
                if let Some(known) = call {
                    known.sent = SentAs::Edited(text.as_str().into());
                }
            }
            Event::ContextCompacted {
                gone,
                carried,
                summary,
                ..
            } => {
                self.shared.prefix += 1;
                self.shared.gone = self.shared.gone.max(*gone);
                self.shared.compacted = Some(Compacted {
                    gone: *gone,
                    carried: carried.as_str().into(),
                    summary: summary.as_str().into(),
                });
            }
            Event::OperationSettled { operation, summary } => self.settle(*operation, summary),
            Event::AgentBriefed {
                name, depth, role, ..
            } => {
                self.brief = Some(Arc::new(Brief {
                    name: name.clone(),
                    depth: *depth,
                    role: (**role).clone(),
                }));
            }
            Event::AgentStarted {
                session,
                name,
                role,
                description,
                ..
            } => match self
                .agents
                .iter_mut()
                .find(|known| known.session == *session)
            {
                Some(known) => known.idle_since = None,
                None => self.agents.push(KnownAgent {
                    name: name.clone(),
                    role: role.clone(),
                    description: description.clone(),
                    session: *session,
                    idle_since: None,
                }),
            },
            Event::AgentEnded {
                turn,
                step,
                ordinal,
                session,
                outcome,
                reason,
                answer,
                ..
            } => {
                let end = (*outcome, reason.as_deref(), answer.as_str());
                self.late_agent((*turn, *step, *ordinal), end);
                let mut agents = self.agents.iter_mut();
                if let Some(known) = agents.find(|known| known.session == *session) {
                    known.idle_since = Some(at);
                }
            }
            Event::ConversationRewound { turn, .. } => self.rewind(*turn),
            Event::ResultsLeftOut {
                turn,
                through,
                gone,
                longest,
                ..
            } => {
                self.keep_sent(*turn);
                self.shared.prefix += 1;
                self.shared.left_out = self.shared.left_out.max(*through);
                self.shared.gone = self.shared.gone.max(*gone);
                if let Some(longest) = longest {
                    self.shorten(*turn, usize::try_from(*longest).unwrap_or(usize::MAX));
                }
            }
            _ => {}
        }
        let Some(id) = event.turn() else { return };
        let Some(turn) = self.turns.iter_mut().rev().find(|turn| turn.id == id) else {
            return;
        };
        if let Event::TurnClaimed { .. } = event {
            turn.before.begins(&self.shared);
            turn.extensions = self.shared.extensions.clone();
            turn.offered = self.shared.offered.clone();
        }
        let steps = turn.steps.len();
        if let Some(task) = turn.apply(event, at) {
            self.last_task = self.last_task.max(task.number);
            self.tasks.push(task);
        }
        if let Event::TurnClaimed { .. } = event
            && !turn.is_surveyed
        {
            let runner = turn.runner();
            let last = self.shared.survey.clone();
            turn.survey = last.filter(|survey| survey.runner == runner);
        }
        if let Event::TurnClaimed { .. } = event
            && let Some(settings) = &turn.settings
            && settings.language != self.shared.language
        {
            self.shared.language.clone_from(&settings.language);
            self.shared.prefix += 1;
        }
        for step in &mut turn.steps[steps..] {
            step.prefix = self.shared.prefix;
            for call in &mut step.calls {
                self.shared.calls = self.shared.calls.saturating_add(1);
                call.number = self.shared.calls;
            }
        }
    }

    /// The number of changes so far to what stands before the next answer. A vendor that binds a thought to all before
    /// it takes the thoughts of an answer back only where this number is still that of the answer.
    pub(crate) fn prefix(&self) -> u32 {
        self.shared.prefix
    }

    /// Of what there is up to and with this turn, no text is sent with more bytes.
    fn shorten(&mut self, through: TurnId, longest: usize) {
        let place = self.turns.iter().rposition(|turn| turn.id == through);
        for turn in &mut self.turns[..place.map_or(0, |place| place + 1)] {
            turn.longest = turn.longest.min(longest);
            for steer in &mut turn.steers {
                steer.longest = steer.longest.min(longest);
            }
            for step in &mut turn.steps {
                step.longest = step.longest.min(longest);
            }
        }
    }

    fn settle(&mut self, operation: OperationId, summary: &str) {
        if self.settled.contains(&operation) {
            return;
        }
        let mut tasks = self.tasks.iter_mut();
        let late = match tasks.find(|task| task.placed.operation == operation) {
            Some(task) => {
                task.ended = Some(summary.to_owned());
                Some((task.turn, Some(task.number), task.asked.clone()))
            }
            None => self.without_an_end(operation),
        };
        if let Some((turn, task, asked)) = late {
            let steps = self.turns.iter_mut().rev().flat_map(|turn| &mut turn.steps);
            let is_it = |call: &&mut Call| {
                let placed = call.placed.as_ref();
                placed.is_some_and(|placed| placed.operation == operation)
            };
            if let Some(call) = steps.flat_map(|step| &mut step.calls).find(is_it) {
                call.settled = Some(summary.to_owned());
            }
            self.settled.push(operation);
            self.ended.push(LateEnd {
                turn,
                task,
                agent: None,
                asked,
                summary: summary.to_owned(),
            });
        }
    }

    /// The agent of a call that does not wait for it has ended: the model is told before the next message.
    fn late_agent(
        &mut self,
        (turn, step, ordinal): (TurnId, u32, u32),
        (outcome, reason, answer): (TurnOutcome, Option<&str>, &str),
    ) {
        /// Longest part of its last words that the note has, in bytes.
        const WORDS: usize = 4 * 1024;
        let call = self.turn(turn).and_then(|turn| turn.step(step));
        let call = call.and_then(|step| step.calls.get(ordinal as usize));
        let Some(call) = call else { return };
        let agent = call.agent.as_ref();
        let Some(agent) = agent.filter(|agent| agent.background && agent.ended.is_none()) else {
            return;
        };
        let how = match (outcome, reason) {
            (TurnOutcome::Completed, _) => "it completed".to_owned(),
            (TurnOutcome::Failed, Some(reason)) => format!("it failed: {reason}"),
            (TurnOutcome::Failed, None) => "it failed".to_owned(),
            (TurnOutcome::Cancelled | TurnOutcome::Interrupted, _) => "it was stopped".to_owned(),
        };
        let words = match bounded(answer.trim(), WORDS) {
            none if none.is_empty() => String::new(),
            words => format!("; its last words were:\n{words}\n"),
        };
        let late = LateEnd {
            turn,
            task: None,
            agent: Some(agent.name.clone()),
            asked: call.asked.clone(),
            summary: how + &words,
        };
        self.ended.push(late);
    }

    /// The call of this operation, where the model was told that it does not know its end.
    fn without_an_end(&self, operation: OperationId) -> Option<(TurnId, Option<u32>, ToolCall)> {
        let mut calls = self.turns.iter().rev().flat_map(|turn| {
            let calls = turn.steps.iter().flat_map(|step| &step.calls);
            calls.map(|call| (turn.id, call))
        });
        let (turn, call) = calls.find(|(_, call)| {
            let placed = call.placed.as_ref().map(|placed| placed.operation);
            placed == Some(operation)
        })?;
        let outcome = call.result.as_ref()?.outcome;
        let is_open = matches!(
            outcome,
            CallOutcome::Unknown | CallOutcome::Cancelled | CallOutcome::TimedOut
        );
        is_open.then(|| (turn, None, call.asked.clone()))
    }

    /// The task of the agent that works in the session; absent in a person's own.
    pub(crate) fn brief(&self) -> Option<&Brief> {
        self.brief.as_deref()
    }

    /// The agents that calls of the session have ever begun.
    pub(crate) fn agents(&self) -> &[KnownAgent] {
        &self.agents
    }

    pub(crate) fn directory(&self) -> &Arc<str> {
        &self.directory
    }

    /// The tasks of the session, in the order of the numbers.
    pub(crate) fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The most tasks that can be running, by this log. Calls that continue as tasks count also if
    /// their place is not known.
    pub(crate) fn tasks_at_most(&self) -> usize {
        let steps = self.turns.iter().flat_map(|turn| &turn.steps);
        let begun = steps.flat_map(|step| &step.calls).filter(|call| {
            let outcome = call.result.as_ref().map(|result| result.outcome);
            outcome == Some(CallOutcome::Background)
        });
        let ended = self.tasks.iter().filter(|task| task.ended.is_some());
        let ended = ended.filter(|task| self.turn(task.turn).is_some());
        // Those of turns that are no part of the conversation any more run on.
        let others = self.running_tasks();
        let others = others.filter(|task| self.turn(task.turn).is_none());
        begun.count().saturating_sub(ended.count()) + others.count()
    }

    /// The tasks without a known end.
    pub(crate) fn running_tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| task.ended.is_none())
    }

    /// The number of the next task.
    pub(crate) fn next_task(&self) -> u32 {
        self.last_task.saturating_add(1)
    }

    pub(crate) fn turns(&self) -> &[TurnLog] {
        &self.turns
    }

    pub(crate) fn turn(&self, id: TurnId) -> Option<&TurnLog> {
        self.turns.iter().rev().find(|turn| turn.id == id)
    }

    /// The turns up to and with this one: what the model knows while it works on it.
    pub(crate) fn up_to(&self, id: TurnId) -> &[TurnLog] {
        let place = self.turns.iter().rposition(|turn| turn.id == id);
        &self.turns[..place.map_or(0, |place| place + 1)]
    }

    /// The number of calls, counted from the conversation's oldest, that are sent to the model in
    /// short.
    pub(crate) fn left_out(&self) -> u32 {
        self.shared.left_out
    }

    /// The number of parts, counted from the conversation's oldest, that are not sent to the model
    /// at all.
    pub(crate) fn gone(&self) -> u32 {
        self.shared.gone
    }

    /// The operator's text with which the system prompt begins.
    pub(crate) fn base(&self) -> Option<&str> {
        self.shared.base.as_deref()
    }

    /// How often this hook failed in a row.
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

    /// The text in place of the oldest parts.
    pub(crate) fn compacted(&self) -> Option<&Compacted> {
        self.shared.compacted.as_ref()
    }

    /// The number of the last call that is not sent at all; 0 if all are.
    pub(crate) fn calls_gone(&self) -> u32 {
        let (mut part, mut last) = (0, 0);
        for turn in &self.turns {
            part += 1;
            for step in &turn.steps {
                part += 1;
                for call in &step.calls {
                    part += 1;
                    if part > self.shared.gone {
                        return last;
                    }
                    last = call.number;
                }
            }
        }
        last
    }

    /// Every call, the oldest first.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        let steps = self.turns.iter().flat_map(|turn| &turn.steps);
        steps.flat_map(|step| &step.calls)
    }

    /// The results of these calls are sent in short from now on.
    fn mask(&mut self, numbers: RangeInclusive<u32>) {
        // The newest change of each file.
        let changes: HashMap<String, u32> = self
            .calls()
            .filter_map(|call| Some((call.file()?, call.number)))
            .filter(|(file, _)| file.changed)
            .map(|(file, number)| (file.path.clone(), number))
            .collect();
        let steps = self.turns.iter_mut().flat_map(|turn| &mut turn.steps);
        for call in steps.flat_map(|step| &mut step.calls) {
            if !numbers.contains(&call.number) || call.sent != SentAs::Whole {
                continue;
            }
            let changed = call.file().and_then(|file| changes.get(&file.path));
            call.sent = SentAs::Masked {
                stale_by: changed.copied().filter(|by| *by > call.number),
            };
        }
    }

    /// The newest call that has changed the file since, where this one read, wrote or edited one.
    pub(crate) fn stale_by(&self, call: &Call) -> Option<u32> {
        let file = call.file()?;
        let changes = |other: &&Call| {
            let seen = other.file();
            seen.is_some_and(|seen| seen.changed && seen.path == file.path)
        };
        let later = self.calls().filter(|other| other.number > call.number);
        later.filter(changes).last().map(|other| other.number)
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
        if let Some(turn) = self.turns.iter_mut().rev().find(|turn| turn.id == id) {
            turn.cancel_requested = true;
        }
    }

    /// Notes that this turn has reached a limit, before the model is asked for the summary.
    pub(crate) fn note_limit(&mut self, id: TurnId, limit: TurnLimit) {
        if let Some(turn) = self.turns.iter_mut().rev().find(|turn| turn.id == id) {
            turn.limit = Some(limit);
        }
    }
}

impl TurnLog {
    fn new(id: TurnId, (input, asked_at): (Parts, Timestamp), ended_before: Vec<LateEnd>) -> Self {
        Self {
            id,
            input,
            terms: Terms::default(),
            compacts: None,
            is_compacted: false,
            longest: usize::MAX,
            asked_at,
            ended_before,
            choice: None,
            settings: None,
            agreed: None,
            survey: None,
            found: None,
            is_surveyed: false,
            extensions: Arc::default(),
            hooks: Vec::new(),
            offered: Arc::default(),
            before: Before::default(),
            steers: Vec::new(),
            steps: Vec::new(),
            limit: None,
            cancel_requested: false,
            is_interrupted: false,
            ended: None,
        }
    }

    /// The end of the hook of this number at this point, if it ran.
    pub(crate) fn hook_end(&self, point: HookPoint, number: u32) -> Option<&HookEnd> {
        self.hook_ends(point).find(|end| end.number == number)
    }

    /// The ends of the hooks that ran at this point.
    pub(crate) fn hook_ends(&self, point: HookPoint) -> impl Iterator<Item = &HookEnd> {
        let is_there = move |end: &&HookEnd| {
            (end.on, end.step, end.ordinal) == (point.on, point.step, point.ordinal)
        };
        self.hooks.iter().filter(is_there)
    }

    /// True if a hook wants the turn to go on behind the last word of this step.
    pub(crate) fn is_kept_going(&self, step: u32) -> bool {
        let mut ends = self.hooks.iter();
        ends.any(|end| {
            end.on == HookEvent::AgentStop
                && end.step == step
                && end.decision == Some(HookDecision::Deny)
        })
    }

    /// True if this turn works where a call of an earlier turn ran: on the same runner, and in the workspace that
    /// was chosen there. All calls of one turn run at one place.
    fn works_where(&self, earlier: &Self, call: &Call) -> bool {
        let (Some(choice), Some(before)) = (&self.choice, &earlier.choice) else {
            return false;
        };
        let runner = choice.runner().map(|(runner, _)| runner);
        let ran_on = call.placed.as_ref().map(|placed| placed.place.runner);
        runner.is_some() && runner == ran_on && choice.workspace() == before.workspace()
    }

    /// The agents that its calls have begun.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &AgentCall> {
        let calls = self.steps.iter().flat_map(|step| &step.calls);
        calls.filter_map(|call| call.agent.as_ref())
    }

    /// The most tokens that it may use, where every turn may use so many.
    pub(crate) fn most_tokens(&self, of_all: u64) -> u64 {
        self.terms.tokens.map_or(of_all, |most| most.min(of_all))
    }

    /// The tokens that it has used, with those of its agents that have ended.
    pub(crate) fn tokens(&self) -> u64 {
        let own = self.steps.iter().map(|step| step.tokens);
        let ends = self.agents().filter_map(|agent| agent.ended.as_ref());
        let of_agents = ends.map(|end| end.tokens);
        own.chain(of_agents).fold(0, u64::saturating_add)
    }

    /// The tokens that it may still give to an agent: what it and its agents have used is gone, and so is what those at
    /// work may use.
    pub(crate) fn tokens_left(&self, of_all: u64) -> u64 {
        let at_work = self.agents().filter(|agent| agent.ended.is_none());
        let reserved = at_work
            .map(|agent| agent.tokens)
            .fold(0, u64::saturating_add);
        let used = self.tokens().saturating_add(reserved);
        self.most_tokens(of_all).saturating_sub(used)
    }

    /// The runner of its calls.
    pub(crate) fn runner(&self) -> Option<RunnerId> {
        self.choice.as_ref()?.runner().map(|(runner, _)| runner)
    }

    /// The isolation that was proved at its place when this turn looked there; none where that is not known.
    pub(crate) fn isolation(&self) -> Isolation {
        let survey = self.survey.as_ref().filter(|_| self.is_surveyed);
        let place = survey.and_then(|survey| survey.place.as_ref());
        place.map_or_else(Isolation::none, |place| place.isolation.clone())
    }

    /// The most freedom that the tenant and the runner's machine leave; nothing where they leave all.
    pub(crate) fn ceiling(&self) -> Option<Mode> {
        let settings = self.settings.as_ref()?;
        let ceilings = settings.ceiling.into_iter().chain(settings.machine_ceiling);
        ceilings.min()
    }

    /// True if the runner's machine wants a person to approve each call that its mode does not allow, whatever the
    /// rules say.
    pub(crate) fn only_people_allow(&self) -> bool {
        let settings = self.settings.as_ref();
        let ceiling = settings.and_then(|settings| settings.machine_ceiling);
        ceiling.is_some_and(|ceiling| ceiling < Mode::Full)
    }

    /// Its mode. Where none is set, a place that is proved to keep its work apart has more freedom.
    pub(crate) fn mode(&self) -> Mode {
        self.bounded(self.agreed.unwrap_or_else(|| self.began_in()))
    }

    /// The mode in which it began.
    pub(crate) fn began_in(&self) -> Mode {
        let set = self.settings.as_ref().and_then(|settings| settings.mode);
        let mode = set.or(self.terms.mode);
        self.bounded(
            mode.unwrap_or_else(|| match self.isolation() == Isolation::none() {
                true => Mode::Ask,
                false => Mode::Auto,
            }),
        )
    }

    fn bounded(&self, mode: Mode) -> Mode {
        self.ceiling().map_or(mode, |ceiling| mode.min(ceiling))
    }

    /// The steer of this number.
    pub(crate) fn steer(&self, number: u32) -> Option<&Steer> {
        self.steers.iter().find(|steer| steer.number == number)
    }

    /// The messages that joined it while it worked.
    pub(crate) fn steers(&self) -> &[Steer] {
        &self.steers
    }

    pub(crate) fn step(&self, number: u32) -> Option<&Step> {
        self.steps.iter().find(|step| step.number == number)
    }

    /// Returns the task that this begins.
    fn apply(&mut self, event: &Event, at: Timestamp) -> Option<Task> {
        match event {
            Event::TurnClaimed {
                choice, settings, ..
            } => {
                self.choice = self.choice.take().or_else(|| choice.clone());
                let settings = settings
                    .clone()
                    .map(|settings| self.terms.of_turn(settings));
                self.settings = self.settings.take().or(settings);
            }
            Event::AnswerRecorded {
                step,
                model,
                origin,
                parts,
                finish,
                usage,
                estimated,
                model_ms,
                limit,
                ..
            } if self.step(*step).is_none() => self.steps.push(Step {
                number: *step,
                model: model.clone(),
                origin: origin.clone(),
                parts: parts.clone(),
                longest: usize::MAX,
                prefix: 0,
                estimated: *estimated,
                counted: usage.input,
                tokens: usage.input.saturating_add(usage.output),
                model_ms: *model_ms,
                limit: *limit,
                finish: *finish,
                calls: parts.calls().cloned().map(Call::new).collect(),
            }),
            Event::ApprovalAsked {
                step,
                ordinal,
                approval,
                plan,
                until,
                ..
            } => {
                if let Some(call) = self.call_mut(*step, *ordinal) {
                    let before = call.approval.as_ref().map_or(0, |before| before.number);
                    call.approval = Some(Approval {
                        id: *approval,
                        number: before + 1,
                        plan: *plan,
                        until: *until,
                        answer: None,
                    });
                }
            }
            Event::ApprovalAnswered {
                step,
                ordinal,
                approval,
                answer,
                ..
            } => {
                if let Answer::Allowed {
                    mode: Some(mode), ..
                } = answer
                {
                    self.agreed = Some(*mode);
                }
                let call = self.call_mut(*step, *ordinal);
                let known = call.and_then(|call| call.approval.as_mut());
                if let Some(known) = known.filter(|known| known.id == *approval) {
                    known.answer.get_or_insert_with(|| answer.clone());
                }
            }
            Event::CallPlaced {
                step,
                ordinal,
                operation,
                place,
                ..
            } => {
                if let Some(call) = self.call_mut(*step, *ordinal) {
                    let at = call.placed.as_ref().map_or(at, |before| before.at);
                    call.placed = Some(Placed {
                        at,
                        operation: *operation,
                        place: place.clone(),
                    });
                }
            }
            Event::AgentStarted {
                step,
                ordinal,
                session,
                agent_turn,
                name,
                background,
                tokens,
                ..
            } => {
                if let Some(call) = self.call_mut(*step, *ordinal) {
                    call.agent.get_or_insert_with(|| AgentCall {
                        name: name.clone(),
                        session: *session,
                        turn: *agent_turn,
                        background: *background,
                        tokens: *tokens,
                        at,
                        ended: None,
                    });
                }
            }
            Event::AgentEnded {
                step,
                ordinal,
                agent_turn,
                outcome,
                reason,
                answer,
                tokens,
                ..
            } => {
                let call = self.call_mut(*step, *ordinal);
                let agent = call.and_then(|call| call.agent.as_mut());
                if let Some(agent) = agent.filter(|agent| agent.turn == *agent_turn) {
                    agent.ended.get_or_insert_with(|| AgentEnd {
                        outcome: *outcome,
                        reason: reason.clone(),
                        answer: answer.clone(),
                        tokens: *tokens,
                    });
                }
            }
            Event::CallSent { step, ordinal, .. } => {
                if let Some(call) = self.call_mut(*step, *ordinal) {
                    call.requested.get_or_insert(at);
                }
            }
            Event::CallEnded {
                step,
                ordinal,
                outcome,
                parts,
                unplaced,
                task,
                awaits,
                file,
                whole,
                tools,
                ..
            } => {
                let result = CallResult {
                    outcome: *outcome,
                    parts: parts.clone(),
                    unplaced: *unplaced,
                    awaits: *awaits,
                    file: file.clone(),
                    whole: *whole,
                    tools: tools.clone(),
                };
                return self.end_call((*step, *ordinal), result, *task);
            }
            Event::CancelRequested { why, .. } => {
                self.cancel_requested = true;
                self.is_interrupted = *why == Some(StopReason::InterruptedByMessage);
            }
            Event::InputSteered { .. } | Event::SteersTaken { .. } => self.apply_steers(event),
            Event::ContextCompacted { .. } => self.is_compacted = true,
            Event::TurnEnded { outcome, .. } => {
                self.ended.get_or_insert(*outcome);
            }
            _ => {}
        }
        None
    }

    fn end_call(
        &mut self,
        (step, ordinal): (u32, u32),
        result: CallResult,
        task: Option<u32>,
    ) -> Option<Task> {
        let turn = self.id;
        let call = self.call_mut(step, ordinal)?;
        if call.result.is_some() {
            return None;
        }
        call.result = Some(result);
        Some(Task {
            number: task?,
            turn,
            step,
            ordinal,
            asked: call.asked.clone(),
            placed: call.placed.clone()?,
            ended: None,
        })
    }

    fn call_mut(&mut self, step: u32, ordinal: u32) -> Option<&mut Call> {
        self.steps
            .iter_mut()
            .find(|known| known.number == step)?
            .calls
            .get_mut(ordinal as usize)
    }
}

impl Step {
    /// The number of its last call; 0 without one.
    pub(crate) fn number_of_last(&self) -> u32 {
        self.calls.last().map_or(0, |call| call.number)
    }

    /// The reason that no runner could be given the calls of this step, if so.
    pub(crate) fn unplaced(&self) -> Option<String> {
        let results = self.calls.iter().filter_map(|call| call.result.as_ref());
        let unplaced = results.into_iter().find(|result| result.unplaced);
        unplaced.map(|result| {
            let words = result.parts.words();
            match words.strip_prefix(NOT_RUN) {
                Some(reason) => reason.to_owned(),
                None => words.into_owned(),
            }
        })
    }

    /// True if the end of one of these calls is not known because its runner stayed away.
    pub(crate) fn is_cut_off(&self) -> bool {
        let mut results = self.calls.iter().filter_map(|call| call.result.as_ref());
        results.any(|result| {
            let CallResult {
                outcome, awaits, ..
            } = result;
            *outcome == CallOutcome::Unknown && *awaits == Some(Awaited::Runner)
        })
    }

    /// True if the answer has words for the reader.
    pub(crate) fn has_words(&self) -> bool {
        !self.parts.words().trim().is_empty()
    }

    /// The calls that have no result yet, by their place in the answer.
    pub(crate) fn pending(&self) -> Vec<u32> {
        (0..)
            .zip(&self.calls)
            .filter(|(_, call)| call.result.is_none())
            .map(|(ordinal, _)| ordinal)
            .collect()
    }
}

impl CallResult {
    /// True if the model is told the same by both.
    pub(crate) fn says_what(&self, other: &Self) -> bool {
        (self.outcome, &self.parts) == (other.outcome, &other.parts)
            && (self.unplaced, self.awaits) == (other.unplaced, other.awaits)
    }
}

impl Call {
    /// The file that it read, wrote or edited.
    pub(crate) fn file(&self) -> Option<&FileSeen> {
        self.result.as_ref()?.file.as_ref()
    }

    fn new(asked: ToolCall) -> Self {
        Self {
            number: 0,
            asked,
            approval: None,
            placed: None,
            agent: None,
            requested: None,
            result: None,
            settled: None,
            sent: SentAs::Whole,
        }
    }
}
