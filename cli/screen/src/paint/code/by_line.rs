//! Texts whose lines have a style each.

use super::Paint;
use crate::paint::palette;

/// Colours a diff.
pub(super) fn diff(code: &str, paint: &mut Paint) {
    for line in code.split_inclusive('\n') {
        let style = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => palette::BOLD,
            [b'+', ..] => palette::ADDED,
            [b'-', ..] => palette::REMOVED,
            [b'@', ..] => palette::ACCENT,
            [b' ', ..] | [] => palette::PLAIN,
            _ => palette::DIM,
        };
        paint.push(line, style);
    }
}

/// Colours the source of Markdown.
pub(super) fn markdown(code: &str, paint: &mut Paint) {
    let mut is_code = false;
    for line in code.split_inclusive('\n') {
        let text = line.trim_start();
        let is_fence = text.starts_with("```") || text.starts_with("~~~");
        let style = match text.as_bytes().first() {
            _ if is_fence => palette::DIM,
            _ if is_code => palette::ACCENT,
            Some(b'#') => palette::BOLD,
            Some(b'>') => palette::DIM,
            _ => palette::PLAIN,
        };
        is_code ^= is_fence;
        paint.push(line, style);
    }
}
