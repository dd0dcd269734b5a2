//! Edits of files as styled rows.

mod patch;
mod rows;
mod words;

#[cfg(test)]
mod tests;

use std::time::Duration;

use ratatui_core::text::{Line, Span};
use shared_types::clean::clean;
use similar::{ChangeTag, TextDiff};

use self::rows::{Entry, Kind};
use super::{code, palette, wrap};

/// The longest text that is compared, in bytes.
pub const MAX_COMPARED: usize = 1 << 20;

/// The longest comparison; after it, the rest counts as replaced.
const MOST_TIME: Duration = Duration::from_millis(100);

/// Lines that are painted before and after a change.
const CONTEXT: usize = 3;

/// Paints an edit: removed and added lines with their numbers, and three lines around them.
///
/// Words stand out where less than half of a line changed. At most `most` rows are painted, and
/// one more counts the lines that are left. A text over [`MAX_COMPARED`] is not compared, and a
/// note says so.
pub fn replaced(
    before: &str,
    after: &str,
    _path: &str,
    columns: usize,
    most: usize,
) -> Vec<Line<'static>> {
    replaced_at(1, before, after, columns, most)
}

/// Paints an edit whose texts begin at this line of their file, from 1.
pub fn replaced_at(
    first: usize,
    before: &str,
    after: &str,
    columns: usize,
    most: usize,
) -> Vec<Line<'static>> {
    if before.len().max(after.len()) > MAX_COMPARED {
        let text = format!(
            "Too long to compare: {} bytes before, {} after.",
            before.len(),
            after.len()
        );
        return note(text, columns);
    }
    let (old, new) = (clean(before), clean(after));
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    if old == new {
        let text = if before == after {
            "No change."
        } else {
            "Only line ends or invisible characters changed."
        };
        return note(text.to_owned(), columns);
    }
    let diff = TextDiff::configure()
        .timeout(MOST_TIME)
        .diff_slices(&old, &new);
    let mut entries = entries(&diff);
    for number in entries.iter_mut().filter_map(|entry| entry.number.as_mut()) {
        *number = number.saturating_add(first.saturating_sub(1));
    }
    rows::paint(entries, columns, most)
}

/// Paints a unified diff, with the numbers of its lines.
///
/// Text that is no diff stays as it is. At most `most` rows are painted, and one more counts the
/// lines that are left.
pub fn patched(patch: &str, columns: usize, most: usize) -> Vec<Line<'static>> {
    rows::paint(patch::entries(&clean(patch)), columns, most)
}

/// Paints the beginning of a new file, with the numbers of its lines.
///
/// At most `most` rows are painted, and one more counts the lines that are left.
pub fn written(content: &str, path: &str, columns: usize, most: usize) -> Vec<Line<'static>> {
    let end = content.split_inclusive('\n').take(most).map(str::len).sum();
    let lines = code::highlight(&content[..end], code::language_of(path));
    // A carriage return ends a line too, so there may be more of them.
    let count = content.lines().count().max(lines.len());
    let mut rows = Vec::new();
    let margin = rows::margin(lines.len(), columns);
    for (index, line) in lines.iter().enumerate() {
        let number = Span::styled(rows::number(Some(index + 1), margin), palette::DIM);
        let painted = rows::with_margin(number, line, columns);
        if rows.len() + painted.len() > most {
            let left = most - rows.len();
            rows.extend(painted.into_iter().take(left));
            rows.push(rows::more(count - index, columns));
            return rows;
        }
        rows.extend(painted);
    }
    if count > lines.len() {
        rows.push(rows::more(count - lines.len(), columns));
    }
    rows
}

fn note(text: String, columns: usize) -> Vec<Line<'static>> {
    wrap::wrap(&Line::from(Span::styled(text, palette::DIM)), columns, 0)
}

fn entries(diff: &TextDiff<'_, '_, str>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for group in diff.grouped_ops(CONTEXT) {
        if !entries.is_empty() {
            entries.push(Entry::new(Kind::Skip, None, "⋮"));
        }
        for change in group.iter().flat_map(|change| diff.iter_changes(change)) {
            let (kind, index) = match change.tag() {
                ChangeTag::Equal => (Kind::Same, change.new_index()),
                ChangeTag::Delete => (Kind::Removed, change.old_index()),
                ChangeTag::Insert => (Kind::Added, change.new_index()),
            };
            let number = index.map(|index| index + 1);
            entries.push(Entry::new(kind, number, change.value()));
        }
    }
    entries
}
