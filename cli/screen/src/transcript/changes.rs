//! The changes of files in a session: what its edits and writes did.

use std::{collections::VecDeque, sync::Arc};

use super::{item::Call, request::Request};

/// The most changes that are kept.
pub const MOST_CHANGES: usize = 2000;

/// The most text of changes that is kept, in bytes.
pub const MOST_CHANGED_BYTES: usize = 16 << 20;

/// The changes of a session, the oldest first; the oldest are dropped at a bound.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    changes: VecDeque<Change>,
    bytes: usize,
    dropped: u64,
}

/// One change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path, as the call named it.
    pub path: String,
    /// The deed.
    pub deed: Deed,
}

/// The way in which a call changed a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// A text was replaced.
    Edited {
        /// The text before.
        old: Arc<str>,
        /// The text after.
        new: Arc<str>,
        /// True if every occurrence was meant.
        every: bool,
        /// The line of the file at which the text began, from 1; absent if it is not known.
        line: Option<usize>,
    },
    /// The file was written.
    Written {
        /// The content.
        content: Arc<str>,
        /// True if there was no such file before.
        is_new: bool,
    },
}

/// The changes of one file, the oldest first.
#[derive(Debug, Clone)]
pub struct FileChanges<'a> {
    /// The path.
    pub path: &'a str,
    /// Its changes.
    pub changes: Vec<&'a Change>,
}

impl Changes {
    /// Takes the change of a call that ended well, if it is one.
    pub(super) fn take(&mut self, call: &Call) {
        if !call.ended_well() {
            return;
        }
        let change = match &call.request {
            Request::Edit {
                path,
                old,
                new,
                every,
            } => Change {
                path: path.clone(),
                deed: Deed::Edited {
                    old: old.clone(),
                    new: new.clone(),
                    every: *every,
                    line: call.edited_line(),
                },
            },
            Request::Write { path, content } if !call.changed_nothing() => Change {
                path: path.clone(),
                deed: Deed::Written {
                    content: content.clone(),
                    is_new: call.made_file(),
                },
            },
            _ => return,
        };
        self.bytes += change.bytes();
        self.changes.push_back(change);
        while self.changes.len() > MOST_CHANGES
            || (self.bytes > MOST_CHANGED_BYTES && self.changes.len() > 1)
        {
            let Some(gone) = self.changes.pop_front() else {
                return;
            };
            self.bytes = self.bytes.saturating_sub(gone.bytes());
            self.dropped += 1;
        }
    }

    /// The number of older changes that are not kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// True if no file was changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The changes by file, in the order of their first changes.
    pub fn by_file(&self) -> Vec<FileChanges<'_>> {
        let mut places = std::collections::BTreeMap::new();
        let mut files: Vec<FileChanges<'_>> = Vec::new();
        for change in &self.changes {
            let path = change.path.strip_prefix("./").unwrap_or(&change.path);
            let place = *places.entry(path).or_insert(files.len());
            match files.get_mut(place) {
                Some(file) => file.changes.push(change),
                None => files.push(FileChanges {
                    path,
                    changes: vec![change],
                }),
            }
        }
        files
    }
}

impl Change {
    fn bytes(&self) -> usize {
        match &self.deed {
            Deed::Edited { old, new, .. } => old.len() + new.len(),
            Deed::Written { content, .. } => content.len(),
        }
    }
}

impl Call {
    /// The line at which it edited a file, from 1, as its result says.
    pub fn edited_line(&self) -> Option<usize> {
        let (_, line) = self.result.trim_end().rsplit_once(" at line ")?;
        line.parse().ok()
    }

    /// True if it wrote a file that was not there.
    pub fn made_file(&self) -> bool {
        self.result.starts_with("made ")
    }

    /// True if it wrote what the file had already.
    pub fn changed_nothing(&self) -> bool {
        self.result.ends_with("already; nothing changed")
    }
}
