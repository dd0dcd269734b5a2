//! The output of a person's command as it is shown: its beginning, made harmless, and the number of characters behind it.

use shared_api::OperationEnd;

use super::RUNS_AT_MOST;
use crate::{output, signals};

/// Most characters that are shown of a command.
const MAX_CHARACTERS: usize = 4000;

/// The output so far.
#[derive(Debug, Default)]
pub(super) struct Shown {
    output: output::Shown,
    characters: usize,
    more: u64,
    is_line_open: bool,
}

impl Shown {
    /// Adds output; returns the part of it that is shown.
    pub(super) fn output(&mut self, data: &[u8]) -> String {
        let text = self.output.take(data);
        self.add(&text)
    }

    /// Adds a line in its place in the output; returns the part of it that is shown.
    pub(super) fn line(&mut self, text: &str) -> String {
        let open = if self.is_line_open { "\n" } else { "" };
        self.add(&format!("{open}{text}\n"))
    }

    /// The end of an unfinished line, if there is one.
    pub(super) fn end_line(&mut self) -> &'static str {
        match std::mem::take(&mut self.is_line_open) {
            true => "\n",
            false => "",
        }
    }

    /// The number of characters that are not shown; `None` if all are.
    pub(super) fn more(&self) -> Option<String> {
        (self.more > 0).then(|| grouped(self.more))
    }

    fn add(&mut self, text: &str) -> String {
        let room = MAX_CHARACTERS - self.characters;
        let end = text
            .char_indices()
            .nth(room)
            .map_or(text.len(), |(at, _)| at);
        let (shown, rest) = text.split_at(end);
        self.characters += shown.chars().count();
        self.more += rest.chars().count() as u64;
        if let Some(last) = shown.chars().last() {
            self.is_line_open = last != '\n';
        }
        shown.to_owned()
    }
}

/// The end of a command in few words; `None` if it ended well. `is_stopped`: the person asked to stop it.
pub(super) fn end_in_words(end: &OperationEnd, is_stopped: bool) -> Option<String> {
    let OperationEnd::Exited {
        code,
        signal,
        cause,
        words,
        ..
    } = end
    else {
        return Some(end.words().to_owned());
    };
    Some(match (&**cause, code, signal) {
        ("exited", Some(0), _) => return None,
        ("exited", Some(code), _) => format!("exit {code}"),
        ("exited", None, Some(signal)) => format!("killed by {}", signals::name(*signal)),
        ("timeout", ..) => format!("stopped after {} s", RUNS_AT_MOST.as_secs()),
        ("cancelled", ..) if is_stopped => "stopped".to_owned(),
        _ => words.clone(),
    })
}

/// A number with a comma before each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_4000_characters_are_shown_and_the_rest_is_counted_however_it_is_cut() {
        let text = "ü\x1b[31m1\n".repeat(5448);
        for pieces in [1, 7, 4096] {
            let mut shown = Shown::default();
            let pieces = text.as_bytes().chunks(pieces);
            let said: String = pieces.map(|piece| shown.output(piece)).collect();
            assert_eq!(said.chars().count(), 4000);
            assert!(said.starts_with("ü1\nü1\n"), "{said}");
            assert_eq!(shown.more().as_deref(), Some("12,344"));
            assert_eq!((shown.end_line(), shown.end_line()), ("\n", ""));
        }
    }

    #[test]
    fn all_of_a_short_output_is_shown_and_a_line_stands_on_its_own() {
        let mut shown = Shown::default();
        assert_eq!(shown.output(b"begun"), "begun");
        assert_eq!(shown.line("… 5 bytes"), "\n… 5 bytes\n");
        assert_eq!(shown.output(b"ended\n"), "ended\n");
        assert_eq!((shown.end_line(), shown.more()), ("", None));
    }

    #[test]
    fn only_an_end_that_is_no_success_has_words() {
        let end = |code, signal, cause: &str| OperationEnd::Exited {
            code,
            signal,
            cause: cause.to_owned(),
            words: "the words".to_owned(),
            stdout_bytes: 0,
            stderr_bytes: 0,
            wall_ms: 0,
        };
        for (end, is_stopped, words) in [
            (end(Some(0), None, "exited"), false, None),
            (end(Some(3), None, "exited"), true, Some("exit 3")),
            (
                end(None, Some(15), "exited"),
                false,
                Some("killed by SIGTERM"),
            ),
            (
                end(None, Some(11), "exited"),
                false,
                Some("killed by signal 11"),
            ),
            (
                end(None, Some(9), "timeout"),
                false,
                Some("stopped after 120 s"),
            ),
            (end(None, Some(9), "cancelled"), true, Some("stopped")),
            (end(None, Some(9), "cancelled"), false, Some("the words")),
            (end(None, None, "exited"), false, Some("the words")),
        ] {
            assert_eq!(end_in_words(&end, is_stopped).as_deref(), words, "{end:?}");
        }
    }
}
