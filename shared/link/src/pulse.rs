//! Signs of life in both directions (docs/internals/contracts.md#a14).

use std::time::Duration;

/// When to say that this end lives, and when the other is held for dead.
#[derive(Debug)]
pub(crate) struct Pulse {
    every: Duration,
    silence: Duration,
    heard_at: Duration,
    beat_at: Duration,
}

/// The action that is due at this time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    /// The other end was silent for too long.
    Silent,
    /// Time to say that this end lives.
    Due,
    /// Neither.
    Nothing,
}

impl Pulse {
    /// Begins `now`, with one beat every `every` and patience for `silence`.
    pub(crate) fn new(now: Duration, every: Duration, silence: Duration) -> Self {
        Self {
            every,
            silence,
            heard_at: now,
            beat_at: now.saturating_add(every),
        }
    }

    /// A frame came.
    pub(crate) fn heard(&mut self, now: Duration) {
        self.heard_at = self.heard_at.max(now);
    }

    /// When [`Pulse::tick`] is to be called next.
    pub(crate) fn wake_at(&self) -> Duration {
        self.silent_at().min(self.beat_at)
    }

    /// Time has passed. The next beat comes 20 % sooner or later, by `random`, so that many
    /// links do not beat as one.
    pub(crate) fn tick(&mut self, now: Duration, random: u8) -> Beat {
        if now >= self.silent_at() {
            return Beat::Silent;
        }
        if now < self.beat_at {
            return Beat::Nothing;
        }
        let factor = 0.8 + 0.4 * f64::from(random) / 255.0;
        self.beat_at = now.saturating_add(self.every.mul_f64(factor));
        Beat::Due
    }

    pub(crate) fn silence(&self) -> Duration {
        self.silence
    }

    fn silent_at(&self) -> Duration {
        self.heard_at.saturating_add(self.silence)
    }
}

#[cfg(test)]
mod tests;
