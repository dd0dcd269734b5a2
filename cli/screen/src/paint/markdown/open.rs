//! The part of a growing text that more text may still change.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};
use ratatui_core::text::Line;
use shared_types::clean::{Clean, clean};

use super::{markdown, masked, options};

/// The lines of a block, beyond which the beginning of a list or of code settles by itself.
pub const LONG_BLOCK: usize = 64;

/// The places at which a long block is tried to be divided, from the last one backwards.
const MOST_TRIES: usize = 4;

/// Columns at which a divided block is compared with the whole.
const COLUMNS: usize = 80;

/// The part of a text that is still open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The byte at which the part begins; the text before it is settled.
    pub at: usize,
    /// The text to be put before the part when it is painted: the first line of its code block.
    pub before: String,
    /// True if a blank row stands between the settled rows and those of the part, now and later.
    pub has_gap: bool,
}

/// The byte at which the last top-level block begins, which more text may still change.
///
/// The text before it never changes its looks when more text comes: its rows, a blank row and the
/// rows of the rest are the rows of the whole. A line without its newline belongs to the last
/// block, because more letters may change its kind. The answer is 0 while there is one block.
pub fn open_block(text: &str) -> usize {
    let cleaned = clean(text);
    let masked = masked(complete(&cleaned));
    let (mut depth, mut open) = (0_usize, 0);
    for (event, range) in Parser::new_ext(&masked, options()).into_offset_iter() {
        if depth == 0 {
            open = range.start;
        }
        depth = depth_after(depth, &event);
    }
    // An indentation belongs to its block.
    let open = line_start(&masked, open);
    if masked[..open].trim().is_empty() {
        return 0;
    }
    if cleaned == text {
        open
    } else {
        before_cleaning(text, open)
    }
}

/// The part of a text that is still open: its last block, or the end of that if it is long.
///
/// A list of more than [`LONG_BLOCK`] lines settles up to its last item, and a block of code up to
/// its last lines. To go on, replace the text by `before` and the rest of the text from `at`.
/// A list that turns loose after its beginning settled has blank rows only from there on.
pub fn open_part(text: &str) -> Open {
    let at = open_block(text);
    let block = &text[at..];
    divided(block).map_or(
        Open {
            at,
            before: String::new(),
            has_gap: true,
        },
        |part| Open {
            at: at + part.at,
            ..part
        },
    )
}

/// The last place at which a long block can be divided without a change of its looks.
fn divided(block: &str) -> Option<Open> {
    if block.len() < LONG_BLOCK || block.lines().nth(LONG_BLOCK).is_none() {
        return None;
    }
    let cleaned = clean(block);
    let cleaned = complete(&cleaned);
    let parts = parts(cleaned);
    if parts.is_empty() {
        return None;
    }
    let whole = markdown(cleaned, COLUMNS);
    let is_same = |part: &Open| {
        let mut rows = markdown(&cleaned[..part.at], COLUMNS);
        rows.extend(part.has_gap.then(Line::default));
        rows.extend(markdown(
            &format!("{}{}", part.before, &cleaned[part.at..]),
            COLUMNS,
        ));
        rows == whole
    };
    let part = parts.into_iter().rev().take(MOST_TRIES).find(is_same)?;
    let at = if cleaned == complete(block) {
        part.at
    } else {
        before_cleaning(block, part.at)
    };
    Some(Open { at, ..part })
}

/// The places at which a block could be divided: items of a list, or lines of code.
fn parts(block: &str) -> Vec<Open> {
    let masked = masked(block);
    let mut parts = Vec::new();
    let mut depth = 0_usize;
    let mut body = None;
    let (mut number, mut is_loose) = (None, false);
    for (event, range) in Parser::new_ext(&masked, options()).into_offset_iter() {
        match &event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) if depth == 0 => {
                let start = block[range.start..]
                    .find('\n')
                    .map(|end| range.start + end + 1);
                body = start.map(|start| start..start);
            }
            Event::Text(_) if depth == 1 => {
                if let Some(body) = &mut body {
                    body.end = range.end.max(body.start);
                }
            }
            Event::Start(Tag::List(first)) if depth == 0 => number = *first,
            Event::Start(Tag::Item) if depth == 1 => {
                // Where a number was not counted up, the rest would begin with another one.
                if number.is_none_or(|number| begins_with(&block[range.start..], number)) {
                    let at = line_start(block, range.start);
                    parts.push(Open {
                        at,
                        before: String::new(),
                        has_gap: false,
                    });
                }
                number = number.map(|number| number.saturating_add(1));
            }
            Event::Start(Tag::Paragraph) if depth == 2 => is_loose = true,
            _ => {}
        }
        depth = depth_after(depth, &event);
    }
    parts
        .iter_mut()
        .for_each(|part: &mut Open| part.has_gap = is_loose);
    parts.extend(body.into_iter().flat_map(|body| lines(block, body)));
    parts.retain(|part| part.at > 0);
    parts
}

fn begins_with(item: &str, number: u64) -> bool {
    let digits = item
        .trim_start()
        .split(|letter: char| !letter.is_ascii_digit())
        .next();
    digits.and_then(|digits| digits.parse().ok()) == Some(number)
}

/// The lines of a code block, but those beside blank ones, which would be lost.
fn lines(block: &str, body: Range<usize>) -> Vec<Open> {
    let first_line = &block[..body.start];
    let mut parts = Vec::new();
    let mut was_blank = true;
    let mut at = body.start;
    for line in block[body].split_inclusive('\n') {
        let is_blank = line.trim().is_empty();
        if !is_blank && !was_blank {
            parts.push(Open {
                at,
                before: first_line.to_owned(),
                has_gap: false,
            });
        }
        was_blank = is_blank;
        at += line.len();
    }
    parts
}

fn depth_after(depth: usize, event: &Event<'_>) -> usize {
    match event {
        Event::Start(_) => depth + 1,
        Event::End(_) => depth.saturating_sub(1),
        _ => depth,
    }
}

/// The text up to its last newline.
fn complete(text: &str) -> &str {
    &text[..line_start(text, text.len())]
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// The byte of the text that became the given byte of its cleaned form.
fn before_cleaning(text: &str, cleaned: usize) -> usize {
    let mut clean = Clean::default();
    let mut length = 0;
    for (start, letter) in text.char_indices() {
        length += clean.take(letter.encode_utf8(&mut [0; 4])).len();
        if length > cleaned {
            return start;
        }
    }
    text.len()
}
