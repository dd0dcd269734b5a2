//! A sandbox that answers from a script: the double for tests of code that uses the contract.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use shared_types::{
    Epoch, Isolation, OperationId, Refusal, RefusalCode, RunnerId, SandboxId, event::Place,
};
use tokio::sync::mpsc;

use crate::{
    CancelAnswer, Control, Controls, EndToken, EndTokenGiven, Events, Input, Operation,
    OperationEvent, Outcome, OutputStream, Running, Sandbox,
};

/// The most [`OperationEvent::InputTaken`] events of one operation that wait while its reader reads
/// none.
const INPUT_EVENTS: usize = 16;

/// Answers the first [`Sandbox::start`] of each operation with the next script, plays that script again to
/// every later reader, and remembers what it was asked.
#[derive(Debug, Default)]
pub struct ScriptedSandbox {
    state: Arc<Mutex<ScriptState>>,
}

#[derive(Debug, Default)]
struct ScriptState {
    scripts: VecDeque<Script>,
    /// The scripts of the operations that it knows.
    known: HashMap<OperationId, Script>,
    cancel_answer: Option<Result<CancelAnswer, Refusal>>,
    started: Vec<Operation>,
    /// Every operation that was started or read, in order.
    asked: Vec<OperationId>,
    cancelled: Vec<OperationId>,
    /// The tokens of ends that were played.
    tokens: Vec<(OperationId, EndTokenGiven)>,
    stored: Vec<OperationId>,
    /// The operations whose ends no reader may store.
    kept: Vec<OperationId>,
    left: Vec<OperationId>,
    inputs: HashMap<OperationId, Vec<u8>>,
    controls: Vec<(OperationId, Control)>,
    commits: Vec<(OperationId, OutputStream, u64)>,
    /// Streams that a script leaves open, so that they end only when the sandbox is dropped.
    open: Vec<(OperationId, mpsc::Sender<OperationEvent>)>,
}

/// The script of one operation.
#[derive(Debug, Clone)]
pub enum Script {
    /// These events, then the end of the stream.
    Events(Vec<OperationEvent>),
    /// These events, then silence: the stream stays open.
    Hang(Vec<OperationEvent>),
    /// These events, then silence until it is cancelled, which ends it so.
    UntilCancelled(Vec<OperationEvent>, Outcome),
    /// A refusal.
    Refuse(Refusal),
}

impl ScriptedSandbox {
    /// A sandbox that plays these scripts in order.
    pub fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self {
            state: Arc::new(Mutex::new(ScriptState {
                scripts: scripts.into_iter().collect(),
                ..ScriptState::default()
            })),
        }
    }

    /// Makes it answer every cancel so, and stop nothing.
    pub fn answering_cancel(self, answer: CancelAnswer) -> Self {
        self.lock().cancel_answer = Some(Ok(answer));
        self
    }

    /// From now on it answers every cancel with the promise that nothing starts.
    pub fn never_starts(&self) {
        self.lock().cancel_answer = Some(Ok(CancelAnswer::NeverStarted));
    }

    /// From now on it refuses every cancel so.
    pub fn refuse_cancels(&self, refusal: Refusal) {
        self.lock().cancel_answer = Some(Err(refusal));
    }

    /// From now on plays this script to every reader that attaches to the operation.
    pub fn goes_on_as(&self, operation: OperationId, script: Script) {
        self.lock().known.insert(operation, script);
    }

    /// From now on the end of the operation counts as stored, so that no reader gets its token.
    pub fn has_stored(&self, operation: OperationId) {
        self.lock().kept.push(operation);
    }

    /// Every operation that was started or attached to, in order.
    pub fn started(&self) -> Vec<Operation> {
        self.lock().started.clone()
    }

    /// Every operation that was started or read, in order.
    pub fn asked(&self) -> Vec<OperationId> {
        self.lock().asked.clone()
    }

    /// Every operation that was asked to stop, in order.
    pub fn cancelled(&self) -> Vec<OperationId> {
        self.lock().cancelled.clone()
    }

    /// Every operation whose end its reader has stored, in the order of the ends.
    pub fn stored(&self) -> Vec<OperationId> {
        let mut state = self.lock();
        let ScriptState { tokens, stored, .. } = &mut *state;
        let spent = tokens.extract_if(.., |(_, given)| given.is_spent_by_now());
        stored.extend(spent.map(|(id, _)| id));
        stored.clone()
    }

    /// From now on it does not know the operation.
    pub fn forget(&self, operation: OperationId) {
        self.lock().known.remove(&operation);
    }

    /// Every operation that was left without its end, in order.
    pub fn left(&self) -> Vec<OperationId> {
        self.lock().left.clone()
    }

    /// The input that an operation was given.
    pub fn input_of(&self, operation: OperationId) -> Vec<u8> {
        let inputs = &self.lock().inputs;
        inputs.get(&operation).cloned().unwrap_or_default()
    }

    /// The controls that readers asked for, in order.
    pub fn controls(&self) -> Vec<(OperationId, Control)> {
        self.lock().controls.clone()
    }

    /// The output that readers no longer need, as they committed it.
    pub fn commits(&self) -> Vec<(OperationId, OutputStream, u64)> {
        self.lock().commits.clone()
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

    fn lock(&self) -> MutexGuard<'_, ScriptState> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<ScriptState>) -> MutexGuard<'_, ScriptState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells what its script says.
#[derive(Debug)]
struct ScriptedEvents {
    events: mpsc::Receiver<OperationEvent>,
    /// Below these offsets its reader needs nothing of stdout and stderr.
    from: [u64; 2],
    came: [u64; 2],
    state: Arc<Mutex<ScriptState>>,
    operation: OperationId,
    may_store: bool,
    has_ended: bool,
}

#[async_trait]
impl Events for ScriptedEvents {
    async fn recv(&mut self) -> Option<OperationEvent> {
        loop {
            let event = self.events.recv().await?;
            self.has_ended |= matches!(event, OperationEvent::Ended(_));
            if let OperationEvent::Output {
                stream,
                offset,
                data,
            } = &event
            {
                let came = &mut self.came[*stream as usize];
                *came = (*came).max(offset + data.len() as u64);
            }
            if let Some(event) = behind(event, self.from) {
                return Some(event);
            }
        }
    }

    fn came(&self) -> [u64; 2] {
        self.came
    }

    fn end_token(&mut self) -> Option<EndToken> {
        if !(self.has_ended && std::mem::take(&mut self.may_store)) {
            return None;
        }
        let (token, given) = EndToken::give();
        lock(&self.state).tokens.push((self.operation, given));
        Some(token)
    }
}

/// The part of the event that lies behind these offsets.
fn behind(event: OperationEvent, from: [u64; 2]) -> Option<OperationEvent> {
    let OperationEvent::Output {
        stream,
        offset,
        data,
    } = event
    else {
        return Some(event);
    };
    let known = from[stream as usize].saturating_sub(offset);
    let known = usize::try_from(known).unwrap_or(usize::MAX);
    (known < data.len()).then(|| OperationEvent::Output {
        stream,
        offset: offset + known as u64,
        data: data.slice(known..),
    })
}

/// Takes what is passed on to an operation, at once.
#[derive(Debug)]
struct ScriptedControls {
    state: Arc<Mutex<ScriptState>>,
    operation: OperationId,
    takes_input: bool,
}

#[async_trait]
impl Controls for ScriptedControls {
    async fn input(&self, input: Input) -> Result<u64, Refusal> {
        if !self.takes_input {
            let message = "the operation takes no input";
            return Err(Refusal::new(RefusalCode::Invalid, message));
        }
        let mut state = lock(&self.state);
        let taken = state.inputs.entry(self.operation).or_default();
        let known = (taken.len() as u64).saturating_sub(input.offset) as usize;
        if input.offset <= taken.len() as u64 {
            taken.extend(input.data.get(known..).unwrap_or_default());
        }
        let up_to = taken.len() as u64;
        for (id, events) in &state.open {
            if *id == self.operation {
                // A reader that does not read events needs none of them.
                let _ = events.try_send(OperationEvent::InputTaken(up_to));
            }
        }
        Ok(up_to)
    }

    async fn control(&self, control: Control) -> Result<(), Refusal> {
        lock(&self.state).controls.push((self.operation, control));
        Ok(())
    }

    async fn commit(&self, stream: OutputStream, up_to: u64) {
        let commit = (self.operation, stream, up_to);
        lock(&self.state).commits.push(commit);
    }
}

impl ScriptedSandbox {
    /// Plays the operation's script; `from` is that of a reader, who stores no end.
    fn play(
        &self,
        id: OperationId,
        takes_input: bool,
        from: Option<[u64; 2]>,
    ) -> Result<Running, Refusal> {
        let mut state = self.lock();
        state.asked.push(id);
        let known = state.known.get(&id).cloned();
        let script = known
            .or_else(|| state.scripts.pop_front())
            .expect("the script foresees this operation");
        let (events, hang) = match script.clone() {
            Script::Events(events) => (events, false),
            Script::Hang(events) | Script::UntilCancelled(events, _) => (events, true),
            Script::Refuse(refusal) => return Err(refusal),
        };
        // Room beyond the script: the end that a cancel may bring, and the events about input.
        let (sender, receiver) = mpsc::channel(events.len() + 1 + INPUT_EVENTS);
        for event in events {
            sender
                .try_send(event)
                .expect("the channel holds the whole script");
        }
        state.known.insert(id, script);
        if hang {
            state.open.push((id, sender));
        }
        let controls = ScriptedControls {
            state: Arc::clone(&self.state),
            operation: id,
            takes_input,
        };
        let events = ScriptedEvents {
            events: receiver,
            from: from.unwrap_or_default(),
            came: [0, 0],
            state: Arc::clone(&self.state),
            operation: id,
            may_store: from.is_none() && !state.kept.contains(&id),
            has_ended: false,
        };
        Ok(Running {
            place: Self::place(),
            events: Box::new(events),
            controls: Arc::new(controls),
        })
    }
}

#[async_trait]
impl Sandbox for ScriptedSandbox {
    /// # Panics
    /// If more operations are started than there are scripts.
    async fn start(&self, operation: Operation) -> Result<Running, Refusal> {
        let (id, takes_input) = (operation.id, operation.request.takes_input());
        self.lock().started.push(operation);
        self.play(id, takes_input, None)
    }

    async fn read(&self, operation: OperationId, from: [u64; 2]) -> Result<Running, Refusal> {
        if !self.lock().known.contains_key(&operation) {
            let message = "there is no such operation";
            return Err(Refusal::new(RefusalCode::NotFound, message));
        }
        self.play(operation, false, Some(from))
    }

    /// Answers `NeverStarted` for an unknown operation, `AlreadyExited` for an operation with an
    /// end, else `Cancelled`; or always the answer that the test has set. Cancelling ends the
    /// operation's script or, where it has no end, closes its stream.
    async fn cancel(&self, operation: OperationId, _epoch: Epoch) -> Result<CancelAnswer, Refusal> {
        let mut state = self.lock();
        state.cancelled.push(operation);
        if let Some(answer) = state.cancel_answer.clone() {
            return answer;
        }
        let Some(script) = state.known.get_mut(&operation) else {
            return Ok(CancelAnswer::NeverStarted);
        };
        let end = match script {
            Script::UntilCancelled(events, outcome) => {
                let end = OperationEvent::Ended(outcome.clone());
                let mut events = std::mem::take(events);
                events.push(end.clone());
                *script = Script::Events(events);
                Some(end)
            }
            Script::Events(events) if matches!(events.last(), Some(OperationEvent::Ended(_))) => {
                return Ok(CancelAnswer::AlreadyExited);
            }
            _ => None,
        };
        state.open.retain(|(id, sender)| {
            if let (true, Some(end)) = (*id == operation, &end) {
                // A reader that has stopped listening misses nothing.
                let _ = sender.try_send(end.clone());
            }
            *id != operation
        });
        Ok(CancelAnswer::Cancelled)
    }

    async fn leave(&self, operation: OperationId) {
        self.lock().left.push(operation);
    }
}
