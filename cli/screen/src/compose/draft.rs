//! A draft: its text, its pastes, and the text that was cut last.

use super::MAX_DRAFT;
use super::buffer::Buffer;
use super::pastes::Pastes;
use std::ops::Range;

/// The effect of a key on a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// The key has no meaning here.
    Unused,
    /// The cursor may have moved, or the mode has changed.
    Moved,
    /// The text may have changed.
    Edited,
    /// The text would have been longer than [`MAX_DRAFT`]; it is unchanged.
    Full,
    /// The cursor moves so many rows down, or up if negative.
    Rows(isize),
}

/// The direction from the cursor in which text is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Toward {
    Start,
    End,
}

/// The text that was cut last.
#[derive(Debug, Default)]
pub(super) struct Cut {
    pub(super) text: String,
    /// True for whole lines. Only vi cuts those.
    pub(super) is_lines: bool,
}

/// Text, pastes and the text that was cut last.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) buffer: Buffer,
    pub(super) pastes: Pastes,
    pub(super) cut: Cut,
    /// True if the key before this one cut text.
    was_cutting: bool,
    is_cutting: bool,
}

impl Draft {
    /// Begins the next key.
    pub(super) fn begin_key(&mut self) {
        self.was_cutting = std::mem::take(&mut self.is_cutting);
    }

    /// The text with its pastes.
    pub(super) fn whole(&self) -> String {
        self.pastes.expand(self.buffer.text())
    }

    /// Replaces everything. Text that was cut can still be inserted.
    pub(super) fn reset(&mut self, text: String) {
        self.cut.text = self.pastes.expand(&self.cut.text);
        self.pastes.clear();
        let end = text.len();
        self.buffer.reset(text, end);
    }

    /// Inserts text at the cursor.
    pub(super) fn insert(&mut self, text: &str) -> Effect {
        let at = self.buffer.cursor();
        self.replace(at..at, text)
    }

    /// Replaces a part, unless the draft would be too long.
    pub(super) fn replace(&mut self, range: Range<usize>, with: &str) -> Effect {
        let added = self.pastes.length(with);
        let kept = self.pastes.length(self.buffer.text())
            - self.pastes.length(&self.buffer.text()[range.clone()]);
        if added > 0 && kept + added > MAX_DRAFT {
            return Effect::Full;
        }
        self.buffer.replace(range, with);
        Effect::Edited
    }

    /// Removes a part.
    pub(super) fn remove(&mut self, range: Range<usize>) -> Effect {
        if !range.is_empty() {
            self.buffer.replace(range, "");
        }
        Effect::Edited
    }

    /// Keeps a part as the text that was cut last.
    pub(super) fn copy(&mut self, range: Range<usize>, is_lines: bool) {
        self.cut = Cut {
            text: self.buffer.text()[range].to_owned(),
            is_lines,
        };
    }

    /// Cuts the text between the cursor and another place. Parts that are cut in a row are one text.
    pub(super) fn cut_to(&mut self, other: usize, toward: Toward) -> Effect {
        let at = self.buffer.cursor();
        let range = at.min(other)..at.max(other);
        self.is_cutting = true;
        if range.is_empty() {
            return Effect::Moved;
        }
        let part = &self.buffer.text()[range.clone()];
        let text = &mut self.cut.text;
        match toward {
            _ if !self.was_cutting => part.clone_into(text),
            Toward::Start => text.insert_str(0, part),
            Toward::End => text.push_str(part),
        }
        self.cut.is_lines = false;
        self.remove(range)
    }

    /// Inserts the text that was cut last.
    pub(super) fn yank(&mut self) -> Effect {
        let text = std::mem::take(&mut self.cut.text);
        let effect = self.insert(&text);
        self.cut.text = text;
        effect
    }
}
