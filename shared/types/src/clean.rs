//! Text from elsewhere, made harmless. Text of a model, a command or a peer must not drive a
//! terminal, forge a line of a log, move other text, or reverse how it reads.

/// Longest words of a peer that are shown, in characters.
const MAX_PEER_WORDS: usize = 400;

/// Longest escape sequence that is swallowed, in characters; what follows is text again.
const MAX_SEQUENCE: usize = 256;

/// Takes text piece by piece, wherever it is cut, and gives text whose only control characters
/// are the newline and the tab.
#[derive(Debug, Default)]
pub struct Clean {
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Text,
    /// After a carriage return, which ends a line unless a newline does.
    Return,
    /// After ESC.
    Escape,
    /// In a control sequence (`ESC [ …`), which a letter ends.
    Control(usize),
    /// In a string (`ESC ] …` and its like), which BEL or `ESC \` ends.
    String(usize),
    /// After ESC in a string.
    StringEscape(usize),
}

/// The text of a file without the mark (BOM) that some editors put at its beginning.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// One whole text, made harmless.
pub fn clean(text: &str) -> String {
    Clean::default().take(text)
}

/// One whole text, made harmless, on one line of at most `longest` characters.
pub fn clean_line(text: &str, longest: usize) -> String {
    let cleaned = clean(text.trim());
    let mut letters = cleaned.chars().map(|letter| match letter {
        '\n' => '⏎',
        '\t' => ' ',
        letter => letter,
    });
    let mut line: String = letters.by_ref().take(longest).collect();
    if letters.next().is_some() {
        line.push('…');
    }
    line
}

/// Cleans words of an untrusted peer: an error's reason, a status, the last words of a connection.
/// They are made harmless where they enter a program, so that no later place has to do it.
pub fn peer_words(text: &str) -> String {
    clean_line(text, MAX_PEER_WORDS)
}

/// True if [`clean_line`] would leave the text unchanged; its length does not matter.
pub fn is_clean_line(text: &str) -> bool {
    clean_line(text, usize::MAX) == text
}

/// True if the character neither drives a terminal nor changes the order in which text reads.
pub fn is_harmless(letter: char) -> bool {
    let turns = matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    !letter.is_control() && !turns
}

impl Clean {
    /// The next piece, made harmless.
    pub fn take(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        for letter in piece.chars() {
            self.letter(letter, &mut out);
        }
        out
    }

    fn letter(&mut self, letter: char, out: &mut String) {
        self.state = match self.state {
            State::Text => text(letter, out),
            State::Return => {
                out.push('\n');
                match letter {
                    '\n' => State::Text,
                    letter => text(letter, out),
                }
            }
            State::Escape => match letter {
                '[' => State::Control(0),
                ']' | 'P' | 'X' | '^' | '_' => State::String(0),
                // Two-letter sequences, and three-letter ones that choose a character set.
                ' '..='/' => State::Escape,
                '0'..='~' => State::Text,
                letter => text(letter, out),
            },
            State::Control(length) => match letter {
                ' '..='?' if length < MAX_SEQUENCE => State::Control(length + 1),
                '@'..='~' => State::Text,
                letter => text(letter, out),
            },
            State::String(length) | State::StringEscape(length) if length >= MAX_SEQUENCE => {
                text(letter, out)
            }
            State::StringEscape(_) if letter == '\\' => State::Text,
            State::String(length) | State::StringEscape(length) => match letter {
                '\x07' | '\u{9c}' => State::Text,
                '\x1b' => State::StringEscape(length + 1),
                // A string that a line ends was none.
                '\n' => text(letter, out),
                _ => State::String(length + 1),
            },
        };
    }
}

fn text(letter: char, out: &mut String) -> State {
    match letter {
        '\x1b' => return State::Escape,
        '\u{9b}' => return State::Control(0),
        '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => return State::String(0),
        '\r' => return State::Return,
        '\n' | '\t' => out.push(letter),
        // Control characters as their pictures, so that they are seen and do nothing.
        '\0'..='\x1f' => out.extend(char::from_u32(0x2400 + letter as u32)),
        '\x7f' => out.push('\u{2421}'),
        // Also what makes text read in another order than it stands.
        letter if !is_harmless(letter) => out.push(char::REPLACEMENT_CHARACTER),
        letter => out.push(letter),
    }
    State::Text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_titles_and_cursor_movements_are_taken_out() {
        assert_eq!(clean("\x1b[31mred\x1b[0m"), "red");
        assert_eq!(clean("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c"), "abc");
        assert_eq!(clean("\x1b[2J\x1b[Hhome\x1b(B\x1bcend"), "homeend");
        assert_eq!(clean("\u{9b}31mred"), "red");
    }

    #[test]
    fn other_control_characters_are_shown_and_do_nothing() {
        assert_eq!(clean("a\x08b\x07c\0d\x7f"), "a␈b␇c␀d␡");
        assert_eq!(clean("abc\u{202e}def"), "abc\u{fffd}def");
    }

    #[test]
    fn a_returning_carriage_begins_a_new_line() {
        assert_eq!(clean("10 %\r50 %\r\ndone\r\n"), "10 %\n50 %\ndone\n");
    }

    #[test]
    fn a_sequence_without_end_does_not_swallow_everything() {
        let text = format!("\x1b]0;{}", "x".repeat(10_000));
        assert!(clean(&text).len() > 9_000);
        assert_eq!(clean("\x1b]0;open\nnext"), "\nnext");
    }

    #[test]
    fn where_the_pieces_are_cut_makes_no_difference() {
        let text = "a\x1b[1;31mb\r\nc\x1b]0;t\x1b\\d\re\x1b(Bf\u{202e}g";
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let mut clean_one = Clean::default();
        let one_by_one: String = letters
            .iter()
            .map(|letter| clean_one.take(letter))
            .collect();
        assert_eq!(one_by_one, clean(text));
        assert_eq!(one_by_one, "ab\ncd\nef\u{fffd}g");
    }

    #[test]
    fn a_line_is_one_line_and_bounded() {
        assert!(is_clean_line("laptop, \u{fc}ber \u{1f980}"));
        for unclean in ["a\nb", "a\tb", "a\u{202e}b", "\x1b[0m", " a"] {
            assert!(!is_clean_line(unclean), "{unclean:?}");
        }
        assert_eq!(clean_line("cd x\nmake", 20), "cd x⏎make");
        assert_eq!(clean_line("abcdef", 3), "abc…");
        let said = peer_words(&"no\u{1b}]0;t\u{7}\r\nrunner: enrolled ".repeat(1000));
        assert!(said.starts_with("no⏎runner: enrolled no⏎"), "{said}");
        assert_eq!(said.chars().count(), MAX_PEER_WORDS + 1);
    }
}
