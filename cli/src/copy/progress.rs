//! The progress of a copy: one line on standard error that changes, if that is a terminal.

use std::{io, io::IsTerminal as _, io::Write as _, time::Duration};

use shared_types::clean::clean_line;
use tokio::time::Instant;
use unicode_width::UnicodeWidthStr as _;

use crate::screen::Screen;

/// The interval between changes of the line.
const EVERY: Duration = Duration::from_millis(200);

/// Longest name that is shown, in characters.
const MAX_NAME: usize = 40;

/// The number of entries to name that are not copied; further ones are only counted.
const NAMED: u64 = 20;

/// The width of a terminal that does not tell it.
const USUAL_COLUMNS: usize = 80;

/// The line, and the words at the end.
pub(super) struct Progress {
    screen: Screen,
    is_shown: bool,
    began: Instant,
    shown_at: Option<Instant>,
    counts: Counts,
    failures: u64,
}

/// The counts of a copy.
#[derive(Debug, Default)]
struct Counts {
    /// The name of the current file, or of the whole copy.
    name: String,
    files: u64,
    /// Of a folder.
    total_files: Option<u64>,
    bytes: u64,
    total_bytes: Option<u64>,
}

impl Progress {
    pub(super) fn new(screen: Screen) -> Self {
        Self {
            screen,
            is_shown: io::stderr().is_terminal(),
            began: Instant::now(),
            shown_at: None,
            counts: Counts::default(),
            failures: 0,
        }
    }

    /// One file of this name is copied.
    pub(super) fn file(&mut self, name: &str, bytes: Option<u64>) {
        self.begin(name, None, bytes);
    }

    /// A folder with so many files is copied.
    pub(super) fn folder(&mut self, name: &str, files: u64, bytes: u64) {
        self.begin(name, Some(files), Some(bytes));
    }

    fn begin(&mut self, name: &str, total_files: Option<u64>, total_bytes: Option<u64>) {
        self.began = Instant::now();
        self.counts = Counts {
            name: clean_line(name, MAX_NAME),
            total_files,
            total_bytes,
            ..Counts::default()
        };
    }

    /// So many more bytes are copied.
    pub(super) fn bytes(&mut self, bytes: u64) {
        self.counts.bytes = self.counts.bytes.saturating_add(bytes);
        self.due();
    }

    /// So many bytes have to be copied again.
    pub(super) fn take_back(&mut self, bytes: u64) {
        self.counts.bytes = self.counts.bytes.saturating_sub(bytes);
    }

    /// So many more files are copied.
    pub(super) fn files(&mut self, files: u64) {
        self.counts.files += files;
        self.due();
    }

    fn due(&mut self) {
        let now = Instant::now();
        let is_due = self
            .shown_at
            .is_none_or(|last| now.saturating_duration_since(last) >= EVERY);
        if self.is_shown && is_due {
            self.shown_at = Some(now);
            self.draw(now);
        }
    }

    /// Says something; the line stands below it again.
    pub(super) fn note(&mut self, text: &str) {
        self.erase();
        let text = clean_line(text, 400);
        self.screen.note(&format!("gantry: {text}"));
    }

    /// Something is not copied.
    pub(super) fn failed(&mut self, path: &str, why: &str) {
        self.failures += 1;
        if self.failures <= NAMED {
            self.note(&format!("not copied: {}: {why}", clean_line(path, 300)));
        }
    }

    /// It is over; whether all of it was copied.
    pub(super) fn finish(&mut self) -> bool {
        if self.is_shown {
            self.draw(Instant::now());
            self.screen.note("");
            self.shown_at = None;
        }
        if self.failures > 0 {
            let (failures, files) = (self.failures, self.counts.files);
            self.note(&format!(
                "{failures} {} not copied; {files} {}",
                if failures == 1 {
                    "entry was"
                } else {
                    "entries were"
                },
                if files == 1 { "file was" } else { "files were" },
            ));
        }
        self.failures == 0
    }

    fn draw(&self, now: Instant) {
        let time = now.saturating_duration_since(self.began);
        let columns = rustix::termios::tcgetwinsize(io::stderr());
        let columns = columns.map_or(0, |size| usize::from(size.ws_col));
        let columns = if columns == 0 { USUAL_COLUMNS } else { columns };
        let line = self.counts.line(time, columns.saturating_sub(1));
        // If standard error is closed, there is no reader of the line.
        let _ = write!(io::stderr(), "\r\x1b[K{line}");
    }

    fn erase(&mut self) {
        if self.shown_at.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    /// Leaves an empty line for the next output.
    fn drop(&mut self) {
        self.erase();
    }
}

impl Counts {
    /// The line cut to the columns; the name is the first part to be left out.
    fn line(&self, time: Duration, columns: usize) -> String {
        let mut parts = Vec::new();
        if let Some(total) = self.total_files {
            parts.push(format!("{}/{total} files", self.files));
        }
        if let Some(total) = self.total_bytes.filter(|total| *total > 0) {
            let share = self.bytes.min(total).saturating_mul(100) / total;
            parts.push(format!("{share:>3}%"));
        }
        let rate = self.bytes as f64 / time.as_secs_f64().max(0.001);
        parts.push(size(self.bytes as f64));
        parts.push(format!("{}/s", size(rate)));
        let numbers = parts.join("  ");
        let whole = format!("{}  {numbers}", self.name);
        match whole.width() <= columns {
            true => whole,
            false => numbers.chars().take(columns).collect(),
        }
    }
}

/// A size as people say it.
fn size(bytes: f64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024.0 {
        return format!("{bytes:.0} B");
    }
    let mut size = bytes / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().unwrap_or(&"");
    for larger in units {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, larger);
    }
    format!("{size:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn counts(name: &str, bytes: u64, total_bytes: Option<u64>) -> Counts {
        Counts {
            name: name.to_owned(),
            bytes,
            total_bytes,
            ..Counts::default()
        }
    }

    #[test]
    fn a_line_says_how_much_of_it_is_copied_and_how_fast() {
        let seconds = Duration::from_secs(2);
        let line = |counts: Counts, time| counts.line(time, 80);
        assert_eq!(
            line(counts("disk.img", 512 * MIB, Some(2048 * MIB)), seconds),
            "disk.img   25%  512.0 MiB  256.0 MiB/s"
        );
        assert_eq!(
            line(counts("empty", 0, Some(0)), Duration::ZERO),
            "empty  0 B  0 B/s"
        );
        assert_eq!(
            line(counts("log", 3 * 1024 * MIB, None), seconds),
            "log  3.0 GiB  1.5 GiB/s"
        );
        let folder = Counts {
            files: 12,
            total_files: Some(5000),
            ..counts("src", MIB, Some(2 * MIB))
        };
        assert_eq!(
            line(folder, seconds),
            "src  12/5000 files   50%  1.0 MiB  512.0 KiB/s"
        );
    }

    #[test]
    fn a_narrow_terminal_gets_the_numbers_and_never_a_second_line() {
        let counts = counts(&"漢".repeat(40), MIB, Some(2 * MIB));
        let time = Duration::from_secs(1);
        assert_eq!(counts.line(time, 60), " 50%  1.0 MiB  1.0 MiB/s");
        assert_eq!(counts.line(time, 10), " 50%  1.0 ");
    }
}
