//! `[runners]`: the waits for runners that stay away, and their removal.

use std::{ops::RangeInclusive, time::Duration};

use anyhow::bail;
use schemars::JsonSchema;
use serde::Deserialize;
use shared_types::limits;

/// The possible values. With less than an hour, a runner would be removed while its commands still run, because they
/// may run for 15 minutes without a link. After 7 days its operations are given up anyway.
const SILENCE_S: RangeInclusive<u32> = 3600..=7 * 24 * 3600;

/// The value without a setting: a day.
const DEFAULT_SILENCE_S: u32 = 24 * 3600;

/// The possible waits of a turn for a runner. A command may run for a day.
const WAITED_FOR_S: RangeInclusive<u32> = 1..=24 * 3600;

/// The section of the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RunnersSection {
    /// The silence after which an ephemeral runner is removed, an hour to a week [default: 86400].
    ephemeral_silence_s: Option<u32>,
    /// The wait of a turn for a runner that is lost during one of its calls; then the turn fails [default: 900].
    waited_for_s: Option<u32>,
}

impl RunnersSection {
    /// The silence after which an ephemeral runner is removed, checked.
    ///
    /// Fails if it is too short or too long.
    /// If it is too short or too long.
    pub(super) fn ephemeral_silence(&self) -> anyhow::Result<Duration> {
        let seconds = self.ephemeral_silence_s.unwrap_or(DEFAULT_SILENCE_S);
        within("ephemeral_silence_s", seconds, SILENCE_S)
    }

    /// The wait of a turn for a runner that was lost during a call, checked.
    ///
    /// # Errors
    /// Fails if it is too short or too long.
    pub(super) fn waited_for(&self) -> anyhow::Result<Duration> {
        match self.waited_for_s {
            None => Ok(limits::PARKED_AT_MOST),
            Some(seconds) => within("waited_for_s", seconds, WAITED_FOR_S),
        }
    }
}

fn within(key: &str, seconds: u32, range: RangeInclusive<u32>) -> anyhow::Result<Duration> {
    if !range.contains(&seconds) {
        bail!(
            "{key} under [runners] in gantry.toml is a number of seconds from {} to {}",
            range.start(),
            range.end()
        );
    }
    Ok(Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ephemeral_runner_may_be_silent_for_an_hour_to_a_week_and_by_default_a_day() {
        let silence = |text: &str| {
            let section: RunnersSection = toml::from_str(text).expect("a section");
            section.ephemeral_silence().map(|time| time.as_secs())
        };
        assert_eq!(silence("").expect("it is fine"), 86_400);
        assert_eq!(
            silence("ephemeral_silence_s = 3600").expect("it is fine"),
            3600
        );
        for wrong in [0, 3599, 604_801] {
            let error = silence(&format!("ephemeral_silence_s = {wrong}"));
            let error = error.expect_err("it is refused").to_string();
            assert!(error.contains("3600 to 604800"), "{error}");
        }
    }

    #[test]
    fn a_runner_is_waited_for_a_second_to_a_day_and_by_default_a_quarter_of_an_hour() {
        let waited = |text: &str| {
            let section: RunnersSection = toml::from_str(text).expect("a section");
            section.waited_for().map(|time| time.as_secs())
        };
        assert_eq!(waited("").expect("it is fine"), 900);
        assert_eq!(waited("waited_for_s = 1").expect("it is fine"), 1);
        for wrong in [0, 86_401] {
            let error = waited(&format!("waited_for_s = {wrong}"));
            let error = error.expect_err("it is refused").to_string();
            assert!(error.contains("1 to 86400"), "{error}");
        }
    }
}
