//! Bytes as terminals send them.

use KeyCode::{Backspace, Char, Delete, Down, End, Enter, Esc, F, Home, Tab, Up};
use proptest::prelude::*;

use super::*;

const NONE: KeyModifiers = KeyModifiers::NONE;
const SHIFT: KeyModifiers = KeyModifiers::SHIFT;
const ALT: KeyModifiers = KeyModifiers::ALT;
const CONTROL: KeyModifiers = KeyModifiers::CONTROL;

/// Everything that the bytes mean, if none follows.
fn all(bytes: &[u8]) -> Vec<Input> {
    let mut decoder = Decoder::default();
    decoder.push(bytes);
    std::iter::from_fn(|| decoder.next(true)).collect()
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Input {
    Input::Key(KeyEvent::new(code, modifiers))
}

#[track_caller]
fn is(bytes: &str, keys: &[(KeyCode, KeyModifiers)]) {
    let keys: Vec<_> = keys
        .iter()
        .map(|(code, modifiers)| key(*code, *modifiers))
        .collect();
    assert_eq!(all(bytes.as_bytes()), keys, "{bytes:?}");
}

#[test]
fn letters_and_control_letters_are_keys() {
    is(
        "aÄ日",
        &[(Char('a'), NONE), (Char('Ä'), SHIFT), (Char('日'), NONE)],
    );
    is(
        "\r\n\t\x7f\x08\0\x03\x1f",
        &[
            (Enter, NONE),
            (Char('j'), CONTROL),
            (Tab, NONE),
            (Backspace, NONE),
            (Char('h'), CONTROL),
            (Char(' '), CONTROL),
            (Char('c'), CONTROL),
            (Char('7'), CONTROL),
        ],
    );
}

#[test]
fn sequences_of_xterm_rxvt_and_the_linux_console_are_keys() {
    is(
        "\x1b[A\x1bOB\x1b[1;5C\x1b[3~\x1b[7~\x1b[F",
        &[
            (Up, NONE),
            (Down, NONE),
            (KeyCode::Right, CONTROL),
            (Delete, NONE),
            (Home, NONE),
            (End, NONE),
        ],
    );
    is(
        "\x1bOP\x1b[15~\x1b[24;2~\x1b[[A\x1b[Z",
        &[
            (F(1), NONE),
            (F(5), NONE),
            (F(12), SHIFT),
            (F(1), NONE),
            (KeyCode::BackTab, SHIFT),
        ],
    );
}

#[test]
fn alt_is_an_escape_character_before_a_key() {
    is(
        "\x1bb\x1bB\x1b\r\x1b\x7f\x1bä",
        &[
            (Char('b'), ALT),
            (Char('B'), ALT | SHIFT),
            (Enter, ALT),
            (Backspace, ALT),
            (Char('ä'), ALT),
        ],
    );
    is("\x1b\x1b[A", &[(Up, ALT)]);
    is("\x1b[", &[(Char('['), ALT)]);
    is("\x1bO", &[(Char('O'), ALT | SHIFT)]);
}

#[test]
fn escape_alone_is_the_escape_key() {
    is("\x1b", &[(Esc, NONE)]);
    is("\x1b\x1b", &[(Esc, NONE), (Esc, NONE)]);
    let mut decoder = Decoder::default();
    decoder.push(b"\x1b");
    assert_eq!(decoder.next(false), None);
    assert_eq!(decoder.patience(), Some(ESCAPE_PATIENCE));
    decoder.push(b"[A");
    assert_eq!(decoder.next(false), Some(key(Up, NONE)));
    assert_eq!(decoder.patience(), None);
}

#[test]
fn the_kitty_protocol_tells_shift_enter() {
    is(
        "\x1b[13;2u\x1b[27u\x1b[97;5u\x1b[97;6u\x1b[9;2u\x1b[127;3u\x1b[27;2;13~",
        &[
            (Enter, SHIFT),
            (Esc, NONE),
            (Char('a'), CONTROL),
            (Char('A'), CONTROL | SHIFT),
            (KeyCode::BackTab, SHIFT),
            (Backspace, ALT),
            (Enter, SHIFT),
        ],
    );
    // With lock keys on, of the keypad, a repetition; and a release, which is no key.
    is(
        "\x1b[13;130u\x1b[57400u\x1b[1;1:2A\x1b[1;1:3A",
        &[(Enter, SHIFT), (Char('1'), NONE), (Up, NONE)],
    );
}

#[test]
fn answers_clicks_and_unknown_sequences_are_no_keys() {
    is(
        "\x1b]11;rgb:0/0/0\x07a\x1bP>|xterm\x1b\\b\x1b[?62;4cc",
        &[(Char('a'), NONE), (Char('b'), NONE), (Char('c'), NONE)],
    );
    is(
        "\x1b[M !!a\x1b[<0;1;1Mb\x1b[99~c\x1b[1;5",
        &[(Char('a'), NONE), (Char('b'), NONE), (Char('c'), NONE)],
    );
    // A byte that cannot be in a sequence ends it and is a key.
    is(
        "\x1b[12\x03\u{80}",
        &[(Char('c'), CONTROL), (Char('\u{80}'), NONE)],
    );
}

#[test]
fn focus_is_told() {
    assert_eq!(
        all(b"\x1b[I\x1b[O"),
        [Input::Focus(true), Input::Focus(false)]
    );
}

fn paste(text: &str, is_cut: bool) -> Input {
    let text = text.to_owned();
    Input::Paste(Paste { text, is_cut })
}

#[test]
fn a_paste_is_one_input_with_newlines() {
    let bytes = "a\x1b[200~one\r\ntwo\rthree\x1b[A\x03ß\x1b[201~b".as_bytes();
    let expected = [
        key(Char('a'), NONE),
        paste("one\ntwo\nthree\x1b[A\x03ß", false),
        key(Char('b'), NONE),
    ];
    assert_eq!(all(bytes), expected);
    // However it is cut into pieces.
    let mut decoder = Decoder::default();
    let mut told = Vec::new();
    for byte in bytes {
        decoder.push(&[*byte]);
        told.extend(std::iter::from_fn(|| decoder.next(false)));
    }
    assert_eq!(told, expected);
}

#[test]
fn a_paste_without_an_end_ends_with_patience() {
    let mut decoder = Decoder::default();
    decoder.push(b"\x1b[200~text\x1b[20");
    assert_eq!(decoder.next(false), None);
    assert_eq!(decoder.patience(), Some(PASTE_PATIENCE));
    assert_eq!(decoder.next(true), Some(paste("text\x1b[20", false)));
}

#[test]
fn a_paste_that_is_too_long_is_cut_at_a_character() {
    let mut decoder = Decoder::default();
    decoder.push(b"\x1b[200~a");
    let piece = "ß".repeat(1 << 20);
    for _ in 0..13 {
        decoder.push(piece.as_bytes());
        assert_eq!(decoder.next(false), None);
    }
    decoder.push(b"\x1b[201~b");
    let Some(Input::Paste(Paste { text, is_cut: true })) = decoder.next(false) else {
        panic!("it is cut");
    };
    assert_eq!(text.len(), MAX_PASTE_BYTES - 1);
    assert!(text.ends_with('ß'));
    assert_eq!(decoder.next(false), Some(key(Char('b'), NONE)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn any_bytes_are_told_to_their_end(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 1..6),
                "\\x1b[\\[O\\]P\\x1b][0-9;:<?]{0,6}[A-Za-z~\\x07]?".prop_map(String::into_bytes),
            ],
            0..20,
        ),
    ) {
        let mut decoder = Decoder::default();
        for piece in &pieces {
            decoder.push(piece);
            while decoder.next(false).is_some() {}
        }
        while decoder.next(true).is_some() {}
        prop_assert_eq!(decoder.patience(), None);
        decoder.push(b"x");
        prop_assert_eq!(decoder.next(false), Some(key(Char('x'), NONE)));
    }
}
