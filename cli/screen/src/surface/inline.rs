//! Inline drawing: printed lines go into the terminal's own scrollback, and the bottom lines below them are drawn again.
//!
//! The surface knows only where the cursor stands relative to the first bottom line. It never asks the terminal, and it
//! never uses absolute positions, so that it works wherever the shell left the cursor.
//!
//! A resize is the difficult part. When a terminal becomes narrower, then
//! - VTE, kitty, Alacritty, foot, WezTerm, iTerm2, Windows Terminal and tmux reflow: a line that is wider than the
//!   screen continues on the next row, and the cursor moves with its line;
//! - xterm, screen and the Linux console cut: each line stays on its row.
//!
//! Therefore [`Reflow`] says how far up the surface may go. A wrong guess to the one side leaves old rows in the
//! scrollback. A wrong guess to the other side would erase printed lines, so it is made only on the caller's word, and
//! only for rows that the terminal had before it was resized ([`Surface::settle`]): a row that arrives afterwards is
//! cut at the new width.
//! When a terminal becomes lower, all of them push rows at the top into the scrollback; the cursor stays on its line.

use std::fmt::Write as _;

use ratatui_core::text::Line;

use super::row::{self, Row};

/// Begins a frame: synchronized output, so that no half-drawn frame is shown; and a hidden cursor, so that it does not
/// flicker where the first is unknown.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?2026l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const WRAP_OFF: &str = "\x1b[?7l";
const WRAP_ON: &str = "\x1b[?7h";
const ERASE_LINE: &str = "\x1b[K";
const ERASE_BELOW: &str = "\x1b[J";

/// A terminal's size in character cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Size {
    /// The columns of a row.
    pub columns: u16,
    /// The rows of the screen.
    pub rows: u16,
}

/// A place in the bottom lines, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Position {
    /// The line.
    pub row: u16,
    /// The column in the line.
    pub column: u16,
}

/// The lines at the bottom, which are drawn again when they change.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bottom {
    /// The lines, from the top. Each is cut at the screen's width.
    pub lines: Vec<Line<'static>>,
    /// The place of the cursor. `None` hides it.
    pub cursor: Option<Position>,
}

/// The colours that may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colours {
    /// The 16 colours of the person's theme.
    #[default]
    Full,
    /// No colours (`NO_COLOR`): only bold, dim, italic, underlined and reversed stay.
    None,
}

/// A terminal's treatment of lines that are wider than the screen after a resize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reflow {
    /// Unknown, or the terminal cuts them. Old bottom rows may stay in the scrollback after a resize.
    #[default]
    Unknown,
    /// The terminal continues them on the next row.
    Wraps,
}

impl Reflow {
    /// Tells a terminal by the variables that it sets in the environment.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let has = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let term = variable("TERM").unwrap_or_default();
        // Variables are inherited when one terminal is started from another. These cut, so their word comes first.
        let cuts = has("XTERM_VERSION") || has("STY") || term.starts_with("st-");
        let names = [
            "TMUX",
            "VTE_VERSION",
            "KITTY_WINDOW_ID",
            "ALACRITTY_WINDOW_ID",
            "WEZTERM_PANE",
            "ITERM_SESSION_ID",
            "KONSOLE_VERSION",
            "GHOSTTY_RESOURCES_DIR",
        ];
        let terms = [
            "xterm-kitty",
            "xterm-ghostty",
            "alacritty",
            "foot",
            "wezterm",
        ];
        let wraps =
            names.into_iter().any(has) || terms.into_iter().any(|name| term.starts_with(name));
        match wraps && !cuts {
            true => Self::Wraps,
            false => Self::Unknown,
        }
    }
}

/// Inline drawing on a terminal.
#[derive(Debug)]
pub struct Surface {
    size: Size,
    colours: Colours,
    reflow: Reflow,
    printed: Vec<Line<'static>>,
    drawn: Drawn,
}

/// The bottom area as the terminal has it.
#[derive(Debug, Default)]
struct Drawn {
    rows: Vec<Row>,
    /// For each row, whether the terminal surely has it.
    settled: Vec<bool>,
    cursor: Option<Position>,
    /// The row and the column in which the terminal's cursor stands, shown or hidden.
    stands: Position,
    /// The rows to go up before drawing everything again, if the screen's size has changed.
    stale: Option<usize>,
}

impl Surface {
    /// Makes a surface for a terminal whose cursor stands at the beginning of an empty line.
    pub fn new(size: Size, colours: Colours) -> Self {
        Self {
            size,
            colours,
            reflow: Reflow::default(),
            printed: Vec::new(),
            drawn: Drawn::default(),
        }
    }

    /// Tells how the terminal treats wide lines after a resize.
    pub fn set_reflow(&mut self, reflow: Reflow) {
        self.reflow = reflow;
    }

    /// The terminal's size as the surface knows it.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Puts lines above the bottom lines for good, with the next frame. They are never cut: the terminal continues a
    /// line that is wider than its screen on the next row.
    pub fn print(&mut self, lines: &[Line<'static>]) {
        self.printed.extend_from_slice(lines);
    }

    /// Returns the bytes that bring the screen to these bottom lines; none if nothing has changed. More lines than the
    /// screen's rows less one are cut from the top.
    pub fn frame(&mut self, bottom: &Bottom) -> Vec<u8> {
        let (rows, cursor) = self.fitted(bottom);
        let drawn = &self.drawn;
        let is_same = rows == drawn.rows && cursor == drawn.cursor;
        if self.printed.is_empty() && drawn.stale.is_none() && is_same {
            return Vec::new();
        }
        let stands = usize::from(drawn.stands.row);
        let mut pen = Pen::begin(drawn.stale.unwrap_or(stands));
        let settled = match drawn.stale.is_none() && self.printed.is_empty() {
            true => {
                self.draw_changed(&mut pen, &rows);
                let stays = |at: usize| drawn.rows.get(at) == rows.get(at) && drawn.settled[at];
                (0..rows.len()).map(stays).collect()
            }
            false => {
                self.draw_all(&mut pen, &rows);
                vec![false; rows.len()]
            }
        };
        self.printed.clear();
        // A hidden cursor waits on the first row, from which every resize is exact.
        let stands = cursor.unwrap_or_default();
        pen.end(stands, cursor.is_some());
        self.drawn = Drawn {
            rows,
            settled,
            cursor,
            stands,
            stale: None,
        };
        pen.out.into_bytes()
    }

    /// Tells that the terminal has had time to take the last frame: about a tenth of a second. Only then can the surface
    /// know how a resize changes the bottom lines; otherwise old rows may stay. The caller says so before
    /// [`Surface::resize`], if that much time has passed since it wrote the last frame.
    pub fn settle(&mut self) {
        self.drawn.settled.fill(true);
    }

    /// Takes the terminal's new size. The next frame draws everything again.
    pub fn resize(&mut self, size: Size) {
        if size == self.size {
            return;
        }
        self.size = size;
        self.drawn.stale = Some(self.rows_above(size.columns));
    }

    /// Returns the bytes that take the bottom lines away: before an editor, a pager, the end. Printed lines that wait
    /// are written. The cursor is shown and stands at the beginning of the line below them.
    pub fn clear(&mut self) -> Vec<u8> {
        let nothing = Bottom {
            lines: Vec::new(),
            cursor: Some(Position::default()),
        };
        self.frame(&nothing)
    }

    /// Draws all bottom lines again with the next frame, in their place: after another program has written over them.
    pub fn redraw(&mut self) {
        let above = usize::from(self.drawn.stands.row);
        self.drawn.stale.get_or_insert(above);
    }

    /// Forgets the bottom lines. The cursor stands at the beginning of an empty line, as after a pager or an editor.
    pub fn reset(&mut self) {
        self.drawn = Drawn::default();
    }

    /// The rows and the cursor of bottom lines as they fit on the screen.
    fn fitted(&self, bottom: &Bottom) -> (Vec<Row>, Option<Position>) {
        let columns = usize::from(self.size.columns.max(1));
        let most = usize::from(self.size.rows).saturating_sub(1).max(1);
        let cut = bottom.lines.len().saturating_sub(most);
        let rows: Vec<_> = bottom.lines[cut..]
            .iter()
            .map(|line| row::render(line, columns, self.colours))
            .collect();
        let last = rows.len().saturating_sub(1);
        let cursor = bottom.cursor.map(|cursor| Position {
            row: narrowed(usize::from(cursor.row).saturating_sub(cut).min(last)),
            column: cursor.column.min(self.size.columns.saturating_sub(1)),
        });
        (rows, cursor)
    }

    /// The rows between the first bottom row and the cursor after the screen has become this wide.
    fn rows_above(&self, columns: u16) -> usize {
        let columns = usize::from(columns.max(1));
        let stands = self.drawn.stands;
        let above = usize::from(stands.row);
        if self.reflow == Reflow::Unknown {
            return above;
        }
        let text = |at: usize| match self.drawn.settled.get(at) {
            Some(true) => self.drawn.rows[at].columns,
            _ => 0,
        };
        let taken: usize = (0..above).map(|at| text(at).div_ceil(columns).max(1)).sum();
        // The cursor moves with its line, as far as the line has text.
        let column = usize::from(stands.column).min(text(above).saturating_sub(1));
        taken + column / columns
    }

    /// Draws the printed lines that wait and then all rows, over what was there.
    fn draw_all(&self, pen: &mut Pen, rows: &[Row]) {
        let columns = usize::from(self.size.columns.max(1));
        pen.go(0);
        for line in &self.printed {
            let row = row::render(line, usize::MAX, self.colours);
            // What erases to the end of the line after a full row would erase the row's last letter.
            match row.columns.cmp(&columns) {
                std::cmp::Ordering::Less => pen.put(&[&row.text, ERASE_LINE]),
                std::cmp::Ordering::Equal => pen.put(&[ERASE_LINE, &row.text]),
                std::cmp::Ordering::Greater => pen.put(&[ERASE_BELOW, &row.text]),
            }
            pen.put(&["\r\n"]);
        }
        pen.put(&[WRAP_OFF]);
        for (index, row) in rows.iter().enumerate() {
            match index + 1 == rows.len() {
                true => pen.put(&[ERASE_BELOW, &row.text]),
                false => {
                    self.draw_row(pen, row);
                    pen.put(&["\r\n"]);
                }
            }
        }
        if rows.is_empty() {
            pen.put(&[ERASE_BELOW]);
        }
        pen.put(&[WRAP_ON]);
        pen.row = rows.len().saturating_sub(1);
    }

    /// Draws the rows that differ from those on the screen.
    fn draw_changed(&self, pen: &mut Pen, rows: &[Row]) {
        let old = &self.drawn.rows;
        if rows == old {
            return;
        }
        // Without rows there is still the one in which the cursor stands.
        let exist = old.len().max(1);
        pen.put(&[WRAP_OFF]);
        for (index, row) in rows.iter().enumerate() {
            if old.get(index) == Some(row) {
                continue;
            }
            if index < exist {
                pen.go(index);
            } else {
                pen.go(index - 1);
                pen.put(&["\r\n"]);
                pen.row = index;
            }
            self.draw_row(pen, row);
        }
        if rows.len() < exist {
            pen.go(rows.len());
            pen.put(&[ERASE_BELOW]);
        }
        pen.put(&[WRAP_ON]);
    }

    fn draw_row(&self, pen: &mut Pen, row: &Row) {
        match row.columns < self.size.columns.into() {
            true => pen.put(&[&row.text, ERASE_LINE]),
            false => pen.put(&[ERASE_LINE, &row.text]),
        }
    }
}

/// Bytes for the terminal, and the row in which they leave the cursor.
struct Pen {
    out: String,
    row: usize,
}

impl Pen {
    fn begin(row: usize) -> Self {
        let out = BEGIN.to_owned();
        Self { out, row }
    }

    fn put(&mut self, parts: &[&str]) {
        self.out.extend(parts.iter().copied());
    }

    /// Goes to the beginning of a row that exists.
    fn go(&mut self, row: usize) {
        self.out.push('\r');
        if row < self.row {
            let _ = write!(self.out, "\x1b[{}A", self.row - row);
        } else if row > self.row {
            let _ = write!(self.out, "\x1b[{}B", row - self.row);
        }
        self.row = row;
    }

    fn end(&mut self, cursor: Position, is_shown: bool) {
        self.go(cursor.row.into());
        if cursor.column > 0 {
            let _ = write!(self.out, "\x1b[{}C", cursor.column);
        }
        if is_shown {
            self.out.push_str(SHOW_CURSOR);
        }
        self.out.push_str(END);
    }
}

fn narrowed(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
