//! A sandbox that answers from a script: the double for tests of whatever uses the contract.

use std::{collections::VecDeque, sync::Mutex};

use async_trait::async_trait;
use shared_types::{Epoch, Isolation, OperationId, Refusal, RunnerId, SandboxId, event::Place};
use tokio::sync::mpsc;

use crate::{CancelAnswer, Operation, OperationEvent, Running, Sandbox};

/// Answers each [`Sandbox::start`] with the next script and remembers what it was asked.
#[derive(Debug, Default)]
pub struct ScriptedSandbox {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    scripts: VecDeque<Script>,
    started: Vec<Operation>,
    cancelled: Vec<OperationId>,
    forgotten: Vec<OperationId>,
    /// Streams that a script leaves open, so that they end only when the sandbox is dropped.
    open: Vec<mpsc::Sender<OperationEvent>>,
}

/// What happens at one start.
#[derive(Debug)]
pub enum Script {
    /// These events, then the end of the stream.
    Events(Vec<OperationEvent>),
    /// These events, then silence: the stream stays open.
    Hang(Vec<OperationEvent>),
    /// A refusal.
    Refuse(Refusal),
}

impl ScriptedSandbox {
    /// A sandbox that plays these scripts in order.
    pub fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self {
            state: Mutex::new(State {
                scripts: scripts.into_iter().collect(),
                ..State::default()
            }),
        }
    }

    /// Every operation that was started, in order.
    pub fn started(&self) -> Vec<Operation> {
        self.lock().started.clone()
    }

    /// Every operation that was asked to stop, in order.
    pub fn cancelled(&self) -> Vec<OperationId> {
        self.lock().cancelled.clone()
    }

    /// Every operation that may be forgotten, in order.
    pub fn forgotten(&self) -> Vec<OperationId> {
        self.lock().forgotten.clone()
    }

    /// The place that it says it is.
    pub fn place() -> Place {
        let runner = RunnerId::from_u128(1);
        Place {
            runner,
            runner_name: "scripted".to_owned(),
            sandbox: SandboxId::derive(runner, "workspace"),
            isolation: Isolation::none(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[async_trait]
impl Sandbox for ScriptedSandbox {
    /// # Panics
    /// If more is started than there are scripts.
    async fn start(&self, operation: Operation) -> Result<Running, Refusal> {
        let mut state = self.lock();
        state.started.push(operation);
        let script = state
            .scripts
            .pop_front()
            .expect("the script foresees this operation");
        let (events, hang) = match script {
            Script::Events(events) => (events, false),
            Script::Hang(events) => (events, true),
            Script::Refuse(refusal) => return Err(refusal),
        };
        let (sender, receiver) = mpsc::channel(events.len().max(1));
        for event in events {
            sender
                .try_send(event)
                .expect("the channel holds the whole script");
        }
        if hang {
            state.open.push(sender);
        }
        Ok(Running {
            place: Self::place(),
            events: receiver,
        })
    }

    /// Cancelling answers `Cancelled` and closes every hanging stream.
    async fn cancel(&self, operation: OperationId, _epoch: Epoch) -> Result<CancelAnswer, Refusal> {
        let mut state = self.lock();
        state.cancelled.push(operation);
        state.open.clear();
        Ok(CancelAnswer::Cancelled)
    }

    async fn forget(&self, operation: OperationId) {
        self.lock().forgotten.push(operation);
    }
}
