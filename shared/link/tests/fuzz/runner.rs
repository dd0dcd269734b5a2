//! The runner's end: whatever a server sends.

use std::{collections::BTreeSet, time::Duration};

use prost::Message;
use proto::v1;
use shared_fuzz::{Dice, fuzz, peak_of};
use shared_link::runner::{
    Act, LinkEndReason, LinkId, OpenedLink, OperationTable, Record, Session, Spool, SpoolPiece,
    Todo,
};
use shared_sandbox::{Outcome, OutputStream, Request, examples};
use shared_types::{JournalId, OperationId, limits::MAX_FRAME_BYTES};

use super::{
    corpus::{incarnation, place},
    frames::{self, bound},
};

/// Seeds of a run without any wish.
const SEEDS: u64 = 10_000;

/// Frames that one order may lead to, with all output that there is.
const FRAMES_FOR_AN_ORDER: usize = 1000;

/// Output of one stream, at most, in bytes.
const OUTPUT_BYTES: u64 = 300_000;

#[test]
fn a_runner_survives_whatever_a_server_sends() {
    fuzz(&frames::corpus("runner"), SEEDS, |input, dice| {
        let ((), peak) = peak_of(|| Runner::new().serve(input, dice));
        assert!(peak <= bound(input), "{peak} bytes for {}", input.len());
    });
}

struct Runner {
    table: OperationTable,
    records: Vec<Record>,
    /// What was started and leaves something behind, in this journal.
    started: BTreeSet<OperationId>,
    running: Vec<(OperationId, Request)>,
    journals: u128,
    now: Duration,
    /// How operations end.
    outcomes: Vec<Outcome>,
}

impl Runner {
    fn new() -> Self {
        Self {
            table: OperationTable::new(incarnation(), place()),
            records: Vec::new(),
            started: BTreeSet::new(),
            running: Vec::new(),
            journals: 1,
            now: Duration::ZERO,
            outcomes: examples::outcomes(),
        }
    }

    /// One link after another, until the input is used up.
    fn serve(&mut self, input: &[u8], dice: &mut Dice) {
        let mut frames = frames::from_bytes::<v1::ServerFrame>(input, dice).peekable();
        while frames.peek().is_some() {
            let opened = self.table.open_link();
            let mut session = Session::new(self.now);
            for frame in frames.by_ref() {
                if !self.frame(&mut session, opened.link, frame, dice) {
                    break;
                }
            }
            self.table.close_link(opened.link);
        }
        self.remembers_the_same_after_a_restart();
    }

    /// Returns whether the link goes on.
    fn frame(
        &mut self,
        session: &mut Session,
        link: LinkId,
        frame: v1::ServerFrame,
        dice: &mut Dice,
    ) -> bool {
        self.now += Duration::from_millis(dice.below(2000));
        match session.frame(frame, self.now) {
            Err(ended) => {
                assert!(!ended.to_string().is_empty());
                if ended == LinkEndReason::NewJournal {
                    self.begin_journal();
                }
                return false;
            }
            Ok(Todo::Order(order)) => {
                let act = self.table.order(link, order, self.now);
                self.records.append(&mut self.table.take_records());
                if let Some(act) = act {
                    self.act(act);
                }
            }
            Ok(Todo::Answer(answer)) => assert!(answer.kind.is_some()),
            Ok(Todo::Introduce | Todo::Linked { .. } | Todo::Model(_) | Todo::Nothing) => {}
        }
        self.work(dice);
        self.send();
        true
    }

    fn act(&mut self, act: Act) {
        if let Act::Start {
            operation, request, ..
        } = act
        {
            let again = !request.only_reads() && !self.started.insert(operation);
            assert!(!again, "{operation} is started a second time");
            self.running.push((operation, request));
        }
    }

    /// What runs writes, and ends at some time.
    fn work(&mut self, dice: &mut Dice) {
        for (id, request) in std::mem::take(&mut self.running) {
            let written = [dice.below(OUTPUT_BYTES), dice.below(OUTPUT_BYTES)];
            if matches!(request, Request::Exec(_)) {
                self.table.output(id, written);
            }
            if dice.one_in(3) {
                let outcome = dice.pick(&self.outcomes).clone();
                self.table.ended(id, outcome, dice.below(1 << 24));
            } else {
                self.running.push((id, request));
            }
        }
        self.records.append(&mut self.table.take_records());
    }

    /// Everything that may be sent now.
    fn send(&mut self) {
        let mut sent = 0;
        while let Some(frame) = self.table.next_frame(&mut Zeros) {
            assert!(frame.encoded_len() <= MAX_FRAME_BYTES);
            sent += 1;
            assert!(sent < FRAMES_FOR_AN_ORDER, "it never ends");
        }
        assert!(self.table.takes_orders());
    }

    fn begin_journal(&mut self) {
        self.journals += 1;
        self.table
            .begin_journal(JournalId::from_u128(self.journals));
        self.records.clear();
        self.started.clear();
        self.running.clear();
    }

    fn remembers_the_same_after_a_restart(&mut self) {
        let incarnation = self.table.incarnation().clone();
        let records = self.records.iter().cloned().collect();
        let (mut restored, _) =
            OperationTable::restore(incarnation.clone(), place(), records, self.now);
        let compacted = restored.all_records().into_iter().collect();
        let (mut compacted, _) = OperationTable::restore(incarnation, place(), compacted, self.now);
        let expected = memory(self.table.open_link());
        assert_eq!(memory(restored.open_link()), expected);
        assert_eq!(memory(compacted.open_link()), expected);
    }
}

/// What a hello says of a memory, in one order.
fn memory(opened: OpenedLink) -> (u64, Vec<(String, bool)>) {
    let inventory = opened.inventory.into_iter();
    let mut inventory: Vec<_> = inventory
        .map(|entry| (entry.operation, entry.ended))
        .collect();
    inventory.sort();
    (opened.journal_sequence, inventory)
}

/// As much output as is asked for.
struct Zeros;

impl Spool for Zeros {
    fn read(&mut self, _: OperationId, _: OutputStream, _: u64, max: usize) -> SpoolPiece {
        SpoolPiece::Bytes(vec![0; max].into())
    }
}
