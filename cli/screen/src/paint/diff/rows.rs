//! Lines of an edit as rows, with numbers in a margin.

use std::ops::Range;

use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::words;
use crate::paint::{palette, wrap};

/// Columns that text needs beside a margin; below, there is none.
const NARROWEST: usize = 12;

/// The effect of an edit on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Same,
    Removed,
    Added,
    /// The place of lines that are not shown.
    Skip,
    /// A line about a hunk.
    Hunk,
    /// A line about a file.
    File,
    /// Another line that is no text of a file.
    Other,
}

/// A line of an edit.
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) number: Option<usize>,
    pub(super) text: String,
    /// The bytes of the words that changed.
    pub(super) words: Vec<Range<usize>>,
}

impl Entry {
    /// A line without a word that stands out. Its tabs become spaces.
    pub(super) fn new(kind: Kind, number: Option<usize>, text: &str) -> Self {
        Entry {
            kind,
            number,
            text: wrap::untabbed(text),
            words: Vec::new(),
        }
    }
}

/// The rows of an edit: at most so many, and one that counts the lines that are left.
pub(super) fn paint(mut entries: Vec<Entry>, columns: usize, most: usize) -> Vec<Line<'static>> {
    words::mark(&mut entries, most);
    let largest = entries
        .iter()
        .take(most)
        .filter_map(|entry| entry.number)
        .max();
    let margin = margin(largest.unwrap_or(0), columns);
    let mut rows = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let painted = entry_rows(entry, margin, columns);
        if rows.len() + painted.len() > most {
            let left = most - rows.len();
            rows.extend(painted.into_iter().take(left));
            let lines = entries[index..]
                .iter()
                .filter(|entry| entry.kind != Kind::Skip);
            rows.push(more(lines.count(), columns));
            return rows;
        }
        rows.extend(painted);
    }
    rows
}

/// The columns of the numbers in a margin; 0 if there is no room for it.
pub(super) fn margin(largest: usize, columns: usize) -> usize {
    let digits = largest.to_string().len();
    if largest == 0 || columns < digits + NARROWEST {
        0
    } else {
        digits
    }
}

/// A number and the blank behind it in a margin of so many columns.
pub(super) fn number(number: Option<usize>, margin: usize) -> String {
    match number {
        _ if margin == 0 => String::new(),
        Some(number) => format!("{number:>margin$} "),
        None => " ".repeat(margin + 1),
    }
}

/// A line in rows behind its margin, which is blank from the second row on.
pub(super) fn with_margin(
    margin: Span<'static>,
    line: &Line<'static>,
    columns: usize,
) -> Vec<Line<'static>> {
    let blank = Span::raw(" ".repeat(wrap::width(&margin.content)));
    let rows = wrap::fold(line, columns.saturating_sub(wrap::width(&margin.content)));
    let mut before = Some(margin);
    let mut with_margin = |mut row: Line<'static>| {
        let before = before.take().unwrap_or_else(|| blank.clone());
        if !before.content.is_empty() {
            row.spans.insert(0, before);
        }
        row
    };
    rows.into_iter().map(&mut with_margin).collect()
}

/// The row that counts lines which are not shown.
pub(super) fn more(lines: usize, columns: usize) -> Line<'static> {
    let text = if lines == 1 {
        "… 1 more line".to_owned()
    } else {
        format!("… {lines} more lines")
    };
    Line::from(Span::styled(wrap::cut(&text, columns.max(1)), palette::DIM))
}

fn entry_rows(entry: &Entry, margin: usize, columns: usize) -> Vec<Line<'static>> {
    let (sign, style) = match entry.kind {
        Kind::Same => ("  ", palette::PLAIN),
        Kind::Removed => ("- ", palette::REMOVED),
        Kind::Added => ("+ ", palette::ADDED),
        Kind::Skip => ("", palette::DIM),
        Kind::Hunk => ("", palette::ACCENT),
        Kind::File => ("", palette::BOLD),
        Kind::Other => ("", palette::DIM),
    };
    let line = Line::from(spans(entry, style));
    let number = match entry.kind {
        Kind::Same | Kind::Removed | Kind::Added => number(entry.number, margin),
        _ => String::new(),
    };
    // Without room for a sign and a wide letter there is a colour still.
    let sign = if columns >= sign.len() + 2 { sign } else { "" };
    let text_columns = columns.saturating_sub(wrap::width(&number));
    let rows = with_margin(Span::styled(sign, style), &line, text_columns);
    let mut number = Some(number);
    let mut numbered = |mut row: Line<'static>| {
        let blank = " ".repeat(if sign.is_empty() {
            0
        } else {
            margin + usize::from(margin > 0)
        });
        let number = number.take().unwrap_or(blank);
        if !number.is_empty() {
            row.spans.insert(0, Span::styled(number, palette::DIM));
        }
        row
    };
    rows.into_iter().map(&mut numbered).collect()
}

fn spans(entry: &Entry, style: Style) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    let mut push = |range: Range<usize>, style| {
        if !range.is_empty() {
            spans.push(Span::styled(entry.text[range].to_owned(), style));
        }
    };
    let mut end = 0;
    for word in &entry.words {
        push(end..word.start, style);
        push(word.clone(), style.add_modifier(Modifier::REVERSED));
        end = word.end;
    }
    push(end..entry.text.len(), style);
    spans
}
