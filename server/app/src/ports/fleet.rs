//! The runners that one user may use, as placement sees them: the chosen one, and nothing of the
//! others but whether there are any.
//!
//! A server that has just started does not know yet who is there: its runners come back within
//! seconds. Until then a runner that was never heard of since the start is waited for, so that a
//! turn which goes on after a restart is not told that its runner is offline.

use std::time::Duration;

use async_trait::async_trait;
use server_agent::Live;
use server_router::{
    links::Links,
    ports::{Fleet, FleetRunner, FleetSnapshot, PortError, RunnerState},
};
use server_store::{RunnerRow, Store, StoreError};
use shared_types::{RunnerId, SessionId, TenantId, Timestamp, TurnId, UserId};
use tokio::time::{Instant, timeout_at};

use crate::live::LiveHub;

/// How long after the server's start a runner may take to come back: its longest pause between
/// two attempts, and what an attempt takes.
const RETURN_WITHIN: Duration = Duration::from_secs(45);

/// When this process began.
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

    /// Whether the runner was there before, was not heard of since, and may be on its way.
    fn may_still_bring(&self, runner: &RunnerRow) -> bool {
        runner.revoked_at.is_none()
            && runner.link.is_none()
            && runner.last_seen_at.is_some_and(|seen| seen < self.at)
            && Instant::now() < self.runners_return_until
    }
}

/// The runners that a turn of one user may use.
pub(crate) struct UserFleet {
    pub(crate) store: Store,
    pub(crate) links: Links,
    pub(crate) hub: LiveHub,
    pub(crate) started: Started,
    pub(crate) tenant: TenantId,
    pub(crate) user: UserId,
    pub(crate) session: SessionId,
    pub(crate) turn: TurnId,
}

#[async_trait]
impl Fleet for UserFleet {
    async fn snapshot(&self) -> Result<FleetSnapshot, PortError> {
        let user = self.store.user(self.tenant, self.user).await;
        let choice = user.map_err(PortError::new)?.active_runner;
        let tenant = self.store.tenant(self.tenant).await;
        let demanded = tenant.map_err(PortError::new)?.demanded_isolation;
        let rows = match choice {
            Some(choice) => vec![self.chosen(choice).await?],
            None => {
                let any = self.store.list_runners(self.tenant, "", 1).await;
                any.map_err(PortError::new)?
            }
        };
        let mut runners = Vec::with_capacity(rows.len());
        for row in rows {
            runners.push(self.shown(row).await?);
        }
        Ok(FleetSnapshot {
            choice,
            demanded,
            runners,
        })
    }

    async fn state(&self, runner: RunnerId) -> Result<RunnerState, PortError> {
        match self.store.runner(self.tenant, runner).await {
            Ok(row) => Ok(state(&row)),
            Err(StoreError::NotFound) => Ok(RunnerState::Revoked),
            Err(error) => Err(PortError::new(error)),
        }
    }
}

impl UserFleet {
    /// The runner that the user chose, once it is known whether it comes back.
    async fn chosen(&self, choice: RunnerId) -> Result<RunnerRow, PortError> {
        let row = self.store.runner(self.tenant, choice).await;
        let row = row.map_err(PortError::new)?;
        if !self.started.may_still_bring(&row) {
            return Ok(row);
        }
        let waiting = Live::Notice {
            turn: self.turn,
            text: format!(
                "the server has just started; waiting for runner {} to come back",
                row.name
            ),
        };
        self.hub.publish(self.session, waiting);
        let mut presence = self.links.presence(choice).await;
        let _ = timeout_at(self.started.runners_return_until, presence.until(true)).await;
        let row = self.store.runner(self.tenant, choice).await;
        row.map_err(PortError::new)
    }

    async fn shown(&self, row: RunnerRow) -> Result<FleetRunner, PortError> {
        let sandboxes = self.store.sandboxes_of_runner(self.tenant, row.id).await;
        let first = sandboxes.map_err(PortError::new)?.into_iter().next();
        Ok(FleetRunner {
            id: row.id,
            state: state(&row),
            name: row.name,
            sandbox: first.map(|sandbox| (sandbox.id, sandbox.isolation)),
            incarnation: row.incarnation,
        })
    }
}

fn state(row: &RunnerRow) -> RunnerState {
    if row.revoked_at.is_some() {
        return RunnerState::Revoked;
    }
    match row.link {
        Some(_) => RunnerState::Online,
        None => RunnerState::Offline {
            since: row.last_seen_at,
        },
    }
}
