//! Replaces text that stands in a file exactly once, or wherever it stands.

use std::{io::Read as _, path::Path};

use memchr::memmem;
use shared_sandbox::{Edit, Edited, FileFailure, Outcome};
use shared_types::{Digest, limits::MAX_INLINE_FILE_BYTES};

use super::{
    Allowance, Announcer, Failure, bytes, failure, invalid, io_failure,
    read::PROBED_BYTES,
    replace::{self, Names},
    write::too_large,
};
use crate::{
    Change,
    change::Digests,
    workspace::{Links, Parents, Target, Workspace, open_ordinary},
};

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
    let at = occurrences(&content, edit)?;
    let edited = rewrite(&content, &at, edit);
    if edited.len() > MAX_INLINE_FILE_BYTES {
        return Err(too_large(&edit.path, edited.len() as u64).into());
    }
    let done = Edited {
        line: memchr::memchr_iter(b'\n', &content[..at[0]]).count() as u64 + 1,
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
    let names = Names {
        asked: &edit.path,
        unfinished: &unfinished,
        expected: Some(&existing),
    };
    replace::replace(&target, &edited, Some(&existing), names, allowance)?;
    Ok(done)
}

/// The whole text file, if it is small enough.
fn load(target: &Target, asked: &str) -> Result<Vec<u8>, Failure> {
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

/// Where the old text stands, at least once; with `every` unset exactly once.
fn occurrences(content: &[u8], edit: &Edit) -> Result<Vec<usize>, Failure> {
    let old = memmem::Finder::new(&edit.old);
    let at: Vec<usize> = old.find_iter(content).collect();
    let path = || edit.path.clone();
    let Some(first) = at.first() else {
        return Err(FileFailure::NoMatch { path: path() }.into());
    };
    // "aa" stands in "aaa" twice, though only once without overlap.
    let overlaps = at.len() == 1 && old.find(&content[first + 1..]).is_some();
    if !edit.every && (at.len() > 1 || overlaps) {
        let count = at.len() as u64 + u64::from(overlaps);
        return Err(FileFailure::ManyMatches {
            path: path(),
            count,
        }
        .into());
    }
    Ok(at)
}

fn rewrite(content: &[u8], at: &[usize], edit: &Edit) -> Vec<u8> {
    let mut edited = Vec::with_capacity(content.len());
    let mut from = 0;
    for &start in at {
        edited.extend_from_slice(&content[from..start]);
        edited.extend_from_slice(edit.new.as_bytes());
        from = start + edit.old.len();
        // What is too large already is refused; it need not grow to its full size first.
        if edited.len() > MAX_INLINE_FILE_BYTES {
            return edited;
        }
    }
    edited.extend_from_slice(&content[from..]);
    edited
}
