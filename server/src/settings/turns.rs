//! `[turns]`: the number of turns that are carried at once, and the time after which a waiting turn is parked.

use std::{ops::RangeInclusive, time::Duration};

use anyhow::ensure;
use schemars::JsonSchema;
use serde::Deserialize;
use server_app::TurnLimits;

/// Each turn that is carried holds its session's conversation in memory.
const AT_ONCE: RangeInclusive<usize> = 1..=4096;

/// Shorter, and every command would cost the writes of a turn that is let go and taken up again.
const PARKS_AFTER_MS: RangeInclusive<u64> = 100..=600_000;

/// The section of the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TurnsSection {
    /// Turns that the server works on at the same time, 1 to 4096; others queue [default: 256].
    at_once: Option<usize>,
    /// Turns of agents that work for other agents, of one tenant, that all servers together work on at the same time, 1 to
    /// 4096; others queue [default: 3].
    agents_at_once: Option<usize>,
    /// The time after which a turn that only waits for its runner or its command is parked, and no longer one of those
    /// [default: 10000].
    parks_after_ms: Option<u64>,
}

impl TurnsSection {
    /// The limits, checked; `waited_for` is how long a turn waits for its runner.
    ///
    /// # Errors
    /// Fails if one is too small or too large.
    pub(super) fn limits(&self, waited_for: Duration) -> anyhow::Result<TurnLimits> {
        let default = TurnLimits::default();
        let at_once = turns("at_once", self.at_once, default.at_once)?;
        let agents_at_once = turns(
            "agents_at_once",
            self.agents_at_once,
            default.agents_at_once,
        )?;
        let parks_after = match self.parks_after_ms {
            None => default.parks_after,
            Some(ms) => {
                ensure!(
                    PARKS_AFTER_MS.contains(&ms),
                    "parks_after_ms under [turns] in gantry.toml is a number of milliseconds from {} to {}",
                    PARKS_AFTER_MS.start(),
                    PARKS_AFTER_MS.end()
                );
                Duration::from_millis(ms)
            }
        };
        Ok(TurnLimits {
            at_once,
            agents_at_once,
            parks_after,
            waited_for,
        })
    }
}

fn turns(name: &str, set: Option<usize>, default: usize) -> anyhow::Result<usize> {
    let number = set.unwrap_or(default);
    ensure!(
        AT_ONCE.contains(&number),
        "{name} under [turns] in gantry.toml is a number of turns from {} to {}",
        AT_ONCE.start(),
        AT_ONCE.end()
    );
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_turns_and_a_wait_out_of_bounds_are_refused_with_what_may_be_set() {
        let limits = |text: &str| {
            let section: TurnsSection = toml::from_str(text).expect("a section");
            section.limits(Duration::from_secs(900))
        };
        assert_eq!(limits("").expect("it is fine"), TurnLimits::default());
        let set = limits("at_once = 2\nparks_after_ms = 100").expect("it is fine");
        assert_eq!(
            (set.at_once, set.parks_after),
            (2, Duration::from_millis(100))
        );
        for (wrong, right) in [
            ("at_once = 0", "1 to 4096"),
            ("agents_at_once = 0", "agents_at_once under [turns]"),
            ("parks_after_ms = 99", "100 to"),
        ] {
            let error = limits(wrong).expect_err("it is refused").to_string();
            assert!(error.contains(right), "{error}");
        }
    }
}
