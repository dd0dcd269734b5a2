//! The offsets of one output stream of an operation, on its way through the server.
//!
//! The stream passes these holders, in this order:
//!
//! 1. The inbox of the operation ([`crate::received::StreamReader`]): the runner may send up to *granted*, and output
//!    up to *next* was received. Output up to *taken* was taken by the operation's task: taken ≤ next.
//! 2. [`OutputProgress`], in the operation's task: what *came*, is *durable*, and is *committed* to the runner.
//! 3. The board, for all readers: what they may read. It follows `came`, once the output was appended to its store.
//! 4. A reader: the offset up to which it has received the stream.
//! 5. A reader of output that is kept nowhere confirms it: that is committed as well.
//!
//! In a [`OutputProgress`] these hold:
//!
//! - `summed` ≤ `begin` ≤ `came`.
//! - `durable` ≤ `committed`: durable output need not be kept by the runner.
//! - `reported` ≤ `committed`: the runner learns it in steps, and again over each new link.
//!
//! None of these ever falls, but for `reported` at a new link. `durable` and `came` begin again, behind the kept
//! output, where output that could not be kept is requested once more; `committed` stays.

use super::checksum::Sum;

/// The fewest newly committed bytes of output that a frame to the runner reports.
pub(super) const COMMIT_EVERY: u64 = 256 * 1024;

/// See the module.
#[derive(Debug)]
pub(super) struct OutputProgress {
    /// The output before this offset was kept from before, and does not come.
    begin: u64,
    /// The kept output that was read and summed.
    summed: u64,
    /// The end of the output that came, gaps included.
    came: u64,
    /// The output that is durable here, as this task has learned.
    durable: u64,
    /// The output that the runner need not keep any more.
    committed: u64,
    /// The part of it that the runner was told over the present link.
    reported: u64,
    /// None once some of the stream is missing.
    sum: Option<Sum>,
}

impl OutputProgress {
    /// The progress of a stream with this many stored bytes.
    pub(super) fn after(kept: u64) -> Self {
        Self {
            begin: kept,
            summed: 0,
            came: kept,
            durable: 0,
            committed: 0,
            reported: 0,
            sum: Some(Sum::default()),
        }
    }

    /// The end of the output that came, gaps included.
    pub(super) fn came(&self) -> u64 {
        self.came
    }

    /// The next bytes came; the inbox gives them in order, without repeats.
    pub(super) fn output(&mut self, offset: u64, data: &[u8]) {
        debug_assert_eq!(offset, self.came, "the inbox leaves no hole");
        self.came = self.came.saturating_add(data.len() as u64);
        if let Some(sum) = &mut self.sum {
            sum.came(data);
        }
    }

    /// The bytes up to this offset never come.
    pub(super) fn gap(&mut self, to: u64) {
        self.came = self.came.max(to);
        self.sum = None;
    }

    /// The offset from which the kept output is still to be summed.
    pub(super) fn unsummed(&self) -> Option<u64> {
        (self.summed < self.begin).then_some(self.summed)
    }

    /// The first bytes that are kept from there on, and their offset; none if there are none.
    pub(super) fn kept(&mut self, kept: Option<(u64, &[u8])>) {
        let (Some(sum), room) = (&mut self.sum, self.begin - self.summed) else {
            return;
        };
        match kept {
            Some((offset, data)) if offset == self.summed && !data.is_empty() => {
                let room = usize::try_from(room).unwrap_or(usize::MAX);
                let data = &data[..data.len().min(room)];
                sum.kept(data);
                self.summed += data.len() as u64;
            }
            _ => self.sum = None,
        }
    }

    /// The checksums; none once some of the stream is missing.
    pub(super) fn sum(&self) -> Option<&Sum> {
        self.sum.as_ref()
    }

    /// The stream ends here. Returns the begin of the bytes that are missing before its end.
    pub(super) fn end(&mut self, at: u64) -> Option<u64> {
        let missing = self.lacks(at).then_some(self.came);
        self.came = self.came.max(at);
        missing
    }

    /// True if output is missing before this end.
    pub(super) fn lacks(&self, end: u64) -> bool {
        self.came < end
    }

    /// The output before this offset is durable. Returns true if that is more than before.
    pub(super) fn durable(&mut self, up_to: u64) -> bool {
        let grows = self.durable < up_to;
        self.durable = self.durable.max(up_to);
        self.commit(up_to);
        grows
    }

    /// The runner need not keep the output before this offset any more.
    pub(super) fn commit(&mut self, up_to: u64) {
        self.committed = self.committed.max(up_to);
    }

    /// Continues the commits of a task before.
    pub(super) fn take_over(&mut self, before: &Self) {
        (self.committed, self.reported) = (before.committed, before.reported);
    }

    /// The operation was requested over a link.
    pub(super) fn attached(&mut self) {
        self.reported = 0;
    }

    /// The offset to report to the runner, if it is time for that.
    pub(super) fn report_due(&mut self) -> Option<u64> {
        if self.committed.saturating_sub(self.reported) < COMMIT_EVERY {
            return None;
        }
        self.reported = self.committed;
        Some(self.committed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_is_requested_again_is_durable_anew_and_stays_committed() {
        let mut before = OutputProgress::after(0);
        before.output(0, b"abcd");
        assert!(before.durable(4) && !before.durable(3));
        let mut again = OutputProgress::after(2);
        again.take_over(&before);
        assert!(again.durable(2), "it is the first that this one learns");
        assert_eq!((again.came, again.committed), (2, 4));
    }

    #[test]
    fn an_end_tells_what_is_missing_once_and_takes_nothing_back() {
        let mut progress = OutputProgress::after(3);
        assert_eq!(progress.end(2), None);
        assert_eq!(progress.end(5), Some(3));
        assert_eq!(progress.end(5), None);
        assert!(!progress.lacks(5) && progress.lacks(6));
    }
}
