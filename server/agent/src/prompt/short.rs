//! The texts in place of parts that are too long to be sent.

use crate::{
    tools::Handle,
    transcript::{Call, SentAs},
};

/// Results and arguments up to this length stay as they are: what stands in their place has about
/// half of it.
const STAYS_BYTES: usize = 256;

/// The fewest bytes that one text may be cut to.
pub(super) const LEAST_TEXT: usize = 256;

/// Room for the line that says what is missing.
const MARKER_BYTES: usize = 96;

/// The text, or its beginning and its end where it has more bytes; `what` it is a part of. At least
/// [`LEAST_TEXT`] bytes are sent.
pub(super) fn shorten(text: &str, at_most: usize, what: &str) -> String {
    let at_most = at_most.max(LEAST_TEXT);
    if text.len() <= at_most {
        return text.to_owned();
    }
    let room = at_most - MARKER_BYTES;
    let head = &text[..text.floor_char_boundary(room / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - room / 2)..];
    let left_out = grouped(text.len() - head.len() - tail.len());
    format!("{head}\n[… {left_out} bytes of this {what} are left out here, to make room …]\n{tail}")
}

/// The texts in place of long parts of a call; nothing for a part that is short.
pub(super) struct Short {
    /// A JSON object, because vendors read arguments.
    pub(super) arguments: Option<String>,
    pub(super) result: Option<String>,
    saved: usize,
}

impl Short {
    pub(super) fn of(call: &Call) -> Self {
        let given = call.asked.arguments.as_str();
        let told = call.result.as_ref().map(|result| result.parts.words());
        let told = told.as_deref().unwrap_or_default();
        let handle = Handle::Result(call.number);
        let stale = match call.sent {
            SentAs::Masked { stale_by: Some(by) } => {
                format!("; the file was changed since, by r{by}")
            }
            _ => String::new(),
        };
        let arguments = short(given, |bytes| {
            format!(r#"{{"left_out":"{bytes} bytes of arguments, to make room"}}"#)
        });
        let result = short(told, |bytes| {
            format!(
                "[left out: {bytes} bytes of output, to make room; they are stored as {handle}{stale}]"
            )
        });
        let saved = |whole: &str, short: &Option<String>| match short {
            Some(short) => whole.len() - short.len(),
            None => 0,
        };
        Self {
            saved: saved(given, &arguments) + saved(told, &result),
            arguments,
            result,
        }
    }

    /// The number of bytes by which the call becomes shorter.
    pub(super) fn saved(&self) -> usize {
        self.saved
    }
}

fn short(whole: &str, say: impl FnOnce(String) -> String) -> Option<String> {
    (whole.len() > STAYS_BYTES).then(|| say(grouped(whole.len())))
}

/// A number with a comma between each three digits: `12,345`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_grouped_by_thousands() {
        let all = [0, 999, 1_000, 12_345, 1_234_567].map(grouped);
        assert_eq!(all, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }

    #[test]
    fn of_a_long_text_the_beginning_and_the_end_stay_and_what_is_missing_is_said() {
        let text = format!("first{}last", "ä".repeat(5_000));
        let cut = shorten(&text, 1_000, "message");
        assert!(cut.len() <= 1_000 && cut.len() > 950, "{}", cut.len());
        assert!(cut.starts_with("firstä") && cut.ends_with("älast"), "{cut}");
        let kept = cut.matches('ä').count() * 2 + "firstlast".len();
        let said = format!("{} bytes of this message", grouped(text.len() - kept));
        assert!(cut.contains(&said), "{said}: {cut}");
        assert_eq!(shorten(&text, text.len(), "message"), text);
    }
}
