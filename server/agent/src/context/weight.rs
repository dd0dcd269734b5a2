//! The weight of a sentence: how much would be lost if it were forgotten. Constraints and facts weigh more than "go on".

/// Words of a sentence that demands something or says what holds.
const DEMANDS: &[&str] = &[
    "must",
    "never",
    "always",
    "don't",
    "do not",
    "only",
    "not ",
    "remember",
    "important",
    "required",
    "forbidden",
    "prefer",
    "instead",
    "at least",
    "at most",
    "before you",
    "from now on",
    "muss",
    "nie",
    "immer",
    "nicht",
    "niemals",
    "必须",
    "不要",
    "不能",
    "记住",
];

/// Words of a sentence that names something.
const NAMES: &[&str] = &[
    " is ",
    " are ",
    "called",
    "named",
    "stands for",
    "means",
    " = ",
    ": ",
    " ist ",
    "heißt",
    "是",
];

/// The sentences of a text, with the white space behind them; together they are the text. A line ends a sentence.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = end_of_sentence(rest);
        let (sentence, after) = rest.split_at(end);
        rest = after;
        Some(sentence)
    })
}

/// The place after the first sentence.
fn end_of_sentence(text: &str) -> usize {
    let mut characters = text.char_indices().peekable();
    while let Some((_, character)) = characters.next() {
        let next = characters.peek();
        let ends = match character {
            '\n' => true,
            '.' | '!' | '?' | ';' => next.is_none_or(|(_, next)| next.is_whitespace()),
            '。' | '！' | '？' => true,
            _ => false,
        };
        if ends {
            while characters
                .next_if(|(_, next)| next.is_whitespace())
                .is_some()
            {}
            return characters.peek().map_or(text.len(), |(place, _)| *place);
        }
    }
    text.len()
}

/// The weight of a sentence, from 0.
pub(super) fn weight(sentence: &str) -> u32 {
    let lower = sentence.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let has_name = sentence.split_whitespace().skip(1).any(is_name);
    let first_is_name = sentence.split_whitespace().next().is_some_and(is_special);
    u32::from(has(DEMANDS)) * 3
        + u32::from(has(NAMES)) * 2
        + u32::from(has_name || first_is_name) * 2
}

/// True for a word that looks like the name of something: a path, an identifier, a number, a proper name.
fn is_name(word: &str) -> bool {
    is_special(word) || word.chars().next().is_some_and(char::is_uppercase)
}

/// True for a word that is none of plain language.
fn is_special(word: &str) -> bool {
    let word = word.trim_matches(|character: char| ".,;:!?()".contains(character));
    let mut letters = word.chars();
    letters.next();
    word.contains(['/', '_', '\\', '@', '=', '`', '"', '#', '.'])
        || word.contains(|character: char| character.is_ascii_digit())
        || letters.any(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_together_are_the_text_and_paths_and_numbers_do_not_end_one() {
        let text = "Look at src/main.rs now. It has 3.5 lines!\nNever push. 好。再见";
        let all: Vec<_> = sentences(text).collect();
        assert_eq!(all.concat(), text);
        assert_eq!(
            all,
            [
                "Look at src/main.rs now. ",
                "It has 3.5 lines!\n",
                "Never push. ",
                "好。",
                "再见"
            ]
        );
    }

    #[test]
    fn constraints_and_facts_weigh_more_than_talk() {
        let talk = ["go on", "thanks, that looks good", "now run it again"].map(weight);
        let facts = [
            "Never push to main.",
            "My dog is called Rex.",
            "The port is 8443.",
            "Use tabs in src/lib.rs only.",
            "remember that the key of staging stands in ops/keys.toml",
        ]
        .map(weight);
        assert!(talk.iter().max() < facts.iter().min(), "{talk:?} {facts:?}");
    }
}
