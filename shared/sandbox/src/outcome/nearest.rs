//! The place of a file that is nearest to a text which does not stand in it.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// The nearest place to a text that does not stand in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nearest {
    /// Nothing in the file is like the text.
    Nowhere,
    /// These lines are like it.
    Lines {
        /// The number of the first of them, from 1.
        line: u64,
        /// The lines as they stand, without their ends.
        lines: Vec<String>,
        /// The differences, each in words.
        differences: Vec<String>,
    },
}

impl Nearest {
    /// Most lines that are shown.
    pub const MAX_LINES: usize = 10;
    /// Most bytes of these lines together.
    pub const MAX_BYTES: usize = 1024;
    /// Most differences that are told.
    pub const MAX_DIFFERENCES: usize = 4;
}

/// The words on the nearest place, behind those that the text is not there.
pub(super) fn words(nearest: Option<&Nearest>) -> String {
    let (line, lines, differences) = match nearest {
        None => {
            return "; read the file again and copy the text exactly, with its white space".into();
        }
        Some(Nearest::Nowhere) => {
            return "; nothing like it stands in the file; read it again".into();
        }
        Some(Nearest::Lines {
            line,
            lines,
            differences,
        }) => (*line, lines, differences),
    };
    let mut words = format!("; the nearest place is at line {line}");
    if !differences.is_empty() {
        let _ = write!(words, ": {}", differences.join("; "));
    }
    words.push_str("; these lines stand there, each behind its number and a tab:");
    for (number, text) in (line..).zip(lines) {
        let _ = write!(words, "\n{number}\t{text}");
    }
    words
}

/// The lines of the first of so many places.
pub(super) fn at_lines(lines: &[u64], count: u64) -> String {
    let numbers: Vec<_> = lines.iter().map(u64::to_string).collect();
    let more = match count > lines.len() as u64 {
        true => " and further ones",
        false => "",
    };
    match numbers.is_empty() {
        true => String::new(),
        false => format!(", at lines {}{more}", numbers.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use crate::FileFailure;

    /// The words on a failure that an earlier release stored.
    fn told(stored: &str) -> String {
        let failure: FileFailure = serde_json::from_str(stored).expect("it reads");
        let again = serde_json::to_string(&failure).expect("JSON");
        assert_eq!(again, stored, "it is written as before");
        failure.to_string()
    }

    #[test]
    fn a_failure_that_an_earlier_release_stored_is_read_and_told_as_before() {
        assert_eq!(
            told(r#"{"no_match":{"path":"a"}}"#),
            "the text to be replaced is not in \"a\"; read the file again and copy the text exactly, with its \
             white space"
        );
        let many = told(r#"{"many_matches":{"path":"a","count":2}}"#);
        assert!(many.starts_with("the text to be replaced stands 2 times in \"a\"; add lines"));
        let changed = told(r#"{"changed":{"path":"a"}}"#);
        assert_eq!(changed, "\"a\" was changed while it was read; try again");
    }
}
