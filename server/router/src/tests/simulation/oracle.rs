//! What must hold whatever fails: the invariants of the contract.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    process::Output,
};

use proto::v1::{self, server_frame};
use shared_sandbox::{ExitCause, Operation, OperationEvent, Outcome, Request, Retention};
use shared_types::{OperationId, RefusalCode, limits::RETAINED_TAIL_BYTES};

use super::{
    TALLY,
    changing::Mutation,
    host::{HEAD_BYTES, Host, bytes_at},
    plan,
};
use crate::tests::double::Store;
use shared_link::server::never_started;

/// What happens in simulations; a run in which one of them never does proves nothing.
const COUNTED: [&str; 25] = [
    "finished",
    "cancelled",
    "lost",
    "lost after effects",
    "never started",
    "unheard",
    "gaps",
    "new journals",
    "restored within a link",
    "server crashes",
    "fed",
    "resized",
    // Files that were changed, and what a new daemon found of changes whose maker died.
    "changed",
    "settled as made",
    "settled as not made",
    // Output that the runner gave up because it was committed, with and without a reader.
    "evicted",
    "evicted unread",
    // Readers that began behind what is kept, or within it.
    "read from within",
    "refused by the store",
    "disk full",
    "store away",
    // Links that one server has lent to another.
    "borrowed",
    "calls cut",
    "told by way of another server",
    "links moved",
];

/// How often each of [`COUNTED`] happened.
#[derive(Debug, Default)]
pub(crate) struct Tally([u64; COUNTED.len()]);

impl Tally {
    pub(crate) fn count(&mut self, what: &str) {
        let place = COUNTED.iter().position(|counted| *counted == what);
        self.0[place.expect("it is counted")] += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (ours, theirs) in self.0.iter_mut().zip(other.0) {
            *ours += theirs;
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.0.iter().all(|times| *times > 0)
    }

    /// For another process.
    pub(crate) fn numbers(&self) -> String {
        self.0.map(|times| format!(" {times}")).concat()
    }

    /// What a process has told; nothing, where it failed.
    pub(crate) fn read(output: &Output) -> Option<Self> {
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find_map(|line| line.strip_prefix(TALLY))?;
        let numbers = line.split_whitespace().map(|number| number.parse().ok());
        let numbers: Option<Vec<u64>> = numbers.collect();
        numbers?.try_into().ok().map(Self)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counted = COUNTED.iter().zip(self.0);
        counted.try_for_each(|(what, times)| write!(f, "{what} {times}, "))
    }
}

/// What is noted on the way.
#[derive(Default)]
pub(crate) struct Checks {
    /// The runner said that these never start.
    pub(crate) never_started: BTreeSet<OperationId>,
    /// What readers were told.
    ended: BTreeMap<OperationId, Outcome>,
    credit: HashMap<(u64, String, i32), u64>,
    committed: HashMap<(u64, String, i32), u64>,
    pub(crate) tally: Tally,
}

/// What one reader was told.
pub(crate) struct Reading {
    at: [u64; 2],
    /// Where the last gap ended.
    gap_up_to: [u64; 2],
    ended: bool,
}

/// What a reader may miss.
pub(crate) struct Rules<'a> {
    /// The runner that had the output forgot it.
    pub(crate) may_be_cut: bool,
    pub(crate) retention: Retention,
    pub(crate) host: &'a Host,
}

impl Reading {
    /// Of one that reads from here on.
    pub(crate) fn from(at: [u64; 2]) -> Self {
        Self {
            at,
            gap_up_to: [0, 0],
            ended: false,
        }
    }

    pub(crate) fn event(&mut self, id: OperationId, event: &OperationEvent, rules: &Rules<'_>) {
        let may_be_cut = rules.may_be_cut;
        assert!(!self.ended, "{id}: something follows the end");
        match event {
            OperationEvent::Output {
                stream,
                offset,
                data,
            } => {
                let at = &mut self.at[*stream as usize];
                assert_eq!(offset, at, "{id}: {stream} goes on elsewhere");
                let expected = bytes_at(id, *stream, *offset, data.len());
                assert!(
                    *data == expected,
                    "{id}: {stream} has other bytes at {offset}"
                );
                *at += data.len() as u64;
            }
            OperationEvent::Gap { stream, from, to } => {
                let at = &mut self.at[*stream as usize];
                assert_eq!(from, at, "{id}: a gap of {stream} begins elsewhere");
                let recorded = match rules.retention {
                    // How much of the tail is kept is checked at the end.
                    Retention::Bounded if *from >= HEAD_BYTES => u64::MAX,
                    // Its reader has had it.
                    Retention::None => rules.host.given_up(id, *stream),
                    Retention::Bounded | Retention::All => 0,
                };
                assert!(
                    may_be_cut || *to <= recorded,
                    "{id}: {stream} misses {from}..{to}"
                );
                self.gap_up_to[*stream as usize] = *to;
                *at = *to;
            }
            OperationEvent::Ended(outcome) => {
                self.ended = true;
                if let Outcome::Exited(record) = outcome {
                    let ends = [record.stdout.offset, record.stderr.offset];
                    assert_eq!(self.at, ends, "{id}: the end came before all of the output");
                    let tail = |end: u64| end.saturating_sub(RETAINED_TAIL_BYTES as u64);
                    let mut gaps = self.gap_up_to.into_iter().zip(ends);
                    let kept = gaps.all(|(gap, end)| gap <= tail(end));
                    assert!(
                        may_be_cut || kept || rules.retention == Retention::None,
                        "{id}: the tail of the output is missing"
                    );
                }
            }
            OperationEvent::Accepted
            | OperationEvent::Unreachable { .. }
            | OperationEvent::Reachable
            | OperationEvent::InputTaken(_) => {}
        }
    }
}

impl Checks {
    pub(crate) fn started(&self, id: OperationId, host: &Host, request: &Request) {
        if request.only_reads() {
            return;
        }
        match Mutation::of(request) {
            // It may begin anew as long as it has changed nothing.
            Some(_) => assert_eq!(host.disk.came_to(id), None, "{id} was started again"),
            None => assert_eq!(host.effects.get(&id), Some(&1), "{id} was started again"),
        }
        assert!(
            !self.never_started.contains(&id),
            "{id} was started after the promise that it never is"
        );
    }

    pub(crate) fn changed(&mut self, id: OperationId, host: &Host) {
        self.tally.count("changed");
        assert_eq!(host.effects.get(&id), Some(&1), "{id} was applied again");
        assert!(
            !self.never_started.contains(&id),
            "{id} was applied after the promise that it never is"
        );
    }

    /// Credit and what is committed never go back on a link.
    pub(crate) fn sent_down(&mut self, wire: u64, frame: &v1::ServerFrame) {
        match &frame.kind {
            Some(server_frame::Kind::Credit(credit)) => {
                let key = (wire, credit.operation.clone(), credit.stream);
                let before = self.credit.insert(key, credit.up_to).unwrap_or(0);
                assert!(credit.up_to > before, "credit went back: {credit:?}");
            }
            Some(server_frame::Kind::Commit(commit)) => {
                let key = (wire, commit.operation.clone(), commit.stream);
                let before = self.committed.insert(key, commit.up_to).unwrap_or(0);
                assert!(commit.up_to >= before, "a commit went back: {commit:?}");
            }
            // Whoever reads from now on counts from its own place.
            Some(server_frame::Kind::Operation(operation)) => {
                let id = &operation.operation;
                self.credit.retain(|(w, o, _), _| *w != wire || o != id);
                self.committed.retain(|(w, o, _), _| *w != wire || o != id);
            }
            _ => {}
        }
    }

    /// Everybody is told the same end, which is the one that is stored.
    pub(crate) fn told_end(&mut self, id: OperationId, outcome: &Outcome, store: &Store) {
        let before = self.ended.entry(id).or_insert_with(|| outcome.clone());
        assert_eq!(before, outcome, "{id} ended twice");
        let stored = store.rows().intent(id).and_then(|intent| intent.outcome);
        assert_eq!(
            stored.as_ref(),
            Some(outcome),
            "{id}: that end is not stored"
        );
    }

    /// After the last fault, when nothing moves any more.
    pub(crate) fn at_the_end(
        &mut self,
        store: &Store,
        host: &Host,
        (operations, lost_memory): (&BTreeMap<OperationId, Operation>, &BTreeSet<OperationId>),
    ) {
        for (id, operation) in operations {
            let intent = store.rows().intent(*id);
            let outcome = intent.expect("it was placed").outcome;
            let request = &operation.request;
            let effects = host.effects.get(id).copied().unwrap_or(0);
            let reads = request.only_reads();
            assert!(effects <= 1, "{id} was run {effects} times");
            if self.never_started.contains(id) {
                assert_eq!(effects, 0, "{id} was run although it never started");
            }
            let lost = lost_memory.contains(id);
            let tally = &mut self.tally;
            match &outcome {
                None => panic!("{id} has no end"),
                Some(Outcome::Refused(refusal)) if refusal.code == RefusalCode::Lost => {
                    tally.count("lost");
                    if effects > 0 {
                        tally.count("lost after effects");
                    }
                    let meddled = host.disk.is_meddled_with(request);
                    assert!(
                        lost || meddled,
                        "{id} is lost, and the runner never lost its memory"
                    );
                }
                Some(Outcome::Refused(refusal)) => {
                    tally.count("never started");
                    if *refusal == never_started() {
                        tally.count("unheard");
                    }
                    assert_eq!(effects, 0, "{id} was run, and is stored as: {refusal}");
                }
                Some(outcome) if reads => {
                    assert_eq!(*outcome, plan::result(request))
                }
                Some(Outcome::Failed(failure)) => {
                    assert_eq!(effects, 0, "{id} was applied, and is stored as: {failure}");
                }
                Some(outcome @ Outcome::Written(written)) => {
                    tally.count("finished");
                    let came_to = host.disk.came_to(*id);
                    // The digest cannot tell who has put there what was to be there: what was
                    // there before, or what another put there of whom a dead host knows no more.
                    let by_others = written.before == Some(written.after) || lost;
                    if came_to.is_some() || !by_others {
                        assert_eq!(effects, 1, "{id} is stored as made and was not");
                        assert_eq!(
                            came_to.as_ref(),
                            Some(outcome),
                            "{id} came to something else"
                        );
                    }
                }
                Some(outcome) => {
                    tally.count("finished");
                    if request.takes_input() && host.passed.took_all(*id) {
                        tally.count("fed");
                    }
                    if let Outcome::Exited(record) = outcome
                        && record.cause == ExitCause::Cancelled
                    {
                        tally.count("cancelled");
                    }
                    assert_eq!(effects, 1, "{id} ended and was not run");
                    assert_eq!(host.ends.get(id), Some(outcome), "{id} ended otherwise");
                }
            }
        }
    }
}
