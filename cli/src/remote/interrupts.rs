//! Ctrl-C without a terminal: the first one interrupts the command, a second one soon after stops it
//! with everything that it started, and one more leaves.

use std::time::Duration;

use tokio::time::Instant;

/// The longest time between the two presses.
const SOON: Duration = Duration::from_secs(2);

/// The wish behind one more Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Interrupt,
    Stop,
    Leave,
}

/// The earlier presses.
#[derive(Debug, Default)]
pub(super) struct Interrupts {
    last: Option<Instant>,
    is_stopping: bool,
}

impl Interrupts {
    pub(super) fn press(&mut self, now: Instant) -> Wish {
        if self.is_stopping {
            return Wish::Leave;
        }
        let before = self.last.replace(now);
        match before.is_some_and(|last| now.saturating_duration_since(last) <= SOON) {
            true => {
                self.is_stopping = true;
                Wish::Stop
            }
            false => Wish::Interrupt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_within_two_seconds_stops_the_command_and_a_later_one_interrupts_it_again() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut interrupts = Interrupts::default();
        assert_eq!(interrupts.press(after(0)), Wish::Interrupt);
        assert_eq!(interrupts.press(after(2_001)), Wish::Interrupt);
        assert_eq!(interrupts.press(after(4_001)), Wish::Stop);
        assert_eq!(interrupts.press(after(90_000)), Wish::Leave);
    }
}
