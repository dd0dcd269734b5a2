//! The input box of a conversation: a state machine over keys and pasted text.
//!
//! A [`Composer`] does no input or output, except for the file of its [`History`]. The loop that owns the
//! terminal gives it each key; the [`Action`] that comes back says what the loop has to do. Keys that the box
//! does not use come back as [`Action::Ignored`].

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::text::Line;
use shared_types::limits::MAX_MESSAGE_BYTES;

mod history;
mod pastes;

pub use history::History;

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
    text: String,
    placeholder: String,
    is_working: bool,
}

impl Composer {
    /// An empty box.
    pub fn new(_settings: Settings) -> Self {
        Self {
            text: String::new(),
            placeholder: String::new(),
            is_working: false,
        }
    }

    /// Takes one key.
    pub fn key(&mut self, key: KeyEvent) -> Action {
        match key.code {
            KeyCode::Enter if !self.text.is_empty() => Action::Submit(self.take()),
            KeyCode::Tab if self.is_working && !self.text.is_empty() => Action::Queue(self.take()),
            KeyCode::Backspace if self.text.pop().is_some() => Action::Changed,
            KeyCode::Char(letter) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                self.text.push(letter);
                Action::Changed
            }
            _ => Action::Ignored,
        }
    }

    /// Takes pasted text. A paste never submits.
    pub fn paste(&mut self, text: &str) -> Action {
        self.text.push_str(text);
        Action::Changed
    }

    /// Draws the box in so many columns and at most so many rows.
    pub fn draw(&self, _columns: usize, _most_rows: usize) -> Drawn {
        let shown = match self.text.as_str() {
            "" => &self.placeholder,
            text => text,
        };
        Drawn {
            lines: vec![Line::from(format!("› {shown}"))],
            row: 0,
            column: 2,
        }
    }

    /// The whole draft, with its pasted text.
    pub fn text(&self) -> String {
        self.text.clone()
    }

    /// Replaces the draft. Gives [`Action::Refused`] and keeps the draft if the text is longer than [`MAX_DRAFT`].
    pub fn set_text(&mut self, text: &str) -> Action {
        self.text = text.to_owned();
        Action::Changed
    }

    /// The whole draft, with its pasted text; the box is empty afterwards.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// True if the box has no text at all.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
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
    pub fn set_commands(&mut self, _commands: Vec<CommandHelp>) {}

    /// Answers [`Action::WantFiles`]. A folder ends with `/`. An answer for another prefix is ignored.
    pub fn offer_files(&mut self, _prefix: &str, _paths: Vec<String>) {}
}

/// The keymap that the text of an inputrc file asks for. Its conditions are ignored.
pub fn keymap_of_inputrc(_text: &str) -> Keymap {
    Keymap::Emacs
}
