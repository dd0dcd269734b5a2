//! A store in memory that keeps the ports' promises.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use shared_sandbox::{Operation, Outcome, OutputStream, Request};
use shared_types::{
    Epoch, Generation, Incarnation, Isolation, OperationId, RunnerId, SandboxId, Timestamp,
    clock::BootMoment, event::Choice,
};

use super::{NOW, Runner, owner};
use crate::{links::LinkIdentity, ports::*};

/// A store in memory that keeps the ports' promises.
#[derive(Default)]
pub(in crate::tests) struct Store(Arc<Mutex<Rows>>, Arc<Area>);

/// Output in memory, until the disk is full.
#[derive(Default)]
pub(in crate::tests) struct Area {
    full: AtomicBool,
    /// Whoever waited for a sync was told that the disk is full.
    told_full: AtomicBool,
    kept: Mutex<HashMap<(OperationId, OutputStream), Pieces>>,
    /// Of which something was not kept.
    broken: Mutex<HashSet<OperationId>>,
    /// No stream can be read from its beginning now.
    holds_beginnings: AtomicBool,
}

#[derive(Default)]
pub(in crate::tests) struct Rows {
    pub(in crate::tests) choice: Choice,
    /// What people were told.
    pub(in crate::tests) told: Vec<String>,
    pub(in crate::tests) demanded: Isolation,
    runners: HashMap<RunnerId, (FleetRunner, Generation)>,
    seen: HashMap<RunnerId, Seen>,
    pub(in crate::tests) intents: HashMap<OperationId, StoredIntent>,
    /// Operations for which nobody waits any more.
    pub(in crate::tests) abandoned: Vec<OperationId>,
    /// The epoch of every owner.
    pub(in crate::tests) epoch: Epoch,
    pub(in crate::tests) heard: u32,
    /// What whoever is heard of is answered.
    pub(in crate::tests) turned_away: Option<TurnedAway>,
    /// Outcomes that the router stored.
    pub(in crate::tests) settled: u32,
}

impl Store {
    pub(in crate::tests) fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().expect("no test panics with the rows")
    }

    /// How much the runner has accepted, as far as that is stored.
    pub(in crate::tests) fn accepted_by(&self, runner: RunnerId) -> Option<u64> {
        let rows = self.rows();
        rows.seen.get(&runner).map(|seen| seen.accepted_sequence)
    }

    pub(in crate::tests) fn choose(&self, runner: &Runner) {
        let (runner, name) = (runner.id, runner.name.clone());
        self.rows().choice = Choice::User { runner, name };
    }

    /// A runner that has never linked.
    pub(in crate::tests) fn enrol(&self, runner: &Runner, since: Timestamp) {
        let sandbox = (SandboxId::derive(runner.id, "workspace"), Isolation::none());
        let row = FleetRunner {
            id: runner.id,
            name: runner.name.clone(),
            state: RunnerState::Offline { since: Some(since) },
            locked: false,
            sandbox: Some(sandbox),
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
        self.1.full.store(true, Ordering::Relaxed);
    }

    /// Whether the router was told that the disk is full.
    pub(in crate::tests) fn has_told_full(&self) -> bool {
        self.1.told_full.load(Ordering::Relaxed)
    }

    /// Whether whoever reads a stream from its beginning waits.
    pub(in crate::tests) fn hold_the_beginnings(&self, hold: bool) {
        self.1.holds_beginnings.store(hold, Ordering::Relaxed);
    }

    pub(in crate::tests) fn free_the_disk(&self) {
        self.1.full.store(false, Ordering::Relaxed);
    }

    /// The engine stores an end together with what it concludes from it.
    pub(in crate::tests) fn keep_end(&self, operation: &Operation, outcome: Outcome) {
        let mut rows = self.rows();
        let intent = rows.intents.get_mut(&operation.id);
        intent.expect("it was placed").outcome = Some(outcome);
    }

    fn settle_row(&self, id: OperationId, outcome: &Outcome) -> Settled {
        let mut rows = self.rows();
        rows.settled += 1;
        let intent = rows.intents.get_mut(&id).expect("it was placed");
        match &intent.outcome {
            Some(first) => Settled::Already(first.clone()),
            None => {
                intent.outcome = Some(outcome.clone());
                Settled::First
            }
        }
    }
}

#[async_trait]
impl Outputs for Area {
    async fn read(
        &self,
        id: OperationId,
        stream: OutputStream,
        from: u64,
    ) -> Result<Option<(u64, Bytes)>, PortError> {
        while from == 0 && self.holds_beginnings.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let kept = self.kept.lock().expect("no test panics with it");
        let pieces = kept.get(&(id, stream)).into_iter().flatten();
        let mut pieces = pieces.filter(|(_, data)| !data.is_empty());
        let piece = pieces.find(|(offset, data)| offset + data.len() as u64 > from);
        Ok(piece.map(|(offset, data)| {
            let begin = from.max(*offset);
            (begin, data.slice((begin - offset) as usize..))
        }))
    }

    async fn keep_all(&self, id: OperationId) -> Result<(), PortError> {
        let kept = self.kept.lock().expect("no test panics with it");
        let is_kept = kept.contains_key(&(id, OutputStream::Stdout));
        match self.full.load(Ordering::Relaxed) && !is_kept {
            true => Err(PortError::new("the disk is full")),
            // Everything is, here.
            false => Ok(()),
        }
    }

    async fn append(
        &self,
        id: OperationId,
        stream: OutputStream,
        offset: u64,
        data: Bytes,
    ) -> Result<(), PortError> {
        let mut kept = self.kept.lock().expect("no test panics with it");
        let pieces = kept.entry((id, stream)).or_default();
        let follows = data.is_empty() || offset <= end(pieces);
        if self.full.load(Ordering::Relaxed) || self.is_broken(id) || !follows {
            self.broken
                .lock()
                .expect("no test panics with it")
                .insert(id);
        } else if offset >= end(pieces) {
            pieces.push((offset, data));
        }
        Ok(())
    }

    async fn resume(&self, id: OperationId) -> Result<[u64; 2], PortError> {
        if !self.full.load(Ordering::Relaxed) {
            self.broken
                .lock()
                .expect("no test panics with it")
                .remove(&id);
        }
        self.synced(id).await
    }

    async fn synced(&self, id: OperationId) -> Result<[u64; 2], PortError> {
        if self.full.load(Ordering::Relaxed) || self.is_broken(id) {
            self.told_full.store(true, Ordering::Relaxed);
            return Err(PortError::new("the disk is full"));
        }
        Ok(self.durable(id))
    }
}

impl Area {
    /// As long as the disk takes it, everything is; once it is full, nobody knows.
    fn durable(&self, id: OperationId) -> [u64; 2] {
        if self.full.load(Ordering::Relaxed) || self.is_broken(id) {
            return [0, 0];
        }
        let kept = self.kept.lock().expect("no test panics with it");
        let streams = [OutputStream::Stdout, OutputStream::Stderr];
        streams.map(|stream| kept.get(&(id, stream)).map_or(0, |pieces| end(pieces)))
    }

    fn is_broken(&self, id: OperationId) -> bool {
        let broken = self.broken.lock().expect("no test panics with it");
        broken.contains(&id)
    }
}

/// Bytes and where they stand.
type Pieces = Vec<(u64, Bytes)>;

fn end(pieces: &[(u64, Bytes)]) -> u64 {
    let last = pieces.last();
    last.map_or(0, |(offset, data)| offset + data.len() as u64)
}

#[async_trait]
impl Fleet for Store {
    async fn snapshot(&self) -> Result<FleetSnapshot, PortError> {
        let rows = self.rows();
        Ok(FleetSnapshot {
            choice: rows.choice.clone(),
            demanded: rows.demanded.clone(),
            runners: rows.runners.values().map(|(row, _)| row.clone()).collect(),
        })
    }

    fn tell(&self, words: String) {
        self.rows().told.push(words);
    }
}

#[async_trait]
impl Intents for Store {
    async fn place(&self, intent: NewIntent, _request: &Request) -> Result<(), PlaceError> {
        let mut rows = self.rows();
        if rows.intents.contains_key(&intent.id) {
            return Err(PlaceError::Conflict);
        }
        rows.epoch = rows.epoch.max(intent.epoch);
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
        };
        rows.intents.insert(intent.id, stored);
        Ok(())
    }
}

#[async_trait]
impl Operations for Store {
    /// What is found may be stale before its reader hears of it.
    async fn find(&self, id: OperationId) -> Result<Option<StoredIntent>, PortError> {
        let found = {
            let rows = self.rows();
            let found = rows.intents.get(&id).cloned();
            found.map(|intent| StoredIntent {
                epoch: rows.epoch,
                closed: rows.abandoned.contains(&id),
                ..intent
            })
        };
        tokio::task::yield_now().await;
        Ok(found)
    }

    async fn runner(&self, runner: RunnerId) -> Result<RunnerState, PortError> {
        let rows = self.rows();
        let row = rows.runners.get(&runner);
        Ok(row.map_or(RunnerState::Offline { since: None }, |(row, _)| row.state))
    }

    async fn request_cancel(&self, id: OperationId) -> Result<(), PortError> {
        let mut rows = self.rows();
        let intent = rows.intents.get_mut(&id).expect("it was placed");
        intent.cancel_requested = true;
        Ok(())
    }

    async fn settle(&self, id: OperationId, outcome: &Outcome) -> Result<Settled, PortError> {
        Ok(self.settle_row(id, outcome))
    }

    fn outputs(&self) -> Arc<dyn Outputs> {
        self.1.clone()
    }
}

#[async_trait]
impl LinkRows for Store {
    async fn seen(&self, who: &LinkIdentity) -> Result<Option<Seen>, PortError> {
        Ok(self.rows().seen.get(&who.runner).cloned())
    }

    async fn claim(&self, who: &LinkIdentity, hello: &HelloFacts) -> Result<Generation, PortError> {
        let mut rows = self.rows();
        let generation = rows
            .runners
            .get(&who.runner)
            .map_or(Generation(1), |(_, last)| Generation(last.0 + 1));
        let sandbox = hello.sandboxes.first();
        let row = FleetRunner {
            id: who.runner,
            name: who.name.clone(),
            state: RunnerState::Online,
            locked: false,
            sandbox: sandbox.map(|sandbox| (sandbox.id, sandbox.isolation.clone())),
            believed: false,
            incarnation: Some(hello.incarnation.clone()),
        };
        rows.runners.insert(who.runner, (row, generation));
        let seen = Seen {
            incarnation: hello.incarnation.clone(),
            journal_sequence: hello.journal_sequence,
            accepted_sequence: hello.journal_sequence,
        };
        rows.seen.insert(who.runner, seen);
        for (id, intent) in &mut rows.intents {
            let listed = hello.inventory.iter().any(|entry| entry.operation == *id);
            if intent.place.runner == who.runner
                && intent.incarnation != hello.incarnation
                && !listed
            {
                intent.outcome.get_or_insert(Outcome::Refused(forgotten()));
            }
        }
        Ok(generation)
    }

    async fn settle_unheard(
        &self,
        who: &LinkIdentity,
        _link: Generation,
        hello: &HelloFacts,
    ) -> Result<(), PortError> {
        let mut rows = self.rows();
        let Rows {
            intents, abandoned, ..
        } = &mut *rows;
        for (id, intent) in intents {
            let listed = hello.inventory.iter().any(|entry| entry.operation == *id);
            let given_up = intent.cancel_requested || abandoned.contains(id);
            if intent.place.runner == who.runner && !listed && given_up {
                intent
                    .outcome
                    .get_or_insert(Outcome::Refused(never_started()));
            }
        }
        Ok(())
    }

    async fn heard(&self, who: &LinkIdentity, heard: Heard) -> Option<TurnedAway> {
        let mut rows = self.rows();
        rows.heard += 1;
        if let Some(seen) = rows.seen.get_mut(&who.runner) {
            seen.accepted_sequence = seen.accepted_sequence.max(heard.accepted);
        }
        rows.turned_away
    }

    async fn ended(&self, who: &LinkIdentity, generation: Generation, accepted: u64) {
        if let Some(seen) = self.rows().seen.get_mut(&who.runner) {
            seen.accepted_sequence = seen.accepted_sequence.max(accepted);
        }
        if let Some((row, current)) = self.rows().runners.get_mut(&who.runner)
            && *current == generation
        {
            row.state = RunnerState::Offline { since: Some(NOW) };
        }
    }

    async fn verdicts(
        &self,
        _who: &LinkIdentity,
        operations: &[OperationId],
    ) -> Result<Vec<(OperationId, Verdict)>, PortError> {
        let rows = self.rows();
        let verdict = |id: &OperationId| {
            let Some(intent) = rows.intents.get(id) else {
                return (*id, Verdict::Forget);
            };
            let verdict = if intent.outcome.is_some() {
                Verdict::Forget
            } else if intent.cancel_requested {
                let (owner, epoch) = (owner(), rows.epoch);
                Verdict::Cancel { owner, epoch }
            } else if rows.abandoned.contains(id) {
                Verdict::Collect
            } else {
                let committed = self.1.durable(*id);
                Verdict::Keep { committed }
            };
            (*id, verdict)
        };
        Ok(operations.iter().map(verdict).collect())
    }

    fn operations(&self, _who: &LinkIdentity) -> Arc<dyn Operations> {
        Arc::new(Self(Arc::clone(&self.0), Arc::clone(&self.1)))
    }
}
