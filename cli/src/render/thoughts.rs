//! The thoughts of a model before it answers. They are dim, and each line begins with a mark that
//! tells them from the answer if there are no colours.

use shared_types::TurnId;

use super::clean::Clean;
use crate::style::Style;

/// Stands before each line.
const MARK: &str = "│ ";

/// The thoughts that are being shown.
#[derive(Debug)]
pub(super) struct Thoughts {
    pub(super) place: (TurnId, u32),
    pub(super) attempt: u32,
    clean: Clean,
    is_begun: bool,
    is_line_open: bool,
    /// Ends of lines that are written once something follows them.
    line_ends: usize,
}

impl Thoughts {
    pub(super) fn new(place: (TurnId, u32), attempt: u32) -> Self {
        Self {
            place,
            attempt,
            clean: Clean::default(),
            is_begun: false,
            is_line_open: false,
            line_ends: 0,
        }
    }

    /// Writes a piece.
    pub(super) fn say(&mut self, piece: &str, style: Style, out: &mut String) {
        let piece = self.clean.take(piece);
        for part in piece.split_inclusive('\n') {
            let line = part.trim_end_matches('\n');
            if !line.is_empty() {
                self.line(line, style, out);
            }
            self.line_ends += part.len() - line.len();
        }
    }

    /// True if the last line has not ended.
    pub(super) fn is_line_open(&self) -> bool {
        self.is_line_open
    }

    /// Ends the open line; whether there was one.
    pub(super) fn break_line(&mut self) -> bool {
        self.line_ends = 0;
        std::mem::take(&mut self.is_line_open)
    }

    fn line(&mut self, text: &str, style: Style, out: &mut String) {
        let mark = style.dim(MARK);
        let line_ends = std::mem::take(&mut self.line_ends);
        if self.is_begun && line_ends > 0 {
            let empty_lines = line_ends - usize::from(self.is_line_open);
            if self.is_line_open {
                out.push('\n');
            }
            out.push_str(&format!("{}\n", mark.trim_end()).repeat(empty_lines));
            self.is_line_open = false;
        }
        if !self.is_line_open {
            out.push_str(&mark);
        }
        out.push_str(&style.dim(text));
        self.is_begun = true;
        self.is_line_open = true;
    }
}
