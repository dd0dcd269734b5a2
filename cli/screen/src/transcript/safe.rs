//! Text of strangers, made harmless before it enters the transcript.

use shared_types::clean;

/// Longest notice, reason or name, in characters.
pub(crate) const MOST_WORDS: usize = 400;

/// A text whose invisible letters are left out.
pub(crate) fn text(text: &str) -> String {
    seen(&clean::clean(text))
}

/// One line of at most [`MOST_WORDS`] letters.
pub(crate) fn line(text: &str) -> String {
    clean::clean_line(&seen(text), MOST_WORDS)
}

/// A text with the place of each invisible letter and of each control character: what a person has to judge is all
/// there.
pub(crate) fn whole(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => out.push(letter),
            '\u{7f}' => out.push('\u{2421}'),
            control @ '\0'..'\u{20}' => out.push(
                char::from_u32(0x2400 + u32::from(control)).unwrap_or(char::REPLACEMENT_CHARACTER),
            ),
            letter if is_invisible(letter) || is_joiner(letter) || !clean::is_harmless(letter) => {
                out.push_str(&format!("<U+{:04X}>", u32::from(letter)));
            }
            letter => out.push(letter),
        }
    }
    out
}

/// Leaves out letters that take no place on the screen and join nothing.
pub(crate) fn seen(text: &str) -> String {
    text.chars()
        .filter(|letter| !is_invisible(*letter))
        .collect()
}

/// Letters that Unicode shows as nothing. Those that scripts and emoji need to join letters are not among them.
fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}'
        | '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Letters that join others, or choose how others look.
fn is_joiner(letter: char) -> bool {
    matches!(letter, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_letters_are_left_out_and_shown_where_a_person_judges() {
        assert_eq!(text("a\u{200b}b\u{e0041}\u{1b}[2Jc"), "abc");
        assert_eq!(
            whole("rm\u{200d} x\u{202e}\u{1b}[2J\u{e0041}"),
            "rm<U+200D> x<U+202E>␛[2J<U+E0041>"
        );
        assert_eq!(text("👩\u{200d}👩"), "👩\u{200d}👩");
    }
}
