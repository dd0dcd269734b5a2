//! The messages that were sent before, kept across runs in a file that several terminals share.
//!
//! Each line of the file is one message as JSON. A terminal appends under an exclusive lock (flock(2)); a file
//! that has grown to twice its bound is replaced by one with the newest messages. Nothing here fails: a message
//! that cannot be written is kept in memory, and is written with the next one.

use std::collections::VecDeque;
use std::path::PathBuf;

mod file;

use file::{File, Stamp};

/// Most messages that are kept.
pub const MAX_ENTRIES: usize = 1_000;

/// Longest message that is kept, in bytes.
pub const MAX_ENTRY_BYTES: usize = 64 * 1024;

/// Most bytes of messages that are kept in all.
pub const MAX_HISTORY_BYTES: usize = 1024 * 1024;

/// The messages that were sent before, oldest first.
#[derive(Debug, Default)]
pub struct History {
    file: Option<File>,
    entries: VecDeque<String>,
    bytes: usize,
    /// Messages that could not be written yet. They are among the entries too.
    unwritten: Vec<String>,
    /// The file as it was last read or written by this terminal.
    seen: Option<Stamp>,
}

impl History {
    /// A history that ends with the program.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// A history in a file of JSON lines, which is made (mode 0600) with the first message. A file that cannot
    /// be read or written is not an error: messages are then kept in memory.
    pub fn at(path: PathBuf) -> Self {
        let mut history = Self::default();
        history.file = Some(File::new(path));
        history.refresh();
        history
    }

    /// Keeps a message, unless it is blank, begins with a space, is longer than [`MAX_ENTRY_BYTES`], or is the
    /// newest one already.
    pub(super) fn add(&mut self, text: &str) {
        let is_kept = text.len() <= MAX_ENTRY_BYTES
            && !text.starts_with(' ')
            && !text.trim().is_empty()
            && self.entries.back().is_none_or(|newest| newest != text);
        if !is_kept {
            return;
        }
        self.push(text.to_owned());
        if self.file.is_some() {
            self.unwritten.push(text.to_owned());
            let surplus = self.unwritten.len().saturating_sub(MAX_ENTRIES);
            self.unwritten.drain(..surplus);
            self.write();
        }
    }

    /// Takes up messages of other terminals.
    pub(super) fn refresh(&mut self) {
        let Some(file) = &self.file else {
            return;
        };
        let stamp = file.stamp();
        if stamp.is_none() || stamp == self.seen {
            return;
        }
        let Some(messages) = file.read() else {
            return;
        };
        self.seen = stamp;
        self.entries.clear();
        self.bytes = 0;
        let unwritten = self.unwritten.clone();
        for text in messages.into_iter().chain(unwritten) {
            self.push(text);
        }
    }

    /// The number of messages.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A message, 0 for the oldest.
    pub(super) fn entry(&self, index: usize) -> Option<&str> {
        self.entries.get(index).map(String::as_str)
    }

    fn push(&mut self, text: String) {
        self.bytes += text.len();
        self.entries.push_back(text);
        while self.entries.len() > MAX_ENTRIES || self.bytes > MAX_HISTORY_BYTES {
            let oldest = self.entries.pop_front();
            self.bytes -= oldest.map_or(0, |oldest| oldest.len());
        }
    }

    fn write(&mut self) {
        let Some(file) = &self.file else {
            return;
        };
        let before = file.stamp();
        if file.append(&self.unwritten).is_err() {
            return;
        }
        self.unwritten.clear();
        // Another terminal may have written the file meanwhile.
        if before == self.seen {
            self.seen = file.stamp();
        }
    }
}

impl Drop for History {
    fn drop(&mut self) {
        if !self.unwritten.is_empty() {
            self.write();
        }
    }
}

#[cfg(test)]
mod tests;
