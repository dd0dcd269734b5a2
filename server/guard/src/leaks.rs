//! Secrets that a text has in a known form: vendors' keys, tokens, private keys, passwords.
//!
//! A form is a row of [`FORMS`]. Most have a prefix that their vendor chose for scanners. The others stand behind a
//! name such as `password=`, and need a value that looks random. Digests, ids and encoded files have neither.

mod form;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use crate::table::PatternTable;
use form::FORMS;

/// Fewer bytes make a secret short: nothing of it is kept.
const LONG_SECRET: usize = 20;
/// The most leading characters of a long secret that stay.
const KEPT_CHARS: usize = 4;
/// The most bytes between the two lines of a private key.
const MAX_PEM_BYTES: usize = 64 * 1024;

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// Its bytes in the text.
    pub range: Range<usize>,
    /// Its kind, in words for people.
    pub kind: &'static str,
    /// True if its first characters say only who made it.
    has_prefix: bool,
}

/// The secrets in the text, from the left and without overlap.
pub fn find(text: &str) -> Vec<Leak> {
    static TABLE: LazyLock<PatternTable> =
        LazyLock::new(|| PatternTable::new(FORMS.iter().map(|form| form.pattern)));
    let mut leaks: Vec<Leak> = Vec::new();
    let found = TABLE.find(text, |row, secret| (FORMS[row].is_it)(secret));
    for (row, mut range) in found {
        let form = &FORMS[row];
        if form.is_block {
            range.end = end_of_block(text, range.end);
        }
        // A private key that is cut off may have taken in the beginning of what follows it.
        let free = leaks.last().map_or(0, |last| last.range.end);
        let has_prefix = form.has_prefix && range.start >= free;
        range.start = range.start.max(free);
        if range.start >= range.end {
            continue;
        }
        leaks.push(Leak {
            range,
            kind: form.kind,
            has_prefix,
        });
    }
    leaks
}

/// The text with a mark in place of each secret, such as `ghp_… [GitHub token redacted]`.
pub fn redact(text: &str) -> Cow<'_, str> {
    let leaks = find(text);
    if leaks.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut redacted = String::with_capacity(text.len());
    let mut from = 0;
    for leak in leaks {
        redacted.push_str(&text[from..leak.range.start]);
        if leak.has_prefix && leak.range.len() >= LONG_SECRET {
            redacted.extend(text[leak.range.clone()].chars().take(KEPT_CHARS));
            redacted.push_str("… ");
        }
        redacted.push_str(&format!("[{} redacted]", leak.kind));
        from = leak.range.end;
    }
    redacted.push_str(&text[from..]);
    Cow::Owned(redacted)
}

/// The end of a private key whose first line ends there: behind its last line, or, where that is cut off, behind
/// all that can be of it.
fn end_of_block(text: &str, from: usize) -> usize {
    const LAST_LINE: &str = "PRIVATE KEY-----";
    let most = text.floor_char_boundary(from.saturating_add(MAX_PEM_BYTES));
    let body = &text[from..most];
    let closed = body.find("-----END ").and_then(|end| {
        let last = body[end..].find(LAST_LINE)?;
        Some(from + end + last + LAST_LINE.len())
    });
    let of_key = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=\\ \r\n".contains(byte);
    closed.unwrap_or_else(|| from + body.bytes().take_while(|byte| of_key(byte)).count())
}
