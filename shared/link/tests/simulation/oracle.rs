//! What must hold whatever fails: the invariants of the contract.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proto::v1::{self, server_frame};
use shared_link::server::never_started;
use shared_sandbox::{ExitCause, OperationEvent, Outcome, Request, Retention};
use shared_types::{OperationId, RefusalCode, limits::RETAINED_TAIL_BYTES};

use super::{
    changing::Mutation,
    host::{Host, bytes_at},
    plan,
    store::Store,
};

/// How often something happened, over all seeds: a run that never gets there proves nothing.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) finished: u64,
    pub(crate) cancelled: u64,
    pub(crate) lost: u64,
    pub(crate) lost_after_effects: u64,
    pub(crate) never_started: u64,
    pub(crate) unheard: u64,
    pub(crate) gaps: u64,
    pub(crate) new_journals: u64,
    /// An older state came back, and only what was accepted over one link tells.
    pub(crate) restored_within_a_link: u64,
    pub(crate) server_crashes: u64,
    pub(crate) fed: u64,
    pub(crate) resized: u64,
    /// Files that were changed, and what a new daemon found of changes whose maker died.
    pub(crate) changed: u64,
    pub(crate) settled_as_made: u64,
    pub(crate) settled_as_not_made: u64,
    /// Output that the runner gave up because it was committed.
    pub(crate) evicted: u64,
    /// The same while nobody read it.
    pub(crate) evicted_unread: u64,
    /// Readers that went on behind what was kept.
    pub(crate) gone_on: u64,
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

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.finished += other.finished;
        self.cancelled += other.cancelled;
        self.lost += other.lost;
        self.lost_after_effects += other.lost_after_effects;
        self.never_started += other.never_started;
        self.unheard += other.unheard;
        self.gaps += other.gaps;
        self.new_journals += other.new_journals;
        self.restored_within_a_link += other.restored_within_a_link;
        self.server_crashes += other.server_crashes;
        self.fed += other.fed;
        self.resized += other.resized;
        self.changed += other.changed;
        self.settled_as_made += other.settled_as_made;
        self.settled_as_not_made += other.settled_as_not_made;
        self.evicted += other.evicted;
        self.evicted_unread += other.evicted_unread;
        self.gone_on += other.gone_on;
    }

    pub(crate) fn is_complete(&self) -> bool {
        let each = [
            self.finished,
            self.cancelled,
            self.lost,
            self.lost_after_effects,
            self.never_started,
            self.unheard,
            self.gaps,
            self.new_journals,
            self.restored_within_a_link,
            self.server_crashes,
            self.fed,
            self.resized,
            self.changed,
            self.settled_as_made,
            self.settled_as_not_made,
            self.evicted,
            self.evicted_unread,
            self.gone_on,
        ];
        each.into_iter().all(|times| times > 0)
    }
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
    /// Of one that has so much, because it is kept.
    pub(crate) fn after(at: [u64; 2], gap_up_to: [u64; 2]) -> Self {
        Self {
            at,
            gap_up_to,
            ended: false,
        }
    }

    pub(crate) fn at(&self) -> [u64; 2] {
        self.at
    }

    pub(crate) fn check_resume(&self, offsets: [u64; 2]) {
        assert_eq!(offsets, self.at, "reading goes on at another offset");
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
                let recorded = rules.host.gap_recorded(id, *stream, *from);
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
        self.tally.changed += 1;
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
        if let Some(stored) = &store.rows[&id].intent.outcome {
            assert_eq!(stored, outcome, "{id}: another end is stored");
        }
    }

    /// After the last fault, when nothing moves any more.
    pub(crate) fn at_the_end(
        &mut self,
        store: &Store,
        host: &Host,
        lost_memory: &BTreeSet<OperationId>,
    ) {
        for (id, row) in &store.rows {
            let effects = host.effects.get(id).copied().unwrap_or(0);
            let reads = row.operation.request.only_reads();
            assert!(effects <= 1, "{id} was run {effects} times");
            if self.never_started.contains(id) {
                assert_eq!(effects, 0, "{id} was run although it never started");
            }
            let lost = lost_memory.contains(id);
            let tally = &mut self.tally;
            match &row.intent.outcome {
                None => panic!("{id} has no end"),
                Some(Outcome::Refused(refusal)) if refusal.code == RefusalCode::Lost => {
                    tally.lost += 1;
                    tally.lost_after_effects += u64::from(effects);
                    let meddled = host.disk.is_meddled_with(&row.operation.request);
                    assert!(
                        lost || meddled,
                        "{id} is lost, and the runner never lost its memory"
                    );
                }
                Some(Outcome::Refused(refusal)) => {
                    tally.never_started += 1;
                    tally.unheard += u64::from(*refusal == never_started());
                    assert_eq!(effects, 0, "{id} was run, and is stored as: {refusal}");
                }
                Some(outcome) if reads => {
                    assert_eq!(*outcome, plan::result(&row.operation.request))
                }
                Some(Outcome::Failed(failure)) => {
                    assert_eq!(effects, 0, "{id} was applied, and is stored as: {failure}");
                }
                Some(outcome @ Outcome::Written(written)) => {
                    tally.finished += 1;
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
                    tally.finished += 1;
                    let took = row.operation.request.takes_input() && host.passed.took_all(*id);
                    tally.fed += u64::from(took);
                    if let Outcome::Exited(record) = outcome {
                        tally.cancelled += u64::from(record.cause == ExitCause::Cancelled);
                    }
                    assert_eq!(effects, 1, "{id} ended and was not run");
                    assert_eq!(host.ends.get(id), Some(outcome), "{id} ended otherwise");
                }
            }
        }
    }
}
