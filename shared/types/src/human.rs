//! Times, tokens and costs as people say them.

use std::time::Duration;

/// A length of time in the one or two units that matter: `12 ms`, `1.2 s`, `2 min 5 s`, `1 h 1 min`, `30d`,
/// `6d 23h`. From a minute on it is the nearest one: what is to last for 30 days and began a moment ago is `30d`.
pub fn duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..59_500 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        59_500..3_599_500 => two((millis + 500) / 1000, 60, [" min", " s"]),
        3_599_500..86_370_000 => two((millis + 30_000) / 60_000, 60, [" h", " min"]),
        _ => two((millis + 1_800_000) / 3_600_000, 24, ["d", "h"]),
    }
}

/// So many of a small unit as large ones, and what is left of the small ones.
fn two(number: u128, in_large: u128, [large, small]: [&str; 2]) -> String {
    match (number / in_large, number % in_large) {
        (of_large, 0) => format!("{of_large}{large}"),
        (of_large, of_small) => format!("{of_large}{large} {of_small}{small}"),
    }
}

/// The age of a moment for people, in one unit, such as `5 min ago`.
pub fn ago(age: Duration) -> String {
    match age.as_secs() {
        0..60 => "just now".to_owned(),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h ago", seconds / 3_600),
        seconds @ 86_400..172_800 => format!("{} day ago", seconds / 86_400),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

/// The units of counts, the largest first: the count from which one is used, and its letter.
const UNITS: [(u64, &str); 3] = [(1_000_000_000, "B"), (1_000_000, "M"), (1000, "k")];

/// A count of tokens: `800`, `12.3k`, `4.5M`.
pub fn tokens(count: u64) -> String {
    for (unit, letter) in UNITS {
        // A count that would be rounded up to 1000 of the unit below is written with this one.
        if count >= unit - unit / 20_000 {
            let tenths = u128::from(count) * 10 + u128::from(unit) / 2;
            let tenths = tenths / u128::from(unit);
            return format!("{}.{}{letter}", tenths / 10, tenths % 10);
        }
    }
    count.to_string()
}

/// The cost of calls. A call without a known price is named, because it is not free.
pub fn cost(calls: u64, micros: u64, unpriced: u64) -> String {
    match unpriced {
        0 => dollars(micros),
        unpriced if unpriced >= calls => "unpriced".to_owned(),
        unpriced => format!("{} + {unpriced} unpriced", dollars(micros)),
    }
}

/// An amount in millionths of a US dollar: `$12.34`, and below a dollar `$0.0123`.
fn dollars(micros: u64) -> String {
    let small = micros.saturating_add(50) / 100;
    match (micros, small) {
        (0, _) => "$0.00".to_owned(),
        (_, 0) => "<$0.0001".to_owned(),
        (_, small) if small < 10_000 => {
            let digits = format!("{small:04}");
            let (cents, rest) = digits.split_at(2);
            format!("$0.{cents}{}", rest.trim_end_matches('0'))
        }
        (micros, _) => {
            let cents = micros.saturating_add(5000) / 10_000;
            format!("${}.{:02}", cents / 100, cents % 100)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_short_and_round_into_the_next_unit() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1.0k"),
            (1234, "1.2k"),
            (12_345, "12.3k"),
            (999_949, "999.9k"),
            (999_950, "1.0M"),
            (4_500_000, "4.5M"),
            (1_250_000_000, "1.3B"),
            (u64::MAX, "18446744073.7B"),
        ] {
            assert_eq!(tokens(count), text, "{count}");
        }
    }

    #[test]
    fn a_cost_has_as_many_digits_as_it_needs_and_an_unknown_price_is_named() {
        for (micros, text) in [
            (0, "$0.00"),
            (1, "<$0.0001"),
            (50, "$0.0001"),
            (12_300, "$0.0123"),
            (120_000, "$0.12"),
            (4200, "$0.0042"),
            (999_949, "$0.9999"),
            (999_950, "$1.00"),
            (12_340_000, "$12.34"),
            (1_234_567_890_000, "$1234567.89"),
        ] {
            assert_eq!(cost(4, micros, 0), text, "{micros}");
        }
        assert_eq!(cost(4, 120_000, 3), "$0.12 + 3 unpriced");
        assert_eq!(cost(3, 0, 3), "unpriced");
    }

    #[test]
    fn a_duration_is_as_exact_as_it_matters() {
        let said = |millis| duration(Duration::from_millis(millis));
        assert_eq!(said(12), "12 ms");
        assert_eq!(said(1_270), "1.2 s");
        assert_eq!(said(125_000), "2 min 5 s");
        assert_eq!(said(3_700_000), "1 h 2 min");
        assert_eq!(said(23 * 3_600_000 + 60_000), "23 h 1 min");
        assert_eq!(said((6 * 24 + 23) * 3_600_000), "6d 23h");
    }

    #[test]
    fn a_time_that_has_just_begun_is_told_as_the_whole_that_it_is_of() {
        let said = |seconds: u64| duration(Duration::from_millis(seconds * 1000 - 300));
        assert_eq!(said(60), "1 min");
        assert_eq!(said(600), "10 min");
        assert_eq!(said(3600), "1 h");
        assert_eq!(said(86_400), "1d");
        assert_eq!(said(30 * 86_400), "30d");
    }

    #[test]
    fn an_age_has_one_unit() {
        let said =
            [59, 60, 7_200, 86_400, 200_000].map(|seconds| ago(Duration::from_secs(seconds)));
        assert_eq!(
            said,
            [
                "just now",
                "1 min ago",
                "2 h ago",
                "1 day ago",
                "2 days ago"
            ]
        );
    }
}
