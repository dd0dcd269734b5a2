//! The runner's memory of operations on disk: one file that only grows, one record in each line.
//!
//! A line is `CRC32 JSON`, so that a person can read it and damage is noticed; the checksum covers all lines up
//! to this one. The first one is the header, with the journal's id. Once [`Journal::append`] has returned, the
//! record survives the daemon: it was handed to the host in one write. It reaches the disk within
//! [`sync::SYNC_WITHIN`], by a thread of its own. The boot id in the runner's incarnation covers what the host's
//! death takes. A caller that must know that a record is on the disk waits for [`Journal::sync`].
//!
//! A last line without an end was left by a death in the middle of an append, and its record was not promised to
//! any peer: it is cut off. Anything else that cannot be read is no memory to build on. Then the file is set
//! aside, never deleted. A journal with a new id begins with the records before the damage, so that the server
//! knows that the runner may not remember all.
//!
//! Behind the last record [`RESERVE_BYTES`] stay allocated. Only [`Journal::append_end`] uses them, so that on a
//! full disk nothing new begins, but ends are still written down. A file system that cannot allocate in advance
//! (`fallocate(2)`) has no such room.

mod error;
mod file;
mod line;
mod read;
mod sync;

use std::{
    fs::File,
    io::ErrorKind,
    marker::PhantomData,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use shared_types::{Clock, Entropy, JournalId, Timestamp};

pub(crate) use error::JournalError;
use file::failed;
use line::JournalEnd;
use read::Damaged;
pub(crate) use sync::Synced;
use sync::Syncing;

/// Room for ends on a full disk, in bytes: 512 of them at 512 bytes each.
pub(crate) const RESERVE_BYTES: u64 = 256 * 1024;

/// Largest journal, in bytes; beyond it nothing new is remembered until it is compacted.
pub(crate) const MAX_JOURNAL_BYTES: u64 = 64 * 1024 * 1024;

/// Longest line of the file, in bytes, its end included.
pub(crate) const MAX_LINE_BYTES: usize = 1024 * 1024;

/// Damaged journals that are kept; with one more the runner does not start.
pub(crate) const MAX_DAMAGED: usize = 8;

/// Smallest journal that is worth compacting, in bytes.
pub(crate) const COMPACT_FROM: u64 = 1024 * 1024;

/// Size at which a journal is compacted at the latest, in bytes: while there is still room for the longest line.
const COMPACT_BY: u64 = MAX_JOURNAL_BYTES - RESERVE_BYTES - MAX_LINE_BYTES as u64;

/// The fewest bytes that are appended between two compactions, so that a compaction that saves nothing is not
/// done with every line.
const COMPACT_STEP: u64 = RESERVE_BYTES / 4;

/// Longest line that is written without a look whether there is room, in bytes: a shorter one in its place would
/// need as much.
const SMALL_END_BYTES: u64 = 1024;

/// The number of bytes that are allocated at a time.
const CHUNK_BYTES: u64 = 1024 * 1024;

/// Format of the file.
const FORMAT: u32 = 1;

/// The journal, open for appending; `R` is what a line says.
#[derive(Debug)]
pub(crate) struct Journal<R> {
    folder: PathBuf,
    header: Header,
    file: File,
    /// Behind the last record.
    end: JournalEnd,
    /// The size up to which there is room, in bytes; without a bound where the file system allocates nothing in
    /// advance.
    allocated: u64,
    /// From this size on compacting is worth it, in bytes.
    compact_at: u64,
    /// The reason why it is not to be trusted any more.
    broken: Option<String>,
    syncing: Syncing,
    records: PhantomData<fn(R) -> R>,
}

/// A journal as it was found.
#[derive(Debug)]
pub(crate) struct OpenedJournal<R> {
    pub(crate) journal: Journal<R>,
    pub(crate) id: JournalId,
    /// The records that it remembers, oldest first.
    pub(crate) records: Vec<R>,
    /// The repair before it could be used; for the caller to log.
    pub(crate) repaired: Option<Repair>,
}

/// The repair of a journal before it could be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Repair {
    /// The start of an append that was never finished was cut off.
    Cut {
        /// The number of bytes that were cut off.
        bytes: u64,
    },
    /// It was damaged. It is kept, and this is a new journal that knows what stood before the
    /// damage.
    SetAside {
        /// The path where it is now.
        kept: PathBuf,
        /// The damage.
        damage: String,
    },
}

/// The first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Header {
    format: u32,
    journal: JournalId,
    created: Timestamp,
}

impl<R: Serialize + DeserializeOwned> Journal<R> {
    /// Opens the journal in `folder`; both are made where they are missing. No other process may use the folder
    /// at the same time.
    pub(crate) fn open(
        folder: &Path,
        clock: &dyn Clock,
        entropy: &dyn Entropy,
    ) -> Result<OpenedJournal<R>, JournalError> {
        file::make_folder(folder)?;
        let path = folder.join(file::NAME);
        let begin = |records: Vec<R>, repaired| {
            let header = Header {
                format: FORMAT,
                journal: JournalId::generate(clock, entropy),
                created: clock.now(),
            };
            let journal = Self::begin(folder, header, records.iter())?;
            Ok(OpenedJournal {
                id: journal.header.journal,
                journal,
                records,
                repaired,
            })
        };
        let file = match File::options().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return begin(Vec::new(), None),
            Err(error) => return Err(failed("open", &path)(error)),
        };
        let contents = match read::read(&file).map_err(failed("read", &path))? {
            Ok(contents) => contents,
            Err(Damaged { before, damage }) => {
                let kept = file::set_aside(folder)?;
                return begin(before, Some(Repair::SetAside { kept, damage }));
            }
        };
        let repaired = (contents.torn > 0).then_some(Repair::Cut {
            bytes: contents.torn,
        });
        if repaired.is_some() {
            file.set_len(contents.end.bytes)
                .map_err(failed("repair", &path))?;
        }
        let mut journal = Self::over(folder, contents.header, file, contents.end)?;
        // On a disk that is full already, what is remembered is still of use.
        let _ = journal.make_room(journal.end.bytes + RESERVE_BYTES);
        Ok(OpenedJournal {
            id: journal.header.journal,
            journal,
            records: contents.records,
            repaired,
        })
    }

    /// Remembers something new, all of it or nothing; it survives this process when this returns.
    /// With no room but the reserve left it is refused.
    pub(crate) fn append(&mut self, records: &[R]) -> Result<(), JournalError> {
        self.usable()?;
        let (lines, end) = self.lines(records)?;
        let reserved = end.bytes + RESERVE_BYTES;
        if reserved > MAX_JOURNAL_BYTES {
            return Err(JournalError::TooLarge);
        }
        self.make_room(reserved)?;
        self.write(&lines, end)
    }

    /// Like [`Journal::append`], for what must not be forgotten on a full disk: it may use the
    /// reserve.
    pub(crate) fn append_end(&mut self, records: &[R]) -> Result<(), JournalError> {
        self.usable()?;
        let (lines, end) = self.lines(records)?;
        if end.bytes > MAX_JOURNAL_BYTES {
            return Err(JournalError::TooLarge);
        }
        // Without more room there is still the reserve, and writing shows whether it is enough.
        let _ = self.make_room(end.bytes + RESERVE_BYTES);
        self.write(&lines, end)
    }

    /// Checks that [`Journal::append_end`] has room for this; a short record may always be tried.
    pub(crate) fn has_room_for_end(&mut self, record: &R) -> Result<(), JournalError> {
        let mut end = self.end;
        end.write(record)?;
        if end.bytes - self.end.bytes <= SMALL_END_BYTES {
            return Ok(());
        }
        if end.bytes > MAX_JOURNAL_BYTES {
            return Err(JournalError::TooLarge);
        }
        self.make_room(end.bytes)
    }

    /// Asks that everything appended so far reaches the disk at once, and tells when it has.
    /// Several that ask together wait for the same write to the disk.
    pub(crate) fn sync(&self) -> Synced {
        self.syncing.ask()
    }

    /// True if so much was appended since the last compaction that another one is worth it.
    pub(crate) fn wants_compaction(&self) -> bool {
        self.end.bytes >= self.compact_at
    }

    /// Puts a journal into place that remembers only what `live` says. A death at any moment
    /// leaves the old one or the new one, and after a failure the old one is still in use.
    pub(crate) fn compact(&mut self, live: impl Iterator<Item = R>) -> Result<(), JournalError> {
        self.usable()?;
        let (file, end) =
            file::write_beside(&self.folder, &self.header, live).inspect_err(|_| {
                // Trying again with every append would make a full disk slow as well.
                self.compact_at = compact_at(self.end.bytes, self.end.bytes + COMPACT_FROM);
            })?;
        let swapped = file::put_in_place(&self.folder)
            .and_then(|()| file.try_clone())
            .map(|synced| self.syncing.replace(synced));
        if let Err(error) = swapped {
            let path = self.folder.join(file::NAME);
            self.broken = Some(format!("it could not be replaced ({error})"));
            return Err(failed("replace", &path)(error));
        }
        self.file = file;
        self.end = end;
        self.allocated = end.bytes;
        let _ = self.make_room(end.bytes + RESERVE_BYTES);
        self.compact_at = compact_at(end.bytes, COMPACT_FROM.max(end.bytes * 2));
        Ok(())
    }

    /// Puts a journal with this id into place that remembers only what `live` says: what this one
    /// says is not what happened.
    pub(crate) fn begin_anew(
        &mut self,
        id: JournalId,
        clock: &dyn Clock,
        live: impl Iterator<Item = R>,
    ) -> Result<(), JournalError> {
        let header = Header {
            format: FORMAT,
            journal: id,
            created: clock.now(),
        };
        *self = Self::begin(&self.folder, header, live)?;
        Ok(())
    }

    fn begin(
        folder: &Path,
        header: Header,
        records: impl Iterator<Item: Serialize>,
    ) -> Result<Self, JournalError> {
        let (file, end) = file::write_beside(folder, &header, records)?;
        file::put_in_place(folder).map_err(failed("create", &folder.join(file::NAME)))?;
        let mut journal = Self::over(folder, header, file, end)?;
        let _ = journal.make_room(end.bytes + RESERVE_BYTES);
        Ok(journal)
    }

    fn over(
        folder: &Path,
        header: Header,
        file: File,
        end: JournalEnd,
    ) -> Result<Self, JournalError> {
        let syncing = file.try_clone().and_then(Syncing::start);
        Ok(Self {
            syncing: syncing.map_err(failed("sync", &folder.join(file::NAME)))?,
            folder: folder.to_owned(),
            header,
            file,
            end,
            allocated: end.bytes,
            compact_at: COMPACT_FROM,
            broken: None,
            records: PhantomData,
        })
    }

    /// After a failure that leaves open what the file holds, nothing may rely on it.
    fn usable(&self) -> Result<(), JournalError> {
        let reason = self.broken.clone().or_else(|| self.syncing.failure());
        match reason {
            Some(reason) => Err(JournalError::Broken(reason)),
            None => Ok(()),
        }
    }

    /// Sees to it that the file has room until `until`.
    fn make_room(&mut self, until: u64) -> Result<(), JournalError> {
        if until <= self.allocated {
            return Ok(());
        }
        let generous = file::allocate(&self.file, self.allocated, until + CHUNK_BYTES);
        let allocated = generous.or_else(|_| file::allocate(&self.file, self.allocated, until));
        self.allocated = allocated.map_err(failed("write", &self.folder.join(file::NAME)))?;
        Ok(())
    }

    /// The records as the next lines, and where the journal ends behind them.
    fn lines(&self, records: &[R]) -> Result<(Vec<u8>, JournalEnd), JournalError> {
        let (mut lines, mut end) = (Vec::new(), self.end);
        for record in records {
            lines.append(&mut end.write(record)?);
        }
        Ok((lines, end))
    }

    fn write(&mut self, lines: &[u8], end: JournalEnd) -> Result<(), JournalError> {
        let before = self.end.bytes;
        if let Err(error) = self.file.write_all_at(lines, before) {
            if let Err(second) = self.file.set_len(before) {
                self.broken = Some(format!(
                    "a record could neither be written ({error}) nor taken back ({second})"
                ));
            }
            // Cutting the file has given all of its room away.
            self.allocated = before;
            let _ = self.make_room(before + RESERVE_BYTES);
            return Err(failed("write", &self.folder.join(file::NAME))(error));
        }
        self.end = end;
        self.syncing.appended(lines.len());
        Ok(())
    }
}

/// The size at which a journal of `bytes` is compacted, which is worth it at `wanted`.
fn compact_at(bytes: u64, wanted: u64) -> u64 {
    wanted.min(COMPACT_BY).max(bytes + COMPACT_STEP)
}

#[cfg(test)]
mod tests;
