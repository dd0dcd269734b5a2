//! The reading end of one output stream of an operation (docs/internals/contracts.md#a7, #a8,
//! #a10). It tells new output, repeats and broken promises apart, and when the writer may send
//! more.
//!
//! It holds offsets only, neither bytes nor time, so the same rules run in the server and in
//! simulations. There are three offsets: of the received output, of the output that the reader
//! took, and the limit of the writer. Of the output that was received and not taken, at most a
//! window is bytes; the rest is gaps.

use bytes::{Buf, Bytes};
use shared_types::limits::MAX_NUMBER;

/// The reading end of one output stream.
#[derive(Debug, Clone)]
pub struct StreamReader {
    /// Bytes that the writer may be ahead of the reader.
    window: u64,
    /// The first byte that has not been received.
    next: u64,
    /// The first byte that the reader has not taken.
    taken: u64,
    /// The first byte that the writer may not send yet.
    granted: u64,
}

/// The writer broke the protocol; the link cannot be trusted any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Bytes are missing and no gap says so.
    #[error("output at offset {offset} leaves a hole: {expected} was expected")]
    Hole {
        /// The offset at which the stream had to go on.
        expected: u64,
        /// The offset at which it did.
        offset: u64,
    },
    /// More was sent than the reader has room for.
    #[error("output up to offset {end} goes beyond the credit of {granted}")]
    BeyondCredit {
        /// The first byte after what was sent.
        end: u64,
        /// The first byte that had not been granted.
        granted: u64,
    },
    /// A gap that ends before it begins.
    #[error("a gap from offset {from} to {to} is empty")]
    EmptyGap {
        /// Its begin.
        from: u64,
        /// Its end.
        to: u64,
    },
    /// An offset that no stream can reach.
    #[error("output from offset {offset} ends beyond the largest offset")]
    Overflow {
        /// The offset of the first byte.
        offset: u64,
    },
}

impl StreamReader {
    /// A stream that is read from `from` on. The writer begins with a credit of `window` bytes
    /// (not zero) above it.
    pub fn new(from: u64, window: u64) -> Self {
        Self {
            window,
            next: from,
            taken: from,
            granted: from.saturating_add(window),
        }
    }

    /// The first byte that has not been received.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The first byte that the reader has not taken.
    pub fn taken_up_to(&self) -> u64 {
        self.taken
    }

    /// Bytes arrived that begin at `offset`: returns the part that is new and where it begins,
    /// or nothing where all of it is a repeat.
    ///
    /// # Errors
    /// They leave a hole or go beyond the credit; nothing has changed then.
    pub fn data(
        &mut self,
        offset: u64,
        mut data: Bytes,
    ) -> Result<Option<(u64, Bytes)>, Violation> {
        let end = offset
            .checked_add(data.len() as u64)
            .filter(|end| *end <= MAX_NUMBER)
            .ok_or(Violation::Overflow { offset })?;
        self.without_hole(offset)?;
        if end > self.granted.max(self.next) {
            return Err(Violation::BeyondCredit {
                end,
                granted: self.granted,
            });
        }
        if end <= self.next {
            return Ok(None);
        }
        let begin = self.next;
        // The repeat is shorter than the data, so it fits into a usize.
        data.advance((begin - offset) as usize);
        self.next = end;
        Ok(Some((begin, data)))
    }

    /// The writer does not keep the bytes from `from` up to `to`: returns the part of the gap
    /// that is new, or nothing where these bytes arrived before. A gap needs no credit.
    ///
    /// # Errors
    /// It leaves a hole or is empty; nothing has changed then.
    pub fn gap(&mut self, from: u64, to: u64) -> Result<Option<(u64, u64)>, Violation> {
        if from >= to {
            return Err(Violation::EmptyGap { from, to });
        }
        if to > MAX_NUMBER {
            return Err(Violation::Overflow { offset: from });
        }
        self.without_hole(from)?;
        if to <= self.next {
            return Ok(None);
        }
        let begin = std::mem::replace(&mut self.next, to);
        Ok(Some((begin, to)))
    }

    /// The reader has taken everything below `up_to`: returns the new credit, where it is time to
    /// tell the writer, which is when half the window is used up.
    pub fn taken(&mut self, up_to: u64) -> Option<u64> {
        self.taken = up_to.clamp(self.taken, self.next);
        let room = self.granted.saturating_sub(self.taken);
        let credit = self.taken.saturating_add(self.window);
        if room > self.window / 2 || credit <= self.granted {
            return None;
        }
        self.granted = credit;
        Some(credit)
    }

    /// The stream goes on over a new link: returns the offset to attach at. That is what was
    /// taken, not what was received: the writer's first credit counts from here, and what is
    /// received but not taken has to fit into it as well. Its repeats are dropped.
    pub fn resume(&mut self) -> u64 {
        self.granted = self.taken.saturating_add(self.window);
        self.taken
    }

    fn without_hole(&self, offset: u64) -> Result<(), Violation> {
        if offset > self.next {
            return Err(Violation::Hole {
                expected: self.next,
                offset,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
