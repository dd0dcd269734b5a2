//! Times as people say them.

use std::time::Duration;

/// A length of time in the two units that matter: `12 ms`, `1.2 s`, `2 min 5 s`, `1 h 1 min`.
pub fn duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis / 1000 % 60),
        _ => format!("{} h {} min", millis / 3_600_000, millis / 60_000 % 60),
    }
}

/// How long ago a moment was, in one unit.
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
        assert_eq!(said(3_700_000), "1 h 1 min");
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
