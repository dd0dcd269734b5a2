//! The newest output of a stream whose file has no room for it.
//!
//! A file beside the spool, made only where it is needed: a ring, and before it a statement of what
//! in the ring counts. The ring holds twice what is kept, so that new bytes never lie where bytes
//! count already, whenever its writer dies. It becomes part of the spool as soon as there is room,
//! at the latest at the command's end. The supervisor does that, or the process that finds the
//! supervisor dead ([`restore`]).

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::{GapLog, SpoolStream};
use crate::{Directory, Gap, record};

/// Room of one statement of what counts; there are two, written in turn.
const STATEMENT_ROOM: u64 = 256;

/// The offset of the ring in the file.
const RING_AT: u64 = 2 * STATEMENT_ROOM;

/// Bytes that are put into the spool at once.
const PIECE_BYTES: usize = 64 * 1024;

/// The tail of a stream.
#[derive(Debug)]
pub struct Tail {
    file: File,
    counts: RingRange,
    /// The number of statements that were written.
    statements: u64,
}

/// The part of the ring that counts: the last `keep` bytes of those from `start` to `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct RingRange {
    keep: u64,
    /// Offsets of the stream.
    start: u64,
    to: u64,
}

impl Tail {
    /// The name of its file.
    pub fn file_name(stream: SpoolStream) -> &'static str {
        match stream {
            SpoolStream::Out => "out.tail",
            SpoolStream::Err => "err.tail",
        }
    }

    /// Makes one that keeps this many bytes of what follows from `start` on.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn create(path: &Path, keep: u32, start: u64) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(true);
        let counts = RingRange {
            keep: keep.into(),
            start,
            to: start,
        };
        let file = options.mode(0o600).open(path)?;
        Ok(Self {
            file,
            counts,
            statements: 0,
        })
    }

    /// The one that a supervisor has left; `None` where there is none, or nothing in it counts.
    fn left(directory: &Directory, stream: SpoolStream) -> io::Result<Option<Self>> {
        let file = match directory.open_file(Self::file_name(stream)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut counts: Option<RingRange> = None;
        for room in 0..2 {
            let mut bytes = [0; STATEMENT_ROOM as usize];
            let length = file.read_at(&mut bytes, room * STATEMENT_ROOM)?;
            let Some(end) = bytes[..length].iter().position(|byte| *byte == b'\n') else {
                continue;
            };
            let Ok(said) = record::from_line::<RingRange>("tail", &bytes[..end], "tail") else {
                continue;
            };
            let newest = |known: RingRange| (known.to, known.start) < (said.to, said.start);
            if said.start <= said.to && counts.is_none_or(newest) {
                counts = Some(said);
            }
        }
        Ok(counts.map(|counts| Self {
            file,
            counts,
            statements: 0,
        }))
    }

    /// The offset in the stream where the tail begins.
    pub fn from(&self) -> u64 {
        let RingRange { keep, start, to } = self.counts;
        start.max(to.saturating_sub(keep))
    }

    /// The number of its bytes.
    pub fn length(&self) -> u64 {
        self.counts.to - self.from()
    }

    /// Adds what comes next of the stream, and lets go of what is too old.
    ///
    /// # Errors
    /// When the host refuses; what was there before still counts.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let keep = usize::try_from(self.counts.keep).unwrap_or(usize::MAX);
        let newest = &bytes[bytes.len().saturating_sub(keep)..];
        let skipped = (bytes.len() - newest.len()) as u64;
        if skipped > 0 {
            // Nothing of before is kept, and the ring may be needed where it lies.
            let start = self.counts.to + skipped;
            self.count(start, start)?;
        }
        self.at_ring(self.counts.to, newest.len(), |file, at, part| {
            file.write_all_at(&newest[part], at)
        })?;
        self.count(self.counts.start, self.counts.to + newest.len() as u64)
    }

    /// Reads what lies at this offset of the stream, as much as counts and has room.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        if offset < self.from() {
            return Ok(0);
        }
        let there = self.counts.to.saturating_sub(offset);
        let length = bytes
            .len()
            .min(usize::try_from(there).unwrap_or(usize::MAX));
        self.at_ring(offset, length, |file, at, part| {
            file.read_exact_at(&mut bytes[part], at)
        })?;
        Ok(length)
    }

    /// Writes down what counts.
    fn count(&mut self, start: u64, to: u64) -> io::Result<()> {
        let counts = RingRange {
            start,
            to,
            ..self.counts
        };
        let room = self.statements % 2 * STATEMENT_ROOM;
        let line = record::to_line("tail", &counts)?;
        self.file.write_all_at(&line, room)?;
        self.statements += 1;
        self.counts = counts;
        Ok(())
    }

    /// Does something with the part of the ring that this part of the stream is in: in two pieces
    /// where the ring ends in between.
    fn at_ring(
        &self,
        offset: u64,
        length: usize,
        mut act: impl FnMut(&File, u64, std::ops::Range<usize>) -> io::Result<()>,
    ) -> io::Result<()> {
        let ring = self.counts.keep.saturating_mul(2).max(1);
        let at = offset % ring;
        let until_end = usize::try_from(ring - at).unwrap_or(usize::MAX);
        let first = length.min(until_end);
        act(&self.file, RING_AT.saturating_add(at), 0..first)?;
        match first < length {
            true => act(&self.file, RING_AT, first..length),
            false => Ok(()),
        }
    }
}

/// Puts the tail that a dead supervisor has left where it belongs, behind a gap of what lies between;
/// as much as there is room for. Nothing happens where there is none, or it is there already.
///
/// # Errors
/// When the host refuses; it can be tried again.
pub(crate) fn restore(directory: &Directory, stream: SpoolStream) -> io::Result<()> {
    let Some(tail) = Tail::left(directory, stream)? else {
        return Ok(());
    };
    let spool = directory.open_to_write(stream.file_name())?;
    let mut gaps = GapLog::reopen(directory)?;
    let known = gaps.gaps(stream)?.last().map_or(0, Gap::until);
    let mut at = spool.metadata()?.len().max(known);
    if at < tail.from() {
        gaps.add(Gap {
            stream,
            offset: at,
            length: tail.from() - at,
        })?;
        at = tail.from();
    }
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = tail.read(at, &mut piece)?;
        if length == 0 {
            return Ok(());
        }
        match spool.write_all_at(&piece[..length], at) {
            Err(error) if is_full(&error) => return Ok(()),
            written => written?,
        }
        at += length as u64;
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod tests;
