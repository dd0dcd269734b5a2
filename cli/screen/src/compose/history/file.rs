//! The file of a history.

use super::{MAX_ENTRIES, MAX_ENTRY_BYTES, MAX_HISTORY_BYTES};
use crate::compose::pastes::normal;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::{Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;

/// Bytes and lines of a file from which on it is compacted.
const COMPACT_BYTES: u64 = 2 * MAX_HISTORY_BYTES as u64;
const COMPACT_LINES: usize = 2 * MAX_ENTRIES;

/// Most bytes of the end of a file that are read. JSON may need more bytes than a message has.
const MAX_READ_BYTES: u64 = 2 * COMPACT_BYTES;

/// Times that a lock is tried on a file that another terminal has just replaced.
const MAX_TRIES: usize = 4;

/// One line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    text: String,
}

/// A file of JSON lines.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
}

/// The state of a file: device, inode and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
        }
    }
}

impl File {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The state of the file now; `None` if it is missing or is no regular file.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let metadata = std::fs::metadata(&self.path).ok()?;
        metadata.is_file().then(|| Stamp::of(&metadata))
    }

    /// The newest messages, oldest first. Lines that cannot be understood are skipped.
    pub(super) fn read(&self) -> Option<VecDeque<String>> {
        let mut options = OpenOptions::new();
        let mut file = self.open(options.read(true)).ok()?;
        content(&mut file).ok().map(|content| messages(&content))
    }

    /// Appends messages. An error means that none may have been written.
    pub(super) fn append(&self, messages: &[String]) -> io::Result<()> {
        let mut file = self.lock()?;
        let length = file.metadata()?.len();
        let mut lines = Vec::new();
        if length > 0 {
            // A write that a full disk cut short left a line without its end.
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != [b'\n'] {
                lines.push(b'\n');
            }
        }
        for text in messages {
            push_line(&mut lines, text)?;
        }
        if let Err(error) = file.write_all(&lines) {
            // Best effort: the next write repairs a half line too.
            let _ = file.set_len(length);
            return Err(error);
        }
        // The messages are safe; a file that stays long is compacted another time.
        let _ = self.compact(&mut file);
        Ok(())
    }

    /// Opens the file to append and locks it. Another terminal that holds the lock is not waited for.
    fn lock(&self) -> io::Result<std::fs::File> {
        for _ in 0..MAX_TRIES {
            let mut options = OpenOptions::new();
            options.read(true).append(true).create(true).mode(0o600);
            let file = self.open(&mut options)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            let metadata = file.metadata()?;
            // The file may have been replaced before it was locked.
            if self.stamp() == Some(Stamp::of(&metadata)) {
                if metadata.mode() & 0o077 != 0 {
                    file.set_permissions(Permissions::from_mode(0o600))?;
                }
                return Ok(file);
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    fn open(&self, options: &mut OpenOptions) -> io::Result<std::fs::File> {
        // A pipe in the place of the file must not stop the program.
        let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
        let file = options.custom_flags(nonblocking).open(&self.path)?;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Replaces a long file, which is locked, by one with the newest messages.
    fn compact(&self, file: &mut std::fs::File) -> io::Result<()> {
        let length = file.metadata()?.len();
        // A short line is `{"text":"x"}`.
        if length < (COMPACT_LINES * 13) as u64 {
            return Ok(());
        }
        let content = content(file)?;
        let lines = content.iter().filter(|&&byte| byte == b'\n').count();
        if length <= COMPACT_BYTES && lines <= COMPACT_LINES {
            return Ok(());
        }
        let mut kept = Vec::new();
        for text in &messages(&content) {
            push_line(&mut kept, text)?;
        }
        // A link stays a link, and its target is replaced.
        let target = std::fs::canonicalize(&self.path)?;
        let mut name = target.clone().into_os_string();
        name.push(".new");
        let new = PathBuf::from(name);
        // Only the holder of the lock gets here, so that a file of this name is left over.
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let written = options
            .open(&new)
            .and_then(|mut file| file.write_all(&kept))
            .and_then(|()| std::fs::rename(&new, &target));
        if written.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        written
    }
}

/// The end of the file, as far as it is read.
fn content(file: &mut std::fs::File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_READ_BYTES)))?;
    let mut content = Vec::new();
    file.take(MAX_READ_BYTES).read_to_end(&mut content)?;
    Ok(content)
}

/// The newest messages within the bounds, oldest first.
fn messages(content: &[u8]) -> VecDeque<String> {
    let mut messages = VecDeque::new();
    let mut bytes = 0;
    // The first line may have been cut; it is not valid JSON then.
    for line in content.split(|&byte| byte == b'\n').rev() {
        let Ok(entry) = serde_json::from_slice::<Entry>(line) else {
            continue;
        };
        let Some(text) = normal(&entry.text, MAX_ENTRY_BYTES) else {
            continue;
        };
        bytes += text.len();
        if messages.len() == MAX_ENTRIES || bytes > MAX_HISTORY_BYTES {
            break;
        }
        messages.push_front(text);
    }
    messages
}

fn push_line(lines: &mut Vec<u8>, text: &str) -> io::Result<()> {
    let text = text.to_owned();
    serde_json::to_writer(&mut *lines, &Entry { text })?;
    lines.push(b'\n');
    Ok(())
}
