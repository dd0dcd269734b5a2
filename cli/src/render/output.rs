//! A command's output as indented lines: the first ones as they come, the last ones at the end, and the number of lines
//! between them. A note tells the person when the screen will be silent.

use std::collections::VecDeque;

use super::clean::Clean;
use crate::style::Style;

/// The text before each line of a call.
const GUTTER: &str = "  │ ";

/// The text before a note about a call's lines.
const INDENT: &str = "  ";

/// Longest line, in characters.
const MAX_LINE: usize = 1000;

/// The most streams of one call, which are usually stdout and stderr.
const MAX_STREAMS: usize = 4;

/// The end of the line about missing bytes.
const NOT_SHOWN: &str = " bytes that are not shown";

/// The number of lines to show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The first lines, as they come.
    pub(crate) head: usize,
    /// The last lines, at the end.
    pub(crate) tail: usize,
    /// True if a person waits for the end.
    pub(crate) live: bool,
}

/// The output of one call, or lines of a task.
#[derive(Debug)]
pub(crate) struct Output {
    style: Style,
    /// The text before each line.
    gutter: String,
    /// The text before a note about the lines.
    indent: String,
    bounds: Bounds,
    streams: Vec<Stream>,
    /// The stream whose line is unfinished.
    open: Option<usize>,
    line: String,
    letters: usize,
    lines: usize,
    tail: VecDeque<String>,
    /// Of the lines that are not shown, those that say how many bytes are missing.
    notices: usize,
    /// The number of bytes in those notices.
    missing: u64,
    /// It shows the rest of something: where it begins is no gap.
    goes_on: bool,
}

#[derive(Debug)]
struct Stream {
    name: String,
    clean: Clean,
    end: u64,
}

impl Output {
    pub(crate) fn new(style: Style, bounds: Bounds) -> Self {
        Self {
            style,
            gutter: GUTTER.to_owned(),
            indent: INDENT.to_owned(),
            bounds,
            streams: Vec::new(),
            open: None,
            line: String::new(),
            letters: 0,
            lines: 0,
            tail: VecDeque::new(),
            notices: 0,
            missing: 0,
            goes_on: false,
        }
    }

    /// The rest of something that was shown before.
    pub(crate) fn going_on(style: Style, bounds: Bounds) -> Self {
        Self {
            goes_on: true,
            ..Self::new(style, bounds)
        }
    }

    /// Lines behind a mark.
    pub(crate) fn marked(style: Style, bounds: Bounds, mark: &str) -> Self {
        Self {
            gutter: mark.to_owned(),
            indent: mark.to_owned(),
            ..Self::new(style, bounds)
        }
    }

    /// The ends of stdout and stderr, as far as they were seen.
    pub(crate) fn ends(&self) -> [u64; 2] {
        ["stdout", "stderr"].map(|name| {
            let stream = self.streams.iter().find(|stream| stream.name == name);
            stream.map_or(0, |stream| stream.end)
        })
    }

    /// True if nothing has come.
    pub(crate) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Gives up the unfinished line, so that something else can be shown; says whether there is
    /// one on the screen, which the caller then ends.
    pub(crate) fn break_line(&mut self) -> bool {
        let is_on_screen = self.open.is_some() && self.lines < self.bounds.head;
        if is_on_screen {
            self.lines += 1;
            self.letters = 0;
            self.open = None;
        }
        is_on_screen
    }

    /// Adds a piece of `bytes` bytes at `offset` of a stream.
    pub(crate) fn piece(
        &mut self,
        stream: &str,
        offset: u64,
        text: &str,
        bytes: u64,
        out: &mut String,
    ) {
        let Some(place) = self.stream(stream, offset) else {
            return;
        };
        if self.open.is_some_and(|open| open != place) {
            self.end_line(out);
        }
        self.skip_to(place, offset, out);
        self.streams[place].end = offset.saturating_add(bytes);
        let text = self.streams[place].clean.take(text);
        for letter in text.chars() {
            self.letter(place, letter, out);
        }
    }

    /// Adds a whole line.
    pub(crate) fn line(&mut self, text: &str, out: &mut String) {
        for letter in text.chars().chain(['\n']) {
            self.letter(0, letter, out);
        }
    }

    /// Continues a stream at this offset; the bytes before it are not stored.
    pub(crate) fn gap(&mut self, stream: &str, to: u64, out: &mut String) {
        // If the start of a rest is unknown, the number of missing bytes is unknown, too.
        if let Some(place) = self.stream(stream, to) {
            self.skip_to(place, to, out);
        }
    }

    fn skip_to(&mut self, place: usize, offset: u64, out: &mut String) {
        let missing = offset.saturating_sub(self.streams[place].end);
        if missing > 0 {
            if self.open.is_some() {
                self.end_line(out);
            }
            self.streams[place].end = offset;
            self.whole_line(place, &format!("… {missing}{NOT_SHOWN}"), out);
        }
    }

    /// Shows the held lines, and leaves no line unfinished.
    pub(crate) fn finish(&mut self, out: &mut String) {
        if self.open.is_some() {
            self.end_line(out);
        }
        let hidden = self
            .lines
            .saturating_sub(self.bounds.head + self.tail.len() + self.notices);
        if let Some(more) = more(hidden, self.missing) {
            let more = format!("{}… {more}", self.indent);
            out.push_str(&self.style.dim(&more));
            out.push('\n');
        }
        for line in self.tail.drain(..) {
            out.push_str(&self.style.dim(&self.gutter));
            out.push_str(&line);
            out.push('\n');
        }
    }

    fn stream(&mut self, name: &str, offset: u64) -> Option<usize> {
        let known = self.streams.iter().position(|known| known.name == name);
        if known.is_none() && self.streams.len() < MAX_STREAMS {
            self.streams.push(Stream {
                name: name.to_owned(),
                clean: Clean::default(),
                end: if self.goes_on { offset } else { 0 },
            });
            return Some(self.streams.len() - 1);
        }
        known
    }

    fn whole_line(&mut self, place: usize, text: &str, out: &mut String) {
        for letter in text.chars() {
            self.letter(place, letter, out);
        }
        self.end_line(out);
    }

    fn letter(&mut self, place: usize, letter: char, out: &mut String) {
        let is_shown = self.lines < self.bounds.head;
        if self.open.is_none() {
            self.open = Some(place);
            if is_shown {
                out.push_str(&self.style.dim(&self.gutter));
            }
        }
        if letter == '\n' {
            self.end_line(out);
            return;
        }
        self.letters += 1;
        let letter = match self.letters {
            ..=MAX_LINE => letter,
            length if length == MAX_LINE + 1 => '…',
            _ => return,
        };
        match is_shown {
            true => out.push(letter),
            false => self.line.push(letter),
        }
    }

    /// A line that is not shown.
    fn hide(&mut self, line: &str) {
        if let Some(missing) = missing_bytes(line) {
            self.notices += 1;
            self.missing = self.missing.saturating_add(missing);
        }
    }

    fn end_line(&mut self, out: &mut String) {
        if self.lines < self.bounds.head {
            out.push('\n');
        } else if self.bounds.tail > 0 {
            self.tail.push_back(std::mem::take(&mut self.line));
            if self.tail.len() > self.bounds.tail
                && let Some(line) = self.tail.pop_front()
            {
                self.hide(&line);
            }
        } else {
            let line = std::mem::take(&mut self.line);
            self.hide(&line);
        }
        self.line.clear();
        self.lines += 1;
        if self.bounds.live && self.lines == self.bounds.head + self.bounds.tail + 1 {
            let silence = format!(
                "{}… it goes on; the last {} lines are shown at its end",
                self.indent, self.bounds.tail
            );
            out.push_str(&self.style.dim(&silence));
            out.push('\n');
        }
        self.letters = 0;
        self.open = None;
    }
}

/// The text between the first lines and the last ones; `None` if none were left out.
fn more(lines: usize, missing: u64) -> Option<String> {
    let lines = match lines {
        0 => None,
        1 => Some("1 more line".to_owned()),
        lines => Some(format!("{lines} more lines")),
    };
    let missing = (missing > 0).then(|| format!("{missing} bytes that were not kept"));
    match (lines, missing) {
        (Some(lines), Some(missing)) => Some(format!("{lines} and {missing}")),
        (lines, missing) => lines.or(missing),
    }
}

/// The number of missing bytes that this line tells of. The line is either one of this file or one of the server, which
/// stores the beginning and the end of a long output.
fn missing_bytes(line: &str) -> Option<u64> {
    let (bytes, _) = match line.strip_prefix("[… ") {
        Some(kept) => kept.strip_suffix(" …]")?.split_once(" bytes left out")?,
        None => (line.strip_prefix("… ")?.strip_suffix(NOT_SHOWN)?, ""),
    };
    bytes.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        head: 3,
        tail: 2,
        live: false,
    };

    fn shown(pieces: &[(&str, &str)]) -> String {
        within(BOUNDS, pieces)
    }

    fn within(bounds: Bounds, pieces: &[(&str, &str)]) -> String {
        let mut output = Output::new(Style::new(false), bounds);
        let (mut out, mut ends) = (String::new(), std::collections::HashMap::new());
        for (stream, text) in pieces {
            let offset = ends.entry(*stream).or_insert(0);
            output.piece(stream, *offset, text, text.len() as u64, &mut out);
            *offset = offset.saturating_add(text.len() as u64);
        }
        output.finish(&mut out);
        out
    }

    #[test]
    fn lines_stand_behind_a_gutter_however_they_are_cut() {
        let whole = "  │ one\n  │ \n  │ three\n";
        assert_eq!(shown(&[("stdout", "one\n\nthree")]), whole);
        assert_eq!(
            shown(&[("stdout", "o"), ("stdout", "ne\n"), ("stdout", "\nthree\n")]),
            whole
        );
    }

    #[test]
    fn of_many_lines_the_first_and_the_last_are_shown() {
        let many: String = (1..=9).map(|line| format!("{line}\n")).collect();
        let expected = "  │ 1\n  │ 2\n  │ 3\n  … 4 more lines\n  │ 8\n  │ 9\n";
        assert_eq!(shown(&[("stdout", &many)]), expected);
        assert_eq!(
            shown(&[("stdout", "1\n2\n3\n4\n")]),
            "  │ 1\n  │ 2\n  │ 3\n  │ 4\n"
        );
    }

    #[test]
    fn bytes_that_were_not_kept_are_counted_apart_from_the_lines_that_are_not_shown() {
        let kept = "1\n2\n3\n4\n[… 700 bytes left out from offset 8 …]\n5\n6\n7\n";
        assert_eq!(
            shown(&[("", kept)]),
            "  │ 1\n  │ 2\n  │ 3\n  … 2 more lines and 700 bytes that were not kept\n  │ 6\n  │ 7\n"
        );
        let mut output = Output::new(Style::new(false), BOUNDS);
        let mut out = String::new();
        output.piece("stdout", 0, "1\n2\n3\n", 6, &mut out);
        output.piece("stdout", 106, "4\n5\n", 4, &mut out);
        output.finish(&mut out);
        let expected = "  │ 1\n  │ 2\n  │ 3\n  … 100 bytes that were not kept\n  │ 4\n  │ 5\n";
        assert_eq!(out, expected);
    }

    #[test]
    fn who_watches_is_told_once_that_more_is_shown_at_the_end_only() {
        let live = Bounds {
            live: true,
            ..BOUNDS
        };
        let first = [("stdout", "1\n2\n3\n4\n5\n")];
        assert!(!within(live, &first).contains("goes on"));
        let more = [first[0], ("stdout", "6\n"), ("stdout", "7\n")];
        assert_eq!(
            within(live, &more),
            "  │ 1\n  │ 2\n  │ 3\n  … it goes on; the last 2 lines are shown at its end\n  … 2 more lines\n  │ 6\n  │ 7\n"
        );
    }

    #[test]
    fn two_streams_do_not_share_a_line() {
        assert_eq!(
            shown(&[("stdout", "out"), ("stderr", "err"), ("stdout", "put\n")]),
            "  │ out\n  │ err\n  │ put\n"
        );
    }

    #[test]
    fn an_endless_line_is_cut_and_a_gap_is_said() {
        let long = shown(&[("stdout", &"x".repeat(5000))]);
        assert_eq!(
            long.chars().filter(|letter| *letter == 'x').count(),
            MAX_LINE
        );
        let mut output = Output::new(Style::new(false), BOUNDS);
        let mut out = String::new();
        output.piece("stdout", 100, "end\n", 4, &mut out);
        assert_eq!(out, "  │ … 100 bytes that are not shown\n  │ end\n");
        out.clear();
        output.gap("stdout", 204, &mut out);
        output.piece("stdout", 204, "end\n", 4, &mut out);
        assert_eq!(out, "  │ … 100 bytes that are not shown\n");
    }
}
