//! A list with search, drawn as bottom lines.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui_core::{
    style::{Modifier, Style},
    text::{Line, Span},
};
use unicode_segmentation::UnicodeSegmentation as _;

use super::{Bottom, Position, row};
use crate::paint::wrap::{cut, width};

/// Longest search text, in characters.
const MAX_QUERY: usize = 200;

/// The least columns with which the preview stands beside the list, and not below it.
const BESIDE_COLUMNS: usize = 100;

/// The most rows of a preview below the list.
const MAX_PREVIEW_ROWS: usize = 10;

/// The rows around the list: the title, the search text, and the keys.
const FRAME_ROWS: usize = 3;

const HINT: &str = "↑↓ move · type to search · Enter choose · Esc cancel";

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choice {
    /// The name, which search prefers.
    pub label: String,
    /// The words of the second column.
    pub detail: String,
    /// A sign before the name, such as ✓ for the one in use.
    pub mark: Option<char>,
    /// False if it is shown but cannot be chosen.
    pub is_enabled: bool,
}

/// The outcome of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picked {
    /// Nothing changed that the caller must know.
    None,
    /// This choice was taken, by its index in the list that was given.
    Chosen(usize),
    /// The list was left.
    Cancelled,
    /// Another choice is highlighted, or the search text has changed.
    Moved,
}

/// A list with search.
#[derive(Debug)]
pub struct Picker {
    title: String,
    choices: Vec<Choice>,
    query: String,
    /// The choices that the search text finds, the best first.
    found: Vec<usize>,
    /// The place in `found` that is highlighted.
    at: usize,
    /// The first place in `found` that is shown.
    top: usize,
    /// The rows of the list when it was last drawn.
    page: usize,
    preview: Option<Preview>,
}

#[derive(Debug)]
struct Preview {
    index: usize,
    lines: Vec<Line<'static>>,
}

impl Picker {
    /// Makes a list. The first choice that can be taken is highlighted.
    pub fn new(title: impl Into<String>, choices: Vec<Choice>) -> Self {
        let mut picker = Self {
            title: title.into(),
            choices,
            query: String::new(),
            found: Vec::new(),
            at: 0,
            top: 0,
            page: 1,
            preview: None,
        };
        picker.search();
        picker
    }

    /// Highlights a choice, by its index in the list that was given.
    pub fn highlight(&mut self, index: usize) {
        if let Some(at) = self.found.iter().position(|found| *found == index) {
            self.at = at;
        }
    }

    /// The choice that is highlighted, by its index in the list that was given.
    pub fn highlighted(&self) -> Option<usize> {
        self.found.get(self.at).copied()
    }

    /// The search text.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Shows lines while the choice of this index is highlighted.
    pub fn set_preview(&mut self, index: usize, lines: Vec<Line<'static>>) {
        self.preview = Some(Preview { index, lines });
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Picked {
        if key.kind == KeyEventKind::Release {
            return Picked::None;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_alt = key.modifiers.contains(KeyModifiers::ALT);
        let last = self.found.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc => return Picked::Cancelled,
            KeyCode::Char('c' | 'd' | 'g') if is_control => return Picked::Cancelled,
            KeyCode::Enter => return self.take(),
            KeyCode::Up | KeyCode::BackTab => return self.step(-1),
            KeyCode::Char('p' | 'k') if is_control => return self.step(-1),
            KeyCode::Down | KeyCode::Tab => return self.step(1),
            KeyCode::Char('n' | 'j') if is_control => return self.step(1),
            KeyCode::PageUp => return self.go(self.at.saturating_sub(self.page)),
            KeyCode::PageDown => return self.go((self.at + self.page).min(last)),
            KeyCode::Home => return self.go(0),
            KeyCode::End => return self.go(last),
            KeyCode::Backspace => {
                let begin = self.query.grapheme_indices(true).next_back();
                let Some((begin, _)) = begin else {
                    return Picked::None;
                };
                self.query.truncate(begin);
            }
            KeyCode::Char('u') if is_control => self.query.clear(),
            KeyCode::Char('w') if is_control => {
                let kept = self.query.trim_end();
                let begin = kept.rfind(' ').map_or(0, |space| space + 1);
                self.query.truncate(begin);
            }
            KeyCode::Char(letter) if !is_control && !is_alt => {
                if self.query.chars().count() >= MAX_QUERY {
                    return Picked::None;
                }
                self.query.push(letter);
            }
            _ => return Picked::None,
        }
        self.search();
        Picked::Moved
    }

    /// Draws the list on at most so many rows.
    pub fn draw(&mut self, columns: u16, rows: u16) -> Bottom {
        let (columns, rows) = (usize::from(columns.max(1)), usize::from(rows.max(1)));
        let preview = self.shown_preview();
        let is_beside = columns >= BESIDE_COLUMNS && !preview.is_empty();
        let space = rows.saturating_sub(FRAME_ROWS).max(1);
        let below = match is_beside {
            true => 0,
            false => preview.len().min(MAX_PREVIEW_ROWS).min(space / 2),
        };
        let list_rows = (space - below).min(self.found.len().max(1));
        let body_rows = match is_beside {
            true => list_rows.max(preview.len().min(space)),
            false => list_rows,
        };
        let list_columns = if is_beside { columns / 2 } else { columns };
        let preview: Vec<_> = preview
            .into_iter()
            .take(if is_beside { body_rows } else { below })
            .collect();
        self.scroll(list_rows);
        let mut list = self.list(list_columns, list_rows);
        if is_beside {
            list.resize(body_rows, Line::default());
            for (line, beside) in list.iter_mut().zip(&preview) {
                let gap = (list_columns + 1).saturating_sub(row::columns(line));
                line.spans.push(Span::raw(" ".repeat(gap)));
                line.spans.extend(styled(beside));
            }
        }
        let count = format!("  {} of {}", self.found.len(), self.choices.len());
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let dim = Style::new().add_modifier(Modifier::DIM);
        let mut lines = vec![
            Line::from(vec![
                Span::styled(self.title.clone(), bold),
                Span::styled(count, dim),
            ]),
            Line::from(vec![
                Span::styled("› ", bold),
                Span::raw(self.query.clone()),
            ]),
        ];
        lines.extend(list);
        if !is_beside {
            lines.extend(preview);
        }
        lines.push(Line::styled(HINT, dim));
        let cursor = Position {
            row: 1,
            column: u16::try_from(2 + width(&self.query)).unwrap_or(u16::MAX),
        };
        // A screen that is too low keeps the search text and the list.
        lines.truncate(rows.max(FRAME_ROWS));
        Bottom {
            lines,
            cursor: Some(cursor),
        }
    }

    fn shown_preview(&self) -> Vec<Line<'static>> {
        match &self.preview {
            Some(preview) if Some(preview.index) == self.highlighted() => preview.lines.clone(),
            _ => Vec::new(),
        }
    }

    fn list(&self, columns: usize, rows: usize) -> Vec<Line<'static>> {
        if self.found.is_empty() {
            let dim = Style::new().add_modifier(Modifier::DIM);
            return vec![Line::styled("  nothing found", dim)];
        }
        let shown = self.found.iter().enumerate().skip(self.top).take(rows);
        let widest = self
            .found
            .iter()
            .map(|found| width(&self.choices[*found].label));
        // The second column begins in the same place while the list scrolls.
        let label_columns = widest.max().unwrap_or(0).min(columns / 2);
        shown
            .map(|(at, found)| {
                self.entry(&self.choices[*found], at == self.at, label_columns, columns)
            })
            .collect()
    }

    fn entry(
        &self,
        choice: &Choice,
        is_highlighted: bool,
        label_columns: usize,
        columns: usize,
    ) -> Line<'static> {
        let pointer = if is_highlighted { "❯ " } else { "  " };
        let mark = choice
            .mark
            .map_or("  ".to_owned(), |mark| format!("{mark} "));
        let label_columns = match choice.detail.is_empty() {
            true => columns.saturating_sub(4),
            false => label_columns,
        };
        let label = cut(&choice.label, label_columns);
        let gap = label_columns.saturating_sub(width(&label)) + 2;
        let taken = 4 + width(&label) + gap;
        let style = match (choice.is_enabled, is_highlighted) {
            (false, _) => Style::new().add_modifier(Modifier::DIM),
            (true, true) => Style::new().add_modifier(Modifier::BOLD),
            (true, false) => Style::new(),
        };
        let mut spans = vec![Span::styled(format!("{pointer}{mark}{label}"), style)];
        if !choice.detail.is_empty() {
            let detail = cut(&choice.detail, columns.saturating_sub(taken));
            let dim = Style::new().add_modifier(Modifier::DIM);
            spans.push(Span::raw(" ".repeat(gap)));
            spans.push(Span::styled(detail, dim));
        }
        Line::from(spans)
    }

    /// Moves the part that is shown so that the highlighted choice is in it.
    fn scroll(&mut self, rows: usize) {
        self.page = rows.max(1);
        let last_top = self.found.len().saturating_sub(self.page);
        let least = (self.at + 1).saturating_sub(self.page);
        self.top = self.top.clamp(least, self.at.max(least)).min(last_top);
    }

    fn take(&self) -> Picked {
        match self.highlighted() {
            Some(index) if self.choices[index].is_enabled => Picked::Chosen(index),
            _ => Picked::None,
        }
    }

    fn step(&mut self, by: isize) -> Picked {
        let count = self.found.len().cast_signed();
        if count == 0 {
            return Picked::None;
        }
        let next = (self.at.cast_signed() + by).rem_euclid(count);
        self.go(next.cast_unsigned())
    }

    fn go(&mut self, at: usize) -> Picked {
        if at == self.at || at >= self.found.len() {
            return Picked::None;
        }
        self.at = at;
        Picked::Moved
    }

    fn search(&mut self) {
        let words: Vec<String> = self
            .query
            .split_whitespace()
            .map(str::to_lowercase)
            .collect();
        let mut found: Vec<_> = self
            .choices
            .iter()
            .enumerate()
            .filter_map(|(index, choice)| Some((distance(choice, &words)?, index)))
            .collect();
        found.sort_unstable();
        self.found = found.into_iter().map(|(_, index)| index).collect();
        let first = |found: &usize| self.choices[*found].is_enabled;
        self.at = self.found.iter().position(first).unwrap_or(0);
        self.top = 0;
    }
}

/// The distance of a choice from the words, in any order: 0 if all stand in its name, 1 if all stand in its name or its
/// detail, 2 if the letters of each stand in its name in this order. `None` if a word is missing.
fn distance(choice: &Choice, words: &[String]) -> Option<u8> {
    let (label, detail) = (choice.label.to_lowercase(), choice.detail.to_lowercase());
    let of_word = |word: &String| {
        let mut letters = label.chars();
        if label.contains(word.as_str()) {
            Some(0)
        } else if detail.contains(word.as_str()) {
            Some(1)
        } else {
            word.chars()
                .all(|wanted| letters.any(|letter| letter == wanted))
                .then_some(2)
        }
    };
    words
        .iter()
        .map(of_word)
        .try_fold(0, |most, distance| Some(most.max(distance?)))
}

/// The spans of a line, each with its whole style.
fn styled(line: &Line<'static>) -> impl Iterator<Item = Span<'static>> {
    let style = line.style;
    line.spans.iter().cloned().map(move |mut span| {
        span.style = style.patch(span.style);
        span
    })
}

#[cfg(test)]
mod tests;
