//! The operations that a server's process follows, fetches, cancels and closes.

use std::{cell::RefCell, rc::Rc};

use shared_link::server::{
    self, CancelStep, Command, Connection, Follow, Inbox, Linked, Reader, Step, Sums, Unsettled,
    Verdict,
    fetch::{self, Fetched},
};
use shared_sandbox::{Operation, OperationEvent, Outcome};
use shared_types::{Generation, OperationId};

use super::{Errand, Fetching, Following, Seated, ServerLink};
use crate::{
    keeping::retention,
    oracle::{Reading, Rules},
    world::{Crashed, World},
};

impl World {
    pub(super) fn begin_fetch(
        &mut self,
        wire: u64,
        link: &mut ServerLink,
        operation: Unsettled,
        linked: &Linked,
    ) {
        let has = self.has_fetched(operation.id);
        let inbox = Rc::new(RefCell::new(Inbox::starting_at(has)));
        let (seat, _) = inbox.borrow_mut().attach();
        let post = Seated {
            inbox: inbox.clone(),
            seat,
        };
        let key = self.fresh();
        link.wishes.push_back(Command::Attach {
            id: operation.id,
            frame: Box::new(fetch::frame(&operation, &linked.incarnation, has)),
            reader: Reader {
                key,
                post,
                expects: |_| true,
                yields: true,
            },
        });
        let fetching = Fetching {
            operation,
            sums: Sums::after(has),
            inbox,
            link: wire,
        };
        self.server().fetches.insert(key, fetching);
    }

    /// Something happens to an outcome that is fetched.
    pub(crate) fn fetch_step(&mut self, key: u64) -> Result<(), Crashed> {
        let Some(mut fetching) = self.server().fetches.remove(&key) else {
            return Ok(());
        };
        let (id, reader) = (fetching.operation.id, key);
        let wire = Some(fetching.link);
        let mail = fetching.inbox.borrow_mut().take();
        match mail.map(fetch::mail) {
            None => {}
            Some(Fetched::Taken(stream, up_to, data)) => {
                match data.is_empty() {
                    true => fetching.sums.miss(stream, up_to),
                    false => fetching.sums.add(stream, &data),
                }
                self.keep_fetched(id, stream, up_to, &data);
                self.commit_fetched(&fetching.operation, reader, fetching.link, false);
                let granted = fetching.inbox.borrow_mut().taken(stream, up_to);
                if let Some(up_to) = granted {
                    self.server().wish(
                        wire,
                        Command::Grant {
                            id,
                            reader,
                            stream,
                            up_to,
                        },
                    );
                }
            }
            Some(Fetched::Store(outcome)) => {
                let mut sums = fetching.sums;
                while let Some((stream, from)) = sums.unread(&outcome) {
                    sums.read(stream, self.read_kept(id, stream, from));
                }
                let outcome = sums.held_to(outcome);
                self.settle(id, &outcome)?;
                if fetching.operation.abandoned {
                    self.server().wish(wire, Command::Forget { id });
                }
                return Ok(());
            }
            Some(Fetched::Fence) => {
                self.send_cancel(wire, id);
                return Ok(());
            }
            Some(Fetched::Stale | Fetched::GivenUp) => return Ok(()),
        }
        self.server().fetches.insert(key, fetching);
        Ok(())
    }

    pub(crate) fn settle(
        &mut self,
        id: OperationId,
        outcome: &Outcome,
    ) -> Result<server::Settled, Crashed> {
        self.say(format!("settle {id}: {outcome:?}"));
        self.commit(|store| store.settle(id, outcome))
    }

    /// Begins to follow an operation that is stored.
    pub(crate) fn follow(&mut self, id: OperationId, fresh: Option<Generation>) {
        let key = self.fresh();
        let row = &self.store.rows[&id];
        let operation = Operation {
            epoch: self.store.epoch,
            ..row.operation.clone()
        };
        let (has, gaps) = self.has_already(id);
        self.checks.tally.gone_on += u64::from(has != [0, 0]);
        let following = Following {
            id,
            key,
            machine: Follow::new(operation, row.intent.clone(), fresh, has),
            inbox: Rc::new(RefCell::new(Inbox::starting_at(has))),
            seen: None,
            link: None,
            reading: Reading::after(has, gaps),
            has_reader: true,
            input: 0,
        };
        self.say(format!("follow {id} as {key}"));
        self.server().follows.insert(key, following);
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
            Step::Return if !following.has_reader => return Ok(false),
            Step::Connection | Step::Return => self.tell_connection(following),
            Step::Find => {
                let found = self.store.rows.get(&id).map(|row| row.intent.clone());
                following.machine.found(found);
            }
            Step::RunnerState => {
                let state = server::RunnerState::Offline { since: None };
                following.machine.runner_state(state, now);
            }
            Step::Settle(outcome) => {
                let settled = self.settle(id, &outcome)?;
                following.machine.settled(settled);
            }
            Step::Offer(outcome) => {
                if following.has_reader {
                    self.offer(following, outcome)?;
                }
                following.has_reader = false;
                following.machine.offered();
            }
            Step::Cancel => {
                let Operation { owner, epoch, .. } = *following.machine.operation();
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
            Step::Over => return Ok(false),
        }
        Ok(true)
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
        let expects = shared_link::wire::expected(&following.machine.operation().request);
        let command = Command::Attach {
            id: following.id,
            frame,
            reader: Reader {
                key: following.key,
                post,
                expects,
                yields: false,
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
            retention: retention(&following.machine.operation().request),
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

    /// The reader stores the outcome together with the end of its call, or goes without.
    fn offer(&mut self, following: &mut Following, outcome: Outcome) -> Result<(), Crashed> {
        let id = following.id;
        if self.dice.one_in(4) {
            return Ok(());
        }
        self.say(format!("settle and close {id}: {outcome:?}"));
        let stored = self.commit(|store| match store.settle(id, &outcome) {
            server::Settled::Already(before) if before != outcome => false,
            _ => {
                store.rows.get_mut(&id).expect("it was placed").closed = true;
                true
            }
        })?;
        if stored {
            self.told(following, OperationEvent::Ended(outcome));
        }
        Ok(())
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
                let (Verdict::Settle(attachment) | Verdict::Cancel(attachment)) =
                    self.store.verdict(id)
                else {
                    return Ok(());
                };
                let operation = Unsettled {
                    id,
                    attachment,
                    abandoned: true,
                };
                let wire = wire.expect("the link that is online has a wire");
                if let Some(mut link) = self.server().links.remove(&wire) {
                    self.begin_fetch(wire, &mut link, operation, linked);
                    self.server().links.insert(wire, link);
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
