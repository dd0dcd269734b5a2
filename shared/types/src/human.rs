//! Times as people say them.

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

#[cfg(test)]
mod tests {
    use super::*;

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
