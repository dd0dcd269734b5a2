//! Foreign words for our messages: one line, bounded, without the key.

use shared_types::clean::clean_line;

use super::Named;
use crate::ApiKey;

/// Longest quotation in a message, in characters.
const MAX_CHARS: usize = 400;

/// Makes a server's words fit to be shown, and names the options that a remedy is about.
#[derive(Debug, Clone)]
pub(super) struct Quotes {
    key: Option<ApiKey>,
    pub(super) named: Named,
}

impl Quotes {
    /// Quotations that never show `key`.
    pub(super) fn new(key: Option<ApiKey>, named: Named) -> Self {
        Self { key, named }
    }

    /// `text` in one line: each run of white space is one space, and what drives a terminal vanishes.
    pub(super) fn line(&self, text: &str) -> String {
        // The key goes first: a cut through its middle would hide it from the search.
        let text = match &self.key {
            Some(key) => key.redact(text),
            None => text.to_owned(),
        };
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        clean_line(&line, MAX_CHARS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_on_the_edge_of_the_cut_does_not_show_in_part() {
        let quotes = Quotes::new(ApiKey::new("sk-0123456789"), Named::default());
        let quoted = quotes.line(&format!("{}sk-0123456789", "x".repeat(MAX_CHARS - 5)));
        assert!(!quoted.contains("sk-0"), "{quoted}");
    }

    #[test]
    fn a_quotation_is_one_bounded_line_without_control_characters() {
        let quotes = Quotes::new(None, Named::default());
        assert_eq!(quotes.line(" a\n\tb\u{1b}[31m "), "a b");
        let long = quotes.line(&"é".repeat(2 * MAX_CHARS));
        assert_eq!(long.chars().count(), MAX_CHARS + 1);
    }
}
