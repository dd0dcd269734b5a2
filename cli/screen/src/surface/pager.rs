//! A view of lines on the whole screen. The alternate screen is the caller's: `Modes::full_screen`.

use std::fmt::{self, Write as _};

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui_core::{
    style::{Modifier, Style},
    text::{Line, Span},
};
use shared_types::clean::clean_line;

use super::{Colours, Size, row};

/// Longest search text, in characters.
const MAX_QUERY: usize = 200;

/// Longest title, in characters.
const MAX_TITLE: usize = 100;

/// The outcome of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paged {
    /// Nothing changed.
    None,
    /// The view must be drawn again.
    Moved,
    /// The view was left.
    Left,
}

/// A view of lines.
pub struct Pager {
    title: String,
    colours: Colours,
    lines_at: Box<dyn Fn(u16) -> Vec<Line<'static>> + Send>,
    lines: Vec<Line<'static>>,
    /// The size at which the lines were made.
    size: Option<Size>,
    top: usize,
    /// The text that was searched for last.
    searched: String,
    /// The search text while it is typed.
    typing: Option<String>,
    is_missing: bool,
}

impl fmt::Debug for Pager {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Pager")
            .field("title", &self.title)
            .field("size", &self.size)
            .field("top", &self.top)
            .finish_non_exhaustive()
    }
}

impl Pager {
    /// Makes a view. `lines_at` makes the lines for a number of columns; it is called again after a resize.
    pub fn new(title: &str, lines_at: impl Fn(u16) -> Vec<Line<'static>> + Send + 'static) -> Self {
        Self {
            title: clean_line(title, MAX_TITLE),
            colours: Colours::default(),
            lines_at: Box::new(lines_at),
            lines: Vec::new(),
            size: None,
            top: 0,
            searched: String::new(),
            typing: None,
            is_missing: false,
        }
    }

    /// The view with these colours.
    #[must_use]
    pub fn with_colours(mut self, colours: Colours) -> Self {
        self.colours = colours;
        self
    }

    /// The view with its last lines shown first.
    #[must_use]
    pub fn from_end(mut self) -> Self {
        self.top = usize::MAX;
        self
    }

    /// Makes the lines again with the next drawing, because what they show has changed.
    pub fn refresh(&mut self) {
        self.size = None;
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Paged {
        if key.kind == KeyEventKind::Release {
            return Paged::None;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && matches!(key.code, KeyCode::Char('c' | 'o')) {
            return Paged::Left;
        }
        if self.typing.is_some() {
            return self.search_key(key);
        }
        self.is_missing = false;
        let page = self.page().saturating_sub(1).max(1);
        let half = self.page().div_ceil(2);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Paged::Left,
            KeyCode::Char('u') if is_control => self.top = self.top.saturating_sub(half),
            KeyCode::Char('d') if is_control => self.top = self.top.saturating_add(half),
            KeyCode::Up | KeyCode::Char('k') => self.top = self.top.saturating_sub(1),
            KeyCode::Down | KeyCode::Enter | KeyCode::Char('j') => {
                self.top = self.top.saturating_add(1);
            }
            KeyCode::PageUp | KeyCode::Char('b') => self.top = self.top.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ' | 'f') => {
                self.top = self.top.saturating_add(page);
            }
            KeyCode::Home | KeyCode::Char('g') => self.top = 0,
            KeyCode::End | KeyCode::Char('G') => self.top = usize::MAX,
            KeyCode::Char('/') => self.typing = Some(String::new()),
            KeyCode::Char('n') => self.find_after(self.top.saturating_add(1)),
            KeyCode::Char('N') => self.find_before(self.top),
            _ => return Paged::None,
        }
        self.top = self.top.min(self.last_top());
        Paged::Moved
    }

    /// Returns the bytes that draw the whole screen.
    pub fn draw(&mut self, size: Size) -> Vec<u8> {
        self.fit(size);
        let columns = usize::from(size.columns.max(1));
        let mut out = "\x1b[?2026h\x1b[?25l\x1b[?7l".to_owned();
        let last = self.lines.len().min(self.top + self.page());
        for at in 0..self.page() {
            let _ = write!(out, "\x1b[{};1H\x1b[K", at + 1);
            if self.top + at < last {
                let line = emphasized(&self.lines[self.top + at], &self.searched);
                out.push_str(&row::render(&line, columns, self.colours).text);
            }
        }
        let status = row::render(&self.status(last), columns, self.colours);
        let _ = write!(out, "\x1b[{};1H\x1b[K{}", size.rows.max(1), status.text);
        if self.typing.is_some() {
            out.push_str("\x1b[?25h");
        }
        out.push_str("\x1b[?7h\x1b[?2026l");
        out.into_bytes()
    }

    /// Makes the lines for this size, if they are not there. What stood at the top stays about there.
    fn fit(&mut self, size: Size) {
        let before = self.size.replace(size);
        if before.is_none_or(|before| before.columns != size.columns) {
            let count = self.lines.len().max(1);
            self.lines = (self.lines_at)(size.columns.max(1));
            // A height that was reached only in parts of the old lines.
            if before.is_some() && self.top != usize::MAX {
                self.top = self.top.saturating_mul(self.lines.len()) / count;
            }
        }
        self.top = self.top.min(self.last_top());
    }

    fn status(&self, last: usize) -> Line<'static> {
        let reversed = Style::new().add_modifier(Modifier::REVERSED);
        if let Some(typing) = &self.typing {
            return Line::raw(format!("/{typing}"));
        }
        let count = self.lines.len();
        let percent = (last * 100).checked_div(count).unwrap_or(100);
        let first = (self.top + 1).min(count);
        let place = format!(" {} · {first}–{last} of {count} · {percent}% ", self.title);
        let hint = match self.is_missing {
            true => format!("not found: {}", self.searched),
            false => "q leaves · Space b g G · / search".to_owned(),
        };
        let dim = Style::new().add_modifier(Modifier::DIM);
        Line::from(vec![
            Span::styled(place, reversed),
            Span::raw(" "),
            Span::styled(hint, dim),
        ])
    }

    /// The rows for lines: all but the status row.
    fn page(&self) -> usize {
        let rows = self.size.map_or(1, |size| size.rows);
        usize::from(rows).saturating_sub(1).max(1)
    }

    fn last_top(&self) -> usize {
        self.lines.len().saturating_sub(self.page())
    }

    fn search_key(&mut self, key: KeyEvent) -> Paged {
        let Some(typing) = &mut self.typing else {
            return Paged::None;
        };
        match key.code {
            KeyCode::Esc => self.typing = None,
            KeyCode::Enter => {
                let typed = std::mem::take(typing);
                self.typing = None;
                if !typed.is_empty() {
                    self.searched = typed;
                }
                self.find_after(self.top);
            }
            KeyCode::Backspace => {
                if typing.pop().is_none() {
                    self.typing = None;
                }
            }
            KeyCode::Char(letter)
                if !key.modifiers.contains(KeyModifiers::CONTROL)
                    && typing.chars().count() < MAX_QUERY =>
            {
                typing.push(letter);
            }
            _ => return Paged::None,
        }
        Paged::Moved
    }

    /// Goes to the first line with the search text from here on, or from the beginning.
    fn find_after(&mut self, from: usize) {
        let has = |at: &usize| !matches(&letters(&self.lines[*at]), &self.searched).is_empty();
        let from = from.min(self.lines.len());
        let found = (from..self.lines.len()).find(has);
        let found = found.or_else(|| (0..from).find(has));
        self.go_found(found);
    }

    /// Goes to the last line with the search text before here, or before the end.
    fn find_before(&mut self, from: usize) {
        let has = |at: &usize| !matches(&letters(&self.lines[*at]), &self.searched).is_empty();
        let from = from.min(self.lines.len());
        let found = (0..from).rev().find(has);
        let found = found.or_else(|| (from..self.lines.len()).rev().find(has));
        self.go_found(found);
    }

    fn go_found(&mut self, found: Option<usize>) {
        self.is_missing = found.is_none() && !self.searched.is_empty();
        if let Some(found) = found {
            self.top = found.min(self.last_top());
        }
    }
}

/// A letter of a line and its style.
#[derive(Clone, Copy)]
struct Letter {
    letter: char,
    style: Style,
}

fn letters(line: &Line<'static>) -> Vec<Letter> {
    let of_span = |span: &Span<'static>| {
        let style = line.style.patch(span.style);
        let letters = span.content.chars();
        letters
            .map(move |letter| Letter { letter, style })
            .collect::<Vec<_>>()
    };
    line.spans.iter().flat_map(of_span).collect()
}

/// The places of a text in a line, without regard to capitals.
fn matches(letters: &[Letter], text: &str) -> Vec<usize> {
    let small = |letter: char| letter.to_lowercase().next().unwrap_or(letter);
    let wanted: Vec<char> = text.chars().map(small).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    letters
        .windows(wanted.len())
        .enumerate()
        .filter(|(_, window)| {
            let mut pairs = window.iter().zip(&wanted);
            pairs.all(|(letter, wanted)| small(letter.letter) == *wanted)
        })
        .map(|(at, _)| at)
        .collect()
}

/// The line with the search text reversed.
fn emphasized(line: &Line<'static>, text: &str) -> Line<'static> {
    let mut letters = letters(line);
    let found = matches(&letters, text);
    if found.is_empty() {
        return line.clone();
    }
    let length = text.chars().count();
    for at in found {
        for letter in &mut letters[at..at + length] {
            letter.style = letter.style.add_modifier(Modifier::REVERSED);
        }
    }
    let same = letters.chunk_by(|one, other| one.style == other.style);
    let spans = same.map(|chunk| {
        let content: String = chunk.iter().map(|letter| letter.letter).collect();
        Span::styled(content, chunk[0].style)
    });
    Line::from(spans.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
