//! The end of a turn that no worker can carry to its end.
//!
//! It needs as little of the turn's content as it can: the ids of its operations, and which of its
//! calls have no result. Nothing is rendered, because that may be what fails.

use std::time::Duration;

use futures_util::future::join_all;
use shared_types::{
    Epoch, Event, OperationId, Timestamp, TurnId,
    event::{CallOutcome, Parts, TurnOutcome},
};
use tokio::time::timeout;

use super::{TurnError, server, told::not_run};
use crate::{
    session::SessionPorts,
    tools::Rendered,
    transcript::{AgentCall, Placed, Transcript, TurnLog},
};

/// See [`crate::Engine::abandon_turn`]; `stop_within` is how long its operations may take to stop.
pub(crate) async fn abandon(
    ports: &SessionPorts,
    (id, epoch): (TurnId, Epoch),
    stop_within: Duration,
    outcome: TurnOutcome,
    reason: Option<String>,
) -> Result<(), TurnError> {
    // The turn ends also where its log cannot be read.
    let transcript = match ports.log.load().await.map_err(TurnError::from) {
        Ok(log) => Transcript::of(&log),
        Err(TurnError::LogRefused(_)) => Transcript::default(),
        Err(error) => return Err(error),
    };
    let turn = transcript.turn(id);
    if turn.is_some_and(|turn| turn.ended.is_some()) {
        return Ok(());
    }
    let pending: Vec<_> = turn.map(pending).unwrap_or_default();
    let placed: Vec<_> = pending.iter().filter_map(Pending::operation).collect();
    let stops = placed
        .iter()
        .map(|operation| timeout(stop_within, ports.sandbox.cancel(*operation, epoch)));
    // What cannot be stopped now goes on to an end that is stored without the turn.
    let _ = join_all(stops).await;
    for agent in pending.iter().filter_map(|call| call.agent) {
        ports.log.stop_agent(agent.session, agent.turn).await?;
    }
    let mut events: Vec<_> = pending.iter().map(|call| call.ended(id)).collect();
    events.push(Event::TurnEnded {
        turn: id,
        outcome,
        reason,
    });
    ports.log.record(events).await?;
    for operation in placed {
        ports.sandbox.leave(operation).await;
    }
    Ok(())
}

/// A call without a result, by its place in the turn.
struct Pending<'a> {
    step: u32,
    ordinal: u32,
    placed: Option<&'a Placed>,
    /// The agent that it waits for.
    agent: Option<&'a AgentCall>,
    /// The time at which it was sent to a tool server.
    requested: Option<Timestamp>,
}

fn pending(turn: &TurnLog) -> Vec<Pending<'_>> {
    let mut pending = Vec::new();
    for step in &turn.steps {
        for (ordinal, call) in (0..).zip(&step.calls) {
            if call.result.is_none() {
                pending.push(Pending {
                    step: step.number,
                    ordinal,
                    placed: call.placed.as_ref(),
                    agent: call.agent.as_ref().filter(|agent| !agent.background),
                    requested: call.requested,
                });
            }
        }
    }
    pending
}

impl Pending<'_> {
    fn operation(&self) -> Option<OperationId> {
        self.placed.map(|placed| placed.operation)
    }

    fn ended(&self, turn: TurnId) -> Event {
        let told = match self.placed {
            None if let Some(at) = self.requested => server::was_sent(at),
            Some(placed) => Rendered::new(
                CallOutcome::Unknown,
                format!(
                    "outcome unknown: started at {:.0}; the turn ended before the server had its \
                     result; it was not run again, so find out what happened before you repeat it",
                    placed.at
                ),
            ),
            None => not_run("the turn ended before it"),
        };
        Event::CallEnded {
            turn,
            step: self.step,
            ordinal: self.ordinal,
            outcome: told.outcome,
            parts: Parts::text(told.text),
            task: None,
            budget_ms: 0,
            duration_ms: 0,
            overran: false,
            unplaced: false,
            awaits: None,
            file: None,
            whole: None,
            findings: Vec::new(),
            tools: Vec::new(),
        }
    }
}
