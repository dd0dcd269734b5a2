//! Replaces text that stands in a file exactly once, or wherever it stands.
//!
//! Line ends are not typed: text without `\r` fits lines that end in `\r\n` as well, and what takes its place
//! ends its lines as the file does there. Text with `\r` is taken as it is.

mod nearest;

use std::{borrow::Cow, io::Read as _, ops::Range, path::Path};

use memchr::memmem;
use shared_sandbox::{Edit, Edited, FileFailure, Outcome};
use shared_types::{Digest, limits::MAX_INLINE_FILE_BYTES};

use nearest::nearest;

use super::{
    Allowance, Announcer, Failure, bytes, failure, invalid, io_failure,
    read::PROBED_BYTES,
    replace::{self, ReplacementNames},
    write::too_large,
};
use crate::{
    Change,
    change::Digests,
    workspace::{Links, Parents, PathTarget, Workspace, open_ordinary},
};

/// The mark that some programs put at the beginning of a text file.
const MARK: char = '\u{feff}';

/// Most places of a text whose lines are told, where it stands in too many.
const LINES_TOLD: usize = 5;

/// Edits the file and says where.
pub(super) fn edit(
    edit: &Edit,
    workspace: &Workspace,
    allowance: &Allowance,
    announcer: &Announcer,
) -> Result<Edited, Failure> {
    if edit.old.is_empty() {
        return Err(invalid(
            "the text to be replaced is empty; give the exact text that stands in the file",
        ));
    }
    if edit.old == edit.new {
        return Err(invalid(
            "the new text is the same as the old; give the text that should stand there instead",
        ));
    }
    let target = workspace.locate(&edit.path, Parents::Expect)?;
    let Some(existing) = replace::existing(&target, &edit.path)? else {
        let path = edit.path.clone();
        return Err(FileFailure::NotFound { path }.into());
    };
    let content = load(&target, &edit.path)?;
    if edit
        .expected
        .is_some_and(|seen| seen.algorithm.of(&content) != seen)
    {
        return Err(FileFailure::Changed {
            path: edit.path.clone(),
            since_read: true,
        }
        .into());
    }
    let at = occurrences(&content, old(edit, &content), edit)?;
    let edited = rewrite(&content, &at, edit);
    if edited.len() > MAX_INLINE_FILE_BYTES {
        return Err(too_large(&edit.path, edited.len() as u64).into());
    }
    let done = Edited {
        line: line_of(&content, at[0].start),
        replaced: at.len() as u64,
        before: Digest::of(&content),
        after: Digest::of(&edited),
    };
    let unfinished = allowance.unfinished_name();
    announcer.announce(
        Change::of_content(
            workspace.path_of_change(&edit.path),
            unfinished.clone(),
            Digests {
                before: Some(done.before.into()),
                after: done.after.into(),
            },
            Outcome::Edited(done.clone()),
        ),
        allowance,
    )?;
    let names = ReplacementNames {
        asked: &edit.path,
        unfinished: &unfinished,
        expected: Some(&existing),
    };
    replace::replace(&target, &edited, Some(&existing), names, allowance)?;
    Ok(done)
}

/// The whole text file, if it is small enough.
fn load(target: &PathTarget, asked: &str) -> Result<Vec<u8>, Failure> {
    let (file, stat) = open_ordinary(&target.directory, Path::new(&target.name), Links::Refuse)
        .map_err(|errno| failure(asked, errno))?;
    let limit = MAX_INLINE_FILE_BYTES as u64;
    let mut content = Vec::new();
    // It may grow while it is read.
    file.take(limit + 1)
        .read_to_end(&mut content)
        .map_err(|error| io_failure(asked, &error))?;
    if content.len() as u64 > limit {
        return Err(too_large(asked, bytes(stat.st_size).max(limit + 1)).into());
    }
    if memchr::memchr(0, &content[..content.len().min(PROBED_BYTES)]).is_some() {
        let path = asked.to_owned();
        return Err(FileFailure::Binary { path }.into());
    }
    Ok(content)
}

/// The old text; without the mark at the beginning of a file (BOM) that the new one does not repeat, so
/// that it stays.
fn old<'a>(edit: &'a Edit, content: &[u8]) -> &'a str {
    let without = edit.old.strip_prefix(MARK).filter(|old| !old.is_empty());
    match without {
        Some(old)
            if content.starts_with(MARK.encode_utf8(&mut [0; 4]).as_bytes())
                && !edit.new.starts_with(MARK) =>
        {
            old
        }
        _ => &edit.old,
    }
}

/// The places of the old text, at least one; with `every` unset exactly one.
fn occurrences(content: &[u8], old: &str, edit: &Edit) -> Result<Vec<Range<usize>>, Failure> {
    let (text, returns) = match old.contains('\n') && !old.contains('\r') {
        true => without_returns(content),
        false => (Cow::Borrowed(content), Vec::new()),
    };
    let finder = memmem::Finder::new(old);
    let at: Vec<usize> = finder.find_iter(&text).collect();
    let path = || edit.path.clone();
    let Some(first) = at.first() else {
        return Err(FileFailure::NoMatch {
            path: path(),
            nearest: Some(nearest(&String::from_utf8_lossy(content), old)),
        }
        .into());
    };
    // "aa" stands in "aaa" twice, though only once without overlap.
    let overlap = finder.find(&text[first + 1..]).map(|at| first + 1 + at);
    let overlap = overlap.filter(|_| at.len() == 1);
    if !edit.every && (at.len() > 1 || overlap.is_some()) {
        let places = at.iter().chain(&overlap);
        return Err(FileFailure::ManyMatches {
            path: path(),
            count: places.clone().count() as u64,
            lines: places
                .take(LINES_TOLD)
                .map(|at| line_of(&text, *at))
                .collect(),
        }
        .into());
    }
    let in_file = |at: usize| at + returns.partition_point(|end| *end < at);
    let ranges = at
        .into_iter()
        .map(|at| in_file(at)..in_file(at + old.len()));
    Ok(ranges.collect())
}

/// The content with lines that end in `\n` alone, and where those end in it that ended in `\r\n`.
fn without_returns(content: &[u8]) -> (Cow<'_, [u8]>, Vec<usize>) {
    let (mut text, mut ends, mut from) = (Vec::new(), Vec::new(), 0);
    for at in memmem::find_iter(content, b"\r\n") {
        text.extend_from_slice(&content[from..at]);
        ends.push(text.len());
        from = at + 1;
    }
    if ends.is_empty() {
        return (Cow::Borrowed(content), ends);
    }
    text.extend_from_slice(&content[from..]);
    (Cow::Owned(text), ends)
}

/// The number of the line of this place, from 1.
fn line_of(content: &[u8], at: usize) -> u64 {
    memchr::memchr_iter(b'\n', &content[..at]).count() as u64 + 1
}

/// The end of the line in which a place begins, and whether it, or where it is the last one the line before it,
/// ends in `\r\n`.
fn line_end(content: &[u8], place: usize) -> (usize, bool) {
    let after = memchr::memchr(b'\n', &content[place..]).map(|at| place + at);
    let end = after.or_else(|| memchr::memrchr(b'\n', &content[..place]));
    let has_return = end.is_some_and(|end| content[..end].ends_with(b"\r"));
    (after.unwrap_or(content.len()), has_return)
}

fn rewrite(content: &[u8], at: &[Range<usize>], edit: &Edit) -> Vec<u8> {
    let has_lines = edit.new.contains('\n') && !edit.old.contains('\r') && !edit.new.contains('\r');
    let with_returns = edit.new.replace('\n', "\r\n");
    let mut edited = Vec::with_capacity(content.len());
    let (mut from, mut line) = (0, None::<(usize, bool)>);
    for place in at {
        edited.extend_from_slice(&content[from..place.start]);
        // Many places may be in one line.
        if has_lines && line.is_none_or(|(end, _)| end < place.start) {
            line = Some(line_end(content, place.start));
        }
        let new = match line {
            Some((_, true)) => &with_returns,
            _ => &edit.new,
        };
        edited.extend_from_slice(new.as_bytes());
        from = place.end;
        // A result that is too large already is refused; it need not grow to its full size first.
        if edited.len() > MAX_INLINE_FILE_BYTES {
            return edited;
        }
    }
    edited.extend_from_slice(&content[from..]);
    edited
}
