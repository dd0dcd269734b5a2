//! The files of one stream: its head, and two for its tail of which the older is begun anew when
//! the newer is full.
//!
//! Each is a row of frames: offset (8 bytes), length (4), CRC-32 of the bytes (4), little endian,
//! and the bytes. Offsets only grow, a jump is a gap, and a frame that was torn by a crash is cut
//! off when the file is opened.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use super::{KeptOutput, OutputKey, OutputKind};

/// At least so many bytes of a stream's head and as many of its tail are kept.
pub const OUTPUT_KEPT_BYTES: u64 = 1024 * 1024;

/// What is appended waits here until it makes a frame of this size, or for the next sync.
const FRAME_BYTES: usize = 64 * 1024;

const HEADER_BYTES: usize = 16;

pub(super) struct StreamFiles {
    folder: PathBuf,
    head: Part,
    tails: [Part; 2],
    /// Which of the tails is written.
    newer: usize,
    /// Not in a file yet.
    pending: Vec<u8>,
    /// Where the stream ends, `pending` included.
    end: u64,
    /// What the disk holds for certain.
    synced: u64,
    /// Why nothing more is taken.
    broken: Option<(io::ErrorKind, String)>,
}

struct Part {
    path: PathBuf,
    /// Open while it is written and not synced.
    file: Option<File>,
    /// Bytes of the file, headers included.
    size: u64,
    /// Bytes of output in it.
    kept: u64,
    /// Where the output in it ends.
    end: u64,
    is_new: bool,
}

pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

impl StreamFiles {
    pub(super) fn open(area: &Path, key: OutputKey) -> io::Result<Self> {
        let folder = area.join(key.tenant.to_string());
        let kind = match key.kind {
            OutputKind::Stdout => "stdout",
            OutputKind::Stderr => "stderr",
        };
        let part = |part: &str| {
            let name = format!("{}.{kind}.{part}", key.operation);
            Part::open(folder.join(name))
        };
        let (head, tails) = (part("head")?, [part("tail0")?, part("tail1")?]);
        let newer = usize::from(tails[1].end > tails[0].end);
        let end = head.end.max(tails[newer].end);
        Ok(Self {
            folder,
            head,
            tails,
            newer,
            pending: Vec::new(),
            end,
            // Whether an earlier process synced it is not known.
            synced: 0,
            broken: None,
        })
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.broken.is_none() && self.synced < self.end
    }

    /// Whether letting go of it would forget something.
    pub(super) fn is_needed(&self) -> bool {
        self.is_dirty() || self.broken.is_some()
    }

    /// How far the disk has the stream.
    pub(super) fn synced(&self) -> io::Result<u64> {
        match &self.broken {
            Some((kind, why)) => Err(io::Error::new(*kind, why.clone())),
            None => Ok(self.synced),
        }
    }

    pub(super) fn append(&mut self, offset: u64, data: &[u8]) {
        let end = offset.saturating_add(data.len() as u64);
        if self.broken.is_some() || end <= self.end {
            return;
        }
        let data = match self.end.checked_sub(offset) {
            // A repeat is shorter than the data.
            Some(repeated) => &data[repeated as usize..],
            None => {
                self.flush();
                self.end = offset;
                data
            }
        };
        for piece in data.chunks(FRAME_BYTES) {
            if self.pending.len() + piece.len() > FRAME_BYTES {
                self.flush();
            }
            self.pending.extend_from_slice(piece);
            self.end += piece.len() as u64;
        }
    }

    /// Makes everything so far durable, or the stream broken.
    pub(super) fn sync(&mut self) {
        self.flush();
        if self.broken.is_some() {
            return;
        }
        match self.sync_files() {
            Ok(()) => self.synced = self.end,
            Err(error) => self.give_up(&error),
        }
    }

    pub(super) fn read(&mut self, from: u64, max_bytes: usize) -> io::Result<Option<KeptOutput>> {
        self.flush();
        let parts = [
            &self.head,
            &self.tails[1 - self.newer],
            &self.tails[self.newer],
        ];
        let mut kept: Option<KeptOutput> = None;
        for part in parts.into_iter().filter(|part| part.end > from) {
            let whole = part.read()?;
            for (offset, data) in Frames(&whole) {
                let at = kept.as_ref().map_or(from, KeptOutput::end);
                let end = offset + data.len() as u64;
                if end <= at {
                    continue;
                }
                let skip = at.saturating_sub(offset) as usize;
                let begin = offset.max(at);
                let kept = kept.get_or_insert_with(|| KeptOutput {
                    offset: begin,
                    data: Vec::new(),
                });
                let room = max_bytes - kept.data.len();
                if begin != kept.end() || room == 0 {
                    return Ok(Some(std::mem::take(kept)));
                }
                let data = &data[skip..];
                kept.data.extend_from_slice(&data[..data.len().min(room)]);
            }
        }
        Ok(kept)
    }

    /// Puts what waits into a frame. What cannot be written is not part of the stream.
    fn flush(&mut self) {
        if self.pending.is_empty() || self.broken.is_some() {
            return;
        }
        let data = std::mem::take(&mut self.pending);
        let offset = self.end - data.len() as u64;
        if let Err(error) = self.write(offset, &data) {
            self.end = offset;
            self.give_up(&error);
        }
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        make_folder(&self.folder)?;
        if self.tails[self.newer].kept >= OUTPUT_KEPT_BYTES {
            self.newer = 1 - self.newer;
            self.tails[self.newer].begin_anew()?;
        }
        let in_head = self.head.kept < OUTPUT_KEPT_BYTES && self.tails[self.newer].size == 0;
        let part = match in_head {
            true => &mut self.head,
            false => &mut self.tails[self.newer],
        };
        part.write(offset, data)
    }

    fn sync_files(&mut self) -> io::Result<()> {
        let mut made = false;
        for part in [&mut self.head].into_iter().chain(&mut self.tails) {
            if let Some(file) = part.file.take() {
                file.sync_data()?;
                made |= std::mem::take(&mut part.is_new);
            }
        }
        if made {
            File::open(&self.folder)?.sync_all()?;
        }
        Ok(())
    }

    fn give_up(&mut self, error: &io::Error) {
        self.broken = Some((error.kind(), error.to_string()));
    }
}

impl Part {
    fn open(path: PathBuf) -> io::Result<Self> {
        let mut part = Self {
            path,
            file: None,
            size: 0,
            kept: 0,
            end: 0,
            is_new: false,
        };
        let whole = match std::fs::read(&part.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(part),
            whole => whole?,
        };
        for (offset, data) in Frames(&whole) {
            part.count(offset, data);
        }
        if part.size < whole.len() as u64 {
            OpenOptions::new()
                .write(true)
                .open(&part.path)?
                .set_len(part.size)?;
        }
        // What an earlier process wrote is synced with the next sync.
        part.file = Some(part.opened()?);
        Ok(part)
    }

    fn opened(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options.open(&self.path)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.opened()?,
        };
        self.is_new |= self.size == 0;
        let mut frame = Vec::with_capacity(HEADER_BYTES + data.len());
        frame.extend_from_slice(&offset.to_le_bytes());
        frame.extend_from_slice(&(data.len() as u32).to_le_bytes());
        frame.extend_from_slice(&crc32fast::hash(data).to_le_bytes());
        frame.extend_from_slice(data);
        if let Err(error) = file.write_all_at(&frame, self.size) {
            // As it was; a torn frame would be cut off at the next start all the same.
            let _ = file.set_len(self.size);
            return Err(error);
        }
        file.flush()?;
        self.file = Some(file);
        self.count(offset, data);
        Ok(())
    }

    fn begin_anew(&mut self) -> io::Result<()> {
        self.opened()?.set_len(0)?;
        (self.size, self.kept) = (0, 0);
        Ok(())
    }

    fn count(&mut self, offset: u64, data: &[u8]) {
        self.size += (HEADER_BYTES + data.len()) as u64;
        self.kept += data.len() as u64;
        self.end = offset + data.len() as u64;
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let mut whole = vec![0; self.size as usize];
        File::open(&self.path)?.read_exact_at(&mut whole, 0)?;
        Ok(whole)
    }
}

impl KeptOutput {
    /// The first offset after it.
    pub fn end(&self) -> u64 {
        self.offset + self.data.len() as u64
    }
}

/// The whole frames at the beginning of a file.
struct Frames<'a>(&'a [u8]);

impl<'a> Iterator for Frames<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (header, rest) = self.0.split_at_checked(HEADER_BYTES)?;
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let offset = u64::from_le_bytes(header[..8].try_into().expect("eight bytes"));
        let (data, rest) = rest.split_at_checked(number(&header[8..12]) as usize)?;
        let whole = crc32fast::hash(data) == number(&header[12..]) && !data.is_empty();
        offset.checked_add(data.len() as u64).filter(|_| whole)?;
        self.0 = rest;
        Some((offset, data))
    }
}
