//! Colours, where they are wanted.

/// The colours of text, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colours: bool,
}

impl Style {
    pub(crate) fn new(colours: bool) -> Self {
        Self { colours }
    }

    /// True if text has colours.
    pub(crate) fn has_colours(self) -> bool {
        self.colours
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.wrap("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.wrap("33", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if !self.colours || text.is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
