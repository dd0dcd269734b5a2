//! The check that there is room on the disk for something new. Asking the host before each command
//! costs more than it tells. So an answer holds for a moment, unless something finds no room in
//! that time. An operation that starts on an outdated answer fails by itself: the journal and the
//! supervisors report it.
//!
//! Each refusal tells the caller; the runner's log reports once that the disk is nearly full, and
//! once that it no longer is.

use std::time::Duration;

use super::OperationsService;

/// The time for which an answer that there is room holds.
const ROOM_FOR: Duration = Duration::from_secs(1);

/// The log tells at most this often of a disk that fills up again and again.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// The knowledge about the room on the disk; times are of the monotonic clock.
#[derive(Debug, Default)]
pub(super) struct Disk {
    room_until: Option<Duration>,
    told: DiskReport,
}

/// The last report in the log about it.
#[derive(Debug, Default)]
struct DiskReport {
    short: bool,
    /// When it said last that there is too little.
    short_at: Option<Duration>,
}

impl OperationsService {
    /// Finds out whether there is room for something new, and logs where that is news.
    pub(super) fn look_for_room(&mut self) {
        let now = self.clock.monotonic();
        let short = self
            .disk
            .is_short(now, || self.sandboxes.commands().disk_is_short());
        self.table.disk_is_short(short);
        if !self.disk.told.is_news(now, short) {
            return;
        }
        let folder = self.sandboxes.commands().root().display();
        match short {
            true => tracing::warn!(
                %folder,
                "the disk is nearly full, and what is left is kept free: nothing new begins that may write, until some is free"
            ),
            false => tracing::info!(%folder, "the disk has room again"),
        }
    }

    /// Looks again where the log reports too little room: there may be no operation that would find
    /// out.
    pub(super) fn look_for_room_again(&mut self) {
        if self.disk.told.short {
            self.look_for_room();
        }
    }

    /// Something found no room.
    pub(super) fn found_no_room(&mut self) {
        self.disk.was_full();
        self.look_for_room();
    }
}

impl DiskReport {
    /// True if the log must report it now; then it counts as reported.
    fn is_news(&mut self, now: Duration, short: bool) -> bool {
        let told_lately = self.short_at.is_some_and(|at| now < at + TOLD_EVERY);
        if short == self.short || (short && told_lately) {
            return false;
        }
        self.short = short;
        if short {
            self.short_at = Some(now);
        }
        true
    }
}

impl Disk {
    /// True if there is too little room; `ask` is called where that is not known.
    fn is_short(&mut self, now: Duration, ask: impl FnOnce() -> bool) -> bool {
        if self.room_until.is_some_and(|until| now < until) {
            return false;
        }
        let short = ask();
        self.room_until = (!short).then(|| now.saturating_add(ROOM_FOR));
        short
    }

    /// Something found no room.
    fn was_full(&mut self) {
        self.room_until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    #[test]
    fn room_is_asked_for_once_in_a_while_and_whenever_there_was_none() {
        let mut disk = Disk::default();
        assert!(disk.is_short(NOW, || true));
        assert!(!disk.is_short(NOW, || false), "asked again");
        assert!(!disk.is_short(NOW, || true), "known");
        assert!(disk.is_short(NOW + ROOM_FOR, || true), "too long ago");
        assert!(!disk.is_short(NOW, || false));
        disk.was_full();
        assert!(disk.is_short(NOW, || true), "no longer true");
    }

    #[test]
    fn the_log_is_told_once_that_there_is_no_room_and_once_that_there_is_again() {
        let mut told = DiskReport::default();
        let news: Vec<_> = [false, true, true, true, false, false]
            .map(|short| told.is_news(NOW, short))
            .into();
        assert_eq!(news, [false, true, false, false, true, false]);
    }

    #[test]
    fn a_disk_that_fills_up_again_and_again_fills_no_log() {
        let mut told = DiskReport::default();
        let lines = (0..1000).filter(|i| told.is_news(NOW, i % 2 == 0));
        assert_eq!(lines.count(), 2);
        assert!(!told.is_news(NOW + TOLD_EVERY / 2, true));
        assert!(told.is_news(NOW + TOLD_EVERY, true), "it still is");
    }
}
