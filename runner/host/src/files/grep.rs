//! Finds lines by content.

use std::{fs::File, io, ops::ControlFlow};

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use rustix::io::Errno;
use shared_sandbox::{FileFailure, Grep, GrepMatch, Grepped, Skipped};

use super::{
    Allowance, Failure, MAX_RESULT_BYTES, glob,
    read::{is_binary, is_utf_16},
    walk::{Start, WalkFacts},
    wanted,
};
use crate::{text, workspace::Workspace};

/// A matching line is cut here.
const LINE_BYTES: usize = 500;

/// Memory for one line; a file is searched up to a longer one.
const LONGEST_LINE_BYTES: usize = 8 * 1024 * 1024;

/// Files that were left out and are named.
const MAX_SKIPPED: usize = 10;

/// Memory for one compiled pattern, and again for its lazily built automaton.
const PATTERN_BYTES: usize = 4 * 1024 * 1024;

/// The first lines that fit, by path and line.
pub(super) fn grep(
    grep: &Grep,
    workspace: &Workspace,
    allowance: &Allowance,
) -> Result<Grepped, Failure> {
    let pattern = pattern(&grep.pattern, grep.ignore_case)?;
    let mut search = Search::new(pattern, wanted(grep.max_matches), allowance);
    let start = match Start::at(&grep.path, workspace) {
        Err(Failure::File(FileFailure::NotADirectory { .. })) => {
            return one_file(search, grep, workspace);
        }
        start => start?,
    };
    let files = match grep.files.as_str() {
        "" => None,
        files => Some(glob::matcher(files)?),
    };
    let seen = start.walk(allowance, |below| {
        if files.as_ref().is_some_and(|files| !files.is_match(below)) {
            return Ok(ControlFlow::Continue(()));
        }
        match start.open(below) {
            Ok((file, _)) => search.file(file, || start.shown(below))?,
            // It has gone since.
            Err(Errno::NOENT) => {}
            Err(errno) => {
                let path = start.shown(below);
                let failure = crate::workspace::failure(&path, errno);
                search.skip(path, failure);
            }
        }
        Ok(if search.full {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    })?;
    Ok(search.result(seen))
}

/// Searches a file that was named, even if `files` does not fit it; a file that is not text is a
/// failure.
fn one_file(
    mut search: Search<'_>,
    grep: &Grep,
    workspace: &Workspace,
) -> Result<Grepped, Failure> {
    let (file, _) = workspace.open_file(&grep.path)?;
    let place = workspace.place_of(&file);
    let shown = || {
        place.as_ref().map_or(grep.path.clone(), |place| {
            place.to_string_lossy().into_owned()
        })
    };
    search.file(file, shown)?;
    match search.skipped.pop() {
        Some(skipped) if search.matches.is_empty() && skipped.failure.kind() == "binary" => {
            let path = grep.path.clone();
            Err(FileFailure::Binary { path }.into())
        }
        skipped => {
            search.skipped.extend(skipped);
            Ok(search.result(WalkFacts::default()))
        }
    }
}

/// # Errors
/// [`FileFailure::Pattern`] in one line.
fn pattern(pattern: &str, ignore_case: bool) -> Result<RegexMatcher, Failure> {
    RegexMatcherBuilder::new()
        .case_insensitive(ignore_case)
        .multi_line(true)
        .crlf(true)
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES)
        .build(pattern)
        .map_err(|error| {
            let text = error.to_string();
            // The parser draws the place over several lines; the last one says what is wrong.
            let last = text.lines().last().unwrap_or_default();
            let reason = last.strip_prefix("error: ").unwrap_or(last).to_owned();
            FileFailure::Pattern { reason }.into()
        })
}

/// A search over several files.
struct Search<'a> {
    pattern: RegexMatcher,
    searcher: Searcher,
    matches: Vec<GrepMatch>,
    /// Bytes of paths and text in `matches`.
    bytes: usize,
    wanted: usize,
    /// True if there are more matches than are wanted or fit.
    full: bool,
    /// The first files that were left out, and how many more.
    skipped: Vec<Skipped>,
    more_skipped: u64,
    allowance: &'a Allowance,
}

impl<'a> Search<'a> {
    fn new(pattern: RegexMatcher, wanted: usize, allowance: &'a Allowance) -> Self {
        let searcher = SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            // A NUL byte in the middle of a text, as in a log, makes it no other file.
            .binary_detection(BinaryDetection::none())
            .heap_limit(Some(LONGEST_LINE_BYTES))
            .build();
        Self {
            pattern,
            searcher,
            matches: Vec::new(),
            bytes: 0,
            wanted,
            full: false,
            skipped: Vec::new(),
            more_skipped: 0,
            allowance,
        }
    }

    /// Adds the lines of a file that fit; of a binary file none, which is noted.
    fn file(&mut self, file: File, path: impl FnOnce() -> String) -> Result<(), Failure> {
        let is_text = is_utf_16(&file).and_then(|wide| Ok(wide || !is_binary(&file)?));
        let mut lines = MatchingLines {
            room: (self.wanted - self.matches.len()).saturating_add(1),
            bytes: 0,
            lines: Vec::new(),
        };
        let searched = is_text.and_then(|is_text| match is_text {
            true => {
                let reader = Guarded {
                    file,
                    allowance: self.allowance,
                };
                let pattern = &self.pattern;
                let searched = self.searcher.search_reader(pattern, reader, &mut lines);
                searched.map(|()| true)
            }
            false => Ok(false),
        });
        // The reader ends a search that is not wanted any more with an error.
        self.allowance.check()?;
        if matches!(searched, Ok(true)) && lines.lines.is_empty() {
            return Ok(());
        }
        let path = path();
        self.add(&path, lines.lines);
        let failure = match searched {
            Ok(true) => return Ok(()),
            Ok(false) => FileFailure::Binary { path: path.clone() },
            // The searcher's word for a line that does not fit into its memory.
            Err(error) if error.kind() == io::ErrorKind::Other => FileFailure::Io {
                reason: format!(
                    "a line has more than {LONGEST_LINE_BYTES} bytes; what stands before it was searched"
                ),
            },
            Err(error) => crate::workspace::io_failure(&path, &error),
        };
        self.skip(path, failure);
        Ok(())
    }

    fn skip(&mut self, path: String, failure: FileFailure) {
        match self.skipped.len() < MAX_SKIPPED {
            true => self.skipped.push(Skipped { path, failure }),
            false => self.more_skipped += 1,
        }
    }

    fn add(&mut self, path: &str, lines: Vec<(u64, String)>) {
        for (line, text) in lines {
            self.bytes += path.len() + text.len();
            if self.matches.len() == self.wanted || self.bytes > MAX_RESULT_BYTES {
                self.full = true;
                return;
            }
            let path = path.to_owned();
            self.matches.push(GrepMatch { path, line, text });
        }
    }

    fn result(self, seen: WalkFacts) -> Grepped {
        Grepped {
            matches: self.matches,
            more: self.full || seen.part,
            unread_rules: seen.unread_rules,
            skipped: self.skipped,
            more_skipped: self.more_skipped,
        }
    }
}

/// Reads a file for as long as the operation may go on.
struct Guarded<'a> {
    file: File,
    allowance: &'a Allowance,
}

impl io::Read for Guarded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.allowance.check().is_err() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}

/// The matching lines of one file.
struct MatchingLines {
    room: usize,
    bytes: usize,
    lines: Vec<(u64, String)>,
}

impl Sink for MatchingLines {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let line = found.bytes();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // A NUL byte is no text for those that keep or show it.
        let text = text::cut_lossy(line, LINE_BYTES).replace('\0', "\u{fffd}");
        self.bytes += text.len();
        self.lines
            .push((found.line_number().unwrap_or_default(), text));
        self.room -= 1;
        Ok(self.room > 0 && self.bytes <= MAX_RESULT_BYTES)
    }
}
