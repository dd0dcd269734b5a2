//! A command's output on disk, and how it is read.
//!
//! A file's offset is the stream's offset. Output that was dropped or evicted is a hole, and `gaps`
//! names each hole. A gap is written there before the bytes behind it appear, and an eviction
//! before the hole is made. So a reader that looks at the bytes first and at `gaps` second never
//! takes a hole for output. The newest bytes for which the file has no room wait beside it (see
//! `tail`).

mod tail;

use std::{fs::File, io, os::unix::fs::FileExt};

use rustix::buffer::spare_capacity;
use serde::{Deserialize, Serialize};

use crate::{Directory, record};
pub use tail::Tail;
pub(crate) use tail::restore;

/// Most gaps of one operation: what the room that is made in advance holds.
const MAX_GAPS: usize = 30;

/// Room of the evictions in `gaps`, in bytes: one line for each stream, written over.
const EVICTED_ROOM: u64 = 128;

/// The offset of the first gap in `gaps`.
const GAPS_AT: u64 = 2 * EVICTED_ROOM;

/// Room of one line in `gaps`, padded, so that all lie where they are expected.
const GAP_ROOM: u64 = 128;

/// An output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpoolStream {
    /// stdout, both merged, or the terminal.
    Out,
    /// stderr.
    Err,
}

impl SpoolStream {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Out, Self::Err];

    /// The name of its file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Out => "out",
            Self::Err => "err",
        }
    }

    /// Its place in lists of both.
    pub fn index(self) -> usize {
        match self {
            Self::Out => 0,
            Self::Err => 1,
        }
    }
}

/// Bytes that the command wrote and that were not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The stream.
    pub stream: SpoolStream,
    /// The offset of the first missing byte.
    pub offset: u64,
    /// The number of missing bytes.
    pub length: u64,
}

impl Gap {
    /// The offset where the output goes on.
    pub(crate) fn until(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

/// The file `gaps`.
#[derive(Debug)]
pub struct GapLog {
    file: File,
    gaps: usize,
    evicts: bool,
}

impl GapLog {
    /// Makes it, with room for all that it will ever hold.
    ///
    /// # Errors
    /// When the host refuses, or the disk is full.
    pub fn create(directory: &Directory) -> io::Result<Self> {
        let file = directory.create_file("gaps")?;
        record::make_room(&file)?;
        Ok(Self {
            file,
            gaps: 0,
            evicts: false,
        })
    }

    /// Opens the one that a dead supervisor has left, to go on with it.
    pub(crate) fn reopen(directory: &Directory) -> io::Result<Self> {
        let mut log = Self {
            file: directory.open_to_write("gaps")?,
            gaps: 0,
            evicts: false,
        };
        log.gaps = SpoolStream::ALL.into_iter().try_fold(0, |gaps, stream| {
            Ok::<_, io::Error>(gaps + log.gaps(stream)?.len())
        })?;
        Ok(log)
    }

    /// Opens the one of an operation.
    ///
    /// # Errors
    /// When it is not there.
    pub fn open(directory: &Directory) -> io::Result<Self> {
        let file = directory.open_file("gaps")?;
        Ok(Self {
            file,
            gaps: 0,
            evicts: false,
        })
    }

    /// Forgets all gaps, because the output that they are missing from is cleared away.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn clear(&mut self) -> io::Result<()> {
        if self.gaps > 0 || self.evicts {
            // In room of its own: written over, the old ones could come back with a host's death.
            self.file.set_len(0)?;
            record::make_room(&self.file)?;
            self.gaps = 0;
            self.evicts = false;
        }
        Ok(())
    }

    /// True if there is room for one gap more, besides one of each stream that lasts to its end.
    pub fn has_room(&self) -> bool {
        self.gaps + SpoolStream::ALL.len() < MAX_GAPS
    }

    /// Records a gap.
    ///
    /// # Errors
    /// When the host refuses; then nothing behind it may be written.
    pub fn add(&mut self, gap: Gap) -> io::Result<()> {
        let line = record::to_line("gap", &gap)?;
        self.file
            .write_all_at(&line, GAPS_AT + self.gaps as u64 * GAP_ROOM)?;
        self.gaps += 1;
        Ok(())
    }

    /// Records that a stream is evicted up to `offset`.
    ///
    /// # Errors
    /// When the host refuses; then nothing may be evicted.
    pub fn evict(&mut self, stream: SpoolStream, offset: u64) -> io::Result<()> {
        self.evicts = true;
        let gap = Gap {
            stream,
            offset: 0,
            length: offset,
        };
        let line = record::to_line("evicted", &gap)?;
        self.file
            .write_all_at(&line, stream.index() as u64 * EVICTED_ROOM)
    }

    /// Up to where a stream is evicted.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn evicted(&self, stream: SpoolStream) -> io::Result<u64> {
        let gap = self.line("evicted", stream.index() as u64 * EVICTED_ROOM)?;
        Ok(gap.map_or(0, |gap| gap.length))
    }

    /// The gaps of a stream, in order.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn gaps(&self, stream: SpoolStream) -> io::Result<Vec<Gap>> {
        let mut gaps = Vec::new();
        for index in 0..MAX_GAPS as u64 {
            match self.line("gap", GAPS_AT + index * GAP_ROOM)? {
                Some(gap) if gap.stream == stream => gaps.push(gap),
                Some(_) => {}
                None => break,
            }
        }
        Ok(gaps)
    }

    /// Up to where a stream is evicted, and its gaps. Mostly there are none, and one look tells.
    fn missing(&self, stream: SpoolStream) -> io::Result<(u64, Vec<Gap>)> {
        let mut bytes = [0; (GAPS_AT + GAP_ROOM) as usize];
        let length = self.file.read_at(&mut bytes, 0)?;
        let mut lines = bytes[..length].chunks(GAP_ROOM as usize);
        let evicted = lines.nth(stream.index());
        let evicted = evicted.and_then(|line| parsed("evicted", line));
        let any = bytes[GAPS_AT as usize..].contains(&b'\n');
        let gaps = if any { self.gaps(stream)? } else { Vec::new() };
        Ok((evicted.map_or(0, |gap| gap.length), gaps))
    }

    fn line(&self, kind: &str, at: u64) -> io::Result<Option<Gap>> {
        let mut bytes = [0; GAP_ROOM as usize];
        let length = self.file.read_at(&mut bytes, at)?;
        Ok(parsed(kind, &bytes[..length]))
    }
}

/// The record in this room; a torn one is none.
fn parsed(kind: &str, room: &[u8]) -> Option<Gap> {
    let end = room.iter().position(|byte| *byte == b'\n')?;
    record::from_line(kind, &room[..end], "gaps").ok()
}

/// Reads one stream of an operation, while it is written or later.
#[derive(Debug)]
pub struct SpoolReader {
    file: File,
    gaps: GapLog,
    stream: SpoolStream,
}

/// The thing at an offset of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpoolPiece {
    /// So many bytes were read.
    Bytes(usize),
    /// Bytes were not kept; go on at this offset.
    Gap {
        /// The offset where the output goes on.
        until: u64,
    },
    /// Bytes were committed and evicted; go on at this offset.
    Evicted {
        /// The offset where the output goes on.
        until: u64,
    },
    /// Nothing yet, or nothing any more: the exit record's offset tells which.
    Nothing,
}

impl SpoolReader {
    /// A reader of this stream.
    ///
    /// # Errors
    /// When there is no spool.
    pub fn open(directory: &Directory, stream: SpoolStream) -> io::Result<Self> {
        Ok(Self {
            file: directory.open_file(stream.file_name())?,
            gaps: GapLog::open(directory)?,
            stream,
        })
    }

    /// Reads from `offset` on, at most until the next gap.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<SpoolPiece> {
        let read = self.file.read_at(bytes, offset)?;
        self.found(offset, read)
    }

    /// The same, behind what `bytes` holds, into all the room that it has. Cheaper than
    /// [`Self::read`], which takes room that was filled already.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn append_to(&self, bytes: &mut Vec<u8>, offset: u64) -> io::Result<SpoolPiece> {
        let before = bytes.len();
        let read = match bytes.capacity() - before {
            0 => 0,
            _ => rustix::io::pread(&self.file, spare_capacity(bytes), offset)?,
        };
        let found = self.found(offset, read);
        let kept = match found {
            Ok(SpoolPiece::Bytes(length)) => length,
            _ => 0,
        };
        bytes.truncate(before + kept);
        found
    }

    /// Interprets a read of so many bytes at `offset`.
    fn found(&self, offset: u64, read: usize) -> io::Result<SpoolPiece> {
        let (evicted, gaps) = self.gaps.missing(self.stream)?;
        if offset < evicted {
            return Ok(SpoolPiece::Evicted { until: evicted });
        }
        let end = offset.saturating_add(read as u64);
        for gap in gaps {
            let until = gap.until();
            if gap.offset <= offset && offset < until {
                return Ok(SpoolPiece::Gap { until });
            }
            if gap.offset > offset && gap.offset < end {
                let before = usize::try_from(gap.offset - offset).unwrap_or(read);
                return Ok(SpoolPiece::Bytes(before.min(read)));
            }
        }
        Ok(match read {
            0 => SpoolPiece::Nothing,
            read => SpoolPiece::Bytes(read),
        })
    }

    /// The length of the stream on disk now, holes included.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// True if all bytes from 0 to the end are there.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn is_whole(&self) -> io::Result<bool> {
        Ok(self.gaps.evicted(self.stream)? == 0 && self.gaps.gaps(self.stream)?.is_empty())
    }
}

#[cfg(test)]
mod tests;
