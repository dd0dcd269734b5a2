//! `[limits]`: the storage and the rates of one user.

use std::{ops::RangeInclusive, time::Duration};

use anyhow::bail;
use schemars::JsonSchema;
use serde::Deserialize;
use server_app::UserLimits;
use shared_types::limits::MAX_MESSAGE_BYTES;

/// The possible values; a message of the greatest length must be possible.
const SESSIONS: RangeInclusive<u32> = 1..=10_000_000;
const NEW: RangeInclusive<u32> = 1..=1_000_000;
const KIB: RangeInclusive<u32> = (MAX_MESSAGE_BYTES / 1024) as u32..=16 * 1024 * 1024;
const DAYS: RangeInclusive<u32> = 0..=36_500;

/// The section of the file; absent values come from [`UserLimits::default`].
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LimitsSection {
    /// Sessions that a user may have; deleted ones do not count [default: 10000].
    sessions_at_most: Option<u32>,
    /// New sessions, keys and join tokens of a user in a minute [default: 60].
    new_per_minute: Option<u32>,
    /// Messages of a user in a minute, in KiB [default: 4096].
    message_kib_per_minute: Option<u32>,
    /// Images that a user adds to sessions in a minute, in KiB [default: 65536].
    image_kib_per_minute: Option<u32>,
    /// New operations of a user in a minute, by API or `gantry exec` [default: 1200].
    operations_per_minute: Option<u32>,
    /// Days for which operations by API, `gantry exec` or `gantry cp` are stored after their end, with their output; 0
    /// stores them for ever [default: 0].
    operations_kept_days: Option<u32>,
}

impl LimitsSection {
    /// The limits, checked.
    ///
    /// # Errors
    /// Fails if one is too small or too large.
    pub(super) fn user_limits(&self) -> anyhow::Result<UserLimits> {
        let usual = UserLimits::default();
        let sessions = within("sessions_at_most", self.sessions_at_most, SESSIONS)?;
        let new = within("new_per_minute", self.new_per_minute, NEW)?;
        let kib = within("message_kib_per_minute", self.message_kib_per_minute, KIB)?;
        let image_kib = within("image_kib_per_minute", self.image_kib_per_minute, KIB)?;
        let operations = within("operations_per_minute", self.operations_per_minute, NEW)?;
        let days = within("operations_kept_days", self.operations_kept_days, DAYS)?;
        let days = days.filter(|days| *days > 0).map(u64::from);
        let bytes = |kib: Option<u32>| kib.map(|kib| u64::from(kib) * 1024);
        Ok(UserLimits {
            sessions: sessions.unwrap_or(usual.sessions),
            new_per_minute: new.unwrap_or(usual.new_per_minute),
            message_bytes_per_minute: bytes(kib).unwrap_or(usual.message_bytes_per_minute),
            image_bytes_per_minute: bytes(image_kib).unwrap_or(usual.image_bytes_per_minute),
            operations_per_minute: operations.unwrap_or(usual.operations_per_minute),
            operations_kept_for: days.map(|days| Duration::from_secs(days * 24 * 60 * 60)),
        })
    }
}

fn within(
    key: &str,
    wanted: Option<u32>,
    bounds: RangeInclusive<u32>,
) -> anyhow::Result<Option<u32>> {
    if wanted.is_some_and(|wanted| !bounds.contains(&wanted)) {
        bail!(
            "{key} under [limits] in gantry.toml is a number from {} to {}",
            bounds.start(),
            bounds.end()
        );
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_set_by_its_own_key_and_bounded() {
        let limits = |text: &str| {
            let section: LimitsSection = toml::from_str(text).expect("a section");
            section.user_limits()
        };
        let set = "sessions_at_most = 7\nnew_per_minute = 8\nmessage_kib_per_minute = 300\nimage_kib_per_minute = 400\noperations_per_minute = 9";
        let set = limits(set).expect("they are fine");
        let values = (
            set.sessions,
            set.new_per_minute,
            set.message_bytes_per_minute,
            set.image_bytes_per_minute,
            set.operations_per_minute,
        );
        assert_eq!(values, (7, 8, 300 * 1024, 400 * 1024, 9));
        let kept = |days: u32| {
            let limits = limits(&format!("operations_kept_days = {days}"));
            limits.expect("it is fine").operations_kept_for
        };
        assert_eq!(kept(0), None);
        assert_eq!(kept(2), Some(Duration::from_secs(2 * 24 * 60 * 60)));
        for wrong in [
            "sessions_at_most = 0",
            "new_per_minute = 0",
            "message_kib_per_minute = 255",
            "image_kib_per_minute = 255",
            "operations_kept_days = 36501",
        ] {
            let error = limits(wrong).expect_err("it is refused").to_string();
            assert!(
                wrong.starts_with(error.split(' ').next().expect("a word")),
                "{error}"
            );
        }
    }
}
