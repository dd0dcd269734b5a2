//! Cutting text without cutting characters.

/// At most `max` bytes of `text`, without a UTF-8 character that is cut at the end. Bytes that
/// are not UTF-8 are cut where the bound is.
pub(crate) fn cut(text: &[u8], max: usize) -> &[u8] {
    const LONGEST_TAIL: usize = 3;
    let continues = |at: usize| text[at] & 0b1100_0000 == 0b1000_0000;
    if text.len() <= max {
        return text;
    }
    let start = (max.saturating_sub(LONGEST_TAIL)..=max)
        .rev()
        .find(|at| !continues(*at));
    &text[..start.unwrap_or(max)]
}

/// [`cut`], as text, with bytes that are not UTF-8 replaced, and not longer than `max` either.
pub(crate) fn cut_lossy(text: &[u8], max: usize) -> String {
    let mut text = String::from_utf8_lossy(cut(text, max)).into_owned();
    // A replacement character is longer than the byte that it stands for.
    text.truncate(text.floor_char_boundary(max));
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_that_are_not_text_are_cut_at_the_bound() {
        assert_eq!(cut(&[0x80; 10], 7), [0x80; 7]);
        assert_eq!(cut(b"abc", 0), b"");
    }

    proptest! {
        #[test]
        fn a_cut_text_is_the_longest_whole_prefix_that_fits(text in ".{0,40}", max in 0_usize..50) {
            prop_assert_eq!(cut(text.as_bytes(), max), &text.as_bytes()[..text.floor_char_boundary(max)]);
        }

        #[test]
        fn a_lossy_cut_is_never_longer_than_its_bound(
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
            max in 0_usize..50,
        ) {
            prop_assert!(cut_lossy(&bytes, max).len() <= max);
        }
    }
}
