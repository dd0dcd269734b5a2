//! The two outputs: standard output for requested data, standard error for the rest.

use std::{
    fmt,
    io::{self, IsTerminal as _, Write as _},
};

use anyhow::Context as _;
use shared_types::clean::is_harmless;
use unicode_width::UnicodeWidthStr as _;

use crate::style::Style;

/// The width of a terminal that does not tell it.
const USUAL_COLUMNS: usize = 80;

/// Standard output is a pipe that its reader has closed. The program ends without a word, as SIGPIPE would end it.
#[derive(Debug)]
pub(crate) struct ReaderGone;

impl fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reader of standard output is gone")
    }
}

impl std::error::Error for ReaderGone {}

/// The terminal, or the file or pipe in its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    style: Style,
    /// True if lines can be erased again.
    is_live: bool,
}

impl Screen {
    /// Colours need a terminal on standard output, and no `no_color`; a line that changes needs
    /// one that is not dumb.
    pub(crate) fn new(no_color: bool, is_dumb: bool) -> Self {
        let is_live = !is_dumb && io::stdout().is_terminal();
        Self {
            style: Style::new(!no_color && is_live),
            is_live,
        }
    }

    /// The terminal's present width in columns; `None` if output goes elsewhere.
    pub(crate) fn columns(self) -> Option<usize> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
        let columns = size.map_or(0, |size| usize::from(size.ws_col));
        match io::stdout().is_terminal() {
            true if columns == 0 => Some(USUAL_COLUMNS),
            true => Some(columns),
            false => None,
        }
    }

    /// The height of a terminal from which lines may be taken away.
    pub(crate) fn live_rows(self) -> Option<usize> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        let rows = usize::from(size.ws_row);
        (self.is_live && rows > 0).then_some(rows)
    }

    /// The width of the terminal on which standard error is, if it is one.
    fn error_columns(self) -> Option<usize> {
        let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
        Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
    }

    /// Text for the terminal, if there is one: its lines are broken between words.
    pub(crate) fn fold(self, text: &str) -> String {
        match self.columns() {
            Some(columns) => folded(text, columns),
            None => text.to_owned(),
        }
    }

    /// The width of a terminal whose last line may change.
    pub(crate) fn live_columns(self) -> Option<usize> {
        self.columns().filter(|_| self.is_live)
    }

    pub(crate) fn style(self) -> Style {
        self.style
    }

    /// Writes text as it is, at once.
    ///
    /// # Errors
    /// Fails with [`ReaderGone`], or if standard output cannot be written for another reason.
    pub(crate) fn print(self, text: &str) -> anyhow::Result<()> {
        self.write(text.as_bytes())
    }

    /// Writes bytes unchanged and flushes them.
    ///
    /// # Errors
    /// Fails as [`print`](Self::print) does.
    pub(crate) fn write(self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        match out.write_all(bytes).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(ReaderGone.into()),
            written => written.context("failed to write to standard output"),
        }
    }

    /// Writes a line.
    pub(crate) fn line(self, text: &str) -> anyhow::Result<()> {
        self.print(&format!("{text}\n"))
    }

    /// Writes one JSON object as a line.
    pub(crate) fn json(self, value: &impl serde::Serialize) -> anyhow::Result<()> {
        let json = serde_json::to_string(value).context("failed to write JSON")?;
        self.line(&harmless(&json))
    }

    /// Says something beside the output.
    pub(crate) fn note(self, text: &str) {
        let text = match self.error_columns() {
            // A terminal that passes every key on begins no line by itself.
            Some(columns) => folded(text, columns).replace('\n', "\r\n"),
            None => text.to_owned(),
        };
        // If standard error is closed, there is no reader to tell.
        let _ = writeln!(io::stderr(), "{text}");
    }
}

/// JSON that drives no terminal. A program reads the same.
fn harmless(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        match is_harmless(letter) {
            true => text.push(letter),
            false => text.push_str(&format!("\\u{:04x}", u32::from(letter))),
        }
    }
    text
}

/// The text with its lines broken between words, where they are too long.
fn folded(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut used = 0;
        for word in line.split_inclusive(' ') {
            let width = word.trim_end().width();
            if used > 0 && used + width > columns {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                used = 0;
            }
            out.push_str(word);
            used += word.width();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_between_words_and_a_longer_word_is_whole() {
        assert_eq!(folded("ask who invites\nyou", 8), "ask who\ninvites\nyou");
        assert_eq!(folded("  a 漢字漢字 b", 8), "  a\n漢字漢字\nb");
        assert_eq!(
            folded("https://gantry.example/x y", 8),
            "https://gantry.example/x\ny"
        );
        assert_eq!(folded("fits", 4), "fits");
    }

    #[test]
    fn json_drives_no_terminal_and_says_the_same() {
        let text = "a\u{9b}2J \u{202e}b \x1b[2J \u{fc}";
        let json = harmless(&serde_json::to_string(text).expect("text"));
        assert!(
            json.chars().all(is_harmless) && json.contains('\u{fc}'),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<String>(&json).expect("JSON"), text);
    }
}
