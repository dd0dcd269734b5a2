//! JSON from servers that are not exact about it.

use serde_json::Value;

/// A byte order mark.
pub(super) const BOM: &str = "\u{feff}";

/// The value. A byte order mark before it is passed over; bytes that are not UTF-8 and halves of
/// surrogate pairs become U+FFFD.
///
/// # Errors
/// Fails if it is not JSON even so.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    parse_with(bytes, |text| mend(text, &mut None, false))
}

/// Parses one piece of a stream. A surrogate pair may be divided between two pieces. The first half at the end of a
/// string is held, and joined with the second half at the beginning of a string of a later piece.
///
/// # Errors
/// Fails as [`parse`] does.
pub(super) fn parse_piece(
    bytes: &[u8],
    held: &mut Option<u32>,
) -> Result<Value, serde_json::Error> {
    parse_with(bytes, |text| mend(text, held, true))
}

fn parse_with(
    bytes: &[u8],
    mend: impl FnOnce(&str) -> Option<String>,
) -> Result<Value, serde_json::Error> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start();
    let text = text.strip_prefix(BOM).unwrap_or(text);
    serde_json::from_str(text).or_else(|error| match mend(text) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    })
}

/// The text with its lone surrogates joined or replaced; `None` where it has none. `held` is a first half of an
/// earlier piece.
fn mend(text: &str, held: &mut Option<u32>, is_piece: bool) -> Option<String> {
    let first_half = *held;
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_mended = false;
    while let Some(place) = rest.find('\\') {
        let (before, escape) = rest.split_at(place);
        mended.push_str(before);
        let length = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(half @ 0xd800..=0xdfff), _) => {
                is_mended = true;
                let begins = mended.ends_with('"') && !mended.ends_with("\\\"");
                let ends = escape[6..].starts_with('"');
                match (half, first_half) {
                    (0xdc00.., Some(first)) if begins => {
                        *held = None;
                        mended.push_str(&format!("\\u{first:04x}\\u{half:04x}"));
                    }
                    (..0xdc00, _) if is_piece && ends => *held = Some(half),
                    _ => mended.push_str("\\ufffd"),
                }
                rest = &escape[6..];
                continue;
            }
            (Some(_), _) => 6,
            // The letter after it may take more than one byte.
            (None, _) => escape.chars().take(2).map(char::len_utf8).sum(),
        };
        mended.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    mended.push_str(rest);
    is_mended.then_some(mended)
}

/// The UTF-16 unit that an escape at the beginning stands for.
fn unit(escape: &str) -> Option<u32> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_and_halves_of_pairs_do_not_spoil_the_value() {
        for (text, expected) in [
            ("\u{feff}{\"a\":1}", json!({ "a": 1 })),
            (" \n\u{feff}\"a\"", json!("a")),
            (r#""\ud83d""#, json!("\u{fffd}")),
            (r#""a\udE00b""#, json!("a\u{fffd}b")),
            (r#""\ud83d\n\ude00""#, json!("\u{fffd}\n\u{fffd}")),
            (r#""\ud83d\ud83d\ude00""#, json!("\u{fffd}😀")),
            (r#""\\ud83d \ud83d ä\"""#, json!("\\ud83d \u{fffd} ä\"")),
            (r#""\ud83d\ude00""#, json!("😀")),
        ] {
            let value = parse(text.as_bytes()).expect("it is JSON");
            assert_eq!(value, expected, "{text}");
        }
        assert_eq!(
            parse(b"\"a\xffb\"").expect("it is JSON"),
            json!("a\u{fffd}b")
        );
    }

    #[test]
    fn what_is_no_json_stays_an_error() {
        for text in [
            "",
            "{oops",
            r#"{"a":"\ud83d"#,
            r#""\u12""#,
            "\"\\",
            "\"\\ä\"",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
