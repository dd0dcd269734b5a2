//! One tool call: from the model's words to the one end that is recorded.
//!
//! A call is run as an operation whose id is derived from the call's place in the session, so
//! that running the call again, here or on another replica, attaches to what runs already. It gets
//! a second operation only where the first one is known never to have run, and that is stored, or
//! where it merely reads.

use std::{sync::Arc, time::Duration};

use shared_sandbox::{Operation, OperationEvent, OperationLimits, Outcome};
use shared_types::{
    Effect, Epoch, Event, OperationId, OperationKey, Owner, RefusalCode, Timestamp, TurnId,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Turn, TurnError,
    again::{Again, Attempts},
    follow::{Follow, Followed},
    told::{Told, not_run, wall},
};
use crate::{
    engine::Engine,
    session::SessionPorts,
    tools::{Arguments, BadArguments, Prepared, Rendered, Tool},
    transcript,
};

/// Where a call stands and what it is run with.
pub(super) struct Site<'a> {
    pub(super) engine: &'a Engine,
    pub(super) ports: &'a SessionPorts,
    pub(super) cancel: CancellationToken,
    pub(super) epoch: Epoch,
    pub(super) turn: TurnId,
    pub(super) step: u32,
    pub(super) ordinal: u32,
}

/// A call that waits to be run.
pub(super) struct Call<'a> {
    site: Site<'a>,
    plan: Result<Plan, BadArguments>,
    /// When an earlier run of the turn placed it.
    placed: Option<Timestamp>,
}

struct Plan {
    tool: Arc<dyn Tool>,
    prepared: Prepared,
}

/// A call that ended.
pub(super) struct Done {
    /// To be recorded.
    pub(super) event: Event,
    /// What the sandbox may forget once it is.
    pub(super) settled: Vec<OperationId>,
    /// Whose end is not known, and which nobody asks for once it is.
    pub(super) left: Option<OperationId>,
    /// The end of its operation, to be stored with the event.
    pub(super) end: Option<End>,
}

/// How an operation ended.
pub(super) struct End {
    pub(super) operation: OperationId,
    pub(super) outcome: Outcome,
    /// While it is held, the sandbox leaves it to us to store the end.
    _stream: Option<mpsc::Receiver<OperationEvent>>,
}

impl<'a> Call<'a> {
    pub(super) fn plan(turn: &Turn<'a>, step: u32, ordinal: u32, call: &transcript::Call) -> Self {
        let max_calls = turn.engine.limits.max_calls;
        let plan = match ordinal < max_calls {
            true => Plan::of(turn.engine, &call.asked.name, &call.asked.arguments),
            false => Err(BadArguments::new(format!(
                "one answer may ask for at most {max_calls} calls; ask for the others in the next one"
            ))),
        };
        Self {
            site: Site {
                engine: turn.engine,
                ports: turn.ports,
                cancel: turn.cancel.clone(),
                epoch: turn.epoch,
                turn: turn.id,
                step,
                ordinal,
            },
            plan,
            placed: call.placed,
        }
    }

    /// Whether it may run beside others: it only reads, or does nothing at all.
    pub(super) fn only_reads(&self) -> bool {
        match &self.plan {
            Ok(plan) => plan.tool.effect() == Effect::Pure,
            Err(_) => true,
        }
    }

    pub(super) async fn run(self) -> Result<Done, TurnError> {
        match &self.plan {
            Ok(plan) => self.operate(plan).await,
            Err(bad) => Ok(self.done(not_run(bad), Times::default())),
        }
    }

    async fn operate(&self, plan: &Plan) -> Result<Done, TurnError> {
        let clock = &self.site.engine.clock;
        let began = clock.monotonic();
        let started = self.placed.unwrap_or_else(|| clock.now());
        let mut settled = Vec::new();
        let mut attempts = Attempts::default();
        loop {
            let mut follow = Follow::new(&self.site, self.operation(plan, attempts.number));
            let followed = follow.run_to_its_end().await;
            if followed.refusal() == Some(RefusalCode::StaleEpoch) {
                return Err(TurnError::StaleEpoch);
            }
            if followed.is_settled() {
                settled.push(follow.operation.id);
            }
            let limits = &self.site.engine.limits;
            let again = attempts.after(plan.tool.effect(), limits, &follow, &followed);
            let followed = match self.go_on(&again, &mut follow, followed).await {
                Ok(()) => {
                    attempts = attempts.next(&again);
                    continue;
                }
                Err(followed) => followed,
            };
            let told = Told {
                tool: &*plan.tool,
                follow: &follow,
                started,
                was_placed: self.placed.is_some(),
                limit: self.site.engine.limits.result_bytes,
            };
            let times = Times {
                budget: plan.prepared.run_for,
                duration: clock.monotonic().saturating_sub(began).max(wall(&followed)),
            };
            let done = self.done(told.of(&followed), times);
            let operation = follow.operation.id;
            let left = (!followed.is_settled()).then_some(operation);
            let end = match followed {
                Followed::Ended(outcome) => Some(End {
                    operation,
                    outcome,
                    _stream: follow.into_stream(),
                }),
                _ => None,
            };
            return Ok(Done {
                settled,
                left,
                end,
                ..done
            });
        }
    }

    fn operation(&self, plan: &Plan, attempt: u32) -> Operation {
        let owner = Owner::Session(self.site.ports.session);
        let key = OperationKey::Call {
            turn: self.site.turn,
            step: self.site.step,
            ordinal: self.site.ordinal,
            attempt,
        };
        Operation {
            id: OperationId::derive(&self.site.ports.scope, &owner, &key),
            owner,
            key,
            epoch: self.site.epoch,
            effect: plan.tool.effect(),
            limits: OperationLimits {
                start_within: self.site.engine.limits.start_within,
                run_for: plan.prepared.run_for,
            },
            request: plan.prepared.request.clone(),
        }
    }

    /// Waits until the call is to be tried again.
    ///
    /// # Errors
    /// It is not, and this is what became of it.
    async fn go_on(
        &self,
        again: &Again,
        follow: &mut Follow<'_>,
        followed: Followed,
    ) -> Result<(), Followed> {
        match *again {
            Again::Never => Err(followed),
            Again::Rerun if self.site.cancel.is_cancelled() => Err(followed),
            Again::Rerun => Ok(()),
            // Also where the turn is being cancelled: an earlier run of it may have placed this
            // operation, or the next, which is to be stopped then.
            Again::Retry { after, spent } => {
                follow.wait(&followed, after).await;
                match spent {
                    true => self.is_spent(follow, followed).await,
                    false => Ok(()),
                }
            }
        }
    }

    /// Makes sure that the operation which did not start never will.
    async fn is_spent(&self, follow: &Follow<'_>, followed: Followed) -> Result<(), Followed> {
        match follow.is_over_for_good().await {
            Some(true) => Ok(()),
            // Whether an earlier run of the turn went on to the next operation nobody can tell.
            None if self.placed.is_some() => Err(Followed::Silent),
            Some(false) | None => Err(followed),
        }
    }

    fn done(&self, rendered: Rendered, times: Times) -> Done {
        let event = Event::CallEnded {
            turn: self.site.turn,
            step: self.site.step,
            ordinal: self.site.ordinal,
            outcome: rendered.outcome,
            text: rendered.text,
            budget_ms: millis(times.budget),
            duration_ms: millis(times.duration),
            overran: times.duration > times.budget,
        };
        Done {
            event,
            settled: Vec::new(),
            left: None,
            end: None,
        }
    }
}

impl Plan {
    fn of(engine: &Engine, name: &str, arguments: &str) -> Result<Self, BadArguments> {
        let tool = Arc::clone(engine.tools.get(name)?);
        let arguments = Arguments::check(arguments, tool.parameters())?;
        let prepared = tool.prepare(&arguments)?;
        Ok(Self { tool, prepared })
    }
}

/// The time that a call was given and the time that it took.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    budget: Duration,
    duration: Duration,
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
