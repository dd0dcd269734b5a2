//! Lists: as many whole lines as fit, and how many do not.

use shared_sandbox::{FileFailure, Skipped};

use super::excerpt;

/// Room for the line that says what is missing.
const NOTE_BYTES: usize = 160;

/// The most bytes of the words on one file that was left out.
const SKIPPED_BYTES: usize = 300;

/// The words on a search that could not read some `.gitignore` files; empty if it could.
pub(super) fn unread_rules(count: u32) -> String {
    match count {
        0 => String::new(),
        1 => "[a .gitignore file is too large and was not read: what it names was searched as well]\n"
            .to_owned(),
        count => format!(
            "[{count} .gitignore files are too large and were not read: what they name was searched as well]\n"
        ),
    }
}

/// The words on files that a search left out; empty if there are none.
pub(super) fn not_searched(skipped: &[Skipped], more: u64) -> String {
    if skipped.is_empty() {
        return String::new();
    }
    let mut words: Vec<String> = skipped
        .iter()
        .map(|skipped| match &skipped.failure {
            // It names no file.
            FileFailure::Io { reason } => format!("{:?}: {reason}", skipped.path),
            failure => failure.to_string(),
        })
        .map(|words| excerpt::bounded(&words, SKIPPED_BYTES))
        .collect();
    match more {
        0 => {}
        1 => words.push("and 1 more file".to_owned()),
        more => words.push(format!("and {more} more files")),
    }
    format!("[not searched, or not to the end: {}]\n", words.join("; "))
}

/// The lines, cut between two of them where they do not fit into `limit` bytes. `more` says that
/// there were more than these to begin with; `advice` says what to do then.
pub(super) fn lines(
    items: impl IntoIterator<Item = String>,
    more: bool,
    limit: usize,
    advice: &str,
) -> String {
    let room = limit.saturating_sub(NOTE_BYTES);
    let mut text = String::new();
    let mut left_out = 0;
    for item in items {
        if left_out > 0 || text.len() + item.len() + 1 > room {
            left_out += 1;
            continue;
        }
        text.push_str(&item);
        text.push('\n');
    }
    match (left_out, more) {
        (0, false) => {}
        (0, true) => text.push_str(&format!("[there are more; {advice}]")),
        (count, false) => text.push_str(&format!("[and {count} more; {advice}]")),
        (count, true) => text.push_str(&format!("[and at least {count} more; {advice}]")),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_cut_between_lines_and_says_how_many_are_missing() {
        let items = (0..100).map(|n| format!("file-{n:02}"));
        let text = lines(items.clone(), false, 320, "narrow it");
        assert!(text.len() <= 320);
        let (last, note) = text.rsplit_once('\n').expect("there is a note");
        assert!(last.ends_with("file-19"));
        assert_eq!(note, "[and 80 more; narrow it]");
        assert!(
            lines(items, true, 320, "narrow it").ends_with("[and at least 80 more; narrow it]")
        );
    }

    #[test]
    fn a_list_that_fits_says_nothing_more() {
        assert_eq!(lines(["a".to_owned()], false, 1024, ""), "a\n");
    }
}
