//! The runner's host: performs operations, and remembers for the oracle what really happened.

use std::{collections::BTreeMap, sync::LazyLock};

use shared_sandbox::{
    ExitCause, ExitRecord, ExitStatus, Outcome, OutputStream, ReadContent, Request, StreamEnd,
};
use shared_types::OperationId;

use super::dice::Dice;

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

/// Survives everything that is simulated, as the world outside would.
#[derive(Default)]
pub(crate) struct Host {
    pub(crate) running: BTreeMap<OperationId, Process>,
    /// How often each operation that changes something was started.
    pub(crate) effects: BTreeMap<OperationId, u32>,
    /// How each process really ended.
    pub(crate) ends: BTreeMap<OperationId, Outcome>,
}

#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) reads: bool,
    pub(crate) to_write: [u64; 2],
    pub(crate) written: [u64; 2],
    pub(crate) stopped: bool,
}

pub(crate) enum Happened {
    Output(OutputStream, &'static [u8]),
    Ended(Outcome),
}

impl Host {
    pub(crate) fn start(&mut self, id: OperationId, request: &Request, to_write: [u64; 2]) {
        let reads = request.only_reads();
        if !reads {
            *self.effects.entry(id).or_default() += 1;
        }
        let process = Process {
            reads,
            to_write,
            written: [0, 0],
            stopped: false,
        };
        self.running.insert(id, process);
    }

    pub(crate) fn stop(&mut self, id: OperationId) {
        if let Some(process) = self.running.get_mut(&id) {
            process.stopped = true;
        }
    }

    /// Something happens to a process.
    pub(crate) fn go_on(&mut self, id: OperationId, dice: &mut Dice) -> Option<Happened> {
        let process = self.running.get_mut(&id)?;
        let stream = match dice.below(2) {
            0 => OutputStream::Stdout,
            _ => OutputStream::Stderr,
        };
        let (to_write, written) = (
            process.to_write[stream as usize],
            process.written[stream as usize],
        );
        if !process.reads && written < to_write && !(process.stopped && dice.one_in(2)) {
            let len = 1 + dice.below((to_write - written).min(65_536));
            process.written[stream as usize] += len;
            return Some(Happened::Output(
                stream,
                bytes_at(id, stream, written, len as usize),
            ));
        }
        let done = process.reads || process.written == process.to_write;
        if !done && !process.stopped {
            return None;
        }
        let outcome = process.end();
        if !process.reads {
            self.ends.insert(id, outcome.clone());
        }
        self.running.remove(&id);
        Some(Happened::Ended(outcome))
    }

    /// Every process dies, and nobody saw how.
    pub(crate) fn die(&mut self) {
        self.running.clear();
    }
}

impl Process {
    fn end(&self) -> Outcome {
        if self.reads {
            return Outcome::Read(ReadContent {
                content: b"content".to_vec(),
                first_line: 1,
                lines: 1,
                file_bytes: 7,
                more: false,
            });
        }
        let end = |offset| StreamEnd {
            offset,
            checksum: None,
        };
        Outcome::Exited(ExitRecord {
            status: ExitStatus::Code(0),
            cause: match self.stopped {
                true => ExitCause::Cancelled,
                false => ExitCause::Exited,
            },
            stdout: end(self.written[0]),
            stderr: end(self.written[1]),
            wall_ms: 1,
            cpu_us: 0,
            max_rss_bytes: 0,
            tree_gone: true,
        })
    }
}
