//! Archives of many small files: made and read in memory, because each is small.

use std::{
    collections::HashMap,
    io,
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use shared_api::OperationEnd;
use shared_client::{Controls, Piece};
use shared_program::files::{self, State};
use shared_types::{FileDigest, limits::MAX_ARCHIVE_BYTES};

use super::{
    copying::{Copying, Data, check},
    local::{self, ALGORITHM, CHANGED, MODE, Part, Preserved},
};

/// Bytes that are handed over at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Attempts to read a file that changes, before it is left out.
const ATTEMPTS: usize = 3;

/// An archive that is being made.
pub(super) struct Packing {
    builder: tar::Builder<Vec<u8>>,
    preserves: bool,
}

impl Packing {
    pub(super) fn new(copying: &Copying) -> Self {
        Self {
            builder: tar::Builder::new(Vec::new()),
            preserves: copying.preserves(),
        }
    }

    pub(super) fn directory(&mut self, path: &str, mode: u32) -> io::Result<()> {
        let mut header = header(tar::EntryType::Directory, mode);
        self.builder.append_data(&mut header, path, io::empty())
    }

    pub(super) fn link(&mut self, path: &str, to: &str) -> io::Result<()> {
        let mut header = header(tar::EntryType::Symlink, MODE);
        self.builder.append_link(&mut header, path, to)
    }

    /// Adds the file `from`; its size.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or keeps changing.
    pub(super) fn file(&mut self, path: &str, from: &Path) -> anyhow::Result<u64> {
        for _ in 0..ATTEMPTS {
            let (mut file, before) = local::open_itself(from)?;
            if !before.is_file() {
                bail!("it is no regular file any more");
            }
            let mut content = Vec::with_capacity(usize::try_from(before.len()).unwrap_or(0));
            (&mut file)
                .take(MAX_ARCHIVE_BYTES + 1)
                .read_to_end(&mut content)?;
            if content.len() as u64 > MAX_ARCHIVE_BYTES {
                bail!("it does not end within {MAX_ARCHIVE_BYTES} bytes");
            }
            let now = State::from(&file.metadata()?);
            let read = content.len() as u64;
            let Some(bytes) = files::settled(State::from(&before), now, read) else {
                continue;
            };
            content.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
            let mut header = header(tar::EntryType::Regular, before.mode() & MODE);
            header.set_size(bytes);
            if self.preserves {
                header.set_mtime(u64::try_from(before.mtime()).unwrap_or(0));
            }
            self.builder
                .append_data(&mut header, path, content.as_slice())?;
            return Ok(bytes);
        }
        bail!(CHANGED);
    }

    pub(super) fn finish(self) -> io::Result<Packed> {
        let bytes = self.builder.into_inner()?;
        let digest = ALGORITHM.of(&bytes);
        Ok(Packed {
            bytes: bytes.into(),
            digest,
            at: 0,
        })
    }
}

fn header(kind: tar::EntryType, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode & MODE);
    header.set_size(0);
    header.set_mtime(0);
    header
}

/// An archive that is sent.
pub(super) struct Packed {
    pub(super) bytes: Bytes,
    pub(super) digest: FileDigest,
    at: usize,
}

impl Data for Packed {
    fn go_to(&mut self, offset: u64) -> anyhow::Result<()> {
        self.at = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.bytes.len());
        Ok(())
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        self.go_to(0)
    }

    async fn send(&mut self, controls: &Controls) -> anyhow::Result<std::convert::Infallible> {
        while self.at < self.bytes.len() {
            let Some(room) = controls.room().await else {
                break;
            };
            let end = self.bytes.len().min(self.at + PIECE_BYTES);
            room.fill(Piece {
                at: Some(self.at as u64),
                data: self.bytes.slice(self.at..end),
                end: end == self.bytes.len(),
            });
            self.at = end;
        }
        std::future::pending().await
    }
}

/// An archive that is received.
#[derive(Default)]
pub(super) struct Unpacking(Vec<u8>);

impl Data for Unpacking {
    fn begin(&mut self) -> anyhow::Result<()> {
        self.0.clear();
        Ok(())
    }

    fn receive(&mut self, data: &[u8]) -> anyhow::Result<u64> {
        // Each entry has a head and is filled up, and a long name has an entry of its own.
        if (self.0.len() + data.len()) as u64 > 2 * MAX_ARCHIVE_BYTES {
            bail!("the runner sends more than was asked for");
        }
        self.0.extend_from_slice(data);
        Ok(self.0.len() as u64)
    }
}

impl Unpacking {
    /// Writes the files that were asked for, whose permissions are known, into a folder.
    pub(super) fn finish(
        self,
        copying: &Copying,
        end: &OperationEnd,
        folder: &Path,
        mut asked: HashMap<String, u32>,
    ) -> anyhow::Result<()> {
        check(end, ALGORITHM.of(&self.0), self.0.len() as u64)?;
        let mut archive = tar::Archive::new(self.0.as_slice());
        for entry in archive.entries().context("failed to read what came")? {
            let mut entry = entry.context("failed to read what came")?;
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let Some(mode) = asked.remove(&path) else {
                bail!("the runner sends what was not asked for: {path:?}");
            };
            // A sparse one could be larger than all that came.
            if !entry.header().entry_type().is_file() {
                bail!("the runner sends what is no regular file: {path:?}");
            }
            let preserved = copying.preserves().then(|| preserved(mode, entry.header()));
            let part = Part::create_in(folder, &path, mode);
            let part = part.map(|part| part.preserving(preserved));
            match write(copying, &mut entry, part) {
                Ok(bytes) => copying.progress(|progress| {
                    progress.bytes(bytes);
                    progress.files(1);
                }),
                Err(error) if super::copying::is_fatal(&error) => return Err(error),
                Err(error) => copying.failed(&path, &format!("{error:#}")),
            }
        }
        if let OperationEnd::Done { skipped, .. } = end {
            for skipped in skipped {
                if asked.remove(&skipped.path).is_some() {
                    copying.failed(&skipped.path, &skipped.words);
                }
            }
        }
        for path in asked.keys() {
            copying.failed(path, "the runner does not say why");
        }
        Ok(())
    }
}

fn preserved(mode: u32, header: &tar::Header) -> Preserved {
    let seconds = header.mtime().unwrap_or(0);
    Preserved {
        mode,
        modified_at: UNIX_EPOCH + Duration::from_secs(seconds),
    }
}

fn write(
    copying: &Copying,
    entry: &mut impl io::Read,
    part: anyhow::Result<Part>,
) -> anyhow::Result<u64> {
    let mut part = part?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match entry.read(&mut piece).context("failed to read what came")? {
            0 => break,
            read => part.write(&piece[..read])?,
        }
    }
    let bytes = part.bytes;
    if let Some(lost) = part.finish()? {
        copying.note(&lost);
    }
    Ok(bytes)
}
