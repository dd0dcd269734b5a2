//! Doubles for the engine's tests: a log in memory that can fail, a model with a script, a
//! scripted sandbox, and one trace of what happened to all of them, in order.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use server_llm::{
    Answer, Attempted, Images, Message, Model, ModelError, ModelEvent, ModelInfo, ModelRequest,
    Piece, Voice,
};
use server_records::{
    ChatHit, ChatQuery, ChatSpeaker, ModelCall, NewAgent, NewChat, SetRule, StandingExtensions,
    StandingRules, TrustedFile, WholeSkill,
};
use shared_sandbox::{
    CancelAnswer, ExitCause, ExitRecord, ExitStatus, Operation, OperationEvent, Outcome,
    OutputStream, ReadContent, Running, Sandbox, StreamEnd, Written,
    scripted::{Script, ScriptedSandbox},
};
use shared_types::{
    CallWait, Digest, Epoch, Event, Mode, OperationId, OperationScope, Refusal, RunnerId,
    SessionEvent, SessionId, TenantId, Timestamp, TurnId, UserId,
    clock::ManualClock,
    event::{
        EventBody, Finish, Hook, HookHandler, Layer, Origin, Part, Parts, Terms, TodoItem,
        ToolCall, TurnOutcome, Usage,
    },
};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    AgentTools, BuiltIn, Carried, Claim, Engine, EngineLimits, HookPost, HookPosts, Live, LiveSink,
    LogError, ModelSource, NoToolServers, PersonTools, ServerPlace, SessionLog, SessionPorts,
    Stirs, ToolServers, ToolSet, ToolSource, TurnError, Web, WebPage, WebResult, WebTools, prompt,
    transcript::Transcript,
};

pub(crate) const TURN: TurnId = TurnId::from_u128(7);
pub(crate) const EPOCH: Epoch = Epoch(3);
pub(crate) const START: Timestamp = Timestamp::from_micros(1_789_000_000_000_000);

/// A turn of these tests that takes so long never ends.
const HANGS_AFTER: Duration = Duration::from_secs(60);

/// Longer than any test waits: turns are let go of only where a test asks for it.
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

/// The terms of a message whose turn asks no person.
pub(crate) fn full() -> Terms {
    Terms {
        mode: Some(Mode::Full),
        ..Terms::default()
    }
}

/// Everything around one turn.
pub(crate) struct World {
    pub(crate) log: Arc<MemoryLog>,
    pub(crate) sandbox: Arc<TracedSandbox>,
    pub(crate) model: Arc<ScriptedModel>,
    /// The models that answer in its place.
    pub(crate) others: Vec<Arc<ScriptedModel>>,
    pub(crate) web: Arc<ScriptedWeb>,
    /// The tools beside the usual ones.
    pub(crate) more_tools: Option<Arc<dyn ToolSource>>,
    pub(crate) live: Arc<Recorder>,
    pub(crate) servers: Arc<dyn ToolServers>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) limits: EngineLimits,
    /// The waits of the turn's calls before this claim.
    pub(crate) waited: Vec<CallWait>,
    pub(crate) cancel: CancellationToken,
    pub(crate) trace: Trace,
}

impl World {
    /// A turn whose message was just accepted.
    pub(crate) fn new(
        replies: impl IntoIterator<Item = Reply>,
        scripts: impl IntoIterator<Item = Script>,
    ) -> Self {
        Self::with_sandbox(replies, ScriptedSandbox::new(scripts))
    }

    pub(crate) fn with_sandbox(
        replies: impl IntoIterator<Item = Reply>,
        sandbox: ScriptedSandbox,
    ) -> Self {
        let trace = Trace::default();
        Self {
            log: Arc::new(MemoryLog::new(trace.clone())),
            sandbox: Arc::new(TracedSandbox {
                scripted: sandbox,
                trace: trace.clone(),
            }),
            model: ScriptedModel::new(model("scripted"), replies),
            others: Vec::new(),
            web: Arc::default(),
            more_tools: None,
            live: Arc::default(),
            servers: Arc::new(NoToolServers),
            clock: Arc::new(ManualClock::at(START)),
            limits: EngineLimits {
                parks_after: NEVER,
                ..EngineLimits::default()
            },
            waited: Vec::new(),
            cancel: CancellationToken::new(),
            trace,
        }
    }

    pub(crate) fn engine(&self) -> Engine {
        let mut sources: Vec<Arc<dyn ToolSource>> = vec![
            Arc::new(BuiltIn),
            Arc::new(PersonTools),
            Arc::new(AgentTools),
            Arc::new(WebTools {
                pages: true,
                searches: true,
            }),
        ];
        sources.extend(self.more_tools.clone());
        Engine::new(
            sources,
            self.web.clone(),
            self.limits.clone(),
            self.clock.clone(),
        )
    }

    pub(crate) fn ports(&self) -> SessionPorts {
        SessionPorts {
            log: self.log.clone(),
            models: Arc::new(ScriptedChain(
                std::iter::once(&self.model)
                    .chain(&self.others)
                    .cloned()
                    .collect(),
            )),
            sandbox: self.sandbox.clone(),
            servers: self.servers.clone(),
            posts: self.web.clone(),
            live: self.live.clone(),
            scope: OperationScope::of(TenantId::from_u128(1)),
            session: SessionId::from_u128(2),
            trace: None,
            stirs: Stirs::default(),
        }
    }

    /// A worker that takes a turn up after a crash knows the log alone, and asks the same.
    pub(crate) fn assert_log_gives_requests(&self) {
        let sources = self.engine().sources;
        let (mut transcript, mut of_log) = (Transcript::default(), Vec::new());
        for event in self.log.events() {
            if let Event::AnswerRecorded { turn, .. } = &event {
                let model = self.model.info();
                let tools = ToolSet::of_turn(&sources, &transcript, *turn);
                of_log.push(prompt::request(&transcript, *turn, &model, &tools));
            }
            transcript.apply(&event, START);
        }
        assert_eq!(self.model.requests(), of_log);
    }

    /// Runs the turn to its end, as a worker does, in a task of its own.
    pub(crate) fn spawn(&self) -> JoinHandle<Result<TurnOutcome, TurnError>> {
        let carried = self.spawn_carrying();
        tokio::spawn(async move {
            let carried = AbortOnDropHandle::new(carried).await;
            carried.expect("the engine does not panic").map(to_its_end)
        })
    }

    /// The same, to where it only waits too.
    pub(crate) fn spawn_carrying(&self) -> JoinHandle<Result<Carried, TurnError>> {
        let (engine, ports, cancel) = (self.engine(), self.ports(), self.cancel.clone());
        let claim = self.claim();
        tokio::spawn(async move {
            let turn = engine.run_turn(&ports, claim, cancel);
            let carried = tokio::time::timeout(HANGS_AFTER, turn).await;
            carried.expect("the turn does not hang")
        })
    }

    pub(crate) fn claim(&self) -> Claim {
        Claim {
            turn: TURN,
            epoch: EPOCH,
            waited: self.waited.clone(),
            interrupted: None,
        }
    }

    /// Runs the turn in a worker that dies once it has started so many operations; returns the last.
    pub(crate) async fn dies_after_starting(&self, operations: usize) -> OperationId {
        let worker = self.spawn();
        let started = self.started(operations).await;
        worker.abort();
        let _ = worker.await;
        started[operations - 1]
    }

    /// Waits until so many operations were started or read; they are told in their order.
    pub(crate) async fn started(&self, count: usize) -> Vec<OperationId> {
        let started = async {
            loop {
                let asked = self.sandbox.scripted.asked();
                if asked.len() >= count {
                    return asked;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let started = tokio::time::timeout(HANGS_AFTER, started).await;
        started.expect("so many operations are started")
    }

    /// The log says that this operation of the first call was placed, as the store writes it.
    pub(crate) fn was_placed(&self, operation: OperationId) {
        self.was_placed_at(1, 0, operation);
    }

    pub(crate) fn was_placed_at(&self, step: u32, ordinal: u32, operation: OperationId) {
        self.log.append(Event::CallPlaced {
            turn: TURN,
            step,
            ordinal,
            operation,
            place: ScriptedSandbox::place(),
        });
    }

    pub(crate) async fn run(&self) -> Result<TurnOutcome, TurnError> {
        self.spawn().await.expect("the engine does not panic")
    }

    /// The `call.ended` events: step, ordinal, and the event.
    pub(crate) fn ended_calls(&self) -> Vec<Event> {
        let mut events = self.log.events();
        events.retain(|event| matches!(event, Event::CallEnded { .. }));
        events
    }

    /// The outcome and the text of the only call.
    pub(crate) fn only_call(&self) -> (shared_types::event::CallOutcome, String) {
        match self.ended_calls().as_slice() {
            [Event::CallEnded { outcome, parts, .. }] => (*outcome, parts.words().into_owned()),
            other => panic!("expected one call, got {other:?}"),
        }
    }

    /// The outcome of the turn, and the reason.
    pub(crate) fn end(&self) -> (TurnOutcome, String) {
        match self.log.events().last() {
            Some(Event::TurnEnded {
                outcome, reason, ..
            }) => (*outcome, reason.clone().unwrap_or_default()),
            other => panic!("the turn did not end: {other:?}"),
        }
    }
}

/// The outcome of a turn that was carried to its end.
pub(crate) fn to_its_end(carried: Carried) -> TurnOutcome {
    match carried {
        Carried::Ended(outcome) => outcome,
        Carried::Waits(calls) => panic!("the turn waits: {calls:?}"),
        Carried::LetGo => panic!("the turn was let go of"),
    }
}

/// The events, starts and cancellations, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Vec<Happened>>>);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Happened {
    Recorded(Event),
    Started(Operation),
    CancelAsked(OperationId),
}

impl Trace {
    pub(crate) fn all(&self) -> Vec<Happened> {
        lock(&self.0).clone()
    }

    fn add(&self, happened: Happened) {
        lock(&self.0).push(happened);
    }
}

/// A log in memory whose n-th write can fail.
#[derive(Debug)]
pub(crate) struct MemoryLog {
    state: Mutex<Stored>,
    trace: Trace,
}

#[derive(Debug, Default)]
struct Stored {
    events: Vec<SessionEvent>,
    /// The outcomes that were stored with the ends of calls.
    ends: Vec<(OperationId, Outcome)>,
    /// The ledger of usage.
    calls: Vec<ModelCall>,
    /// The agents that were begun, and those that are to stop.
    agents: Vec<NewAgent>,
    /// The conversations that were begun.
    chats: Vec<NewChat>,
    stopped: Vec<SessionId>,
    images: Images,
    texts: Images,
    /// The to-do list that an earlier session left.
    left: Vec<TodoItem>,
    /// The bounds of agents.
    rules: StandingRules,
    /// The files of projects that the user trusts.
    trusted: Vec<TrustedFile>,
    extensions: StandingExtensions,
    writes: usize,
    fault: Option<Fault>,
    /// A message joins the turn right before the write of this number.
    joins: Option<(usize, String)>,
}

impl Stored {
    fn joins_now(&mut self) -> Option<String> {
        let next = self.writes + 1;
        let joins = self.joins.take_if(|(at, _)| *at == next);
        joins.map(|(_, text)| text)
    }
}

/// A write that fails, and every one after it until it is mended.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    /// The number of the write, from 1.
    pub(crate) at: usize,
    /// True if this one is stored all the same, and only the answer is lost.
    pub(crate) stored: bool,
    pub(crate) error: LogError,
}

impl MemoryLog {
    fn new(trace: Trace) -> Self {
        let log = Self {
            state: Mutex::default(),
            trace,
        };
        log.append(Event::InputAccepted {
            turn: TURN,
            by: UserId::from_u128(9),
            client_id: None,
            parts: Parts::text("do it".to_owned()),
            compacts: None,
            terms: full(),
        });
        log
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        lock(&self.state)
            .events
            .iter()
            .filter_map(|event| event.known().cloned())
            .collect()
    }

    /// The calls of models in the ledger of usage.
    pub(crate) fn paid(&self) -> Vec<ModelCall> {
        lock(&self.state).calls.clone()
    }

    /// The agents that were begun.
    pub(crate) fn chats(&self) -> Vec<NewChat> {
        lock(&self.state).chats.clone()
    }

    pub(crate) fn agents(&self) -> Vec<NewAgent> {
        lock(&self.state).agents.clone()
    }

    /// The agents that are to stop.
    pub(crate) fn stopped(&self) -> Vec<SessionId> {
        lock(&self.state).stopped.clone()
    }

    /// The agent of this call of the first answer has ended so, as the store writes it.
    pub(crate) fn agent_ends(&self, ordinal: u32, outcome: TurnOutcome, answer: &str) {
        self.append(Event::AgentEnded {
            turn: TURN,
            step: 1,
            ordinal,
            session: SessionId::of_agent(TURN, 1, ordinal),
            agent_turn: TurnId::of_agent(TURN, 1, ordinal),
            name: "general-1".to_owned(),
            outcome,
            reason: None,
            answer: answer.to_owned(),
            steps: 2,
            tokens: 100,
            worktree: None,
        });
    }

    /// The ends of operations that were stored with those of their calls.
    pub(crate) fn ends(&self) -> Vec<(OperationId, Outcome)> {
        lock(&self.state).ends.clone()
    }

    /// Forgets the message with which it began.
    pub(crate) fn clear(&self) {
        lock(&self.state).events.clear();
    }

    pub(crate) fn register(&self, extension: server_records::RegisteredExtension) {
        lock(&self.state).extensions.registered.push(extension);
    }

    pub(crate) fn trust_extension(&self, file: server_records::TrustedExtension) {
        lock(&self.state).extensions.trusted.push(file);
    }

    pub(crate) fn leave(&self, items: Vec<TodoItem>) {
        lock(&self.state).left = items;
    }

    pub(crate) fn set_rules(&self, rules: impl IntoIterator<Item = SetRule>) {
        lock(&self.state).rules.rules = rules.into_iter().collect();
    }

    pub(crate) fn set_ceiling(&self, ceiling: Mode) {
        lock(&self.state).rules.ceiling = Some(ceiling);
    }

    pub(crate) fn trust(&self, files: impl IntoIterator<Item = TrustedFile>) {
        lock(&self.state).trusted = files.into_iter().collect();
    }

    /// A message joins the turn, as the store writes it.
    pub(crate) fn steer(&self, text: &str) {
        let steers = self.events();
        let is_steer = |event: &&Event| matches!(event, Event::InputSteered { .. });
        let before = steers.iter().filter(is_steer).count() as u32;
        self.append(Event::InputSteered {
            turn: TURN,
            number: before + 1,
            by: UserId::from_u128(9),
            client_id: None,
            parts: Parts::text(text),
        });
    }

    /// A message joins the turn right before the write of this number, from 1.
    pub(crate) fn steer_before_write(&self, at: usize, text: &str) {
        lock(&self.state).joins = Some((at, text.to_owned()));
    }

    fn has_untaken_steers(&self, turn: TurnId) -> bool {
        let (mut joined, mut taken) = (0, 0);
        let events = self.events().into_iter();
        for event in events.filter(|event| event.turn() == Some(turn)) {
            match event {
                Event::InputSteered { number, .. } => joined = number,
                Event::SteersTaken { through, .. } => taken = through,
                _ => {}
            }
        }
        joined > taken
    }

    pub(crate) fn append(&self, event: Event) {
        self.append_body(EventBody::Known(event));
    }

    pub(crate) fn append_body(&self, body: EventBody) {
        let mut state = lock(&self.state);
        let seq = state.events.len() as u64 + 1;
        let at = START;
        state.events.push(SessionEvent { seq, at, body });
    }

    pub(crate) fn break_at(&self, fault: Fault) {
        lock(&self.state).fault = Some(fault);
    }

    pub(crate) fn mend(&self) {
        lock(&self.state).fault = None;
    }
}

/// The event by which the store tells of a new agent.
fn agent_started(new: &NewAgent) -> Event {
    Event::AgentStarted {
        turn: new.turn,
        step: new.step,
        ordinal: new.ordinal,
        session: (new.session)
            .unwrap_or_else(|| SessionId::of_agent(new.turn, new.step, new.ordinal)),
        agent_turn: TurnId::of_agent(new.turn, new.step, new.ordinal),
        name: new.name.clone(),
        role: new.role.name.clone(),
        description: new.description.clone(),
        background: new.background,
        tokens: new.tokens,
    }
}

/// The event by which the store tells of a new conversation.
fn chat_started(new: &NewChat) -> Event {
    Event::ChatStarted {
        turn: new.turn,
        step: new.step,
        ordinal: new.ordinal,
        session: SessionId::of_chat(new.turn, new.step, new.ordinal),
        title: new.title.clone(),
    }
}

/// The turn that this ends as completed: the store refuses that while a message waits for its place.
fn completes(event: &Event) -> Option<TurnId> {
    match event {
        Event::TurnEnded {
            turn,
            outcome: TurnOutcome::Completed,
            ..
        } => Some(*turn),
        _ => None,
    }
}

#[async_trait]
impl SessionLog for MemoryLog {
    async fn load(&self) -> Result<Arc<Vec<SessionEvent>>, LogError> {
        Ok(Arc::new(lock(&self.state).events.clone()))
    }

    async fn steers(&self, turn: TurnId, after: u32) -> Result<Vec<SessionEvent>, LogError> {
        let mut events = lock(&self.state).events.clone();
        events.retain(|event| {
            matches!(event.known(), Some(Event::InputSteered { turn: of, number, .. })
                if *of == turn && *number > after)
        });
        Ok(events)
    }

    async fn record(&self, events: Vec<Event>) -> Result<(), LogError> {
        let joins = lock(&self.state).joins_now();
        if let Some(text) = joins {
            self.steer(&text);
        }
        let completed = events.iter().find_map(completes);
        if completed.is_some_and(|turn| self.has_untaken_steers(turn)) {
            return Err(LogError::UntakenSteers);
        }
        let fault = {
            let mut state = lock(&self.state);
            state.writes += 1;
            let writes = state.writes;
            state
                .fault
                .clone()
                .filter(|fault| writes >= fault.at)
                .map(|fault| (fault.stored && writes == fault.at, fault.error))
        };
        if fault.as_ref().is_none_or(|(stored, _)| *stored) {
            for event in events {
                self.append(event.clone());
                self.trace.add(Happened::Recorded(event));
            }
        }
        fault.map_or(Ok(()), |(_, error)| Err(error))
    }

    async fn record_paid(&self, events: Vec<Event>, calls: Vec<ModelCall>) -> Result<(), LogError> {
        if !events.is_empty() {
            self.record(events).await?;
        }
        lock(&self.state).calls.extend(calls);
        Ok(())
    }

    async fn images(&self, digests: &[Digest]) -> Result<Images, LogError> {
        let state = lock(&self.state);
        let kept = state
            .images
            .iter()
            .filter(|(digest, _)| digests.contains(digest));
        Ok(kept
            .map(|(digest, bytes)| (*digest, bytes.clone()))
            .collect())
    }

    async fn text(&self, digest: Digest) -> Result<Option<Bytes>, LogError> {
        Ok(lock(&self.state).texts.get(&digest).cloned())
    }

    async fn keep_text(&self, text: Bytes) -> Result<Digest, LogError> {
        let digest = Digest::of(&text);
        lock(&self.state).texts.insert(digest, text);
        Ok(digest)
    }

    async fn todo_of_place(&self, place: &str) -> Result<Vec<TodoItem>, LogError> {
        assert!(place.starts_with("run_"), "{place}");
        Ok(lock(&self.state).left.clone())
    }

    async fn rules(&self) -> Result<StandingRules, LogError> {
        Ok(lock(&self.state).rules.clone())
    }

    async fn trusted_files(&self, runner: RunnerId) -> Result<Vec<TrustedFile>, LogError> {
        let mut files = lock(&self.state).trusted.clone();
        files.retain(|file| file.runner == runner);
        Ok(files)
    }

    async fn extensions(&self) -> Result<StandingExtensions, LogError> {
        Ok(lock(&self.state).extensions.clone())
    }

    async fn skill(&self, layer: Layer, name: &str) -> Result<Option<WholeSkill>, LogError> {
        let state = lock(&self.state);
        let mut skills = state.extensions.registered.iter();
        let found = skills.find(|known| known.layer() == layer && known.name == name);
        Ok(found.map(|known| WholeSkill {
            text: known.text.clone(),
            packed: (known.packed_bytes > 0).then(|| Bytes::from_static(b"a packed folder")),
        }))
    }

    /// Has one text about each query.
    async fn search_chats(&self, query: &ChatQuery) -> Result<Vec<ChatHit>, LogError> {
        let hit = ChatHit {
            session: query.within.unwrap_or(SessionId::from_u128(3)),
            title: "an\nolder one".to_owned(),
            at: START,
            speaker: ChatSpeaker::User,
            excerpt: format!("… {} …", query.words),
        };
        Ok(vec![hit; query.at_most as usize])
    }

    async fn keep_image(&self, _media_type: &str, bytes: Bytes) -> Result<Digest, LogError> {
        let digest = Digest::of(&bytes);
        lock(&self.state).images.insert(digest, bytes);
        Ok(digest)
    }

    async fn start_agent(&self, new: &NewAgent) -> Result<SessionEvent, LogError> {
        let started = agent_started(new);
        lock(&self.state).agents.push(new.clone());
        self.record(vec![started]).await?;
        Ok(lock(&self.state)
            .events
            .last()
            .cloned()
            .expect("it is there"))
    }

    async fn stop_agent(&self, agent: SessionId, _turn: TurnId) -> Result<(), LogError> {
        lock(&self.state).stopped.push(agent);
        Ok(())
    }

    async fn start_chat(&self, new: &NewChat) -> Result<SessionEvent, LogError> {
        self.record(vec![chat_started(new)]).await?;
        lock(&self.state).chats.push(new.clone());
        Ok(lock(&self.state)
            .events
            .last()
            .cloned()
            .expect("it is there"))
    }

    async fn record_end(
        &self,
        ended: Event,
        operation: OperationId,
        outcome: &Outcome,
    ) -> Result<(), LogError> {
        let stored = (operation, outcome.clone());
        self.record(vec![ended]).await?;
        lock(&self.state).ends.push(stored);
        Ok(())
    }
}

/// A scripted sandbox that tells the trace.
pub(crate) struct TracedSandbox {
    pub(crate) scripted: ScriptedSandbox,
    trace: Trace,
}

#[async_trait]
impl Sandbox for TracedSandbox {
    async fn start(&self, operation: Operation) -> Result<Running, Refusal> {
        self.trace.add(Happened::Started(operation.clone()));
        self.scripted.start(operation).await
    }

    async fn cancel(&self, operation: OperationId, epoch: Epoch) -> Result<CancelAnswer, Refusal> {
        self.trace.add(Happened::CancelAsked(operation));
        self.scripted.cancel(operation, epoch).await
    }

    async fn read(&self, operation: OperationId, from: [u64; 2]) -> Result<Running, Refusal> {
        self.scripted.read(operation, from).await
    }

    async fn leave(&self, operation: OperationId) {
        self.scripted.leave(operation).await;
    }
}

/// The model's reaction when it is asked for its n-th answer.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Answer(Answer),
    Fail(ModelError),
    /// These events, then silence.
    Hang(Vec<ModelEvent>),
    /// These events, then the answer.
    Events(Vec<ModelEvent>, Answer),
}

impl Reply {
    pub(crate) fn says(text: &str) -> Self {
        Self::calls(text, [])
    }

    pub(crate) fn calls<'a>(
        text: &str,
        calls: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let calls = calls.into_iter().enumerate();
        Self::Answer(Answer {
            parts: said(
                text,
                calls.map(|(n, (name, arguments))| ToolCall {
                    vendor_id: format!("v{n}"),
                    name: name.to_owned(),
                    arguments: arguments.to_owned(),
                    opaque: Default::default(),
                }),
            ),
            finish: Finish::Complete,
            usage: Usage::default(),
            model: String::new(),
            first_byte: None,
        })
    }
}

/// A model of this name, from the scripted origin.
pub(crate) fn model(name: &str) -> ModelInfo {
    ModelInfo {
        name: name.to_owned(),
        practice: false,
        profile: server_llm::Profile::default(),
        paid_by: shared_types::PaidBy::default(),
        origin: Origin {
            format: "scripted".to_owned(),
            account: String::new(),
        },
    }
}

/// The report of the first attempt.
fn attempted(outcome: &'static str, usage: Usage) -> ModelEvent {
    ModelEvent::Attempted(Attempted {
        number: 1,
        outcome,
        usage,
        duration: Duration::from_secs(1),
        first_byte: None,
    })
}

/// An answer with this text, and then these calls.
pub(crate) fn said(text: &str, calls: impl IntoIterator<Item = ToolCall>) -> Parts {
    let mut parts = Parts::text(text);
    parts.0.extend(calls.into_iter().map(Part::ToolCall));
    parts
}

/// A piece of a part of the answer that is text.
pub(crate) fn text(part: u32, text: &str) -> ModelEvent {
    piece(part, Voice::Text, text)
}

/// A piece of a part of the answer.
pub(crate) fn piece(part: u32, voice: Voice, text: &str) -> ModelEvent {
    let text = text.to_owned();
    ModelEvent::Said(Piece { part, voice, text })
}

/// Answers by how many answers the conversation holds, so that it says the same after a restart.
#[derive(Debug)]
pub(crate) struct ScriptedModel {
    info: ModelInfo,
    replies: Vec<Reply>,
    requests: Mutex<Vec<ModelRequest>>,
    is_left_alone: bool,
}

/// Models that answer one in place of the other.
struct ScriptedChain(Vec<Arc<ScriptedModel>>);

#[async_trait]
impl ModelSource for ScriptedChain {
    async fn chain(&self, of_turn: Option<&str>) -> Result<Vec<Arc<dyn Model>>, String> {
        let first = &self.0[0].info.name;
        if let Some(name) = of_turn.filter(|name| name != first) {
            return Err(format!("the model {name:?} is not offered any more"));
        }
        let models = self.0.iter().cloned();
        Ok(models.map(|model| model as Arc<dyn Model>).collect())
    }
}

impl ScriptedModel {
    pub(crate) fn new(info: ModelInfo, replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Arc::new(Self {
            info,
            replies: replies.into_iter().collect(),
            requests: Mutex::default(),
            is_left_alone: false,
        })
    }

    /// A model that cools down.
    pub(crate) fn left_alone(info: ModelInfo) -> Arc<Self> {
        Arc::new(Self {
            info,
            replies: Vec::new(),
            requests: Mutex::default(),
            is_left_alone: true,
        })
    }

    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.requests).clone()
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn is_left_alone(&self) -> bool {
        self.is_left_alone
    }

    async fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let answered = |message: &&Message| matches!(message, Message::Assistant { .. });
        let step = request.messages.iter().filter(answered).count();
        lock(&self.requests).push(request);
        let last = self.replies.last().expect("there is a reply");
        let (said, answer) = match self.replies.get(step).unwrap_or(last).clone() {
            Reply::Fail(error) => {
                let _ = events.send(ModelEvent::Attempt { number: 1 }).await;
                let _ = events.send(attempted(error.word(), Usage::default())).await;
                return Err(error);
            }
            Reply::Answer(answer) => {
                let mut all = vec![ModelEvent::Attempt { number: 1 }];
                let said = answer.parts.words();
                all.extend((!said.is_empty()).then(|| text(0, &said)));
                all.push(attempted("ok", answer.usage));
                (all, Some(answer))
            }
            Reply::Hang(said) => (said, None),
            Reply::Events(said, answer) => (said, Some(answer)),
        };
        for event in said {
            let _ = events.send(event).await;
        }
        match answer {
            Some(answer) => Ok(answer),
            None => std::future::pending().await,
        }
    }
}

/// A web of one page. Everything else hangs, and an address with a space fails.
#[derive(Debug, Default)]
pub(crate) struct ScriptedWeb {
    asked: Mutex<Vec<String>>,
    changed: tokio::sync::Notify,
}

impl ScriptedWeb {
    pub(crate) const PAGE: &str = "https://example.org/";

    /// Waits until it was asked.
    pub(crate) async fn was_asked(&self) {
        self.changed.notified().await;
    }

    /// All that it was asked for.
    pub(crate) fn all(&self) -> Vec<String> {
        lock(&self.asked).clone()
    }

    fn ask(&self, what: &str) {
        lock(&self.asked).push(what.to_owned());
        self.changed.notify_one();
    }
}

#[async_trait]
impl Web for ScriptedWeb {
    async fn fetch(&self, url: &str) -> Result<WebPage, String> {
        self.ask(url);
        match url {
            Self::PAGE => Ok(WebPage {
                url: url.to_owned(),
                text: "words ".repeat(10_000),
            }),
            url if url.contains(' ') => Err("there is no such page".to_owned()),
            _ => std::future::pending().await,
        }
    }

    async fn search(&self, query: &str, at_most: usize) -> Result<Vec<WebResult>, String> {
        self.ask(query);
        let result = WebResult {
            title: format!("About {query}"),
            url: Self::PAGE.to_owned(),
            snippet: String::new(),
        };
        Ok(vec![result; at_most])
    }
}

#[async_trait]
impl HookPosts for ScriptedWeb {
    /// Answers with the words of a hook, as the address ends; with those of one that denies where it ends otherwise.
    async fn post(
        &self,
        hook: &Hook,
        _: Option<&ServerPlace>,
        _: HookPost,
    ) -> Result<String, String> {
        let HookHandler::Http { url, .. } = &hook.handler else {
            panic!("it is sent to an address")
        };
        self.ask(url);
        let decision = match url.rsplit('/').next() {
            Some("Nothing") => return Ok(String::new()),
            Some("Allow") => "allow",
            Some("Ask") => "ask",
            Some("Hangs") => std::future::pending().await,
            Some("BreaksOpen" | "BreaksClosed") => return Err("it does not answer".to_owned()),
            _ => "deny",
        };
        Ok(format!(
            r#"{{"decision": "{decision}", "reason": "the web says no"}}"#
        ))
    }
}

/// Keeps what was published.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    published: Mutex<Vec<Live>>,
    changed: tokio::sync::Notify,
}

impl Recorder {
    pub(crate) fn all(&self) -> Vec<Live> {
        lock(&self.published).clone()
    }

    pub(crate) fn notices(&self) -> Vec<String> {
        self.all()
            .into_iter()
            .filter_map(|live| match live {
                Live::Notice { text, .. } => Some(text),
                _ => None,
            })
            .collect()
    }

    /// Waits until something like this was published.
    pub(crate) async fn saw(&self, wanted: impl Fn(&Live) -> bool) {
        loop {
            let changed = self.changed.notified();
            if self.all().iter().any(&wanted) {
                return;
            }
            changed.await;
        }
    }
}

impl LiveSink for Recorder {
    fn publish(&self, live: Live) {
        lock(&self.published).push(live);
        self.changed.notify_one();
    }
}

pub(crate) fn output(text: &str) -> OperationEvent {
    OperationEvent::Output {
        stream: OutputStream::Stdout,
        offset: 0,
        data: bytes::Bytes::copy_from_slice(text.as_bytes()),
    }
}

/// A command that writes this and ends so.
pub(crate) fn command(text: &str, code: i32) -> Script {
    Script::Events(vec![
        output(text),
        OperationEvent::Ended(exit(text.len(), ExitStatus::Code(code), ExitCause::Exited)),
    ])
}

pub(crate) fn exit(stdout: usize, status: ExitStatus, cause: ExitCause) -> Outcome {
    Outcome::Exited(ExitRecord {
        status,
        cause,
        stdout: StreamEnd {
            offset: stdout as u64,
            checksum: None,
        },
        stderr: StreamEnd::default(),
        wall_ms: 5,
        cpu_us: 0,
        max_rss_bytes: 0,
        tree_gone: true,
    })
}

pub(crate) fn ends(outcome: Outcome) -> Script {
    Script::Events(vec![OperationEvent::Ended(outcome)])
}

pub(crate) fn content(text: &str) -> Outcome {
    Outcome::Read(ReadContent {
        content: text.as_bytes().to_vec(),
        first_line: 1,
        lines: text.lines().count() as u64,
        file_bytes: text.len() as u64,
        more: false,
        digest: None,
    })
}

pub(crate) fn written() -> Outcome {
    Outcome::Written(Written {
        bytes: 2,
        before: None,
        after: Digest::of(b"hi").into(),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An extension that the session's user has registered.
pub(crate) fn registered(
    kind: server_records::ExtensionKind,
    name: &str,
    text: &str,
) -> server_records::RegisteredExtension {
    server_records::RegisteredExtension {
        id: shared_types::ExtensionId::from_u128(1),
        kind,
        user: Some(UserId::from_u128(9)),
        name: name.to_owned(),
        text: text.to_owned(),
        digest: Digest::of(text.as_bytes()),
        source: String::new(),
        packed_bytes: 0,
        secret: None,
        by: UserId::from_u128(9),
        by_name: "me".to_owned(),
        at: START,
    }
}
