//! Operations: those that a caller asks for, and the output of all of them.
//!
//! A caller's operation is placed once, under the caller's key. The caller need not stay: a collector
//! keeps the output and the end, also after the server restarted. A reader of an operation, a tool call's
//! or a caller's, changes nothing.

mod alone;
mod asked;
mod calls;
mod output;
mod program;
mod resume;
mod view;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use server_records::{FleetSandbox, is_kept_nowhere};
use server_router::{Collected, SandboxRouter, links::Links};
use server_store::{
    AskedBy, CallerIntents, CallerPlace, IntentsOf, OperationRow, Ports, Store, StoreError,
};
use shared_sandbox::{
    CancelAnswer, Control, Controls, Input, Operation, OutputStream, Request, Running, Sandbox as _,
};
use shared_types::{
    Clock, Entropy, OperationId, Refusal, RefusalCode, Remedy, ReplicaId, RunnerChoice, RunnerId,
    SandboxId, TenantId, UserId, event::StopReason, limits::COMMAND_RUNS_AT_MOST,
};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

pub(crate) use self::program::{Program, ProgramEvents, StartProgram};
use self::{
    alone::{Alone, Closing, StartedOperations},
    asked::{CallerRequest, is_key, parsed, request},
    view::shown,
};
pub use self::{
    calls::{CallState, CallerTool, ListenedCall, MAX_CALL_TEXT_BYTES, ToolCall},
    output::{MAX_OUTPUT_PAGE_BYTES, OutputPage},
    view::{Attached, GuardedReader, OperationView, TakesInput},
};
use crate::{
    AppError, OpContext, Parts,
    allowance::Allowance,
    fleet::{CallerFleet, Started},
    gate::Gate,
    guarded::Right,
    isolation::IsolationPolicy,
    pages::cut,
    rights::Action,
    runners,
    sessions::Sessions,
};

/// Shortest time that an operation may be given.
const RUNS_AT_LEAST: Duration = Duration::from_secs(1);

/// The request of a caller for an operation.
#[derive(Debug, Clone)]
pub struct StartOperation {
    /// The caller's name of it: two requests with the same key place it once. Without one it is
    /// new.
    pub key: Option<String>,
    /// The place: a runner's name or id, alone or with one of its workspaces (`laptop/api`). Without one,
    /// the place that the user chose.
    pub runner: Option<String>,
    /// The request to the sandbox.
    pub request: Request,
    /// For how long it may run.
    pub run_for: Option<Duration>,
}

/// The filter of a list of operations.
pub use server_store::OperationFilter;

/// The use cases of this file.
#[derive(Clone)]
pub struct Operations {
    pub(crate) store: Store,
    pub(crate) gate: Gate,
    pub(crate) ports: Ports,
    pub(crate) links: Links,
    pub(crate) waiting: StartedOperations,
    pub(crate) sessions: Sessions,
    pub(crate) allowance: Allowance,
    pub(crate) started: Started,
    pub(crate) isolation: Arc<IsolationPolicy>,
    pub(crate) replica: ReplicaId,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

impl Operations {
    /// Goes on with what an earlier process left open.
    pub(crate) fn resumed(
        parts: &Parts,
        gate: &Gate,
        links: &Links,
        started: Started,
        sessions: &Sessions,
        allowance: &Allowance,
        tasks: &TaskTracker,
    ) -> Self {
        let operations = Self {
            store: parts.store.clone(),
            gate: gate.clone(),
            ports: parts.ports(),
            links: links.clone(),
            waiting: Default::default(),
            sessions: sessions.clone(),
            allowance: allowance.clone(),
            started,
            isolation: parts.isolation.clone(),
            replica: parts.replica,
            clock: parts.clock.clone(),
            entropy: parts.entropy.clone(),
        };
        operations.resume(tasks, parts.stop.clone());
        operations
    }

    /// Starts an operation, unless the user has started it before under this key. Also answers
    /// whether it is new.
    ///
    /// # Errors
    /// If the key or the time makes no sense, or the key belongs to another request; if no runner is
    /// chosen, or the runner cannot be reached; then nothing was started.
    pub async fn start(
        &self,
        ctx: &OpContext,
        start: StartOperation,
    ) -> Result<(OperationView, bool), AppError> {
        self.gate.own(ctx, Action::StartOperation)?;
        let run_for = run_for(&start)?;
        if let Some(key) = &start.key {
            is_key(key)?;
            if let Some(known) = self.known(ctx, key, &start).await? {
                return Ok((self.view(ctx, known).await?, false));
            }
        }
        self.allowance.operation(ctx)?;
        let place = self.place(ctx, start.runner.as_deref()).await?;
        let StartOperation { key, request, .. } = start;
        self.start_new(ctx, key, place, request, run_for).await
    }

    /// Starts a new operation at a place that is not named: where the user's session worked.
    ///
    /// # Errors
    /// If the user may not use the runner any more, or it cannot be reached; then nothing was started.
    pub(crate) async fn start_there(
        &self,
        ctx: &OpContext,
        runner: RunnerId,
        sandbox: SandboxId,
        request: Request,
        run_for: Duration,
    ) -> Result<OperationId, AppError> {
        self.gate.own(ctx, Action::StartOperation)?;
        let known = self.gate.known_runner(ctx, Action::UseRunner, runner);
        known.await?;
        self.allowance.operation(ctx)?;
        let place = RunnerChoice {
            runner,
            sandbox: Some(sandbox),
        };
        let started = self.start_new(ctx, None, place, request, run_for);
        started.await.map(|(view, _)| view.id)
    }

    async fn start_new(
        &self,
        ctx: &OpContext,
        key: Option<String>,
        RunnerChoice { runner, sandbox }: RunnerChoice,
        request: Request,
        run_for: Duration,
    ) -> Result<(OperationView, bool), AppError> {
        let key = key.unwrap_or_else(|| self.new_key());
        let place = self.store.caller_place(ctx.tenant, runner, ctx.user).await;
        let mut place = place.map_err(runners::not_found)?;
        if let Some(by) = &place.runner.drained_by {
            return Err(runners::draining(&place.runner.name, by));
        }
        if place.runner.pool && place.runner.sandboxes.is_empty() {
            let wanted = self
                .store
                .want_sandbox(ctx.tenant, runner, ctx.user, self.clock.now());
            wanted.await?;
            let place_now = self.store.caller_place(ctx.tenant, runner, ctx.user).await;
            place = place_now.map_err(runners::not_found)?;
        }
        let sandboxes = &place.runner.sandboxes;
        let meant = match sandbox {
            None => sandboxes.first(),
            Some(id) => sandboxes.iter().find(|one| one.id == id),
        };
        let Some(&FleetSandbox {
            id: sandbox, epoch, ..
        }) = meant
        else {
            return Err(AppError::Conflict(match sandboxes.is_empty() {
                true => format!(
                    "runner {} has never been online; start it (gantry-runner run)",
                    place.runner.name
                ),
                false => format!(
                    "the workspace that was chosen on runner {name} is not there any more; choose \
                     another: gantry runners use {name}/WORKSPACE",
                    name = place.runner.name
                ),
            }));
        };
        let asked = CallerRequest {
            tenant: ctx.tenant,
            user: ctx.user,
            credential: Some(ctx.credential),
            key,
            runner,
            sandbox,
            trace: ctx.trace,
        };
        let operation = asked.operation(request, epoch, run_for);
        let id = operation.id;
        match self.run(&asked, operation, place).await {
            Ok(is_new) => Ok((self.view(ctx, id).await?, is_new)),
            // The same request came twice at the same time, or the same key with two.
            Err(AppError::Conflict(why)) => match self.store.operation(ctx.tenant, id).await {
                Ok(row) if row.asked_by == asked.asked_by() => {
                    Ok((self.view(ctx, id).await?, false))
                }
                _ => Err(AppError::Conflict(why)),
            },
            Err(error) => Err(error),
        }
    }

    /// The operations that the user or the user's sessions asked for, the newest first.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn list(
        &self,
        ctx: &OpContext,
        filter: OperationFilter,
    ) -> Result<(Vec<OperationView>, bool), AppError> {
        self.gate.own(ctx, Action::ReadOperation)?;
        let one_more = OperationFilter {
            limit: filter.limit + 1,
            ..filter
        };
        let rows = self
            .store
            .operations_of_user(ctx.tenant, ctx.user, &one_more);
        let (rows, more) = cut(rows.await?, one_more.limit - 1);
        Ok((rows.into_iter().map(shown).collect(), more))
    }

    /// One of them.
    ///
    /// # Errors
    /// If the user has no such operation.
    pub async fn view(&self, ctx: &OpContext, id: OperationId) -> Result<OperationView, AppError> {
        self.view_for(ctx, Action::ReadOperation, id).await
    }

    async fn view_for(
        &self,
        ctx: &OpContext,
        action: Action,
        id: OperationId,
    ) -> Result<OperationView, AppError> {
        let (view, _) = self.view_and_request(ctx, action, id).await?;
        Ok(view)
    }

    /// Also what a caller asked for; absent of a tool call's.
    async fn view_and_request(
        &self,
        ctx: &OpContext,
        action: Action,
        id: OperationId,
    ) -> Result<(OperationView, Option<Request>), AppError> {
        let mut listed = self.gate.operation(ctx, action, id).await?;
        let request = listed.request.take();
        let request = request.as_deref().map(parsed).transpose()?;
        let mut view = shown(listed);
        // What agents run takes none.
        view.input = Some(request.as_ref().map_or(TakesInput::Nothing, TakesInput::of));
        Ok((view, request))
    }

    /// Reads an operation from these offsets of stdout and stderr on. Of what is kept nowhere there is
    /// one reader: this one takes it over.
    ///
    /// # Errors
    /// If the user has no such operation, or it cannot be read now.
    pub async fn attach(
        &self,
        ctx: &OpContext,
        id: OperationId,
        from: [u64; 2],
    ) -> Result<Attached, AppError> {
        let seen = self.view_and_request(ctx, Action::FollowOperation, id);
        let (view, request) = seen.await?;
        let Some(request) = request else {
            let collected = self.kept(ctx.tenant, id).await?;
            return Ok(Attached {
                view,
                does: Action::FollowOperation,
                reading: GuardedReader::new(collected.read(from), self.right(ctx.tenant, id)),
                controls: Arc::new(TakesNothing),
            });
        };
        let alone = is_kept_nowhere(&request);
        // It was just found to be the user's. A reader of an operation whose output is kept nowhere takes it
        // away from every other reader, which is more than reading.
        let does = match alone || self.gate.may(ctx, Action::PassInput) {
            true => Action::PassInput,
            false => Action::FollowOperation,
        };
        self.gate.own(ctx, does)?;
        let read = match view.ended_at.is_some() && !alone {
            true => OperationSource::Collected(self.kept(ctx.tenant, id).await?),
            false => self.collected(ctx.tenant, id).await?,
        };
        let right = self.right(ctx.tenant, id);
        let (reading, controls) = match read {
            OperationSource::Collected(collected) => (
                GuardedReader::new(collected.read(from), right),
                collected.controls(),
            ),
            OperationSource::Alone(running, sandbox) => {
                let closing = Closing {
                    store: self.store.clone(),
                    clock: self.clock.clone(),
                    sandbox,
                    tenant: ctx.tenant,
                    id,
                };
                let (alone, controls) = Alone::new(*running, from[0], closing);
                (GuardedReader::new(alone, right), controls)
            }
        };
        let controls = match does {
            Action::PassInput => controls,
            _ => Arc::new(TakesNothing),
        };
        Ok(Attached {
            view,
            does,
            reading,
            controls,
        })
    }

    fn right(&self, tenant: TenantId, operation: OperationId) -> Right {
        Right {
            store: self.store.clone(),
            tenant,
            operation,
        }
    }

    /// Checks that the user may do this with an operation.
    ///
    /// # Errors
    /// If the user may not, or has no such operation.
    pub async fn require(
        &self,
        ctx: &OpContext,
        action: Action,
        id: OperationId,
    ) -> Result<(), AppError> {
        self.gate.operation(ctx, action, id).await.map(drop)
    }

    /// The controls of an operation that a caller asked for.
    ///
    /// # Errors
    /// If the user has no such operation.
    pub async fn controls(
        &self,
        ctx: &OpContext,
        id: OperationId,
    ) -> Result<Arc<dyn Controls>, AppError> {
        let view = self.view_for(ctx, Action::PassInput, id).await?;
        if view.session.is_some() {
            return Ok(Arc::new(TakesNothing));
        }
        match self.links.collected(id) {
            Some(collected) => Ok(collected.controls()),
            None => {
                let open = self.store.caller_operation(ctx.tenant, id).await;
                match open {
                    Ok(open) if !is_kept_nowhere(&request(&open)?) => {
                        let attached = self.attach(ctx, id, [u64::MAX; 2]).await?;
                        Ok(attached.controls)
                    }
                    // The caller of this function is not its reader.
                    Ok(_) | Err(StoreError::NotFound) => Ok(Arc::new(TakesNothing)),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// Stops an operation with everything that it started, and says what is known of that soon. Asking
    /// twice changes nothing.
    ///
    /// # Errors
    /// If the user has no such operation, or its runner is lost.
    pub async fn cancel(&self, ctx: &OpContext, id: OperationId) -> Result<CancelAnswer, AppError> {
        let view = self.view_for(ctx, Action::CancelOperation, id).await?;
        if view.session.is_some() {
            return self.sessions.cancel_operation(ctx, id).await;
        }
        tracing::info!(operation.id = %id, user.id = %ctx.user, "an operation is to be cancelled");
        self.stop(ctx.tenant, id).await
    }

    /// Stops an operation that has to stop, of any user, and records why.
    pub(crate) async fn has_to_stop(
        &self,
        tenant: TenantId,
        id: OperationId,
        why: StopReason,
        by: UserId,
    ) -> Result<(), AppError> {
        let now = self.clock.now();
        self.store
            .operation_has_to_stop(tenant, id, why, by, now)
            .await?;
        self.send_stop(tenant, id).await
    }

    /// Has the runner of an operation stop it, of any user.
    pub(crate) async fn send_stop(
        &self,
        tenant: TenantId,
        id: OperationId,
    ) -> Result<(), AppError> {
        let row = self.store.operation(tenant, id).await?;
        match &row.asked_by {
            AskedBy::Call(call) => self.sessions.stop_operation(tenant, call, id).await,
            AskedBy::Caller { .. } => self.stop(tenant, id).await,
        }
        .map(drop)
    }

    /// Stops the operation of a caller, of any user.
    async fn stop(&self, tenant: TenantId, id: OperationId) -> Result<CancelAnswer, AppError> {
        let open = self.store.caller_operation(tenant, id).await;
        let open = open.map_err(not_found)?;
        let sandbox = self.sandbox(&CallerRequest::of(&open)?);
        sandbox.cancel(id, open.epoch).await.map_err(refused)
    }

    /// The operation that the user started before under this key.
    async fn known(
        &self,
        ctx: &OpContext,
        key: &str,
        start: &StartOperation,
    ) -> Result<Option<OperationId>, AppError> {
        let row = match self.store.operation_by_key(ctx.tenant, ctx.user, key).await {
            Ok(row) => row,
            Err(StoreError::NotFound) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let elsewhere = match &start.runner {
            Some(named) => self.is_elsewhere(ctx, named, &row).await?,
            None => false,
        };
        if row.digest != start.request.digest() || elsewhere {
            return Err(AppError::Conflict(
                "another request has this idempotency key; choose a new key".to_owned(),
            ));
        }
        if row.outcome.is_none() && self.links.collected(row.id).is_none() {
            let open = self.store.caller_operation(ctx.tenant, row.id).await;
            self.go_on_with(open.map_err(not_found)?).await?;
        }
        Ok(Some(row.id))
    }

    /// True if the name is of another place than the operation's. If its runner is gone, or not the user's
    /// any more, its name and id still count as its place. The request must not happen again somewhere
    /// else.
    async fn is_elsewhere(
        &self,
        ctx: &OpContext,
        named: &str,
        row: &OperationRow,
    ) -> Result<bool, AppError> {
        let of_row = self.store.runner(ctx.tenant, row.runner).await?;
        let name = named.split_once('/').map_or(named, |(name, _)| name);
        let is_named = name == of_row.name || name == of_row.id.to_string();
        match self.place(ctx, Some(named)).await {
            Ok(RunnerChoice { runner, sandbox }) if runner == row.runner => {
                Ok(sandbox.is_some_and(|sandbox| sandbox != row.sandbox))
            }
            // Another one may have been enrolled under its name.
            Ok(_) => Ok(!is_named || of_row.revoked_at.is_none()),
            Err(AppError::NotFound(_) | AppError::Forbidden(_) | AppError::Conflict(_))
                if is_named =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// The runner that is named, or that the user chose, and the workspace where one was named with it.
    async fn place(&self, ctx: &OpContext, named: Option<&str>) -> Result<RunnerChoice, AppError> {
        match named {
            Some(named) => {
                let found = self.gate.place(ctx, Action::UseRunner, named).await?;
                Ok(found.choice())
            }
            None => {
                let stored = self.store.settings(ctx.tenant, ctx.user, None).await?;
                let active = stored.runner_in_use()?.ok_or_else(|| {
                    AppError::Conflict(
                        "no runner is active; name one (-r NAME), or choose one with: gantry runners \
                         use NAME; where gantry runners lists none, ask its owner to share one"
                            .to_owned(),
                    )
                })?;
                let choice = active.choice;
                let known = (self.gate).known_runner(ctx, Action::UseRunner, choice.runner);
                known.await.map(|()| choice)
            }
        }
    }

    /// Sends an operation that is new, or goes on with it; says whether it was placed by this. `place` is
    /// where it goes, as it was just read.
    async fn run(
        &self,
        asked: &CallerRequest,
        operation: Operation,
        place: CallerPlace,
    ) -> Result<bool, AppError> {
        let (sandbox, intents) = self.sandbox_knowing(asked, Some(place));
        match is_kept_nowhere(&operation.request) {
            true => {
                let id = operation.id;
                let started = sandbox.start(operation).await;
                started.map(|running| self.waiting.put(id, running))
            }
            false => sandbox.collect(operation).await.map(drop),
        }
        .map_err(refused)?;
        Ok(intents.has_placed())
    }

    /// An operation whose output is kept here, as it can be read.
    async fn kept(&self, tenant: TenantId, id: OperationId) -> Result<Collected, AppError> {
        let collected = self.links.read(self.ports.operations(tenant), id).await;
        let collected = collected.map_err(AppError::unavailable)?;
        collected.ok_or(AppError::NotFound("operation"))
    }

    /// The operation of a caller, as it can be read.
    async fn collected(
        &self,
        tenant: TenantId,
        id: OperationId,
    ) -> Result<OperationSource, AppError> {
        if let Some(collected) = self.links.collected(id) {
            return Ok(OperationSource::Collected(collected));
        }
        let open = self.store.caller_operation(tenant, id).await;
        let open = open.map_err(not_found)?;
        let request = request(&open)?;
        let alone = is_kept_nowhere(&request);
        if open.row.outcome.is_some() && !alone {
            return Ok(OperationSource::Collected(self.kept(tenant, id).await?));
        }
        let asked = CallerRequest::of(&open)?;
        let operation = asked.operation(request, open.epoch, COMMAND_RUNS_AT_MOST);
        let sandbox = self.sandbox(&asked);
        match alone {
            true => {
                let running = match self.waiting.take(id) {
                    Some(running) => running,
                    None => sandbox.start(operation).await.map_err(refused)?,
                };
                Ok(OperationSource::Alone(Box::new(running), sandbox))
            }
            false => {
                let collected = sandbox.collect(operation).await;
                Ok(OperationSource::Collected(collected.map_err(refused)?))
            }
        }
    }

    fn sandbox(&self, asked: &CallerRequest) -> SandboxRouter {
        self.sandbox_knowing(asked, None).0
    }

    /// The same, where its place was read just now; and what places the operation.
    fn sandbox_knowing(
        &self,
        asked: &CallerRequest,
        place: Option<CallerPlace>,
    ) -> (SandboxRouter, Arc<CallerIntents>) {
        let fleet = CallerFleet {
            known: Mutex::new(place.map(|place| (place, Instant::now()))),
            store: self.store.clone(),
            started: self.started,
            isolation: Arc::clone(&self.isolation),
            tenant: asked.tenant,
            user: asked.user,
            runner: asked.runner,
            sandbox: asked.sandbox,
        };
        let intents = self.ports.caller_intents(IntentsOf {
            tenant: asked.tenant,
            user: asked.user,
            credential: asked.credential,
            key: asked.key.clone(),
        });
        let sandbox = SandboxRouter::new(
            self.links.clone(),
            Arc::new(fleet),
            intents.clone(),
            self.ports.operations(asked.tenant),
            self.clock.clone(),
        );
        (sandbox, intents)
    }

    fn new_key(&self) -> String {
        let mut random = [0; 16];
        self.entropy.fill(&mut random);
        format!("{:032x}", u128::from_be_bytes(random))
    }
}

enum OperationSource {
    Collected(Collected),
    Alone(Box<Running>, SandboxRouter),
}

/// The time that the operation may run.
fn run_for(start: &StartOperation) -> Result<Duration, AppError> {
    let run_for = start.run_for.unwrap_or(COMMAND_RUNS_AT_MOST);
    match (RUNS_AT_LEAST..=COMMAND_RUNS_AT_MOST).contains(&run_for) {
        true => Ok(run_for),
        false => Err(AppError::Invalid(format!(
            "an operation may be given from {} s to {} s",
            RUNS_AT_LEAST.as_secs(),
            COMMAND_RUNS_AT_MOST.as_secs()
        ))),
    }
}

/// Nothing is passed on to the operation of a tool call, or to one that is only read.
#[derive(Debug)]
struct TakesNothing;

#[async_trait]
impl Controls for TakesNothing {
    async fn input(&self, _input: Input) -> Result<u64, Refusal> {
        Err(takes_nothing())
    }

    async fn control(&self, _control: Control) -> Result<(), Refusal> {
        Err(takes_nothing())
    }

    async fn commit(&self, _stream: OutputStream, _up_to: u64) {}
}

fn takes_nothing() -> Refusal {
    Refusal::new(
        RefusalCode::Unsupported,
        "this operation takes no input and no signals from here; gantry kill stops it",
    )
}

fn not_found(error: StoreError) -> AppError {
    match error {
        StoreError::NotFound => AppError::NotFound("operation"),
        error => error.into(),
    }
}

fn refused(refusal: Refusal) -> AppError {
    match refusal.remedy() {
        Remedy::Retry => AppError::unavailable(refusal),
        Remedy::Final | Remedy::Person => AppError::Conflict(refusal.message),
    }
}
