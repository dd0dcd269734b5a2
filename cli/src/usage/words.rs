//! Tokens, cost and models in words.

use shared_api::UsageKey;

/// The units of counts, the largest first: the count from which one is used, and its letter.
const UNITS: [(u64, &str); 3] = [(1_000_000_000, "B"), (1_000_000, "M"), (1000, "k")];

/// A count of tokens: `800`, `12.3k`, `4.5M`.
pub(super) fn tokens(count: u64) -> String {
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
pub(super) fn cost(calls: u64, micros: u64, unpriced: u64) -> String {
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

/// A model with its provider: `gpt-5 (openai)`.
pub(super) fn model(key: &UsageKey) -> String {
    let model = key.model.as_deref().unwrap_or_default();
    match &key.provider {
        None => model.to_owned(),
        Some(provider) => format!("{model} ({provider})"),
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
}
