//! The modes of a terminal that a command has switched on. This process switches them off if the command is killed or
//! left.
//!
//! It understands only sequences that change a mode (`ctlseqs` of xterm, and the keyboard protocol of kitty).

use std::{collections::BTreeSet, fmt::Write as _};

/// The longest control sequence that is understood, in bytes.
const MAX_SEQUENCE_BYTES: usize = 64;

/// Most modes that are remembered; terminals have about thirty.
const MAX_MODES: usize = 64;

/// Private modes that are on as a rule: lines wrap, and the cursor is shown.
const USUALLY_ON: [u16; 2] = [7, 25];

/// The alternate screens. Leaving one shows what stood there before, so that comes last.
const SCREENS: [u16; 3] = [47, 1047, 1049];

/// Saves the cursor, and is no mode.
const CURSOR: u16 = 1048;

/// The modes that a command has changed so far.
#[derive(Debug, Default)]
pub(super) struct Modes {
    place: Place,
    /// Private modes that are not as they usually are.
    changed: BTreeSet<u16>,
    keypad: bool,
    insert: bool,
    line_drawing: bool,
    scrolls_in_part: bool,
    has_colours: bool,
    cursor_shape: bool,
    modified_keys: bool,
    /// The number of changes of the keyboard protocol.
    keyboards: u16,
}

/// The place of the output's next byte in a control sequence.
#[derive(Debug, Default)]
enum Place {
    #[default]
    Outside,
    Escape,
    /// Which character set is chosen.
    Charset,
    Control(Vec<u8>),
}

impl Modes {
    /// Takes in what the command wrote, in pieces of any size.
    pub(super) fn take(&mut self, output: &[u8]) {
        for &byte in output {
            self.place = match (std::mem::take(&mut self.place), byte) {
                (_, 0x1b) => Place::Escape,
                (Place::Escape, b'[') => Place::Control(Vec::new()),
                (Place::Escape, b'(') => Place::Charset,
                (Place::Escape, byte) => {
                    match byte {
                        b'=' => self.keypad = true,
                        b'>' => self.keypad = false,
                        b'c' => *self = Self::default(),
                        _ => {}
                    }
                    Place::Outside
                }
                (Place::Charset, byte) => {
                    self.line_drawing = byte == b'0';
                    Place::Outside
                }
                (Place::Control(mut sequence), 0x20..=0x3f)
                    if sequence.len() < MAX_SEQUENCE_BYTES =>
                {
                    sequence.push(byte);
                    Place::Control(sequence)
                }
                (Place::Control(sequence), 0x40..=0x7e) => {
                    self.control(&sequence, byte);
                    Place::Outside
                }
                _ => Place::Outside,
            };
        }
    }

    fn control(&mut self, sequence: &[u8], end: u8) {
        let (kind, numbers) = match sequence {
            [kind @ b'<'..=b'?', numbers @ ..] => (*kind, numbers),
            numbers => (0, numbers),
        };
        let text = String::from_utf8_lossy(numbers);
        let numbers: Vec<u16> = text
            .split(';')
            .map(|one| one.parse().unwrap_or(0))
            .collect();
        match (kind, end) {
            (b'?', b'h' | b'l') => numbers.iter().for_each(|mode| self.set(*mode, end == b'h')),
            (0, b'h' | b'l') if numbers.contains(&4) => self.insert = end == b'h',
            (0, b'r') => self.scrolls_in_part = !text.is_empty(),
            (0, b'm') => self.has_colours = numbers.last() != Some(&0),
            (0, b'q') if text.ends_with(' ') => {
                self.cursor_shape = !matches!(text.trim(), "" | "0")
            }
            (0, b'p') if text == "!" => {
                *self = Self {
                    changed: std::mem::take(&mut self.changed),
                    keyboards: self.keyboards,
                    modified_keys: self.modified_keys,
                    ..Self::default()
                };
                self.set(25, true);
            }
            (b'>', b'm') if numbers[0] == 4 => {
                self.modified_keys = numbers.get(1).is_some_and(|level| *level != 0);
            }
            (b'>', b'u') => self.keyboards = self.keyboards.saturating_add(1),
            (b'<', b'u') => self.keyboards = self.keyboards.saturating_sub(numbers[0].max(1)),
            _ => {}
        }
    }

    fn set(&mut self, mode: u16, is_on: bool) {
        if is_on == USUALLY_ON.contains(&mode) || mode == CURSOR {
            self.changed.remove(&mode);
        } else if self.changed.len() < MAX_MODES {
            self.changed.insert(mode);
        }
    }

    /// The sequences that switch all of it off; empty if nothing is on.
    pub(super) fn undone(&self) -> String {
        let mut text = String::new();
        let (screens, others): (Vec<u16>, Vec<u16>) = self
            .changed
            .iter()
            .copied()
            .partition(|mode| SCREENS.contains(mode));
        for mode in others.into_iter().chain(screens) {
            let to = if USUALLY_ON.contains(&mode) { 'h' } else { 'l' };
            let _ = write!(text, "\x1b[?{mode}{to}");
        }
        if self.keyboards > 0 {
            let _ = write!(text, "\x1b[<{}u", self.keyboards);
        }
        for (is_on, off) in [
            (self.modified_keys, "\x1b[>4;0m"),
            (self.keypad, "\x1b>"),
            (self.insert, "\x1b[4l"),
            (self.line_drawing, "\x1b(B"),
            // It moves the cursor.
            (self.scrolls_in_part, "\x1b7\x1b[r\x1b8"),
            (self.has_colours, "\x1b[0m"),
            (self.cursor_shape, "\x1b[0 q"),
        ] {
            if is_on {
                text.push_str(off);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undone(output: &str) -> String {
        let (mut whole, mut pieces) = (Modes::default(), Modes::default());
        whole.take(output.as_bytes());
        for byte in output.bytes() {
            pieces.take(&[byte]);
        }
        assert_eq!(whole.undone(), pieces.undone(), "{output:?}");
        whole.undone()
    }

    #[test]
    fn what_was_switched_on_is_switched_off_and_the_screen_is_left_last() {
        let editor =
            "\x1b[?1049h\x1b[?1h\x1b=\x1b[?2004h\x1b[?1002;1006h\x1b[?25l\x1b[1;20r\x1b[31mtext";
        assert_eq!(
            undone(editor),
            "\x1b[?1l\x1b[?25h\x1b[?1002l\x1b[?1006l\x1b[?2004l\x1b[?1049l\x1b>\x1b7\x1b[r\x1b8\x1b[0m"
        );
        assert_eq!(
            undone("\x1b[>1u\x1b[>4;2m\x1b[4h\x1b(0\x1b[4 q"),
            "\x1b[<1u\x1b[>4;0m\x1b[4l\x1b(B\x1b[0 q"
        );
    }

    #[test]
    fn what_was_switched_off_again_is_left_alone() {
        for output in [
            "plain text [?1049h",
            "\x1b[?1049h\x1b[?1049l\x1b[?25l\x1b[?25h",
            "\x1b=\x1b>\x1b[31mred\x1b[0m\x1b[2;5r\x1b[r\x1b[>1u\x1b[<u",
            "\x1b[?2004h\x1b[?1000h\x1bc",
            "\x1b[?1048h\x1b[2J\x1b[6n\x1b[?u",
        ] {
            assert_eq!(undone(output), "", "{output:?}");
        }
    }
}
