//! Calls that wait while no worker has their turn, and what watchers see of them.

use futures_util::future::join_all;
use shared_sandbox::OperationEvent;
use shared_types::{CallWait, TurnId, WaitsFor};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    session::SessionPorts,
    turn::show::{CallPlace, Show},
};

/// A call that waits, and how much of it was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingCall {
    /// The event that it waits for.
    pub wait: CallWait,
    /// Below this its stdout and stderr were shown to those who watch the session.
    shown: [u64; 2],
    /// True if the watchers know that its runner is away.
    told_away: bool,
}

impl WaitingCall {
    pub(crate) fn new(wait: CallWait, shown: [u64; 2]) -> Self {
        Self {
            told_away: matches!(wait.waits_for, WaitsFor::Runner(_)),
            wait,
            shown,
        }
    }

    /// One that another process has let go of: here nothing of it was shown.
    pub fn unseen(wait: CallWait) -> Self {
        Self {
            wait,
            shown: [0, 0],
            told_away: false,
        }
    }
}

/// Shows those who watch a session what happens to the calls of a turn that waits; until it is dropped.
pub(crate) struct View {
    _task: AbortOnDropHandle<()>,
}

impl View {
    pub(crate) fn start(ports: SessionPorts, turn: TurnId, calls: Vec<WaitingCall>) -> Self {
        let view = async move { show_waiting(&ports, turn, calls).await };
        Self {
            _task: AbortOnDropHandle::new(tokio::spawn(view)),
        }
    }
}

/// Shows those who watch the session what happens to these calls of a turn that no worker has, until
/// all of them have ended. It records nothing, and may be dropped at any moment.
pub(crate) async fn show_waiting(ports: &SessionPorts, turn: TurnId, calls: Vec<WaitingCall>) {
    join_all(calls.iter().map(|call| show_call(ports, turn, call))).await;
}

async fn show_call(ports: &SessionPorts, turn: TurnId, call: &WaitingCall) {
    let CallWait { step, ordinal, .. } = call.wait;
    // Only operations have something to show.
    let Some(operation) = call.wait.waits_for.operation() else {
        return;
    };
    let show = Show {
        live: &*ports.live,
        place: CallPlace {
            turn,
            step,
            ordinal,
        },
        operation,
    };
    // What cannot be read is shown once the call has ended.
    let Ok(mut running) = ports.sandbox.read(operation, call.shown).await else {
        return;
    };
    let runner = &running.place.runner_name;
    let mut told_away = call.told_away;
    while let Some(event) = running.events.recv().await {
        match event {
            OperationEvent::Output {
                stream,
                offset,
                data,
            } => show.output(stream, offset, data),
            OperationEvent::Gap { stream, from, to } => show.gap(stream, from, to),
            OperationEvent::Unreachable { since } => {
                if !std::mem::replace(&mut told_away, true) {
                    show.away(runner, since);
                }
            }
            OperationEvent::Reachable => {
                told_away = false;
                show.back(runner);
            }
            OperationEvent::Accepted | OperationEvent::InputTaken(_) => {}
            OperationEvent::Ended(_) => return,
        }
    }
}
