//! The keys of vi: an insert mode, in which the keys of Emacs work too, and a normal mode with motions,
//! operators and counts.

use super::draft::{Draft, Effect};

mod motion;

use motion::{Find, Motion, Reach};

/// Largest count before a command.
const MAX_COUNT: usize = 9_999;

/// The state of the keys of vi.
#[derive(Debug, Default)]
pub(super) struct Vi {
    is_normal: bool,
    pending: Pending,
    /// The search within the line that `;` repeats.
    found: Option<Find>,
}

/// The beginning of a command whose end has yet to be typed.
#[derive(Debug, Default, Clone, Copy)]
struct Pending {
    count: Option<usize>,
    operator: Option<Operator>,
    /// The count before the operator.
    operator_count: Option<usize>,
    wait: Option<Wait>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Delete,
    Change,
    Yank,
}

/// A command that needs one more letter.
#[derive(Debug, Clone, Copy)]
enum Wait {
    /// The second `g`.
    Go,
    /// The letter to find, as `f`, `F`, `t` or `T`.
    Find(char),
    /// The letter that replaces.
    Replace,
}

impl Vi {
    /// True in normal mode.
    pub(super) fn is_normal(&self) -> bool {
        self.is_normal
    }

    /// Begins a new draft in insert mode.
    pub(super) fn reset(&mut self) {
        self.is_normal = false;
        self.pending = Pending::default();
    }

    /// Goes to normal mode, or drops a command that was begun. [`Effect::Unused`] if there is nothing to leave.
    pub(super) fn escape(&mut self, draft: &mut Draft) -> Effect {
        let pending = std::mem::take(&mut self.pending);
        if self.is_normal {
            let is_begun =
                pending.count.is_some() || pending.operator.is_some() || pending.wait.is_some();
            return if is_begun {
                Effect::Moved
            } else {
                Effect::Unused
            };
        }
        self.is_normal = true;
        let at = draft.buffer.cursor();
        let to = draft.buffer.previous(at).max(draft.buffer.line_start(at));
        draft.buffer.go(to);
        Effect::Moved
    }

    /// Takes one letter in normal mode.
    pub(super) fn key(&mut self, letter: char, draft: &mut Draft) -> Effect {
        let effect = match self.pending.wait.take() {
            Some(Wait::Go) if letter == 'g' => self.apply_motion('g', draft),
            Some(Wait::Go) => Effect::Unused,
            Some(Wait::Find(kind)) => {
                self.found = Some(Find { kind, letter });
                self.apply_motion(';', draft)
            }
            Some(Wait::Replace) => replace(draft, letter, self.count()),
            None => match self.begin(letter) {
                true => return Effect::Moved,
                false => self.command(letter, draft),
            },
        };
        self.pending = Pending::default();
        if self.is_normal {
            self.hold_to_line(draft);
        }
        effect
    }

    /// Keeps the cursor of normal mode on a letter.
    pub(super) fn hold_to_line(&self, draft: &mut Draft) {
        let buffer = &mut draft.buffer;
        let at = buffer.cursor();
        if at == buffer.line_end(at) && at > buffer.line_start(at) {
            let to = buffer.previous(at);
            buffer.go(to);
        }
    }

    /// Takes a letter that only begins a command.
    fn begin(&mut self, letter: char) -> bool {
        let pending = &mut self.pending;
        match letter {
            '0'..='9' if letter != '0' || pending.count.is_some() => {
                let digit = letter as usize - '0' as usize;
                let count = pending.count.unwrap_or(0) * 10 + digit;
                pending.count = Some(count.min(MAX_COUNT));
            }
            'd' | 'c' | 'y' if pending.operator.is_none() => {
                pending.operator = operator(letter);
                pending.operator_count = pending.count.take();
            }
            'g' => pending.wait = Some(Wait::Go),
            'f' | 'F' | 't' | 'T' => pending.wait = Some(Wait::Find(letter)),
            'r' if pending.operator.is_none() => pending.wait = Some(Wait::Replace),
            _ => return false,
        }
        true
    }

    fn count(&self) -> usize {
        let count = self.pending.count.unwrap_or(1);
        let outer = self.pending.operator_count.unwrap_or(1);
        (count * outer).min(MAX_COUNT)
    }

    fn command(&mut self, letter: char, draft: &mut Draft) -> Effect {
        match self.pending.operator {
            Some(doubled) if operator(letter) == Some(doubled) => {
                let motion = motion::lines(&draft.buffer, self.count());
                return self.operate(doubled, motion, draft);
            }
            Some(_) => return self.apply_motion(letter, draft),
            None => {}
        }
        let at = draft.buffer.cursor();
        let (start, end) = (draft.buffer.line_start(at), draft.buffer.line_end(at));
        match letter {
            'i' => self.insert_at(draft, at),
            'a' => self.insert_at(draft, draft.buffer.next(at).min(end)),
            'I' => self.insert_at(draft, motion::first_letter(&draft.buffer, at)),
            'A' => self.insert_at(draft, end),
            'o' => self.open(draft, end, end + 1),
            'O' => self.open(draft, start, start),
            'j' => Effect::Rows(isize::try_from(self.count()).unwrap_or(1)),
            'k' => Effect::Rows(-isize::try_from(self.count()).unwrap_or(1)),
            'x' => self.operate_to(Operator::Delete, 'l', draft),
            'X' => self.operate_to(Operator::Delete, 'h', draft),
            's' => self.operate_to(Operator::Change, 'l', draft),
            'D' => self.operate_to(Operator::Delete, '$', draft),
            'C' => self.operate_to(Operator::Change, '$', draft),
            'S' => {
                let motion = motion::lines(&draft.buffer, self.count());
                self.operate(Operator::Change, motion, draft)
            }
            'Y' => {
                let motion = motion::lines(&draft.buffer, self.count());
                self.operate(Operator::Yank, motion, draft)
            }
            'p' => put(draft, self.count(), true),
            'P' => put(draft, self.count(), false),
            'u' => {
                let is_undone = (0..self.count())
                    .take_while(|_| draft.buffer.undo())
                    .count();
                if is_undone > 0 {
                    Effect::Edited
                } else {
                    Effect::Moved
                }
            }
            '~' => toggle_case(draft, self.count()),
            letter => self.apply_motion(letter, draft),
        }
    }

    /// Moves the cursor, or applies the operator that waits.
    fn apply_motion(&mut self, letter: char, draft: &mut Draft) -> Effect {
        if let Some(operator) = self.pending.operator {
            return self.operate_to(operator, letter, draft);
        }
        let count = self.pending.count.map(|_| self.count());
        match motion::find(&draft.buffer, letter, count, self.found) {
            Some(motion) => {
                draft.buffer.go(motion.cursor);
                Effect::Moved
            }
            None => Effect::Unused,
        }
    }

    fn operate_to(&mut self, operator: Operator, letter: char, draft: &mut Draft) -> Effect {
        let is_counted = self.pending.count.is_some() || self.pending.operator_count.is_some();
        let count = is_counted.then(|| self.count());
        let buffer = &draft.buffer;
        let motion = match (operator, letter) {
            (Operator::Change, 'w' | 'W') => motion::word_rest(buffer, letter, self.count()),
            (_, 'w' | 'W') if self.count() == 1 => motion::word_in_line(buffer, letter),
            _ => motion::find(buffer, letter, count, self.found),
        };
        match motion {
            Some(motion) => self.operate(operator, motion, draft),
            None => Effect::Unused,
        }
    }

    fn operate(&mut self, operator: Operator, motion: Motion, draft: &mut Draft) -> Effect {
        let Motion { reach, .. } = motion;
        let (mut range, is_lines) = match reach {
            Reach::Letters(range) => (range, false),
            Reach::Lines(range) => (range, true),
        };
        draft.copy(range.clone(), is_lines);
        if is_lines && !draft.cut.text.ends_with('\n') {
            draft.cut.text.push('\n');
        }
        let has_newline = is_lines && draft.buffer.text()[range.clone()].ends_with('\n');
        match operator {
            Operator::Yank => {
                let at = draft.buffer.cursor();
                draft
                    .buffer
                    .go(if is_lines { at } else { at.min(range.start) });
                return Effect::Moved;
            }
            // An empty line stays to type in.
            Operator::Change if has_newline => range.end -= 1,
            // The last line takes the newline before it along.
            Operator::Delete if is_lines && !has_newline && range.start > 0 => range.start -= 1,
            _ => {}
        }
        let effect = draft.remove(range);
        match operator {
            Operator::Change => self.is_normal = false,
            _ if is_lines => {
                let to = motion::first_letter(&draft.buffer, draft.buffer.cursor());
                draft.buffer.go(to);
            }
            _ => {}
        }
        effect
    }

    fn insert_at(&mut self, draft: &mut Draft, at: usize) -> Effect {
        draft.buffer.go(at);
        self.is_normal = false;
        Effect::Moved
    }

    fn open(&mut self, draft: &mut Draft, at: usize, cursor: usize) -> Effect {
        let effect = draft.replace(at..at, "\n");
        if effect == Effect::Edited {
            self.insert_at(draft, cursor);
        }
        effect
    }
}

fn operator(letter: char) -> Option<Operator> {
    match letter {
        'd' => Some(Operator::Delete),
        'c' => Some(Operator::Change),
        'y' => Some(Operator::Yank),
        _ => None,
    }
}

/// Inserts the text that was cut last so many times, behind or before the cursor.
fn put(draft: &mut Draft, count: usize, is_behind: bool) -> Effect {
    let buffer = &draft.buffer;
    let at = buffer.cursor();
    let (start, end) = (buffer.line_start(at), buffer.line_end(at));
    // Whole copies only; more than fit are refused before they are made.
    if draft.pastes.length(&draft.cut.text).saturating_mul(count) > super::MAX_DRAFT {
        return Effect::Full;
    }
    let text = draft.cut.text.repeat(count);
    if text.is_empty() {
        return Effect::Moved;
    }
    let (at, with, cursor) = match (draft.cut.is_lines, is_behind) {
        (true, true) => (end, format!("\n{}", text.trim_end_matches('\n')), end + 1),
        (true, false) => (start, text, start),
        (false, true) => {
            let at = buffer.next(at).min(end);
            (at, text, usize::MAX)
        }
        (false, false) => (at, text, usize::MAX),
    };
    let effect = draft.replace(at..at, &with);
    if effect == Effect::Edited {
        let to = match cursor {
            usize::MAX => draft.buffer.previous(draft.buffer.cursor()),
            line => motion::first_letter(&draft.buffer, line),
        };
        draft.buffer.go(to);
    }
    effect
}

/// Replaces so many clusters by a letter; none if the line has fewer.
fn replace(draft: &mut Draft, letter: char, count: usize) -> Effect {
    let at = draft.buffer.cursor();
    let line_end = draft.buffer.line_end(at);
    let mut end = at;
    for _ in 0..count {
        if end >= line_end {
            return Effect::Moved;
        }
        end = draft.buffer.next(end);
    }
    let effect = draft.replace(at..end, &letter.to_string().repeat(count));
    if effect == Effect::Edited {
        let to = draft.buffer.previous(draft.buffer.cursor());
        draft.buffer.go(to);
    }
    effect
}

fn toggle_case(draft: &mut Draft, count: usize) -> Effect {
    let at = draft.buffer.cursor();
    let line_end = draft.buffer.line_end(at);
    let mut end = at;
    for _ in 0..count {
        if end < line_end {
            end = draft.buffer.next(end);
        }
    }
    let mut with = String::new();
    for letter in draft.buffer.text()[at..end].chars() {
        match letter.is_uppercase() {
            true => with.extend(letter.to_lowercase()),
            false => with.extend(letter.to_uppercase()),
        }
    }
    draft.replace(at..end, &with)
}

#[cfg(test)]
mod tests;
