use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn piece(offset: u64, data: &[u8], end: bool) -> Input {
    Input {
        offset,
        data: Bytes::copy_from_slice(data),
        end,
    }
}

/// Everything that is to be sent now.
fn sent(feed: &mut Feed) -> Vec<(u64, Vec<u8>, bool)> {
    std::iter::from_fn(|| feed.next(4))
        .map(|piece| (piece.offset, piece.data.to_vec(), piece.end))
        .collect()
}

#[test]
fn nothing_is_sent_before_the_other_end_says_where_it_stands() {
    let mut feed = Feed::new(8);
    assert_eq!(feed.offer(&piece(0, b"abc", false)), Ok(3));
    assert_eq!(sent(&mut feed), []);
    feed.taken(0);
    assert_eq!(sent(&mut feed), [(0, b"abc".to_vec(), false)]);
    assert!(feed.waits());
    feed.taken(3);
    assert!(!feed.waits());
}

#[test]
fn what_does_not_fit_or_leaves_bytes_out_is_not_kept_and_the_writer_is_told_where_to_go_on() {
    let mut feed = Feed::new(4);
    assert_eq!(feed.offer(&piece(0, b"abcdef", true)), Ok(4));
    assert!(!feed.has_room());
    assert_eq!(feed.offer(&piece(6, b"g", false)), Ok(4), "a hole");
    feed.taken(0);
    assert_eq!(sent(&mut feed), [(0, b"abcd".to_vec(), false)]);
    feed.taken(4);
    assert_eq!(feed.offer(&piece(2, b"cdef", true)), Ok(6), "partly known");
    assert_eq!(sent(&mut feed), [(4, b"ef".to_vec(), true)]);
}

#[test]
fn the_end_is_an_offset_and_is_sent_again_like_bytes() {
    let mut feed = Feed::new(8);
    feed.taken(0);
    assert_eq!(feed.offer(&piece(0, b"ab", false)), Ok(2));
    assert_eq!(sent(&mut feed).len(), 1);
    assert_eq!(feed.offer(&piece(2, b"", true)), Ok(2));
    assert_eq!(sent(&mut feed), [(2, b"".to_vec(), true)]);
    assert_eq!(sent(&mut feed), []);
    assert_eq!(feed.offer(&piece(0, b"ab", true)), Ok(2), "a repeat");
    assert!(feed.offer(&piece(2, b"c", false)).is_err());
    feed.disconnect();
    feed.taken(2);
    assert_eq!(sent(&mut feed), [(2, b"".to_vec(), true)]);
}

#[test]
fn an_end_that_lost_what_it_had_taken_is_begun_anew_and_one_that_knows_more_is_followed() {
    let mut feed = Feed::new(8);
    feed.taken(0);
    assert_eq!(feed.offer(&piece(0, b"abcd", false)), Ok(4));
    feed.taken(3);
    feed.taken(1);
    assert_eq!(feed.taken_up_to(), 3, "it does not go back by itself");
    feed.disconnect();
    feed.taken(0);
    assert_eq!(feed.offer(&piece(4, b"e", false)), Ok(0));
    assert_eq!(feed.offer(&piece(0, b"ab", false)), Ok(2));
    feed.disconnect();
    feed.taken(7);
    assert_eq!(feed.offer(&piece(0, b"abcdefgh", true)), Ok(8));
    assert_eq!(sent(&mut feed), [(7, b"h".to_vec(), true)]);
}

proptest! {
    #[test]
    fn however_often_the_connection_is_lost_all_bytes_arrive_once_and_in_order(
        window in 1..20_usize,
        steps in prop::collection::vec((0..4_u8, 1..10_usize), 1..200),
    ) {
        let all: Vec<u8> = (0..=255).cycle().take(300).collect();
        let (mut feed, mut arrived, mut ended) = (Feed::new(window), Vec::<u8>::new(), false);
        let mut at = 0;
        let finish = [(0, 9), (1, 9), (2, 9)].repeat(1000);
        for (what, size) in steps.into_iter().chain(finish) {
            match what {
                0 => {
                    let from = at as usize;
                    let to = (from + size).min(all.len());
                    at = feed.offer(&piece(at, &all[from..to], to == all.len())).expect("not ended");
                }
                1 => feed.taken(arrived.len() as u64),
                2 => if let Some(piece) = feed.next(size) {
                    prop_assert!(piece.offset <= arrived.len() as u64, "a hole");
                    let new = arrived.len() - piece.offset as usize;
                    arrived.extend(piece.data.get(new..).unwrap_or_default());
                    ended |= piece.end;
                },
                _ => feed.disconnect(),
            }
        }
        prop_assert_eq!(arrived, all);
        prop_assert!(ended);
    }
}
