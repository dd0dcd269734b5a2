//! The runner's process, its journal and its host.

mod dying;

use std::time::Duration;

use proto::{
    PROTOCOL_VERSION,
    v1::{self, runner_frame, server_frame},
};
use shared_link::runner::{
    Act, LinkEndReason, LinkId, OpenedLink, OperationTable, Order, Session, Todo,
};
use shared_types::{Epoch, Incarnation, JournalId, Refusal, RefusalCode};

use dying::Snapshot;

use super::{
    changing::{self, Changes, Entry},
    host::{Happened, Host},
    passing::Took,
    place,
    wire::{Received, Wire},
    world::World,
};

pub(crate) struct Runner {
    pub(crate) table: OperationTable,
    pub(crate) host: Host,
    /// What was written down, and how much of it survives the host's death.
    pub(crate) journal: Vec<Entry>,
    /// Changes of files that the journal has and that may be under way.
    pub(crate) changes: Changes,
    synced: usize,
    journals: u128,
    boots: u64,
    session: Option<Linked>,
    connect_at: Duration,
    /// Orders of links that are over, which were on their way to the table.
    late: Vec<(LinkId, Order)>,
    /// The highest epoch of what was started.
    epoch: Epoch,
    /// Orders that another replica may still send, although the runner's memory is gone or its
    /// own work was taken over.
    stale: Vec<Order>,
    snapshot: Option<Snapshot>,
    /// The daemon dies before it does anything else.
    dies: bool,
}

struct Linked {
    wire: u64,
    session: Session,
    opened: OpenedLink,
}

impl Runner {
    pub(crate) fn new() -> Self {
        Self {
            table: OperationTable::new(incarnation(1, 1), place()),
            host: Host::default(),
            journal: Vec::new(),
            changes: Changes::new(),
            synced: 0,
            journals: 1,
            boots: 1,
            session: None,
            connect_at: Duration::ZERO,
            late: Vec::new(),
            epoch: Epoch(0),
            stale: Vec::new(),
            snapshot: None,
            dies: false,
        }
    }

    /// What the table has to say goes into the journal.
    fn write_down(&mut self) {
        let records = self.table.take_records();
        self.journal.extend(records.into_iter().map(Entry::Table));
    }

    /// Leaves out of the journal what nobody will ask for.
    pub(crate) fn compact(&mut self) {
        self.journal = changing::journal(&self.table, &self.changes);
        self.synced = self.journal.len();
    }

    pub(crate) fn is_linked(&self) -> bool {
        self.session.is_some()
    }

    /// When it wants to be told the time.
    pub(crate) fn wake_at(&self) -> Duration {
        match &self.session {
            Some(linked) => linked.session.wake_at(),
            None => self.connect_at,
        }
    }
}

fn incarnation(journal: u128, boot: u64) -> Incarnation {
    Incarnation {
        journal: JournalId::from_u128(journal),
        boot: format!("boot-{boot}"),
    }
}

impl World {
    /// Something happens at the runner's end of the link.
    pub(crate) fn runner_step(&mut self) {
        let Some(mut linked) = self.runner.session.take() else {
            return self.connect();
        };
        match self.serve_runner(&mut linked) {
            Ok(()) => self.runner.session = Some(linked),
            Err(ended) => self.end_session(linked, ended),
        }
        if std::mem::take(&mut self.runner.dies) {
            self.runner_crash(false);
        }
    }

    fn connect(&mut self) {
        if self.runner_time < self.runner.connect_at {
            return;
        }
        let Some(machine) = self.any_server() else {
            return;
        };
        let wire = self.fresh();
        self.wires.insert(wire, Wire::new());
        let now = self.server_time;
        let server = self.server(machine).expect("it is up");
        server.accept(wire, now);
        let challenge = server_frame::Kind::Challenge(v1::Challenge::default());
        if let Some(wire) = self.wires.get_mut(&wire) {
            wire.down.send(challenge.into());
        }
        let opened = self.runner.table.open_link();
        self.say(format!("runner: calls server {machine} over wire {wire}"));
        self.runner.session = Some(Linked {
            wire,
            session: Session::new(self.runner_time),
            opened,
        });
    }

    /// One event; `None` is the end of the wire.
    fn serve_runner(&mut self, linked: &mut Linked) -> Result<(), Option<LinkEndReason>> {
        let now = self.runner_time;
        let random = self.dice.below(256) as u8;
        let beat = linked.session.tick(now, random, None).map_err(Some)?;
        let Some(wire) = self.wires.get_mut(&linked.wire) else {
            return Err(None);
        };
        if let Some(beat) = beat {
            wire.up.send(beat);
        }
        if self.runner.table.has_frames() && wire.up.has_room() && self.dice.one_in(2) {
            let Runner { table, host, .. } = &mut self.runner;
            if let Some(frame) = table.next_frame(host) {
                wire.up.send(frame);
            }
            return Ok(());
        }
        if !self.runner.table.takes_orders() {
            return Ok(());
        }
        let frame = match wire.down.receive() {
            Received::Frame(frame) => frame,
            Received::Nothing => return Ok(()),
            Received::End => return Err(None),
        };
        match linked.session.frame(frame, now).map_err(Some)? {
            Todo::Introduce => {
                let hello = hello(&linked.opened);
                self.wires
                    .entry(linked.wire)
                    .and_modify(|wire| wire.up.send(hello));
            }
            Todo::Order(order) => {
                self.order(linked.opened.link, order);
                if self.runner.dies {
                    return Err(None);
                }
            }
            Todo::Answer(answer) => panic!("an order that the runner cannot read: {answer:?}"),
            Todo::Linked { .. } => self.runner.table.welcomed(linked.opened.link),
            Todo::Model(_) | Todo::Nothing => {}
        }
        Ok(())
    }

    fn order(&mut self, link: LinkId, order: Order) {
        if matches!(order, Order::Operation(_) | Order::Cancel { .. }) && self.dice.one_in(4) {
            self.runner.stale.extend(copy(&order));
            self.runner.stale.truncate(8);
        }
        let epoch = match &order {
            Order::Operation(incoming) => incoming.epoch,
            _ => Epoch(0),
        };
        let act = self.runner.table.order(link, order, self.runner_time);
        self.runner.dies = self.faults && self.dice.one_in(100);
        if self.runner.dies && self.dice.one_in(2) {
            return;
        }
        self.runner.write_down();
        if self.runner.dies && self.dice.one_in(2) {
            return;
        }
        match act {
            Some(Act::Start {
                operation, request, ..
            }) => {
                self.say(format!("runner: starts {operation}"));
                assert!(epoch >= self.runner.epoch, "{operation} has an older epoch");
                self.runner.epoch = epoch;
                let to_write = self.output_of();
                self.runner.host.start(operation, &request, to_write);
                self.checks.started(operation, &self.runner.host, &request);
                self.runner.dies |= self.dies_before_a_change(&request);
            }
            Some(Act::Stop(operation)) => self.runner.host.stop(operation),
            Some(Act::Drop(operation)) => {
                self.say(format!("runner: forgets {operation}"));
                self.check_forgotten(operation);
                self.runner.host.drop_output(operation);
            }
            Some(Act::LetGo(..)) => unreachable!("the simulation downloads nothing"),
            Some(act @ (Act::Input(..) | Act::Control { .. })) => self.pass_to_host(act),
            Some(Act::Commit {
                operation,
                stream,
                up_to,
            }) => self.commit_to_host(operation, stream, up_to),
            Some(Act::Sandbox(..)) => unreachable!("the simulation has no pool"),
            None => {}
        }
    }

    fn end_session(&mut self, linked: Linked, ended: Option<LinkEndReason>) {
        self.say(format!("runner: wire {} ends: {ended:?}", linked.wire));
        if let Some(wire) = self.wires.get_mut(&linked.wire) {
            let mut session = linked.session;
            while let Received::Frame(frame) = wire.down.receive() {
                if let Ok(Todo::Order(order)) = session.frame(frame, self.runner_time) {
                    self.runner.late.push((linked.opened.link, order));
                }
            }
            wire.up.close();
        }
        self.runner.table.close_link(linked.opened.link);
        self.runner.connect_at = self.runner_time + Duration::from_millis(self.dice.below(3000));
        match ended {
            Some(LinkEndReason::NewJournal) => {
                self.checks.tally.count("new journals");
                self.spare_the_server(false);
                self.runner.epoch = Epoch(0);
                self.runner.journals += 1;
                let journal = JournalId::from_u128(self.runner.journals);
                for id in self.runner.table.begin_journal(journal) {
                    self.runner.host.stop(id);
                    self.runner.host.drop_output(id);
                }
                self.runner.changes.clear();
                self.runner.compact();
                self.memory_is_gone();
            }
            None
            | Some(
                LinkEndReason::Silent(_)
                | LinkEndReason::Goodbye { .. }
                | LinkEndReason::Aged { .. },
            ) => {}
            Some(broken) => panic!("the runner holds the server for broken: {broken}"),
        }
    }

    /// What was on its way from a link that is over reaches the table, and what is for another
    /// memory than this one: neither may do anything.
    pub(crate) fn late_order(&mut self) {
        if let Some((link, order)) = self.runner.late.pop() {
            let mut probe = self.runner.table.clone();
            let act = probe.order(link, order, self.runner_time);
            assert_eq!(act, None, "an older link's order was carried out");
            let (before, after) = (&self.runner.table, &probe);
            assert_eq!(
                before.unfinished(),
                after.unfinished(),
                "an older link's order counts"
            );
            assert_eq!(
                before.has_frames(),
                after.has_frames(),
                "an older link is answered"
            );
        }
    }

    /// Another replica sends what was meant for a memory that is gone.
    pub(crate) fn stale_order(&mut self) {
        let Some(order) = self.runner.stale.pop() else {
            return;
        };
        let ours = self.runner.table.incarnation().clone();
        let (theirs, older) = match &order {
            Order::Operation(incoming) => {
                let older = incoming.epoch < self.runner.epoch;
                (incoming.incarnation.clone(), older)
            }
            Order::Cancel {
                incarnation, epoch, ..
            } => (incarnation.clone(), *epoch < self.runner.epoch),
            _ => return,
        };
        if older || theirs.as_ref() != Some(&ours) {
            let mut probe = self.runner.table.clone();
            let link = probe.open_link().link;
            let act = probe.order(link, order, self.runner_time);
            assert_eq!(
                act, None,
                "an order for another memory or of an older epoch was carried out"
            );
            let answer = probe
                .next_frame(&mut self.runner.host)
                .and_then(|frame| frame.kind);
            let refused = match &answer {
                Some(runner_frame::Kind::CancelAnswer(answer)) => answer.refusal.is_some(),
                Some(runner_frame::Kind::Ended(ended)) => {
                    matches!(ended.outcome, Some(v1::ended::Outcome::Refused(_)))
                }
                _ => false,
            };
            assert!(
                refused,
                "an order for another memory or of an older epoch is answered: {answer:?}"
            );
        }
    }

    /// Something happens to an operation on the host.
    pub(crate) fn host_step(&mut self) {
        let running: Vec<_> = self.runner.host.running.keys().copied().collect();
        let Some(id) = self.dice.pick(&running) else {
            return;
        };
        let abandoned = !self.is_written_to(id);
        if let Some(process) = self.runner.host.running.get_mut(&id) {
            process.given.abandoned |= abandoned;
        }
        match self.runner.host.go_on(id, &mut self.dice) {
            Some(Happened::Took(Took::Input(up_to))) => self.runner.table.input_taken(id, up_to),
            Some(Happened::Took(Took::Resize(control, done))) => {
                let overtaken = || Refusal::new(RefusalCode::Invalid, "overtaken");
                let result = done.then_some(()).ok_or_else(overtaken);
                self.runner.table.controlled(id, control, result);
            }
            Some(Happened::Changing(change)) => return self.announced(id, change),
            Some(Happened::Changed) => return self.changed(id),
            Some(Happened::Output(written)) => self.runner.table.output(id, written),
            Some(Happened::Ended(outcome)) => {
                self.say(format!("host: {id} ends: {outcome:?}"));
                self.runner.table.ended(id, outcome, 0);
            }
            None => {}
        }
        match self.dice.below(16) {
            // The daemon dies before it heard of it, or before it wrote it down.
            0 if self.faults && self.dice.one_in(10) => return self.runner_crash(false),
            1 => self.runner.synced = self.runner.journal.len(),
            _ => {}
        }
        self.runner.write_down();
        self.forget_changes();
        if self.dice.one_in(50) {
            self.runner.compact();
        }
    }
}

fn hello(opened: &OpenedLink) -> v1::RunnerFrame {
    let hello = v1::Hello {
        protocol_version: PROTOCOL_VERSION,
        software_version: "simulated".into(),
        incarnation: Some((&opened.incarnation).into()),
        journal_sequence: opened.journal_sequence,
        capabilities: Some(v1::Capabilities {
            sandboxes: vec![v1::Sandbox {
                sandbox: place().to_string(),
                name: "workspace".into(),
                root: "/w".into(),
                isolation: "none".into(),
                problem: String::new(),
            }],
            ..v1::Capabilities::default()
        }),
        inventory: opened.inventory.clone(),
    };
    v1::RunnerFrame {
        kind: Some(runner_frame::Kind::Hello(Box::new(hello))),
    }
}

fn copy(order: &Order) -> Option<Order> {
    match order {
        Order::Operation(incoming) => Some(Order::Operation(incoming.clone())),
        Order::Cancel {
            operation,
            owner,
            epoch,
            incarnation,
        } => Some(Order::Cancel {
            operation: *operation,
            owner: *owner,
            epoch: *epoch,
            incarnation: incarnation.clone(),
        }),
        Order::Credit { .. }
        | Order::Commit { .. }
        | Order::Input { .. }
        | Order::Control { .. }
        | Order::Forget(_)
        | Order::LetGo(_)
        | Order::Sandbox(..) => None,
    }
}
