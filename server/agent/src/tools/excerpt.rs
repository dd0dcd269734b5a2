//! The beginning and the end of a long text, with the bytes between them counted.
//!
//! Programs that show their progress return to the beginning of a line (`\r`) and write over it. Only the last state
//! of such a line is kept.

use std::collections::VecDeque;

/// Room for the line that states the gap.
const MARKER_BYTES: usize = 80;

/// A byte stream that keeps the head and the tail of its bytes, and never more.
#[derive(Debug, Clone)]
pub(crate) struct Excerpt {
    /// The bytes of each that are kept.
    keep: usize,
    head: Vec<u8>,
    head_is_open: bool,
    tail: VecDeque<u8>,
    /// The first byte that is wanted.
    from: u64,
    /// The offset after the last byte that is known of, and at least `from`.
    end: u64,
    /// The offset after the last byte that came.
    came: u64,
    /// Bytes at the end of what is kept that a line would write over after a return.
    line: usize,
    /// True if a return came last: the next bytes write over the line, unless they end it.
    is_returned: bool,
    /// Bytes that were written over.
    stale: u64,
}

/// An excerpt as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) text: String,
    /// True if there are bytes that are not UTF-8; they are shown as U+FFFD.
    pub(crate) lossy: bool,
    /// True if lines were written over.
    pub(crate) has_stale: bool,
}

impl Excerpt {
    /// Of what a stream has from this offset on.
    pub(crate) fn new(keep: usize, from: u64) -> Self {
        Self {
            keep,
            head: Vec::new(),
            head_is_open: true,
            tail: VecDeque::new(),
            from,
            end: from,
            came: 0,
            line: 0,
            is_returned: false,
            stale: 0,
        }
    }

    /// The offset at which to read on: not behind the bytes that came, if any came.
    pub(crate) fn end(&self) -> u64 {
        match self.came {
            0 => self.end,
            came => self.end.min(came),
        }
    }

    /// The end of the stream, if it is before the first byte that is wanted.
    pub(crate) fn ends_before(&self) -> Option<u64> {
        (self.came < self.from).then_some(self.came)
    }

    /// So much of the stream is known to have come.
    pub(crate) fn note_came(&mut self, up_to: u64) {
        self.came = self.came.max(up_to);
    }

    /// Takes in bytes at their place in the stream. Those that are known are dropped; a jump is
    /// a gap.
    pub(crate) fn push(&mut self, offset: u64, data: &[u8]) {
        self.came = self.came.max(offset.saturating_add(data.len() as u64));
        let known = usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let Some(mut fresh) = data.get(known..).filter(|fresh| !fresh.is_empty()) else {
            return;
        };
        self.skip_to(offset);
        while let Some(first) = fresh.first() {
            let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
            let length = match is_end(first) {
                true => 1,
                false => fresh.iter().position(is_end).unwrap_or(fresh.len()),
            };
            let (piece, rest) = fresh.split_at(length);
            if self.is_returned && !is_end(first) {
                self.drop_line();
            }
            self.is_returned = *first == b'\r';
            self.append(piece);
            self.line = if *first == b'\n' {
                0
            } else {
                self.line + length
            };
            fresh = rest;
        }
    }

    fn append(&mut self, mut fresh: &[u8]) {
        self.end = self.end.saturating_add(fresh.len() as u64);
        if self.head_is_open {
            let room = self.keep - self.head.len();
            let (first, rest) = fresh.split_at(room.min(fresh.len()));
            self.head.extend_from_slice(first);
            self.head_is_open = self.head.len() < self.keep;
            fresh = rest;
        }
        let fresh = &fresh[fresh.len().saturating_sub(self.keep)..];
        let excess = (self.tail.len() + fresh.len()).saturating_sub(self.keep);
        self.tail.drain(..excess);
        self.tail.extend(fresh);
    }

    /// Forgets what is kept of the line that is written over.
    fn drop_line(&mut self) {
        let was_whole = self.missing() == 0;
        let of_tail = self.line.min(self.tail.len());
        // Where bytes went from between the two, it is not known how much of the line is in the head.
        let of_head = match was_whole {
            true => (self.line - of_tail).min(self.head.len()),
            false => 0,
        };
        self.tail.truncate(self.tail.len() - of_tail);
        self.head.truncate(self.head.len() - of_head);
        self.head_is_open |= was_whole && self.tail.is_empty() && self.head.len() < self.keep;
        self.stale = self.stale.saturating_add((of_tail + of_head) as u64);
        self.line = 0;
    }

    /// Bytes between the head and the tail that are not kept.
    fn missing(&self) -> u64 {
        let kept = (self.head.len() + self.tail.len()) as u64;
        (self.end - self.from).saturating_sub(kept.saturating_add(self.stale))
    }

    /// Notes that the stream goes on at `offset`, and that what lies before it and was not
    /// pushed is missing.
    pub(crate) fn skip_to(&mut self, offset: u64) {
        self.came = self.came.max(offset);
        if offset > self.end {
            self.head_is_open = false;
            self.tail.clear();
            (self.line, self.is_returned) = (0, false);
            self.end = offset;
        }
    }

    /// The excerpt as text of at most `limit` bytes.
    pub(crate) fn show(&self, limit: usize) -> Shown {
        let mut tail = Vec::with_capacity(self.tail.len());
        tail.extend(&self.tail);
        // Lines that were written over move the offset of a gap forward: a reader that goes on from the offset in
        // the text misses nothing.
        let shown = match self.missing() {
            0 => {
                let all = [self.head.as_slice(), &tail].concat();
                whole(&all, limit, Some(self.from))
            }
            missing => cut(&self.head, missing, &tail, limit, Some(self.from)),
        };
        Shown {
            has_stale: self.stale > 0,
            ..shown
        }
    }
}

/// The text itself where it fits, else its beginning and its end with the gap stated: at most
/// `limit` bytes (which is at least 64).
pub fn bounded(text: &str, limit: usize) -> String {
    match text.len() <= limit {
        true => text.to_owned(),
        false => whole(text.as_bytes(), limit, None).text,
    }
}

/// `from` is the offset of the first byte in its stream, where it is of one.
fn whole(bytes: &[u8], limit: usize, from: Option<u64>) -> Shown {
    let text = String::from_utf8_lossy(bytes);
    if text.len() > limit {
        return cut(bytes, 0, bytes, limit, from);
    }
    Shown {
        lossy: std::str::from_utf8(bytes).is_err(),
        text: text.into_owned(),
        has_stale: false,
    }
}

/// The beginning of `head`, the gap, the end of `tail`. Where nothing is missing between them,
/// both are the whole, and the halves of the limit keep them from meeting. Where the bytes have
/// offsets, from `from` on, the gap says its own.
fn cut(head: &[u8], missing: u64, tail: &[u8], limit: usize, from: Option<u64>) -> Shown {
    let room = limit.saturating_sub(MARKER_BYTES);
    let between = match missing {
        0 => tail.len() as u64,
        missing => missing.saturating_add((head.len() + tail.len()) as u64),
    };
    let head = Part::first(units(head), room / 2);
    let tail = Part::last(units(tail), room - room / 2);
    let left_out = between - (head.bytes + tail.bytes) as u64;
    let place = from.map_or_else(String::new, |from| {
        format!(" from offset {}", from.saturating_add(head.bytes as u64))
    });
    Shown {
        text: format!(
            "{}\n[… {left_out} bytes left out{place} …]\n{}",
            head.text, tail.text
        ),
        lossy: head.lossy || tail.lossy,
        has_stale: false,
    }
}

/// A character and the bytes that it stands for; bytes that are not UTF-8 are one U+FFFD.
#[derive(Debug, Clone, Copy)]
struct Unit {
    character: char,
    bytes: usize,
    valid: bool,
}

fn units(bytes: &[u8]) -> Vec<Unit> {
    let mut units = Vec::new();
    for chunk in bytes.utf8_chunks() {
        units.extend(chunk.valid().chars().map(|character| Unit {
            character,
            bytes: character.len_utf8(),
            valid: true,
        }));
        if !chunk.invalid().is_empty() {
            units.push(Unit {
                character: char::REPLACEMENT_CHARACTER,
                bytes: chunk.invalid().len(),
                valid: false,
            });
        }
    }
    units
}

#[derive(Debug, Default)]
struct Part {
    text: String,
    bytes: usize,
    lossy: bool,
}

impl Part {
    /// The first units that fit. A character that was cut in two at the very end is left out.
    fn first(mut units: Vec<Unit>, room: usize) -> Self {
        if units.last().is_some_and(|unit| !unit.valid) {
            units.pop();
        }
        Self::of(&units[..fitting(units.iter(), room)])
    }

    /// The last units that fit. A character that was cut in two at the very beginning is left out.
    fn last(units: Vec<Unit>, room: usize) -> Self {
        let cut = units.iter().take(3).take_while(|unit| !unit.valid).count();
        let units = &units[cut..];
        Self::of(&units[units.len() - fitting(units.iter().rev(), room)..])
    }

    fn of(units: &[Unit]) -> Self {
        Self {
            text: units.iter().map(|unit| unit.character).collect(),
            bytes: units.iter().map(|unit| unit.bytes).sum(),
            lossy: units.iter().any(|unit| !unit.valid),
        }
    }
}

/// The number of units that fit into so many bytes of text.
fn fitting<'a>(units: impl Iterator<Item = &'a Unit>, room: usize) -> usize {
    units
        .scan(0, |used, unit| {
            *used += unit.character.len_utf8();
            Some(*used)
        })
        .take_while(|used| *used <= room)
        .count()
}

#[cfg(test)]
mod tests;
