//! Cutting pieces of output whose text stands for bytes that were not all UTF-8.

/// Cuts from `text`, which stands for `bytes` bytes, the part that stands for the first `known`
/// bytes.
///
/// A replacement character stands for one to three bytes, and the text does not say how many.
/// The bytes that are not accounted for are shared out evenly; where that is not exact, the cut
/// may be off by the bytes of one damaged character, and never by text that is intact.
pub(super) fn without(mut text: String, bytes: u64, known: u64) -> String {
    if known == 0 {
        return text;
    }
    let replaced = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER);
    let replaced = replaced.count() as u64;
    let intact = text.len() as u64 - replaced * char::REPLACEMENT_CHARACTER.len_utf8() as u64;
    let unaccounted = bytes.saturating_sub(intact);
    let mut seen = 0;
    let mut damaged = 0;
    let cut = text
        .char_indices()
        .find(|(_, letter)| {
            if seen >= known {
                return true;
            }
            if *letter == char::REPLACEMENT_CHARACTER {
                seen += unaccounted * (damaged + 1) / replaced - unaccounted * damaged / replaced;
                damaged += 1;
            } else {
                seen += letter.len_utf8() as u64;
            }
            false
        })
        .map_or(text.len(), |(place, _)| place);
    text.drain(..cut);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intact_text_is_cut_at_the_byte() {
        assert_eq!(without("hällo".into(), 6, 3), "llo");
        assert_eq!(without("hello".into(), 5, 0), "hello");
        assert_eq!(without("hello".into(), 5, 5), "");
    }

    #[test]
    fn replaced_bytes_are_counted_as_what_they_were() {
        // ff 'a' ff 'b'
        let text = String::from_utf8_lossy(b"\xffa\xffb").into_owned();
        assert_eq!(without(text.clone(), 4, 1), "a\u{fffd}b");
        assert_eq!(without(text.clone(), 4, 2), "\u{fffd}b");
        assert_eq!(without(text, 4, 3), "b");
    }
}
