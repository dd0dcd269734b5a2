//! The large pastes of a draft. In the text, one character that Unicode keeps for programs (U+FDD0 to U+FDEF,
//! never exchanged between programs) stands for each paste, so that it moves and is deleted as one.

/// Most pastes with a label in one draft; further ones are inserted as text.
const MAX_LABELS: usize = 32;

/// Most lines of a paste that is inserted as text.
const MAX_PLAIN_LINES: usize = 10;

/// Most letters of a paste that is inserted as text.
const MAX_PLAIN_LETTERS: usize = 2_000;

const FIRST: char = '\u{fdd0}';
const LAST: char = '\u{fdef}';

/// The texts of the large pastes, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Pastes {
    texts: Vec<Paste>,
}

#[derive(Debug)]
struct Paste {
    text: String,
    label: String,
}

impl Pastes {
    /// Keeps a paste if it is large. Gives the mark that stands for it, or the text back.
    pub(super) fn keep(&mut self, text: String) -> String {
        let lines = text.lines().count();
        let letters = text.chars().count();
        let is_plain = lines <= MAX_PLAIN_LINES && letters <= MAX_PLAIN_LETTERS;
        let Some(mark) = self.next_mark().filter(|_| !is_plain) else {
            return text;
        };
        let size = match lines {
            0..=MAX_PLAIN_LINES => format!("{letters} letters"),
            lines => format!("{lines} lines"),
        };
        let label = match self.texts.len() {
            0 => format!("[pasted {size}]"),
            earlier => format!("[pasted {size} #{}]", earlier + 1),
        };
        self.texts.push(Paste { text, label });
        mark.to_string()
    }

    /// The label of the paste for which a character stands.
    pub(super) fn label(&self, mark: char) -> Option<String> {
        self.paste(mark).map(|paste| paste.label.clone())
    }

    /// The text with its pastes.
    pub(super) fn expand(&self, text: &str) -> String {
        let mut whole = String::with_capacity(self.length(text));
        for letter in text.chars() {
            match self.paste(letter) {
                Some(paste) => whole.push_str(&paste.text),
                None => whole.push(letter),
            }
        }
        whole
    }

    /// The length in bytes of the text with its pastes.
    pub(super) fn length(&self, text: &str) -> usize {
        if self.texts.is_empty() {
            return text.len();
        }
        let length = |letter: char| {
            self.paste(letter)
                .map_or(letter.len_utf8(), |paste| paste.text.len())
        };
        text.chars().map(length).sum()
    }

    /// Forgets all pastes.
    pub(super) fn clear(&mut self) {
        self.texts.clear();
    }

    fn next_mark(&self) -> Option<char> {
        let next = u32::try_from(self.texts.len()).ok()?;
        (self.texts.len() < MAX_LABELS)
            .then(|| char::from_u32(FIRST as u32 + next))
            .flatten()
    }

    fn paste(&self, mark: char) -> Option<&Paste> {
        is_mark(mark)
            .then(|| self.texts.get((mark as u32 - FIRST as u32) as usize))
            .flatten()
    }
}

/// True if the character may stand for a paste.
pub(super) fn is_mark(letter: char) -> bool {
    (FIRST..=LAST).contains(&letter)
}

/// Text from outside as a draft holds it: lines end with a newline, the tab is the only other control character,
/// and no character stands for a paste. `None` if it is longer than so many bytes.
pub(super) fn normal(text: &str, most: usize) -> Option<String> {
    let mut out = String::with_capacity(text.len().min(most));
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\r' => {
                letters.next_if_eq(&'\n');
                out.push('\n');
            }
            '\n' | '\t' => out.push(letter),
            letter if letter.is_control() || is_mark(letter) => {}
            letter => out.push(letter),
        }
        if out.len() > most {
            return None;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_paste_has_a_label_and_comes_back_whole() {
        let mut pastes = Pastes::default();
        assert_eq!(pastes.keep("short\ntext".to_owned()), "short\ntext");
        let lines = "line\n".repeat(11);
        let first = pastes.keep(lines.clone());
        let second = pastes.keep("x".repeat(2_001));
        let label = |mark: &str| mark.chars().next().and_then(|mark| pastes.label(mark));
        assert_eq!(label(&first).as_deref(), Some("[pasted 11 lines]"));
        assert_eq!(label(&second).as_deref(), Some("[pasted 2001 letters #2]"));
        let text = format!("a{first}b{first}");
        assert_eq!(pastes.expand(&text), format!("a{lines}b{lines}"));
        assert_eq!(pastes.length(&text), 2 + 2 * lines.len());
    }

    #[test]
    fn pastes_beyond_the_labels_are_text() {
        let mut pastes = Pastes::default();
        let large = "\n".repeat(20);
        for _ in 0..MAX_LABELS {
            assert!(pastes.keep(large.clone()).chars().all(is_mark));
        }
        assert_eq!(pastes.keep(large.clone()), large);
    }

    #[test]
    fn text_from_outside_has_newlines_and_no_control_characters() {
        let text = normal("a\r\nb\rc\n\td\x1b[31m\0\u{9b}\u{fdd0}e\u{202e}", 100);
        assert_eq!(text.as_deref(), Some("a\nb\nc\n\td[31me\u{202e}"));
        assert_eq!(normal("abc", 2), None);
    }
}
