//! The sequences with which a program drives a terminal (ECMA-48), taken apart.

use shared_types::clean::is_harmless;

/// The longest control sequence that is understood, in letters; a longer one is removed.
const MAX_PARAMETERS: usize = 64;

/// The longest string (a title, a picture) that is removed, in letters; what follows is text.
const MAX_STRING: usize = 1 << 20;

/// The effect of a letter.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    Print(char),
    Newline,
    Return,
    Back,
    Tab,
    /// Changes the style by these parameters (SGR).
    Style(String),
    /// Erases from the cursor to the end of the line.
    EraseEnd,
    EraseLine,
}

/// Takes letters one by one, so that a sequence may be cut anywhere.
#[derive(Debug, Clone, Default)]
pub(super) struct Escapes {
    state: State,
}

#[derive(Debug, Clone, Default)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// In a control sequence (`ESC [ …`), with its parameters so far.
    Control(String),
    /// In a string (`ESC ] …` and its like), with the number of its letters.
    String(usize),
    /// After ESC in a string.
    StringEscape,
}

impl Escapes {
    /// The action of the next letter, if it has one.
    pub(super) fn letter(&mut self, letter: char) -> Option<Action> {
        let is_text = matches!(self.state, State::Text);
        if is_text && (' '..='~').contains(&letter) {
            return Some(Action::Print(letter));
        }
        match std::mem::take(&mut self.state) {
            State::Text => self.text(letter),
            State::Escape => self.escape(letter),
            State::Control(parameters) => self.control(parameters, letter),
            State::StringEscape if letter == '\\' => None,
            State::StringEscape => self.escape(letter),
            State::String(length) => self.string(length, letter),
        }
    }

    fn text(&mut self, letter: char) -> Option<Action> {
        match letter {
            '\n' => return Some(Action::Newline),
            '\r' => return Some(Action::Return),
            '\t' => return Some(Action::Tab),
            '\x08' => return Some(Action::Back),
            '\x1b' => self.state = State::Escape,
            '\u{9b}' => self.state = State::Control(String::new()),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.state = State::String(0),
            letter if letter.is_control() => {}
            letter if is_harmless(letter) => return Some(Action::Print(letter)),
            // It would change the order in which text reads.
            _ => return Some(Action::Print(char::REPLACEMENT_CHARACTER)),
        }
        None
    }

    fn escape(&mut self, letter: char) -> Option<Action> {
        match letter {
            '[' => self.state = State::Control(String::new()),
            ']' | 'P' | 'X' | '^' | '_' => self.state = State::String(0),
            // The first letters of a sequence that chooses a character set.
            ' '..='/' => self.state = State::Escape,
            '0'..='~' => {}
            letter => return self.text(letter),
        }
        None
    }

    fn control(&mut self, mut parameters: String, letter: char) -> Option<Action> {
        match letter {
            ' '..='?' => {
                if parameters.len() <= MAX_PARAMETERS {
                    parameters.push(letter);
                }
                self.state = State::Control(parameters);
                None
            }
            '@'..='~' => controlled(parameters, letter),
            letter => self.text(letter),
        }
    }

    fn string(&mut self, length: usize, letter: char) -> Option<Action> {
        match letter {
            '\x07' | '\u{9c}' => {}
            '\x1b' => self.state = State::StringEscape,
            // A string that a line ends was none.
            '\n' => return self.text(letter),
            _ if length < MAX_STRING => self.state = State::String(length + 1),
            letter => return self.text(letter),
        }
        None
    }
}

fn controlled(parameters: String, last: char) -> Option<Action> {
    let is_known = parameters
        .bytes()
        .all(|byte| b"0123456789;:".contains(&byte));
    if !is_known || parameters.len() > MAX_PARAMETERS {
        return None;
    }
    match (last, parameters.as_str()) {
        ('m', _) => Some(Action::Style(parameters)),
        ('K', "" | "0") => Some(Action::EraseEnd),
        ('K', _) => Some(Action::EraseLine),
        _ => None,
    }
}
