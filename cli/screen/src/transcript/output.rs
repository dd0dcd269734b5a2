//! The output of a program as it streams, bounded and harmless.

/// The colours and weights that a program gave a piece of its text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SgrStyle {
    /// The colour, 0 to 15 of the terminal's theme.
    pub colour: Option<u8>,
    /// Bold.
    pub bold: bool,
    /// Dim.
    pub dim: bool,
    /// Italic.
    pub italic: bool,
    /// Underlined.
    pub underlined: bool,
}

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
    lines: Vec<OutputLine>,
}

impl Output {
    /// Takes the next text, wherever it is cut.
    pub fn push(&mut self, text: &str) {
        let text = shared_types::clean::clean(text);
        let lines = text.lines();
        self.lines.extend(
            lines.map(|line| OutputLine::Text(vec![(line.to_owned(), SgrStyle::default())])),
        );
    }

    /// Marks bytes that never arrived.
    pub fn gap(&mut self, bytes: u64) {
        self.lines.push(OutputLine::Gap { bytes });
    }

    /// The lines that are kept, in order.
    pub fn lines(&self) -> Vec<OutputLine> {
        self.lines.clone()
    }

    /// The number of lines of text, with those that were not kept.
    pub fn line_count(&self) -> u64 {
        self.lines.len() as u64
    }

    /// True if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}
