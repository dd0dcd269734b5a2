//! Retention `all`: a stream in as many segments as it takes, in a folder of their own.
//!
//! A segment's name is the offset at which it begins. A full one is synced before the next is begun. So only the last
//! can be torn, and only that one is checked when the stream is opened. The folder is durable before the first byte. It
//! tells a later writer, which may not know the request, that everything is to be kept.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use super::{
    page::OutputPage,
    part::{self, PartFile, make_folder},
};

/// A segment that holds so much is full.
const SEGMENT_BYTES: u64 = 4 * 1024 * 1024;

pub(super) struct Segments {
    folder: PathBuf,
    /// The offset at which each begins.
    starts: Vec<u64>,
    /// The one that is written.
    last: Option<PartFile>,
}

impl Segments {
    /// The segments of a stream that is kept whole; none for another stream.
    pub(super) fn open(streams: &Path, name: &str) -> io::Result<Option<Self>> {
        let folder = folder(streams, name);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries?,
        };
        let mut starts = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            starts.extend(
                name.to_str()
                    .and_then(|name| u64::from_str_radix(name, 16).ok()),
            );
        }
        starts.sort_unstable();
        let last = starts
            .last()
            .map(|start| PartFile::open(segment(&folder, *start)));
        Ok(Some(Self {
            last: last.transpose()?,
            folder,
            starts,
        }))
    }

    /// Removes all of them.
    pub(super) fn remove(streams: &Path, name: &str) -> io::Result<()> {
        fs::remove_dir_all(folder(streams, name))
    }

    /// Begins them; durable once the folder of the streams is synced.
    pub(super) fn make(streams: &Path, name: &str) -> io::Result<Self> {
        let folder = folder(streams, name);
        make_folder(&folder)?;
        Ok(Self {
            folder,
            starts: Vec::new(),
            last: None,
        })
    }

    pub(super) fn end(&self) -> u64 {
        let start = self.starts.last().copied().unwrap_or(0);
        self.last.as_ref().map_or(start, |last| last.end.max(start))
    }

    pub(super) fn read(&self, page: &mut OutputPage) -> io::Result<()> {
        let begun = self.starts.partition_point(|start| *start <= page.at());
        for start in &self.starts[begun.saturating_sub(1)..] {
            if !part::read(&segment(&self.folder, *start), page)? {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let full = |last: &PartFile| last.kept >= SEGMENT_BYTES;
        if self.last.as_ref().is_none_or(full) {
            self.sync()?;
            self.last = Some(PartFile::open(segment(&self.folder, offset))?);
            self.starts.push(offset);
        }
        let last = self.last.as_mut().expect("one is open");
        last.write(offset, data)
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        let made = self.last.as_mut().map_or(Ok(false), PartFile::sync)?;
        if made {
            File::open(&self.folder)?.sync_all()?;
        }
        Ok(())
    }
}

fn folder(streams: &Path, name: &str) -> PathBuf {
    streams.join(format!("{name}.all"))
}

/// Fixed width, so that names sort as their offsets do.
fn segment(folder: &Path, start: u64) -> PathBuf {
    folder.join(format!("{start:016x}"))
}
