//! One turn: its input, its steps and its end.

use std::sync::Arc;

use shared_types::{
    Event, Isolation, Mode, RunnerId, Timestamp, TurnId,
    event::{
        Answer, Choice, Extensions, HookDecision, HookEnd, HookEvent, OfferedServer, Parts,
        StopReason, Terms, TodoItem, TurnLimit, TurnOutcome, TurnSettings, WorktreeState,
    },
};

use super::{AgentCall, Call, CallResult, LateEnd, Steer, Step, SurveyLog, Task, rewind::Before};
use crate::hooks::HookPoint;

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
    /// Its hooks that were sent to addresses or tool servers, by their points and numbers.
    pub(super) hooks_sent: Vec<(HookPoint, u32)>,
    /// The state of the agent's worktree, as this turn has left it so far.
    pub(crate) worktree: Option<WorktreeState>,
    /// The tools of tool servers that the model is offered in it.
    pub(crate) offered: Arc<[OfferedServer]>,
    /// The state before it, to go back to.
    pub(super) before: Before,
    /// The messages that joined it while it worked.
    pub(super) steers: Vec<Steer>,
    pub(crate) steps: Vec<Step>,
    /// The limit that it has reached: its next answer is the last one, a summary.
    pub(crate) limit: Option<TurnLimit>,
    pub(crate) cancel_requested: bool,
    /// True if that was so that a newer message takes its place.
    pub(crate) is_interrupted: bool,
    pub(crate) ended: Option<TurnOutcome>,
}

impl TurnLog {
    pub(super) fn new(
        id: TurnId,
        (input, asked_at): (Parts, Timestamp),
        ended_before: Vec<LateEnd>,
    ) -> Self {
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
            hooks_sent: Vec::new(),
            worktree: None,
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

    /// True if the hook of this number at this point was sent to an address or a tool server.
    pub(crate) fn was_hook_sent(&self, point: HookPoint, number: u32) -> bool {
        self.hooks_sent.contains(&(point, number))
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
    pub(super) fn works_where(&self, earlier: &Self, call: &Call) -> bool {
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

    pub(super) fn bounded(&self, mode: Mode) -> Mode {
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

    /// Applies an event of this turn. Returns the task that it begins.
    pub(super) fn apply(&mut self, event: &Event, at: Timestamp) -> Option<Task> {
        match event {
            Event::TurnClaimed {
                choice, settings, ..
            } => self.claim(choice.as_ref(), settings.as_ref()),
            Event::AnswerRecorded { step, .. } if self.step(*step).is_none() => {
                self.steps.extend(Step::of(event));
            }
            Event::ApprovalAnswered {
                step,
                ordinal,
                answer,
                ..
            } => {
                self.agree(answer);
                self.apply_to_call((*step, *ordinal), event, at);
            }
            Event::ApprovalAsked { step, ordinal, .. }
            | Event::CallPlaced { step, ordinal, .. }
            | Event::CallSent { step, ordinal, .. }
            | Event::ChatStarted { step, ordinal, .. }
            | Event::AgentStarted { step, ordinal, .. }
            | Event::AgentEnded { step, ordinal, .. } => {
                self.apply_to_call((*step, *ordinal), event, at);
            }
            Event::CallEnded {
                step,
                ordinal,
                task,
                ..
            } => return self.end_call((*step, *ordinal), CallResult::of(event)?, *task),
            Event::HookSent {
                on,
                step,
                ordinal,
                number,
                ..
            } => {
                let (on, step, ordinal) = (*on, *step, *ordinal);
                let point = HookPoint { on, step, ordinal };
                self.hooks_sent.push((point, *number));
            }
            Event::WorktreeChanged { state, .. } => self.worktree = Some(*state),
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

    /// Takes the runner and the settings of the first claim that names them.
    fn claim(&mut self, choice: Option<&Choice>, settings: Option<&TurnSettings>) {
        self.choice = self.choice.take().or_else(|| choice.cloned());
        let settings = settings.map(|settings| self.terms.of_turn(settings.clone()));
        self.settings = self.settings.take().or(settings);
    }

    fn agree(&mut self, answer: &Answer) {
        if let Answer::Allowed {
            mode: Some(mode), ..
        } = answer
        {
            self.agreed = Some(*mode);
        }
    }

    fn apply_to_call(&mut self, (step, ordinal): (u32, u32), event: &Event, at: Timestamp) {
        if let Some(call) = self.call_mut(step, ordinal) {
            call.apply(event, at);
        }
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
