//! The motions of vi.

use crate::compose::buffer::{Buffer, Class};
use std::ops::Range;

const ALL: &[Class] = &[Class::Word, Class::Punctuation, Class::Paste];

/// A motion from the cursor.
#[derive(Debug)]
pub(super) struct Motion {
    /// The cursor after the motion.
    pub(super) cursor: usize,
    /// The text that an operator takes.
    pub(super) reach: Reach,
}

/// The text that an operator takes.
#[derive(Debug)]
pub(super) enum Reach {
    Letters(Range<usize>),
    /// Whole lines with their newlines.
    Lines(Range<usize>),
}

/// A search for a letter within the line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Find {
    /// `f`, `F`, `t` or `T`.
    pub(super) kind: char,
    pub(super) letter: char,
}

/// Finds the motion of a letter. `None` if there is none.
pub(super) fn find(
    buffer: &Buffer,
    letter: char,
    count: Option<usize>,
    found: Option<Find>,
) -> Option<Motion> {
    let at = buffer.cursor();
    let times = count.unwrap_or(1);
    let repeat = |step: &dyn Fn(usize) -> usize| (0..times).fold(at, |at, _| step(at));
    let (start, end) = (buffer.line_start(at), buffer.line_end(at));
    let is_big = letter.is_ascii_uppercase();
    Some(match letter {
        'h' => to(at, repeat(&|at| buffer.previous(at).max(start))),
        'l' | ' ' => to(at, repeat(&|at| buffer.next(at).min(end))),
        'w' | 'W' => to(at, repeat(&|at| next_word(buffer, at, is_big))),
        'b' | 'B' => to(at, repeat(&|at| word_start(buffer, at, is_big))),
        'e' | 'E' => {
            let last = |at| buffer.previous(word_end(buffer, buffer.next(at), is_big));
            including(buffer, at, repeat(&last))
        }
        '0' => to(at, start),
        '^' => to(at, first_letter(buffer, at)),
        '$' => {
            let last = (1..times).fold(end, |end, _| match buffer.text().len() {
                length if end < length => buffer.line_end(end + 1),
                length => length,
            });
            to(at, last)
        }
        'G' => to_line(buffer, count.map_or(usize::MAX, |line| line - 1)),
        'g' => to_line(buffer, times - 1),
        'j' | 'k' => {
            let line = buffer.text()[..at].matches('\n').count();
            let line = match letter {
                'j' => line + times,
                _ => line.saturating_sub(times),
            };
            to_line(buffer, line)
        }
        ';' => in_line(buffer, found?, times)?,
        ',' => {
            let Find { kind, letter } = found?;
            let kind = match kind.is_ascii_lowercase() {
                true => kind.to_ascii_uppercase(),
                false => kind.to_ascii_lowercase(),
            };
            in_line(buffer, Find { kind, letter }, times)?
        }
        _ => return None,
    })
}

/// So many lines from the cursor's on.
pub(super) fn lines(buffer: &Buffer, count: usize) -> Motion {
    let at = buffer.cursor();
    let mut end = buffer.line_end(at);
    for _ in 1..count {
        if end < buffer.text().len() {
            end = buffer.line_end(end + 1);
        }
    }
    let range = buffer.line_start(at)..(end + 1).min(buffer.text().len());
    Motion {
        cursor: at,
        reach: Reach::Lines(range),
    }
}

/// The rest of so many words, without the space behind them: the reach of `cw`.
pub(super) fn word_rest(buffer: &Buffer, letter: char, count: usize) -> Option<Motion> {
    let at = buffer.cursor();
    let is_big = letter == 'W';
    if buffer.class(at) == Class::Space {
        return word_in_line(buffer, letter);
    }
    let end = (0..count).fold(at, |at, _| word_end(buffer, at, is_big));
    Some(to(at, end))
}

/// One word with the space behind it, but not the newline: the reach of `dw`.
pub(super) fn word_in_line(buffer: &Buffer, letter: char) -> Option<Motion> {
    let at = buffer.cursor();
    let end = next_word(buffer, at, letter == 'W').min(buffer.line_end(at));
    Some(to(at, end))
}

/// The first place of the line that is not a space.
pub(super) fn first_letter(buffer: &Buffer, at: usize) -> usize {
    let start = buffer.line_start(at);
    buffer.skip(start, &[Class::Space]).min(buffer.line_end(at))
}

fn to(at: usize, cursor: usize) -> Motion {
    Motion {
        cursor,
        reach: Reach::Letters(at.min(cursor)..at.max(cursor)),
    }
}

/// A motion whose reach includes the cluster on which it ends.
fn including(buffer: &Buffer, at: usize, cursor: usize) -> Motion {
    let last = buffer.next(at.max(cursor));
    Motion {
        cursor,
        reach: Reach::Letters(at.min(cursor)..last),
    }
}

/// A motion to a line, or the last line if there are fewer; its reach is whole lines.
fn to_line(buffer: &Buffer, line: usize) -> Motion {
    let text = buffer.text();
    let at = buffer.cursor();
    let newlines = text.match_indices('\n').map(|(newline, _)| newline + 1);
    let start = std::iter::once(0)
        .chain(newlines)
        .take(line.saturating_add(1))
        .last()
        .unwrap_or(0);
    let first = buffer.line_start(at.min(start));
    let last = buffer.line_end(at.max(start));
    Motion {
        cursor: first_letter(buffer, start),
        reach: Reach::Lines(first..(last + 1).min(text.len())),
    }
}

fn run(buffer: &Buffer, at: usize, is_big: bool) -> Vec<Class> {
    match buffer.class(at) {
        Class::Space => Vec::new(),
        _ if is_big => ALL.to_vec(),
        class => vec![class],
    }
}

fn next_word(buffer: &Buffer, at: usize, is_big: bool) -> usize {
    let end = buffer.skip(at, &run(buffer, at, is_big));
    buffer.skip(end, &[Class::Space])
}

/// The end of the word at a place, or of the next one.
fn word_end(buffer: &Buffer, at: usize, is_big: bool) -> usize {
    let start = buffer.skip(at, &[Class::Space]);
    buffer.skip(start, &run(buffer, start, is_big))
}

fn word_start(buffer: &Buffer, at: usize, is_big: bool) -> usize {
    let last = buffer.previous(buffer.skip_back(at, &[Class::Space]));
    buffer.skip_back(buffer.next(last).min(at), &run(buffer, last, is_big))
}

fn in_line(buffer: &Buffer, find: Find, count: usize) -> Option<Motion> {
    let at = buffer.cursor();
    let (start, end) = (buffer.line_start(at), buffer.line_end(at));
    let nth = count.checked_sub(1)?;
    let Find { kind, letter } = find;
    let text = buffer.text();
    match kind {
        'f' | 't' => {
            // A repeated `t` goes on from the letter before which it stands.
            let is_till = kind == 't';
            let from = buffer.next(at).min(end);
            let hits = text[from..end].match_indices(letter);
            let (hit, _) = hits.map(|(hit, text)| (from + hit, text)).nth(nth)?;
            let cursor = if is_till { buffer.previous(hit) } else { hit };
            Some(including(buffer, at, cursor))
        }
        _ => {
            let mut hits = text[start..at].rmatch_indices(letter);
            let hit = start + hits.nth(nth)?.0;
            let cursor = match kind {
                'T' => buffer.next(hit),
                _ => hit,
            };
            Some(to(at, cursor))
        }
    }
}
