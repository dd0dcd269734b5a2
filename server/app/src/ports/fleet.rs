//! The runners that one turn may use, as placement sees them: the one that was chosen when the turn
//! was claimed. Of the others it sees only if there are any.
//!
//! A server that has just started does not know yet which runners are there: they come back within
//! seconds. Until then it waits for a runner that has not linked since the start. So a turn that
//! goes on after a restart is not told that its runner is offline.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use server_agent::{Live, feed::LiveHub};
use server_records::{Fleet, FleetRunner, FleetSandbox, FleetSnapshot, PortError};
use server_store::{ChosenRunner, RunnerRow, Store};
use shared_link::server::RunnerState;
use shared_types::{Clock, RunnerId, SessionId, TenantId, Timestamp, TurnId, UserId};
use tokio::time::Instant;

use crate::{
    gate::Gate,
    isolation::{IsolationPolicy, SUDO_IS_FORBIDDEN},
};

/// The longest time after the server's start that a runner takes to come back: its longest pause
/// between two attempts, and one attempt.
const RETURN_WITHIN: Duration = Duration::from_secs(45);

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
    pub(crate) fn returns(&self, runner: &ChosenRunner) -> Option<Instant> {
        let may_return = !runner.revoked
            && !runner.locked
            && !runner.online
            && runner.last_seen_at.is_some_and(|seen| seen < self.at)
            && Instant::now() < self.runners_return_until;
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
        let is_empty_pool = |chosen: &ChosenRunner| chosen.pool && chosen.sandboxes.is_empty();
        let lacks_sandbox = may_use && fleet.chosen.as_ref().is_some_and(is_empty_pool);
        let lacks_sandbox = lacks_sandbox.then_some(fleet.user);
        let runners = match fleet.chosen {
            // What the session's user may not use any more is not there.
            Some(_) if !may_use => Vec::new(),
            Some(chosen) => vec![shown(chosen, &self.isolation, fleet.may_sudo)],
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
            .want_sandbox(self.tenant, (pool, user), self.clock.now());
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

pub(crate) fn shown(
    runner: ChosenRunner,
    isolation: &IsolationPolicy,
    tenant_may_sudo: bool,
) -> FleetRunner {
    let may_sudo = tenant_may_sudo && !isolation.forbids_sudo;
    let problem = |sandbox: &server_store::FleetSandbox| match sandbox.has_sudo && !may_sudo {
        true => Some(format!("it {SUDO_IS_FORBIDDEN}")),
        false => Some(sandbox.problem.clone()).filter(|problem| !problem.is_empty()),
    };
    FleetRunner {
        believed: runner.trusted || isolation.believes(runner.id),
        id: runner.id,
        state: state(runner.revoked, runner.online, runner.last_seen_at),
        locked: runner.locked,
        name: runner.name,
        pool: runner.pool,
        sandboxes: runner
            .sandboxes
            .into_iter()
            .map(|sandbox| FleetSandbox {
                problem: problem(&sandbox),
                id: sandbox.id,
                name: sandbox.name,
                isolation: sandbox.isolation,
            })
            .collect(),
        incarnation: runner.incarnation,
    }
}

/// Nothing is placed on it: it only says that there is one to choose.
fn not_chosen(row: RunnerRow) -> FleetRunner {
    FleetRunner {
        id: row.id,
        state: state_of(&row),
        locked: row.locked_at.is_some(),
        name: row.name,
        pool: false,
        sandboxes: Vec::new(),
        believed: false,
        incarnation: row.incarnation,
    }
}

pub(super) fn state_of(row: &RunnerRow) -> RunnerState {
    state(
        row.revoked_at.is_some(),
        row.link.is_some(),
        row.last_seen_at,
    )
}

fn state(revoked: bool, online: bool, last_seen_at: Option<Timestamp>) -> RunnerState {
    match (revoked, online) {
        (true, _) => RunnerState::Revoked,
        (false, true) => RunnerState::Online,
        (false, false) => RunnerState::Offline {
            since: last_seen_at,
        },
    }
}
