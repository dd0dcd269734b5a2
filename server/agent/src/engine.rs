//! The engine: the parts that live as long as the process, and the bounds of every turn.

use std::{sync::Arc, time::Duration};

use server_records::SetRule;
use shared_types::{CallWait, Clock, Epoch, TurnId, event::TurnOutcome, limits};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    session::SessionPorts,
    tools::ToolSource,
    turn::{Turn, TurnError, TurnWork, abandon},
    wait::WaitingCall,
    web::Web,
};

/// Runs turns. One serves every session; it keeps nothing of any of them.
pub struct Engine {
    pub(crate) sources: Vec<Arc<dyn ToolSource>>,
    pub(crate) web: Arc<dyn Web>,
    pub(crate) limits: EngineLimits,
    /// The operator's rules about what agents may do.
    pub(crate) rules: Vec<SetRule>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The work on turns that this replica may do now.
    pub(crate) work: watch::Sender<TurnWork>,
}

/// A turn that a worker has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The turn.
    pub turn: TurnId,
    /// The epoch that its writes carry.
    pub epoch: Epoch,
    /// The waits of its calls when a worker let go of it.
    pub waited: Vec<CallWait>,
    /// The epoch of the worker that was lost with it, if one was.
    pub interrupted: Option<Epoch>,
}

/// The point to which a turn was carried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carried {
    /// To its end.
    Ended(TurnOutcome),
    /// A point where nothing of it is under way, so that another replica may carry it on.
    LetGo,
    /// A point where it only waits for these calls. The worker that runs it again after that names
    /// them in [`Claim::waited`].
    Waits(Vec<WaitingCall>),
}

/// The bounds of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineLimits {
    /// Most model calls in a turn that does not say its own.
    pub max_steps: u32,
    /// Most tokens of a turn, sent and received, as its answers count them.
    pub turn_tokens: u64,
    /// Most time of a turn in which the model is asked, as its answers tell it.
    pub turn_model_time: Duration,
    /// Most tool calls in one answer; those above are refused.
    pub max_calls: u32,
    /// A turn fails once this many steps in a row asked for the same and got the same.
    pub same_steps: usize,
    /// Tokens that fit into one request and its answer, for models without a known window. Where neither is known,
    /// results are left out only once the model has refused a request as too long.
    pub model_window: Option<usize>,
    /// Time for one answer of the model, with every attempt at it.
    pub model_time: Duration,
    /// Most calls that run at the same time; only those that read do.
    pub parallel_reads: usize,
    /// Longest text of a result that the model is shown, in bytes; at least 1024.
    pub result_bytes: usize,
    /// An operation starts within this time or not at all.
    pub start_within: Duration,
    /// The time that a look at a task waits for a runner that was heard of within its lease.
    pub away_at_most: Duration,
    /// The time that a turn waits for a runner that is gone.
    pub parked_at_most: Duration,
    /// The time that a call waits for its runner or its command before its turn can be parked.
    pub parks_after: Duration,
    /// Most commands of a session that may be running in the background when one more is begun.
    pub tasks_at_most: usize,
    /// Agents below one another at most.
    pub agents_deep: u32,
    /// Most agents that one turn begins.
    pub agents_of_turn: u32,
    /// Most turns of a tenant's agents that this process carries at the same time.
    pub agents_at_once: usize,
    /// Most conversations of a user.
    pub sessions_at_most: u64,
    /// The time for which an agent that has ended still takes messages.
    pub agents_idle: Duration,
    /// The time in which an agent has to end; a call that waits for it waits no longer.
    pub agents_within: Duration,
    /// The time in which people may answer a question.
    pub answer_within: Duration,
    /// The time that a turn that is being cancelled waits for an operation to end.
    pub stop_within: Duration,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self {
            max_steps: limits::USUAL_STEPS,
            turn_tokens: 20_000_000,
            turn_model_time: Duration::from_secs(2 * 60 * 60),
            max_calls: 64,
            same_steps: 4,
            model_window: None,
            model_time: Duration::from_secs(2 * 60 * 60),
            parallel_reads: 8,
            result_bytes: 10 * 1024,
            start_within: Duration::from_secs(60),
            away_at_most: limits::AWAY_AT_MOST,
            parked_at_most: limits::PARKED_AT_MOST,
            parks_after: limits::PARKS_AFTER,
            tasks_at_most: 16,
            agents_deep: 3,
            agents_of_turn: 16,
            agents_at_once: 3,
            sessions_at_most: 10_000,
            agents_idle: Duration::from_secs(30 * 60),
            // An agent may wait for an answer of a person.
            agents_within: Duration::from_secs(7 * 24 * 60 * 60),
            answer_within: Duration::from_secs(7 * 24 * 60 * 60),
            stop_within: limits::KILL_GRACE + Duration::from_secs(5),
        }
    }
}

impl EngineLimits {
    /// Longest text of the result of one of so many calls of an answer, in bytes. Together they leave half of the
    /// model's window, in tokens, to the rest of the conversation.
    pub(crate) fn result_bytes_of(&self, calls: usize, window: Option<usize>) -> usize {
        /// A result of less says nothing.
        const LEAST: usize = 1024;
        let half = window.map(|window| window.saturating_mul(3) / 2);
        let share = half.map_or(usize::MAX, |half| half / calls.max(1));
        self.result_bytes.min(share.max(LEAST))
    }
}

impl Engine {
    /// An engine that offers models the tools of these sources. Those for the web ask this one.
    pub fn new(
        sources: Vec<Arc<dyn ToolSource>>,
        web: Arc<dyn Web>,
        limits: EngineLimits,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            sources,
            web,
            limits,
            rules: Vec::new(),
            clock,
            work: watch::Sender::new(TurnWork::All),
        }
    }

    /// The engine with these rules of the operator's about what agents may do.
    #[must_use]
    pub fn with_rules(self, rules: Vec<SetRule>) -> Self {
        Self { rules, ..self }
    }

    /// Carries the turn from wherever its log stands to its end, or to where it only waits. A turn
    /// that has ended already is left as it is.
    ///
    /// Cancelling `cancel` ends the turn as cancelled; so does a recorded wish to cancel.
    /// Dropping the future is what a shutdown does: what runs goes on running, and running the
    /// turn again attaches to it.
    ///
    /// # Errors
    /// Nothing more can be recorded; the turn stays unfinished.
    pub async fn run_turn(
        &self,
        ports: &SessionPorts,
        claim: Claim,
        cancel: CancellationToken,
    ) -> Result<Carried, TurnError> {
        Turn::load(self, ports, claim, &cancel).await?.run().await
    }

    /// True if turns are let go of where the model would be asked.
    pub(crate) fn lets_go(&self) -> bool {
        *self.work.borrow() == TurnWork::LetsGo
    }

    /// Ends a turn that cannot be carried to its end: its operations are stopped, its calls without
    /// a result end, and the turn ends with this outcome and reason. A turn that has ended already
    /// is left as it is.
    ///
    /// # Errors
    /// Nothing can be recorded; the turn stays unfinished.
    pub async fn abandon_turn(
        &self,
        ports: &SessionPorts,
        turn: TurnId,
        epoch: Epoch,
        outcome: TurnOutcome,
        reason: Option<String>,
    ) -> Result<(), TurnError> {
        let within = self.limits.stop_within;
        abandon(ports, (turn, epoch), within, outcome, reason).await
    }
}
