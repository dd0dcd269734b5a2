//! The text of a draft with a cursor that stands between grapheme clusters.

use super::pastes::is_mark;
use std::cell::Cell;
use std::ops::Range;
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation as _};

mod undo;

use undo::{Change, Undo};

/// The part of a text that may differ from an earlier text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Changed {
    /// Bytes at the beginning that are as before.
    pub(super) head: usize,
    /// Bytes at the end that are as before.
    pub(super) tail: usize,
}

/// The kinds of clusters that make up words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Space,
    Word,
    Punctuation,
    Paste,
}

/// Text and cursor.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    text: String,
    cursor: usize,
    undo: Undo,
    changed: Cell<Option<Changed>>,
}

impl Buffer {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The cursor, in bytes.
    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Moves the cursor to the nearest place between clusters that is not before `at`.
    pub(super) fn go(&mut self, at: usize) {
        self.cursor = self.snapped(at);
        self.undo.close();
    }

    /// Replaces all text and forgets what could be undone.
    pub(super) fn reset(&mut self, text: String, cursor: usize) {
        self.text = text;
        self.undo = Undo::default();
        self.changed.set(Some(Changed { head: 0, tail: 0 }));
        self.go(cursor);
    }

    /// Replaces a part of the text; the cursor stands behind the new part.
    pub(super) fn replace(&mut self, range: Range<usize>, with: &str) {
        let change = Change {
            at: range.start,
            removed: self.text[range.clone()].to_owned(),
            inserted: with.len(),
            cursor: self.cursor,
        };
        self.splice(range, with);
        self.undo.push(change, with);
    }

    /// Takes the last change back. Gives false if there is none.
    pub(super) fn undo(&mut self) -> bool {
        let Some(change) = self.undo.pop() else {
            return false;
        };
        self.splice(change.at..change.at + change.inserted, &change.removed);
        self.cursor = self.snapped(change.cursor);
        true
    }

    /// The part that changed since the last call.
    pub(super) fn take_changed(&self) -> Option<Changed> {
        self.changed.take()
    }

    fn splice(&mut self, range: Range<usize>, with: &str) {
        let now = Changed {
            head: range.start,
            tail: self.text.len() - range.end,
        };
        let before = self.changed.get().unwrap_or(now);
        self.changed.set(Some(Changed {
            head: now.head.min(before.head),
            tail: now.tail.min(before.tail),
        }));
        let end = range.start + with.len();
        self.text.replace_range(range, with);
        self.cursor = self.snapped(end);
    }

    fn snapped(&self, at: usize) -> usize {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at += 1;
        }
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        match cursor.is_boundary(&self.text, 0) {
            Ok(false) => self.next(at),
            _ => at,
        }
    }

    /// The end of the cluster that begins at `at`, or the end of the text.
    pub(super) fn next(&self, at: usize) -> usize {
        GraphemeCursor::new(at, self.text.len(), true)
            .next_boundary(&self.text, 0)
            .ok()
            .flatten()
            .unwrap_or(self.text.len())
    }

    /// The beginning of the cluster that ends at `at`, or 0.
    pub(super) fn previous(&self, at: usize) -> usize {
        GraphemeCursor::new(at, self.text.len(), true)
            .prev_boundary(&self.text, 0)
            .ok()
            .flatten()
            .unwrap_or(0)
    }

    /// The beginning of the line (up to a newline) with this place.
    pub(super) fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The end of the line (before its newline) with this place.
    pub(super) fn line_end(&self, at: usize) -> usize {
        self.text[at..]
            .find('\n')
            .map_or(self.text.len(), |newline| at + newline)
    }

    /// The class of the cluster that begins at `at`; a space at the end of the text.
    pub(super) fn class(&self, at: usize) -> Class {
        self.text[at..].chars().next().map_or(Class::Space, class)
    }

    /// The first place from `at` on whose cluster is not one of these classes.
    pub(super) fn skip(&self, at: usize, classes: &[Class]) -> usize {
        self.text[at..]
            .grapheme_indices(true)
            .find(|&(_, cluster)| !is_one_of(cluster, classes))
            .map_or(self.text.len(), |(offset, _)| at + offset)
    }

    /// The last place up to `at` before which the cluster is not one of these classes.
    pub(super) fn skip_back(&self, at: usize, classes: &[Class]) -> usize {
        self.text[..at]
            .grapheme_indices(true)
            .rev()
            .find(|&(_, cluster)| !is_one_of(cluster, classes))
            .map_or(0, |(offset, cluster)| offset + cluster.len())
    }
}

fn is_one_of(cluster: &str, classes: &[Class]) -> bool {
    let class = cluster.chars().next().map_or(Class::Space, class);
    classes.contains(&class)
}

fn class(letter: char) -> Class {
    match letter {
        letter if letter.is_whitespace() => Class::Space,
        letter if letter.is_alphanumeric() || letter == '_' => Class::Word,
        letter if is_mark(letter) => Class::Paste,
        _ => Class::Punctuation,
    }
}

#[cfg(test)]
mod tests;
