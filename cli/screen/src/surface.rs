//! The terminal: its modes, its keys, and what is drawn on it.
//!
//! - [`Surface`] draws inline, in the terminal's own scrollback. It only makes bytes.
//! - [`Terminal`] is the terminal itself: it reads, writes and tells its size.
//! - [`Modes`] switches the terminal to raw mode and back.
//! - [`guardian`] restores the terminal after the program was killed.
//! - [`Keys`] is the stream of what the person types.
//! - [`Picker`] and [`Pager`] are views: a list with search, and a full screen of lines.
//! - [`notify`] makes the bytes of the bell, of notifications and of the title.
//!
//! No part asks the terminal a question, so a terminal that answers none works.

pub mod guardian;
mod inline;
mod keys;
mod modes;
pub mod notify;
mod pager;
mod picker;
#[cfg(test)]
mod pty;
mod row;
mod terminal;

pub use guardian::{GUARDIAN_ARGUMENT, Guardian};
pub use inline::{Bottom, Colours, Position, Reflow, Size, Surface};
pub use keys::{Input, Keys, MAX_PASTE_BYTES, Paste};
pub use modes::{Modes, Wanted, stop};
pub use pager::{Paged, Pager};
pub use picker::{Choice, Picked, Picker};
pub use terminal::Terminal;

/// A line with the sequences of its styles, without a line end.
pub fn written(line: &ratatui_core::text::Line<'_>, colours: Colours) -> String {
    row::render(line, usize::MAX, colours).text
}
