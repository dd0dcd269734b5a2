//! Small pieces of the looks of items: rows behind an indent, counts, notes.

use std::time::Duration;

use ratatui_core::{
    style::Style,
    text::{Line, Span},
};

use shared_types::human::duration;

use super::{palette, wrap};
use crate::transcript::safe;

/// The columns before what belongs to an item.
pub(super) const INDENT: usize = 2;

/// The fewest columns for which lines are painted. A narrower terminal wraps them itself.
const FEWEST_COLUMNS: usize = 8;

/// The columns that lines are painted for.
pub(super) fn room(columns: usize) -> usize {
    columns.max(FEWEST_COLUMNS)
}

/// The columns that are left behind the indent.
pub(super) fn inner(columns: usize) -> usize {
    room(columns) - INDENT
}

/// The rows behind an indent.
pub(super) fn indented(rows: Vec<Line<'static>>) -> Vec<Line<'static>> {
    let indent = |mut row: Line<'static>| {
        if row.width() > 0 {
            row.spans.insert(0, Span::raw(" ".repeat(INDENT)));
        }
        row
    };
    rows.into_iter().map(indent).collect()
}

/// Words on rows behind an indent.
pub(super) fn words(text: &str, style: Style, columns: usize) -> Vec<Line<'static>> {
    indented(paragraph(text, style, inner(columns)))
}

/// Words on rows.
pub(super) fn paragraph(text: &str, style: Style, columns: usize) -> Vec<Line<'static>> {
    let lines = text.lines();
    let rows = lines.flat_map(|line| {
        wrap::wrap(
            &Line::from(Span::styled(line.to_owned(), style)),
            columns,
            0,
        )
    });
    rows.collect()
}

/// A row of words behind the indent, cut if it is too long.
pub(super) fn row(text: &str, style: Style, columns: usize) -> Line<'static> {
    let text = wrap::cut(text, inner(columns));
    Line::from(vec![
        Span::raw(" ".repeat(INDENT)),
        Span::styled(text, style),
    ])
}

/// A mark, and text behind it: its further rows stand below its first one.
pub(super) fn marked(
    mark: Span<'static>,
    text: Vec<Span<'static>>,
    columns: usize,
) -> Vec<Line<'static>> {
    let mut spans = vec![mark];
    spans.extend(text);
    wrap::wrap(&Line::from(spans), room(columns), INDENT)
}

/// A count with its thing, such as `1 line` or `1,204 lines`.
pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{} {many}", grouped(count)),
    }
}

/// A length of time, as exact as it matters: `1.2 s`, `12 s`, `2 min 5 s`.
pub(super) fn took(time: Duration) -> String {
    match time.as_millis() {
        millis @ 9_950..59_500 => format!("{} s", (millis + 500) / 1000),
        _ => duration(time),
    }
}

/// A number in groups of three digits.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The first rows, and a note on the others.
pub(super) fn first(mut rows: Vec<Line<'static>>, most: usize) -> Vec<Line<'static>> {
    // A note on one row takes as much room as the row.
    if rows.len() > most + 1 {
        let more = rows.len() - most;
        rows.truncate(most);
        rows.push(more_lines(more));
    }
    rows
}

/// The note on lines that are folded away.
pub(super) fn more_lines(count: usize) -> Line<'static> {
    let words = counted(count, "more line", "more lines");
    Line::from(Span::styled(format!("… {words} (Ctrl-O)"), palette::DIM))
}

/// Lines without invisible letters, which an entity of Markdown may have become.
pub(super) fn visible(mut lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
    for span in lines.iter_mut().flat_map(|line| &mut line.spans) {
        if !span.content.is_ascii() {
            span.content = safe::seen(&span.content).into();
        }
    }
    lines
}
