//! One stream: the appended bytes that are not in a file yet, and the offset up to which the disk
//! has it. Its retention decides which files there are: [`Ends`] or [`Segments`].

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{
    KeptOutput, OutputKey, OutputStream, ends::Ends, page::OutputPage, segments::Segments,
};

/// Appended bytes wait until they make a frame of this size, or for the next sync.
const FRAME_BYTES: usize = 64 * 1024;

pub(super) struct StreamFiles {
    files: Files,
    /// Not in a file yet.
    pending: Vec<u8>,
    /// The end of the stream, `pending` included.
    end: u64,
    /// The end of the bytes that the disk holds for certain.
    synced: u64,
}

enum Files {
    Ends(Ends),
    Whole(Segments),
}

impl StreamFiles {
    pub(super) fn open(area: &Path, key: OutputKey) -> io::Result<Self> {
        let (folder, name) = place(area, key);
        let whole = Segments::open(&folder, &name)?;
        let files = match whole {
            Some(segments) => Files::Whole(segments),
            None => Files::Ends(Ends::open(folder, &name)?),
        };
        let end = match &files {
            Files::Ends(ends) => ends.end(),
            Files::Whole(segments) => segments.end(),
        };
        Ok(Self {
            files,
            pending: Vec::new(),
            end,
            // It is not known if an earlier process synced it.
            synced: 0,
        })
    }

    /// True if nothing of it is kept, and it is not to be kept whole.
    pub(super) fn is_untouched(&self) -> bool {
        matches!(self.files, Files::Ends(_)) && self.end == 0
    }

    /// Keeps everything of it here from now on.
    pub(super) fn keep_in(&mut self, segments: Segments) {
        self.files = Files::Whole(segments);
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// True if it has a byte, or is to be kept whole.
    pub(super) fn is_there(&self) -> bool {
        self.end > 0 || matches!(self.files, Files::Whole(_))
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.synced < self.end
    }

    /// The offset up to which the disk has the stream.
    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// Appends bytes at their offset. After an error the stream takes no more until it is opened
    /// again.
    pub(super) fn append(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let end = offset.saturating_add(data.len() as u64);
        if end <= self.end {
            return Ok(());
        }
        let data = match self.end.checked_sub(offset) {
            // A repeat is shorter than the data.
            Some(repeated) => &data[repeated as usize..],
            None if data.is_empty() => {
                self.flush()?;
                self.end = offset;
                data
            }
            None => return Err(io::Error::other("the bytes before it were not kept")),
        };
        for piece in data.chunks(FRAME_BYTES) {
            if self.pending.len() + piece.len() > FRAME_BYTES {
                self.flush()?;
            }
            self.pending.extend_from_slice(piece);
            self.end += piece.len() as u64;
        }
        Ok(())
    }

    /// Makes everything durable, once it is in files. Bytes that the disk did not take are not
    /// counted as part of the stream.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.is_dirty() {
            let synced = match &mut self.files {
                Files::Ends(ends) => ends.sync(),
                Files::Whole(segments) => segments.sync(),
            };
            if let Err(error) = synced {
                self.end = self.synced;
                return Err(error);
            }
            self.synced = self.end;
        }
        Ok(())
    }

    /// Reads the bytes that are in files.
    pub(super) fn read(&self, from: u64, max_bytes: usize) -> io::Result<Option<KeptOutput>> {
        let mut page = OutputPage::new(from, max_bytes);
        match &self.files {
            Files::Ends(ends) => ends.read(&mut page)?,
            Files::Whole(segments) => segments.read(&mut page)?,
        }
        Ok(page.kept())
    }

    /// Puts the pending bytes into a frame. Bytes that cannot be written are not part of the
    /// stream.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let data = std::mem::take(&mut self.pending);
        let offset = self.end - data.len() as u64;
        let written = match &mut self.files {
            Files::Ends(ends) => ends.write(offset, &data),
            Files::Whole(segments) => segments.write(offset, &data),
        };
        written.inspect_err(|_| self.end = offset)
    }
}

/// Removes the files of a stream, which is not open.
pub(super) fn remove(area: &Path, key: OutputKey) -> io::Result<()> {
    let (folder, name) = place(area, key);
    let there = |done: io::Result<()>| match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    };
    Ends::remove(&folder, &name).try_for_each(there)?;
    there(Segments::remove(&folder, &name))
}

/// The folder of a stream's files, and the beginning of their names.
pub(super) fn place(area: &Path, key: OutputKey) -> (PathBuf, String) {
    let kind = match key.stream {
        OutputStream::Stdout => "stdout",
        OutputStream::Stderr => "stderr",
    };
    let folder = area.join(key.tenant.to_string());
    (folder, format!("{}.{kind}", key.operation))
}
