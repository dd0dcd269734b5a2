//! The words of a text, and what is searched for in them.
//!
//! A word is a run of letters and digits in lower case. Each letter of a script that writes no spaces is a word by
//! itself. Nothing else is kept, so nothing in a query has a meaning for the database.

use std::ops::Range;

/// Most bytes of an excerpt.
const EXCERPT_BYTES: usize = 300;

/// Bytes of the text before the hit that an excerpt shows.
const BEFORE_BYTES: usize = 100;

/// The words of a text as they are stored: each behind a space.
pub(super) fn stored(text: &str) -> String {
    let mut stored = String::with_capacity(text.len() + 1);
    for place in places(text) {
        stored.push(' ');
        stored.extend(text[place].chars().flat_map(char::to_lowercase));
    }
    stored
}

/// The pattern of `LIKE` for these words in a row; `None` without words. The last one may be the beginning of a word.
pub(super) fn pattern(text: &str) -> Option<String> {
    let words = stored(text);
    (!words.is_empty()).then(|| format!("%{words}%"))
}

/// The part of a text around the first place of this pattern.
pub(super) fn excerpt(text: &str, pattern: &str) -> String {
    let wanted = pattern.trim_matches('%');
    let wanted = wanted.split(' ').find(|word| !word.is_empty());
    let wanted = wanted.unwrap_or_default();
    let is_hit = |place: &Range<usize>| {
        let letters = text[place.clone()].chars();
        let word: String = letters.flat_map(char::to_lowercase).collect();
        word.starts_with(wanted)
    };
    let hit = places(text).find(is_hit).map_or(0, |place| place.start);
    let mut from = text.floor_char_boundary(hit.saturating_sub(BEFORE_BYTES));
    // A word is not cut where that is easy.
    if from > 0
        && let Some(space) = text[from..hit].find(char::is_whitespace)
    {
        from += space;
    }
    let until = text.floor_char_boundary(from + EXCERPT_BYTES - "… …".len());
    let shown: Vec<_> = text[from..until].split_whitespace().collect();
    let [before, after] = [(from > 0, "… "), (until < text.len(), " …")]
        .map(|(is_cut, mark)| if is_cut { mark } else { "" });
    format!("{before}{}{after}", shown.join(" "))
}

/// The places of the words of a text, in order.
fn places(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text[from..].find(char::is_alphanumeric)?;
        let first = text[start..].chars().next()?;
        let alone = start + first.len_utf8();
        from = match is_alone(first) {
            true => alone,
            false => {
                let rest = &text[alone..];
                let end = rest.find(|letter: char| !letter.is_alphanumeric() || is_alone(letter));
                end.map_or(text.len(), |end| alone + end)
            }
        };
        Some(start..from)
    })
}

/// True for letters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana and Han.
fn is_alone(letter: char) -> bool {
    matches!(letter,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_letters_and_digits_in_lower_case() {
        assert_eq!(stored("It's OVER: 9000_x!"), " it s over 9000 x");
        assert_eq!(stored("Über ÄRGER"), " über ärger");
        assert_eq!(stored("用Rust写"), " 用 rust 写");
        assert_eq!(stored(" '*%_\0 "), "");
        assert_eq!(pattern("%' OR"), Some("% or%".to_owned()));
        assert_eq!(pattern("*"), None);
    }

    #[test]
    fn an_excerpt_is_around_the_hit_and_has_its_bound() {
        let text = format!(
            "{} the Needle is here {}",
            "äß ".repeat(400),
            "中".repeat(400)
        );
        let shown = excerpt(&text, "% needle%");
        assert!(shown.contains("the Needle is here"), "{shown}");
        assert!(shown.starts_with("… ") && shown.ends_with(" …"), "{shown}");
        assert!(shown.len() <= EXCERPT_BYTES, "{}", shown.len());
        assert_eq!(excerpt("a needle\nhere", "% needle%"), "a needle here");
        assert_eq!(excerpt("", "% needle%"), "");
    }
}
