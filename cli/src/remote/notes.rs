//! Notes to the person, beside the output.

use shared_types::clean::clean_line;

use crate::screen::Screen;

/// Longest line about an operation, in characters.
const MAX_WORDS: usize = 400;

/// The place of the notes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Notes {
    pub(super) screen: Screen,
    /// True while the terminal is in raw mode.
    pub(super) is_raw: bool,
}

impl Notes {
    pub(super) fn say(self, text: &str) {
        let text = clean_line(text, MAX_WORDS);
        match self.is_raw {
            true => self.lines(&format!("gantry: {text}")),
            false => self.screen.note(&format!("gantry: {text}")),
        }
    }

    /// In raw mode a line ends with a carriage return too, and begins wherever the cursor is.
    pub(super) fn lines(self, text: &str) {
        self.screen
            .note(&format!("\r\n{}\r", text.replace('\n', "\r\n")));
    }
}
