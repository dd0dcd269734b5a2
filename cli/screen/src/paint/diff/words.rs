//! The words that changed within lines.

use std::ops::Range;

use similar::{ChangeTag, TextDiff};
use unicode_segmentation::UnicodeSegmentation;

use super::rows::{Entry, Kind};

/// The longest line whose words are compared, in bytes.
const MAX_LINE: usize = 1000;

/// Marks the words that changed, in the runs that begin among the first so many lines.
///
/// A run of removed lines and a run of as many added lines are taken as pairs.
pub(super) fn mark(entries: &mut [Entry], most: usize) {
    let mut start = 0;
    while start < entries.len().min(most) {
        let removed = run(&entries[start..], Kind::Removed);
        let added = run(&entries[start + removed..], Kind::Added);
        if removed == added {
            let (old, new) = entries[start..start + 2 * removed].split_at_mut(removed);
            for (old, new) in old.iter_mut().zip(new) {
                compare(old, new);
            }
        }
        start += (removed + added).max(1);
    }
}

fn run(entries: &[Entry], kind: Kind) -> usize {
    entries
        .iter()
        .take_while(|entry| entry.kind == kind)
        .count()
}

/// Marks the words that differ, if they are less than half of the text.
fn compare(old: &mut Entry, new: &mut Entry) {
    if old.text.len().max(new.text.len()) > MAX_LINE {
        return;
    }
    let old_words: Vec<&str> = old.text.split_word_bounds().collect();
    let new_words: Vec<&str> = new.text.split_word_bounds().collect();
    let diff = TextDiff::from_slices(&old_words, &new_words);
    let (mut old_marks, mut new_marks) = (Marks::default(), Marks::default());
    for change in diff.iter_all_changes() {
        let length = change.value().len();
        match change.tag() {
            ChangeTag::Equal => {
                old_marks.skip(length);
                new_marks.skip(length);
            }
            ChangeTag::Delete => old_marks.take(length),
            ChangeTag::Insert => new_marks.take(length),
        }
    }
    if 2 * (old_marks.taken + new_marks.taken) < old.text.len() + new.text.len() {
        old.words = old_marks.ranges;
        new.words = new_marks.ranges;
    }
}

#[derive(Default)]
struct Marks {
    at: usize,
    taken: usize,
    ranges: Vec<Range<usize>>,
}

impl Marks {
    fn skip(&mut self, length: usize) {
        self.at += length;
    }

    fn take(&mut self, length: usize) {
        let end = self.at + length;
        match self.ranges.last_mut() {
            Some(last) if last.end == self.at => last.end = end,
            _ => self.ranges.push(self.at..end),
        }
        self.taken += length;
        self.at = end;
    }
}
