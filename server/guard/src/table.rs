//! Rows of patterns, searched for together in one pass.
//!
//! The rows become one pattern, because a pass for each row would make a long text slow. Classes of characters are
//! ASCII, which keeps the matcher on its fast path.

use std::ops::Range;

use regex::Regex;

/// A rejected match of more bytes is not searched again for matches inside: that bounds the work.
const MAX_SEARCHED_AGAIN: usize = 512;

/// The patterns of a table, in the order of its rows. An earlier row wins at the same place.
pub(crate) struct PatternTable(Regex);

impl PatternTable {
    /// A table of these patterns. Each has exactly one group: the range that is found.
    ///
    /// # Panics
    /// If a pattern does not compile; a test of each table shows that.
    pub(crate) fn new<'a>(patterns: impl Iterator<Item = &'a str>) -> Self {
        let all: Vec<_> = patterns.map(|pattern| format!("(?:{pattern})")).collect();
        Self(Regex::new(&all.join("|")).expect("the rows of a table are patterns"))
    }

    /// The matches in the text that `accept` takes, as (row, range), from the left and without overlap.
    pub(crate) fn find<'t>(
        &'t self,
        text: &'t str,
        accept: impl Fn(usize, &str) -> bool + 't,
    ) -> impl Iterator<Item = (usize, Range<usize>)> + 't {
        let mut from = 0;
        std::iter::from_fn(move || {
            loop {
                let captures = self.0.captures_at(text, from)?;
                let whole = captures.get(0)?.range();
                let mut groups = captures.iter().skip(1).enumerate();
                let (row, range) = groups.find_map(|(row, group)| Some((row, group?.range())))?;
                from = whole.end;
                if accept(row, &text[range.clone()]) {
                    return Some((row, range));
                }
                if range.start > whole.start && range.len() <= MAX_SEARCHED_AGAIN {
                    from = range.start;
                }
            }
        })
    }
}
