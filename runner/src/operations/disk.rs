//! Whether there is room on the disk for something new. Asking the host before each command costs
//! more than it tells, so an answer holds for a moment, unless something finds no room meanwhile.
//! What the answer comes too late for fails by itself: the journal and the supervisors say so.

use std::time::Duration;

/// How long there is room where there was some.
const ROOM_FOR: Duration = Duration::from_secs(1);

/// What is known of the room on the disk.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// Of the monotonic clock.
    room_until: Option<Duration>,
}

impl Disk {
    /// Whether there is too little room; `ask` is asked where that is not known.
    pub(super) fn is_short(&mut self, now: Duration, ask: impl FnOnce() -> bool) -> bool {
        if self.room_until.is_some_and(|until| now < until) {
            return false;
        }
        let short = ask();
        self.room_until = (!short).then(|| now.saturating_add(ROOM_FOR));
        short
    }

    /// Something found no room.
    pub(super) fn was_full(&mut self) {
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
}
