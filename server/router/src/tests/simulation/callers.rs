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
        while let Some(news) = self.server.as_mut().and_then(Server::next_news) {
            match news {
                News::Told(key, told) => self.told(key, told),
                News::LinkEnded(wire, end) => self.link_ended(wire, end),
                News::Cancelled(id, Ok(CancelAnswer::NeverStarted)) => {
                    self.checks.never_started.insert(id);
                }
                News::Cancelled(id, answer) => self.say(format!("cancel of {id}: {answer:?}")),
            }
        }
        assert!(!PANICKED.load(Ordering::Relaxed), "a task has panicked");
        if self.storm.dies() {
            self.server_crash();
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

    fn told(&mut self, key: u64, told: Told) {
        let server = self.server.as_mut().expect("it was told just now");
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
            Told::Event(event) => self.event(&mut reader, &event),
            Told::Offered(event) => self.reads(&mut reader, &event),
            Told::Stored(outcome) => self.end_told(&reader, &outcome),
        }
        if let Some(server) = &mut self.server {
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
        let has_failed = self.storm.has_refused() || self.unkept.contains(&id);
        let is_unkept = !waits && has_failed;
        is_unkept || self.is_closed(id) || self.lost_memory.contains(&id)
    }

    /// Of an end that is stored.
    fn end_told(&mut self, reader: &Reader, outcome: &Outcome) {
        self.say(format!("a reader of {} is told its end", reader.id));
        self.checks.told_end(reader.id, outcome, &self.store);
        if reader.calls {
            self.to_close.push(reader.id);
        }
    }

    /// Whether a call of the engine waits for it.
    pub(crate) fn is_called(&self, id: OperationId) -> bool {
        let readers = self
            .server
            .iter()
            .flat_map(|server| server.readers.values());
        readers
            .into_iter()
            .any(|reader| reader.id == id && reader.calls)
    }

    /// Whether somebody reads it.
    pub(crate) fn is_read(&self, id: OperationId) -> bool {
        let mut readers = self
            .server
            .iter()
            .flat_map(|server| server.readers.values());
        readers.any(|reader| reader.id == id)
    }

    /// The engine and the people: operations are asked for, read, cancelled, closed.
    pub(super) fn client(&mut self) {
        if self.server.is_none() {
            return self.server_starts();
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

    fn server_starts(&mut self) {
        self.storm.revive();
        self.store.rows().epoch.0 += 1;
        let seed = self.seed ^ self.store.rows().epoch.0 << 32;
        self.server = Some(Server::start(&self.store, &self.clock, seed));
        self.say("server: is up".into());
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
        let Some(asker) = self.asker(key) else {
            return;
        };
        self.say(format!(
            "reader {key} asks for {id}, calls {calls}, from {from:?}"
        ));
        let work = work(asker);
        if let Some(server) = &mut self.server {
            let reader = Reader {
                id,
                calls,
                reading: Reading::from(from),
                task: server.spawn(work),
            };
            server.readers.insert(key, reader);
        }
    }

    fn asker(&self, key: u64) -> Option<Asker> {
        let server = self.server.as_ref()?;
        Some(Asker {
            key,
            store: self.store.clone(),
            sandbox: server.sandbox.clone(),
            storm: Arc::clone(&self.storm),
            news: server.news.clone(),
        })
    }

    fn cancel(&mut self, id: OperationId) {
        self.say(format!("cancel {id}"));
        if let Some(server) = &self.server {
            let (sandbox, news) = (server.sandbox.clone(), server.news.clone());
            let epoch = self.store.rows().epoch;
            server.spawn(async move {
                let answer = sandbox.cancel(id, epoch).await;
                let _ = news.send(News::Cancelled(id, answer));
            });
        }
    }

    /// A reader goes away.
    fn leave(&mut self) {
        let Some(server) = &mut self.server else {
            return;
        };
        let keys: Vec<_> = server.readers.keys().copied().collect();
        if let Some(key) = self.dice.pick(&keys)
            && let Some(reader) = server.readers.remove(&key)
        {
            reader.task.abort();
            self.say(format!("reader {key} leaves"));
        }
    }

    fn close(&mut self, id: OperationId) {
        self.say(format!("the call of {id} ends"));
        let operation = self.operations[&id].clone();
        if let (Some(asker), Some(server)) = (self.asker(0), &self.server) {
            server.spawn(asker.close(operation));
        }
    }
}
