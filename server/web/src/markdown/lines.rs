//! The lines of a Markdown text, as it grows: white space collapses, and each line within lists and quotations has
//! their prefix.

use super::DEPTH_AT_MOST;

/// A text of at most so many bytes. What would exceed them is left out.
#[derive(Default)]
pub(super) struct BoundedText {
    text: String,
    at_most: usize,
    is_full: bool,
    /// The line ends that stand before the next text.
    ends: u8,
    /// True if a space stands before the next text of the line.
    space: bool,
    /// True if the next text touches the mark before it.
    is_glued: bool,
    containers: Vec<Container>,
    /// The prefix of the empty line before a quotation that begins.
    before_quote: Option<String>,
    /// Quotations that are open and too deep to be shown.
    quotes_beyond: u32,
    /// The marker of an item whose first line has not begun, and the prefix before it.
    marker: Option<String>,
    /// Blocks of code that are open.
    code: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Quote,
    /// An item of a list, whose lines stand so many columns to the right.
    Item(usize),
}

impl BoundedText {
    pub(super) fn new(at_most: usize) -> Self {
        Self {
            at_most,
            ..Self::default()
        }
    }

    /// The bytes of the text until now.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn is_code(&self) -> bool {
        self.code > 0
    }

    /// Adds words. White space between them counts as one space, except in code.
    pub(super) fn text(&mut self, text: &str) {
        if self.is_code() {
            self.code_text(text);
            return;
        }
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(is_space).unwrap_or(rest.len());
            if end > 0 {
                self.push(&rest[..end]);
            }
            let behind = rest[end..].trim_start_matches(is_space);
            self.space |= behind.len() < rest.len() - end;
            rest = behind;
        }
    }

    /// Adds a mark that the text behind it touches.
    pub(super) fn mark(&mut self, mark: &str) {
        self.push(mark);
        self.is_glued = true;
    }

    /// Adds the end of a mark, which the text before it touches. `from` is the place behind its beginning. A mark
    /// around nothing is taken back.
    pub(super) fn end_mark(&mut self, begin: &str, from: usize, end: &str) {
        if from < self.text.len() {
            self.append(end);
        } else if let Some(before) = self.text.strip_suffix(begin) {
            self.text.truncate(before.len());
        }
        self.is_glued = false;
    }

    /// The text that follows stands on a line of its own.
    pub(super) fn line(&mut self) {
        match self.is_code() {
            true => self.code_text("\n"),
            false => self.end_lines(1),
        }
    }

    /// The text that follows stands in a paragraph of its own.
    pub(super) fn paragraph(&mut self) {
        self.end_lines(if self.is_code() { 1 } else { 2 });
    }

    /// A list begins or ends.
    pub(super) fn list(&mut self, is_outermost: bool) {
        self.end_lines(if is_outermost { 2 } else { 1 });
    }

    pub(super) fn begin_item(&mut self, marker: &str) {
        self.end_lines(1);
        self.marker = Some(self.prefix() + marker);
        if self.containers.len() < DEPTH_AT_MOST {
            self.containers.push(Container::Item(marker.len()));
        }
    }

    /// Ends items until at most so many are open.
    pub(super) fn end_items(&mut self, open: usize) {
        let is_item = |it: &Container| matches!(it, Container::Item(_));
        while self.containers.iter().filter(|it| is_item(it)).count() > open {
            let last = self.containers.iter().rposition(is_item);
            self.containers.truncate(last.unwrap_or(0));
            self.marker = None;
            self.end_lines(1);
        }
    }

    pub(super) fn begin_quote(&mut self) {
        self.paragraph();
        let prefix = self.prefix();
        self.before_quote.get_or_insert(prefix);
        match self.containers.len() < DEPTH_AT_MOST {
            true => self.containers.push(Container::Quote),
            false => self.quotes_beyond = self.quotes_beyond.saturating_add(1),
        }
    }

    pub(super) fn end_quote(&mut self) {
        let last = self
            .containers
            .iter()
            .rposition(|it| *it == Container::Quote);
        match (self.quotes_beyond, last) {
            (0, Some(last)) => self.containers.truncate(last),
            (beyond, _) => self.quotes_beyond = beyond.saturating_sub(1),
        }
        self.paragraph();
    }

    pub(super) fn begin_code(&mut self) {
        if self.code == 0 {
            self.paragraph();
            self.push(FENCE);
            self.ends = 1;
        }
        self.code = self.code.saturating_add(1);
    }

    pub(super) fn end_code(&mut self) {
        if self.code == 1 {
            self.ends = 1;
            self.push(FENCE);
        }
        self.code = self.code.saturating_sub(1);
        self.paragraph();
    }

    pub(super) fn finish(mut self) -> String {
        if self.is_code() {
            self.code = 1;
            self.end_code();
        }
        self.text
    }

    fn end_lines(&mut self, ends: u8) {
        self.space = false;
        // Behind the marker of an item, or the beginning of a link, a line begins already.
        if !self.is_glued && self.marker.is_none() {
            self.ends = self.ends.max(ends);
        }
    }

    fn code_text(&mut self, text: &str) {
        let begins = self.ends == 1 && self.text.ends_with(FENCE);
        let text = text.strip_prefix('\n').filter(|_| begins).unwrap_or(text);
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                self.write_ends();
                self.ends = 1;
            }
            if !line.is_empty() {
                self.push(line);
            }
        }
    }

    /// Adds text that stands on one line.
    fn push(&mut self, text: &str) {
        self.write_ends();
        let begins = self.is_glued || self.text.is_empty() || self.text.ends_with([' ', '\n']);
        if std::mem::take(&mut self.space) && !begins {
            self.append(" ");
        }
        self.is_glued = false;
        self.append(text);
    }

    /// Writes the line ends before the next text, and the prefix of its line.
    fn write_ends(&mut self) {
        let ends = std::mem::take(&mut self.ends);
        let (marker, before_quote) = (self.marker.take(), self.before_quote.take());
        if ends == 0 && marker.is_none() {
            return;
        }
        self.space = false;
        let prefix = self.prefix();
        if !self.text.is_empty() {
            self.append("\n");
            if ends > 1 {
                self.append(before_quote.as_ref().unwrap_or(&prefix).trim_end());
                self.append("\n");
            }
        }
        self.append(&marker.unwrap_or(prefix));
    }

    /// The beginning of each line within the open containers.
    fn prefix(&self) -> String {
        let prefix = self.containers.iter().map(|container| match container {
            Container::Quote => "> ".to_owned(),
            Container::Item(columns) => " ".repeat(*columns),
        });
        prefix.collect()
    }

    fn append(&mut self, text: &str) {
        self.is_full |= self.text.len() + text.len() > self.at_most;
        if !self.is_full {
            self.text.push_str(text);
        }
    }
}

/// The line before and after a block of code.
const FENCE: &str = "```";

/// White space of HTML, which collapses. A space that must not break does not.
fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}
