//! The search for calls in the text of an answer.
//!
//! Tags may stand anywhere in the text, and JSON without a tag only where it is the text's end. Nothing counts that is
//! quoted, as Markdown and HTML quote: a fenced or indented block, a block quote with all lines of its paragraph,
//! inline code, and all that stands within an element (`<pre>…</pre>`) or a comment. Where it is in doubt if something
//! is quoted, it is: a call that is not found is text that people see, and a call that was only shown is a command that
//! the user did not ask for.

use std::ops::Range;

use super::{
    elements,
    shape::{self, TextCall},
};
use crate::ToolSpec;

/// Most beginnings that prove to be no call; then the search ends. So its time grows with the text alone.
const FALSE_STARTS: usize = 64;

/// The tags around calls. A closing tag may be missing at the end of the text.
const TAGS: &[(&str, &str)] = &[
    ("<tool_call>", "</tool_call>"),
    ("<tool_calls>", "</tool_calls>"),
    ("<function_calls>", "</function_calls>"),
    ("<minimax:tool_call>", "</minimax:tool_call>"),
];

/// The mark of Mistral's models before their calls, and the one between a name and its arguments.
const MISTRAL: (&str, &str) = ("[TOOL_CALLS]", "[ARGS]");

/// Elements that quote to the end of the text where they are not closed.
const QUOTING: &[&str] = &[
    "pre",
    "code",
    "blockquote",
    "q",
    "samp",
    "kbd",
    "tt",
    "xmp",
    "textarea",
    "listing",
    "plaintext",
    "script",
    "style",
    "template",
    "example",
    "tool_response",
    "tool_result",
];

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundCalls {
    /// The text without the calls.
    pub(super) text: String,
    /// The calls, in their order.
    pub(super) calls: Vec<TextCall>,
    /// The places of the calls, as they are written.
    pub(super) written: Vec<Range<usize>>,
}

/// Finds the calls of these tools.
pub(super) fn calls(text: &str, tools: &[ToolSpec]) -> FoundCalls {
    let mut search = Search {
        text,
        lower: text.to_ascii_lowercase(),
        tools,
        at: 0,
        is_after_blank: true,
        is_quoted: false,
        false_starts: 0,
        cut: Vec::new(),
        calls: Vec::new(),
    };
    while search.at < text.len() && search.false_starts < FALSE_STARTS {
        search.line();
    }
    FoundCalls {
        text: without(text, &search.cut),
        calls: search.calls,
        written: search.cut,
    }
}

struct Search<'a> {
    text: &'a str,
    /// The text in small letters, in which the names of elements are looked for.
    lower: String,
    tools: &'a [ToolSpec],
    /// The place that the search has reached.
    at: usize,
    /// True behind a blank line, and behind an indented block.
    is_after_blank: bool,
    /// True in the paragraph of a block quote.
    is_quoted: bool,
    false_starts: usize,
    /// The parts of the text that are calls.
    cut: Vec<Range<usize>>,
    calls: Vec<TextCall>,
}

/// The calls at a place, and the number of bytes that they take.
type Parsed = Option<(Vec<TextCall>, usize)>;

impl<'a> Search<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Searches a line from its beginning, and the lines that its calls and quotations reach into.
    fn line(&mut self) {
        let line = first_line(self.rest());
        if line.trim().is_empty() {
            self.at += line.len();
            (self.is_after_blank, self.is_quoted) = (true, false);
            return;
        }
        let content = behind_list_marks(line);
        if let Some((letter, length)) = fence(content) {
            let column = line.len() - content.len();
            self.at += line.len();
            self.at += fenced(self.rest(), letter, length, column);
            (self.is_after_blank, self.is_quoted) = (true, false);
            return;
        }
        self.is_quoted |= content.starts_with('>');
        if self.is_quoted || (self.is_after_blank && is_indented(line)) {
            self.at += line.len();
            return;
        }
        self.is_after_blank = false;
        self.at += line.len() - line.trim_start().len();
        self.bare_json();
        self.within_line();
    }

    /// Takes JSON that is the rest of the text, one value or several, each a call. JSON that is none is passed over.
    fn bare_json(&mut self) {
        if !may_be_json(self.rest()) {
            return;
        }
        let mut values =
            serde_json::Deserializer::from_str(self.rest()).into_iter::<serde_json::Value>();
        let mut calls = Some(Vec::new());
        let mut end = 0;
        while let Some(Ok(value)) = values.next() {
            end = values.byte_offset();
            let more = shape::calls(&value, self.tools, shape::CallBounds::None);
            calls = calls.zip(more).map(|(mut calls, more)| {
                calls.extend(more);
                calls
            });
            if !may_be_json(self.rest()[end..].trim_start()) {
                break;
            }
        }
        let is_the_rest = self.rest()[end..].trim().is_empty();
        match calls.filter(|_| is_the_rest) {
            Some(calls) => self.take(calls, end),
            None => {
                self.false_starts += 1;
                self.at += end;
            }
        }
    }

    /// Searches to the end of the line at which the last call or quotation ends.
    fn within_line(&mut self) {
        while let Some(next) = self.rest().find(['\n', '`', '<', '[']) {
            self.at += next;
            let rest = self.rest();
            match rest.as_bytes()[0] {
                b'\n' => {
                    self.at += 1;
                    return;
                }
                b'`' if self.text[..self.at].ends_with('\\') => self.at += paragraph(rest).len(),
                b'`' => self.at += code_span(rest),
                _ => self.call_or_text(),
            }
            if self.false_starts >= FALSE_STARTS {
                return;
            }
        }
        self.at = self.text.len();
    }

    fn call_or_text(&mut self) {
        let rest = self.rest();
        let before = self.text[..self.at].chars().next_back();
        let is_in_marks = before.is_some_and(|letter| "\"'“”„«‘’".contains(letter));
        if is_in_marks || !begins_call(rest) {
            self.at += self.element().max(1);
            return;
        }
        match self.tagged(rest) {
            Some((calls, end)) => self.take(calls, end),
            None => {
                self.false_starts += 1;
                self.at += 1;
            }
        }
    }

    /// The bytes up to the last end of the element or the comment that begins here; none where nothing begins.
    fn element(&mut self) -> usize {
        let lower = &self.lower[self.at..];
        let (end, is_quoting) = match lower.strip_prefix('<') {
            Some(rest) if rest.starts_with("!--") => ("-->".to_owned(), true),
            Some(rest) if rest.starts_with("![cdata[") => ("]]>".to_owned(), true),
            Some(rest) if rest.starts_with(|first: char| first.is_ascii_alphabetic()) => {
                let is_of_name =
                    |letter: char| letter.is_ascii_alphanumeric() || "-_:".contains(letter);
                let name = &rest[..rest
                    .find(|letter| !is_of_name(letter))
                    .unwrap_or(rest.len())];
                (format!("</{name}"), QUOTING.contains(&name))
            }
            _ => return 0,
        };
        // Each looks through the rest of the text.
        self.false_starts += 1;
        match lower.rfind(&end) {
            Some(place) => place + end.len(),
            None if is_quoting => lower.len(),
            None => 1,
        }
    }

    fn take(&mut self, calls: Vec<TextCall>, bytes: usize) {
        self.cut.push(self.at..self.at + bytes);
        self.calls.extend(calls);
        self.at += bytes;
    }

    /// The calls of the tag with which this text begins.
    fn tagged(&self, text: &str) -> Parsed {
        if let Some(inside) = text.strip_prefix(MISTRAL.0) {
            let (calls, rest) = self.of_mistral(inside.trim_start())?;
            return Some((calls, text.len() - rest.len()));
        }
        let tag = TAGS.iter().find(|(open, _)| text.starts_with(open));
        let Some((open, close)) = tag else {
            let (call, rest) = elements::call(text, self.tools)?;
            return Some((vec![call], text.len() - rest.len()));
        };
        let mut rest = text[open.len()..].trim_start();
        let mut calls = Vec::new();
        loop {
            let (more, behind) = self.item(rest)?;
            calls.extend(more);
            rest = behind.trim_start();
            if let Some(behind) = rest.strip_prefix(close) {
                return Some((calls, text.len() - behind.len()));
            }
            if rest.is_empty() {
                return Some((calls, text.len()));
            }
        }
    }

    /// The calls of one item within a tag, and the text behind it.
    fn item<'t>(&self, text: &'t str) -> Option<(Vec<TextCall>, &'t str)> {
        if text.starts_with('<') {
            let (call, rest) = elements::call(text, self.tools)?;
            return Some((vec![call], rest));
        }
        let (value, rest) = shape::value(text)?;
        Some((
            shape::calls(&value, self.tools, shape::CallBounds::Tags)?,
            rest,
        ))
    }

    /// The calls behind Mistral's mark: an array, or `NAME[ARGS]{…}`.
    fn of_mistral<'t>(&self, text: &'t str) -> Option<(Vec<TextCall>, &'t str)> {
        if text.starts_with(['[', '{']) {
            return self.item(text);
        }
        let name = &text[..text.floor_char_boundary(shape::MAX_NAME_BYTES)];
        let (name, _) = name.split_once(MISTRAL.1)?;
        let tool = shape::offered(self.tools, name.trim())?;
        let arguments = text[name.len() + MISTRAL.1.len()..].trim_start();
        let (value, rest) = shape::value(arguments)?;
        let call = TextCall {
            name: tool.name.clone(),
            arguments: value.to_string(),
        };
        Some((vec![call], rest))
    }
}

fn begins_call(text: &str) -> bool {
    let tags = TAGS.iter().map(|(open, _)| *open);
    let mut all = tags.chain([MISTRAL.0]).chain(elements::BEGINNINGS);
    all.any(|beginning| text.starts_with(beginning))
}

/// True for the beginning of an object with a field, and of an array of such.
fn may_be_json(text: &str) -> bool {
    let inside = text.strip_prefix('[').unwrap_or(text).trim_start();
    inside
        .strip_prefix('{')
        .is_some_and(|fields| fields.trim_start().starts_with('"'))
}

/// The first line, with its end.
fn first_line(text: &str) -> &str {
    text.split_inclusive('\n').next().unwrap_or_default()
}

/// The line behind its white space and the marks of list items.
fn behind_list_marks(line: &str) -> &str {
    let mut content = line.trim_start();
    loop {
        let digits = content.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let behind = match digits.len() < content.len() {
            true => digits.strip_prefix(['.', ')']),
            false => content.strip_prefix(['-', '*', '+']),
        };
        match behind.filter(|behind| behind.starts_with([' ', '\t'])) {
            Some(behind) => content = behind.trim_start(),
            None => return content,
        }
    }
}

fn is_indented(line: &str) -> bool {
    line.starts_with("    ") || line.starts_with('\t')
}

/// The fence that this line opens: its letter and its length.
fn fence(content: &str) -> Option<(char, usize)> {
    let letter = content
        .chars()
        .next()
        .filter(|first| "`~".contains(*first))?;
    let behind = content.trim_start_matches(letter);
    let length = content.len() - behind.len();
    let is_inline = letter == '`' && behind.contains('`');
    (length >= 3 && !is_inline).then_some((letter, length))
}

/// The bytes of a fenced block behind its first line, whose fence stands in this column: all of the text where it is
/// not closed, or where it is in doubt which fence closes it. Readers of Markdown differ about fences that are
/// indented otherwise.
fn fenced(text: &str, letter: char, length: usize, column: usize) -> usize {
    const INDENTED_AT_MOST: usize = 3;
    let mut bytes = 0;
    for line in text.split_inclusive('\n') {
        bytes += line.len();
        let content = line.trim();
        if content.len() < length || !content.chars().all(|found| found == letter) {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let is_sure = !line.starts_with('\t')
            && (column..=column + INDENTED_AT_MOST).contains(&indent)
            && column <= INDENTED_AT_MOST;
        return if is_sure { bytes } else { text.len() };
    }
    text.len()
}

/// The text up to the end of its paragraph: to a blank line or a fence.
fn paragraph(text: &str) -> &str {
    let mut bytes = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let ends = line.trim().is_empty() || fence(behind_list_marks(line)).is_some();
        if number > 0 && ends {
            break;
        }
        bytes += line.len();
    }
    &text[..bytes]
}

/// The bytes of the inline code with which this text begins: all of its paragraph where the code is not closed in its
/// line, or where a tick is escaped.
fn code_span(text: &str) -> usize {
    let paragraph = paragraph(text);
    let line = match paragraph.contains("\\`") {
        true => "",
        false => first_line(paragraph),
    };
    let ticks = |text: &str| text.len() - text.trim_start_matches('`').len();
    let length = ticks(line);
    let mut at = length;
    while let Some(next) = line[at..].find('`') {
        let found = ticks(&line[at + next..]);
        at += next + found;
        if found == length {
            return at;
        }
    }
    paragraph.len()
}

/// The text without these parts. A blank line stands where a part was cut out of the middle.
fn without(text: &str, cut: &[Range<usize>]) -> String {
    let ends = cut.iter().map(|part| part.start).chain([text.len()]);
    let starts = [0].into_iter().chain(cut.iter().map(|part| part.end));
    let left = starts.zip(ends).map(|(start, end)| text[start..end].trim());
    let left: Vec<_> = left.filter(|left| !left.is_empty()).collect();
    left.join("\n\n")
}
