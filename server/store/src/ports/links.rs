//! The rows of runners and their links.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use server_records::{Heard, LinkIdentity, LinkRows, LinkState, Operations, PortError};
use shared_link::server::{
    HelloFacts, KnownMemory, ModelsReport, ReconcileVerdict, SandboxReport, TurnedAway,
};
use shared_sandbox::Outcome;
use shared_types::{Generation, OperationId, ReplicaId, RunnerId, TenantId};

use super::Ports;
use crate::{LinkClaim, OperationRow, OperationState, Reported, StoreError};

/// See the module.
pub(super) struct Rows {
    pub(super) ports: Ports,
    pub(super) replica: ReplicaId,
}

#[async_trait]
impl LinkRows for Rows {
    async fn seen(&self, who: &LinkIdentity) -> Result<Option<KnownMemory>, PortError> {
        let row = self.ports.store.runner(who.tenant, who.runner).await;
        let row = row.map_err(PortError::new)?;
        Ok(row.incarnation.map(|incarnation| KnownMemory {
            incarnation,
            journal_sequence: row.journal_sequence,
            accepted_sequence: row.accepted_sequence,
        }))
    }

    async fn claim(&self, who: &LinkIdentity, hello: &HelloFacts) -> Result<Generation, PortError> {
        let Ports { store, clock, .. } = &self.ports;
        let claim = LinkClaim {
            replica: self.replica,
            hello: hello.clone(),
        };
        let claimed = store.link_claim(who.tenant, who.runner, &claim, clock.now());
        Ok(claimed.await.map_err(PortError::new)?.generation)
    }

    async fn settle_unheard(
        &self,
        who: &LinkIdentity,
        link: Generation,
        hello: &HelloFacts,
    ) -> Result<(), PortError> {
        let Ports { store, clock, .. } = &self.ports;
        let settled = store.settle_unheard(who.tenant, who.runner, link, hello, clock.now());
        settled.await.map(drop).map_err(PortError::new)
    }

    async fn heard(&self, who: &LinkIdentity, heard: Heard) -> Option<TurnedAway> {
        let stored = self.ports.store.link_heard(who.tenant, who.runner, heard);
        stored.await.unwrap_or_else(|error| {
            tracing::warn!(runner.id = %who.runner, %error, "it cannot be recorded that the runner was heard of");
            None
        })
    }

    async fn ended(&self, who: &LinkIdentity, generation: Generation, accepted: u64) {
        let Ports { store, clock, .. } = &self.ports;
        let last = Heard {
            generation,
            at: clock.now(),
            accepted,
        };
        if let Err(error) = store.link_ended(who.tenant, who.runner, last).await {
            tracing::warn!(runner.id = %who.runner, %error, "it cannot be recorded that the link ended");
        }
    }

    async fn verdicts(
        &self,
        who: &LinkIdentity,
        operations: &[OperationId],
    ) -> Result<Vec<(OperationId, ReconcileVerdict)>, PortError> {
        let store = &self.ports.store;
        let states = store.operation_states(who.tenant, who.runner, operations);
        let states = states.await.map_err(PortError::new)?;
        let of_state = |wanted| {
            let all = states.iter().filter(move |(_, state)| *state == wanted);
            all.map(|(id, _)| *id)
        };
        let unknown = of_state(OperationState::Unknown).count();
        if unknown > 0 {
            tracing::warn!(runner.id = %who.runner, operations = unknown, "the runner remembers operations that this server does not know, as after its database was restored: what runs goes on within its time limits, unread, and all of it is forgotten once it has ended");
        }
        let open: Vec<_> = of_state(OperationState::Open).collect();
        let committed = self.committed(who.tenant, &open).await;
        let mut verdicts = Vec::with_capacity(states.len());
        for (id, state) in &states {
            let committed = committed.get(id).copied().unwrap_or_default();
            let verdict = self.verdict(who, *id, *state, committed).await;
            verdicts.push((*id, verdict.map_err(PortError::new)?));
        }
        Ok(verdicts)
    }

    async fn reported(
        &self,
        who: &LinkIdentity,
        report: &SandboxReport,
    ) -> Result<bool, PortError> {
        let Ports { store, clock, .. } = &self.ports;
        let stored = store.sandbox_reported(who.tenant, who.runner, report, clock.now());
        let stored = stored.await;
        match stored.map_err(PortError::new)? {
            Reported::Stored => Ok(false),
            Reported::NotWanted => Ok(true),
            // Files are not removed because a database does not know of them.
            Reported::Unknown => {
                tracing::warn!(runner.id = %who.runner, sandbox.id = %report.sandbox, "the runner has a sandbox that this server does not know; it is left alone");
                Ok(false)
            }
        }
    }

    async fn models(
        &self,
        who: &LinkIdentity,
        link: Generation,
        report: &ModelsReport,
    ) -> Result<(), PortError> {
        let stored = (self.ports.store).models_reported(who.tenant, who.runner, link, report);
        stored.await.map_err(PortError::new)
    }

    async fn holder(&self, runner: RunnerId) -> Result<LinkState, PortError> {
        let state = self.ports.store.link_state(runner, self.replica).await;
        state.map_err(PortError::new)
    }

    fn operations(&self, who: &LinkIdentity) -> Arc<dyn Operations> {
        self.ports.operations(who.tenant)
    }
}

impl Rows {
    /// The bytes of each of these operations' output that its runner need not keep; some reader waits
    /// for their ends. Output that is left to the reader is kept here only once the call has ended or
    /// the operation must stop. Its collector does not know the request then, so none of that output
    /// counts.
    async fn committed(
        &self,
        tenant: TenantId,
        open: &[OperationId],
    ) -> HashMap<OperationId, [u64; 2]> {
        match self.ports.outputs(tenant).durable(open).await {
            Ok(durable) => open.iter().copied().zip(durable).collect(),
            // The next reader of the operation tells its runner.
            Err(error) => {
                tracing::warn!(%error, "runners are not told what is durable of their output");
                HashMap::new()
            }
        }
    }

    async fn verdict(
        &self,
        who: &LinkIdentity,
        id: OperationId,
        state: OperationState,
        committed: [u64; 2],
    ) -> Result<ReconcileVerdict, StoreError> {
        let store = &self.ports.store;
        match state {
            // Another server's, or one from after a backup that was restored: no reader will ask
            // for it.
            OperationState::Unknown => Ok(ReconcileVerdict::Forget),
            OperationState::Open => Ok(ReconcileVerdict::Keep { committed }),
            // A call that has not ended may be asked for the output once more. Its command is over, of
            // which a runner gives up nothing before all of it.
            OperationState::Settled => {
                let row = store.operation(who.tenant, id).await?;
                Ok(match row.closed_at {
                    None => ReconcileVerdict::Keep { committed: [0, 0] },
                    Some(_) if self.is_kept(who.tenant, &row).await? => ReconcileVerdict::Forget,
                    Some(_) => ReconcileVerdict::Collect,
                })
            }
            // Under its owner's epoch of now: the runner has seen it, and refuses an older one.
            OperationState::CancelRequested => {
                let (row, _, epoch) = store.placed_operation(who.tenant, id).await?;
                let owner = row.owner();
                Ok(ReconcileVerdict::Cancel { owner, epoch })
            }
            OperationState::Closed => Ok(ReconcileVerdict::Collect),
        }
    }

    /// True if all of the output of an operation that ended is durable. A server may have died between
    /// storing its end and keeping the last of its output, or may do so now.
    async fn is_kept(&self, tenant: TenantId, row: &OperationRow) -> Result<bool, StoreError> {
        let record = match row.outcome.as_ref().map(|stored| stored.decode()) {
            Some(Ok(Outcome::Exited(record))) => record,
            Some(Ok(_)) | None => return Ok(true),
            // What it has written is not known to this version of the server.
            Some(Err(_)) => return Ok(false),
        };
        let durable = self.ports.outputs(tenant).durable(&[row.id]).await?;
        let ends = [record.stdout.offset, record.stderr.offset];
        Ok(durable
            .concat()
            .iter()
            .zip(ends)
            .all(|(durable, end)| *durable >= end))
    }
}
