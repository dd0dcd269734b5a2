//! The screen of the terminal client: what a session looks like, and the box in which a person types.
//!
//! It has four parts. Each imports only those above it:
//! - [`transcript`] is the model of what is on the screen. It is made from the feed of a session alone.
//! - [`paint`] turns items of the transcript into styled lines. It has no state.
//! - [`compose`] is the input box: text, history, completion, key bindings.
//! - [`surface`] owns the terminal: its modes, its keys, and the lines at the bottom that are drawn again.

pub mod compose;
pub mod paint;
pub mod surface;
pub mod transcript;

/// Keys, as the input box and the terminal name them.
pub mod key {
    pub use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
}
