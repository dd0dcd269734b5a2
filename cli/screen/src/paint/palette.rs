//! The named styles of the screen.
//!
//! Only the 16 colours of the terminal's own theme are used, and no background: they can be read
//! on light and on dark terminals.

use ratatui_core::style::{Color, Modifier, Style};

/// Text of the terminal's own colour.
pub const PLAIN: Style = Style::new();
/// Text that matters less: hints, numbers in a margin, rules.
pub const DIM: Style = Style::new().add_modifier(Modifier::DIM);
/// Text that matters more: headings, names.
pub const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
/// Slanted text.
pub const ITALIC: Style = Style::new().add_modifier(Modifier::ITALIC);
/// Underlined text: links.
pub const UNDERLINED: Style = Style::new().add_modifier(Modifier::UNDERLINED);
/// Struck-out text.
pub const STRUCK: Style = Style::new().add_modifier(Modifier::CROSSED_OUT);
/// The chosen entry of a list; swaps foreground and background.
pub const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);
/// Names that a person may type, and code within text.
pub const ACCENT: Style = Style::new().fg(Color::Cyan);
/// A success.
pub const GOOD: Style = Style::new().fg(Color::Green);
/// A failure.
pub const BAD: Style = Style::new().fg(Color::Red);
/// A warning, or a wait for a person.
pub const WARN: Style = Style::new().fg(Color::Yellow);
/// The words of the person.
pub const USER: Style = Style::new().fg(Color::Blue);
/// A line that an edit adds.
pub const ADDED: Style = Style::new().fg(Color::Green);
/// A line that an edit removes.
pub const REMOVED: Style = Style::new().fg(Color::Red);

/// A word of a programming language.
pub const KEYWORD: Style = Style::new().fg(Color::Magenta);
/// A string of a programming language.
pub const STRING: Style = Style::new().fg(Color::Green);
/// A number or another fixed value of a programming language.
pub const NUMBER: Style = Style::new().fg(Color::Yellow);
/// A comment of a programming language.
pub const COMMENT: Style = Style::new()
    .add_modifier(Modifier::DIM)
    .add_modifier(Modifier::ITALIC);
/// The name of a function that is called or defined.
pub const FUNCTION: Style = Style::new().fg(Color::Blue);
/// The name of a type, a tag, or a key.
pub const TYPE: Style = Style::new().fg(Color::Cyan);
