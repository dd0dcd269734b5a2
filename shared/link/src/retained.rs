//! The writing end of an output stream: what a runner keeps of it (contract A8, retention `bounded`).
//!
//! A command is never slowed down by whoever reads it, and the memory for its output is bounded:
//! the first bytes and the last bytes stay, what lies between is dropped as it grows. Readers name
//! the offset where they stand, within the credit that they gave, and learn of each gap before the
//! bytes after it. Every reader gets an exact prefix of the stream, apart from those gaps.

use std::collections::VecDeque;

use bytes::Bytes;
use shared_types::limits::{RETAINED_HEAD_BYTES, RETAINED_TAIL_BYTES};

/// The most that one stream keeps, in bytes.
pub const MAX_RETAINED_BYTES: usize = RETAINED_HEAD_BYTES + RETAINED_TAIL_BYTES;

/// One output stream's bounded memory. Offsets count from 0.
#[derive(Debug, Clone)]
pub struct Retained {
    head_bytes: usize,
    tail_bytes: usize,
    head: Vec<u8>,
    /// The last bytes of the stream that are not in `head`.
    tail: VecDeque<u8>,
    end: u64,
    checksum: crc32fast::Hasher,
}

/// What a reader is to be told next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Bytes at their place.
    Chunk {
        /// Where the bytes stand: always where the reader asked.
        offset: u64,
        /// At least one byte, at most as many as were asked for, never beyond the credit.
        data: Bytes,
    },
    /// Bytes that are not kept any more; the stream goes on at `to`, which may lie beyond the credit.
    Gap {
        /// The first byte that is missing: where the reader asked.
        from: u64,
        /// The first byte after the gap.
        to: u64,
    },
    /// Nothing, until more is appended or more credit is given.
    Nothing,
}

impl Retained {
    /// An empty stream that will keep [`RETAINED_HEAD_BYTES`] and [`RETAINED_TAIL_BYTES`].
    pub fn new() -> Self {
        Self::with_bounds(RETAINED_HEAD_BYTES, RETAINED_TAIL_BYTES)
    }

    /// An empty stream that will keep this many bytes of its head and of its tail.
    pub fn with_bounds(head_bytes: usize, tail_bytes: usize) -> Self {
        Self {
            head_bytes,
            tail_bytes,
            head: Vec::new(),
            tail: VecDeque::new(),
            end: 0,
            checksum: crc32fast::Hasher::new(),
        }
    }

    /// Adds bytes at the end; drops what lies between head and tail where they do not fit.
    pub fn append(&mut self, data: &[u8]) {
        self.checksum.update(data);
        self.end += data.len() as u64;
        let into_head = data.len().min(self.head_bytes - self.head.len());
        let (first, rest) = data.split_at(into_head);
        let (length, capacity) = (self.head.len(), self.head.capacity());
        self.head
            .reserve_exact(room(length, capacity, first.len(), self.head_bytes));
        self.head.extend_from_slice(first);

        let kept = &rest[rest.len().saturating_sub(self.tail_bytes)..];
        let dropped = (self.tail.len() + kept.len()).saturating_sub(self.tail_bytes);
        self.tail.drain(..dropped);
        let (length, capacity) = (self.tail.len(), self.tail.capacity());
        self.tail
            .reserve_exact(room(length, capacity, kept.len(), self.tail_bytes));
        self.tail.extend(kept);
    }

    /// What a reader who has everything below `from` gets next, given that it has room for output
    /// below `credit_up_to`; at most `max_chunk` bytes of it.
    ///
    /// A gap is told only to a reader that has credit left: until then it may still grow, and a
    /// reader should learn of one gap rather than of many.
    pub fn next(&self, from: u64, credit_up_to: u64, max_chunk: usize) -> Next {
        let up_to = credit_up_to.min(self.end);
        if from >= up_to {
            return Next::Nothing;
        }
        let wanted = usize::try_from(up_to - from)
            .unwrap_or(usize::MAX)
            .min(max_chunk);
        let data = if let Some(rest) = tail_of(&self.head, from) {
            Bytes::copy_from_slice(&rest[..wanted.min(rest.len())])
        } else {
            let tail_from = self.end - self.tail.len() as u64;
            if from < tail_from {
                let to = tail_from;
                return Next::Gap { from, to };
            }
            // Below `end`, so it fits into the tail's length.
            self.piece_of_tail((from - tail_from) as usize, wanted)
        };
        Next::Chunk { offset: from, data }
    }

    /// How many bytes the stream has had so far: the offset of the next one.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// CRC-32 (IEEE) of everything so far, of dropped bytes too.
    pub fn checksum(&self) -> u32 {
        self.checksum.clone().finalize()
    }

    /// The memory that is held, in bytes.
    pub fn retained_bytes(&self) -> usize {
        self.head.capacity() + self.tail.capacity()
    }

    fn piece_of_tail(&self, place: usize, wanted: usize) -> Bytes {
        let (front, back) = self.tail.as_slices();
        let rest = match front.get(place..) {
            Some(rest) if !rest.is_empty() => rest,
            _ => &back[place - front.len()..],
        };
        Bytes::copy_from_slice(&rest[..wanted.min(rest.len())])
    }
}

impl Default for Retained {
    fn default() -> Self {
        Self::new()
    }
}

/// The bytes of `head` from this offset, where there are any.
fn tail_of(head: &[u8], from: u64) -> Option<&[u8]> {
    head.get(usize::try_from(from).ok()?..)
        .filter(|rest| !rest.is_empty())
}

/// How much to reserve for `more` bytes, so that capacity doubles but never passes the bound.
fn room(length: usize, capacity: usize, more: usize, bound: usize) -> usize {
    let needed = length + more;
    if needed <= capacity {
        return more;
    }
    needed.max(capacity * 2).min(bound) - length
}

#[cfg(test)]
mod tests;
