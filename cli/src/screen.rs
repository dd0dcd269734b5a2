//! Where output goes: standard output for what was asked for, standard error for the rest.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::Context as _;

use crate::style::Style;

/// The terminal, or what stands in its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    style: Style,
}

impl Screen {
    /// Colours need a terminal on standard output and nobody who objects.
    pub(crate) fn new(no_color: bool) -> Self {
        Self {
            style: Style::new(!no_color && io::stdout().is_terminal()),
        }
    }

    pub(crate) fn style(self) -> Style {
        self.style
    }

    /// Writes text as it is, at once.
    pub(crate) fn print(self, text: &str) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .context("failed to write to standard output")
    }

    /// Writes a line.
    pub(crate) fn line(self, text: &str) -> anyhow::Result<()> {
        self.print(&format!("{text}\n"))
    }

    /// Writes one JSON object as a line.
    pub(crate) fn json(self, value: &impl serde::Serialize) -> anyhow::Result<()> {
        self.line(&serde_json::to_string(value).context("failed to write JSON")?)
    }

    /// Says something beside the output.
    pub(crate) fn note(self, text: &str) {
        // Nobody is left to be told where standard error is closed.
        let _ = writeln!(io::stderr(), "{text}");
    }
}
