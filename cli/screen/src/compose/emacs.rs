//! The keys of Emacs that edit a draft, as shells have them. The arrow keys and their like are among them.

use super::buffer::{Buffer, Class};
use super::draft::{Draft, Effect, Toward};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Everything but the letters of words.
const BETWEEN: &[Class] = &[Class::Space, Class::Punctuation];
const WORD: &[Class] = &[Class::Word];

/// Edits the draft by one key. Keys that insert a letter are not among these.
pub(super) fn edit(draft: &mut Draft, key: KeyEvent) -> Effect {
    let is_word = key
        .modifiers
        .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    match key.code {
        KeyCode::Char(letter) if key.modifiers.contains(KeyModifiers::ALT) => alt(draft, letter),
        KeyCode::Char(letter) if key.modifiers.contains(KeyModifiers::CONTROL) => {
            control(draft, letter.to_ascii_lowercase())
        }
        KeyCode::Left if is_word => go(draft, word_start),
        KeyCode::Right if is_word => go(draft, word_end),
        KeyCode::Left => go(draft, Buffer::previous),
        KeyCode::Right => go(draft, Buffer::next),
        KeyCode::Home if is_word => go(draft, |_, _| 0),
        KeyCode::End if is_word => go(draft, |buffer, _| buffer.text().len()),
        KeyCode::Home => go(draft, Buffer::line_start),
        KeyCode::End => go(draft, Buffer::line_end),
        KeyCode::Backspace if is_word => cut(draft, word_start, Toward::Start),
        KeyCode::Delete if is_word => cut(draft, word_end, Toward::End),
        KeyCode::Backspace => remove(draft, Buffer::previous),
        KeyCode::Delete => remove(draft, Buffer::next),
        _ => Effect::Unused,
    }
}

fn alt(draft: &mut Draft, letter: char) -> Effect {
    match letter.to_ascii_lowercase() {
        'b' => go(draft, word_start),
        'f' => go(draft, word_end),
        'd' => cut(draft, word_end, Toward::End),
        '<' => go(draft, |_, _| 0),
        '>' => go(draft, |buffer, _| buffer.text().len()),
        _ => Effect::Unused,
    }
}

fn control(draft: &mut Draft, letter: char) -> Effect {
    match letter {
        'a' => go(draft, Buffer::line_start),
        'e' => go(draft, Buffer::line_end),
        'b' => go(draft, Buffer::previous),
        'f' => go(draft, Buffer::next),
        'h' => remove(draft, Buffer::previous),
        'd' if draft.buffer.text().is_empty() => Effect::Unused,
        'd' => remove(draft, Buffer::next),
        'k' => cut(draft, line_rest, Toward::End),
        'u' => cut(draft, line_begin, Toward::Start),
        'w' => cut(draft, blank_before, Toward::Start),
        'y' => draft.yank(),
        't' => transpose(draft),
        // A terminal sends one byte for Ctrl-_, Ctrl-/ and Ctrl-7.
        '_' | '/' | '7' | '-' => {
            draft.buffer.undo();
            Effect::Edited
        }
        _ => Effect::Unused,
    }
}

/// A place that is found from another one.
type Find = fn(&Buffer, usize) -> usize;

fn go(draft: &mut Draft, find: Find) -> Effect {
    let to = find(&draft.buffer, draft.buffer.cursor());
    draft.buffer.go(to);
    Effect::Moved
}

fn remove(draft: &mut Draft, find: Find) -> Effect {
    let at = draft.buffer.cursor();
    let to = find(&draft.buffer, at);
    draft.remove(at.min(to)..at.max(to))
}

fn cut(draft: &mut Draft, find: Find, toward: Toward) -> Effect {
    let to = find(&draft.buffer, draft.buffer.cursor());
    draft.cut_to(to, toward)
}

/// The beginning of the word before a place.
pub(super) fn word_start(buffer: &Buffer, at: usize) -> usize {
    let end = buffer.skip_back(at, BETWEEN);
    match buffer.skip_back(end, WORD) {
        // The paste before it.
        start if start == end => buffer.previous(end),
        start => start,
    }
}

fn word_end(buffer: &Buffer, at: usize) -> usize {
    let start = buffer.skip(at, BETWEEN);
    match buffer.skip(start, WORD) {
        end if end == start => buffer.next(start),
        end => end,
    }
}

/// The beginning of the text without blanks before a place.
fn blank_before(buffer: &Buffer, at: usize) -> usize {
    let end = buffer.skip_back(at, &[Class::Space]);
    buffer.skip_back(end, &[Class::Word, Class::Punctuation, Class::Paste])
}

/// The end of the line; at the end of a line, the beginning of the next.
fn line_rest(buffer: &Buffer, at: usize) -> usize {
    match buffer.line_end(at) {
        end if end == at => buffer.next(at),
        end => end,
    }
}

/// The beginning of the line; at the beginning of a line, the end of the line before.
fn line_begin(buffer: &Buffer, at: usize) -> usize {
    match buffer.line_start(at) {
        start if start == at => buffer.previous(at),
        start => start,
    }
}

/// Exchanges the clusters around the cursor, or the last two of the line at its end.
fn transpose(draft: &mut Draft) -> Effect {
    let buffer = &draft.buffer;
    let at = buffer.cursor();
    let middle = match buffer.line_end(at) == at {
        true => buffer.previous(at),
        false => at,
    };
    if middle <= buffer.line_start(at) {
        return Effect::Moved;
    }
    let range = buffer.previous(middle)..buffer.next(middle);
    let text = buffer.text();
    let exchanged = format!("{}{}", &text[middle..range.end], &text[range.start..middle]);
    draft.replace(range, &exchanged)
}
