//! The line at the bottom of a terminal with what the client waits for, and since when. It is erased before any other
//! output, and drawn again below that output.

use std::time::Duration;

use shared_types::human::duration;
use tokio::time::Instant;
use unicode_width::UnicodeWidthChar as _;

use crate::style::Style;

/// The wait before the line appears, because most waits are shorter. Also the pause after output without a newline, so
/// that an answer that is still being written does not flicker.
const SILENT_FOR: Duration = Duration::from_secs(1);

/// Columns between two stops of a terminal's tabs.
const TAB_STOP: usize = 8;

/// The line, and the state of the text above it.
#[derive(Debug)]
pub(crate) struct Pending {
    style: Style,
    what: String,
    since: Instant,
    written_at: Instant,
    /// Columns of the unfinished line that was written last.
    open: Width,
    drawn: Option<Drawn>,
}

/// The line as it is on the screen.
#[derive(Debug)]
struct Drawn {
    columns: usize,
    is_below_open: bool,
}

/// The width of an unfinished line.
#[derive(Debug, Default, Clone, Copy)]
struct Width {
    columns: usize,
    in_sequence: bool,
}

impl Pending {
    pub(crate) fn new(style: Style, now: Instant) -> Self {
        Self {
            style,
            what: String::new(),
            since: now,
            written_at: now,
            open: Width::default(),
            drawn: None,
        }
    }

    /// The text to write so that `text` appears above the line. From then on the line names `what`, if it is there.
    /// `columns` is the terminal's width.
    pub(crate) fn write(
        &mut self,
        text: &str,
        what: Option<&str>,
        now: Instant,
        columns: usize,
    ) -> String {
        let mut out = self.erase(columns);
        out.push_str(text);
        if !text.is_empty() {
            self.written_at = now;
            text.chars().for_each(|letter| self.open.add(letter));
        }
        if what.is_none_or(|what| what != self.what) {
            self.what = what.unwrap_or_default().to_owned();
            self.since = now;
        }
        out.push_str(&self.draw(now, columns));
        out
    }

    /// The text to write to erase the last text, which began at the beginning of a line. `None` if some of it may have
    /// left the screen of `rows` rows.
    pub(crate) fn take_back(&mut self, text: &str, columns: usize, rows: usize) -> Option<String> {
        let below = rows_below_first(text, columns);
        if below + 1 >= rows {
            return None;
        }
        let line = self.erase(columns);
        self.open = Width::default();
        Some(format!("{line}\r{}\x1b[J", "\x1b[A".repeat(below)))
    }

    /// Takes the line away.
    fn erase(&mut self, columns: usize) -> String {
        let Some(drawn) = self.drawn.take() else {
            return String::new();
        };
        // A terminal that became narrower has broken the line into rows.
        let rows = drawn.columns.saturating_sub(1) / columns.max(1);
        let mut out = format!("\r{}\x1b[J", "\x1b[A".repeat(rows));
        if drawn.is_below_open {
            out.push_str(&format!(
                "\x1b[A\x1b[{}G",
                self.open.columns % columns.max(1) + 1
            ));
        }
        out
    }

    fn draw(&mut self, now: Instant, columns: usize) -> String {
        let waited = now.saturating_duration_since(self.since);
        let quiet = now.saturating_duration_since(self.written_at);
        let is_open = self.open.columns > 0;
        if self.what.is_empty() || waited < SILENT_FOR || (is_open && quiet < SILENT_FOR) {
            return String::new();
        }
        // Terminals disagree on the cursor's place after a full row.
        if is_open && self.open.columns.is_multiple_of(columns.max(1)) {
            return String::new();
        }
        let (line, width) = cut(
            &format!("… {} · {}", self.what, elapsed(waited)),
            columns.saturating_sub(1),
        );
        self.drawn = Some(Drawn {
            columns: width,
            is_below_open: is_open,
        });
        let below = if is_open { "\n" } else { "" };
        format!("{below}{}", self.style.dim(&line))
    }
}

impl Width {
    fn add(&mut self, letter: char) {
        match letter {
            '\n' => *self = Self::default(),
            // The only sequences that we write are colours.
            '\x1b' => self.in_sequence = true,
            'm' if self.in_sequence => self.in_sequence = false,
            _ if self.in_sequence => {}
            '\t' => self.columns = (self.columns / TAB_STOP + 1) * TAB_STOP,
            letter => self.columns += letter.width().unwrap_or(0),
        }
    }
}

/// The number of rows between the first row of a text and its last one.
fn rows_below_first(text: &str, columns: usize) -> usize {
    let (mut rows, mut line) = (0, Width::default());
    let mut row = 0;
    for letter in text.chars() {
        let before = line.columns;
        line.add(letter);
        let width = line.columns.saturating_sub(before);
        match letter {
            '\n' => (rows, row) = (rows + 1, 0),
            _ if row + width > columns => (rows, row) = (rows + 1, width),
            _ => row += width,
        }
    }
    rows
}

/// Whole seconds first: the line changes once a second.
fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        _ => duration(time),
    }
}

/// The beginning of a text that fits, and its width.
fn cut(text: &str, columns: usize) -> (String, usize) {
    let (mut line, mut used) = (String::new(), 0);
    for letter in text.chars() {
        let width = letter.width().unwrap_or(0);
        if used + width > columns {
            break;
        }
        used += width;
        line.push(letter);
    }
    (line, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn pending() -> (Pending, Instant) {
        let start = Instant::now();
        (Pending::new(Style::new(false), start), start)
    }

    #[test]
    fn a_wait_is_shown_after_a_second_and_taken_away_before_anything_else() {
        let (mut line, start) = pending();
        assert_eq!(
            line.write("● Shell\n", Some("Shell"), start, 80),
            "● Shell\n"
        );
        let shown = line.write("", Some("Shell"), after(start, 2), 80);
        assert_eq!(shown, "… Shell · 2 s");
        let shown = line.write("", Some("Shell"), after(start, 65), 80);
        assert_eq!(shown, "\r\x1b[J… Shell · 1 min 5 s");
        let shown = line.write("  │ out\n", Some("Shell"), after(start, 66), 80);
        assert_eq!(shown, "\r\x1b[J  │ out\n… Shell · 1 min 6 s");
        assert_eq!(
            line.write("done\n", None, after(start, 67), 80),
            "\r\x1b[Jdone\n"
        );
    }

    #[test]
    fn what_was_written_last_is_taken_back_with_the_rows_that_it_has() {
        let (mut line, start) = pending();
        let text = "\none\n12345678901";
        line.write(text, Some("the model"), start, 10);
        let gone = line.take_back(text, 10, 24);
        assert_eq!(gone.as_deref(), Some("\r\x1b[A\x1b[A\x1b[A\x1b[J"));
        let next = line.write("two\n", Some("the model"), after(start, 2), 10);
        assert_eq!(next, "two\n… the mod");
        let gone = line.take_back("two\n", 10, 24);
        assert_eq!(gone.as_deref(), Some("\r\x1b[J\r\x1b[A\x1b[J"));
        assert_eq!(
            line.take_back(text, 10, 4),
            None,
            "it may have scrolled away"
        );
    }

    #[test]
    fn what_is_waited_for_next_has_a_time_of_its_own() {
        let (mut line, start) = pending();
        line.write("", Some("Shell"), start, 80);
        assert_eq!(line.write("", Some("the model"), after(start, 9), 80), "");
        let shown = line.write("", Some("the model"), after(start, 12), 80);
        assert_eq!(shown, "… the model · 3 s");
    }

    #[test]
    fn an_unfinished_line_is_gone_on_with_where_it_stood() {
        let (mut line, start) = pending();
        line.write("\x1b[2m  │ \x1b[0m漢字", Some("Shell"), start, 80);
        let shown = line.write("", Some("Shell"), after(start, 3), 80);
        assert_eq!(shown, "\n… Shell · 3 s");
        let shown = line.write("!", Some("Shell"), after(start, 4), 80);
        assert_eq!(shown, "\r\x1b[J\x1b[A\x1b[9G!");
    }

    #[test]
    fn it_is_never_wider_than_the_terminal_and_is_found_again_in_a_narrower_one() {
        let (mut line, start) = pending();
        let shown = line.write("", Some("漢字漢字漢字"), start, 80);
        assert_eq!(shown, "");
        let shown = line.write("", Some("漢字漢字漢字"), after(start, 5), 10);
        assert_eq!(shown, "… 漢字漢");
        let shown = line.write("x\n", None, after(start, 6), 5);
        assert_eq!(shown, "\r\x1b[A\x1b[Jx\n");
    }
}
