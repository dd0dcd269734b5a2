//! Finds the place of a new operation, and waits a while for a runner that is away.

use std::sync::atomic::{AtomicUsize, Ordering};

use shared_sandbox::Request;
use shared_types::{Generation, Refusal};
use tokio::time::{Instant, sleep, timeout_at};

use super::{SandboxRouter, linked_anew, not_stored, removed};
use crate::{
    bounds::LOOK_AGAIN_AFTER,
    links::RunnerConnection,
    placement::{self, Away, NotPlaced, Placement, Recent},
};
use server_records::{FleetSnapshot, PortError};

impl SandboxRouter {
    /// The place of a new operation, and the link that its runner has. It waits for a runner that is away, and tells
    /// people about the wait. A survey is not worth that wait: it is refused at once, and without a word.
    ///
    /// # Errors
    /// A refusal, also if the wait for the runner was in vain.
    pub(super) async fn reach(
        &self,
        request: &Request,
    ) -> Result<(Placement, Generation), Refusal> {
        let is_survey = matches!(request, Request::Survey(_));
        let mut waiting: Option<ReachWait<'_>> = None;
        loop {
            let away = match self.reach_now(is_survey).await {
                Ok(found) => {
                    if let Some(waiting) = &waiting {
                        waiting.tell(format!("runner {} is back", found.0.place.runner_name));
                    }
                    return Ok(found);
                }
                Err(NotPlaced::Refused(refusal)) => return Err(refusal),
                Err(NotPlaced::Away(away)) if is_survey => return Err(away.refusal),
                Err(NotPlaced::Away(away)) => away,
            };
            let waiting = waiting.get_or_insert_with(|| self.wait_for(&away));
            if Instant::now() >= waiting.until {
                return Err(away.refusal);
            }
            // In both cases the loop looks once more.
            let _ = timeout_at(waiting.until, self.until_linked(&away)).await;
        }
    }

    async fn reach_now(&self, is_survey: bool) -> Result<(Placement, Generation), NotPlaced> {
        let snapshot = self.fleet_now(is_survey).await;
        let snapshot =
            snapshot.map_err(|error| NotPlaced::Refused(not_stored("read the fleet", &error)))?;
        let placement = placement::place(&snapshot, self.recent())?;
        let link = self.linked_now(&snapshot, &placement).await?;
        Ok((placement, link))
    }

    /// The fleet, after two waits that only the first operation of a turn meets: a chosen runner has its time to come
    /// back after a start of the server, and a chosen pool is asked for the user's sandbox. People are not told that a
    /// survey waits.
    async fn fleet_now(&self, is_survey: bool) -> Result<FleetSnapshot, PortError> {
        let mut fleet = self.fleet.snapshot().await?;
        if let Some((runner, name)) = fleet.choice.runner()
            && let Some(until) = fleet.returns_until
        {
            if !is_survey {
                self.fleet.tell(format!(
                    "the server has just started; waiting for runner {name} to come back"
                ));
            }
            let mut presence = self.links.presence(runner).await;
            let _ = timeout_at(until, presence.until(true)).await;
            fleet = self.fleet.snapshot().await?;
        }
        if let Some((pool, _)) = fleet.choice.runner()
            && let Some(user) = fleet.lacks_sandbox
        {
            self.fleet.want_sandbox(pool, user).await?;
            fleet = self.fleet.snapshot().await?;
        }
        Ok(fleet)
    }

    /// The link of a runner that the store shows as online. Refuses a runner that is linked to another server, or not
    /// with the placed incarnation.
    async fn linked_now(
        &self,
        snapshot: &FleetSnapshot,
        placement: &Placement,
    ) -> Result<Generation, NotPlaced> {
        let (runner, name) = (placement.place.runner, &*placement.place.runner_name);
        match self.settled_connection(runner).await {
            RunnerConnection::Online(link) if *link.incarnation() == placement.incarnation => {
                Ok(link.generation())
            }
            RunnerConnection::Online(_) | RunnerConnection::Linking => {
                Err(NotPlaced::Refused(linked_anew(name)))
            }
            // Lists are right that it is online: the row of its link names another server.
            RunnerConnection::Offline { .. } => Err(placement::elsewhere(snapshot, runner, name)),
            RunnerConnection::Revoked => Err(NotPlaced::Refused(removed(name))),
        }
    }

    fn recent(&self) -> Recent {
        Recent {
            now: self.clock.now(),
            lease: self.links.options().lease,
        }
    }

    fn wait_for(&self, away: &Away) -> ReachWait<'_> {
        let waiting = ReachWait {
            sandbox: self,
            is_first: self.waiting.fetch_add(1, Ordering::Relaxed) == 0,
            until: Instant::now() + self.links.options().away_at_most,
        };
        waiting.tell(format!("runner {} {}; waiting", away.name, away.state));
        waiting
    }

    /// Waits until the runner has a link or never will.
    async fn until_linked(&self, away: &Away) {
        sleep(LOOK_AGAIN_AFTER).await;
        let mut watch = self.watch(away.runner).await;
        let settled = |now: &RunnerConnection| {
            matches!(now, RunnerConnection::Online(_) | RunnerConnection::Revoked)
        };
        if watch.wait_for(settled).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// A call that waits for a runner. Only one of several at the same time tells people.
struct ReachWait<'a> {
    sandbox: &'a SandboxRouter,
    is_first: bool,
    until: Instant,
}

impl ReachWait<'_> {
    fn tell(&self, words: String) {
        if self.is_first {
            self.sandbox.fleet.tell(words);
        }
    }
}

impl Drop for ReachWait<'_> {
    fn drop(&mut self) {
        self.sandbox.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Calls that wait for a runner now.
pub(super) type WaitingCalls = AtomicUsize;
