//! The output of a program as it streams, bounded and harmless.
//!
//! All streams of one program go into one [`Output`], in the order in which they arrive, as on a
//! terminal. Its colours stay. Every other sequence for a terminal is removed, because the output
//! stands among other lines. A line that is drawn again and again (a progress bar) is kept as it
//! was drawn last.

mod escape;
mod sgr;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use unicode_width::UnicodeWidthChar;

use self::escape::{Action, Escapes};
pub use self::sgr::SgrStyle;

/// The first lines that are kept.
pub const FIRST_LINES: usize = 50;

/// The last complete lines that are kept.
pub const LAST_LINES: usize = 200;

/// The longest line that is kept, in columns; the rest of it is cut off.
pub const MAX_COLUMNS: usize = 4096;

/// The longest line that is kept, in bytes; a few columns may have many marks.
const MAX_LINE_BYTES: usize = 4 * MAX_COLUMNS;

/// The runs of one style in a line; the last takes the text of those beyond.
const MAX_RUNS: usize = 512;

/// Columns from one tab stop to the next, as programs expect them.
const TAB: usize = 8;

/// One line of a program's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputLine {
    /// Text, in runs of one style each.
    Text(Vec<(String, SgrStyle)>),
    /// Lines that were not kept.
    Skipped {
        /// The number of these lines.
        lines: u64,
    },
    /// Bytes that never arrived.
    Gap {
        /// The number of these bytes.
        bytes: u64,
    },
}

/// The output of one program: its first and its last lines, and a count of those between.
#[derive(Debug, Clone, Default)]
pub struct Output {
    first: Vec<OutputLine>,
    last: VecDeque<OutputLine>,
    skipped: Skipped,
    /// Lines of text that ended.
    complete: u64,
    row: Row,
    style: SgrStyle,
    escapes: Escapes,
}

/// The lines and marks between the first and the last.
#[derive(Debug, Clone, Copy, Default)]
struct Skipped {
    lines: u64,
    /// Bytes of the gaps among them.
    bytes: u64,
}

impl Output {
    /// Takes the next text, wherever it is cut.
    pub fn push(&mut self, text: &str) {
        for letter in text.chars() {
            match self.escapes.letter(letter) {
                Some(Action::Print(letter)) => self.row.print(letter, self.style),
                Some(Action::Newline) => self.end_line(),
                Some(Action::Return) => self.row.is_returned = true,
                Some(Action::Back) => self.row.back(),
                Some(Action::Tab) => self.row.tab(self.style),
                Some(Action::Style(parameters)) => self.style.apply(&parameters),
                Some(Action::EraseEnd) if self.row.is_returned => self.row.clear(),
                Some(Action::EraseLine) => self.row.clear(),
                Some(Action::EraseEnd) | None => {}
            }
        }
    }

    /// Marks bytes that never arrived. They end the line, and the sequence that they cut.
    pub fn gap(&mut self, bytes: u64) {
        if !self.row.is_empty() {
            self.end_line();
        }
        self.escapes = Escapes::default();
        let newest = self.last.back_mut().or(self.first.last_mut());
        if let Some(OutputLine::Gap { bytes: before }) = newest {
            *before = before.saturating_add(bytes);
        } else {
            self.keep(OutputLine::Gap { bytes });
        }
    }

    /// The lines that are kept, in order; the last may not have ended.
    pub fn lines(&self) -> Vec<OutputLine> {
        let mut lines = self.first.clone();
        if self.skipped.lines > 0 {
            lines.push(OutputLine::Skipped {
                lines: self.skipped.lines,
            });
        }
        if self.skipped.bytes > 0 {
            lines.push(OutputLine::Gap {
                bytes: self.skipped.bytes,
            });
        }
        lines.extend(self.last.iter().cloned());
        if !self.row.is_empty() {
            lines.push(OutputLine::Text(self.row.runs.clone()));
        }
        lines
    }

    /// The number of lines of text, with those that were not kept.
    pub fn line_count(&self) -> u64 {
        self.complete + u64::from(!self.row.is_empty())
    }

    /// True if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.row.is_empty()
    }

    fn end_line(&mut self) {
        let row = std::mem::take(&mut self.row);
        self.complete += 1;
        self.keep(OutputLine::Text(row.runs));
    }

    fn keep(&mut self, line: OutputLine) {
        if self.first.len() < FIRST_LINES {
            self.first.push(line);
            return;
        }
        self.last.push_back(line);
        if self.last.len() > LAST_LINES {
            match self.last.pop_front() {
                Some(OutputLine::Gap { bytes }) => {
                    self.skipped.bytes = self.skipped.bytes.saturating_add(bytes);
                }
                _ => self.skipped.lines += 1,
            }
        }
    }
}

/// The line that has not ended.
#[derive(Debug, Clone, Default)]
struct Row {
    runs: Vec<(String, SgrStyle)>,
    columns: usize,
    bytes: usize,
    /// True if the next letter begins the line again.
    is_returned: bool,
    /// True if letters were cut off.
    is_cut: bool,
}

impl Row {
    fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    fn clear(&mut self) {
        *self = Row::default();
    }

    fn print(&mut self, letter: char, style: SgrStyle) {
        if self.is_returned {
            self.clear();
        }
        if self.is_cut {
            return;
        }
        let columns = self.columns + letter.width().unwrap_or(0);
        let bytes = self.bytes + letter.len_utf8();
        self.is_cut = columns > MAX_COLUMNS || bytes > MAX_LINE_BYTES;
        let letter = if self.is_cut { '…' } else { letter };
        self.columns = columns;
        self.bytes = bytes;
        let is_full = self.runs.len() >= MAX_RUNS;
        match self.runs.last_mut() {
            Some((text, last)) if *last == style || is_full => text.push(letter),
            _ => self.runs.push((letter.to_string(), style)),
        }
    }

    fn tab(&mut self, style: SgrStyle) {
        let from = if self.is_returned { 0 } else { self.columns };
        for _ in 0..TAB - from % TAB {
            self.print(' ', style);
        }
    }

    /// Takes back the last letter.
    fn back(&mut self) {
        if self.is_returned || self.is_cut {
            return;
        }
        let Some((text, _)) = self.runs.last_mut() else {
            return;
        };
        if let Some(letter) = text.pop() {
            self.columns -= letter.width().unwrap_or(0);
            self.bytes -= letter.len_utf8();
        }
        if text.is_empty() {
            self.runs.pop();
        }
    }
}
