//! The runner's host: performs operations, and remembers for the oracle what really happened.

use std::{collections::BTreeMap, sync::LazyLock};

use shared_link::runner::{Spool, SpoolPiece};
use shared_sandbox::{
    ExitCause, ExitRecord, ExitStatus, Outcome, OutputStream, Request, Retention, StreamEnd,
};
use shared_types::{OperationId, limits::RETAINED_TAIL_BYTES};

use super::{
    changing::{Change, Disk, Mutation},
    dice::Dice,
    passing::{Given, Passed, Took},
    plan::{self, retention},
};

/// What is kept of the head of each stream.
pub(crate) const HEAD_BYTES: u64 = 1024 * 1024;

/// What may be kept of each stream where all of it is wanted: then the process waits for commits.
const SPOOL_BYTES: u64 = 512 * 1024;

/// What is given up at once.
const EVICT_BYTES: u64 = 64 * 1024;

/// Not a divisor of anything in the protocol, so that bytes at a wrong place look wrong.
const PERIOD: usize = 65_521;

static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut dice = Dice::new(1);
    let once: Vec<_> = (0..PERIOD).map(|_| dice.below(256) as u8).collect();
    once.repeat(3)
});

/// What an operation writes to a stream at this offset; at most 64 KiB at once.
pub(crate) fn bytes_at(
    id: OperationId,
    stream: OutputStream,
    offset: u64,
    len: usize,
) -> &'static [u8] {
    let start = (id.as_u128() as u64 * 977 + stream as u64 * 131 + offset) % PERIOD as u64;
    &PATTERN[start as usize..][..len]
}

/// Of everything that an operation writes to a stream below this offset.
fn checksum(id: OperationId, stream: OutputStream, end: u64) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for from in (0..end).step_by(65_536) {
        let len = (end - from).min(65_536) as usize;
        hasher.update(bytes_at(id, stream, from, len));
    }
    hasher.finalize()
}

/// Survives the daemon, as supervisors and their files do; what it counts survives everything, as
/// the world outside would.
#[derive(Default)]
pub(crate) struct Host {
    pub(crate) running: BTreeMap<OperationId, Process>,
    /// What is kept of the output.
    files: BTreeMap<OperationId, Files>,
    given_up: BTreeMap<(OperationId, OutputStream), u64>,
    /// How often each operation that changes something was started.
    pub(crate) effects: BTreeMap<OperationId, u32>,
    /// How each process really ended.
    pub(crate) ends: BTreeMap<OperationId, Outcome>,
    /// What was really passed on.
    pub(crate) passed: Passed,
    pub(crate) disk: Disk,
}

#[derive(Clone)]
pub(crate) struct Process {
    /// What comes of it, where it only reads.
    pub(crate) reads: Option<Outcome>,
    pub(crate) to_write: [u64; 2],
    pub(crate) written: [u64; 2],
    pub(crate) stopped: bool,
    retention: Retention,
    committed: [u64; 2],
    pub(crate) takes_input: bool,
    /// What is passed on to it.
    pub(crate) given: Given,
    /// It is no process, but the daemon's own work.
    pub(crate) mutation: Option<Mutation>,
}

pub(crate) enum Happened {
    /// So much of each stream can be read.
    Output([u64; 2]),
    Took(Took),
    /// A file is about to be changed.
    Changing(Change),
    Changed,
    Ended(Outcome),
}

/// All of each stream or its head and, once it has ended, its tail.
#[derive(Clone, Copy, Default)]
struct Files {
    written: [u64; 2],
    ended: bool,
    retention: Retention,
    /// Everything below was committed, and is gone.
    evicted: [u64; 2],
}

impl Files {
    fn readable(&self) -> [u64; 2] {
        let all = self.ended || self.retention != Retention::Bounded;
        let head = if all { u64::MAX } else { HEAD_BYTES };
        self.written.map(|written| written.min(head))
    }
}

impl Spool for Host {
    fn read(
        &mut self,
        operation: OperationId,
        stream: OutputStream,
        from: u64,
        max: usize,
    ) -> SpoolPiece {
        let Some(files) = self.files.get(&operation) else {
            return SpoolPiece::Nothing;
        };
        let evicted = files.evicted[stream as usize];
        if from < evicted {
            return SpoolPiece::Gap(evicted);
        }
        let end = files.readable()[stream as usize];
        let tail = end.saturating_sub(RETAINED_TAIL_BYTES as u64);
        let up_to = match from < HEAD_BYTES {
            _ if files.retention != Retention::Bounded => end,
            true => end.min(HEAD_BYTES),
            false if from < tail => return SpoolPiece::Gap(tail),
            false => end,
        };
        let len = max.min((up_to - from) as usize);
        SpoolPiece::Bytes(bytes::Bytes::from_static(bytes_at(
            operation, stream, from, len,
        )))
    }
}

impl Host {
    pub(crate) fn start(&mut self, id: OperationId, request: &Request, to_write: [u64; 2]) {
        let reads = request.only_reads().then(|| plan::result(request));
        let mutation = Mutation::of(request);
        if reads.is_none() && mutation.is_none() {
            *self.effects.entry(id).or_default() += 1;
        }
        let process = Process {
            reads,
            to_write,
            written: [0, 0],
            stopped: false,
            retention: retention(request),
            committed: [0, 0],
            takes_input: request.takes_input(),
            given: Given::default(),
            mutation,
        };
        self.running.insert(id, process);
        let files = Files {
            retention: retention(request),
            ..Files::default()
        };
        self.files.insert(id, files);
    }

    /// How much it has written to each stream.
    pub(crate) fn written(&self, id: OperationId) -> [u64; 2] {
        self.files.get(&id).map_or([0, 0], |files| files.written)
    }

    /// How far its output can be read.
    pub(crate) fn readable(&self, id: OperationId) -> [u64; 2] {
        self.files.get(&id).map_or([0, 0], Files::readable)
    }

    /// What is committed need not be kept; returns whether something was not.
    pub(crate) fn commit(&mut self, id: OperationId, stream: OutputStream, up_to: u64) -> bool {
        let (Some(process), Some(files)) = (self.running.get_mut(&id), self.files.get_mut(&id))
        else {
            return false;
        };
        let committed = &mut process.committed[stream as usize];
        *committed = up_to.min(process.written[stream as usize]).max(*committed);
        let evicted = &mut files.evicted[stream as usize];
        let before = std::mem::replace(evicted, *committed - *committed % EVICT_BYTES);
        self.given_up.insert((id, stream), *evicted);
        *evicted > before
    }

    /// Up to where a stream was given up because it was committed; known also once it is forgotten.
    pub(crate) fn given_up(&self, id: OperationId, stream: OutputStream) -> u64 {
        self.given_up.get(&(id, stream)).copied().unwrap_or(0)
    }

    /// Nobody asks for its output any more.
    pub(crate) fn drop_output(&mut self, id: OperationId) {
        self.files.remove(&id);
    }

    pub(crate) fn stop(&mut self, id: OperationId) {
        if let Some(process) = self.running.get_mut(&id) {
            process.stopped = true;
        }
    }

    /// Something happens to a process.
    pub(crate) fn go_on(&mut self, id: OperationId, dice: &mut Dice) -> Option<Happened> {
        let process = self.running.get_mut(&id)?;
        if dice.one_in(2)
            && let Some(took) = process.given.take(id, &mut self.passed, dice)
        {
            return Some(Happened::Took(took));
        }
        if process.mutation.is_some() {
            return self.change_on(id, dice);
        }
        let stream = match dice.below(2) {
            0 => OutputStream::Stdout,
            _ => OutputStream::Stderr,
        };
        let (to_write, written) = (
            process.to_write[stream as usize],
            process.written[stream as usize],
        );
        let has_room = process.has_room(stream);
        // What nobody will ever read has its time, and no more.
        process.stopped |= !has_room && process.given.abandoned;
        if process.reads.is_none()
            && has_room
            && written < to_write
            && !(process.stopped && dice.one_in(2))
        {
            let len = 1 + dice.below((to_write - written).min(65_536));
            process.written[stream as usize] += len;
            if let Some(files) = self.files.get_mut(&id) {
                files.written = process.written;
            }
            return Some(Happened::Output(self.readable(id)));
        }
        let fed = !process.takes_input || process.given.is_complete(id);
        let done = process.reads.is_some() || (process.written == process.to_write && fed);
        if !done && !process.stopped {
            return None;
        }
        let outcome = process.end(id);
        if process.reads.is_none() {
            self.ends.insert(id, outcome.clone());
        }
        self.running.remove(&id);
        if let Some(files) = self.files.get_mut(&id) {
            files.ended = true;
        }
        Some(Happened::Ended(outcome))
    }

    /// The daemon dies: whatever it did itself is over, and only processes go on.
    pub(crate) fn lose_daemon(&mut self) {
        self.running
            .retain(|_, process| process.reads.is_none() && process.mutation.is_none());
        self.disk.lose_daemon();
        let running = self.running.values_mut();
        running.for_each(|process| process.given.lose_daemon());
    }

    /// Every process dies, and nobody saw how.
    pub(crate) fn die(&mut self) {
        self.disk.lose_daemon();
        for id in std::mem::take(&mut self.running).into_keys() {
            if let Some(files) = self.files.get_mut(&id) {
                files.ended = true;
            }
        }
    }
}

impl Process {
    /// Whether it need not wait until more is committed.
    fn has_room(&self, stream: OutputStream) -> bool {
        let uncommitted = self.written[stream as usize] - self.committed[stream as usize];
        self.retention == Retention::Bounded || uncommitted < SPOOL_BYTES
    }

    fn end(&self, id: OperationId) -> Outcome {
        if let Some(result) = &self.reads {
            return result.clone();
        }
        let end = |stream| {
            let offset = self.written[stream as usize];
            StreamEnd {
                offset,
                checksum: Some(checksum(id, stream, offset)),
            }
        };
        Outcome::Exited(ExitRecord {
            status: ExitStatus::Code(0),
            cause: match self.stopped {
                true => ExitCause::Cancelled,
                false => ExitCause::Exited,
            },
            stdout: end(OutputStream::Stdout),
            stderr: end(OutputStream::Stderr),
            wall_ms: 1,
            cpu_us: 0,
            max_rss_bytes: 0,
            tree_gone: true,
        })
    }
}
