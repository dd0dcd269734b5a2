//! What the server keeps of output, held to what the operations wrote; and what the runner need not keep any
//! more.

use shared_sandbox::{ExitRecord, Outcome, OutputStream, Retention};
use shared_types::{OperationId, limits::RETAINED_TAIL_BYTES};

use super::{
    host::{HEAD_BYTES, bytes_at},
    plan::retention,
    world::World,
};

/// Both streams.
pub(crate) const STREAMS: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

impl World {
    fn retention_of(&self, id: OperationId) -> Retention {
        retention(&self.operations[&id].request)
    }

    /// The runner need not keep a stream below this offset.
    pub(crate) fn commit_to_host(&mut self, id: OperationId, stream: OutputStream, up_to: u64) {
        let durable = self.store.area().kept_of(id, stream).end();
        let confirmed = self.confirmed.get(&(id, stream)).copied().unwrap_or(0);
        let enough = durable.max(confirmed);
        assert!(
            up_to <= enough,
            "{id}: {stream} is given up to {up_to}, and {enough} bytes are needed no more"
        );
        if self.runner.host.commit(id, stream, up_to) {
            self.checks.tally.count("evicted");
            if !self.is_read(id) {
                self.checks.tally.count("evicted unread");
            }
        }
    }

    /// The runner is about to forget an operation: its end is stored, and its output durable.
    pub(crate) fn check_forgotten(&self, id: OperationId) {
        let intent = self.store.rows().intent(id);
        let outcome = intent.and_then(|intent| intent.outcome);
        let outcome =
            outcome.unwrap_or_else(|| panic!("{id} is forgotten before its end is stored"));
        let Outcome::Exited(record) = outcome else {
            return;
        };
        if self.lost_memory.contains(&id) || self.retention_of(id) == Retention::None {
            return;
        }
        for (stream, end) in ends(&record) {
            let durable = self.store.area().kept_of(id, stream).end();
            assert_eq!(
                durable, end,
                "{id} is forgotten before its {stream} is durable"
            );
        }
    }

    /// What is kept is what was written, all of it, but for what the runner has left out.
    pub(crate) fn check_kept(&self) {
        for id in self.operations.keys() {
            let intent = self.store.rows().intent(*id);
            let outcome = intent.and_then(|intent| intent.outcome);
            let Some(Outcome::Exited(record)) = outcome else {
                continue;
            };
            for (stream, end) in ends(&record) {
                self.check_stream(*id, stream, end);
            }
        }
    }

    fn check_stream(&self, id: OperationId, stream: OutputStream, written: u64) {
        let kept = self.store.area().kept_of(id, stream);
        let mut end = 0;
        for (offset, data) in &kept.pieces {
            assert!(end <= *offset, "{id}: {stream} is kept twice at {offset}");
            let expected = bytes_at(id, stream, *offset, data.len());
            assert!(data == expected, "{id}: other bytes of {stream} are kept");
            self.check_gap(id, stream, (end, *offset), written);
            end = offset + data.len() as u64;
        }
        self.check_gap(id, stream, (end, written), written);
        assert!(
            end <= written,
            "{id}: more of {stream} is kept than was written"
        );
    }

    fn check_gap(
        &self,
        id: OperationId,
        stream: OutputStream,
        (from, to): (u64, u64),
        written: u64,
    ) {
        let tail = written.saturating_sub(RETAINED_TAIL_BYTES as u64);
        let left_out = match self.retention_of(id) {
            Retention::All => false,
            Retention::None => true,
            Retention::Bounded => from >= HEAD_BYTES && to <= tail,
        };
        let is_there = from == to || left_out || self.lost_memory.contains(&id);
        assert!(
            is_there,
            "{id}: {stream} is not kept from {from} to {to} of {written}"
        );
    }
}

fn ends(record: &ExitRecord) -> [(OutputStream, u64); 2] {
    let ends = [record.stdout.offset, record.stderr.offset];
    [0, 1].map(|stream: usize| (STREAMS[stream], ends[stream]))
}
