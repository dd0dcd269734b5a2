//! How far a copy is: one line on standard error that changes, where that is a terminal.

use std::{io, io::IsTerminal as _, io::Write as _, time::Duration};

use tokio::time::Instant;

use crate::screen::Screen;

/// How often the line changes.
const EVERY: Duration = Duration::from_millis(200);

/// Longest name that is shown, in characters.
const MAX_NAME: usize = 40;

/// The line.
pub(super) struct Progress {
    screen: Screen,
    name: String,
    total: Option<u64>,
    is_shown: bool,
    began: Instant,
    shown_at: Option<Instant>,
}

impl Progress {
    pub(super) fn new(screen: Screen, name: &str, total: Option<u64>) -> Self {
        Self {
            screen,
            name: shared_types::clean::clean_line(name, MAX_NAME),
            total,
            is_shown: io::stderr().is_terminal(),
            began: Instant::now(),
            shown_at: None,
        }
    }

    /// So many bytes are copied.
    pub(super) fn reached(&mut self, bytes: u64) {
        let now = Instant::now();
        let is_due = self
            .shown_at
            .is_none_or(|last| now.saturating_duration_since(last) >= EVERY);
        if self.is_shown && is_due {
            self.shown_at = Some(now);
            self.draw(bytes, now);
        }
    }

    /// All of it is copied.
    pub(super) fn done(&mut self, bytes: u64) {
        if self.is_shown {
            self.draw(bytes, Instant::now());
            self.screen.note("");
            self.shown_at = None;
        }
    }

    /// Says something; the line stands below it again.
    pub(super) fn note(&mut self, text: &str) {
        self.erase();
        let text = shared_types::clean::clean_line(text, 400);
        self.screen.note(&format!("gantry: {text}"));
    }

    fn draw(&self, bytes: u64, now: Instant) {
        let time = now.saturating_duration_since(self.began);
        let line = line(&self.name, bytes, self.total, time);
        // Nobody is left to see it where standard error is closed.
        let _ = write!(io::stderr(), "\r\x1b[K{line}");
    }

    fn erase(&mut self) {
        if self.shown_at.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    /// What is said next begins on an empty line.
    fn drop(&mut self) {
        self.erase();
    }
}

fn line(name: &str, bytes: u64, total: Option<u64>, time: Duration) -> String {
    let share = match total {
        Some(total) if total > 0 => format!("{:>3}%  ", bytes * 100 / total),
        _ => String::new(),
    };
    let rate = bytes as f64 / time.as_secs_f64().max(0.001);
    format!("{name}  {share}{}  {}/s", size(bytes as f64), size(rate))
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

    #[test]
    fn a_line_says_how_much_of_it_is_copied_and_how_fast() {
        let mib = 1024 * 1024;
        let seconds = Duration::from_secs(2);
        let shown = line("disk.img", 512 * mib, Some(2048 * mib), seconds);
        assert_eq!(shown, "disk.img   25%  512.0 MiB  256.0 MiB/s");
        let shown = line("empty", 0, Some(0), Duration::ZERO);
        assert_eq!(shown, "empty  0 B  0 B/s");
        let shown = line("log", 3 * 1024 * mib, None, seconds);
        assert_eq!(shown, "log  3.0 GiB  1.5 GiB/s");
    }
}
