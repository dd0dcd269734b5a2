use proptest::prelude::*;
use shared_types::{
    SessionEvent, Timestamp, UserId,
    event::{CallOutcome, EventBody, Finish, Usage},
};

use super::*;

fn turn(number: u128) -> TurnId {
    TurnId::from_u128(number)
}

/// A turn's message.
fn input(number: u128) -> Event {
    Event::InputAccepted {
        turn: turn(number),
        by: UserId::from_u128(1),
        client_id: None,
        text: "u".repeat(1000),
    }
}

/// A step of a turn whose calls had results of these lengths.
fn step(number: u128, step: u32, results: &[usize]) -> Vec<Event> {
    let call = ToolCall {
        vendor_id: "v".to_owned(),
        name: "Shell".to_owned(),
        arguments: "{}".to_owned(),
        opaque: Default::default(),
    };
    let answer = Event::AnswerRecorded {
        turn: turn(number),
        step,
        model: "m".to_owned(),
        text: "a".repeat(100),
        reasoning: String::new(),
        calls: vec![call; results.len()],
        opaque: Default::default(),
        finish: Finish::Complete,
        usage: Usage::default(),
    };
    let ended = (0..)
        .zip(results)
        .map(|(ordinal, length)| Event::CallEnded {
            turn: turn(number),
            step,
            ordinal,
            outcome: CallOutcome::Completed,
            text: "r".repeat(*length),
            task: None,
            budget_ms: 0,
            duration_ms: 0,
            overran: false,
            unplaced: false,
            awaits: None,
        });
    std::iter::once(answer).chain(ended).collect()
}

fn transcript(events: &[Event]) -> Transcript {
    let log: Vec<_> = (1..)
        .zip(events)
        .map(|(seq, event)| SessionEvent {
            seq,
            at: Timestamp::from_micros(0),
            body: EventBody::Known(event.clone()),
        })
        .collect();
    Transcript::of(&log)
}

/// Two turns: eight steps of 10 kB each, then four.
fn long() -> Vec<Event> {
    let first = (1..=8).flat_map(|number| step(1, number, &[10_000]));
    let second = (1..=4).flat_map(|number| step(2, number, &[10_000]));
    [input(1)]
        .into_iter()
        .chain(first)
        .chain([input(2)])
        .chain(second)
        .collect()
}

fn make_in(events: &[Event], need: Need) -> Option<Event> {
    make(
        &transcript(events),
        (turn(2), 5),
        "m",
        &ToolSet::default(),
        need,
    )
}

/// The bytes of the request that these events make.
fn bytes(events: &[Event]) -> usize {
    bytes_of(&request(
        &transcript(events),
        turn(2),
        "m",
        &ToolSet::default(),
    ))
}

/// How many results are left out in all, where some are.
fn through(event: &Option<Event>) -> Option<u32> {
    match event {
        Some(Event::ResultsLeftOut { through, .. }) => Some(*through),
        _ => None,
    }
}

#[test]
fn what_fits_into_the_window_stays_as_it_is() {
    assert_eq!(make_in(&long(), Need::Window(100_000)), None);
}

#[test]
fn near_the_window_the_oldest_results_go_until_three_fifths_are_left() {
    // A window of 120 kB, by the estimate.
    let (mut events, window) = (long(), 40_000);
    let event = make_in(&events, Need::Window(window));
    let Some(Event::ResultsLeftOut {
        through,
        results,
        bytes: saved,
        because,
        ..
    }) = &event
    else {
        panic!("{event:?}");
    };
    assert_eq!((*through, *results), (6, 6));
    assert_eq!(*because, LeftOutBecause::NearWindow);
    let before = bytes(&events);
    events.extend(event.clone());
    assert_eq!(bytes(&events) as u64, before as u64 - saved);
    assert!(bytes(&events) <= 3 * window * 60 / 100);
    assert_eq!(make_in(&events, Need::Window(window)), None, "it fits now");
    let sent = request(&transcript(&events), turn(2), "m", &ToolSet::default()).messages;
    let results: Vec<_> = sent
        .iter()
        .filter_map(|message| match message {
            Message::ToolResult { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        results[0],
        "[left out: 10,000 bytes of output, to make room]"
    );
    assert!(results[..6].iter().all(|text| *text == results[0]));
    assert!(results[6..].iter().all(|text| text.len() == 10_000));
    let users = sent
        .iter()
        .filter(|message| matches!(message, Message::User { text } if text.len() == 1000));
    assert_eq!(users.count(), 2);
}

#[test]
fn a_refused_request_is_cut_again_and_again_and_the_last_step_stays() {
    let mut events = long();
    let mut sizes = vec![bytes(&events)];
    let mut cuts = Vec::new();
    while let Some(event) = make_in(&events, Need::Refused(None)) {
        cuts.push(through(&Some(event.clone())).expect("results"));
        events.push(event);
        sizes.push(bytes(&events));
    }
    assert!(sizes.is_sorted_by(|one, next| one > next), "{sizes:?}");
    assert_eq!(
        cuts.last(),
        Some(&11),
        "all but that of the last step: {cuts:?}"
    );
    assert!(
        cuts.contains(&9),
        "at first the last three steps stay: {cuts:?}"
    );
}

#[test]
fn long_arguments_of_a_call_go_with_its_result_and_short_ones_stay() {
    let mut events = long();
    if let Event::AnswerRecorded { calls, .. } = &mut events[1] {
        calls[0].arguments = format!(r#"{{"content":"{}"}}"#, "w".repeat(50_000));
    }
    let event = make_in(&events, Need::Refused(None));
    assert!(event.is_some());
    events.extend(event);
    let sent = request(&transcript(&events), turn(2), "m", &ToolSet::default()).messages;
    let arguments: Vec<_> = sent
        .iter()
        .filter_map(|message| match message {
            Message::Assistant { calls, .. } => Some(calls[0].arguments.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        arguments[0],
        r#"{"left_out":"50,014 bytes of arguments, to make room"}"#
    );
    assert_eq!(arguments[1], "{}");
}

#[test]
fn where_nothing_may_be_left_out_nothing_is() {
    let only_messages = [input(1), input(2)];
    assert_eq!(make_in(&only_messages, Need::Refused(None)), None);
    let last_step: Vec<_> = [input(2)]
        .into_iter()
        .chain(step(2, 1, &[50_000]))
        .collect();
    assert_eq!(make_in(&last_step, Need::Window(100)), None);
}

proptest! {
    #[test]
    fn what_is_left_out_is_a_function_of_the_log_and_only_grows(
        lengths in proptest::collection::vec(proptest::collection::vec(0..20_000usize, 1..4), 1..12),
        window in 100..60_000usize,
    ) {
        let steps = (1..).zip(&lengths).flat_map(|(number, results)| step(2, number, results));
        let mut events: Vec<_> = [input(2)].into_iter().chain(steps).collect();
        let mut before = 0;
        for need in [Need::Window(window), Need::Refused(Some(window)), Need::Refused(None)] {
            let event = make_in(&events, need);
            prop_assert_eq!(&event, &make_in(&events, need));
            if let Some(now) = through(&event) {
                prop_assert!(now > before);
                before = now;
                let size = bytes(&events);
                events.extend(event);
                prop_assert!(bytes(&events) < size);
            }
        }
    }
}
