//! Changes of files: announced, written down, made, told. What became of one whose maker died is
//! told by what the next change of the file found, or by what the file holds now.

use std::collections::{BTreeMap, BTreeSet};

use shared_link::runner::{Accepted, OperationTable, Record, Records};
use shared_sandbox::{FileFailure, Outcome, Request, Upload, Write, Written};
use shared_types::{Digest, FileDigest, OperationId, Refusal, RefusalCode};

use super::{
    dice::Dice,
    host::{Happened, Host},
    passing::input_length,
    world::World,
};

/// Files, and contents: few, so that changes meet, and undo one another.
const FILES: u64 = 2;
const CONTENTS: u64 = 3;

/// The world outside: no crash changes it.
#[derive(Default)]
pub(crate) struct Disk {
    files: BTreeMap<String, FileDigest>,
    /// What each change that was made came to.
    made: BTreeMap<OperationId, Written>,
    /// What was written by somebody else.
    meddled: BTreeSet<String>,
    /// Whose change is under way: there is one at a time.
    turn: Option<OperationId>,
}

/// A change before it is made, as the journal has it.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    path: String,
    done: Written,
}

/// What is to be done to a file by its operation.
#[derive(Clone)]
pub(crate) struct Mutation {
    path: String,
    after: FileDigest,
    bytes: u64,
    stage: Stage,
}

#[derive(Clone)]
enum Stage {
    /// What it takes is yet to come.
    Begun,
    Announced(Written),
    /// The journal has it.
    WrittenDown(Written),
    Made(Written),
}

/// One line of the runner's journal.
#[derive(Clone)]
pub(crate) enum Entry {
    Boot,
    Table(Record),
    Changing(OperationId, Change),
}

/// Changes that are written down, in this order.
pub(crate) type Changes = Vec<(OperationId, Change)>;

/// A file that is written, or uploaded.
pub(crate) fn request(number: u64, dice: &mut Dice) -> Request {
    let path = format!("file-{}", dice.below(FILES));
    let content = format!("content {}", dice.below(CONTENTS));
    match dice.below(3) {
        0 => Request::Upload(Upload {
            path,
            bytes: input_length(OperationId::from_u128(number.into())),
            digest: Digest::of(content.as_bytes()).into(),
            mode: None,
            modified_us: None,
        }),
        _ => Request::Write(Write {
            path,
            content: content.into_bytes(),
        }),
    }
}

/// Splits what a journal holds.
pub(crate) fn read(journal: &[Entry]) -> (Records, Changes) {
    let (mut records, mut changes) = (Records::default(), Changes::new());
    for entry in journal {
        match entry {
            Entry::Boot => records.begin_boot(),
            Entry::Table(record) => {
                // Where it is accepted again, it begins anew.
                if let Record::Released(operation) | Record::Accepted(Accepted { operation, .. }) =
                    record
                {
                    changes.retain(|(id, _)| id != operation);
                }
                records.push(record.clone());
            }
            Entry::Changing(id, change) => changes.push((*id, change.clone())),
        }
    }
    (records, changes)
}

/// A journal that is read as the same table and changes.
pub(crate) fn journal(table: &OperationTable, changes: &Changes) -> Vec<Entry> {
    let changes = changes.iter().cloned();
    let changes = changes.map(|(id, change)| Entry::Changing(id, change));
    let records = table.all_records().into_iter().map(Entry::Table);
    records.chain(changes).collect()
}

impl Mutation {
    pub(crate) fn of(request: &Request) -> Option<Self> {
        let (path, bytes, after) = match request {
            Request::Write(write) => {
                let bytes = write.content.len() as u64;
                (
                    &write.path,
                    bytes,
                    FileDigest::from(Digest::of(&write.content)),
                )
            }
            Request::Upload(upload) => (&upload.path, upload.bytes, upload.digest),
            _ => return None,
        };
        Some(Self {
            path: path.clone(),
            after,
            bytes,
            stage: Stage::Begun,
        })
    }
}

impl Disk {
    /// Nobody makes a change any more.
    pub(crate) fn lose_daemon(&mut self) {
        self.turn = None;
    }

    /// How many changes were made.
    pub(crate) fn changed(&self) -> usize {
        self.made.len()
    }

    /// What an operation that changed a file has to be told to have come to.
    pub(crate) fn came_to(&self, id: OperationId) -> Option<Outcome> {
        self.made.get(&id).cloned().map(Outcome::Written)
    }

    /// Whether it cannot be known what became of a change of this file.
    pub(crate) fn is_meddled_with(&self, request: &Request) -> bool {
        Mutation::of(request).is_some_and(|mutation| self.meddled.contains(&mutation.path))
    }

    /// What became of a change; nothing, where that cannot be known.
    fn settle(&self, id: OperationId, changes: &Changes) -> Option<Settled> {
        let at = changes.iter().rposition(|(other, _)| *other == id)?;
        let (change, later) = (&changes[at].1, &changes[at + 1..]);
        let next = later.iter().find(|(_, next)| next.path == change.path);
        let found = match next {
            Some((_, next)) => next.done.before,
            None => self.files.get(&change.path).copied(),
        };
        if found == Some(change.done.after) {
            Some(Settled::Made(Outcome::Written(change.done.clone())))
        } else if found == change.done.before {
            Some(Settled::NotMade)
        } else {
            Some(Settled::Unclear)
        }
    }
}

enum Settled {
    Made(Outcome),
    NotMade,
    Unclear,
}

impl Host {
    /// A change goes on, if it can.
    pub(crate) fn change_on(&mut self, id: OperationId, dice: &mut Dice) -> Option<Happened> {
        let process = self.running.get_mut(&id)?;
        let fed = !process.takes_input || process.given.is_fed(id);
        let mutation = process.mutation.as_mut()?;
        let end = match &mutation.stage {
            // The word of it is on its way; its turn lasts until that is written down.
            Stage::Made(_) if !dice.one_in(4) => return None,
            Stage::Made(written) => Outcome::Written(written.clone()),
            _ if process.stopped => {
                let message = "it was stopped, and nothing was changed";
                Outcome::Refused(Refusal::new(RefusalCode::Fenced, message))
            }
            Stage::Begun if !fed && process.given.abandoned => {
                Outcome::Failed(FileFailure::TooSlow { limit_ms: 1 })
            }
            Stage::Begun if fed && self.disk.turn.is_none() => {
                self.disk.turn = Some(id);
                let path = mutation.path.clone();
                let done = Written {
                    bytes: mutation.bytes,
                    before: self.disk.files.get(&path).copied(),
                    after: mutation.after,
                };
                mutation.stage = Stage::Announced(done.clone());
                return Some(Happened::Changing(Change { path, done }));
            }
            Stage::Begun | Stage::Announced(_) => return None,
            Stage::WrittenDown(written) => {
                let written = written.clone();
                let path = mutation.path.clone();
                self.disk.files.insert(path, mutation.after);
                self.disk.made.insert(id, written.clone());
                *self.effects.entry(id).or_default() += 1;
                mutation.stage = Stage::Made(written);
                return Some(Happened::Changed);
            }
        };
        if self.disk.turn == Some(id) {
            self.disk.turn = None;
        }
        self.running.remove(&id);
        Some(Happened::Ended(end))
    }
}

impl World {
    /// The daemon writes down that a file is about to be changed, and lets it be changed.
    pub(crate) fn announced(&mut self, id: OperationId, change: Change) {
        if self.dies_changing() {
            return;
        }
        let entry = Entry::Changing(id, change.clone());
        self.runner.journal.push(entry);
        self.runner.changes.push((id, change));
        if self.dies_changing() {
            return;
        }
        let process = self.runner.host.running.get_mut(&id);
        if let Some(mutation) = process.and_then(|process| process.mutation.as_mut())
            && let Stage::Announced(written) = &mutation.stage
        {
            mutation.stage = Stage::WrittenDown(written.clone());
        }
    }

    /// A file was changed, and the daemon has not heard of it.
    pub(crate) fn changed(&mut self, id: OperationId) {
        self.say(format!("host: {id} has changed its file"));
        self.checks.changed(id, &self.runner.host);
        self.dies_changing();
    }

    /// Whether the daemon dies before it changes what it has just accepted to change.
    pub(crate) fn dies_before_a_change(&mut self, request: &Request) -> bool {
        Mutation::of(request).is_some() && self.faults && self.dice.one_in(8)
    }

    /// The daemon dies now and then, just there.
    fn dies_changing(&mut self) -> bool {
        let dies = self.faults && self.dice.one_in(8);
        if dies {
            self.runner_crash(false);
        }
        dies
    }

    /// Somebody else writes a file.
    pub(crate) fn meddle(&mut self) {
        if !self.faults || !self.dice.one_in(300) {
            return;
        }
        let path = format!("file-{}", self.dice.below(FILES));
        let content = Digest::of(format!("theirs {}", self.fresh()).as_bytes()).into();
        self.say(format!("somebody writes {path}"));
        let disk = &mut self.runner.host.disk;
        disk.files.insert(path.clone(), content);
        disk.meddled.insert(path);
    }

    /// A new daemon finds out what became of a change; whether it had been written down.
    pub(crate) fn settle_change(&mut self, table: &mut OperationTable, id: OperationId) -> bool {
        let settled = self.runner.host.disk.settle(id, &self.runner.changes);
        let tally = &mut self.checks.tally;
        match settled {
            None => return false,
            Some(Settled::Made(outcome)) => {
                tally.count("settled as made");
                table.ended(id, outcome, 0);
            }
            Some(Settled::NotMade) => {
                tally.count("settled as not made");
                table.release(id);
            }
            Some(Settled::Unclear) => {
                let lost = Refusal::new(RefusalCode::Lost, "the file holds something else");
                table.ended(id, Outcome::Refused(lost), 0);
            }
        }
        true
    }

    /// Of what has ended nothing need be known, but what changes before it that have not ended need.
    pub(crate) fn forget_changes(&mut self) {
        let before = self.runner.changes.len();
        let mut open = BTreeSet::new();
        let table = &self.runner.table;
        self.runner.changes.retain(|(id, change)| {
            let needed = open.contains(&change.path);
            if table.is_open(*id) {
                open.insert(change.path.clone());
            }
            needed || table.is_open(*id)
        });
        if self.runner.changes.len() < before && self.dice.one_in(4) {
            self.runner.compact();
        }
    }
}
