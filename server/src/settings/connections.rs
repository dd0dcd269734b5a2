//! `[connections]`: the time limits of the port for a connection, and the bounds of strangers: connections that have
//! not shown a credential yet.

use std::{ops::RangeInclusive, time::Duration};

use anyhow::bail;
use schemars::JsonSchema;
use serde::Deserialize;
use server_api::Limits;

/// The shortest and the longest that any of the times may be, in milliseconds.
const ANY_MS: RangeInclusive<u32> = 50..=3_600_000;

/// Connections without a credential that one address may be allowed.
const ANY_STRANGERS: RangeInclusive<u32> = 1..=16_384;

/// Memory that all of them may be allowed, in MiB: the least is enough for an enrolment.
const ANY_STRANGERS_MIB: RangeInclusive<u32> = 1..=16_384;

/// The least and the greatest age that a connection may be allowed, in milliseconds: a second and a week.
const ANY_AGE_MS: RangeInclusive<u32> = 1_000..=604_800_000;

/// The section of the file; absent values come from [`Limits::default`].
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ConnectionsSection {
    /// A connection without a request within this time is closed [default: 10000].
    first_request_within_ms: Option<u32>,
    /// After this time without a new request a connection takes no more [default: 60000].
    quiet_at_most_ms: Option<u32>,
    /// A request whose answer does not begin within this time is given up [default: 30000].
    answer_within_ms: Option<u32>,
    /// A connection that reads nothing of its answer for this time is closed [default: 60000].
    taken_within_ms: Option<u32>,
    /// The interval between pings on a quiet connection [default: 20000].
    keep_alive_every_ms: Option<u32>,
    /// The longest wait for the answer to such a ping [default: 20000].
    keep_alive_within_ms: Option<u32>,
    /// Connections without a credential that may come from one address [default: 1024].
    strangers_per_address: Option<u32>,
    /// Memory that all connections without a credential may hold, in MiB [default: 64].
    strangers_hold_mib: Option<u32>,
    /// The greatest age of a runner's link and a client's WebSocket, give or take 10 %. The server then asks each to
    /// connect again, so that they spread over the servers behind a balancer. 0 sets no bound [default: 0].
    age_at_most_ms: Option<u32>,
}

impl ConnectionsSection {
    /// The times and the bounds, checked.
    ///
    /// # Errors
    /// Fails if one is too small or too large.
    pub(super) fn limits(&self) -> anyhow::Result<Limits> {
        let mut limits = Limits::default();
        for (key, wanted, limit) in [
            (
                "first_request_within_ms",
                self.first_request_within_ms,
                &mut limits.first_request_within,
            ),
            (
                "quiet_at_most_ms",
                self.quiet_at_most_ms,
                &mut limits.quiet_at_most,
            ),
            (
                "answer_within_ms",
                self.answer_within_ms,
                &mut limits.answer_within,
            ),
            (
                "taken_within_ms",
                self.taken_within_ms,
                &mut limits.taken_within,
            ),
            (
                "keep_alive_every_ms",
                self.keep_alive_every_ms,
                &mut limits.keep_alive_every,
            ),
            (
                "keep_alive_within_ms",
                self.keep_alive_within_ms,
                &mut limits.keep_alive_within,
            ),
        ] {
            match wanted {
                None => {}
                Some(ms) if ANY_MS.contains(&ms) => *limit = Duration::from_millis(ms.into()),
                Some(_) => bail!(
                    "{key} under [connections] in gantry.toml is a number of milliseconds from {} to {}",
                    ANY_MS.start(),
                    ANY_MS.end()
                ),
            }
        }
        if let Some(strangers) = self.strangers_per_address {
            if !ANY_STRANGERS.contains(&strangers) {
                bail!(
                    "strangers_per_address under [connections] in gantry.toml is a number of connections from {} to {}",
                    ANY_STRANGERS.start(),
                    ANY_STRANGERS.end()
                );
            }
            limits.strangers_per_address = strangers as usize;
        }
        if let Some(mib) = self.strangers_hold_mib {
            if !ANY_STRANGERS_MIB.contains(&mib) {
                bail!(
                    "strangers_hold_mib under [connections] in gantry.toml is a number of MiB from {} to {}",
                    ANY_STRANGERS_MIB.start(),
                    ANY_STRANGERS_MIB.end()
                );
            }
            limits.strangers_hold_bytes = mib as usize * 1024 * 1024;
        }
        limits.age_at_most = match self.age_at_most_ms {
            None | Some(0) => None,
            Some(ms) if ANY_AGE_MS.contains(&ms) => Some(Duration::from_millis(ms.into())),
            Some(_) => bail!(
                "age_at_most_ms under [connections] in gantry.toml is 0 or a number of milliseconds from {} to {}",
                ANY_AGE_MS.start(),
                ANY_AGE_MS.end()
            ),
        };
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(text: &str) -> anyhow::Result<Limits> {
        toml::from_str::<ConnectionsSection>(text)
            .expect("a section")
            .limits()
    }

    #[test]
    fn each_time_is_set_by_its_own_key_and_bounded() {
        let keys = [
            "first_request_within_ms",
            "quiet_at_most_ms",
            "answer_within_ms",
            "taken_within_ms",
            "keep_alive_every_ms",
            "keep_alive_within_ms",
        ];
        let mut text = String::new();
        for (ms, key) in (50..).zip(keys) {
            text += &format!("{key} = {ms}\n");
            for wrong in [49, 3_600_001] {
                let error = limits(&format!("{key} = {wrong}")).expect_err("it is refused");
                assert!(error.to_string().starts_with(key), "{error}");
            }
        }
        let Limits {
            first_request_within,
            quiet_at_most,
            answer_within,
            taken_within,
            keep_alive_every,
            keep_alive_within,
            ..
        } = limits(&text).expect("they are fine");
        let set = [
            first_request_within,
            quiet_at_most,
            answer_within,
            taken_within,
            keep_alive_every,
            keep_alive_within,
        ];
        assert_eq!(set.map(|time| time.as_millis()), [50, 51, 52, 53, 54, 55]);
    }

    #[test]
    fn what_strangers_may_have_is_set_and_bounded() {
        let set =
            limits("strangers_per_address = 16\nstrangers_hold_mib = 8\n").expect("it is fine");
        assert_eq!(
            (set.strangers_per_address, set.strangers_hold_bytes),
            (16, 8 * 1024 * 1024)
        );
        for key in ["strangers_per_address", "strangers_hold_mib"] {
            for wrong in [0, 16_385] {
                let error = limits(&format!("{key} = {wrong}")).expect_err("it is refused");
                assert!(error.to_string().starts_with(key), "{error}");
            }
        }
    }

    #[test]
    fn connections_have_a_greatest_age_only_where_one_is_set() {
        let age = |text: &str| limits(text).expect("it is fine").age_at_most;
        assert_eq!(age(""), None);
        assert_eq!(age("age_at_most_ms = 0"), None);
        let hour = Some(Duration::from_secs(3600));
        assert_eq!(age("age_at_most_ms = 3600000"), hour);
        for wrong in [1, 999, 604_800_001] {
            let error = limits(&format!("age_at_most_ms = {wrong}")).expect_err("it is refused");
            assert!(error.to_string().starts_with("age_at_most_ms"), "{error}");
        }
    }
}
