//! The rows of a text at a width: broken between words, and anywhere between wide letters.
//!
//! A row depends only on the text from its beginning on. After a change, rows are laid again from shortly before
//! the change until a row begins where one began before; a key in a long draft therefore costs a few rows.

use super::buffer::Changed;
use super::glyph::glyph;
use super::pastes::{Pastes, is_mark};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation as _;

/// Rows before a change that it can affect: a shorter word may move up to the row before, and a mark may join
/// the last cluster of that row.
const AFFECTED_BEFORE: usize = 2;

/// The rows of a text.
#[derive(Debug, Default)]
pub(super) struct Layout {
    columns: usize,
    /// The length of the text when it was laid, in bytes.
    length: usize,
    /// The beginning of each row. Not empty once a text was laid.
    starts: Vec<usize>,
}

/// A text with its pastes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) pastes: &'a Pastes,
}

impl Layout {
    /// Lays the text in so many columns. `changed` is the part that changed since the last call. Gives the
    /// number of rows that were laid.
    pub(super) fn update(
        &mut self,
        source: Source<'_>,
        columns: usize,
        changed: Option<Changed>,
    ) -> usize {
        let mut laid = 0;
        if self.columns != columns || self.starts.is_empty() {
            self.columns = columns;
            self.starts = vec![0];
            laid = self.lay(source, Vec::new(), usize::MAX);
        } else if let Some(changed) = changed {
            let row = self.row_of(changed.head).saturating_sub(AFFECTED_BEFORE);
            let before = self.starts.split_off(row + 1);
            laid = self.lay(source, before, source.text.len() - changed.tail);
        }
        self.length = source.text.len();
        laid
    }

    /// Lays rows from the last one on, until one that begins at `stable` or later began at the same place before.
    fn lay(&mut self, source: Source<'_>, before: Vec<usize>, stable: usize) -> usize {
        let kept = self.starts.len() - 1;
        let length = source.text.len();
        let mut start = self.starts.last().copied().unwrap_or(0);
        while let Some(next) = next_row(source, start, self.columns) {
            let tail = length - next;
            if next >= stable
                && tail <= self.length
                && let Ok(same) = before.binary_search(&(self.length - tail))
            {
                let laid = self.starts.len() - kept;
                let rest = before[same..].iter();
                self.starts
                    .extend(rest.map(|old| length - (self.length - old)));
                return laid;
            }
            self.starts.push(next);
            start = next;
        }
        self.starts.len() - kept
    }

    /// The number of rows; at least 1 once a text was laid.
    pub(super) fn row_count(&self) -> usize {
        self.starts.len()
    }

    /// The row of a place in the text.
    pub(super) fn row_of(&self, at: usize) -> usize {
        self.starts
            .partition_point(|&start| start <= at)
            .saturating_sub(1)
    }

    /// The text of a row, without its newline.
    pub(super) fn range(&self, text: &str, row: usize) -> Range<usize> {
        let start = self.starts.get(row).copied().unwrap_or(text.len());
        let end = self.starts.get(row + 1).copied().unwrap_or(text.len());
        let is_ended = row + 1 < self.starts.len() && text[start..end].ends_with('\n');
        start..end - usize::from(is_ended)
    }

    /// The row and column of a place in the text.
    pub(super) fn place(&self, source: Source<'_>, at: usize) -> (usize, usize) {
        let row = self.row_of(at);
        let start = self.starts.get(row).copied().unwrap_or(0);
        let width = source.text[start..at]
            .grapheme_indices(true)
            .map(|(offset, cluster)| width(source, start + offset, cluster, self.columns))
            .sum();
        (row, width)
    }

    /// The place in a row that is nearest to a column and not behind it.
    pub(super) fn at(&self, source: Source<'_>, row: usize, column: usize) -> usize {
        let range = self.range(source.text, row);
        let goes_on = self.starts.get(row + 1) == Some(&range.end);
        let mut seen = 0;
        let mut at = range.start;
        for (offset, cluster) in source.text[range.clone()].grapheme_indices(true) {
            let width = width(source, range.start + offset, cluster, self.columns);
            at = range.start + offset;
            if seen + width > column {
                return at;
            }
            seen += width;
        }
        // The end of a row that goes on is the beginning of the next row.
        if goes_on { at } else { range.end }
    }
}

/// The columns of a cluster. The `!` of a command line is shown as the mark of the box, not as text.
pub(super) fn width(source: Source<'_>, at: usize, cluster: &str, columns: usize) -> usize {
    if at == 0 && cluster == "!" {
        return 0;
    }
    glyph(cluster, source.pastes, columns).width
}

/// The beginning of the row after the one that begins at `start`.
fn next_row(source: Source<'_>, start: usize, columns: usize) -> Option<usize> {
    let mut used = 0;
    let mut break_at = start;
    for (offset, cluster) in source.text[start..].grapheme_indices(true) {
        let at = start + offset;
        let end = at + cluster.len();
        if cluster == "\n" {
            return Some(end);
        }
        if matches!(cluster, " " | "\t") {
            // Spaces at the end of a row hang over its edge.
            used += width(source, at, cluster, columns);
            break_at = end;
            continue;
        }
        let width = width(source, at, cluster, columns);
        let stands_alone = width > 1 || cluster.starts_with(is_mark);
        if stands_alone {
            break_at = at;
        }
        if used + width > columns && at > start {
            return Some(if break_at > start { break_at } else { at });
        }
        used += width;
        if stands_alone {
            break_at = end;
        }
    }
    None
}

#[cfg(test)]
mod tests;
