//! The guardian's words. What it does to a terminal is tested in `tests/terminal.rs`.

use super::*;

fn armed() -> Armed {
    Armed {
        input: InputModes::ICRNL,
        output: OutputModes::OPOST,
        control: ControlModes::CREAD,
        local: LocalModes::ECHO | LocalModes::ICANON,
        least: 1,
        time: 0,
        wanted: Wanted::for_terminal("xterm"),
    }
}

#[test]
fn a_pipe_that_ends_after_a_line_has_something_to_restore() {
    let line = armed().line();
    assert!(line.len() <= MAX_LINE_BYTES);
    assert_eq!(last_word(line.as_bytes()), Some(armed()));
    let again = format!("{line}-\n{line}");
    assert_eq!(last_word(again.as_bytes()), Some(armed()));
}

#[test]
fn a_pipe_that_ends_after_the_restored_byte_has_not() {
    let line = armed().line();
    for words in ["", "-\n", &format!("{line}-\n"), &line[..5], "rubbish\n"] {
        assert_eq!(last_word(words.as_bytes()), None, "{words:?}");
    }
    let endless = "1".repeat(10 * MAX_LINE_BYTES) + "\n";
    assert_eq!(last_word(endless.as_bytes()), None);
}
