//! The places of operations' output: commands have theirs in spools, downloads in the files that
//! they read.

use std::{
    collections::{HashMap, VecDeque},
    io,
};

use rustix::io::Errno;
use shared_link::runner::{Spool as Output, SpoolPiece};
use shared_sandbox::{ExitRecord, Outcome, OutputStream};
use shared_telemetry::{Counter, runner::OUTPUT_BYTES};
use shared_types::{OperationId, limits::SPOOL_BYTES_PER_STREAM};

use super::downloads::Downloads;
use crate::processes::{Spool, SpoolRead};

/// Operations whose files are open at the same time, at most.
const FILES_OPEN: usize = 64;

/// The most bytes of output whose size on the disk is not looked up.
const SMALL_OUTPUT_BYTES: u64 = 64 * 1024;

/// The output of all operations.
pub(super) struct Files {
    /// Bytes of output that were sent.
    sent: Counter,
    spools: HashMap<OperationId, Spool>,
    /// The files that are downloaded: each is its own output.
    pub(super) downloads: Downloads,
    /// Those whose files may be open, the longest first.
    open: VecDeque<OperationId>,
}

impl Default for Files {
    fn default() -> Self {
        Self {
            sent: OUTPUT_BYTES.counter(&[]),
            spools: HashMap::new(),
            downloads: Downloads::default(),
            open: VecDeque::new(),
        }
    }
}

impl Files {
    pub(super) fn add(&mut self, id: OperationId, spool: Spool) {
        self.spools.insert(id, spool);
    }

    pub(super) fn take(&mut self, id: OperationId) -> Option<Spool> {
        self.open.retain(|open| *open != id);
        self.spools.remove(&id)
    }

    /// The bytes that are kept on disk of an operation that has ended, or a little more.
    pub(super) fn kept_of(&self, id: OperationId, outcome: &Outcome) -> u64 {
        match (self.spools.get(&id), outcome) {
            (None, _) => 0,
            // No more than there ever was of it.
            (Some(_), Outcome::Exited(end)) if output_bytes(end) <= SMALL_OUTPUT_BYTES => {
                output_bytes(end)
            }
            (Some(spool), _) => bytes_on_disk(spool),
        }
    }

    /// One more is read from; the one that was opened longest ago makes room.
    fn opened(&mut self, id: OperationId) {
        if self.open.contains(&id) {
            return;
        }
        self.open.push_back(id);
        if self.open.len() > FILES_OPEN
            && let Some(oldest) = self.open.pop_front()
            && let Some(spool) = self.spools.get_mut(&oldest)
        {
            spool.close();
        }
    }
}

impl Output for Files {
    fn read(
        &mut self,
        operation: OperationId,
        stream: OutputStream,
        from: u64,
        max: usize,
    ) -> SpoolPiece {
        if self.downloads.contains(operation) {
            return match self.downloads.read(operation, from, max) {
                None => SpoolPiece::Later,
                Some(Ok(bytes)) if !bytes.is_empty() => SpoolPiece::Bytes(bytes),
                Some(Ok(_)) => SpoolPiece::Nothing,
                Some(Err(error)) => unreadable(operation, &error),
            };
        }
        self.opened(operation);
        let Some(spool) = self.spools.get_mut(&operation) else {
            return SpoolPiece::Nothing;
        };
        match spool.read(stream, from, max) {
            Ok(SpoolRead::Bytes(bytes)) => {
                self.sent.increment(bytes.len() as u64);
                SpoolPiece::Bytes(bytes)
            }
            Ok(SpoolRead::Gap { until }) => SpoolPiece::Gap(until),
            Ok(SpoolRead::Nothing) => SpoolPiece::Nothing,
            Err(error) => unreadable(operation, &error),
        }
    }
}

/// The piece for output that failed to be read. A host that lacks something for a while may have it
/// again. Output that its disk has lost is gone, and becomes a gap.
fn unreadable(operation: OperationId, error: &io::Error) -> SpoolPiece {
    tracing::error!(operation.id = %operation, %error, "failed to read output back");
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::INTR | Errno::AGAIN) => {
            SpoolPiece::Later
        }
        _ => SpoolPiece::Nothing,
    }
}

/// The bytes that are kept on disk; where the host does not tell, the most that may be kept.
pub(super) fn bytes_on_disk(spool: &Spool) -> u64 {
    spool.bytes_on_disk().unwrap_or(2 * SPOOL_BYTES_PER_STREAM)
}

/// The bytes of both streams that there ever were.
fn output_bytes(end: &ExitRecord) -> u64 {
    end.stdout.offset.saturating_add(end.stderr.offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_disk_has_lost_becomes_a_gap() {
        let told = |errno: Errno| unreadable(OperationId::from_u128(1), &errno.into());
        for passes in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            assert_eq!(told(passes), SpoolPiece::Later, "{passes}");
        }
        for lasts in [Errno::IO, Errno::NOENT] {
            assert_eq!(told(lasts), SpoolPiece::Nothing, "{lasts}");
        }
    }
}
