//! The content that a file had before some calls changed it.
//!
//! The log has whole contents (writes, and reads of short files) and steps between two contents (edits). From those, and
//! from the content that the file has now, others follow by edits that are done or undone. Each counts only if its digest
//! is one that a runner told.

use std::collections::HashMap;

use shared_sandbox::Edit;
use shared_types::{DigestAlgorithm, FileDigest, limits::MAX_INLINE_FILE_BYTES};

use super::{Does, Ends, FileChange, Seen, TouchedFile};

/// Most bytes of contents of one file that are kept at once.
const KEPT_BYTES: usize = 32 * MAX_INLINE_FILE_BYTES;

/// Most places of a text that are tried where an edit may have been.
const PLACES_AT_MOST: usize = 4096;

/// Most bytes that are hashed to find the place of one edit.
const HASHED_AT_MOST: usize = 64 * MAX_INLINE_FILE_BYTES;

/// The state of a file before the calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Before {
    /// Its present content.
    AsNow,
    /// There was none.
    Absent,
    /// This content.
    Content(String),
}

/// The reason why the state before is not put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotKnown {
    /// The content now is not that which the last call left.
    #[error("changed since by something else")]
    ChangedSince,
    /// Something else changed the file between two of the calls.
    #[error("changed by something else between two calls")]
    ChangedBetween,
    /// The log does not have the content, or not exactly.
    #[error("the content before is not known")]
    Content,
}

impl TouchedFile {
    /// The state before the calls, where the file has this content now; nothing where there is no file.
    ///
    /// # Errors
    /// It is not known, or something else has changed the file.
    pub fn before(&self, now: Option<&[u8]>) -> Result<Before, NotKnown> {
        let changes: Option<Vec<_>> = self.changes.iter().map(Step::of).collect();
        let changes = changes.ok_or(NotKnown::Content)?;
        let first = changes.first().ok_or(NotKnown::Content)?;
        let wanted = first.ends.before;
        let digest = now.map(|now| DigestAlgorithm::Sha256.of(now));
        if digest == wanted {
            return Ok(Before::AsNow);
        }
        let undone = undone(&changes, digest)?;
        let Some(wanted) = wanted else {
            return Ok(Before::Absent);
        };
        let mut known = Contents::default();
        if let Some(now) = now.and_then(|now| std::str::from_utf8(now).ok()) {
            known.keep(now.to_owned());
        }
        self.contents_of_log(&changes, &mut known);
        for step in undone {
            let (Does::Edit(edit), Some(before)) = (step.does, step.ends.before) else {
                continue;
            };
            let found = known
                .get(step.ends.after)
                .and_then(|after| undo(edit, after, before, step.ends.line));
            found.into_iter().for_each(|content| known.keep(content));
        }
        let content = known.take(wanted).ok_or(NotKnown::Content)?;
        match content.len() <= MAX_INLINE_FILE_BYTES {
            true => Ok(Before::Content(content)),
            false => Err(NotKnown::Content),
        }
    }

    /// Adds the contents that the log has, and those that follow by doing its edits.
    fn contents_of_log(&self, changes: &[Step<'_>], known: &mut Contents) {
        let mut last = None;
        for seen in &self.earlier {
            let content = match &seen.does {
                None => seen.whole(),
                Some(Does::Write(content)) => Some(content.clone()),
                Some(Does::Edit(edit)) => last
                    .and_then(|last| known.get(last))
                    .zip(seen.digest)
                    .and_then(|(before, after)| redo(edit, before, after)),
                Some(Does::Something) => None,
            };
            last = seen.digest.or(last);
            content.into_iter().for_each(|content| known.keep(content));
        }
        for step in changes {
            let content = match step.does {
                Does::Write(content) => Some(content.clone()),
                Does::Edit(edit) => {
                    let before = step.ends.before.and_then(|before| known.get(before));
                    before.and_then(|before| redo(edit, before, step.ends.after))
                }
                Does::Something => None,
            };
            content.into_iter().for_each(|content| known.keep(content));
        }
    }
}

/// A change whose digests are known.
#[derive(Clone, Copy)]
struct Step<'a> {
    does: &'a Does,
    ends: Ends,
    is_gone: bool,
}

impl<'a> Step<'a> {
    fn of(change: &'a FileChange) -> Option<Self> {
        Some(Self {
            does: &change.does,
            ends: change.ends?,
            is_gone: change.is_gone,
        })
    }
}

/// The changes that lead from the content now back to the one before the first of them, the newest first. The changes
/// of turns that were gone before may have been put back.
fn undone<'a>(changes: &[Step<'a>], now: Option<FileDigest>) -> Result<Vec<Step<'a>>, NotKnown> {
    let (mut undone, mut at) = (Vec::new(), now);
    for step in changes.iter().rev() {
        if at == Some(step.ends.after) {
            at = step.ends.before;
            undone.push(*step);
        } else if !step.is_gone {
            return Err(match undone.is_empty() {
                true => NotKnown::ChangedSince,
                false => NotKnown::ChangedBetween,
            });
        }
    }
    let first = changes.first().and_then(|first| first.ends.before);
    match (undone.is_empty(), at == first) {
        (true, _) => Err(NotKnown::ChangedSince),
        (false, true) => Ok(undone),
        (false, false) => Err(NotKnown::ChangedBetween),
    }
}

/// Contents by their digests.
#[derive(Default)]
struct Contents {
    known: HashMap<FileDigest, String>,
    bytes: usize,
}

impl Contents {
    fn keep(&mut self, content: String) {
        if self.bytes + content.len() > KEPT_BYTES {
            return;
        }
        self.bytes += content.len();
        self.known.insert(digest(&content), content);
    }

    fn get(&self, digest: FileDigest) -> Option<&str> {
        self.known.get(&digest).map(String::as_str)
    }

    fn take(&mut self, digest: FileDigest) -> Option<String> {
        self.known.remove(&digest)
    }
}

fn digest(content: &str) -> FileDigest {
    DigestAlgorithm::Sha256.of(content.as_bytes())
}

impl Seen {
    /// The whole file, where its lines were read from the first to the last and shown uncut.
    fn whole(&self) -> Option<String> {
        let expected = self.digest?;
        if digest("") == expected {
            return Some(String::new());
        }
        let mut content = String::new();
        for (number, line) in (1_u64..).zip(self.read.split('\n')) {
            if line.is_empty() {
                break;
            }
            let (at, text) = line.split_once('\t')?;
            if at.parse() != Ok(number) {
                return None;
            }
            content.push_str(text);
            content.push('\n');
        }
        if digest(&content) == expected {
            return Some(content);
        }
        content.pop();
        (digest(&content) == expected).then_some(content)
    }
}

/// The texts of an edit as they may stand in the file: line ends are not typed.
fn spellings(edit: &Edit) -> Vec<(String, String)> {
    let with_returns = |text: &str| match text.contains('\r') {
        true => text.to_owned(),
        false => text.replace('\n', "\r\n"),
    };
    let (old, new) = (&edit.old, &edit.new);
    let mut all = vec![
        (old.clone(), new.clone()),
        (with_returns(old), with_returns(new)),
        (old.clone(), with_returns(new)),
        (with_returns(old), new.clone()),
    ];
    all.dedup();
    all
}

/// The content after an edit, where it has this digest.
fn redo(edit: &Edit, content: &str, after: FileDigest) -> Option<String> {
    let fits = |content: &String| digest(content) == after;
    let edited = |(old, new): (String, String)| match edit.every {
        true => Some(content.replace(&old, &new)),
        false => {
            let at = content.find(&old)?;
            Some(put(content, at, &old, &new))
        }
    };
    spellings(edit)
        .into_iter()
        .filter_map(edited)
        .find(|content| fits(content))
}

/// The content before an edit, where it has this digest. `line` is the line of the first place.
fn undo(edit: &Edit, content: &str, before: FileDigest, line: Option<u64>) -> Option<String> {
    let fits = |content: &String| digest(content) == before;
    if edit.every {
        let texts = spellings(edit).into_iter();
        let all = texts.filter(|(_, new)| !new.is_empty());
        return all
            .map(|(old, new)| content.replace(&new, &old))
            .find(|content| fits(content));
    }
    let within = line.map_or(0..content.len(), |line| line_of(content, line));
    let tries = HASHED_AT_MOST / content.len().max(1);
    let tries = tries.clamp(1, PLACES_AT_MOST);
    spellings(edit).into_iter().find_map(|(old, new)| {
        let places = (within.start..=within.end).filter(|at| content.is_char_boundary(*at));
        let places = places.filter(|at| content[*at..].starts_with(&new));
        places
            .take(tries)
            .map(|at| put(content, at, &new, &old))
            .find(|content| fits(content))
    })
}

/// The bytes of this line, from 1.
fn line_of(content: &str, line: u64) -> std::ops::Range<usize> {
    let before = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    let lines = content.split_inclusive('\n');
    let start: usize = lines.clone().take(before).map(str::len).sum();
    let length = lines.clone().nth(before).map_or(0, str::len);
    start..start + length
}

/// The content with one text in place of another one that stands there.
fn put(content: &str, at: usize, old: &str, new: &str) -> String {
    [&content[..at], new, &content[at + old.len()..]].concat()
}

#[cfg(test)]
mod tests;
