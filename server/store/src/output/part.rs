//! One file of a stream: a row of frames.
//!
//! A frame is offset (8 bytes), length (4), CRC-32 of the bytes (4), little endian, and the bytes.
//! Offsets only grow, a jump is a gap, and a frame that was torn by a crash is cut off when the file
//! is opened.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, BufReader, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use super::page::OutputPage;

/// The bytes that a reader takes from the file at once when it skips frames.
const READ_BYTES: usize = 16 * 1024;

const HEADER_BYTES: usize = 16;

pub(super) struct PartFile {
    pub(super) path: PathBuf,
    /// Open while it is written and not synced.
    file: Option<File>,
    /// Bytes of the file, headers included.
    pub(super) size: u64,
    /// Bytes of output in it.
    pub(super) kept: u64,
    /// The end of the output in it; 0 if there is none.
    pub(super) end: u64,
    is_new: bool,
}

/// Makes the folder of files, for the owner alone.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

impl PartFile {
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
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
        for (offset, data) in WholeFrames(&whole) {
            part.count(offset, data);
        }
        if part.size < whole.len() as u64 {
            OpenOptions::new()
                .write(true)
                .open(&part.path)?
                .set_len(part.size)?;
        }
        // Bytes of an earlier process are synced with the next sync.
        part.file = Some(part.opened()?);
        Ok(part)
    }

    fn opened(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options.open(&self.path)
    }

    /// Appends a frame.
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.opened()?,
        };
        self.is_new |= self.size == 0;
        let header = Header::bytes(offset, data);
        let at = self.size;
        let header_written = file.write_all_at(&header, at);
        let written =
            header_written.and_then(|()| file.write_all_at(data, at + HEADER_BYTES as u64));
        if let Err(error) = written {
            // Back to the size before; a torn frame would be cut off at the next start all the same.
            let _ = file.set_len(self.size);
            return Err(error);
        }
        file.flush()?;
        self.file = Some(file);
        self.count(offset, data);
        Ok(())
    }

    /// Drops everything in it.
    pub(super) fn begin_anew(&mut self) -> io::Result<()> {
        self.opened()?.set_len(0)?;
        (self.size, self.kept) = (0, 0);
        Ok(())
    }

    fn count(&mut self, offset: u64, data: &[u8]) {
        self.size += (HEADER_BYTES + data.len()) as u64;
        self.kept += data.len() as u64;
        self.end = offset + data.len() as u64;
    }

    /// Waits until the disk has it. Returns true if the file was made since the last time.
    pub(super) fn sync(&mut self) -> io::Result<bool> {
        match self.file.take() {
            Some(file) => file.sync_data().map(|()| std::mem::take(&mut self.is_new)),
            None => Ok(false),
        }
    }
}

/// Adds to a page the bytes that it lacks from a file's whole frames. Returns true if the page takes more. Frames
/// before its offset are skipped without being read.
pub(super) fn read(path: &Path, page: &mut OutputPage) -> io::Result<bool> {
    let mut file = BufReader::with_capacity(READ_BYTES, File::open(path)?);
    let mut header = [0; HEADER_BYTES];
    let mut data = Vec::new();
    loop {
        match file.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(true),
            read => read?,
        }
        let Header { offset, len, crc } = Header::of(&header);
        if offset.saturating_add(u64::from(len)) <= page.at() {
            file.seek_relative(len.into())?;
            continue;
        }
        data.clear();
        (&mut file).take(len.into()).read_to_end(&mut data)?;
        if data.len() < len as usize || crc32fast::hash(&data) != crc || len == 0 {
            return Ok(true);
        }
        if !page.take(offset, &data) {
            return Ok(false);
        }
    }
}

struct Header {
    offset: u64,
    len: u32,
    crc: u32,
}

impl Header {
    fn bytes(offset: u64, data: &[u8]) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&(data.len() as u32).to_le_bytes());
        bytes[12..].copy_from_slice(&crc32fast::hash(data).to_le_bytes());
        bytes
    }

    fn of(bytes: &[u8; HEADER_BYTES]) -> Self {
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        Self {
            offset: u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")),
            len: number(&bytes[8..12]),
            crc: number(&bytes[12..]),
        }
    }
}

/// The whole frames at the beginning of a file.
struct WholeFrames<'a>(&'a [u8]);

impl<'a> Iterator for WholeFrames<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (header, rest) = self.0.split_first_chunk()?;
        let Header { offset, len, crc } = Header::of(header);
        let (data, rest) = rest.split_at_checked(len as usize)?;
        let whole = crc32fast::hash(data) == crc && !data.is_empty();
        offset.checked_add(data.len() as u64).filter(|_| whole)?;
        self.0 = rest;
        Some((offset, data))
    }
}
