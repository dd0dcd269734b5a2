//! The vendor's key: goes out in one header and shows nowhere else.

use std::fmt;

use shared_types::clean::without_mark;

/// A shorter key is a placeholder such as `none`, which local servers want; to remove it from a
/// text would only mangle words.
const SECRET_FROM_BYTES: usize = 8;

/// A vendor's key. It has no `Display` and its `Debug` form hides it.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    /// The key in `text`, without surrounding white space and a mark at its beginning; `None` where nothing is left, which
    /// is how an empty environment variable means "no key".
    pub fn new(text: &str) -> Option<Self> {
        let text = without_mark(text).trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The key itself, for the header that carries it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// `text` without the key, wherever a vendor quotes it.
    pub(crate) fn redact(&self, text: &str) -> String {
        if self.0.len() < SECRET_FROM_BYTES {
            return text.to_owned();
        }
        text.replace(&self.0, "[key]")
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_neither_in_debug_output_nor_in_a_redacted_text() {
        let key = ApiKey::new(" sk-very-secret\n").expect("it is not empty");
        assert_eq!(format!("{key:?}"), "ApiKey(…)");
        assert_eq!(key.redact("bad key sk-very-secret!"), "bad key [key]!");
    }

    #[test]
    fn nothing_but_white_space_is_no_key() {
        assert!(ApiKey::new(" \n").is_none());
    }

    #[test]
    fn a_placeholder_key_leaves_texts_alone() {
        let key = ApiKey::new("none").expect("it is not empty");
        assert_eq!(key.redact("none of it"), "none of it");
    }
}
