//! `[runners]`: what becomes of runners that stay away.

use std::{ops::RangeInclusive, time::Duration};

use anyhow::bail;
use serde::Deserialize;

/// What may be asked for. Shorter than an hour, a runner would go whose commands still run: cut
/// off, they may go on for 15 minutes. After 7 days its operations are given up in any case.
const SILENCE_S: RangeInclusive<u32> = 3600..=7 * 24 * 3600;

/// Where the file says nothing: a day.
const DEFAULT_SILENCE_S: u32 = 24 * 3600;

/// The section of the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RunnersSection {
    /// After this many seconds without a word an ephemeral runner is removed [default: 86400].
    ephemeral_silence_s: Option<u32>,
}

impl RunnersSection {
    /// After how long an ephemeral runner is removed, checked.
    ///
    /// # Errors
    /// If it is too short or too long.
    pub(super) fn ephemeral_silence(&self) -> anyhow::Result<Duration> {
        let seconds = self.ephemeral_silence_s.unwrap_or(DEFAULT_SILENCE_S);
        if !SILENCE_S.contains(&seconds) {
            bail!(
                "ephemeral_silence_s under [runners] in gantry.toml is a number of seconds from {} to {}",
                SILENCE_S.start(),
                SILENCE_S.end()
            );
        }
        Ok(Duration::from_secs(seconds.into()))
    }
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
}
