//! The differences between lines of a file and those of a text, in words.

use shared_sandbox::Nearest;

use super::plain::{is_unseen, named, plain};

/// Most characters of a line that are shown with a difference.
const SHOWN: usize = 48;

/// A line of the file, and the line of the text that is compared with it.
pub(super) struct Pair<'a> {
    /// The number of the line, from 0.
    pub(super) line: usize,
    /// The file's line, or the part of it that counts.
    pub(super) theirs: &'a str,
    /// The text's line.
    pub(super) yours: &'a str,
    /// True if both begin where the file's line begins.
    pub(super) is_at_start: bool,
}

impl<'a> Pair<'a> {
    /// Of a whole line of the file. The text's first line may begin anywhere in it, and the last one end anywhere.
    pub(super) fn of_line(
        line: usize,
        mut theirs: &'a str,
        yours: &'a str,
        is_first: bool,
        is_last: bool,
    ) -> Self {
        let mut is_at_start = true;
        if is_first && !yours.is_empty() {
            if let Some(at) = theirs.rfind(yours.trim_end()) {
                theirs = &theirs[at..];
                is_at_start = at == 0;
            } else if !yours.starts_with(char::is_whitespace) {
                theirs = theirs.trim_start();
                is_at_start = false;
            }
        }
        if is_last {
            theirs = match theirs.starts_with(yours) {
                true => yours,
                false if yours.ends_with(char::is_whitespace) => theirs,
                false => theirs.trim_end(),
            };
        }
        Self {
            line,
            theirs,
            yours,
            is_at_start,
        }
    }

    fn tell(&self, told: &mut Vec<String>) {
        let line = self.line + 1;
        let yours = self.yours;
        // A text without returns fits lines with them.
        let theirs = match yours.ends_with('\r') {
            true => self.theirs,
            false => self.theirs.strip_suffix('\r').unwrap_or(self.theirs),
        };
        if theirs == yours {
            return;
        }
        let (their_start, theirs) = theirs.split_at(theirs.len() - theirs.trim_start().len());
        let (your_start, yours) = yours.split_at(yours.len() - yours.trim_start().len());
        if their_start != your_start {
            let theirs = match (self.is_at_start, their_start) {
                (true, "") => "is not indented".to_owned(),
                (true, start) => format!("is indented with {}", white_space(start)),
                (false, start) => format!("has {}", white_space(start)),
            };
            let yours = white_space(your_start);
            told.push(format!("line {line} {theirs} where your text has {yours}"));
        }
        let (theirs, their_end) = theirs.split_at(theirs.trim_end().len());
        let (yours, your_end) = yours.split_at(yours.trim_end().len());
        if theirs != yours {
            told.push(words(line, theirs, yours));
        }
        if their_end != your_end {
            told.push(format!(
                "line {line} has {} at its end where your text has {}",
                white_space(their_end),
                white_space(your_end)
            ));
        }
    }
}

/// The first differences, and the line of the first of them. The lines of a place that `is_same_in_plain` differ only
/// in white space and the like, or in where they end.
pub(super) fn differences(pairs: &[Pair<'_>], is_same_in_plain: bool) -> (usize, Vec<String>) {
    let (mut at, mut told) = (None, Vec::new());
    for pair in pairs {
        let ends_elsewhere = is_same_in_plain && plain(pair.theirs) != plain(pair.yours);
        match ends_elsewhere {
            true => told.push(format!(
                "line {} does not end where it ends in your text",
                pair.line + 1
            )),
            false => pair.tell(&mut told),
        }
        if !told.is_empty() {
            at.get_or_insert(pair.line);
        }
        // Lines behind it have no counterpart.
        if ends_elsewhere {
            break;
        }
        if told.len() >= Nearest::MAX_DIFFERENCES {
            told.truncate(Nearest::MAX_DIFFERENCES - 1);
            told.push("there are more differences".to_owned());
            break;
        }
    }
    let first = pairs.first().map_or(0, |pair| pair.line);
    (at.unwrap_or(first), told)
}

/// The difference between two lines without the white space at their ends.
fn words(line: usize, theirs: &str, yours: &str) -> String {
    let at = same_start(theirs, yours);
    let letters = (theirs[at..].chars().next(), yours[at..].chars().next());
    if plain(theirs) == plain(yours) {
        let is_space = |letter: Option<char>| letter.is_some_and(char::is_whitespace);
        if is_space(letters.0) || is_space(letters.1) {
            return format!(
                "line {line} has {} where your text has {}",
                white_space(run(theirs, at)),
                white_space(run(yours, at))
            );
        }
        match letters {
            (Some(letter), _) if is_unseen(letter) => {
                return format!("line {line} has {}, which your text lacks", named(letter));
            }
            (_, Some(letter)) if is_unseen(letter) => {
                return format!("your text has {}, which line {line} lacks", named(letter));
            }
            (Some(one), Some(other)) if !one.to_lowercase().eq(other.to_lowercase()) => {
                return format!(
                    "your text has {} where line {line} has {}",
                    named(other),
                    named(one)
                );
            }
            _ => {}
        }
    }
    let (one, other) = (differing(theirs, yours), differing(yours, theirs));
    let case = match one.to_lowercase() == other.to_lowercase() {
        true => "the case differs: ",
        false => "",
    };
    match (shown(one), shown(other)) {
        (None, None) => format!("line {line} differs from your text"),
        (Some(one), None) => format!("line {line} has {one}, which your text lacks"),
        (None, Some(other)) => format!("your text has {other}, which line {line} lacks"),
        (Some(one), Some(other)) => {
            format!("{case}line {line} has {one} where your text has {other}")
        }
    }
}

/// The number of bytes that two lines have in common at their beginning.
fn same_start(one: &str, other: &str) -> usize {
    let same = one.chars().zip(other.chars());
    let same = same.take_while(|(one, other)| one == other);
    same.map(|(letter, _)| letter.len_utf8()).sum()
}

/// The run of white space at this place of a line.
fn run(line: &str, at: usize) -> &str {
    let start = line[..at].trim_end().len();
    let end = line.len() - line[at..].trim_start().len();
    &line[start..end]
}

/// The part of a line between its common beginning and its common end with the other, in whole words.
fn differing<'a>(line: &'a str, other: &str) -> &'a str {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let at = same_start(line, other);
    let start = line[..at].trim_end_matches(is_word).len();
    let (line, other) = (&line[start..], &other[start..]);
    let same = line.chars().rev().zip(other.chars().rev());
    let same = same.take_while(|(one, other)| one == other);
    let end: usize = same.map(|(letter, _)| letter.len_utf8()).sum();
    let tail = line[line.len() - end..].trim_start_matches(is_word);
    line[..line.len() - tail.len()].trim()
}

/// A text between quotes, if there is one; a long one is cut.
fn shown(text: &str) -> Option<String> {
    let mut letters = text.chars();
    let mut first: String = letters.by_ref().take(SHOWN).collect();
    first.extend(letters.next().map(|_| '…'));
    (!text.is_empty()).then(|| format!("{first:?}"))
}

/// White space in words: "a tab and 2 spaces".
fn white_space(text: &str) -> String {
    let mut runs: Vec<(char, usize)> = Vec::new();
    for letter in text.chars() {
        match runs.last_mut() {
            Some((last, count)) if *last == letter => *count += 1,
            _ => runs.push((letter, 1)),
        }
    }
    if runs.is_empty() {
        return "no white space".to_owned();
    }
    let runs = runs.into_iter().take(3).map(|(letter, count)| {
        let (name, code) = match letter {
            ' ' => ("space", None),
            '\t' => ("tab", None),
            '\r' => ("carriage return", None),
            '\u{a0}' => ("no-break space", Some(letter)),
            letter => ("other white space", Some(letter)),
        };
        let code = code.map(|letter| format!(" (U+{:04X})", u32::from(letter)));
        let code = code.unwrap_or_default();
        match count {
            1 => format!("a {name}{code}"),
            count => format!("{count} {name}s{code}"),
        }
    });
    runs.collect::<Vec<_>>().join(" and ")
}
