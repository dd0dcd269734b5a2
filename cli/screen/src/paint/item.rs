//! Items as lines.

#[cfg(test)]
mod tests;

use ratatui_core::text::{Line, Span};
use shared_types::event::{TodoState, TurnOutcome};

use super::{call, look, markdown, palette, wrap};
use crate::transcript::{
    item::{End, Item, Kind, Level, Message, Note, Said, Sent, Speech, TodoChange},
    safe,
};

/// Most rows of a person's message, which may have the text of a resource or of a prompt in it.
const MAX_MESSAGE_ROWS: usize = 24;

/// The amount of an item that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// The main things, for the scrollback.
    Folded,
    /// All that is kept, for the pager.
    Whole,
    /// The last things, while it goes on.
    Live,
}

/// Paints an item in rows of at most so many columns. An item that shows nothing has no rows.
pub fn item(item: &Item, columns: usize, fold: Fold) -> Vec<Line<'static>> {
    match &item.kind {
        Kind::User(message) => user(message, columns, fold),
        Kind::Thought(speech) => thought(speech, item.is_open, columns, fold),
        Kind::Answer(speech) => answer(speech, columns),
        Kind::Call(call) => call::call(call, columns, fold),
        Kind::Todo(change) => todo(change, columns),
        Kind::End(end) => ended(end, columns),
        Kind::Note(note) => said(note, columns),
    }
}

/// The rows of a text that counts no more.
pub(super) fn void(columns: usize) -> Vec<Line<'static>> {
    note(
        "what the model said last is void: it broke off",
        Level::Quiet,
        columns,
    )
}

fn user(message: &Message, columns: usize, fold: Fold) -> Vec<Line<'static>> {
    let mark = match message.sent {
        Sent::Now | Sent::Queued => "› ",
        Sent::Steered => "↳ ",
    };
    let images = match message.images {
        0 => None,
        count => Some(look::counted(count, "image", "images")),
    };
    let is_queued = message.sent == Sent::Queued;
    let queued = is_queued.then(|| "waits for its turn".to_owned());
    let by = message.by.as_ref().map(|name| format!("from {name}"));
    let beside: Vec<_> = [by, images, queued].into_iter().flatten().collect();
    let bold = palette::USER.patch(palette::BOLD);
    let mut rows = Vec::new();
    for (number, line) in message.text.lines().enumerate() {
        let mark = if number == 0 { mark } else { "  " };
        let text = vec![Span::styled(line.to_owned(), palette::BOLD)];
        rows.extend(look::marked(Span::styled(mark, bold), text, columns));
    }
    if rows.is_empty() {
        rows.push(Line::from(Span::styled(mark.trim_end(), bold)));
    }
    if fold != Fold::Whole {
        rows = look::first(rows, MAX_MESSAGE_ROWS);
    }
    if !beside.is_empty() {
        rows.push(look::row(&beside.join(" · "), palette::DIM, columns));
    }
    rows
}

fn thought(speech: &Speech, is_open: bool, columns: usize, fold: Fold) -> Vec<Line<'static>> {
    if speech.is_void || speech.text.trim().is_empty() {
        return Vec::new();
    }
    let style = palette::DIM.patch(palette::ITALIC);
    let head = match speech.took {
        _ if is_open => "thinking".to_owned(),
        None => "thought".to_owned(),
        Some(took) => format!("thought for {}", look::took(took)),
    };
    let mut lines = speech.text.lines().map(str::trim);
    let line = match fold {
        Fold::Whole => {
            let mut rows = look::marked(
                Span::styled("· ", palette::DIM),
                vec![Span::styled(head, palette::DIM)],
                columns,
            );
            rows.extend(look::words(speech.text.trim(), style, columns));
            return rows;
        }
        Fold::Live if is_open => lines.rfind(|line| !line.is_empty()),
        Fold::Folded | Fold::Live => lines.find(|line| !line.is_empty()),
    };
    let line = safe::line(line.unwrap_or_default());
    let line = line.trim_matches(['*', '#', ' ']);
    let room = look::inner(columns).saturating_sub(wrap::width(&head) + 3);
    let mut spans = vec![Span::styled(format!("· {head}"), palette::DIM)];
    if room > 8 {
        spans.push(Span::styled(" · ", palette::DIM));
        spans.push(Span::styled(wrap::cut(line, room), style));
    }
    vec![Line::from(spans)]
}

fn answer(speech: &Speech, columns: usize) -> Vec<Line<'static>> {
    match speech.is_void {
        true => Vec::new(),
        false => prose(&speech.text, columns),
    }
}

/// Words of the model in rows.
pub(super) fn prose(text: &str, columns: usize) -> Vec<Line<'static>> {
    look::visible(markdown::markdown(text, look::room(columns)))
}

fn todo(change: &TodoChange, columns: usize) -> Vec<Line<'static>> {
    let from = match change.is_found {
        true => ", from an earlier session in this folder",
        false => "",
    };
    let head = format!("{} of {} done{from}", change.done, change.of);
    let head = vec![
        Span::styled("To-do", palette::BOLD),
        Span::styled(format!(" {head}"), palette::DIM),
    ];
    let mut rows = look::marked(Span::styled("● ", palette::ACCENT), head, columns);
    for row in &change.changed {
        let (mark, style) = match row.state {
            Some(TodoState::Open) => ("☐ ", palette::PLAIN),
            Some(TodoState::Doing) => ("▸ ", palette::BOLD),
            Some(TodoState::Done) => ("✓ ", palette::DIM),
            None => ("– ", palette::DIM.patch(palette::STRUCK)),
        };
        let text = vec![Span::styled(row.text.clone(), style)];
        let mark = Span::styled(mark, style);
        rows.extend(look::indented(look::marked(
            mark,
            text,
            look::inner(columns),
        )));
    }
    rows
}

fn ended(end: &End, columns: usize) -> Vec<Line<'static>> {
    let told = match end.outcome {
        TurnOutcome::Completed => None,
        TurnOutcome::Failed => Some(("✗ ", "failed", palette::BAD)),
        TurnOutcome::Cancelled => Some(("■ ", "cancelled", palette::WARN)),
        TurnOutcome::Interrupted => Some(("■ ", "interrupted", palette::WARN)),
    };
    let mut rows = Vec::new();
    if let Some((mark, words, style)) = told {
        let words = match &end.reason {
            None => words.to_owned(),
            Some(reason) => format!("{words}: {reason}"),
        };
        let words = vec![Span::styled(words, style)];
        rows.extend(look::marked(Span::styled(mark, style), words, columns));
    }
    if let Some(todo) = &end.todo {
        rows.extend(note(todo, Level::Quiet, columns));
    }
    rows
}

fn said(note_: &Note, columns: usize) -> Vec<Line<'static>> {
    match &note_.said {
        Said::Words(words) => note(words, note_.level, columns),
        Said::Lines(lines) => lines.clone(),
    }
}

fn note(words: &str, level: Level, columns: usize) -> Vec<Line<'static>> {
    let (mark, style) = match level {
        Level::Quiet => ("· ", palette::DIM),
        Level::Warning => ("! ", palette::WARN),
        Level::Failure => ("✗ ", palette::BAD),
    };
    let lines = words.lines().enumerate();
    let rows = lines.flat_map(|(number, line)| {
        let mark = if number == 0 { mark } else { "  " };
        let text = vec![Span::styled(line.to_owned(), style)];
        look::marked(Span::styled(mark, style), text, columns)
    });
    rows.collect()
}
