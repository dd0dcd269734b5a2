//! From a terminal's bytes to keys.
//!
//! Legacy keys are those of xterm (<https://invisible-island.net/xterm/ctlseqs/ctlseqs.html>), rxvt and the Linux
//! console; `CSI … u` is the kitty keyboard protocol (<https://sw.kovidgoyal.net/kitty/keyboard-protocol/>). Keys are
//! named as crossterm names them: a capital letter has `SHIFT`, Ctrl-_ is Ctrl-7, Ctrl-Space is a space with `CONTROL`.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{ESCAPE_PATIENCE, Input, MAX_PASTE_BYTES, PASTE_PATIENCE, Paste};

const ESC: u8 = 0x1b;
const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// The kind of an event that tells a key's release.
const RELEASED: u32 = 3;

/// Longest control sequence that is waited for, in bytes. Longer ones are no keys.
const MAX_SEQUENCE_BYTES: usize = 64;

/// Longest answer of the terminal to another program that is swallowed, in bytes.
const MAX_ANSWER_BYTES: usize = 4096;

/// Bytes that were taken and not yet told.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    bytes: Vec<u8>,
    /// The number of bytes that have been told.
    told: usize,
    paste: Option<Pasting>,
}

#[derive(Debug, Default)]
struct Pasting {
    bytes: Vec<u8>,
    is_cut: bool,
}

/// The meaning of the first bytes, and how many they are.
#[derive(Debug, PartialEq)]
enum Step {
    /// More bytes are needed.
    More,
    /// They mean nothing.
    Skip(usize),
    Told(Input, usize),
}

impl Decoder {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.told);
        self.told = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The time to wait for another byte before the bytes are taken as they are; `None` if there are none.
    pub(super) fn patience(&self) -> Option<Duration> {
        match self.paste {
            Some(_) => Some(PASTE_PATIENCE),
            None => (self.told < self.bytes.len()).then_some(ESCAPE_PATIENCE),
        }
    }

    /// The next input. `is_final` says that no byte follows for now.
    pub(super) fn next(&mut self, is_final: bool) -> Option<Input> {
        loop {
            if self.paste.is_some() {
                return self.pasted(is_final);
            }
            let rest = &self.bytes[self.told..];
            if rest.starts_with(PASTE_BEGIN) {
                self.told += PASTE_BEGIN.len();
                self.paste = Some(Pasting::default());
                continue;
            }
            match step(rest, is_final) {
                Step::More => return None,
                Step::Skip(count) => self.told += count,
                Step::Told(input, count) => {
                    self.told += count;
                    return Some(input);
                }
            }
        }
    }

    fn pasted(&mut self, is_final: bool) -> Option<Input> {
        let pasting = self.paste.as_mut()?;
        let rest = &self.bytes[self.told..];
        let end = end_of_paste(rest);
        let (count, skip) = match end {
            Some(end) => (end, PASTE_END.len()),
            None if is_final => (rest.len(), 0),
            // The end may be cut in two.
            None => (rest.len().saturating_sub(PASTE_END.len() - 1), 0),
        };
        let space = MAX_PASTE_BYTES - pasting.bytes.len();
        pasting.is_cut |= count > space;
        pasting.bytes.extend_from_slice(&rest[..count.min(space)]);
        self.told += count + skip;
        if end.is_none() && !is_final {
            return None;
        }
        let Pasting { bytes, is_cut } = self.paste.take()?;
        let text = String::from_utf8_lossy(&bytes);
        let mut text = text.replace("\r\n", "\n").replace('\r', "\n");
        if is_cut {
            // The cut may have gone through a character.
            text.truncate(text.trim_end_matches('\u{fffd}').len());
        }
        Some(Input::Paste(Paste { text, is_cut }))
    }
}

/// The place of the sequence that ends a paste.
fn end_of_paste(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        from += bytes[from..].iter().position(|byte| *byte == ESC)?;
        if bytes[from..].starts_with(PASTE_END) {
            return Some(from);
        }
        from += 1;
    }
}

fn step(bytes: &[u8], is_final: bool) -> Step {
    match bytes {
        [] => Step::More,
        [ESC, rest @ ..] => escaped(rest, is_final),
        [first, ..] if first.is_ascii() => Step::Told(Input::Key(ascii(*first)), 1),
        bytes => letter(bytes, is_final),
    }
}

/// The bytes after an escape character.
fn escaped(rest: &[u8], is_final: bool) -> Step {
    let escape = || key(KeyCode::Esc, KeyModifiers::NONE, 1);
    match rest {
        [] if is_final => escape(),
        [] => Step::More,
        [b'[', ..] => match control(&rest[1..]) {
            Step::More if is_final && rest.len() == 1 => alt(ascii(b'['), 2),
            // A sequence that does not end is none.
            Step::More if is_final => Step::Skip(rest.len() + 1),
            step => longer(step, 2),
        },
        [b'O'] if is_final => alt(ascii(b'O'), 2),
        [b'O'] => Step::More,
        [b'O', letter, ..] => match function(*letter) {
            Some(code) => key(code, KeyModifiers::NONE, 3),
            None => alt(ascii(b'O'), 2),
        },
        // An answer to a program that ran before: OSC 11, DCS and their like.
        [b']', b'0'..=b'9', ..] | [b'P', b'0'..=b'9' | b'>' | b'!', ..] => answer(rest, is_final),
        // Two escape characters begin a key with Alt, or are the Escape key pressed twice.
        [ESC, inner @ ..] => match inner {
            [] if !is_final => Step::More,
            [b'[' | b'O', ..] => match escaped(inner, is_final) {
                Step::Told(Input::Key(inner), count) => alt(inner, count + 1),
                Step::Told(_, count) | Step::Skip(count) => Step::Skip(count + 1),
                Step::More => Step::More,
            },
            _ => escape(),
        },
        rest => match step(rest, is_final) {
            Step::Told(Input::Key(inner), count) => alt(inner, count + 1),
            step => longer(step, 1),
        },
    }
}

fn longer(step: Step, by: usize) -> Step {
    match step {
        Step::More => Step::More,
        Step::Skip(count) => Step::Skip(count + by),
        Step::Told(input, count) => Step::Told(input, count + by),
    }
}

fn key(code: KeyCode, modifiers: KeyModifiers, count: usize) -> Step {
    Step::Told(Input::Key(KeyEvent::new(code, modifiers)), count)
}

fn alt(mut key: KeyEvent, count: usize) -> Step {
    key.modifiers |= KeyModifiers::ALT;
    Step::Told(Input::Key(key), count)
}

fn ascii(byte: u8) -> KeyEvent {
    let control = |letter: u8| KeyEvent::new(KeyCode::Char(letter.into()), KeyModifiers::CONTROL);
    match byte {
        b'\r' => KeyCode::Enter.into(),
        b'\t' => KeyCode::Tab.into(),
        0x7f => KeyCode::Backspace.into(),
        ESC => KeyCode::Esc.into(),
        0 => control(b' '),
        0x01..=0x1a => control(byte - 1 + b'a'),
        0x1c..=0x1f => control(byte - 0x1c + b'4'),
        byte => typed(byte.into()),
    }
}

fn typed(letter: char) -> KeyEvent {
    let modifiers = match letter.is_uppercase() {
        true => KeyModifiers::SHIFT,
        false => KeyModifiers::NONE,
    };
    KeyEvent::new(KeyCode::Char(letter), modifiers)
}

/// A character of several bytes. Bytes that are none are skipped.
fn letter(bytes: &[u8], is_final: bool) -> Step {
    let length = match bytes[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Step::Skip(1),
    };
    let have = &bytes[..bytes.len().min(length)];
    match std::str::from_utf8(have) {
        Ok(text) => match text.chars().next() {
            Some(letter) => Step::Told(Input::Key(typed(letter)), length),
            None => Step::Skip(1),
        },
        Err(error) if error.error_len().is_none() && !is_final => Step::More,
        Err(_) => Step::Skip(1),
    }
}

/// A string that the terminal sends as an answer. It is skipped.
fn answer(rest: &[u8], is_final: bool) -> Step {
    let end = rest.iter().position(|byte| matches!(*byte, 7 | ESC));
    match end {
        Some(end) if rest[end] == 7 => Step::Skip(end + 2),
        Some(end) if rest.get(end + 1) == Some(&b'\\') => Step::Skip(end + 3),
        Some(end) if rest.len() > end + 1 || is_final => Step::Skip(end + 1),
        None if is_final || rest.len() > MAX_ANSWER_BYTES => Step::Skip(rest.len() + 1),
        _ => Step::More,
    }
}

/// A control sequence, from after `ESC [`.
fn control(rest: &[u8]) -> Step {
    // The Linux console's F1 to F5.
    if let [b'[', letter @ b'A'..=b'E', ..] = rest {
        return key(KeyCode::F(letter - b'A' + 1), KeyModifiers::NONE, 2);
    }
    let Some(end) = rest.iter().position(|byte| !(0x20..=0x3f).contains(byte)) else {
        return match rest.len() > MAX_SEQUENCE_BYTES {
            true => Step::Skip(rest.len()),
            false => Step::More,
        };
    };
    let (parameters, count) = (&rest[..end], end + 1);
    let input = match rest[end] {
        // A key's byte, not a sequence's: it stays.
        byte if !(0x40..=0x7e).contains(&byte) => return Step::Skip(end),
        b'[' if end == 0 && rest.len() == 1 => return Step::More,
        b'I' if end == 0 => Some(Input::Focus(true)),
        b'O' if end == 0 => Some(Input::Focus(false)),
        // A click of the mouse in its oldest form has three more bytes.
        b'M' if end == 0 => match rest.len() {
            ..4 => return Step::More,
            _ => return Step::Skip(4),
        },
        last => match std::str::from_utf8(parameters) {
            Ok(parameters) => parameterized(parameters, last).map(Input::Key),
            Err(_) => None,
        },
    };
    match input {
        Some(input) => Step::Told(input, count),
        None => Step::Skip(count),
    }
}

/// A key that is told with numbers: `1;5A`, `3;2~`, `97;5u`.
fn parameterized(parameters: &str, last: u8) -> Option<KeyEvent> {
    let mut fields = parameters.split(';').map(|field| {
        let mut parts = field.split(':').map(|part| part.parse::<u32>().ok());
        (parts.next().flatten(), parts.next().flatten())
    });
    let first = fields.next().and_then(|field| field.0);
    let (bits, event) = fields.next().unwrap_or_default();
    let third = fields.next().and_then(|field| field.0);
    if event == Some(RELEASED)
        || !parameters
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b';' | b':'))
    {
        return None;
    }
    let modifiers = modifiers(bits.unwrap_or(1));
    match last {
        b'~' if first == Some(27) => unicode(third?, modifiers),
        b'~' => Some(KeyEvent::new(numbered(first?)?, modifiers)),
        b'u' => unicode(first?, modifiers),
        b'Z' => Some(KeyEvent::new(
            KeyCode::BackTab,
            modifiers | KeyModifiers::SHIFT,
        )),
        last => Some(KeyEvent::new(function(last)?, modifiers)),
    }
}

fn modifiers(number: u32) -> KeyModifiers {
    let bits = number.saturating_sub(1);
    [
        KeyModifiers::SHIFT,
        KeyModifiers::ALT,
        KeyModifiers::CONTROL,
        KeyModifiers::SUPER,
        KeyModifiers::HYPER,
        KeyModifiers::META,
    ]
    .into_iter()
    .enumerate()
    .filter(|(bit, _)| bits & (1 << bit) != 0)
    .fold(KeyModifiers::NONE, |all, (_, modifier)| all | modifier)
}

/// A key that is told by a letter.
fn function(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'E' => KeyCode::KeypadBegin,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'M' => KeyCode::Enter,
        b'P'..=b'S' => KeyCode::F(letter - b'P' + 1),
        _ => return None,
    })
}

/// A key that is told by a number before `~`.
fn numbered(number: u32) -> Option<KeyCode> {
    let function = |number: u32| u8::try_from(number).ok().map(KeyCode::F);
    match number {
        1 | 7 => Some(KeyCode::Home),
        2 => Some(KeyCode::Insert),
        3 => Some(KeyCode::Delete),
        4 | 8 => Some(KeyCode::End),
        5 => Some(KeyCode::PageUp),
        6 => Some(KeyCode::PageDown),
        11..=15 => function(number - 10),
        17..=21 => function(number - 11),
        23..=26 => function(number - 12),
        28..=29 => function(number - 13),
        31..=34 => function(number - 14),
        _ => None,
    }
}

/// A key that is told by its character's number.
fn unicode(number: u32, modifiers: KeyModifiers) -> Option<KeyEvent> {
    let is_shifted = modifiers.contains(KeyModifiers::SHIFT);
    let code = match number {
        9 if is_shifted => KeyCode::BackTab,
        9 => KeyCode::Tab,
        13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Esc,
        8 | 127 => KeyCode::Backspace,
        // The keypad.
        57399..=57408 => KeyCode::Char(char::from_digit(number - 57399, 10)?),
        57409 => KeyCode::Char('.'),
        57410 => KeyCode::Char('/'),
        57411 => KeyCode::Char('*'),
        57412 => KeyCode::Char('-'),
        57413 => KeyCode::Char('+'),
        57415 => KeyCode::Char('='),
        57416 => KeyCode::Char(','),
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57425 => KeyCode::Insert,
        57426 => KeyCode::Delete,
        // Lock keys, media keys, and the modifiers themselves.
        57344..=63743 | 0..32 => return None,
        number => match char::from_u32(number)? {
            letter if is_shifted && letter.is_lowercase() => {
                KeyCode::Char(letter.to_uppercase().next()?)
            }
            letter => KeyCode::Char(letter),
        },
    };
    Some(KeyEvent::new(code, modifiers))
}

#[cfg(test)]
mod tests;
