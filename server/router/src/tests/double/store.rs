//! A store in memory that keeps the ports' promises, for any number of servers.

use server_records::*;
use shared_link::server::*;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use async_trait::async_trait;
use shared_sandbox::{Operation, Outcome, Request};
use shared_types::{
    Epoch, Generation, Incarnation, Isolation, OperationId, ReplicaId, RunnerId, SandboxId,
    SandboxSpec, TenantId, Timestamp, UserId, clock::BootMoment, event::Choice,
};

use super::{
    NOW, Runner,
    outputs::Area,
    weather::{Calm, Weather},
};

/// A store in memory that keeps the ports' promises, as one server has it. Clones are the same store.
#[derive(Clone)]
pub(in crate::tests) struct Store {
    replica: ReplicaId,
    rows: Arc<Mutex<Rows>>,
    area: Arc<Area>,
    weather: Arc<dyn Weather>,
}

#[derive(Default)]
pub(in crate::tests) struct Rows {
    pub(in crate::tests) choice: Choice,
    /// What people were told.
    pub(in crate::tests) told: Vec<String>,
    pub(in crate::tests) demanded: Isolation,
    runners: HashMap<RunnerId, (FleetRunner, Generation)>,
    /// The servers that have their links.
    holders: HashMap<RunnerId, ReplicaId>,
    seen: HashMap<RunnerId, KnownMemory>,
    pub(in crate::tests) intents: HashMap<OperationId, StoredIntent>,
    /// Operations for which nobody waits any more.
    pub(in crate::tests) abandoned: Vec<OperationId>,
    /// The epoch of every owner.
    pub(in crate::tests) epoch: Epoch,
    pub(in crate::tests) heard: u32,
    /// How often a server has asked who has a link.
    pub(in crate::tests) looked: u32,
    /// What whoever is heard of is answered.
    pub(in crate::tests) turned_away: Option<TurnedAway>,
    /// Outcomes that the router stored.
    pub(in crate::tests) settled: u32,
}

impl Default for Store {
    fn default() -> Self {
        Self::under(Arc::new(Calm))
    }
}

impl Store {
    /// One whose callers this befalls.
    pub(in crate::tests) fn under(weather: Arc<dyn Weather>) -> Self {
        Self {
            replica: ReplicaId::from_u128(1),
            rows: Arc::default(),
            area: Arc::new(Area::under(Arc::clone(&weather))),
            weather,
        }
    }

    /// The same store as this server has it.
    pub(in crate::tests) fn at(&self, replica: ReplicaId) -> Self {
        self.at_under(replica, Arc::clone(&self.weather))
    }

    /// The same, and this befalls that server's callers.
    pub(in crate::tests) fn at_under(&self, replica: ReplicaId, weather: Arc<dyn Weather>) -> Self {
        Self {
            replica,
            rows: Arc::clone(&self.rows),
            area: Arc::new(self.area.elsewhere(Arc::clone(&weather))),
            weather,
        }
    }

    /// The server whose store this is.
    pub(in crate::tests) fn replica(&self) -> ReplicaId {
        self.replica
    }

    /// The server that has the runner's link.
    pub(in crate::tests) fn holder_of(&self, runner: RunnerId) -> Option<ReplicaId> {
        self.rows().holders.get(&runner).copied()
    }

    /// The lease of a server has ended: it has no link any more.
    pub(in crate::tests) fn end_lease(&self, replica: ReplicaId) {
        let mut rows = self.rows();
        let rows = &mut *rows;
        rows.holders.retain(|runner, holder| {
            if *holder == replica
                && let Some((row, _)) = rows.runners.get_mut(runner)
                && row.state == RunnerState::Online
            {
                row.state = RunnerState::Offline { since: Some(NOW) };
            }
            *holder != replica
        });
    }

    pub(in crate::tests) fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().expect("no test panics with the rows")
    }

    /// Where output is kept.
    pub(in crate::tests) fn area(&self) -> &Area {
        &self.area
    }

    /// What the runner's newest link has shown of its memory, as far as that is stored.
    pub(in crate::tests) fn shown_by(&self, runner: RunnerId) -> Option<KnownMemory> {
        self.rows().seen.get(&runner).cloned()
    }

    /// Of the runner's newest link.
    pub(in crate::tests) fn generation_of(&self, runner: RunnerId) -> Generation {
        let rows = self.rows();
        rows.runners
            .get(&runner)
            .map_or(Generation(0), |(_, generation)| *generation)
    }

    /// How much the runner has accepted, as far as that is stored.
    pub(in crate::tests) fn accepted_by(&self, runner: RunnerId) -> Option<u64> {
        let rows = self.rows();
        rows.seen.get(&runner).map(|seen| seen.accepted_sequence)
    }

    pub(in crate::tests) fn choose(&self, runner: &Runner) {
        let (runner, name) = (runner.id, runner.name.clone());
        self.rows().choice = Choice::User {
            runner,
            name,
            workspace: None,
        };
    }

    /// A runner that has never linked.
    pub(in crate::tests) fn enrol(&self, runner: &Runner, since: Timestamp) {
        let sandbox = FleetSandbox {
            id: SandboxId::derive(runner.id, "workspace"),
            name: "workspace".to_owned(),
            isolation: Isolation::none(),
            problem: None,
            has_sudo: false,
            epoch: Epoch(0),
        };
        let row = FleetRunner {
            id: runner.id,
            name: runner.name.clone(),
            state: RunnerState::Offline { since: Some(since) },
            locked: false,
            drained_by: None,
            pool: false,
            sandboxes: vec![sandbox],
            believed: false,
            incarnation: Some(runner.incarnation.clone()),
        };
        let row = (row, Generation(0));
        self.rows().runners.insert(runner.id, row);
    }

    /// Stores that the runner is online, as after a server that was killed.
    pub(in crate::tests) fn believe_online(&self, runner: &Runner) {
        self.set_state(runner, RunnerState::Online);
    }

    /// Stores another memory of the runner than the one that is linked.
    pub(in crate::tests) fn believe(&self, runner: &Runner, incarnation: Incarnation) {
        let mut rows = self.rows();
        let (row, _) = rows.runners.get_mut(&runner.id).expect("it is enrolled");
        row.incarnation = Some(incarnation);
    }

    pub(in crate::tests) fn revoke(&self, runner: &Runner) {
        self.set_state(runner, RunnerState::Revoked);
    }

    fn set_state(&self, runner: &Runner, state: RunnerState) {
        let mut rows = self.rows();
        let (row, _) = rows.runners.get_mut(&runner.id).expect("it is enrolled");
        row.state = state;
    }

    /// The next generation is 1 again, as no real store would do.
    pub(in crate::tests) fn forget_generations(&self) {
        for (_, generation) in self.rows().runners.values_mut() {
            *generation = Generation(0);
        }
    }

    pub(in crate::tests) fn outcome(&self, operation: &Operation) -> Option<Outcome> {
        let rows = self.rows();
        rows.intents.get(&operation.id)?.outcome.clone()
    }

    /// Says anew when it must have started.
    pub(in crate::tests) fn starts_by(&self, operation: &Operation, by: Option<BootMoment>) {
        let mut rows = self.rows();
        let intent = rows.intents.get_mut(&operation.id);
        intent.expect("it was placed").start_by = by;
    }

    pub(in crate::tests) fn fill_the_disk(&self) {
        self.area.fill(true);
    }

    pub(in crate::tests) fn free_the_disk(&self) {
        self.area.fill(false);
    }

    /// Whether the router was told that the disk is full.
    pub(in crate::tests) fn has_told_full(&self) -> bool {
        self.area.has_told_full()
    }

    /// Whether whoever reads a stream from its beginning waits.
    pub(in crate::tests) fn hold_the_beginnings(&self, hold: bool) {
        self.area.hold_the_beginnings(hold);
    }

    /// The engine stores an end together with what it concludes from it.
    pub(in crate::tests) fn keep_end(&self, operation: &Operation, outcome: Outcome) {
        let mut rows = self.rows();
        let intent = rows.intents.get_mut(&operation.id);
        intent.expect("it was placed").outcome = Some(outcome);
    }

    /// A call ends in one transaction with the end of its operation, where that end is the first and no newer epoch has
    /// taken the work over; says whether it does.
    pub(in crate::tests) async fn end_call(
        &self,
        id: OperationId,
        epoch: Epoch,
        outcome: &Outcome,
    ) -> Result<bool, PortError> {
        self.weather.before().await?;
        let is_first = self.rows().end_call(id, epoch, outcome);
        self.weather.after().await?;
        Ok(is_first)
    }

    /// A call ends, whatever becomes of its operation; says whether that has ended.
    pub(in crate::tests) async fn close_call(&self, id: OperationId) -> Result<bool, PortError> {
        self.weather.before().await?;
        let has_ended = self.rows().close_call(id);
        self.weather.after().await?;
        Ok(has_ended)
    }
}

impl Rows {
    /// What is read of an operation.
    pub(in crate::tests) fn intent(&self, id: OperationId) -> Option<StoredIntent> {
        let intent = self.intents.get(&id)?;
        Some(StoredIntent {
            epoch: self.epoch,
            closed: self.abandoned.contains(&id),
            ..intent.clone()
        })
    }

    fn place(&mut self, intent: NewIntent) -> Result<(), PlaceError> {
        if self.intents.contains_key(&intent.id) {
            return Err(PlaceError::Conflict);
        }
        if intent.epoch < self.epoch {
            return Err(PlaceError::StaleEpoch);
        }
        self.epoch = intent.epoch;
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
        self.intents.insert(intent.id, stored);
        Ok(())
    }

    /// The first one stays.
    fn settle(&mut self, id: OperationId, outcome: &Outcome) -> Settlement {
        let intent = self.intents.get_mut(&id).expect("it was placed");
        match &intent.outcome {
            Some(first) => Settlement::Already(first.clone()),
            None => {
                intent.outcome = Some(outcome.clone());
                Settlement::First
            }
        }
    }

    fn end_call(&mut self, id: OperationId, epoch: Epoch, outcome: &Outcome) -> bool {
        if epoch < self.epoch {
            return false;
        }
        let is_first = match self.settle(id, outcome) {
            Settlement::First => true,
            Settlement::Already(before) => before == *outcome,
        };
        if is_first {
            self.close_call(id);
        }
        is_first
    }

    fn close_call(&mut self, id: OperationId) -> bool {
        if !self.abandoned.contains(&id) {
            self.abandoned.push(id);
        }
        self.intents[&id].outcome.is_some()
    }

    /// Makes a link the runner's newest one. What the runner has forgotten can never be started any more,
    /// whichever journal links next.
    fn claim(&mut self, replica: ReplicaId, who: &LinkIdentity, hello: &HelloFacts) -> Generation {
        self.holders.insert(who.runner, replica);
        let generation = self
            .runners
            .get(&who.runner)
            .map_or(Generation(1), |(_, last)| Generation(last.0 + 1));
        let sandboxes = hello.sandboxes.iter().map(|sandbox| FleetSandbox {
            id: sandbox.id,
            name: sandbox.name.clone(),
            isolation: sandbox.isolation.clone(),
            problem: None,
            has_sudo: false,
            epoch: Epoch(0),
        });
        let row = FleetRunner {
            id: who.runner,
            name: who.name.clone(),
            state: RunnerState::Online,
            locked: false,
            drained_by: None,
            pool: false,
            sandboxes: sandboxes.collect(),
            believed: false,
            incarnation: Some(hello.incarnation.clone()),
        };
        self.runners.insert(who.runner, (row, generation));
        let seen = KnownMemory {
            incarnation: hello.incarnation.clone(),
            journal_sequence: hello.journal_sequence,
            accepted_sequence: hello.journal_sequence,
        };
        self.seen.insert(who.runner, seen);
        for (id, intent) in &mut self.intents {
            let listed = hello.inventory.iter().any(|entry| entry.operation == *id);
            if intent.place.runner == who.runner
                && intent.incarnation != hello.incarnation
                && !listed
            {
                intent.outcome.get_or_insert(Outcome::Refused(forgotten()));
            }
        }
        generation
    }

    /// Settles what the runner of its newest link never had, and nobody will send any more.
    fn settle_unheard(&mut self, who: &LinkIdentity, link: Generation, hello: &HelloFacts) {
        if !self.is_newest(who.runner, link) {
            return;
        }
        for (id, intent) in &mut self.intents {
            let listed = hello.inventory.iter().any(|entry| entry.operation == *id);
            let given_up = intent.cancel_requested || self.abandoned.contains(id);
            if intent.place.runner == who.runner && !listed && given_up {
                intent
                    .outcome
                    .get_or_insert(Outcome::Refused(never_started()));
            }
        }
    }

    /// What the runner has accepted over this link; an older one changes nothing.
    fn accepted(&mut self, runner: RunnerId, link: Generation, accepted: u64) {
        if self.is_newest(runner, link)
            && let Some(seen) = self.seen.get_mut(&runner)
        {
            seen.accepted_sequence = seen.accepted_sequence.max(accepted);
        }
    }

    fn is_newest(&self, runner: RunnerId, link: Generation) -> bool {
        let newest = self.runners.get(&runner);
        newest.is_some_and(|(_, newest)| *newest == link)
    }

    /// Whether this is the runner's link now.
    fn holds(&self, runner: RunnerId, link: Generation) -> bool {
        let newest = self.runners.get(&runner);
        // No store hands out a generation that is above its own.
        let is_newest = newest.is_some_and(|(_, newest)| *newest <= link);
        is_newest && self.holders.contains_key(&runner)
    }

    fn link_state(&self, replica: ReplicaId, runner: RunnerId) -> LinkState {
        let Some((row, generation)) = self.runners.get(&runner) else {
            return LinkState::Absent;
        };
        if row.state == RunnerState::Revoked {
            return LinkState::Barred(TurnedAway::Revoked);
        }
        let (Some(holder), Some(incarnation)) = (self.holders.get(&runner), &row.incarnation)
        else {
            return LinkState::Absent;
        };
        if *holder == replica {
            return LinkState::Here(*generation);
        }
        LinkState::Elsewhere(LinkHolder {
            replica: *holder,
            address: Some(holder.to_string()),
            tenant: TenantId::from_u128(1),
            runner,
            generation: *generation,
            incarnation: incarnation.clone(),
        })
    }

    fn verdict(&self, id: OperationId, area: &Area) -> ReconcileVerdict {
        let Some(intent) = self.intents.get(&id) else {
            return ReconcileVerdict::Forget;
        };
        let is_closed = self.abandoned.contains(&id);
        match &intent.outcome {
            Some(outcome) if is_closed && area.is_whole(id, outcome) => ReconcileVerdict::Forget,
            Some(_) if is_closed => ReconcileVerdict::Collect,
            Some(_) => ReconcileVerdict::Keep { committed: [0, 0] },
            None if intent.cancel_requested => ReconcileVerdict::Cancel {
                owner: intent.owner,
                epoch: self.epoch,
            },
            None if is_closed => ReconcileVerdict::Collect,
            None => ReconcileVerdict::Keep {
                committed: area.durable(id),
            },
        }
    }
}

#[async_trait]
impl Fleet for Store {
    async fn snapshot(&self) -> Result<FleetSnapshot, PortError> {
        self.weather.before().await?;
        let rows = self.rows();
        Ok(FleetSnapshot {
            is_callers: false,
            choice: rows.choice.clone(),
            demanded: rows.demanded.clone(),
            returns_until: None,
            lacks_sandbox: None,
            runners: rows.runners.values().map(|(row, _)| row.clone()).collect(),
        })
    }

    async fn want_sandbox(&self, _pool: RunnerId, _user: UserId) -> Result<(), PortError> {
        unreachable!("no runner here is a pool")
    }

    fn tell(&self, words: String) {
        self.rows().told.push(words);
    }
}

#[async_trait]
impl Intents for Store {
    async fn place(&self, intent: NewIntent, _request: &Request) -> Result<(), PlaceError> {
        self.weather.before().await?;
        let placed = self.rows().place(intent);
        self.weather.after().await?;
        placed
    }
}

#[async_trait]
impl Operations for Store {
    /// What is found may be stale before its reader hears of it.
    async fn find(&self, id: OperationId) -> Result<Option<StoredIntent>, PortError> {
        self.weather.before().await?;
        let found = self.rows().intent(id);
        tokio::task::yield_now().await;
        self.weather.after().await?;
        Ok(found)
    }

    async fn runner(&self, runner: RunnerId) -> Result<RunnerState, PortError> {
        self.weather.before().await?;
        let rows = self.rows();
        let row = rows.runners.get(&runner);
        Ok(row.map_or(RunnerState::Offline { since: None }, |(row, _)| row.state))
    }

    async fn request_cancel(&self, id: OperationId) -> Result<(), PortError> {
        self.weather.before().await?;
        if let Some(intent) = self.rows().intents.get_mut(&id) {
            intent.cancel_requested = true;
        }
        self.weather.after().await
    }

    async fn settle(&self, id: OperationId, outcome: &Outcome) -> Result<Settlement, PortError> {
        self.weather.before().await?;
        let settled = {
            let mut rows = self.rows();
            let settled = rows.settle(id, outcome);
            rows.settled += u32::from(settled == Settlement::First);
            settled
        };
        self.weather.after().await?;
        Ok(settled)
    }

    async fn sandbox_spec(&self, _: SandboxId) -> Result<Option<SandboxSpec>, PortError> {
        Ok(None)
    }

    fn outputs(&self) -> Arc<dyn Outputs> {
        self.area.clone()
    }
}

#[async_trait]
impl LinkRows for Store {
    async fn seen(&self, who: &LinkIdentity) -> Result<Option<KnownMemory>, PortError> {
        self.weather.before().await?;
        Ok(self.shown_by(who.runner))
    }

    async fn claim(&self, who: &LinkIdentity, hello: &HelloFacts) -> Result<Generation, PortError> {
        self.weather.before().await?;
        let generation = self.rows().claim(self.replica, who, hello);
        self.weather.after().await?;
        Ok(generation)
    }

    async fn settle_unheard(
        &self,
        who: &LinkIdentity,
        link: Generation,
        hello: &HelloFacts,
    ) -> Result<(), PortError> {
        self.weather.before().await?;
        self.rows().settle_unheard(who, link, hello);
        self.weather.after().await
    }

    async fn heard(&self, who: &LinkIdentity, heard: Heard) -> Option<TurnedAway> {
        self.weather.before().await.ok()?;
        let mut rows = self.rows();
        rows.heard += 1;
        rows.accepted(who.runner, heard.generation, heard.accepted);
        let holds = rows.holds(who.runner, heard.generation);
        rows.turned_away
            .or_else(|| (!holds).then_some(TurnedAway::Older))
    }

    async fn ended(&self, who: &LinkIdentity, generation: Generation, accepted: u64) {
        if self.weather.before().await.is_err() {
            return;
        }
        let mut rows = self.rows();
        rows.accepted(who.runner, generation, accepted);
        if rows.is_newest(who.runner, generation) {
            rows.holders.remove(&who.runner);
            if let Some((row, _)) = rows.runners.get_mut(&who.runner) {
                row.state = RunnerState::Offline { since: Some(NOW) };
            }
        }
    }

    async fn holder(&self, runner: RunnerId) -> Result<LinkState, PortError> {
        self.weather.before().await?;
        let state = {
            let mut rows = self.rows();
            rows.looked += 1;
            rows.link_state(self.replica, runner)
        };
        self.weather.after().await?;
        Ok(state)
    }

    async fn verdicts(
        &self,
        _who: &LinkIdentity,
        operations: &[OperationId],
    ) -> Result<Vec<(OperationId, ReconcileVerdict)>, PortError> {
        self.weather.before().await?;
        let rows = self.rows();
        let verdicts = operations.iter();
        let verdicts = verdicts.map(|id| (*id, rows.verdict(*id, &self.area)));
        Ok(verdicts.collect())
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
