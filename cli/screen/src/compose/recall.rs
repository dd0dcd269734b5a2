//! The incremental search through the history (Ctrl-R).

use super::browse::Kept;
use super::history::History;
use unicode_segmentation::UnicodeSegmentation as _;

/// Longest text that is searched for, in bytes.
const MAX_QUERY_BYTES: usize = 256;

/// A search that is open.
#[derive(Debug)]
pub(super) struct Recall {
    query: String,
    found: Option<usize>,
    is_missing: bool,
    /// The text of the box before.
    before: Kept,
}

impl Recall {
    /// Opens a search.
    pub(super) fn new(before: Kept) -> Self {
        Self {
            query: String::new(),
            found: None,
            is_missing: false,
            before,
        }
    }

    /// The text that is searched for.
    pub(super) fn query(&self) -> &str {
        &self.query
    }

    /// True if no message has the text.
    pub(super) fn is_missing(&self) -> bool {
        self.is_missing
    }

    /// The text of the box before the search.
    pub(super) fn into_before(self) -> Kept {
        self.before
    }

    /// Searches for more. Gives what the box shows now.
    pub(super) fn extend(&mut self, text: &str, history: &History) -> Kept {
        let line = text.lines().next().unwrap_or_default();
        for letter in line.chars().filter(|letter| !letter.is_control()) {
            if self.query.len() + letter.len_utf8() <= MAX_QUERY_BYTES {
                self.query.push(letter);
            }
        }
        self.search(self.found.map_or(history.len(), |found| found + 1), history)
    }

    /// Searches for less.
    pub(super) fn shorten(&mut self, history: &History) -> Kept {
        let last = self.query.grapheme_indices(true).next_back();
        self.query.truncate(last.map_or(0, |(at, _)| at));
        self.found = None;
        self.search(history.len(), history)
    }

    /// Searches for an older message.
    pub(super) fn older(&mut self, history: &History) -> Kept {
        self.search(self.found.unwrap_or(history.len()), history)
    }

    /// Searches for a newer message.
    pub(super) fn newer(&mut self, history: &History) -> Kept {
        let query = Query::new(&self.query);
        let from = self.found.map_or(history.len(), |found| found + 1);
        let next = (from..history.len())
            .find(|&index| history.entry(index).is_some_and(|text| query.is_in(text)));
        self.is_missing = next.is_none();
        self.found = next.or(self.found);
        self.shown(history)
    }

    /// Searches among the messages before `end`; the message that was found stays if there is none.
    fn search(&mut self, end: usize, history: &History) -> Kept {
        if self.query.is_empty() {
            self.is_missing = false;
            return self.shown(history);
        }
        let query = Query::new(&self.query);
        let next = (0..end)
            .rev()
            .find(|&index| history.entry(index).is_some_and(|text| query.is_in(text)));
        self.is_missing = next.is_none();
        self.found = next.or(self.found);
        self.shown(history)
    }

    fn shown(&self, history: &History) -> Kept {
        match self.found.and_then(|found| history.entry(found)) {
            Some(text) => {
                let at = text.find(&self.query).map(|at| at + self.query.len());
                (text.to_owned(), at.unwrap_or(text.len()))
            }
            None => self.before.clone(),
        }
    }
}

/// A text to search for. Capitals count only if it has one.
struct Query {
    text: String,
    has_capitals: bool,
}

impl Query {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            has_capitals: text.chars().any(char::is_uppercase),
        }
    }

    fn is_in(&self, text: &str) -> bool {
        text.contains(&self.text) || !self.has_capitals && text.to_lowercase().contains(&self.text)
    }
}
