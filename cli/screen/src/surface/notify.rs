//! The bytes of the bell, of notifications, and of the terminal's title. All text is cleaned.

use shared_types::clean::clean_line;

/// Rings the terminal's bell.
pub const BELL: &[u8] = b"\x07";

/// Longest title and longest notification, in characters.
const MAX_CHARACTERS: usize = 200;

/// Puts the terminal's title on its stack and sets another.
pub fn begin_title(title: &str) -> Vec<u8> {
    let mut bytes = b"\x1b[22;0t".to_vec();
    bytes.extend(set_title(title));
    bytes
}

/// Sets the terminal's title.
pub fn set_title(title: &str) -> Vec<u8> {
    let title = clean_line(title, MAX_CHARACTERS);
    format!("\x1b]2;{title}\x07").into_bytes()
}

/// Takes the terminal's title from its stack.
pub fn end_title() -> Vec<u8> {
    b"\x1b[23;0t".to_vec()
}

/// Notifies the person through the terminal's program (OSC 9). Inside tmux the sequence is wrapped, so that tmux passes
/// it on if its option `allow-passthrough` is on.
pub fn notification(text: &str, is_in_tmux: bool) -> Vec<u8> {
    let text = clean_line(text, MAX_CHARACTERS);
    // ConEmu and Windows Terminal take a number at the beginning for a command, such as a progress bar.
    let gap = match text.starts_with(|letter: char| letter.is_ascii_digit()) {
        true => " ",
        false => "",
    };
    let sequence = format!("\x1b]9;{gap}{text}\x07");
    match is_in_tmux {
        true => format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")).into_bytes(),
        false => sequence.into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_does_not_leave_its_sequence() {
        for bytes in [
            set_title("a\x07b\x1b]2;evil\x1b\\c\u{9c}\u{202e}"),
            notification("a\x07b\x1b]2;evil\x1b\\c\u{9c}\u{202e}", false),
        ] {
            let text = std::str::from_utf8(&bytes).expect("it is text");
            let inner = text
                .strip_prefix("\x1b]")
                .and_then(|text| text.strip_suffix('\x07'));
            assert!(inner.is_some_and(is_clean), "{text:?}");
        }
    }

    fn is_clean(text: &str) -> bool {
        text.chars().all(shared_types::clean::is_harmless)
    }

    #[test]
    fn a_notification_is_never_a_command_of_its_terminal() {
        assert_eq!(notification("4;1;50", false), b"\x1b]9; 4;1;50\x07");
    }

    #[test]
    fn tmux_is_asked_to_pass_a_notification_on() {
        assert_eq!(notification("done", false), b"\x1b]9;done\x07");
        assert_eq!(
            notification("done", true),
            b"\x1bPtmux;\x1b\x1b]9;done\x07\x1b\\"
        );
    }
}
