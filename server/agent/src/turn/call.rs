//! One tool call: from the model's words to the one end that is recorded.
//!
//! A call is run as an operation whose id is derived from the call's place in the session, so
//! that running the call again, here or on another replica, attaches to what runs already. It gets
//! a second operation only where the first one was lost and it merely reads.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use shared_consent::Verdict;
use shared_sandbox::{
    Command, Consent, EndToken, Events, Outcome, Request, Unpack, path_from_root,
};
use shared_types::{
    CallWait, Digest, DigestAlgorithm, Effect, Event, Mode, OperationId, RefusalCode, SessionEvent,
    Timestamp,
    event::{
        Answer, Awaited, CallOutcome, FileSeen, Finish, Part, Parts, Place, PlannedCall, TodoItem,
        ToolCall,
    },
    limits,
};

use super::{
    Turn, TurnError,
    again::is_run_anew,
    agent::{self, Worked},
    chat::{self, Begun, ChatScene},
    conclusion::Conclusion,
    context_edit, guarded, history, limit,
    listen::Listener,
    recall, seen, server,
    show::CallPlace,
    site::{Plan, Site, SiteServer},
    task::{self, Look},
    told::{self, Told, not_run, wall},
    web,
};
use crate::{
    gates::{of_answer, planned_call},
    session::LogError,
    tools::{
        ACTIVE_STEPS, AgentAsk, Ask, BadArguments, ChatAsk, ContextAsk, HistoryAsk, NEVER_RAN,
        Prepared, RecallAsk, Rendered, ServerAsk, SkillAsk, TaskAsk, TodoAsk, Tool, WebAsk,
        found_tools, skill_rendered, todo_rendered,
    },
    transcript::{Step, Transcript},
    wait::WaitingCall,
};

/// A call that waits to be run.
pub(super) struct Call<'a> {
    site: Site<'a>,
    plan: Result<Plan, BadArguments>,
    /// The time at which an earlier run of the turn placed it.
    placed: Option<Timestamp>,
    /// The time at which an earlier run of the turn sent it to a tool server.
    requested: Option<Timestamp>,
    /// Commands of the session that go on in the background, as far as the turn knows; not more.
    tasks_at_most: usize,
    /// The to-do list before the step.
    todo: Arc<[TodoItem]>,
    /// The folder to which a to-do list belongs; empty without a runner.
    folder: String,
    /// The command that a person has put in place of the model's.
    changed: Option<String>,
    /// The facts for an agent, where it begins one.
    agent: Option<agent::Scene>,
    /// The facts for another conversation, where it begins one.
    chat: Option<ChatScene>,
}

/// The point to which a call was brought.
pub(super) enum Ran {
    /// To its end.
    Ended(Box<Done>),
    /// To where it only waits. Running it again goes on from there.
    Waits(WaitingCall),
    /// To where this event was recorded. Running it again goes on from there.
    Recorded(SessionEvent),
}

/// A call that ended.
pub(super) struct Done {
    /// To be recorded.
    pub(super) event: Event,
    /// To be recorded with it, before it.
    pub(super) before: Option<Event>,
    /// The end of its operation, to be stored with the event. Absent also where the end is stored already.
    pub(super) end: Option<End>,
    /// Its operation, where the end of that is not known.
    pub(super) left: Option<Left>,
}

/// The end of an operation.
pub(super) struct End {
    pub(super) operation: OperationId,
    pub(super) outcome: Outcome,
    /// Spent once the end is stored.
    pub(super) token: EndToken,
}

/// An operation that is left to the sandbox.
pub(super) struct Left {
    pub(super) operation: OperationId,
    /// Held until the call's end is recorded, and with it the claim to an end that comes before that. The
    /// log tells of an end that the sandbox stores later.
    pub(super) events: Option<Box<dyn Events>>,
}

impl<'a> Call<'a> {
    /// Of the call at this place of the step, if there is one.
    pub(super) fn plan(turn: &Turn<'a>, step: &Step, ordinal: u32) -> Option<Self> {
        let call = step.calls.get(ordinal as usize)?;
        let is_last = ordinal as usize + 1 == step.calls.len();
        let max_calls = turn.engine.limits.max_calls;
        let is_it = |wait: &&CallWait| (wait.step, wait.ordinal) == (step.number, ordinal);
        let limit = step
            .limit
            .filter(|_| call.placed.is_none() && call.requested.is_none());
        let plan = match ordinal < max_calls {
            _ if let Some(limit) = limit => Err(BadArguments::new(limit::not_run_words(limit))),
            true if is_last && step.finish == Finish::Length && !is_whole(&call.asked) => {
                Err(BadArguments::new(
                    "your answer reached its length limit before the arguments were whole; do it in smaller parts",
                ))
            }
            true => {
                let plan = match turn.changed_by_hook(step.number, ordinal) {
                    Some((name, arguments)) => Plan::of(&turn.tools, &name, &arguments),
                    None => Plan::of(&turn.tools, &call.asked.name, &call.asked.arguments),
                };
                plan.and_then(|plan| match call.placed {
                    None => active(turn, step.number, plan),
                    Some(_) => Ok(plan),
                })
            }
            false => Err(BadArguments::new(format!(
                "one answer may ask for at most {max_calls} calls; ask for the others in the next one"
            ))),
        };
        let agent = match &plan {
            Ok(Plan {
                ask: Ask::Agent(ask),
                ..
            }) => Some(agent::Scene::of(turn, step, ordinal, ask)?),
            _ => None,
        };
        let mut plan = plan;
        if let (Some(scene), Ok(plan)) = (&agent, &mut plan)
            && let Ask::Agent(AgentAsk::Begin(ask)) = &mut plan.ask
        {
            ask.worktree |= scene.wants_worktree(ask.role.as_deref());
        }
        let chat = match &plan {
            Ok(Plan {
                ask: Ask::Chat(_), ..
            }) => Some(ChatScene::of(turn, step, ordinal)?),
            _ => None,
        };
        let server = match &plan {
            Ok(Plan {
                ask: Ask::Server(ask),
                ..
            }) => site_server(turn, ask),
            _ => None,
        };
        Some(Self {
            site: Site {
                server,
                engine: turn.engine,
                tools: Arc::clone(&turn.tools),
                ports: turn.ports,
                cancel: turn.cancel.clone(),
                directory: Arc::clone(turn.transcript.directory()),
                epoch: turn.epoch,
                place: CallPlace {
                    turn: turn.id,
                    step: step.number,
                    ordinal,
                },
                number: call.number,
                result_bytes: turn
                    .engine
                    .limits
                    .result_bytes_of(step.calls.len(), turn.window),
                waited: turn.waited.iter().find(is_it).cloned(),
                // The gate says under which; until then it runs under none.
                consent: Consent::Agent(Mode::Plan),
                approved: false,
            },
            plan,
            placed: call.placed.as_ref().map(|placed| placed.at),
            requested: call.requested,
            tasks_at_most: turn.transcript.tasks_at_most() + ordinal as usize,
            todo: turn.transcript.todo().into(),
            // An agent's list is its own.
            folder: match turn.transcript.brief() {
                None => turn.folder().unwrap_or_default(),
                Some(_) => String::new(),
            },
            changed: None,
            agent,
            chat,
        })
    }

    /// The call with the digest of the file that it edits, as the session has seen it, or the reason why it is not
    /// run: the session has not seen the file. To be asked once every call before it has ended.
    #[must_use]
    pub(super) fn knowing(mut self, transcript: &Transcript) -> Self {
        let place = self.site.place;
        if let Ok(plan) = &mut self.plan
            && let Ask::Operation(prepared) = &mut plan.ask
            && let Request::Edit(edit) = &mut prepared.request
        {
            let path = path_from_root(&self.site.directory, &edit.path);
            let files = transcript.files_before(place.turn, (place.step, place.ordinal));
            match seen::expected(files, &path) {
                Ok(expected) => edit.expected = expected,
                // An earlier release placed it without asking this: it may have happened.
                Err(seen::Never) if self.placed.is_some() => {}
                Err(seen::Never) => {
                    self.plan = Err(BadArguments::new(format!(
                        "read {} first, with Read, so that the edit fits what stands there",
                        edit.path
                    )));
                }
            }
        }
        self
    }

    /// Its request; nothing where its arguments are none.
    pub(super) fn ask(&self) -> Option<&Ask> {
        self.plan.as_ref().ok().map(|plan| &plan.ask)
    }

    /// True if an earlier run of the turn placed it, so that it may have happened.
    pub(super) fn was_placed(&self) -> bool {
        let has_agent = self.agent.as_ref().is_some_and(agent::Scene::has_begun);
        let has_chat = self.chat.as_ref().is_some_and(ChatScene::has_begun);
        self.placed.is_some() || self.requested.is_some() || has_agent || has_chat
    }

    pub(super) fn place(&self) -> CallPlace {
        self.site.place
    }

    /// The digest of its request, as the runner gets it; nothing if it asks nothing of a runner.
    pub(super) fn digest(&self) -> Option<Digest> {
        let Some(Ask::Operation(prepared)) = self.ask() else {
            return None;
        };
        let request = prepared.request.clone().of_directory(&self.site.directory);
        Some(request.digest())
    }

    /// The question to people about it.
    pub(super) fn planned<T>(
        &self,
        place: Option<&Place>,
        verdict: &Verdict<'_, T>,
    ) -> Option<PlannedCall> {
        let plan = self.plan.as_ref().ok()?;
        let name = plan.tool.name();
        let directory = &self.site.directory;
        Some(planned_call(name, &plan.ask, directory, place, verdict))
    }

    /// The call with another command, which a person has put in its place.
    #[must_use]
    pub(super) fn with_command(mut self, command: &str) -> Self {
        if let Ok(plan) = &mut self.plan
            && let Ask::Operation(prepared) = &mut plan.ask
            && let Request::Exec(exec) = &mut prepared.request
        {
            exec.command = Command::Shell(command.to_owned());
            self.changed = Some(command.to_owned());
        }
        self
    }

    /// The call, let through in this mode without a question.
    #[must_use]
    pub(super) fn in_mode(mut self, mode: Mode) -> Self {
        self.site.consent = Consent::Agent(mode);
        self
    }

    /// The call as it is, let through by a person.
    #[must_use]
    pub(super) fn approved(mut self, mode: Mode) -> Self {
        self.site.approved = true;
        self.site.consent = match self.digest() {
            Some(plan) => Consent::Approved { mode, plan },
            None => Consent::Agent(mode),
        };
        self
    }

    /// Its end where it may not run.
    pub(super) fn refused(&self, why: &str) -> Done {
        self.done(not_run(why), Times::default())
    }

    /// Its end where the turn is stopped before it runs.
    pub(super) fn stopped(&self) -> Done {
        self.done(told::cancelled(NEVER_RAN.to_owned()), Times::default())
    }

    /// The end of a question of the model's own.
    pub(super) fn answered(&self, answer: &Answer, mode: Mode) -> Done {
        let rendered = match answer {
            Answer::Said { text } => Rendered::completed(format!("the user says: {text}")),
            Answer::Allowed { .. } if mode == Mode::Plan => Rendered::completed(
                "the user accepts the plan, and it cannot be carried out here, where agents only read: say so, and end"
                    .to_owned(),
            ),
            Answer::Allowed { .. } => {
                Rendered::completed("the user accepts the plan: carry it out now".to_owned())
            }
            other => not_run(of_answer(other).unwrap_or_default()),
        };
        self.done(rendered, Times::default())
    }

    /// True if it may run beside others: it only reads, does nothing at all, or has an agent of its own.
    pub(super) fn only_reads(&self) -> bool {
        match &self.plan {
            Ok(plan) if matches!(plan.ask, Ask::Agent(_)) => true,
            Ok(plan) => plan.tool.effect() == Effect::Pure,
            Err(_) => true,
        }
    }

    /// The end of a call that needs a runner, where one before it found none for this reason; nothing
    /// where an earlier run of the turn placed it, so that it may have happened.
    pub(super) fn unplaced(&self, reason: &str) -> Option<Done> {
        let needs_runner = match &self.plan {
            Ok(plan) => matches!(plan.ask, Ask::Operation(_)),
            Err(_) => false,
        };
        let beside = Beside {
            unplaced: true,
            ..Beside::default()
        };
        (needs_runner && self.placed.is_none())
            .then(|| self.done_with(not_run(reason), Times::default(), beside))
    }

    pub(super) async fn run(self) -> Result<Ran, TurnError> {
        if let Some(at) = self.requested {
            return Ok(self.done(server::was_sent(at), Times::default()).into());
        }
        match &self.plan {
            Ok(Plan { tool, ask }) => match ask {
                Ask::Operation(prepared) => self.operate(&**tool, prepared).await,
                Ask::Tasks(ask) => self.look_at_tasks(ask).await,
                Ask::Recall(ask) => self.recall(ask).await,
                Ask::History(ask) => self.search_history(ask).await,
                Ask::Todo(ask) => Ok(self.todo(ask).into()),
                Ask::Skill(ask) => self.load_skill(&**tool, ask).await,
                Ask::Context(ask) => self.edit_context(ask).await,
                Ask::Web(ask) => Ok(self.ask_web(ask).await?.into()),
                Ask::Agent(ask) => self.have_agent(ask).await,
                Ask::Chat(ask) => self.begin_chat(ask).await,
                Ask::FindTools(query) => Ok(self.find_tools(query).into()),
                Ask::Server(ask) => Ok(self.ask_server(ask).await?.into()),
                // The gate has its answer.
                Ask::Person(_) => Ok(self.stopped().into()),
            },
            Err(bad) => Ok(self.done(not_run(bad), Times::default()).into()),
        }
    }

    async fn look_at_tasks(&self, ask: &TaskAsk) -> Result<Ran, TurnError> {
        if self.site.cancel.is_cancelled() {
            let cancelled = told::cancelled(NEVER_RAN.to_owned());
            return Ok(self.done(cancelled, Times::default()).into());
        }
        let clock = &self.site.engine.clock;
        let began = clock.monotonic();
        let looked = match task::run(&self.site, ask).await? {
            Look::Done(looked) => looked,
            Look::Waits(call) => return Ok(Ran::Waits(call)),
        };
        let budget = task::budget(&self.site, ask);
        let times = Times {
            budget,
            // To wait for all of its time is what it was to do.
            duration: clock.monotonic().saturating_sub(began).min(budget),
        };
        let beside = Beside {
            awaits: looked.awaits,
            ..Beside::default()
        };
        Ok(self.done_with(looked.rendered, times, beside).into())
    }

    /// The list is recorded with the end of the call.
    fn todo(&self, ask: &TodoAsk) -> Done {
        let TodoAsk::Write(items) = ask else {
            return self.done(todo_rendered(&self.todo), Times::default());
        };
        let mut done = self.done(todo_rendered(items), Times::default());
        done.before = Some(Event::TodoChanged {
            turn: self.site.place.turn,
            items: items.clone(),
            place: self.folder.clone(),
            found: false,
        });
        done
    }

    /// The change is recorded with the end of the call.
    async fn edit_context(&self, ask: &ContextAsk) -> Result<Ran, TurnError> {
        let (rendered, event) = context_edit::run(&self.site, ask).await?;
        let mut done = self.done(rendered, Times::default());
        done.before = event;
        Ok(done.into())
    }

    async fn recall(&self, ask: &RecallAsk) -> Result<Ran, TurnError> {
        if self.site.cancel.is_cancelled() {
            let cancelled = told::cancelled(NEVER_RAN.to_owned());
            return Ok(self.done(cancelled, Times::default()).into());
        }
        let rendered = recall::run(&self.site, ask).await?;
        Ok(self.done(rendered, Times::default()).into())
    }

    fn find_tools(&self, query: &str) -> Done {
        let tools = &self.site.tools;
        let (rendered, tools) = found_tools(tools.to_find(), query, self.site.result_bytes);
        let beside = Beside {
            tools,
            ..Beside::default()
        };
        self.done_with(rendered, Times::default(), beside)
    }

    async fn search_history(&self, ask: &HistoryAsk) -> Result<Ran, TurnError> {
        if self.site.cancel.is_cancelled() {
            let cancelled = told::cancelled(NEVER_RAN.to_owned());
            return Ok(self.done(cancelled, Times::default()).into());
        }
        let rendered = history::run(&self.site, ask).await?;
        Ok(self.done(rendered, Times::default()).into())
    }

    async fn have_agent(&self, ask: &AgentAsk) -> Result<Ran, TurnError> {
        // The scene was made for this ask.
        let scene = self.agent.as_ref().ok_or(TurnError::NotInLog)?;
        let (rendered, whole) = match agent::run(&self.site, scene, ask).await? {
            Worked::Began(started) => return Ok(Ran::Recorded(started)),
            Worked::Waits(call) => return Ok(Ran::Waits(call)),
            Worked::Ended(rendered, whole) => (rendered, whole),
        };
        let engine = self.site.engine;
        let began = scene.began_at();
        let times = Times {
            budget: engine.limits.agents_within,
            duration: began.map_or(Duration::ZERO, |at| engine.clock.now().since(at)),
        };
        let beside = Beside {
            whole,
            ..Beside::default()
        };
        Ok(self.done_with(rendered, times, beside).into())
    }

    async fn begin_chat(&self, ask: &ChatAsk) -> Result<Ran, TurnError> {
        // The scene was made for this ask.
        let scene = self.chat.as_ref().ok_or(TurnError::NotInLog)?;
        match chat::run(&self.site, scene, ask).await? {
            Begun::Now(started) => Ok(Ran::Recorded(started)),
            Begun::Ended(rendered) => Ok(self.done(rendered, Times::default()).into()),
        }
    }

    async fn ask_web(&self, ask: &WebAsk) -> Result<Done, TurnError> {
        let clock = &self.site.engine.clock;
        let began = clock.monotonic();
        let (rendered, whole) = web::run(&self.site, ask).await?;
        let times = Times {
            budget: web::WITHIN,
            // To wait for all of its time is no more than it was given.
            duration: clock.monotonic().saturating_sub(began).min(web::WITHIN),
        };
        let beside = Beside {
            whole,
            ..Beside::default()
        };
        Ok(self.done_with(rendered, times, beside))
    }

    /// Loads a skill that is registered. Its other files go to the runner by an operation of the call.
    async fn load_skill(&self, tool: &dyn Tool, ask: &SkillAsk) -> Result<Ran, TurnError> {
        let Some(skill) = self.site.ports.log.skill(ask.layer, &ask.name).await? else {
            let gone = format!("the skill {} is not registered any more", ask.name);
            return Ok(self.done(Rendered::failed(gone), Times::default()).into());
        };
        let loaded = |folder: Option<&str>| {
            skill_rendered(&skill.text, &ask.name, Some(&ask.arguments), folder, false)
        };
        let Some(packed) = skill.packed else {
            return Ok(self.done(loaded(None), Times::default()).into());
        };
        let digest = Digest::of(&packed).to_string();
        let folder = format!("{SYNCED_SKILLS}/{}-{}", ask.name, &digest[..12]);
        let prepared = unpacking(&folder, packed);
        let mut done = match self.operate(tool, &prepared).await? {
            Ran::Ended(done) => done,
            other => return Ok(other),
        };
        if let Event::CallEnded { outcome, parts, .. } = &mut done.event {
            let (rendered, note) = match outcome {
                CallOutcome::Completed => (loaded(Some(&folder)), String::new()),
                CallOutcome::Cancelled => return Ok(Ran::Ended(done)),
                _ => {
                    let why = parts.words();
                    let note = format!("\n[its other files are not on the runner: {}]", why.trim());
                    (loaded(None), note)
                }
            };
            *outcome = rendered.outcome;
            *parts = Parts::text(rendered.text + &note);
        }
        Ok(Ran::Ended(done))
    }

    async fn ask_server(&self, ask: &ServerAsk) -> Result<Done, TurnError> {
        let clock = &self.site.engine.clock;
        let began = clock.monotonic();
        let server::Answered {
            rendered,
            images,
            whole,
        } = server::run(&self.site, ask).await?;
        let times = Times {
            budget: server::WITHIN,
            duration: clock.monotonic().saturating_sub(began).min(server::WITHIN),
        };
        let beside = Beside {
            whole,
            ..Beside::default()
        };
        let mut rendered = rendered;
        let mut shown = Vec::new();
        for image in images {
            rendered.image = Some(image);
            let (kept, part) = self.kept(rendered).await?;
            rendered = kept;
            shown.extend(part);
        }
        let mut done = self.done_with(rendered, times, beside);
        for image in shown {
            done.show(Some(image));
        }
        Ok(done)
    }

    async fn operate(&self, tool: &dyn Tool, prepared: &Prepared) -> Result<Ran, TurnError> {
        if prepared.wait_for.is_some() && self.placed.is_none() && self.too_many_tasks().await? {
            let most = self.site.engine.limits.tasks_at_most;
            let full = format!(
                "{most} commands of this conversation run in the background, and no more may: stop one \
                 with task_kill or wait for one with task_read"
            );
            return Ok(self.done(not_run(full), Times::default()).into());
        }
        let clock = &self.site.engine.clock;
        let began = clock.monotonic();
        let started = self.placed.unwrap_or_else(|| clock.now());
        let mut attempt = 0;
        let (listener, conclusion) = loop {
            let operation = self
                .site
                .operation(self.site.place, attempt, tool.effect(), prepared);
            let mut listener = Listener::start(&self.site, operation, prepared);
            let conclusion = listener.run_to_its_end().await;
            if conclusion.refusal() == Some(RefusalCode::StaleEpoch) {
                return Err(TurnError::StaleEpoch);
            }
            if let Conclusion::Waits { until, awaits } = conclusion {
                return Ok(Ran::Waits(listener.waiting_call(until, awaits)));
            }
            let anew = is_run_anew(tool.effect(), attempt, &conclusion);
            match anew && !self.site.cancel.is_cancelled() {
                true => attempt += 1,
                false => break (listener, conclusion),
            }
        };
        let task = match &conclusion {
            Conclusion::StillRuns => Some(self.next_task().await?),
            _ => None,
        };
        let times = Times {
            budget: prepared.budget(),
            duration: clock
                .monotonic()
                .saturating_sub(began)
                .max(wall(&conclusion)),
        };
        let (rendered, mut beside) = {
            let told = Told {
                tool,
                prepared,
                listener: &listener,
                started,
                was_placed: self.placed.is_some(),
                limit: self.site.result_bytes,
                number: Some(self.site.number),
            };
            tell(&told, &conclusion, task)
        };
        let (rendered, image) = self.kept(rendered).await?;
        if let (CallOutcome::Completed, Conclusion::Ended(outcome)) =
            (rendered.outcome, &conclusion)
        {
            beside.file = seen::file(&prepared.request, outcome, &self.site.directory);
        }
        let mut done = self.done_with(rendered, times, beside);
        done.show(image);
        done.take(conclusion, listener);
        Ok(done.into())
    }

    /// The result, once its image is kept with the session, and the image as a part of it. A session that has too
    /// many images takes no more: then the result says so.
    async fn kept(&self, mut rendered: Rendered) -> Result<(Rendered, Option<Part>), TurnError> {
        let Some((format, bytes)) = rendered.image.take() else {
            return Ok((rendered, None));
        };
        let (media_type, size) = (format.media_type().to_owned(), bytes.len() as u64);
        match self.site.ports.log.keep_image(&media_type, bytes).await {
            Ok(digest) => {
                let image = Part::Image {
                    digest,
                    media_type,
                    bytes: size,
                };
                Ok((rendered, Some(image)))
            }
            Err(LogError::Refused(why)) => Ok((Rendered::failed(why), None)),
            Err(error) => Err(error.into()),
        }
    }

    /// True if so many commands run in the background that no other may begin. The log is read only
    /// if the turn's own knowledge leaves that open.
    async fn too_many_tasks(&self) -> Result<bool, TurnError> {
        let most = self.site.engine.limits.tasks_at_most;
        if self.tasks_at_most < most {
            return Ok(false);
        }
        let log = self.site.ports.log.load().await?;
        Ok(Transcript::of(&log).running_tasks().count() >= most)
    }

    /// The number of the task that is begun now.
    async fn next_task(&self) -> Result<u32, TurnError> {
        let log = self.site.ports.log.load().await?;
        Ok(Transcript::of(&log).next_task())
    }

    fn done(&self, rendered: Rendered, times: Times) -> Done {
        self.done_with(rendered, times, Beside::default())
    }

    fn done_with(&self, rendered: Rendered, times: Times, beside: Beside) -> Done {
        let CallPlace {
            turn,
            step,
            ordinal,
        } = self.site.place;
        let (text, findings) = match &self.plan {
            Ok(plan) => guarded::guarded(plan.tool.name(), rendered.text),
            Err(_) => (rendered.text, Vec::new()),
        };
        let text = match &self.changed {
            Some(command) => format!("[the user had this run instead: {command}]\n{text}"),
            None => text,
        };
        let event = Event::CallEnded {
            turn,
            step,
            ordinal,
            outcome: rendered.outcome,
            parts: Parts::text(text),
            unplaced: beside.unplaced,
            task: beside.task,
            awaits: beside.awaits,
            budget_ms: millis(times.budget),
            duration_ms: millis(times.duration),
            overran: times.duration > times.budget,
            file: beside.file,
            whole: beside.whole,
            findings,
            tools: beside.tools,
        };
        Done {
            event,
            before: None,
            end: None,
            left: None,
        }
    }
}

impl Done {
    /// Adds an image to the result.
    fn show(&mut self, image: Option<Part>) {
        if let Event::CallEnded { parts, .. } = &mut self.event {
            parts.0.extend(image);
        }
    }

    /// Takes from the listener what to do with the operation when the call's end is recorded.
    fn take(&mut self, conclusion: Conclusion, listener: Listener<'_>) {
        let (operation, events, token) = listener.into_parts();
        match (conclusion.into_outcome(), token) {
            (Some(outcome), Some(token)) => {
                self.end = Some(End {
                    operation,
                    outcome,
                    token,
                });
            }
            (Some(_), None) => {}
            (None, _) => self.left = Some(Left { operation, events }),
        }
    }
}

impl From<Done> for Ran {
    fn from(done: Done) -> Self {
        Self::Ended(Box::new(done))
    }
}

/// The tool server that a call asks, where the session still has it.
fn site_server(turn: &Turn<'_>, ask: &ServerAsk) -> Option<SiteServer> {
    let log = turn.transcript.turn(turn.id)?;
    let mut servers = log.extensions.servers.iter();
    let declared = servers.find(|server| server.name == ask.server && server.from.trusted)?;
    Some(SiteServer {
        declared: declared.clone(),
        place: turn.server_place(),
    })
}

/// The words on an operation, and the facts beside them; of one that goes on as a task of this number.
fn tell(told: &Told<'_>, conclusion: &Conclusion, task: Option<u32>) -> (Rendered, Beside) {
    match task {
        Some(number) => (
            told.goes_on(number, told.prepared.budget()),
            Beside {
                task,
                ..Beside::default()
            },
        ),
        None => (
            told.of(conclusion),
            Beside {
                unplaced: told.is_unplaced(conclusion),
                awaits: told.listener.awaits(conclusion),
                ..Beside::default()
            },
        ),
    }
}

/// The time that a call was given and the time that it took.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    budget: Duration,
    duration: Duration,
}

/// The facts that the end of a call records beside its text.
#[derive(Debug, Clone, Default)]
struct Beside {
    /// The whole text, of which the result is a part.
    whole: Option<Digest>,
    /// True if no runner could be given it.
    unplaced: bool,
    /// The number of the task as which it goes on.
    task: Option<u32>,
    /// The event that it waited for in vain.
    awaits: Option<Awaited>,
    /// The file that it read, wrote or edited.
    file: Option<FileSeen>,
    /// The tools that it found.
    tools: Vec<String>,
}

/// The plan, unless its tool has to be found first.
fn active(turn: &Turn<'_>, step: u32, plan: Plan) -> Result<Plan, BadArguments> {
    let name = plan.tool.name();
    if !turn.tools.needs_search(name) || turn.transcript.is_active(name, (turn.id, step)) {
        return Ok(plan);
    }
    Err(BadArguments::new(format!(
        "{name} was not found in the last {ACTIVE_STEPS} answers; search for it with search_tools, which shows its arguments"
    )))
}

/// The folder, relative to the session's, with the files of skills that are registered at the server.
const SYNCED_SKILLS: &str = ".gantry/cache/skills";

/// The request that puts these packed files into a folder.
fn unpacking(folder: &str, packed: Bytes) -> Prepared {
    let unpack = Unpack {
        path: folder.to_owned(),
        bytes: packed.len() as u64,
        digest: DigestAlgorithm::Sha256.of(&packed),
    };
    Prepared {
        request: Request::Unpack(unpack),
        run_for: limits::FILE_OPERATION_WITHIN,
        wait_for: None,
        input: packed,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// True if its arguments are JSON. Those of an answer that was cut off may end anywhere.
fn is_whole(asked: &ToolCall) -> bool {
    serde_json::from_str::<serde_json::Value>(&asked.arguments).is_ok()
}
