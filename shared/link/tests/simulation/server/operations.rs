//! The operations that a server's process follows, cancels and closes.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use shared_link::server::{
    self, CancelStep, Command, Connection, Follow, Inbox, Reader, Step, Verdict,
};
use shared_sandbox::{Operation, OperationEvent, Outcome};
use shared_types::{Generation, OperationId};

use super::{Errand, Following, Seated};
use crate::{
    keeping::retention,
    oracle::{Reading, Rules},
    world::{Crashed, World},
};

impl World {
    pub(crate) fn settle(
        &mut self,
        id: OperationId,
        outcome: &Outcome,
    ) -> Result<server::Settled, Crashed> {
        self.say(format!("settle {id}: {outcome:?}"));
        self.commit(|store| store.settle(id, outcome))
    }

    /// Begins to follow an operation that is stored, for whoever asks for it.
    pub(crate) fn follow(&mut self, id: OperationId, fresh: Option<Generation>) {
        let row = &self.store.rows[&id];
        let operation = Operation {
            epoch: self.store.epoch,
            ..row.operation.clone()
        };
        self.begin(id, Some(Arc::new(operation)), fresh);
    }

    /// Begins to follow what a link has found, or what somebody has left, unless that is followed.
    pub(super) fn collect(&mut self, id: OperationId) {
        if self.server().following(id).is_none() {
            self.begin(id, None, None);
        }
    }

    fn begin(&mut self, id: OperationId, asked: Option<Arc<Operation>>, fresh: Option<Generation>) {
        let key = self.fresh();
        let (has, gaps) = self.has_already(id);
        self.checks.tally.gone_on += u64::from(has != [0, 0]);
        let has_reader = asked.is_some();
        let following = Following {
            id,
            key,
            machine: Follow::new(id, asked, self.store.intent(id), fresh, has),
            inbox: Rc::new(RefCell::new(Inbox::starting_at(has))),
            seen: None,
            link: None,
            fencing: None,
            is_stored: false,
            reading: Reading::after(has, gaps),
            has_reader,
            input: 0,
        };
        self.say(format!("follow {id} as {key}"));
        self.server().follows.insert(key, following);
    }

    /// Somebody asks for what is followed.
    pub(crate) fn ask(&mut self, id: OperationId) {
        let operation = Arc::new(Operation {
            epoch: self.store.epoch,
            ..self.store.rows[&id].operation.clone()
        });
        if let Some(following) = self.server().following(id) {
            following.machine.ask(operation);
            following.has_reader = true;
        }
    }

    /// One step of an operation that is followed.
    pub(crate) fn follow_step(&mut self, key: u64) -> Result<(), Crashed> {
        let Some(mut following) = self.server().follows.remove(&key) else {
            return Ok(());
        };
        if self.do_follow_step(&mut following)? {
            self.server().follows.insert(key, following);
        }
        Ok(())
    }

    /// Returns whether it goes on.
    fn do_follow_step(&mut self, following: &mut Following) -> Result<bool, Crashed> {
        let (id, reader, now) = (following.id, following.key, self.wall());
        self.commit_step(following);
        self.pass_step(following);
        match following.machine.step() {
            Step::Connection => self.tell_connection(following),
            Step::Wait(..) => following.machine.waited(),
            Step::Find => {
                following.machine.found(Some(self.store.intent(id)));
            }
            Step::RunnerState => {
                let state = server::RunnerState::Offline { since: None };
                following.machine.runner_state(state, now);
            }
            Step::Settle(outcome) => {
                let settled = self.settle(id, &outcome)?;
                following.is_stored = true;
                following.machine.settled(settled);
            }
            Step::Offer(outcome) => {
                let stored = following.has_reader && self.offer(following, outcome)?;
                following.is_stored = stored;
                following.machine.offered(stored);
            }
            Step::Fence => self.fence(following),
            Step::Cancel => {
                let (owner, epoch) = following.machine.holder();
                let cancel = Command::Cancel { id, owner, epoch };
                if !self.server().wish(following.link, cancel) {
                    following.machine.link_lost();
                }
            }
            Step::Attach => self.attach(following),
            Step::Mail => {
                let mail = following.inbox.borrow_mut().take();
                if let Some(mail) = mail {
                    following.machine.mail(mail);
                }
            }
            Step::Kept(stream, from) => {
                following.machine.kept(self.read_kept(id, stream, from));
            }
            Step::Tell(event) => {
                self.keep(id, &event);
                for event in self.filled(id, event) {
                    self.told(following, event);
                }
            }
            Step::Taken(stream, up_to) => {
                let granted = following.inbox.borrow_mut().taken(stream, up_to);
                if let Some(up_to) = granted {
                    let grant = Command::Grant {
                        id,
                        reader,
                        stream,
                        up_to,
                    };
                    self.server().wish(following.link, grant);
                }
            }
            Step::Over => {
                if following.is_stored && self.is_kept(id) {
                    self.store.outputs.entry(id).or_default().sync();
                    self.server().wish(following.link, Command::Forget { id });
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Has the runner say that it never starts the operation, and waits for that.
    fn fence(&mut self, following: &mut Following) {
        let (id, (owner, epoch)) = (following.id, following.machine.holder());
        let Some(wire) = following.fencing else {
            self.server().fenced.remove(&id);
            let cancel = Command::Cancel { id, owner, epoch };
            match self.server().wish(following.link, cancel) {
                true => following.fencing = following.link,
                false => following.machine.fenced(false),
            }
            return;
        };
        let answered = self.server().fenced.remove(&id);
        if answered.is_some() || !self.server().links.contains_key(&wire) {
            following.fencing = None;
            following.machine.fenced(answered == Some(true));
        }
    }

    fn tell_connection(&mut self, following: &mut Following) {
        let server = self.server();
        if following.seen == Some(server.version) {
            return;
        }
        following.seen = Some(server.version);
        let connection = server.slot.connection().clone();
        following.link = match &connection {
            Connection::Online(linked) => server.wire_of(linked.generation),
            _ => None,
        };
        following.machine.connection(connection);
    }

    fn attach(&mut self, following: &mut Following) {
        let (seat, offsets) = following.inbox.borrow_mut().attach();
        following.reading.check_resume(offsets);
        let post = Seated {
            inbox: following.inbox.clone(),
            seat,
        };
        let frame = Box::new(following.machine.frame(offsets, &self.moment()));
        let request = following.machine.request();
        let (expects, yields) = match request {
            Some(request) => (shared_link::wire::expected(request), false),
            None => ((|_| true) as shared_link::wire::Expects, true),
        };
        let command = Command::Attach {
            id: following.id,
            frame,
            reader: Reader {
                key: following.key,
                post,
                expects,
                yields,
            },
        };
        match self.server().wish(following.link, command) {
            true => following.machine.attached(),
            false => following.machine.link_lost(),
        }
    }

    fn told(&mut self, following: &mut Following, event: OperationEvent) {
        let id = following.id;
        let rules = Rules {
            may_be_cut: self.may_be_cut(id),
            retention: retention(&self.store.rows[&id].operation.request),
            host: &self.runner.host,
        };
        following.reading.event(id, &event, &rules);
        if let OperationEvent::InputTaken(up_to) = event {
            self.check_taken(id, up_to);
        }
        self.checks.tally.gaps += u64::from(matches!(event, OperationEvent::Gap { .. }));
        if let OperationEvent::Ended(outcome) = event {
            self.checks.told_end(id, &outcome, &self.store);
            if self.store.rows[&id].intent.outcome.as_ref() == Some(&outcome)
                && following.has_reader
            {
                self.to_close.push(id);
            }
        }
    }

    /// The reader stores the outcome together with the end of its call, or drops the token.
    fn offer(&mut self, following: &mut Following, outcome: Outcome) -> Result<bool, Crashed> {
        let id = following.id;
        if self.dice.one_in(4) {
            following.has_reader = false;
            return Ok(false);
        }
        self.say(format!("settle and close {id}: {outcome:?}"));
        self.commit(|store| match store.settle(id, &outcome) {
            server::Settled::Already(before) if before != outcome => false,
            _ => {
                store.rows.get_mut(&id).expect("it was placed").closed = true;
                true
            }
        })
    }

    /// A person wants an operation stopped.
    pub(crate) fn cancel(&mut self, id: OperationId) -> Result<(), Crashed> {
        self.say(format!("cancel {id}"));
        self.commit(|store| {
            let intent = &mut store.rows.get_mut(&id).expect("it was placed").intent;
            intent.cancel_requested |= intent.outcome.is_none();
        })?;
        self.server().errands.push((id, Errand::Cancel));
        Ok(())
    }

    /// Does one of the things that nobody waits for.
    pub(crate) fn errand_step(&mut self) -> Result<(), Crashed> {
        let connection = self.server().slot.connection().clone();
        if matches!(connection, Connection::Linking) {
            return Ok(());
        }
        let Some((id, errand)) = self.server().errands.pop() else {
            return Ok(());
        };
        let Connection::Online(linked) = &connection else {
            return match errand {
                Errand::NeverStarted => self.never_started(id),
                // The next link finds it.
                Errand::Cancel | Errand::Settle => Ok(()),
            };
        };
        let wire = self.server().wire_of(linked.generation);
        match errand {
            Errand::NeverStarted => self.never_started(id)?,
            Errand::Cancel => {
                let intent = self.store.rows[&id].intent.clone();
                match server::cancel(&intent, &connection) {
                    CancelStep::Answer(_) => {}
                    CancelStep::Send => self.send_cancel(wire, id),
                    CancelStep::Lost(refusal) => {
                        self.settle(id, &Outcome::Refused(refusal))?;
                    }
                }
            }
            Errand::Settle => {
                if matches!(
                    self.store.verdict(id),
                    Verdict::Collect | Verdict::Cancel { .. }
                ) {
                    self.collect(id);
                }
            }
        }
        Ok(())
    }

    fn never_started(&mut self, id: OperationId) -> Result<(), Crashed> {
        self.settle(id, &Outcome::Refused(server::never_started()))?;
        Ok(())
    }

    /// Sends a cancel and waits for its answer.
    fn send_cancel(&mut self, wire: Option<u64>, id: OperationId) {
        let (owner, epoch) = (self.store.rows[&id].operation.owner, self.store.epoch);
        if self
            .server()
            .wish(wire, Command::Cancel { id, owner, epoch })
            && let Some(link) = wire.and_then(|wire| self.server().links.get_mut(&wire))
        {
            link.cancels.insert(id);
        }
    }

    /// The call has ended: everything that it needed is stored.
    pub(crate) fn close(&mut self, id: OperationId) -> Result<(), Crashed> {
        self.say(format!("close {id}"));
        self.commit(|store| store.rows.get_mut(&id).expect("it was placed").closed = true)?;
        if self.store.rows[&id].intent.outcome.is_none() {
            self.server().errands.push((id, Errand::Settle));
            return Ok(());
        }
        let linked = self.server().linked().map(|linked| linked.generation);
        let wire = linked.and_then(|generation| self.server().wire_of(generation));
        self.server().wish(wire, Command::Forget { id });
        Ok(())
    }
}
