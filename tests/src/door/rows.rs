//! The router's ports in memory, for one runner: so that nothing which is measured waits for a disk.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use server_records::{
    Fleet, FleetRunner, FleetSandbox, FleetSnapshot, Heard, Intents, LinkIdentity, LinkRows,
    LinkState, NewIntent, Operations, Outputs, PlaceError, PortError,
};
use shared_link::server::{
    HelloFacts, KnownMemory, ModelsReport, ReconcileVerdict, RunnerState, SandboxReport,
    Settlement, StoredIntent, TurnedAway, never_started,
};
use shared_sandbox::{Outcome, Request};
use shared_types::{
    Generation, Isolation, OperationId, RunnerId, SandboxId, SandboxLimits, SandboxNetwork,
    SandboxSpec, UserId, event::Choice,
};

/// What a store would keep.
#[derive(Clone, Default)]
pub struct Rows(Arc<Mutex<Kept>>);

/// The name of the only sandbox of a pool.
const POOLED: &str = "person";

/// The only sandbox of a runner that makes them.
fn pooled(runner: RunnerId) -> SandboxId {
    SandboxId::derive(runner, POOLED)
}

#[derive(Default)]
struct Kept {
    runner: Option<FleetRunner>,
    links: u64,
    intents: HashMap<OperationId, StoredIntent>,
    /// Nobody waits for these any more.
    abandoned: HashSet<OperationId>,
    outputs: Option<Arc<dyn Outputs>>,
}

impl Rows {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on output is kept there.
    pub fn keep_output_in(&self, outputs: Arc<dyn Outputs>) {
        self.kept().outputs = Some(outputs);
    }

    /// Nobody waits for this operation any more; its outcome is fetched with the next link.
    pub fn abandon(&self, id: OperationId) {
        self.kept().abandoned.insert(id);
    }

    /// How an operation ended, if it has.
    pub fn outcome(&self, id: OperationId) -> Option<Outcome> {
        self.kept().intents.get(&id)?.outcome.clone()
    }

    fn area(&self) -> Arc<dyn Outputs> {
        let area = self.kept().outputs.clone();
        area.expect("a door keeps output")
    }

    /// Drops an operation.
    pub fn drop_intent(&self, id: OperationId) {
        self.kept().intents.remove(&id);
    }
}

#[async_trait]
impl Fleet for Rows {
    async fn snapshot(&self) -> Result<FleetSnapshot, PortError> {
        let runner = self.kept().runner.clone();
        Ok(FleetSnapshot {
            returns_until: None,
            lacks_sandbox: None,
            is_callers: false,
            choice: runner.as_ref().map_or(Choice::None, |runner| Choice::User {
                runner: runner.id,
                name: runner.name.clone(),
                workspace: None,
            }),
            demanded: Isolation::none(),
            runners: runner.into_iter().collect(),
        })
    }

    /// Nobody watches.
    async fn want_sandbox(&self, _pool: RunnerId, _user: UserId) -> Result<(), PortError> {
        unreachable!("no runner here is a pool")
    }

    fn tell(&self, _words: String) {}
}

#[async_trait]
impl Intents for Rows {
    async fn place(&self, intent: NewIntent, _request: &Request) -> Result<(), PlaceError> {
        let stored = StoredIntent {
            digest: intent.digest,
            owner: intent.owner,
            epoch: intent.epoch,
            place: intent.place,
            incarnation: intent.incarnation,
            outcome: None,
            cancel_requested: false,
            closed: false,
            effect: intent.effect,
            start_by: Some(intent.start_by),
            trace: None,
        };
        self.kept().intents.insert(intent.id, stored);
        Ok(())
    }
}

#[async_trait]
impl Operations for Rows {
    async fn find(&self, id: OperationId) -> Result<Option<StoredIntent>, PortError> {
        let kept = self.kept();
        let found = kept.intents.get(&id).cloned();
        Ok(found.map(|intent| StoredIntent {
            closed: kept.abandoned.contains(&id),
            ..intent
        }))
    }

    async fn runner(&self, _runner: RunnerId) -> Result<RunnerState, PortError> {
        Ok(RunnerState::Offline { since: None })
    }

    async fn request_cancel(&self, _id: OperationId) -> Result<(), PortError> {
        Err(PortError::new("nothing is cancelled here"))
    }

    async fn settle(&self, id: OperationId, outcome: &Outcome) -> Result<Settlement, PortError> {
        let mut kept = self.kept();
        let intent = kept.intents.get_mut(&id);
        let intent = intent.ok_or_else(|| PortError::new("it was not placed"))?;
        intent.outcome = Some(outcome.clone());
        Ok(Settlement::First)
    }

    async fn sandbox_spec(&self, id: SandboxId) -> Result<Option<SandboxSpec>, PortError> {
        let kept = self.kept();
        let of_a_pool = kept
            .runner
            .as_ref()
            .is_some_and(|runner| pooled(runner.id) == id);
        Ok(of_a_pool.then(|| SandboxSpec {
            name: POOLED.to_owned(),
            template: "base".to_owned(),
            limits: SandboxLimits::default(),
            network: SandboxNetwork::None,
            may_sudo: false,
        }))
    }

    fn outputs(&self) -> Arc<dyn Outputs> {
        self.area()
    }
}

#[async_trait]
impl LinkRows for Rows {
    async fn seen(&self, _who: &LinkIdentity) -> Result<Option<KnownMemory>, PortError> {
        Ok(None)
    }

    async fn claim(&self, who: &LinkIdentity, hello: &HelloFacts) -> Result<Generation, PortError> {
        let mut kept = self.kept();
        let sandboxes = hello.sandboxes.iter().map(|sandbox| FleetSandbox {
            id: sandbox.id,
            name: sandbox.name.clone(),
            isolation: sandbox.isolation.clone(),
            problem: None,
            has_sudo: false,
            epoch: shared_types::Epoch(0),
        });
        // A pool makes its one user a sandbox with its first operation.
        let pooled = hello.pool.iter().map(|pool| FleetSandbox {
            id: pooled(who.runner),
            name: POOLED.to_owned(),
            isolation: pool.isolation.clone(),
            problem: None,
            has_sudo: false,
            epoch: shared_types::Epoch(0),
        });
        let sandboxes = sandboxes.chain(pooled);
        kept.runner = Some(FleetRunner {
            pool: hello.pool.is_some(),
            id: who.runner,
            name: who.name.clone(),
            state: RunnerState::Online,
            locked: false,
            drained_by: None,
            sandboxes: sandboxes.collect(),
            believed: false,
            incarnation: Some(hello.incarnation.clone()),
        });
        kept.links += 1;
        Ok(Generation(kept.links))
    }

    async fn settle_unheard(
        &self,
        _who: &LinkIdentity,
        _link: Generation,
        hello: &HelloFacts,
    ) -> Result<(), PortError> {
        let mut kept = self.kept();
        let Kept {
            intents, abandoned, ..
        } = &mut *kept;
        for (id, intent) in intents {
            let listed = hello.inventory.iter().any(|entry| entry.operation == *id);
            if !listed && (intent.cancel_requested || abandoned.contains(id)) {
                intent
                    .outcome
                    .get_or_insert(Outcome::Refused(never_started()));
            }
        }
        Ok(())
    }

    async fn heard(&self, _who: &LinkIdentity, _heard: Heard) -> Option<TurnedAway> {
        None
    }

    async fn ended(&self, _who: &LinkIdentity, _generation: Generation, _accepted: u64) {}

    async fn holder(&self, _runner: RunnerId) -> Result<LinkState, PortError> {
        Ok(LinkState::Absent)
    }

    async fn verdicts(
        &self,
        _who: &LinkIdentity,
        operations: &[OperationId],
    ) -> Result<Vec<(OperationId, ReconcileVerdict)>, PortError> {
        let area = self.area();
        let mut committed = HashMap::new();
        for id in operations {
            committed.insert(*id, area.synced(*id).await.unwrap_or_default());
        }
        let kept = self.kept();
        let verdict = |id| match kept.intents.get(id) {
            Some(intent) if intent.outcome.is_none() && kept.abandoned.contains(id) => {
                ReconcileVerdict::Collect
            }
            Some(intent) if intent.outcome.is_none() => ReconcileVerdict::Keep {
                committed: committed[id],
            },
            _ => ReconcileVerdict::Forget,
        };
        Ok(operations.iter().map(|id| (*id, verdict(id))).collect())
    }

    async fn reported(&self, _: &LinkIdentity, _: &SandboxReport) -> Result<bool, PortError> {
        Ok(false)
    }

    async fn models(
        &self,
        _: &LinkIdentity,
        _: Generation,
        _: &ModelsReport,
    ) -> Result<(), PortError> {
        Ok(())
    }

    fn operations(&self, _who: &LinkIdentity) -> Arc<dyn Operations> {
        Arc::new(self.clone())
    }
}
