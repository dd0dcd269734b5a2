//! What the engine and the people ask of the server, and what they are told, held to the contract.

use std::sync::{Arc, atomic::Ordering};

use shared_sandbox::{CancelAnswer, Operation, OperationEvent, Outcome, Retention, Sandbox as _};
use shared_types::{OperationId, RefusalCode};

use super::{
    PANICKED,
    oracle::{Reading, Rules},
    plan::retention,
    readers::{Asker, News, Reader, Told},
    server::Server,
    world::World,
};
use server_records::is_kept_nowhere;

impl World {
    /// What the server's tasks have done is held to the contract.
    pub(super) fn hear(&mut self) {
        self.note_placed();
        self.tell_of_links();
        for machine in 0..self.machines.len() {
            while let Some(news) = self.server(machine).and_then(Server::next_news) {
                self.news(machine, news);
            }
        }
        assert!(!PANICKED.load(Ordering::Relaxed), "a task has panicked");
        for machine in 0..self.machines.len() {
            if self.machines[machine].storm.dies() {
                self.server_crash(machine);
            }
        }
    }

    fn news(&mut self, machine: usize, news: News) {
        match news {
            News::Told(key, told) => self.told(machine, key, told),
            News::LinkEnded(wire, end) => self.link_ended(wire, end),
            News::Cancelled(id, Ok(CancelAnswer::NeverStarted)) => {
                self.checks.never_started.insert(id);
            }
            News::Cancelled(id, answer) => self.say(format!("cancel of {id}: {answer:?}")),
        }
    }

    fn note_placed(&mut self) {
        while let Some(id) = self.plan.last().copied() {
            let Some(intent) = self.store.rows().intent(id) else {
                return;
            };
            self.say(format!("{id} is placed"));
            self.plan.pop();
            if intent.incarnation != *self.runner.table.incarnation() {
                // The server has not heard yet that the memory it means is gone.
                self.lost_memory.insert(id);
            }
        }
    }

    fn told(&mut self, machine: usize, key: u64, told: Told) {
        let borrows = self.is_borrower(machine);
        let server = self.server(machine).expect("it was told just now");
        let Some(mut reader) = server.readers.remove(&key) else {
            return;
        };
        let id = reader.id;
        match told {
            Told::Refused(refusal) => {
                let is_known = refusal.code != RefusalCode::Conflict;
                assert!(is_known, "{id} is refused: {refusal}");
                return self.say(format!("reader {key} of {id} is refused: {refusal}"));
            }
            Told::Over => return self.say(format!("reader {key} of {id} is told no more")),
            Told::Confirms(stream, up_to) => {
                let confirmed = self.confirmed.entry((id, stream)).or_default();
                *confirmed = up_to.max(*confirmed);
            }
            Told::Resized(size) => self.check_resized(id, size),
            Told::Event(event) => {
                if borrows && matches!(event, OperationEvent::Output { .. }) {
                    self.checks.tally.count("told by way of another server");
                }
                self.event(&mut reader, &event);
            }
            Told::Offered(event) => self.reads(&mut reader, &event),
            Told::Stored(outcome) => self.end_told(&reader, &outcome),
        }
        if let Some(server) = self.server(machine) {
            server.readers.insert(key, reader);
        }
    }

    fn event(&mut self, reader: &mut Reader, event: &OperationEvent) {
        self.reads(reader, event);
        match event {
            OperationEvent::InputTaken(up_to) => self.check_taken(reader.id, *up_to),
            OperationEvent::Gap { .. } => self.checks.tally.count("gaps"),
            OperationEvent::Ended(outcome) => self.end_told(reader, outcome),
            _ => {}
        }
    }

    fn reads(&mut self, reader: &mut Reader, event: &OperationEvent) {
        let id = reader.id;
        if matches!(event, OperationEvent::Gap { .. }) {
            self.say(format!("a reader of {id} is told: {event:?}"));
        }
        let rules = Rules {
            may_be_cut: self.may_be_cut(id, reader.calls),
            retention: retention(&self.operations[&id].request),
            host: &self.runner.host,
        };
        reader.reading.event(id, event, &rules);
    }

    /// Whether a reader may miss output: the runner that had it forgot it, or it cannot be kept now. Only
    /// who asks with the request waits for that.
    fn may_be_cut(&self, id: OperationId, calls: bool) -> bool {
        let waits = calls && retention(&self.operations[&id].request) == Retention::All;
        let has_failed = self.has_refused() || self.unkept.contains(&id);
        let is_unkept = !waits && has_failed;
        is_unkept || self.is_closed(id) || self.lost_memory.contains(&id)
    }

    /// Of an end that is stored.
    fn end_told(&mut self, reader: &Reader, outcome: &Outcome) {
        if let Outcome::Refused(refusal) = outcome
            && refusal.code == RefusalCode::StaleEpoch
        {
            // It speaks of this reader.
            let newest = self.store.rows().epoch;
            let (id, epoch) = (reader.id, reader.epoch);
            assert!(epoch < newest, "{id}: {epoch:?} is the newest epoch");
            return;
        }
        self.say(format!("a reader of {} is told its end", reader.id));
        self.checks.told_end(reader.id, outcome, &self.store);
        if reader.calls {
            self.to_close.push(reader.id);
        }
    }

    /// Whether a call of the engine waits for it, which no other server has taken over.
    pub(crate) fn is_called(&self, id: OperationId) -> bool {
        let mut readers = self.servers().flat_map(|server| server.readers.values());
        let newest = self.store.rows().epoch;
        readers.any(|reader| reader.id == id && reader.calls && reader.epoch == newest)
    }

    /// Whether somebody reads it.
    pub(crate) fn is_read(&self, id: OperationId) -> bool {
        let mut readers = self.servers().flat_map(|server| server.readers.values());
        readers.any(|reader| reader.id == id)
    }

    /// The engine and the people: operations are asked for, read, cancelled, closed.
    pub(super) fn client(&mut self) {
        let down = self.machines.iter().position(|at| at.server.is_none());
        if let Some(machine) = down
            && (self.running().is_empty() || self.dice.one_in(3))
        {
            return self.server_starts(machine);
        }
        if let Some(id) = self.to_close.pop() {
            return self.close(id);
        }
        let placed = self.operations.keys().filter(|id| !self.plan.contains(id));
        let placed: Vec<_> = placed.copied().collect();
        let one = self.dice.pick(&placed);
        match (self.dice.below(14), one) {
            (0..=4, _) => self.place(),
            (5..=8, Some(id)) => self.resume(id),
            (9 | 10, Some(id)) if self.faults => self.watch(id),
            (11, Some(id)) if self.faults && !self.is_closed(id) => self.cancel(id),
            (12, _) if self.faults => self.leave(),
            (13, Some(id)) if self.faults && self.dice.one_in(4) && !self.is_called(id) => {
                self.close(id);
            }
            _ => {}
        }
    }

    fn server_starts(&mut self, machine: usize) {
        self.store.rows().epoch.0 += 1;
        self.start_server(machine);
        self.say(format!("server {machine}: is up"));
    }

    fn place(&mut self) {
        if let Some(id) = self.plan.last().copied()
            && !self.is_called(id)
        {
            self.call(id);
        }
    }

    /// Whoever asked for an operation asks again: after a crash, or because another wants it.
    fn resume(&mut self, id: OperationId) {
        let again = self.faults && self.dice.one_in(10);
        if !self.is_closed(id) && (again || !self.is_called(id)) {
            if again && self.has_peers() && self.dice.one_in(2) {
                // Another server has taken the work over.
                self.store.rows().epoch.0 += 1;
            }
            self.call(id);
        }
    }

    fn call(&mut self, id: OperationId) {
        let operation = Operation {
            epoch: self.store.rows().epoch,
            ..self.operations[&id].clone()
        };
        self.ask(id, true, [0, 0], |asker| asker.call(operation));
    }

    fn watch(&mut self, id: OperationId) {
        if is_kept_nowhere(&self.operations[&id].request) {
            return;
        }
        let written = self.runner.host.written(id);
        let from = written.map(|written| self.dice.below(2) * self.dice.below(written + 1));
        if from != [0, 0] {
            self.checks.tally.count("read from within");
        }
        self.ask(id, false, from, |asker| asker.watch(id, from));
    }

    fn ask<F>(
        &mut self,
        id: OperationId,
        calls: bool,
        from: [u64; 2],
        work: impl FnOnce(Asker) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let key = self.fresh();
        let epoch = self.store.rows().epoch;
        let Some(machine) = self.any_server() else {
            return;
        };
        let Some(asker) = self.asker(machine, key) else {
            return;
        };
        self.say(format!(
            "reader {key} asks server {machine} for {id}, calls {calls}, from {from:?}"
        ));
        let work = work(asker);
        if let Some(server) = self.server(machine) {
            let reader = Reader {
                id,
                calls,
                epoch,
                reading: Reading::from(from),
                task: server.spawn(work),
            };
            server.readers.insert(key, reader);
        }
    }

    fn asker(&self, machine: usize, key: u64) -> Option<Asker> {
        let machine = &self.machines[machine];
        let server = machine.server.as_ref()?;
        Some(Asker {
            key,
            store: server.store.clone(),
            sandbox: server.sandbox.clone(),
            storm: Arc::clone(&machine.storm),
            news: server.news.clone(),
        })
    }

    fn cancel(&mut self, id: OperationId) {
        self.say(format!("cancel {id}"));
        let epoch = self.store.rows().epoch;
        if let Some(machine) = self.any_server()
            && let Some(server) = self.server(machine)
        {
            let (sandbox, news) = (server.sandbox.clone(), server.news.clone());
            server.spawn(async move {
                let answer = sandbox.cancel(id, epoch).await;
                let _ = news.send(News::Cancelled(id, answer));
            });
        }
    }

    /// A reader goes away.
    fn leave(&mut self) {
        let readers = self.servers().flat_map(|server| server.readers.keys());
        let keys: Vec<_> = readers.copied().collect();
        if let Some(key) = self.dice.pick(&keys)
            && let Some(machine) = self.find_server(|at| at.readers.contains_key(&key))
            && let Some(server) = self.server(machine)
            && let Some(reader) = server.readers.remove(&key)
        {
            reader.task.abort();
            self.say(format!("reader {key} leaves"));
        }
    }

    fn close(&mut self, id: OperationId) {
        self.say(format!("the call of {id} ends"));
        let operation = self.operations[&id].clone();
        if let Some(machine) = self.any_server()
            && let Some(asker) = self.asker(machine, 0)
            && let Some(server) = self.server(machine)
        {
            server.spawn(asker.close(operation));
        }
    }
}
