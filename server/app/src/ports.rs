//! The router's ports over the store: the fleet of a turn (`fleet`), the intents of a session, the
//! operations of a tenant, the rows of links.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use server_agent::feed::LiveHub;
use server_records::LinkIdentity;
use server_records::{Heard, Intents, LinkRows, NewIntent, Operations, PlaceError, PortError};
use server_store::{
    ClaimedPool, Ending, Label, LinkClaim, LinkHolds, LostOutcome, NewOperation, NewSandbox,
    OperationRow, Outputs, Placed, Reported, Store, StoreError,
};
use shared_link::server::HelloFacts;
use shared_link::server::{
    Figures, RunnerState, SandboxReport, Seen, Settled, StoredIntent, TurnedAway, Verdict,
};
use shared_sandbox::{ExitStatus, Outcome, Request};
use shared_types::{
    Clock, Epoch, Generation, OperationId, OperationKey, Refusal, RefusalCode, ReplicaId, RunnerId,
    SandboxId, SandboxSpec, SessionId, TenantId, clean::clean_line, event::Place,
};

use crate::{
    fleet_figures::FleetFigures,
    isolation::IsolationPolicy,
    measured::{operation_ended, operation_ended_twice},
};

mod fleet;
mod outputs;

use fleet::state_of;
pub(crate) use fleet::{Started, TurnFleet, shown};
pub(crate) use outputs::{TenantOutputs, kind};

/// Longest summary of what became of an operation, in bytes.
const MAX_SUMMARY_BYTES: usize = 1024;

/// The places of the operations of one session.
pub(crate) struct SessionIntents {
    pub(crate) store: Store,
    pub(crate) hub: LiveHub,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionId,
}

#[async_trait]
impl Intents for SessionIntents {
    async fn place(&self, intent: NewIntent, request: &Request) -> Result<(), PlaceError> {
        let OperationKey::Call {
            turn,
            step,
            ordinal,
            attempt,
        } = intent.key
        else {
            return Err(PortError::new("a session's operations are its calls'").into());
        };
        let operation = NewOperation {
            id: intent.id,
            session: self.session,
            turn,
            step,
            ordinal,
            attempt,
            digest: intent.digest,
            place: intent.place,
            incarnation: intent.incarnation,
            effect: intent.effect,
            start_by: intent.start_by,
            deadline_at: intent.deadline,
            label: label(request),
            trace: intent.trace,
        };
        match self
            .store
            .place_operation(self.tenant, intent.epoch, &operation, self.clock.now())
            .await
        {
            Ok(Placed::New { event }) => {
                let events = event.into_iter().map(|event| *event).collect();
                self.hub.appended(self.session, events).await;
                Ok(())
            }
            Ok(Placed::Known(_)) | Err(StoreError::Conflict(_)) => Err(PlaceError::Conflict),
            Ok(Placed::Barred) => Err(PlaceError::Barred),
            Ok(Placed::NotAllowed) => Err(PlaceError::NotAllowed),
            Ok(Placed::OtherIncarnation) => Err(PlaceError::OtherIncarnation),
            Err(StoreError::StaleEpoch { .. }) => Err(PlaceError::StaleEpoch),
            Err(error) => Err(PortError::new(error).into()),
        }
    }
}

/// The operations of one tenant.
pub(crate) struct TenantOperations {
    pub(crate) store: Store,
    pub(crate) outputs: Outputs,
    pub(crate) hub: LiveHub,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) isolation: Arc<IsolationPolicy>,
    pub(crate) tenant: TenantId,
}

#[async_trait]
impl Operations for TenantOperations {
    async fn find(&self, id: OperationId) -> Result<Option<StoredIntent>, PortError> {
        match self.store.placed_operation(self.tenant, id).await {
            Ok(placed) => Ok(Some(stored(placed)?)),
            Err(StoreError::NotFound) => Ok(None),
            Err(error) => Err(not_answered(error)),
        }
    }

    async fn runner(&self, runner: RunnerId) -> Result<RunnerState, PortError> {
        match self.store.runner(self.tenant, runner).await {
            Ok(row) => Ok(state_of(&row)),
            Err(StoreError::NotFound) => Ok(RunnerState::Revoked),
            Err(error) => Err(not_answered(error)),
        }
    }

    async fn request_cancel(&self, id: OperationId) -> Result<(), PortError> {
        let cancelled = self
            .store
            .cancel_operation(self.tenant, id, self.clock.now());
        cancelled.await.map(drop).map_err(not_answered)
    }

    async fn settle(&self, id: OperationId, outcome: &Outcome) -> Result<Settled, PortError> {
        let json = serde_json::to_string(outcome).map_err(PortError::lasting)?;
        let (summary, exit, now) = (summary(outcome), exit(outcome), self.clock.now());
        let ending = Ending {
            outcome: &json,
            summary: &summary,
            exit: &exit,
        };
        let settled = self
            .store
            .settle_operation(self.tenant, id, ending, now)
            .await;
        match settled.map_err(not_answered)? {
            server_store::Settled::Already(stored) => {
                let stored = decode(&stored.json)?;
                operation_ended_twice(&stored, outcome);
                Ok(Settled::Already(stored))
            }
            server_store::Settled::First { ran, late } => {
                operation_ended(&ran, outcome, now);
                self.hub.look_at_waits();
                // Watchers of the session learn that its log has grown.
                if let Some(late) = late {
                    self.hub.appended(late.0, Vec::new()).await;
                }
                Ok(Settled::First)
            }
        }
    }

    async fn sandbox_spec(&self, sandbox: SandboxId) -> Result<Option<SandboxSpec>, PortError> {
        let spec = self.store.sandbox_spec(self.tenant, sandbox).await;
        let Some(spec) = spec.map_err(PortError::new)? else {
            return Ok(None);
        };
        let may_sudo = self.isolation.may_sudo(&self.store, self.tenant).await;
        Ok(Some(SandboxSpec {
            may_sudo: may_sudo.map_err(PortError::new)?,
            ..spec
        }))
    }

    fn outputs(&self) -> Arc<dyn server_records::Outputs> {
        Arc::new(TenantOutputs {
            outputs: self.outputs.clone(),
            tenant: self.tenant,
        })
    }
}

/// The request, for lists.
pub(crate) fn label(request: &Request) -> Label {
    Label {
        kind: request.kind().to_owned(),
        title: request.title(),
    }
}

fn stored((row, place, epoch): (OperationRow, Place, Epoch)) -> Result<StoredIntent, PortError> {
    Ok(StoredIntent {
        digest: row.digest,
        owner: row.owner(),
        epoch,
        place,
        incarnation: row.incarnation,
        outcome: row.outcome.map(|stored| decode(&stored.json)).transpose()?,
        cancel_requested: row.cancel_requested_at.is_some(),
        closed: row.closed_at.is_some(),
        effect: row.effect,
        start_by: row.start_by,
        trace: row.trace,
    })
}

/// The rows of runners and their links.
pub(crate) struct Rows {
    pub(crate) store: Store,
    pub(crate) outputs: Outputs,
    pub(crate) hub: LiveHub,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) replica: ReplicaId,
    pub(crate) isolation: Arc<IsolationPolicy>,
    pub(crate) fleet: Arc<FleetFigures>,
}

#[async_trait]
impl LinkRows for Rows {
    async fn seen(&self, who: &LinkIdentity) -> Result<Option<Seen>, PortError> {
        let row = self.store.runner(who.tenant, who.runner).await;
        let row = row.map_err(PortError::new)?;
        Ok(row.incarnation.map(|incarnation| Seen {
            incarnation,
            journal_sequence: row.journal_sequence,
            accepted_sequence: row.accepted_sequence,
        }))
    }

    async fn claim(&self, who: &LinkIdentity, hello: &HelloFacts) -> Result<Generation, PortError> {
        let claim = LinkClaim {
            replica: self.replica,
            incarnation: hello.incarnation.clone(),
            journal_sequence: hello.journal_sequence,
            version: hello.software_version.clone(),
            hostname: hello.hostname.clone(),
            os: hello.os.clone(),
            architecture: hello.architecture.clone(),
            features: hello.features.clone(),
            sandboxes: hello
                .sandboxes
                .iter()
                .map(|sandbox| NewSandbox {
                    name: sandbox.name.clone(),
                    root: sandbox.root.clone(),
                    isolation: sandbox.isolation.clone(),
                    problem: sandbox.problem.clone(),
                })
                .collect(),
            pool: hello.pool.as_ref().map(|pool| ClaimedPool {
                backend: pool.backend.clone(),
                templates: pool.templates.clone(),
                sudo_templates: pool.sudo_templates.clone(),
                isolation: pool.isolation.clone(),
                problem: pool.problem.clone(),
            }),
            remembered: hello.inventory.iter().map(|one| one.operation).collect(),
            lost: lost(shared_link::server::forgotten()).map_err(PortError::new)?,
            lost_to_restoration: lost(shared_link::server::lost_to_restoration())
                .map_err(PortError::new)?,
        };
        let claimed = self
            .store
            .link_claim(who.tenant, who.runner, &claim, self.clock.now())
            .await
            .map_err(PortError::new)?;
        self.hub.look_at_waits();
        for (operation, session) in claimed.late {
            tracing::info!(operation.id = %operation, "the runner has forgotten an operation: it is lost");
            self.hub.appended(session, Vec::new()).await;
        }
        Ok(claimed.generation)
    }

    async fn settle_unheard(
        &self,
        who: &LinkIdentity,
        link: Generation,
        hello: &HelloFacts,
    ) -> Result<(), PortError> {
        let remembered: Vec<_> = hello.inventory.iter().map(|one| one.operation).collect();
        let outcome = lost(shared_link::server::never_started()).map_err(PortError::new)?;
        let (link, now) = ((who.runner, link), self.clock.now());
        let settled = self
            .store
            .settle_unheard(who.tenant, link, &remembered, &outcome, now)
            .await
            .map_err(PortError::new)?;
        self.hub.look_at_waits();
        for (operation, session) in settled {
            tracing::info!(operation.id = %operation, "the runner never had an operation: it is over");
            self.hub.appended(session, Vec::new()).await;
        }
        Ok(())
    }

    async fn heard(&self, who: &LinkIdentity, heard: Heard) -> Option<TurnedAway> {
        let shown = (heard.at, heard.accepted);
        let stored = self
            .store
            .link_heard(who.tenant, who.runner, heard.generation, shown);
        match stored.await {
            Ok(LinkHolds::Yes) => None,
            Ok(LinkHolds::Replaced) => Some(TurnedAway::Older),
            Ok(LinkHolds::Revoked) => Some(TurnedAway::Revoked),
            Ok(LinkHolds::Locked) => Some(TurnedAway::Locked),
            Err(error) => {
                tracing::warn!(runner.id = %who.runner, %error, "it cannot be recorded that the runner was heard of");
                None
            }
        }
    }

    fn figures(&self, who: &LinkIdentity, generation: Generation, figures: Figures) {
        self.fleet.told(who.runner, generation, figures);
    }

    async fn ended(&self, who: &LinkIdentity, generation: Generation, accepted: u64) {
        self.fleet.forget(who.runner, generation);
        let shown = (self.clock.now(), accepted);
        if let Err(error) = self
            .store
            .link_ended(who.tenant, who.runner, generation, shown)
            .await
        {
            tracing::warn!(runner.id = %who.runner, %error, "it cannot be recorded that the link ended");
        }
    }

    async fn verdicts(
        &self,
        who: &LinkIdentity,
        operations: &[OperationId],
    ) -> Result<Vec<(OperationId, Verdict)>, PortError> {
        let stored = self
            .store
            .operation_verdicts(who.tenant, who.runner, operations)
            .await
            .map_err(PortError::new)?;
        let unknown = stored.iter();
        let unknown = unknown.filter(|(_, verdict)| *verdict == server_store::Verdict::Unknown);
        let unknown = unknown.count();
        if unknown > 0 {
            tracing::warn!(runner.id = %who.runner, operations = unknown, "the runner remembers operations that this server does not know, as after its database was restored: what runs goes on within its time limits, unread, and all of it is forgotten once it has ended");
        }
        let open = stored.iter();
        let open = open.filter(|(_, verdict)| *verdict == server_store::Verdict::Open);
        let open: Vec<_> = open.map(|(id, _)| *id).collect();
        let committed = self.committed(who.tenant, &open).await;
        let mut verdicts = Vec::with_capacity(stored.len());
        for (id, verdict) in stored {
            let committed = committed.get(&id).copied().unwrap_or_default();
            let verdict = self.verdict(who, id, (verdict, committed)).await;
            verdicts.push((id, verdict.map_err(PortError::new)?));
        }
        Ok(verdicts)
    }

    async fn reported(
        &self,
        who: &LinkIdentity,
        report: &SandboxReport,
    ) -> Result<bool, PortError> {
        let (of, now) = ((who.runner, report.sandbox), self.clock.now());
        let said = (report.state, report.reason.as_str(), report.privilege);
        let stored = self.store.sandbox_reported(who.tenant, of, said, now).await;
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

    fn operations(&self, who: &LinkIdentity) -> Arc<dyn Operations> {
        Arc::new(TenantOperations {
            store: self.store.clone(),
            outputs: self.outputs.clone(),
            hub: self.hub.clone(),
            clock: self.clock.clone(),
            isolation: Arc::clone(&self.isolation),
            tenant: who.tenant,
        })
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
        let outputs = TenantOutputs {
            outputs: self.outputs.clone(),
            tenant,
        };
        match outputs.durable(open).await {
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
        (verdict, committed): (server_store::Verdict, [u64; 2]),
    ) -> Result<Verdict, StoreError> {
        use server_store::Verdict as Stored;
        match verdict {
            // Another server's, or one from after a backup that was restored: no reader will ask
            // for it.
            Stored::Unknown => Ok(Verdict::Forget),
            Stored::Open => Ok(Verdict::Keep { committed }),
            // A call that has not ended may be asked for the output once more. Its command is over, of
            // which a runner gives up nothing before all of it.
            Stored::Settled => {
                let row = self.store.operation(who.tenant, id).await?;
                Ok(match row.closed_at {
                    None => Verdict::Keep { committed: [0, 0] },
                    Some(_) if self.is_kept(who.tenant, &row).await? => Verdict::Forget,
                    Some(_) => Verdict::Collect,
                })
            }
            // Under its owner's epoch of now: the runner has seen it, and refuses an older one.
            Stored::CancelRequested => {
                let (row, _, epoch) = self.store.placed_operation(who.tenant, id).await?;
                let owner = row.owner();
                Ok(Verdict::Cancel { owner, epoch })
            }
            Stored::Closed => Ok(Verdict::Collect),
        }
    }

    /// True if all of the output of an operation that ended is durable. A server may have died between
    /// storing its end and keeping the last of its output, or may do so now.
    async fn is_kept(&self, tenant: TenantId, row: &OperationRow) -> Result<bool, StoreError> {
        let record = match row.outcome.as_ref().map(|stored| decode(&stored.json)) {
            Some(Ok(Outcome::Exited(record))) => record,
            Some(Ok(_)) | None => return Ok(true),
            // What it has written is not known to this version of the server.
            Some(Err(_)) => return Ok(false),
        };
        let outputs = TenantOutputs {
            outputs: self.outputs.clone(),
            tenant,
        };
        let durable = outputs.durable(&[row.id]).await?.concat();
        let ends = [record.stdout.offset, record.stderr.offset];
        Ok(durable
            .iter()
            .zip(ends)
            .all(|(durable, end)| *durable >= end))
    }
}

/// The outcome of what ends without its runner's word, as it is stored.
pub(crate) fn lost(why: Refusal) -> Result<LostOutcome, serde_json::Error> {
    let outcome = Outcome::Refused(why);
    Ok(LostOutcome {
        outcome: serde_json::to_string(&outcome)?,
        summary: summary(&outcome),
    })
}

fn decode(json: &str) -> Result<Outcome, PortError> {
    serde_json::from_str(json).map_err(PortError::lasting)
}

/// The store's answer, where it is none that was wanted.
fn not_answered(error: StoreError) -> PortError {
    match error.is_passing() {
        true => PortError::new(error),
        false => PortError::lasting(error),
    }
}

/// The end of an operation whose call had ended without it: for people and for the model. It is one
/// line of bounded length, because some of its words are the runner's.
fn summary(outcome: &Outcome) -> String {
    let words = words(outcome);
    let end = words.floor_char_boundary(MAX_SUMMARY_BYTES);
    clean_line(&words[..end], MAX_SUMMARY_BYTES)
}

/// The end of an operation, in a few words for the audit log, without its request.
pub(crate) fn exit(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exited(record) => match record.status {
            ExitStatus::Code(code) => format!("exit {code}"),
            ExitStatus::Signal(signal) => format!("signal {signal}"),
            ExitStatus::NotStarted(_) => "not started".to_owned(),
            ExitStatus::Unknown => "unknown".to_owned(),
        },
        other => other.cause().to_owned(),
    }
}

fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exited(record) => format!(
            "it ran for {} ms and ended {}: {}",
            record.wall_ms, record.cause, record.status
        ),
        Outcome::Failed(failure) => format!("it failed: {failure}"),
        // Whether it ran is what is not known.
        Outcome::Refused(refusal) if refusal.code == RefusalCode::Lost => {
            format!("it is lost: {refusal}")
        }
        Outcome::Refused(refusal) => format!("it was not run: {refusal}"),
        _ => "it was done".to_owned(),
    }
}

#[cfg(test)]
mod tests;
