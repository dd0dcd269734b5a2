//! Text in rows: a tool call's whole command behind a hanging indent.

use unicode_width::UnicodeWidthChar as _;

/// Most rows of one command.
const MAX_ROWS: usize = 20;

/// Most letters of one command, where rows have no end.
const MAX_LETTERS: usize = 4000;

/// The spaces that replace a tab.
const TAB: &str = "    ";

/// Breaks `text` into rows of fewer than `columns` columns. On the first row `taken` of them are
/// already in use; the others begin with `indent` spaces. Rows end at spaces where they can. A
/// longer text is cut, with a row that counts the letters that are left.
pub(crate) fn hanging(text: &str, taken: usize, indent: usize, columns: Option<usize>) -> String {
    let text = text.trim_end().replace('\t', TAB);
    let margin = " ".repeat(indent);
    let total = text.chars().count();
    let kept: String = text.chars().take(MAX_LETTERS).collect();
    let (mut rows, mut shown) = (Vec::new(), 0);
    'lines: for (number, line) in kept.split('\n').enumerate() {
        let mut rest = line;
        if rows.len() < MAX_ROWS && number > 0 {
            // The end of the line before.
            shown += 1;
        }
        loop {
            if rows.len() == MAX_ROWS {
                break 'lines;
            }
            let used = if rows.is_empty() { taken } else { indent };
            let room = columns.map(|columns| columns.saturating_sub(used + 1).max(1));
            let (row, next) = rest.split_at(row_end(rest, room));
            shown += row.chars().count();
            rows.push(row.trim_end().to_owned());
            rest = next;
            if rest.is_empty() {
                break;
            }
        }
    }
    let left = total.saturating_sub(shown.min(total));
    if left > 0 {
        rows.push(format!("… {left} more characters"));
    }
    rows.join(&format!("\n{margin}"))
}

/// The first part of a line that fits.
pub(super) fn first_row(line: &str, room: Option<usize>) -> String {
    let Some(room) = room else {
        return line.to_owned();
    };
    let mut used = 0;
    let fits = line.char_indices().find(|(_, letter)| {
        used += letter.width().unwrap_or(0);
        used > room
    });
    match fits {
        None => line.to_owned(),
        Some((place, _)) => {
            let mut row: String = line[..place].to_owned();
            row.pop();
            row.push('…');
            row
        }
    }
}

/// The end of the first row of a line, in bytes.
fn row_end(line: &str, room: Option<usize>) -> usize {
    let Some(room) = room else { return line.len() };
    let (mut used, mut space) = (0, None);
    for (place, letter) in line.char_indices() {
        used += letter.width().unwrap_or(0);
        if used > room && place > 0 {
            return space.unwrap_or(place);
        }
        if letter == ' ' && !line[..place].trim().is_empty() {
            space = Some(place + 1);
        }
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_at_spaces_and_hang_below_the_first() {
        assert_eq!(
            hanging("cargo test --workspace --all", 9, 4, Some(21)),
            "cargo test\n    --workspace\n    --all"
        );
        assert_eq!(hanging("cargo test", 9, 4, None), "cargo test");
    }

    #[test]
    fn lines_of_a_command_stay_lines_with_their_indents() {
        assert_eq!(
            hanging("if x; then\n\ty\n  z\nfi\n", 9, 4, Some(80)),
            "if x; then\n        y\n      z\n    fi"
        );
    }

    #[test]
    fn a_word_without_end_is_broken_and_wide_letters_count_twice() {
        assert_eq!(hanging("abcdefgh", 2, 2, Some(7)), "abcd\n  efgh");
        assert_eq!(hanging("漢字漢字", 2, 2, Some(7)), "漢字\n  漢字");
        assert_eq!(hanging("漢漢", 2, 2, Some(1)), "漢\n  漢");
    }

    #[test]
    fn what_is_too_long_is_counted() {
        let lines = hanging(&"line\n".repeat(30), 0, 2, Some(80));
        assert_eq!(lines.lines().count(), MAX_ROWS + 1);
        assert!(lines.ends_with("\n  … 50 more characters"), "{lines}");
        let long = hanging(&"x".repeat(MAX_LETTERS + 7), 0, 2, None);
        assert!(long.ends_with("x\n  … 7 more characters"));
        let exact = hanging(&"x".repeat(MAX_LETTERS), 0, 2, None);
        assert!(!exact.contains('…'));
    }
}
