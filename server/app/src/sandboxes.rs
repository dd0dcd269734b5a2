//! The sandboxes of pools: each user's own, on each runner that makes them.

use std::sync::Arc;

use serde_json::{Value, json};
use server_router::links::Links;
use server_store::{AuditEntry, PooledSandbox, RunnerRow, SandboxChange as StateChange, Store};
use shared_types::{Clock, SandboxId, SandboxLimits, SandboxNetwork, SandboxSpec};

use crate::{
    AppError, OpContext, Parts,
    gate::Gate,
    isolation::{IsolationPolicy, SUDO_IS_FORBIDDEN},
    pages::cut,
    rights::Action,
    runners::draining,
};

/// The changes of a sandbox, in effect from its next start on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxChange {
    /// Its template: one of its pool's.
    pub template: Option<String>,
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processor time, in thousandths of a processor.
    pub cpu_millis: Option<u32>,
    /// Processes and threads.
    pub processes: Option<u32>,
    /// The longest time without an operation, in milliseconds.
    pub idle_for_ms: Option<u64>,
    /// The network that it reaches.
    pub network: Option<SandboxNetwork>,
}

impl SandboxChange {
    /// The right that it takes: what one person's sandbox uses the others' lack, and what it is made from is
    /// that person's own business.
    fn action(&self) -> Action {
        let only_template = Self {
            template: self.template.clone(),
            ..Self::default()
        };
        match *self == only_template {
            true => Action::ChangeSandbox,
            false => Action::LimitSandbox,
        }
    }
}

/// The use cases of this file.
#[derive(Clone)]
pub struct Sandboxes {
    store: Store,
    gate: Gate,
    links: Links,
    clock: Arc<dyn Clock>,
    isolation: Arc<IsolationPolicy>,
}

impl Sandboxes {
    pub(crate) fn of(parts: &Parts, gate: &Gate, links: &Links) -> Self {
        Self {
            store: parts.store.clone(),
            gate: gate.clone(),
            links: links.clone(),
            clock: parts.clock.clone(),
            isolation: parts.isolation.clone(),
        }
    }

    /// The sandboxes that the user may see, by id, after that id (empty: from the start), and if there are
    /// more. Users who may see the sandboxes of others get all of them, other users their own.
    ///
    /// # Errors
    /// If the user may see none.
    pub async fn list(
        &self,
        ctx: &OpContext,
        after: &str,
        limit: u32,
    ) -> Result<(Vec<PooledSandbox>, bool), AppError> {
        let owner = match self.gate.sees_all_sandboxes(ctx)? {
            true => None,
            false => Some(ctx.user),
        };
        let rows = self
            .store
            .pooled_sandboxes(ctx.tenant, owner, after, limit + 1);
        Ok(cut(rows.await?, limit))
    }

    /// One of them.
    ///
    /// # Errors
    /// If there is none that the user may see.
    pub async fn get(&self, ctx: &OpContext, id: SandboxId) -> Result<PooledSandbox, AppError> {
        self.gate.sandbox(ctx, Action::SeeSandbox, id).await
    }

    /// The latest changes of a sandbox's state, the newest last: 50 at most.
    ///
    /// # Errors
    /// If there is none that the user may see.
    pub async fn changes(
        &self,
        ctx: &OpContext,
        id: SandboxId,
    ) -> Result<Vec<StateChange>, AppError> {
        self.gate.sandbox(ctx, Action::SeeSandbox, id).await?;
        Ok(self.store.sandbox_changes(ctx.tenant, id).await?)
    }

    /// The user's own sandbox on a runner, by its name or id; made where there is none. Nothing is started.
    ///
    /// # Errors
    /// If there is no such runner, it makes no sandboxes, or the user may not change sandboxes.
    pub async fn create(&self, ctx: &OpContext, runner: &str) -> Result<PooledSandbox, AppError> {
        self.gate.own(ctx, Action::ChangeSandbox)?;
        let runner = self.gate.runner(ctx, Action::UseRunner, runner).await?;
        if runner.pool.is_none() {
            return Err(AppError::Conflict(format!(
                "runner {} makes no sandboxes; one that does is started with: gantry-runner run --backend docker",
                runner.name
            )));
        }
        self.takes_work(&runner).await?;
        let wanted = self
            .store
            .want_sandbox(ctx.tenant, runner.id, ctx.user, self.clock.now());
        Ok(self.store.pooled_sandbox(ctx.tenant, wanted.await?).await?)
    }

    /// Starts it now, and not with its next operation.
    ///
    /// # Errors
    /// If there is none that the user may change, or its runner is offline.
    pub async fn start(&self, ctx: &OpContext, id: SandboxId) -> Result<PooledSandbox, AppError> {
        let sandbox = self.gate.sandbox(ctx, Action::ChangeSandbox, id).await?;
        if sandbox.owner == ctx.user {
            let runner = sandbox.runner;
            self.gate
                .known_runner(ctx, Action::UseRunner, runner)
                .await?;
        }
        let runner = self.store.runner(ctx.tenant, sandbox.runner).await?;
        self.takes_work(&runner).await?;
        let spec = self.with_policy(ctx, sandbox.spec.clone()).await?;
        if !spec.may_sudo {
            check_privilege(&runner, &spec.template)?;
        }
        let told = self
            .links
            .ensure_sandbox(sandbox.runner, id, &spec, true)
            .await;
        self.told(ctx, &sandbox, told).await?;
        self.record(ctx, "sandbox.started", &sandbox).await?;
        self.get(ctx, id).await
    }

    /// Stops it with what runs in it; its files stay, and the next operation starts it.
    ///
    /// # Errors
    /// If there is none that the user may change, or its runner is offline.
    pub async fn stop(&self, ctx: &OpContext, id: SandboxId) -> Result<PooledSandbox, AppError> {
        let sandbox = self.gate.sandbox(ctx, Action::ChangeSandbox, id).await?;
        let told = self.links.stop_sandbox(sandbox.runner, id).await;
        self.told(ctx, &sandbox, told).await?;
        self.record(ctx, "sandbox.stopped", &sandbox).await?;
        self.get(ctx, id).await
    }

    /// Removes it with its files. A runner that is offline hears of it when it links again.
    ///
    /// # Errors
    /// If there is none that the user may change.
    pub async fn remove(&self, ctx: &OpContext, id: SandboxId) -> Result<(), AppError> {
        let sandbox = self.gate.sandbox(ctx, Action::ChangeSandbox, id).await?;
        let now = self.clock.now();
        self.store.unwant_sandbox(ctx.tenant, id, now).await?;
        self.record(ctx, "sandbox.removed", &sandbox).await?;
        self.links.remove_sandbox(sandbox.runner, id).await;
        Ok(())
    }

    /// Changes what it is made from and may use, from its next start on.
    ///
    /// # Errors
    /// If there is none, its pool has no such template, a limit is out of its bounds, or the user may not
    /// change limits.
    pub async fn change(
        &self,
        ctx: &OpContext,
        id: SandboxId,
        change: SandboxChange,
    ) -> Result<PooledSandbox, AppError> {
        let sandbox = self.gate.sandbox(ctx, change.action(), id).await?;
        if let Some(template) = &change.template {
            let runner = self.store.runner(ctx.tenant, sandbox.runner).await?;
            check_template(&runner, template)?;
            if !self.isolation.may_sudo(&self.store, ctx.tenant).await? {
                check_privilege(&runner, template)?;
            }
        }
        let before = sandbox.spec.limits;
        let limits = SandboxLimits {
            memory_bytes: change.memory_bytes.unwrap_or(before.memory_bytes),
            cpu_millis: change.cpu_millis.unwrap_or(before.cpu_millis),
            processes: change.processes.unwrap_or(before.processes),
            idle_for_ms: change.idle_for_ms.unwrap_or(before.idle_for_ms),
        };
        let limits = limits.checked();
        let spec = SandboxSpec {
            template: change.template.unwrap_or(sandbox.spec.template.clone()),
            limits: limits.map_err(|error| AppError::Invalid(error.to_string()))?,
            network: change.network.unwrap_or(sandbox.spec.network),
            ..sandbox.spec.clone()
        };
        let now = self.clock.now();
        self.store
            .set_sandbox_spec(ctx.tenant, id, &spec, now)
            .await?;
        let (before, after) = (told_of(&sandbox.spec), told_of(&spec));
        self.record_with(
            ctx,
            "sandbox.changed",
            &sandbox,
            json!({ "values": after, "before": before }),
        )
        .await?;
        let spec = self.with_policy(ctx, spec).await?;
        // A runner without a link hears of it before the next operation that it gets.
        self.links
            .ensure_sandbox(sandbox.runner, id, &spec, false)
            .await;
        self.get(ctx, id).await
    }

    /// Refuses a runner that drains: no sandbox is made or started there.
    async fn takes_work(&self, runner: &RunnerRow) -> Result<(), AppError> {
        let Some((by, _)) = runner.drained else {
            return Ok(());
        };
        let by = self.store.user(runner.tenant, by).await?;
        Err(draining(&runner.name, &by.name))
    }

    /// The same, with what policy says of it now.
    async fn with_policy(
        &self,
        ctx: &OpContext,
        spec: SandboxSpec,
    ) -> Result<SandboxSpec, AppError> {
        Ok(SandboxSpec {
            may_sudo: self.isolation.may_sudo(&self.store, ctx.tenant).await?,
            ..spec
        })
    }

    async fn told(
        &self,
        ctx: &OpContext,
        sandbox: &PooledSandbox,
        told: bool,
    ) -> Result<(), AppError> {
        if told {
            return Ok(());
        }
        let runner: RunnerRow = self.store.runner(ctx.tenant, sandbox.runner).await?;
        Err(AppError::Conflict(match runner.last_seen_at {
            Some(since) if runner.link.is_none() => format!(
                "runner {} is offline since {since:.0}; start it (gantry-runner run)",
                runner.name
            ),
            _ => format!(
                "runner {} is online at another server, and not at this one; try again in a minute",
                runner.name
            ),
        }))
    }

    async fn record(
        &self,
        ctx: &OpContext,
        kind: &'static str,
        sandbox: &PooledSandbox,
    ) -> Result<(), AppError> {
        self.record_with(ctx, kind, sandbox, json!({})).await
    }

    async fn record_with(
        &self,
        ctx: &OpContext,
        kind: &'static str,
        sandbox: &PooledSandbox,
        mut detail: Value,
    ) -> Result<(), AppError> {
        detail["runner"] = sandbox.runner_name.as_str().into();
        detail["owner"] = sandbox.owner_name.as_str().into();
        let by = ctx.by();
        let entry = AuditEntry {
            actor: server_store::Actor::User(by.user),
            kind,
            subject: sandbox.id.to_string(),
            detail,
            origin: by.origin,
        };
        let now = self.clock.now();
        self.store.record_audit(ctx.tenant, entry, now).await?;
        Ok(())
    }
}

/// The changeable settings of a sandbox, for the audit log.
fn told_of(spec: &SandboxSpec) -> Value {
    let limits = &spec.limits;
    json!({
        "template": spec.template, "network": spec.network, "memory_bytes": limits.memory_bytes,
        "cpu_millis": limits.cpu_millis, "processes": limits.processes,
        "idle_for_ms": limits.idle_for_ms,
    })
}

/// Refuses a template whose commands may be root.
fn check_privilege(runner: &RunnerRow, template: &str) -> Result<(), AppError> {
    let with_sudo = runner.pool.as_ref().map(|pool| &pool.sudo_templates);
    match with_sudo.is_some_and(|names| names.iter().any(|name| name == template)) {
        true => Err(AppError::Conflict(format!(
            "template {template} {SUDO_IS_FORBIDDEN}"
        ))),
        false => Ok(()),
    }
}

/// Refuses a template that the runner's pool does not have.
fn check_template(runner: &RunnerRow, template: &str) -> Result<(), AppError> {
    let pool = runner.pool.as_ref();
    let known = pool
        .map(|pool| pool.templates.as_slice())
        .unwrap_or_default();
    match known.iter().any(|name| name == template) {
        true => Ok(()),
        false => Err(AppError::Invalid(format!(
            "runner {} has no such template, only: {}",
            runner.name,
            known.join(", ")
        ))),
    }
}
