use proptest::prelude::*;

use super::*;

fn whole(bytes: &[u8]) -> Vec<SseEvent> {
    let mut decoder = Decoder::default();
    let mut events = decoder.push(bytes).expect("the events are small");
    events.extend(decoder.finish());
    events
}

fn data(bytes: &[u8]) -> Vec<String> {
    whole(bytes).into_iter().map(|event| event.data).collect()
}

#[test]
fn every_kind_of_line_end_separates_events() {
    for text in [
        "data: a\n\ndata: b\n\n",
        "data: a\r\n\r\ndata: b\r\n\r\n",
        "data: a\r\rdata: b\r\r",
        "data: a\n\r\ndata: b\r\n\n",
    ] {
        assert_eq!(data(text.as_bytes()), ["a", "b"], "{text:?}");
    }
}

#[test]
fn data_lines_are_joined_and_one_leading_space_is_dropped() {
    assert_eq!(data(b"data:a\ndata:  b\ndata\n\n"), ["a\n b\n"]);
}

#[test]
fn comments_and_unknown_fields_are_no_data() {
    assert_eq!(
        data(b": keep-alive\n\nid: 7\nretry: 10\n\n:x\ndata: a\n\n"),
        ["a"]
    );
}

#[test]
fn an_event_carries_its_name_and_the_next_one_does_not_inherit_it() {
    let events = whole(b"event: error\ndata: a\n\ndata: b\n\n");
    assert_eq!(events[0].name, "error");
    assert_eq!(events[1].name, "");
}

#[test]
fn the_last_event_counts_without_its_empty_line() {
    assert_eq!(data(b"data: a\n\ndata: [DONE]"), ["a", "[DONE]"]);
}

#[test]
fn a_byte_order_mark_before_the_first_line_is_skipped() {
    assert_eq!(data("\u{feff}data: a\n\n".as_bytes()), ["a"]);
}

#[test]
fn an_event_larger_than_the_limit_is_refused_as_one_line_and_as_many() {
    let line = vec![b'x'; MAX_EVENT_BYTES + 1];
    assert_eq!(Decoder::default().push(&line), Err(TooLarge));
    let mut decoder = Decoder::default();
    let lines = b"data: 0123456789\n".repeat(1024);
    let refused = (0..MAX_EVENT_BYTES / 1024).any(|_| decoder.push(&lines).is_err());
    assert!(refused);
}

#[test]
fn many_events_together_may_be_larger_than_the_limit() {
    let mut decoder = Decoder::default();
    let event = [b"data: ".as_slice(), &vec![b'x'; 100_000], b"\n\n"].concat();
    let count: usize = (0..50)
        .map(|_| decoder.push(&event).expect("each event is small").len())
        .sum();
    assert_eq!(count, 50);
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("data: ".to_owned()),
        Just("data".to_owned()),
        Just("event: e".to_owned()),
        Just(":".to_owned()),
        Just("\n".to_owned()),
        Just("\r".to_owned()),
        Just("\r\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("\u{feff}".to_owned()),
        "[a-zäß✓ ]{0,6}",
    ]
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_gives_the_same_events(
        pieces in proptest::collection::vec(piece(), 0..40),
        cuts in proptest::collection::vec(0usize..200, 0..20),
    ) {
        let bytes = pieces.concat().into_bytes();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();

        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for pair in cuts.windows(2) {
            events.extend(decoder.push(&bytes[pair[0]..pair[1]]).expect("the events are small"));
        }
        events.extend(decoder.finish());
        prop_assert_eq!(events, whole(&bytes));
    }
}
