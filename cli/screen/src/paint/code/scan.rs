//! Code of words, strings and comments.

use ratatui_core::style::Style;

use super::Paint;
use super::languages::{Language, Text};
use crate::paint::palette;

/// Words that stand for values in many languages.
const VALUES: &[&str] = &[
    "true",
    "false",
    "null",
    "nil",
    "None",
    "True",
    "False",
    "NULL",
    "nullptr",
    "undefined",
    "NaN",
];

/// The longest character of a program, in letters: `\u{10FFFF}'`.
const MAX_CHARACTER: usize = 12;

/// Colours code by the rules of its language.
pub(super) fn scan(code: &str, language: &Language, paint: &mut Paint) {
    let mut scanner = Scanner {
        code,
        at: 0,
        language,
        paint,
    };
    while scanner.at < code.len() {
        scanner.token();
    }
}

struct Scanner<'a> {
    code: &'a str,
    at: usize,
    language: &'a Language,
    paint: &'a mut Paint,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.code[self.at..]
    }

    fn take(&mut self, length: usize, style: Style) {
        self.paint.push(&self.rest()[..length], style);
        self.at += length;
    }

    fn token(&mut self) {
        let rest = self.rest();
        let Some(letter) = rest.chars().next() else {
            return;
        };
        if letter.is_whitespace() {
            self.take(while_(rest, char::is_whitespace), palette::PLAIN);
        } else if let Some(length) = self.comment() {
            self.take(length, palette::COMMENT);
        } else if let Some(length) = self.directive() {
            self.take(length, palette::KEYWORD);
        } else if let Some(length) = self.string() {
            let style = self.key_style(length).unwrap_or(palette::STRING);
            self.take(length, style);
        } else if letter.is_ascii_digit() {
            self.take(number(rest), palette::NUMBER);
        } else if self.is_word(letter) {
            self.word();
        } else {
            self.take(letter.len_utf8(), palette::PLAIN);
        }
    }

    fn is_word(&self, letter: char) -> bool {
        letter.is_alphanumeric() || letter == '_' || self.language.word_letters.contains(letter)
    }

    /// True if only blanks stand before this place in its line.
    fn begins_line(&self) -> bool {
        self.paint
            .line
            .iter()
            .all(|span| span.content.trim().is_empty())
    }

    fn comment(&self) -> Option<usize> {
        let rest = self.rest();
        for (open, close) in self.language.block_comments {
            if let Some(inside) = rest.strip_prefix(open) {
                let end = inside.find(close).map(|end| open.len() + end + close.len());
                return Some(end.unwrap_or(rest.len()));
            }
        }
        let open = self
            .language
            .line_comments
            .iter()
            .find(|open| rest.starts_with(**open))?;
        // In `$#` and `a#b` of a shell, `#` begins no comment.
        let is_anywhere = *open != "#" || !self.language.word_letters.contains('-');
        let before = self.code[..self.at].chars().next_back();
        let is_apart =
            before.is_none_or(|letter| letter.is_whitespace() || ";(){}".contains(letter));
        (is_anywhere || is_apart).then(|| line_end(rest))
    }

    /// A line that is for the compiler (`#include`), or that names a section (`[name]`).
    fn directive(&self) -> Option<usize> {
        let rest = self.rest();
        if self.language.has_sections && rest.starts_with('[') && self.begins_line() {
            return Some(line_end(rest));
        }
        if self.language.has_directives && rest.starts_with('#') && self.begins_line() {
            let blanks = while_(&rest[1..], |letter| letter == ' ');
            return Some(1 + blanks + while_(&rest[1 + blanks..], char::is_alphanumeric));
        }
        None
    }

    fn string(&self) -> Option<usize> {
        let rest = self.rest();
        if self.language.has_lifetimes && rest.starts_with('\'') {
            return character(rest);
        }
        if rest.starts_with('\'') && self.is_apostrophe() {
            return None;
        }
        let text = self
            .language
            .texts
            .iter()
            .find(|text| rest.starts_with(text.open))?;
        Some(text_end(rest, text))
    }

    /// True if the quote here is one of `don't` or `1'000`, and not that of `f'text'`.
    fn is_apostrophe(&self) -> bool {
        let is_part = |letter: &char| self.is_word(*letter);
        let mut before = self.code[..self.at]
            .chars()
            .rev()
            .take_while(is_part)
            .take(3)
            .peekable();
        before.peek().is_some() && !before.all(|letter| "bfruexnBFRULEXN".contains(letter))
    }

    fn word(&mut self) {
        let rest = self.rest();
        let length = while_(rest, |letter| self.is_word(letter));
        let word = &rest[..length];
        let after = &rest[length..];
        if self.language.has_raw_strings
            && matches!(word, "r" | "br" | "cr")
            && let Some(end) = raw_end(after)
        {
            self.take(length + end, palette::STRING);
            return;
        }
        let style = self.word_style(word, after);
        self.take(length, style);
    }

    fn word_style(&self, word: &str, after: &str) -> Style {
        let language = self.language;
        let keyword = if language.any_case {
            word.to_lowercase()
        } else {
            word.to_owned()
        };
        let is_keyword = language.keywords.split(' ').any(|other| other == keyword);
        let is_macro = language.has_lifetimes
            && after
                .strip_prefix('!')
                .is_some_and(|after| after.starts_with(['(', '[', '{']));
        if let Some(style) = self.key_style(word.len()) {
            style
        } else if is_keyword {
            palette::KEYWORD
        } else if VALUES.contains(&word) {
            palette::NUMBER
        } else if after.starts_with('(') || is_macro {
            palette::FUNCTION
        } else if language.has_types && word.starts_with(|letter: char| letter.is_uppercase()) {
            palette::TYPE
        } else {
            palette::PLAIN
        }
    }

    /// The style of a key, if the sign of a key follows the text of this length.
    fn key_style(&self, length: usize) -> Option<Style> {
        let sign = self.language.key_sign?;
        let after = &self.rest()[length..];
        let blanks = while_(after, |letter| letter == ' ');
        let after = after[blanks..].strip_prefix(sign)?;
        // `https://` has no key.
        let is_sign = sign != ':' || !after.starts_with(['/', ':']);
        is_sign.then_some(palette::TYPE)
    }
}

/// The bytes at the beginning whose letters are such.
fn while_(text: &str, is_such: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !is_such(letter)).unwrap_or(text.len())
}

fn line_end(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

fn number(text: &str) -> usize {
    let mut end = 0;
    loop {
        end += while_(&text[end..], |letter| {
            letter.is_ascii_alphanumeric() || letter == '_'
        });
        let fraction = text[end..].strip_prefix('.');
        if !fraction.is_some_and(|text| text.starts_with(|letter: char| letter.is_ascii_digit())) {
            return end;
        }
        end += 1;
    }
}

/// The end of a character (`'a'`, `'\\n'`); none for a lifetime (`'a`).
fn character(text: &str) -> Option<usize> {
    let mut letters = text.char_indices().skip(1).take(MAX_CHARACTER);
    let (_, letter) = letters.next()?;
    if letter == '\\' {
        letters.next()?;
        let quote = letters
            .take_while(|(_, letter)| *letter != '\n')
            .find(|(_, letter)| *letter == '\'');
        return quote.map(|(at, _)| at + 1);
    }
    let (at, next) = letters.next()?;
    (next == '\'' && letter != '\n').then_some(at + 1)
}

fn text_end(text: &str, rule: &Text) -> usize {
    let mut at = rule.open.len();
    while let Some(letter) = text[at..].chars().next() {
        if text[at..].starts_with(rule.close) {
            return at + rule.close.len();
        }
        if letter == '\n' && !rule.has_lines {
            return at;
        }
        at += letter.len_utf8();
        if letter == '\\' && rule.has_escapes {
            at += text[at..]
                .chars()
                .next()
                .filter(|next| *next != '\n')
                .map_or(0, char::len_utf8);
        }
    }
    text.len()
}

/// The end of a raw string whose `r` is taken: `#"…"#`.
fn raw_end(text: &str) -> Option<usize> {
    let hashes = while_(text, |letter| letter == '#');
    let inside = text[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", &text[..hashes]);
    let end = inside
        .find(&close)
        .map(|end| hashes + 1 + end + close.len());
    Some(end.unwrap_or(text.len()))
}
