//! The changes of a text that can be taken back.

use crate::compose::pastes::is_mark;
use std::collections::VecDeque;
use unicode_segmentation::UnicodeSegmentation as _;

/// Most changes that can be taken back. Letters of a word that were typed in a row are one change.
const MAX_CHANGES: usize = 1_000;

/// Most bytes of removed text that are kept for it.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// One change of a text.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) at: usize,
    pub(super) removed: String,
    /// Bytes that stand in the place of the removed text.
    pub(super) inserted: usize,
    /// The cursor before the change.
    pub(super) cursor: usize,
}

/// The changes, oldest first.
#[derive(Debug, Default)]
pub(super) struct Undo {
    changes: VecDeque<Change>,
    bytes: usize,
    /// The kind of change that the next one may continue.
    open: Option<Open>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// Letters of a word.
    Word,
    /// Spaces behind a word.
    Spaces,
    /// Clusters that were removed one by one, each before the last.
    Backspace,
}

impl Undo {
    /// Keeps a change that inserted this text.
    pub(super) fn push(&mut self, change: Change, inserted: &str) {
        let kind = kind(&change, inserted);
        self.bytes += change.removed.len();
        let open = std::mem::replace(&mut self.open, kind);
        match self.changes.back_mut() {
            Some(last) if continues(last, &change, open, kind) => {
                last.inserted += change.inserted;
                last.removed.insert_str(0, &change.removed);
                last.at = last.at.min(change.at);
            }
            _ => self.changes.push_back(change),
        }
        while self.changes.len() > MAX_CHANGES || self.bytes > MAX_BYTES {
            let Some(oldest) = self.changes.pop_front() else {
                break;
            };
            self.bytes -= oldest.removed.len();
        }
    }

    /// Takes the last change.
    pub(super) fn pop(&mut self) -> Option<Change> {
        self.open = None;
        let change = self.changes.pop_back()?;
        self.bytes -= change.removed.len();
        Some(change)
    }

    /// Ends a run of changes that are taken back as one.
    pub(super) fn close(&mut self) {
        self.open = None;
    }
}

fn kind(change: &Change, inserted: &str) -> Option<Open> {
    let is_one = |text: &str| {
        text.graphemes(true).nth(1).is_none() && text != "\n" && !text.starts_with(is_mark)
    };
    match (change.removed.as_str(), inserted) {
        ("", " ") => Some(Open::Spaces),
        ("", letter) if is_one(letter) => Some(Open::Word),
        (removed, "") if is_one(removed) => Some(Open::Backspace),
        _ => None,
    }
}

fn continues(last: &Change, change: &Change, open: Option<Open>, kind: Option<Open>) -> bool {
    match (open, kind) {
        (Some(Open::Word), Some(Open::Word | Open::Spaces))
        | (Some(Open::Spaces), Some(Open::Spaces)) => last.at + last.inserted == change.at,
        (Some(Open::Backspace), Some(Open::Backspace)) => {
            change.at + change.removed.len() == last.at
        }
        _ => false,
    }
}
