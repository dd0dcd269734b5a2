//! The keymap that a user has chosen for the programs of GNU Readline.

use super::Keymap;

/// The keymap that the text of an inputrc file asks for. Its conditions are ignored; the last line counts.
pub fn keymap_of_inputrc(text: &str) -> Keymap {
    let mut keymap = Keymap::Emacs;
    for line in text.lines() {
        let words: Vec<String> = line
            .split_whitespace()
            .take(3)
            .map(str::to_ascii_lowercase)
            .collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["set", "editing-mode", "vi"] => keymap = Keymap::Vi,
            ["set", "editing-mode", "emacs"] => keymap = Keymap::Emacs,
            _ => {}
        }
    }
    keymap
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_editing_mode_counts() {
        assert_eq!(keymap_of_inputrc(""), Keymap::Emacs);
        assert_eq!(keymap_of_inputrc("# set editing-mode vi\n"), Keymap::Emacs);
        assert_eq!(
            keymap_of_inputrc("$if mode\n  Set editing-mode  Vi # x\n"),
            Keymap::Vi
        );
        assert_eq!(
            keymap_of_inputrc("set editing-mode vi\nset editing-mode emacs"),
            Keymap::Emacs
        );
    }
}
