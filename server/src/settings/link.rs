//! `[link]`: the heartbeats by which the two ends of a runner's link recognise a lost link.
//!
//! The server chooses the times of both ends; a runner learns them when it links.

use std::{ops::RangeInclusive, time::Duration};

use anyhow::bail;
use schemars::JsonSchema;
use serde::Deserialize;
use server_router::links::LinkOptions;

/// The shortest and the longest that any of the times may be, in milliseconds: what a runner takes.
const ANY_MS: RangeInclusive<u32> = 50..=300_000;

/// The section of the file; absent values are those of the contract.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LinkSection {
    /// The interval between heartbeats of each end [default: 10000].
    heartbeat_every_ms: Option<u32>,
    /// The silence of the server after which the runner reconnects [default: 30000].
    silence_ms: Option<u32>,
    /// The silence of a runner after which the server counts it as offline; its commands continue [default: 45000].
    lease_ms: Option<u32>,
    /// The silence of a runner, in days, after which its operations are given up as lost [default: 7].
    lost_after_days: Option<u32>,
}

impl LinkSection {
    /// The times, checked.
    ///
    /// # Errors
    /// Fails if they would end working links.
    pub(super) fn options(&self) -> anyhow::Result<LinkOptions> {
        let default = LinkOptions::default();
        let options = LinkOptions {
            heartbeat_every: time(
                "heartbeat_every_ms",
                self.heartbeat_every_ms,
                default.heartbeat_every,
            )?,
            silence: time("silence_ms", self.silence_ms, default.silence)?,
            lease: time("lease_ms", self.lease_ms, default.lease)?,
            lost_after: match self.lost_after_days {
                None => default.lost_after,
                Some(days) if (1..=3650).contains(&days) => {
                    Duration::from_secs(u64::from(days) * 24 * 60 * 60)
                }
                Some(_) => bail!(
                    "lost_after_days under [link] in gantry.toml is a number of days from 1 to 3650"
                ),
            },
            ..default
        };
        if options.silence < 2 * options.heartbeat_every || options.lease < options.silence {
            bail!(
                "a sound link would be ended under [link] in gantry.toml: silence_ms has to be at least twice heartbeat_every_ms, and lease_ms at least silence_ms"
            );
        }
        Ok(options)
    }
}

fn time(key: &str, wanted: Option<u32>, default: Duration) -> anyhow::Result<Duration> {
    match wanted {
        None => Ok(default),
        Some(ms) if ANY_MS.contains(&ms) => Ok(Duration::from_millis(ms.into())),
        Some(_) => bail!(
            "{key} under [link] in gantry.toml is a number of milliseconds from {} to {}",
            ANY_MS.start(),
            ANY_MS.end()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> anyhow::Result<LinkOptions> {
        toml::from_str::<LinkSection>(text)
            .expect("a section")
            .options()
    }

    fn error(text: &str) -> String {
        options(text).expect_err("it is refused").to_string()
    }

    #[test]
    fn times_that_are_left_out_are_those_of_the_contract() {
        let (ours, default) = (
            options("lease_ms = 60000").expect("it is fine"),
            LinkOptions::default(),
        );
        assert_eq!(ours.lease, Duration::from_secs(60));
        assert_eq!(
            (ours.heartbeat_every, ours.silence),
            (default.heartbeat_every, default.silence)
        );
    }

    #[test]
    fn times_that_would_end_sound_links_are_refused() {
        assert!(error("silence_ms = 15000").contains("twice heartbeat_every_ms"));
        assert!(error("lease_ms = 20000").contains("at least silence_ms"));
        assert!(error("heartbeat_every_ms = 49").contains("from 50 to 300000"));
        assert!(error("lease_ms = 300001").contains("lease_ms"));
    }
}
