use proptest::prelude::*;

use super::*;

fn excerpt(keep: usize, pieces: &[&[u8]]) -> Excerpt {
    let mut excerpt = Excerpt::new(keep, 0);
    let mut offset = 0;
    for piece in pieces {
        excerpt.push(offset, piece);
        offset += piece.len() as u64;
    }
    excerpt
}

#[test]
fn what_fits_is_shown_as_it_is() {
    assert_eq!(excerpt(64, &[b"ab", b"c\n"]).show(1024).text, "abc\n");
    assert_eq!(bounded("abc", 64), "abc");
}

#[test]
fn what_is_too_long_keeps_its_beginning_and_its_end_and_counts_the_rest() {
    let long = "0123456789".repeat(100);
    let text = bounded(&long, 180);
    assert_eq!(
        text,
        format!(
            "{}\n[… 900 bytes left out …]\n{}",
            &long[..50],
            &long[950..]
        )
    );
}

#[test]
fn bytes_that_were_seen_before_are_not_shown_twice() {
    let mut excerpt = excerpt(64, &[b"hello ", b"world"]);
    excerpt.push(0, b"hello ");
    excerpt.push(6, b"world!");
    assert_eq!(excerpt.show(1024).text, "hello world!");
}

#[test]
fn a_gap_in_the_stream_is_shown_where_it_is() {
    let mut excerpt = excerpt(64, &[b"head"]);
    excerpt.push(104, b"tail");
    let shown = excerpt.show(1024).text;
    assert_eq!(shown, "head\n[… 100 bytes left out from offset 4 …]\ntail");
}

#[test]
fn a_stream_can_end_at_the_largest_number() {
    let mut excerpt = excerpt(64, &[b"head"]);
    excerpt.skip_to(u64::MAX);
    excerpt.push(u64::MAX - 1, b"tail");
    let shown = excerpt.show(1024).text;
    assert!(
        shown.starts_with("head\n[… 18446744073709551608 bytes left out"),
        "{shown}"
    );
}

#[test]
fn what_is_left_out_of_a_stream_can_be_read_from_where_it_is_said_to_be() {
    let mut long = Excerpt::new(50, 7);
    long.push(7, "0123456789".repeat(100).as_bytes());
    let shown = long.show(180).text;
    assert!(
        shown.contains("[… 900 bytes left out from offset 57 …]"),
        "{shown}"
    );
}

#[test]
fn a_character_that_the_limit_cuts_in_two_is_left_out_and_not_called_invalid() {
    // The bounds of head and tail fall into the middle of a two-byte character.
    let shown = excerpt(65, &["ä".repeat(500).as_bytes()]).show(1024);
    assert!(!shown.lossy && !shown.text.contains('\u{FFFD}'));
    assert!(
        shown
            .text
            .contains("[… 872 bytes left out from offset 64 …]"),
        "{}",
        shown.text
    );
}

#[test]
fn bytes_that_are_not_text_are_replaced_and_said() {
    let shown = excerpt(64, &[b"a\xffb"]).show(1024);
    assert_eq!((shown.text.as_str(), shown.lossy), ("a\u{FFFD}b", true));
}

proptest! {
    #[test]
    fn a_shown_excerpt_is_within_its_limit_and_accounts_for_every_byte(
        bytes in proptest::collection::vec(any::<u8>(), 0..3000),
        cuts in proptest::collection::vec(0..3000usize, 0..4),
        keep in 1..400usize,
        limit in 64..600usize,
    ) {
        let mut excerpt = Excerpt::new(keep, 0);
        for cut in cuts.iter().chain([&bytes.len()]) {
            // Replays from the beginning, as attaching again does.
            excerpt.push(0, &bytes[..(*cut).min(bytes.len())]);
        }
        prop_assert!(excerpt.head.len() <= keep && excerpt.tail.len() <= keep);
        let shown = excerpt.show(limit);
        prop_assert!(shown.text.len() <= limit, "{} bytes", shown.text.len());
        if let Some((_, rest)) = shown.text.split_once("\n[… ") {
            let number = |word: Option<&str>| word.and_then(|word| word.parse::<usize>().ok()).expect("a number");
            let (left_out, at) = rest.split_once(" bytes left out from offset ").expect("the gap is stated");
            let (left_out, at) = (number(Some(left_out)), number(at.split(' ').next()));
            prop_assert!(at + left_out <= bytes.len());
        } else if !bytes.contains(&b'\r') {
            prop_assert_eq!(shown.text, String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn a_bounded_text_is_its_own_beginning_and_end(text in "\\PC{0,400}", limit in 64..400usize) {
        let short = bounded(&text, limit);
        prop_assert!(short.len() <= limit);
        if short != text {
            let (head, rest) = short.split_once("\n[… ").expect("the gap is stated");
            let (count, tail) = rest.split_once(" bytes left out …]\n").expect("the gap is stated");
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            let count: usize = count.parse().expect("a number");
            prop_assert_eq!(head.len() + count + tail.len(), text.len());
        }
    }
}
