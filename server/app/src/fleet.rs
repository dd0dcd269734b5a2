//! The runners that a turn, or the operation of a caller, may use, as placement sees them: the one that was chosen when
//! the turn was claimed, or that the caller named. Of the others it sees only if there are any.
//!
//! A server that has just started does not know yet which runners are there: they come back within
//! seconds. Until then it waits for a runner that has not linked since the start. So a turn that
//! goes on after a restart is not told that its runner is offline.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use server_agent::{Live, feed::LiveHub};
use server_records::{Fleet, FleetRunner, FleetSnapshot, PortError};
use server_store::{CallerPlace, RunnerRow, Store};
use shared_link::server::RunnerState;
use shared_types::{
    Clock, RunnerId, SandboxId, SessionId, TenantId, Timestamp, TurnId, UserId, event::Choice,
};
use tokio::time::Instant;

use crate::{
    gate::Gate,
    isolation::{IsolationPolicy, SUDO_IS_FORBIDDEN},
};

/// The longest time after the server's start that a runner takes to come back: its longest pause
/// between two attempts, and one attempt.
const RETURN_WITHIN: Duration = Duration::from_secs(45);

/// The time for which an operation is placed by an earlier read of its runner. It may have to wait for another
/// start under the same key, and the runner's rights can change in that time.
const KNOWN_FOR: Duration = Duration::from_secs(1);

/// The start of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    at: Timestamp,
    runners_return_until: Instant,
}

impl Started {
    pub(crate) fn now(at: Timestamp) -> Self {
        Self {
            at,
            runners_return_until: Instant::now() + RETURN_WITHIN,
        }
    }

    /// Until then its runners may come back.
    pub(crate) fn until(&self) -> Instant {
        self.runners_return_until
    }

    /// The end of the wait for a runner that was there before, was not heard of since, and may be on its way.
    fn returns(&self, runner: &FleetRunner) -> Option<Instant> {
        let RunnerState::Offline { since: Some(seen) } = runner.state else {
            return None;
        };
        let takes_work = !runner.locked && runner.drained_by.is_none();
        let may_return = takes_work && seen < self.at && Instant::now() < self.runners_return_until;
        may_return.then_some(self.runners_return_until)
    }
}

/// The runners that one turn may use.
pub(crate) struct TurnFleet {
    pub(crate) store: Store,
    pub(crate) hub: LiveHub,
    pub(crate) started: Started,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) isolation: Arc<IsolationPolicy>,
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionId,
    pub(crate) turn: TurnId,
}

#[async_trait]
impl Fleet for TurnFleet {
    async fn snapshot(&self) -> Result<FleetSnapshot, PortError> {
        let fleet = self.store.fleet(self.tenant, self.turn).await;
        let fleet = fleet.map_err(PortError::new)?;
        let may_use = Gate::turn_may_use_runner(&fleet, self.clock.now());
        let returns_until = fleet
            .chosen
            .as_ref()
            .and_then(|chosen| self.started.returns(chosen));
        // One that drains makes no sandbox.
        let lacks = |chosen: &FleetRunner| {
            chosen.pool && chosen.sandboxes.is_empty() && chosen.drained_by.is_none()
        };
        let lacks_sandbox = may_use && fleet.chosen.as_ref().is_some_and(lacks);
        let lacks_sandbox = lacks_sandbox.then_some(fleet.user);
        let runners = match fleet.chosen {
            // What the session's user may not use any more is not there.
            Some(_) if !may_use => Vec::new(),
            Some(chosen) => vec![self.isolation.judge(chosen, fleet.may_sudo)],
            None => {
                let any = self.store.list_runners(self.tenant, "", 1).await;
                let any = any.map_err(PortError::new)?.into_iter();
                any.map(not_chosen).collect()
            }
        };
        Ok(FleetSnapshot {
            is_callers: false,
            choice: fleet.choice,
            demanded: fleet.demanded.and(&self.isolation.at_least),
            returns_until,
            lacks_sandbox,
            runners,
        })
    }

    async fn want_sandbox(&self, pool: RunnerId, user: UserId) -> Result<(), PortError> {
        let wanted = self
            .store
            .want_sandbox(self.tenant, pool, user, self.clock.now());
        wanted.await.map(drop).map_err(PortError::new)
    }

    fn tell(&self, words: String) {
        let notice = Live::Notice {
            turn: self.turn,
            text: words,
        };
        self.hub.publish(self.session, notice);
    }
}

/// The one runner that a caller named or had chosen.
pub(crate) struct CallerFleet {
    pub(crate) store: Store,
    pub(crate) started: Started,
    pub(crate) isolation: Arc<IsolationPolicy>,
    pub(crate) tenant: TenantId,
    pub(crate) user: UserId,
    pub(crate) runner: RunnerId,
    pub(crate) sandbox: SandboxId,
    /// The result and time of the first read.
    pub(crate) known: Mutex<Option<(CallerPlace, Instant)>>,
}

#[async_trait]
impl Fleet for CallerFleet {
    async fn snapshot(&self) -> Result<FleetSnapshot, PortError> {
        let known = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let place = match known {
            Some((place, at)) if at.elapsed() < KNOWN_FOR => place,
            _ => self.read().await?,
        };
        let mut sandboxes = place.runner.sandboxes.iter();
        let meant = sandboxes.find(|sandbox| sandbox.id == self.sandbox);
        // One that is gone is named by its id, so that no other one is taken for it.
        let workspace = meant.map_or_else(|| self.sandbox.to_string(), |meant| meant.name.clone());
        Ok(FleetSnapshot {
            is_callers: true,
            choice: Choice::User {
                runner: self.runner,
                name: place.runner.name.clone(),
                workspace: Some(workspace),
            },
            demanded: place.demanded.and(&self.isolation.at_least),
            returns_until: self.started.returns(&place.runner),
            // Its sandbox was chosen before.
            lacks_sandbox: None,
            runners: vec![self.isolation.judge(place.runner, place.may_sudo)],
        })
    }

    async fn want_sandbox(&self, _pool: RunnerId, _user: UserId) -> Result<(), PortError> {
        Ok(())
    }

    /// An operation of a caller has no watcher before it is placed.
    fn tell(&self, _words: String) {}
}

impl CallerFleet {
    async fn read(&self) -> Result<CallerPlace, PortError> {
        let place = self
            .store
            .caller_place(self.tenant, self.runner, self.user)
            .await;
        place.map_err(PortError::new)
    }
}

impl IsolationPolicy {
    /// The runner as policy sees it: if its reports count, and which of its sandboxes are out of use because their
    /// commands may be root.
    fn judge(&self, runner: FleetRunner, tenant_may_sudo: bool) -> FleetRunner {
        let may_sudo = tenant_may_sudo && !self.forbids_sudo;
        let mut runner = runner;
        runner.believed |= self.believed.contains(&runner.id);
        for sandbox in &mut runner.sandboxes {
            if sandbox.has_sudo && !may_sudo {
                sandbox.problem = Some(format!("it {SUDO_IS_FORBIDDEN}"));
            }
        }
        runner
    }
}

/// Nothing is placed on it: it only says that there is one to choose.
fn not_chosen(row: RunnerRow) -> FleetRunner {
    FleetRunner {
        id: row.id,
        state: row.state(),
        locked: row.locked_at.is_some(),
        // Nobody is told of it.
        drained_by: None,
        name: row.name,
        pool: false,
        sandboxes: Vec::new(),
        believed: false,
        incarnation: row.incarnation,
    }
}
