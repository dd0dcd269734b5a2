//! Unified diffs, taken apart.

use super::rows::{Entry, Kind};

/// The lines of a hunk that are still to come, and their numbers.
#[derive(Default)]
struct Hunk {
    old_left: usize,
    new_left: usize,
    old: usize,
    new: usize,
    /// True if the hunk does not say how many lines it has.
    is_open: bool,
}

/// The lines of a unified diff.
///
/// A hunk says how many lines it has. So a removed line `-- a` is not taken for the name of a file.
pub(super) fn entries(patch: &str) -> Vec<Entry> {
    let mut hunk = Hunk {
        is_open: true,
        ..Hunk::default()
    };
    patch.lines().map(|line| entry(line, &mut hunk)).collect()
}

fn entry(line: &str, hunk: &mut Hunk) -> Entry {
    let is_inside = hunk.old_left > 0 || hunk.new_left > 0;
    if !is_inside && let Some(kind) = head(line) {
        if kind == Kind::Hunk {
            *hunk = numbers(line).unwrap_or(Hunk {
                is_open: true,
                ..Hunk::default()
            });
        }
        return Entry::new(kind, None, line);
    }
    if !is_inside && !hunk.is_open {
        return Entry::new(Kind::Other, None, line);
    }
    hunk.line(line)
}

impl Hunk {
    fn line(&mut self, line: &str) -> Entry {
        let mut letters = line.chars();
        match letters.next() {
            Some('-') => {
                self.old_left = self.old_left.saturating_sub(1);
                Entry::new(Kind::Removed, next(&mut self.old), letters.as_str())
            }
            Some('+') => {
                self.new_left = self.new_left.saturating_sub(1);
                Entry::new(Kind::Added, next(&mut self.new), letters.as_str())
            }
            // Some programs drop the blank of an empty line.
            Some(' ') | None => {
                self.old_left = self.old_left.saturating_sub(1);
                self.new_left = self.new_left.saturating_sub(1);
                next(&mut self.old);
                Entry::new(Kind::Same, next(&mut self.new), letters.as_str())
            }
            Some(_) => Entry::new(Kind::Other, None, line),
        }
    }
}

/// The number, which is counted up; none if numbers are not known.
fn next(number: &mut usize) -> Option<usize> {
    let this = (*number > 0).then_some(*number);
    *number = this.map_or(0, |number| number.saturating_add(1));
    this
}

fn head(line: &str) -> Option<Kind> {
    let has = |signs: &[&str]| signs.iter().any(|sign| line.starts_with(sign));
    if line.starts_with("@@") {
        Some(Kind::Hunk)
    } else if has(&["--- ", "+++ ", "*** "]) {
        Some(Kind::File)
    } else if has(&[
        "diff ",
        "index ",
        "new file",
        "deleted file",
        "rename ",
        "similarity ",
    ]) {
        Some(Kind::Other)
    } else {
        None
    }
}

/// The numbers of a line such as `@@ -1,2 +3,4 @@`.
fn numbers(line: &str) -> Option<Hunk> {
    let mut words = line.split_whitespace().skip(1);
    let (old, old_left) = range(words.next()?.strip_prefix('-')?)?;
    let (new, new_left) = range(words.next()?.strip_prefix('+')?)?;
    Some(Hunk {
        old_left,
        new_left,
        old,
        new,
        is_open: false,
    })
}

fn range(text: &str) -> Option<(usize, usize)> {
    match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}
