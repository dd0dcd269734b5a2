//! Finds lines by content.

use std::{fs::File, io, ops::ControlFlow};

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkFinish, SinkMatch};
use shared_sandbox::{FileFailure, Grep, GrepMatch, Grepped};

use super::{
    Allowance, Failure, MAX_RESULT_BYTES, glob, io_failure,
    read::is_binary,
    walk::{Seen, Start},
    wanted,
};
use crate::{text, workspace::Workspace};

/// A matching line is cut here.
const LINE_BYTES: usize = 500;

/// Memory for one line; a file with a longer one is passed over.
const LONGEST_LINE_BYTES: usize = 1024 * 1024;

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
        // What cannot be read, or is not text, has no lines.
        if let Ok((file, _)) = start.open(below) {
            search.file(file, || start.shown(below))?;
        }
        Ok(if search.full {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    })?;
    Ok(search.result(seen))
}

/// A file that was named is searched whatever `files` says, and failures with it are told.
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
    match search.file(file, shown)? {
        Searched::Text => Ok(search.result(Seen::default())),
        Searched::Binary => Err(FileFailure::Binary {
            path: grep.path.clone(),
        }
        .into()),
        Searched::Failed(error) => Err(io_failure(&grep.path, &error)),
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
    /// Whether there are more matches than are wanted or fit.
    full: bool,
    allowance: &'a Allowance,
}

/// What became of one file.
enum Searched {
    Text,
    Binary,
    Failed(io::Error),
}

impl<'a> Search<'a> {
    fn new(pattern: RegexMatcher, wanted: usize, allowance: &'a Allowance) -> Self {
        let searcher = SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(LONGEST_LINE_BYTES))
            .build();
        Self {
            pattern,
            searcher,
            matches: Vec::new(),
            bytes: 0,
            wanted,
            full: false,
            allowance,
        }
    }

    /// Adds the lines of a file that fit; of a binary file none.
    fn file(&mut self, file: File, path: impl FnOnce() -> String) -> Result<Searched, Failure> {
        match is_binary(&file) {
            Ok(false) => {}
            Ok(true) => return Ok(Searched::Binary),
            Err(error) => return Ok(Searched::Failed(error)),
        }
        let mut lines = Lines {
            room: (self.wanted - self.matches.len()).saturating_add(1),
            bytes: 0,
            lines: Vec::new(),
            binary: false,
        };
        let reader = Guarded {
            file,
            allowance: self.allowance,
        };
        let searched = self
            .searcher
            .search_reader(&self.pattern, reader, &mut lines);
        // The reader ends a search that is not wanted any more with an error.
        self.allowance.check()?;
        if lines.binary {
            return Ok(Searched::Binary);
        }
        if let Err(error) = searched {
            return Ok(Searched::Failed(error));
        }
        if !lines.lines.is_empty() {
            self.add(&path(), lines.lines);
        }
        Ok(Searched::Text)
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

    fn result(self, seen: Seen) -> Grepped {
        Grepped {
            matches: self.matches,
            more: self.full || seen.part,
            unread_rules: seen.unread_rules,
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
struct Lines {
    room: usize,
    bytes: usize,
    lines: Vec<(u64, String)>,
    binary: bool,
}

impl Sink for Lines {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let line = found.bytes();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = text::cut_lossy(line, LINE_BYTES);
        self.bytes += text.len();
        self.lines
            .push((found.line_number().unwrap_or_default(), text));
        self.room -= 1;
        Ok(self.room > 0 && self.bytes <= MAX_RESULT_BYTES)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}
