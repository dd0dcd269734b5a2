//! Lengths of time as people type them: `90`, `90s`, `1h`, `1h30m`, `0.5s`.

use std::time::Duration;

/// The units, by what stands behind the number, with their seconds.
const UNITS: [(&str, f64); 5] = [
    ("ms", 0.001),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
    ("d", 86400.0),
];

/// A text that is no length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no length of time: write it like 90s, 10m, 1h30m or 7d; a number alone is seconds"
)]
pub struct NotADuration(String);

/// A length of time: numbers, each with its unit (`ms`, `s`, `m`, `h`, `d`), or one number of seconds.
///
/// # Errors
/// If the text is something else.
pub fn parse_duration(text: &str) -> Result<Duration, NotADuration> {
    let wrong = || NotADuration(text.to_owned());
    let mut rest = text.trim();
    let mut seconds = 0.0;
    if let Some(plain) = number(rest) {
        (seconds, rest) = (plain, "");
    } else if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let unit_at = rest.find(|letter: char| letter.is_ascii_alphabetic());
        let (amount, behind) = rest.split_at(unit_at.ok_or_else(wrong)?);
        let next = behind.find(|letter: char| !letter.is_ascii_alphabetic());
        let (unit, after) = behind.split_at(next.unwrap_or(behind.len()));
        let unit = UNITS.iter().find(|(name, _)| *name == unit);
        let (_, factor) = unit.ok_or_else(wrong)?;
        seconds += number(amount.trim()).ok_or_else(wrong)? * factor;
        rest = after.trim_start();
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

/// A plain number: no sign, no exponent, no word.
fn number(text: &str) -> Option<f64> {
    let is_plain = text
        .bytes()
        .all(|letter| letter.is_ascii_digit() || letter == b'.');
    text.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        for (text, millis) in [
            ("90", 90_000),
            ("0.5", 500),
            ("250ms", 250),
            ("90s", 90_000),
            ("10m", 600_000),
            ("1h", 3_600_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("7d", 604_800_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for wrong in [
            "", "h", "1y", "-1s", "1e9", "NaN", "inf", "1h30", "soon", "1 2s", "1h-1m",
        ] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
