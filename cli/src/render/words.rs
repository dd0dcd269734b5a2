//! Times as people say them.

/// A duration in the two units that matter.
pub(crate) fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis / 1000 % 60),
        _ => format!("{} h {} min", millis / 3_600_000, millis / 60_000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_as_exact_as_it_matters() {
        assert_eq!(duration(12), "12 ms");
        assert_eq!(duration(1_270), "1.2 s");
        assert_eq!(duration(125_000), "2 min 5 s");
        assert_eq!(duration(3_700_000), "1 h 1 min");
    }
}
