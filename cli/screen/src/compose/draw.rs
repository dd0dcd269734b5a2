//! The box as styled lines.

use super::complete::{Item, List};
use super::draft::Draft;
use super::glyph::{Look, fit, glyph};
use super::layout::{Layout, Source};
use super::{Composer, Drawn};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Fewest columns for which a box is drawn.
const MIN_COLUMNS: usize = 4;

/// Columns of the mark before each row.
const MARK: usize = 2;

/// Most rows of a list.
const MAX_LIST_ROWS: usize = 8;

const PLAIN: Style = Style::new();
const DIM: Style = PLAIN.add_modifier(Modifier::DIM);
const ACCENT: Style = PLAIN.fg(Color::Cyan);
const CHOSEN: Style = ACCENT.add_modifier(Modifier::BOLD);
const COMMAND: Style = PLAIN.fg(Color::Magenta).add_modifier(Modifier::BOLD);
const MODE: Style = PLAIN.fg(Color::Yellow).add_modifier(Modifier::BOLD);
const BAD: Style = PLAIN.fg(Color::Red);

/// The rows of the text as they were drawn last.
#[derive(Debug)]
pub(super) struct View {
    pub(super) layout: Layout,
    columns: usize,
    /// The first row that is shown.
    top: usize,
}

impl Default for View {
    fn default() -> Self {
        Self {
            layout: Layout::default(),
            columns: 80,
            top: 0,
        }
    }
}

impl View {
    /// Takes up changes of the draft.
    pub(super) fn update(&mut self, draft: &Draft) {
        let changed = draft.buffer.take_changed();
        self.layout
            .update(source(draft), text_columns(self.columns), changed);
    }

    /// Scrolls as little as possible so that a row is among so many.
    fn scroll(&mut self, row: usize, rows: usize) {
        let last_top = self.layout.row_count().saturating_sub(rows);
        self.top = self
            .top
            .clamp((row + 1).saturating_sub(rows), row)
            .min(last_top);
    }
}

/// The text of a draft with its pastes.
pub(super) fn source(draft: &Draft) -> Source<'_> {
    Source {
        text: draft.buffer.text(),
        pastes: &draft.pastes,
    }
}

/// The columns of the text: those behind the mark, without one for a cursor at the end of a row.
fn text_columns(columns: usize) -> usize {
    columns.saturating_sub(MARK + 1).max(2)
}

/// Draws a box.
pub(super) fn draw(composer: &Composer, columns: usize, most_rows: usize) -> Drawn {
    let columns = columns.max(MIN_COLUMNS);
    let most_rows = most_rows.max(1);
    let mut view = composer.view.borrow_mut();
    view.columns = columns;
    view.update(&composer.draft);

    let source = source(&composer.draft);
    let (row, column) = view.layout.place(source, composer.draft.buffer.cursor());
    let row_count = view.layout.row_count();
    // What stands below leaves at least half of the rows to a text that needs them.
    let most_below = most_rows - row_count.min(most_rows.div_ceil(2));
    let below = below(composer, columns, most_below);
    let shown = row_count.min(most_rows - below.len());
    view.scroll(row, shown);

    let top = view.top;
    let mut lines: Vec<Line<'static>> = (top..top + shown)
        .map(|row| {
            let mut spans = vec![mark(composer, row, top, shown, row_count)];
            push_row(&mut spans, source, &view.layout, row, columns);
            Line::from(spans)
        })
        .collect();
    if composer.draft.buffer.text().is_empty() {
        let placeholder = fit(&composer.placeholder, text_columns(columns));
        lines[0].push_span(Span::styled(placeholder, DIM));
    }
    lines.extend(below);
    Drawn {
        lines,
        row: row - top,
        column: (MARK + column).min(columns - 1),
    }
}

/// The mark before a row: of the mode before the first one, and of further rows that are not shown.
fn mark(composer: &Composer, row: usize, top: usize, shown: usize, count: usize) -> Span<'static> {
    if row == 0 {
        return if composer.is_normal() {
            Span::styled("N ", MODE)
        } else if composer.is_command() {
            Span::styled("! ", COMMAND)
        } else {
            Span::styled("› ", ACCENT)
        };
    }
    if row == top {
        Span::styled("↑ ", DIM)
    } else if row + 1 == top + shown && row + 1 < count {
        Span::styled("↓ ", DIM)
    } else {
        Span::raw("  ")
    }
}

fn push_row(
    spans: &mut Vec<Span<'static>>,
    source: Source<'_>,
    layout: &Layout,
    row: usize,
    columns: usize,
) {
    let columns = text_columns(columns);
    let range = layout.range(source.text, row);
    let mut used = 0;
    let mut run = String::new();
    let mut look = Look::Plain;
    for (offset, cluster) in source.text[range.clone()].grapheme_indices(true) {
        if range.start + offset == 0 && cluster == "!" {
            continue;
        }
        let glyph = glyph(cluster, source.pastes, columns);
        used += glyph.width;
        // Spaces that hang over the edge.
        if used > columns {
            break;
        }
        if glyph.look != look && !run.is_empty() {
            spans.push(Span::styled(std::mem::take(&mut run), style(look)));
        }
        look = glyph.look;
        run.push_str(&glyph.text);
    }
    if !run.is_empty() {
        spans.push(Span::styled(run, style(look)));
    }
}

fn style(look: Look) -> Style {
    match look {
        Look::Plain => PLAIN,
        Look::Substitute => BAD,
        Look::Label => ACCENT,
    }
}

/// The rows below the text: the search, the list, or the note on a command line.
fn below(composer: &Composer, columns: usize, most: usize) -> Vec<Line<'static>> {
    let mut lines = if let Some(recall) = &composer.recall {
        let (note, style) = match recall.is_missing() {
            true => (" (no message has it)", BAD),
            false => ("", PLAIN),
        };
        let found = format!("{}{note}", recall.query());
        vec![row(
            &[("  search history: ", DIM), (&found, style)],
            columns,
        )]
    } else if let Some(list) = composer.completer.list() {
        self::list(list, columns, most)
    } else if composer.is_command() {
        vec![row(
            &[("  runs on your runner; the model is not told", DIM)],
            columns,
        )]
    } else {
        Vec::new()
    };
    lines.truncate(most);
    lines
}

fn list(list: &List, columns: usize, most: usize) -> Vec<Line<'static>> {
    let most = most.min(MAX_LIST_ROWS);
    let first = (list.chosen + 1).saturating_sub(most);
    let shown = list.items.iter().enumerate().skip(first).take(most);
    let title = |item: &Item| match item.argument.as_str() {
        "" => item.name.clone(),
        argument => format!("{} {argument}", item.name),
    };
    let has_descriptions = list.items.iter().any(|item| !item.description.is_empty());
    let widest = list.items.iter().map(|item| title(item).width()).max();
    let title_columns = match has_descriptions {
        true => widest.unwrap_or(0).min(columns / 2),
        false => columns.saturating_sub(MARK),
    };
    shown
        .map(|(index, item)| {
            let is_chosen = index == list.chosen;
            let (mark, style) = if is_chosen {
                ("› ", CHOSEN)
            } else {
                ("  ", PLAIN)
            };
            let mut title = fit(&title(item), title_columns);
            let padding = title_columns.saturating_sub(title.width());
            if has_descriptions {
                title.extend(std::iter::repeat_n(' ', padding + 2));
            }
            row(
                &[(mark, style), (&title, style), (&item.description, DIM)],
                columns,
            )
        })
        .collect()
}

/// One row of styled pieces, cut to so many columns.
fn row(pieces: &[(&str, Style)], columns: usize) -> Line<'static> {
    let mut left = columns;
    let mut spans = Vec::new();
    for &(text, style) in pieces {
        let text = fit(text, left);
        left -= text.width();
        if !text.is_empty() {
            spans.push(Span::styled(text, style));
        }
    }
    Line::from(spans)
}
