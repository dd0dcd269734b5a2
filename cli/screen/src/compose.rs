//! The input box of a conversation: a state machine over keys and pasted text.
//!
//! A [`Composer`] does no input or output, except for the file of its [`History`]. The loop that owns the
//! terminal gives it each key; the [`Action`] that comes back says what the loop has to do. Keys that the box
//! does not use come back as [`Action::Ignored`].

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui_core::text::Line;
use shared_types::limits::MAX_MESSAGE_BYTES;
use std::cell::RefCell;

mod browse;
mod buffer;
mod complete;
mod draft;
mod draw;
mod emacs;
mod glyph;
mod history;
mod inputrc;
mod layout;
mod pastes;
mod recall;
mod vi;

pub use history::{History, MAX_ENTRIES, MAX_ENTRY_BYTES, MAX_HISTORY_BYTES};
pub use inputrc::keymap_of_inputrc;

use browse::{Browse, Kept};
use complete::Completer;
use draft::{Draft, Effect};
use draw::View;
use recall::Recall;
use vi::Vi;

/// Longest draft, in bytes, with its pasted text.
pub const MAX_DRAFT: usize = MAX_MESSAGE_BYTES;

/// The keys that edit the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keymap {
    /// The keys of Emacs, as a shell has them by default.
    #[default]
    Emacs,
    /// The keys of vi, with an insert mode and a normal mode.
    Vi,
}

/// The options of a [`Composer`].
#[derive(Debug, Default)]
pub struct Settings {
    /// The keys that edit the text.
    pub keymap: Keymap,
    /// The earlier messages that the arrow keys and Ctrl-R find.
    pub history: History,
}

/// A command that begins with `/`, as the completion list shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandHelp {
    /// The name, with or without its `/`.
    pub name: String,
    /// The argument as a person reads it: `NAME` if needed, `[NAME]` if optional, empty if there is none.
    pub argument: String,
    /// One sentence on the command's effect.
    pub description: String,
}

/// The meaning of a key or a paste for the loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The box has no use for the key; the loop may use it.
    Ignored,
    /// The box may look different now and should be drawn again.
    Changed,
    /// A message to send now. The box is empty again.
    Submit(String),
    /// A message to send after the turn that works now. The box is empty again.
    Queue(String),
    /// A wish to edit the draft in an editor: give it [`Composer::text`] and bring the result to
    /// [`Composer::set_text`].
    Editor,
    /// A wish for the files whose path begins with, or is like, this text. The answer goes to
    /// [`Composer::offer_files`].
    WantFiles(String),
    /// A refusal, with a sentence for the user. The draft is unchanged.
    Refused(String),
}

/// The box as styled lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drawn {
    /// The rows from top to bottom; none is wider than the columns that were asked for.
    pub lines: Vec<Line<'static>>,
    /// The row of the cursor, an index of `lines`.
    pub row: usize,
    /// The column of the cursor, from 0.
    pub column: usize,
}

/// The input box.
#[derive(Debug)]
pub struct Composer {
    draft: Draft,
    history: History,
    browse: Browse,
    recall: Option<Recall>,
    completer: Completer,
    vi: Option<Vi>,
    view: RefCell<View>,
    /// The column that the cursor keeps while it moves by rows.
    column: Option<usize>,
    /// True after Ctrl-X, which begins a key of two.
    is_prefixed: bool,
    is_working: bool,
    placeholder: String,
}

impl Composer {
    /// An empty box.
    pub fn new(settings: Settings) -> Self {
        Self {
            draft: Draft::default(),
            history: settings.history,
            browse: Browse::default(),
            recall: None,
            completer: Completer::default(),
            vi: (settings.keymap == Keymap::Vi).then(Vi::default),
            view: RefCell::default(),
            column: None,
            is_prefixed: false,
            is_working: false,
            placeholder: String::new(),
        }
    }

    /// Takes one key.
    pub fn key(&mut self, key: KeyEvent) -> Action {
        let desktop = KeyModifiers::SUPER | KeyModifiers::HYPER | KeyModifiers::META;
        if key.kind == KeyEventKind::Release || key.modifiers.intersects(desktop) {
            return Action::Ignored;
        }
        self.draft.begin_key();
        if let Some(action) = self.recall_key(key) {
            return action;
        }
        if std::mem::take(&mut self.is_prefixed) && control(key) == Some('e') {
            return Action::Editor;
        }
        if let Some(action) = self.list_key(key) {
            return action;
        }
        let column = self.column.take();
        let has_alt = key.modifiers.contains(KeyModifiers::ALT);
        match (key.code, control(key)) {
            (KeyCode::Enter, _) if has_alt || key.modifiers.contains(KeyModifiers::SHIFT) => {
                self.insert("\n")
            }
            (KeyCode::Enter, _) => self.enter(),
            (KeyCode::Tab, _) if self.is_working => self.send(Action::Queue),
            (KeyCode::Up, _) | (_, Some('p')) => self.rows(-1, column),
            (KeyCode::Down, _) | (_, Some('n')) => self.rows(1, column),
            (KeyCode::Esc, _) => self.escape(),
            (_, Some('j')) => self.insert("\n"),
            (_, Some('g')) => Action::Editor,
            (_, Some('r')) => {
                self.completer.close();
                self.browse.refresh(&mut self.history);
                self.recall = Some(Recall::new(self.now()));
                Action::Changed
            }
            (_, Some('x')) => {
                self.is_prefixed = true;
                Action::Changed
            }
            (KeyCode::Char(letter), None) if !has_alt => self.letter(letter, column),
            _ => self.edit(key),
        }
    }

    /// Takes pasted text. A paste never submits.
    pub fn paste(&mut self, text: &str) -> Action {
        self.draft.begin_key();
        self.column = None;
        let Some(pasted) = pastes::normal(text, MAX_DRAFT) else {
            return refusal(text.len());
        };
        if let Some(recall) = &mut self.recall {
            let shown = recall.extend(&pasted, &self.history);
            return self.show(shown);
        }
        let length = self.draft.pastes.length(self.draft.buffer.text());
        if length + pasted.len() > MAX_DRAFT {
            return refusal(pasted.len());
        }
        let pasted = self.draft.pastes.keep(pasted);
        self.insert(&pasted)
    }

    /// Draws the box in so many columns (at least 4) and at most so many rows (at least 1).
    pub fn draw(&self, columns: usize, most_rows: usize) -> Drawn {
        draw::draw(self, columns, most_rows)
    }

    /// The whole draft, with its pasted text.
    pub fn text(&self) -> String {
        self.draft.whole()
    }

    /// Replaces the draft. Gives [`Action::Refused`] and keeps the draft if the text is longer than [`MAX_DRAFT`].
    pub fn set_text(&mut self, text: &str) -> Action {
        match pastes::normal(text, MAX_DRAFT) {
            Some(text) => {
                self.reset(text);
                Action::Changed
            }
            None => refusal(text.len()),
        }
    }

    /// The whole draft, with its pasted text; the box is empty afterwards.
    pub fn take(&mut self) -> String {
        let whole = self.draft.whole();
        self.reset(String::new());
        whole
    }

    /// True if the box has no text at all.
    pub fn is_empty(&self) -> bool {
        self.draft.buffer.text().is_empty()
    }

    /// Sets the dim text that an empty box shows.
    pub fn set_placeholder(&mut self, placeholder: String) {
        self.placeholder = placeholder;
    }

    /// Sets that a turn works now, so that Tab gives [`Action::Queue`].
    pub fn set_working(&mut self, is_working: bool) {
        self.is_working = is_working;
    }

    /// Sets the commands that `/` completes.
    pub fn set_commands(&mut self, commands: Vec<CommandHelp>) {
        self.completer.set_commands(commands, &self.draft.buffer);
    }

    /// Answers [`Action::WantFiles`]. A folder ends with `/`. An answer for another prefix is ignored.
    pub fn offer_files(&mut self, prefix: &str, paths: Vec<String>) {
        self.completer.offer(&self.draft.buffer, prefix, paths);
    }

    /// True if the draft is a command line for the runner, which begins with `!`.
    pub fn is_command(&self) -> bool {
        self.draft.buffer.text().starts_with('!')
    }

    fn reset(&mut self, text: String) {
        self.draft.reset(text);
        self.browse = Browse::default();
        self.recall = None;
        self.completer.reset();
        self.column = None;
        if let Some(vi) = &mut self.vi {
            vi.reset();
        }
    }

    fn now(&self) -> Kept {
        let buffer = &self.draft.buffer;
        (buffer.text().to_owned(), buffer.cursor())
    }

    fn show(&mut self, kept: Kept) -> Action {
        self.draft.buffer.reset(kept.0, kept.1);
        self.completer.reset();
        self.hold_to_line();
        Action::Changed
    }

    /// Takes a key while a search is open. `None` if the key is for the box.
    fn recall_key(&mut self, key: KeyEvent) -> Option<Action> {
        let recall = self.recall.as_mut()?;
        let history = &self.history;
        let shown = match (key.code, control(key)) {
            (KeyCode::Esc, _) | (_, Some('g' | 'c')) => self.recall.take()?.into_before(),
            (KeyCode::Enter, _) => {
                self.recall = None;
                return Some(Action::Changed);
            }
            (_, Some('r')) => recall.older(history),
            (_, Some('s')) => recall.newer(history),
            (KeyCode::Backspace, _) | (_, Some('h')) => recall.shorten(history),
            (KeyCode::Char(letter), None) if !key.modifiers.contains(KeyModifiers::ALT) => {
                recall.extend(letter.encode_utf8(&mut [0; 4]), history)
            }
            _ => {
                self.recall = None;
                return None;
            }
        };
        Some(self.show(shown))
    }

    /// Takes a key while a list is open. `None` if the key is for the box.
    fn list_key(&mut self, key: KeyEvent) -> Option<Action> {
        self.completer.list()?;
        match (key.code, control(key)) {
            (KeyCode::Esc, _) => {
                self.completer.dismiss();
                self.escape();
            }
            (KeyCode::Up | KeyCode::BackTab, _) | (_, Some('p')) => self.completer.step(false),
            (KeyCode::Down, _) | (_, Some('n')) => self.completer.step(true),
            (KeyCode::Enter, _) if !key.modifiers.is_empty() => return None,
            (KeyCode::Enter, _) if self.completer.is_complete(&self.draft.buffer) => {
                return Some(self.send(Action::Submit));
            }
            (KeyCode::Enter | KeyCode::Tab, _) => {
                let is_sent = key.code == KeyCode::Enter && self.completer.is_whole_command();
                let effect = self.completer.choose(&mut self.draft);
                let chosen = self.apply(effect);
                return Some(match is_sent {
                    true => self.send(Action::Submit),
                    false => chosen,
                });
            }
            _ => return None,
        }
        Some(Action::Changed)
    }

    /// Submits, or begins a new line behind a backslash.
    fn enter(&mut self) -> Action {
        let buffer = &self.draft.buffer;
        let cursor = buffer.cursor();
        let is_continued = buffer.text()[..cursor].ends_with('\\');
        if is_continued {
            let effect = self.draft.replace(cursor - 1..cursor, "\n");
            return self.apply(effect);
        }
        self.send(Action::Submit)
    }

    fn send(&mut self, action: fn(String) -> Action) -> Action {
        if self.draft.buffer.text().trim().is_empty() {
            return Action::Ignored;
        }
        let text = self.take();
        self.history.add(&text);
        action(text)
    }

    fn escape(&mut self) -> Action {
        let Some(vi) = &mut self.vi else {
            return Action::Ignored;
        };
        let effect = vi.escape(&mut self.draft);
        self.apply(effect)
    }

    fn letter(&mut self, letter: char, column: Option<usize>) -> Action {
        if letter.is_control() || pastes::is_mark(letter) {
            return Action::Ignored;
        }
        match self.vi.as_mut().filter(|vi| vi.is_normal()) {
            Some(vi) => match vi.key(letter, &mut self.draft) {
                Effect::Rows(rows) => never_ignored(self.rows(rows, column)),
                effect => never_ignored(self.apply(effect)),
            },
            None => self.insert(letter.encode_utf8(&mut [0; 4])),
        }
    }

    fn insert(&mut self, text: &str) -> Action {
        let effect = self.draft.insert(text);
        self.apply(effect)
    }

    fn edit(&mut self, key: KeyEvent) -> Action {
        let effect = match (key.code, self.vi.as_mut().filter(|vi| vi.is_normal())) {
            (KeyCode::Backspace, Some(vi)) => vi.key('h', &mut self.draft),
            (KeyCode::Delete, Some(vi)) => vi.key('x', &mut self.draft),
            (KeyCode::Right, Some(vi)) => vi.key('l', &mut self.draft),
            _ => emacs::edit(&mut self.draft, key),
        };
        self.apply(effect)
    }

    fn apply(&mut self, effect: Effect) -> Action {
        self.hold_to_line();
        match effect {
            Effect::Unused => Action::Ignored,
            Effect::Edited if !self.is_normal() => {
                match self.completer.update(&self.draft.buffer) {
                    Some(prefix) => Action::WantFiles(prefix),
                    None => Action::Changed,
                }
            }
            Effect::Edited | Effect::Moved => {
                self.completer.close();
                Action::Changed
            }
            Effect::Full => refusal(0),
            Effect::Rows(rows) => self.rows(rows, None),
        }
    }

    /// Moves the cursor by rows. From the first or the last row, one step leads through the history.
    fn rows(&mut self, rows: isize, column: Option<usize>) -> Action {
        self.column = column;
        self.completer.close();
        let steps = (0..rows.unsigned_abs()).take_while(|_| self.step(rows > 0));
        let is_moved = steps.count() > 0;
        self.hold_to_line();
        if is_moved {
            return Action::Changed;
        }
        let now = self.now();
        let kept = match rows < 0 {
            true => self.browse.older(now, &mut self.history),
            false => self.browse.newer(now, &self.history),
        };
        self.column = None;
        match kept {
            Some(kept) => self.show(kept),
            None => Action::Ignored,
        }
    }

    /// Keeps the cursor on a letter in the normal mode of vi.
    fn hold_to_line(&mut self) {
        if let Some(vi) = self.vi.as_ref().filter(|vi| vi.is_normal()) {
            vi.hold_to_line(&mut self.draft);
        }
    }

    /// True in the normal mode of vi.
    fn is_normal(&self) -> bool {
        self.vi.as_ref().is_some_and(Vi::is_normal)
    }

    /// Moves the cursor by one row. Gives false if there is none.
    fn step(&mut self, is_down: bool) -> bool {
        let mut view = self.view.borrow_mut();
        view.update(&self.draft);
        let source = draw::source(&self.draft);
        let (row, column) = view.layout.place(source, self.draft.buffer.cursor());
        let column = *self.column.get_or_insert(column);
        let row = match is_down {
            true => Some(row + 1).filter(|&row| row < view.layout.row_count()),
            false => row.checked_sub(1),
        };
        let Some(row) = row else {
            return false;
        };
        let to = view.layout.at(source, row, column);
        self.draft.buffer.go(to);
        true
    }
}

/// The action of a letter that is a command of vi: it is not for the loop, also if it does nothing.
fn never_ignored(action: Action) -> Action {
    match action {
        Action::Ignored => Action::Changed,
        action => action,
    }
}

/// The letter that is pressed with Ctrl alone.
fn control(key: KeyEvent) -> Option<char> {
    let is_control =
        key.modifiers.contains(KeyModifiers::CONTROL) && !key.modifiers.contains(KeyModifiers::ALT);
    match key.code {
        KeyCode::Char(letter) if is_control => Some(letter.to_ascii_lowercase()),
        _ => None,
    }
}

/// The refusal of text that would make the draft too long: of a paste of so many bytes, or 0 for less.
fn refusal(bytes: usize) -> Action {
    let most = MAX_DRAFT / 1024;
    let size = match bytes / 1024 {
        0 => "The text".to_owned(),
        size @ 1..=2_047 => format!("The text of {size} KiB"),
        size => format!("The text of {} MiB", size / 1024),
    };
    Action::Refused(format!(
        "{size} does not fit: a message has at most {most} KiB. Save the text as a file and name it with @."
    ))
}

#[cfg(test)]
mod tests;
