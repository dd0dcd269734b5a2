use proptest::prelude::*;
use shared_types::{
    SessionEvent, Timestamp, UserId,
    event::{CallOutcome, EventBody, Finish, Part, Parts, Usage},
};

use serde_json::Value;
use server_llm::Message;
use shared_types::event::ToolCall;

use super::*;
use crate::{
    prompt::request,
    testing::{model, said},
};

fn turn(number: u128) -> TurnId {
    TurnId::from_u128(number)
}

/// A turn's message.
fn input(number: u128) -> Event {
    Event::InputAccepted {
        turn: turn(number),
        by: UserId::from_u128(1),
        client_id: None,
        parts: Parts::text("u".repeat(1000)),
        compacts: None,
        terms: crate::testing::full(),
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
        origin: None,
        parts: said(&"a".repeat(100), vec![call; results.len()]),
        finish: Finish::Complete,
        usage: Usage::default(),
        estimated: 0,
        model_ms: 0,
        limit: None,
    };
    let ended = (0..)
        .zip(results)
        .map(|(ordinal, length)| Event::CallEnded {
            turn: turn(number),
            step,
            ordinal,
            outcome: CallOutcome::Completed,
            parts: Parts::text("r".repeat(*length)),
            task: None,
            budget_ms: 0,
            duration_ms: 0,
            overran: false,
            unplaced: false,
            awaits: None,
            file: None,
            whole: None,
            findings: Vec::new(),
            tools: Vec::new(),
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
        &model("m"),
        &ToolSet::default(),
        need,
    )
}

/// The bytes of the request that these events make.
fn bytes(events: &[Event]) -> usize {
    bytes_of(&request(
        &transcript(events),
        turn(2),
        &model("m"),
        &ToolSet::default(),
    ))
}

#[test]
fn what_fits_into_the_window_stays_as_it_is() {
    assert_eq!(make_in(&long(), Need::Window(100_000)), None);
}

#[test]
fn near_the_window_the_oldest_results_go_until_half_of_the_room_is_left() {
    // A window of 120 kB, by the estimate.
    let (mut events, window) = (long(), 40_000);
    let event = make_in(&events, Need::Window(window));
    let Some(Event::ResultsLeftOut {
        through,
        results,
        bytes: saved,
        gone,
        longest,
        because,
        ..
    }) = &event
    else {
        panic!("{event:?}");
    };
    assert_eq!((*through, *results, *gone, *longest), (8, 8, 0, None));
    assert_eq!(*because, LeftOutBecause::NearWindow);
    let before = bytes(&events);
    events.extend(event.clone());
    assert_eq!(bytes(&events) as u64, before as u64 - saved);
    assert!(bytes(&events) <= 3 * window * 50 / 100);
    assert_eq!(make_in(&events, Need::Window(window)), None, "it fits now");
    let sent = request(
        &transcript(&events),
        turn(2),
        &model("m"),
        &ToolSet::default(),
    )
    .messages;
    let results: Vec<_> = sent
        .iter()
        .filter_map(|message| match message {
            Message::ToolResult { parts, .. } => Some(parts.words()),
            _ => None,
        })
        .collect();
    for (number, text) in (1..).zip(&results[..8]) {
        let short = format!(
            "[left out: 10,000 bytes of output, to make room; they are stored as r{number}]"
        );
        assert_eq!(*text, short);
    }
    assert!(results[8..].iter().all(|text| text.len() == 10_000));
    let users = sent.iter().filter(
        |message| matches!(message, Message::User { parts } if parts.words().len() == 1000),
    );
    assert_eq!(users.count(), 2);
}

#[test]
fn one_text_that_is_too_long_is_cut_and_nothing_before_it_changes() {
    let mut events = long();
    let before = request(
        &transcript(&events),
        turn(2),
        &model("m"),
        &ToolSet::default(),
    )
    .messages;
    events.push(Event::InputAccepted {
        turn: turn(3),
        by: UserId::from_u128(1),
        client_id: None,
        parts: Parts::text(format!("first {} last", "x".repeat(400_000))),
        compacts: None,
        terms: crate::testing::full(),
    });
    let now = |events: &[Event]| transcript(events);
    let event = make(
        &now(&events),
        (turn(3), 1),
        &model("m"),
        &ToolSet::default(),
        Need::Window(80_000),
    );
    let Some(Event::ResultsLeftOut {
        shortened: 1,
        gone: 0,
        results: 0,
        ..
    }) = &event
    else {
        panic!("{event:?}");
    };
    events.extend(event);
    let sent = request(&now(&events), turn(3), &model("m"), &ToolSet::default()).messages;
    assert!(sent.starts_with(&before));
    let Some(Message::User { parts }) = sent.last() else {
        panic!("{sent:?}");
    };
    let text = parts.words();
    assert!(text.starts_with("first x") && text.ends_with("x last") && text.len() < 80_000);
    assert!(
        text.contains("bytes of this message are left out here"),
        "it says so"
    );
}

#[test]
fn a_refused_request_is_cut_again_and_again_and_the_last_step_stays() {
    let mut events = long();
    let mut sizes = vec![bytes(&events)];
    while let Some(event) = make_in(&events, Need::Refused(None)) {
        events.push(event);
        sizes.push(bytes(&events));
    }
    assert!(sizes.is_sorted_by(|one, next| one > next), "{sizes:?}");
    assert!(
        (5..12).contains(&sizes.len()),
        "each takes away much: {sizes:?}"
    );
    let sent = request(
        &transcript(&events),
        turn(2),
        &model("m"),
        &ToolSet::default(),
    )
    .messages;
    let [
        Message::User { parts: gone },
        Message::User { parts: input },
        Message::User { parts: steps },
        Message::Assistant { parts: answer },
        Message::ToolResult { parts: result, .. },
    ] = &sent[..]
    else {
        panic!("{sent:?}");
    };
    let [gone, input, steps, result] = [gone, input, steps, result].map(Parts::words);
    assert!(gone.contains("the beginning of this conversation is left out"));
    assert!(steps.contains("your first steps on the message above are left out"));
    assert!(input.len() <= 256 && input.starts_with("uuu"));
    assert_eq!(answer.calls().count(), 1);
    assert!(result.len() <= 256 && result.starts_with("rrr") && result.ends_with("rrr"));
}

#[test]
fn long_arguments_of_a_call_go_with_its_result_and_short_ones_stay() {
    let mut events = long();
    if let Event::AnswerRecorded { parts, .. } = &mut events[1]
        && let Some(Part::ToolCall(call)) = parts.0.last_mut()
    {
        call.arguments = format!(r#"{{"content":"{}"}}"#, "w".repeat(50_000));
    }
    let event = make_in(&events, Need::Refused(None));
    assert!(event.is_some());
    events.extend(event);
    let sent = request(
        &transcript(&events),
        turn(2),
        &model("m"),
        &ToolSet::default(),
    )
    .messages;
    let arguments: Vec<_> = sent
        .iter()
        .filter_map(|message| match message {
            Message::Assistant { parts } => {
                parts.calls().next().map(|call| call.arguments.as_str())
            }
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
    let Event::InputAccepted { turn, by, .. } = input(2) else {
        unreachable!("it is a message")
    };
    let short = Event::InputAccepted {
        turn,
        by,
        client_id: None,
        parts: Parts::text("hi".to_owned()),
        compacts: None,
        terms: crate::testing::full(),
    };
    assert_eq!(
        make_in(std::slice::from_ref(&short), Need::Refused(None)),
        None
    );
    assert_eq!(make_in(&[short], Need::Window(100)), None);
}

/// What a person or a model says: mostly short, and now and then very long.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 1..300usize, 2 => 300..3_000usize, 1 => 3_000..60_000usize]
}

/// The lengths of a step's text, and of the arguments and the result of each of its calls.
type Lengths = (usize, Vec<(usize, usize)>);

fn steps() -> impl Strategy<Value = Vec<Lengths>> {
    let calls = prop_oneof![
        9 => proptest::collection::vec((length(), length()), 1..4),
        1 => proptest::collection::vec((length(), length()), 60..64),
    ];
    proptest::collection::vec((length(), calls), 0..4)
}

/// A session that is asked turn by turn and step by step.
struct Session {
    events: Vec<Event>,
    /// The same, folded as they came.
    transcript: Transcript,
    tools: ToolSet,
    need: Need,
    /// What was asked last.
    before: Vec<Message>,
    /// How many requests did not begin as the one before.
    changes: usize,
}

impl Session {
    fn new(need: Need) -> Self {
        Self {
            events: Vec::new(),
            transcript: Transcript::default(),
            tools: ToolSet::standard(),
            need,
            before: Vec::new(),
            changes: 0,
        }
    }

    fn most(&self) -> usize {
        match self.need {
            Need::Window(window) => window * BYTES_PER_TOKEN * FULL_PERCENT / 100,
            Need::Refused(_) => usize::MAX,
        }
    }

    fn record(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.transcript.apply(&event, Timestamp::from_micros(0));
            self.events.push(event);
        }
    }

    /// Asks for a step as the engine does.
    fn ask(&mut self, number: u128, step: u32) -> ModelRequest {
        let place = (turn(number), step);
        let room = make(&self.transcript, place, &model("m"), &self.tools, self.need);
        self.record(room);
        let request = request(&self.transcript, turn(number), &model("m"), &self.tools);
        self.changes += usize::from(!request.messages.starts_with(&self.before));
        self.before.clone_from(&request.messages);
        request
    }

    /// A turn with these steps before its last word.
    fn turn(
        &mut self,
        number: u128,
        input: usize,
        steps: &[Lengths],
        check: impl Fn(&Self, &ModelRequest),
    ) {
        self.record([Event::InputAccepted {
            turn: turn(number),
            by: UserId::from_u128(1),
            client_id: None,
            parts: Parts::text(format!("«{number}{}»", "ü".repeat(input / 2))),
            compacts: None,
            terms: crate::testing::full(),
        }]);
        for (step, (text, calls)) in (1..).zip(steps) {
            let request = self.ask(number, step);
            check(self, &request);
            self.record(answered((number, step), *text, calls));
        }
        let last = u32::try_from(steps.len()).expect("few") + 1;
        let request = self.ask(number, last);
        check(self, &request);
        self.record(answered((number, last), 80, &[]));
    }
}

/// An answer of the model, with the ends of its calls.
fn answered((number, at): (u128, u32), text: usize, calls: &[(usize, usize)]) -> Vec<Event> {
    let results: Vec<_> = calls.iter().map(|(_, result)| *result).collect();
    let mut events = step(number, at, &results);
    if let Event::AnswerRecorded { parts, .. } = &mut events[0] {
        let asked = calls
            .iter()
            .zip(0..)
            .map(|((arguments, _), ordinal)| ToolCall {
                vendor_id: format!("v{number}.{at}.{ordinal}"),
                name: "Shell".to_owned(),
                arguments: serde_json::json!({ "command": "c".repeat(*arguments) }).to_string(),
                opaque: Default::default(),
            });
        *parts = said(&"a".repeat(text), asked);
        let thoughts = ("reasoning_content".to_owned(), "t".repeat(text * 2).into());
        parts.0.push(Part::Opaque {
            fields: [thoughts].into_iter().collect(),
        });
    }
    events
}

/// What holds of every request.
fn is_right(number: u128, request: &ModelRequest) {
    let starts = format!("«{number}");
    let has_input = request.messages.iter().any(|message| {
        matches!(message, Message::User { parts } if parts.words().starts_with(&starts) && parts.words().ends_with('»'))
    });
    assert!(
        has_input,
        "the last message is there: {:?}",
        request.messages
    );
    let mut messages = request.messages.iter().peekable();
    while let Some(message) = messages.next() {
        match message {
            Message::Assistant { parts } => {
                assert!(!parts.words().is_empty() || parts.calls().next().is_some());
                for call in parts.calls() {
                    let arguments =
                        serde_json::from_str::<serde_json::Map<String, Value>>(&call.arguments);
                    assert!(arguments.is_ok(), "{}", call.arguments);
                    let result = messages.next();
                    assert!(
                        matches!(result, Some(Message::ToolResult { vendor_id, .. }) if *vendor_id == call.vendor_id),
                        "{result:?}"
                    );
                }
            }
            Message::ToolResult { .. } => panic!("a result without a call"),
            Message::User { .. } => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_the_log_holds_every_request_fits_has_the_last_message_and_pairs_of_call_and_result(
        turns in proptest::collection::vec((length(), steps()), 1..8),
        window in prop_oneof![6_144..10_000usize, 10_000..100_000usize],
    ) {
        let mut session = Session::new(Need::Window(window));
        for (number, (input, steps)) in (1..).zip(&turns) {
            session.turn(number, *input, steps, |session, request| {
                let size = bytes_of(request);
                assert!(size <= session.most(), "{size} bytes in a window of {window} tokens");
                let again = crate::prompt::request(&transcript(&session.events), turn(number), &model("m"), &session.tools);
                assert_eq!(*request, again, "it is made from the log alone");
                is_right(number, request);
            });
        }
    }

    #[test]
    fn what_is_refused_is_cut_to_a_least_that_always_fits(
        turns in proptest::collection::vec((length(), steps()), 1..5),
    ) {
        let mut session = Session::new(Need::Window(usize::MAX / 8));
        for (number, (input, steps)) in (1..).zip(&turns) {
            session.turn(number, *input, steps, |_, _| {});
        }
        session.need = Need::Refused(None);
        let number = turns.len() as u128;
        let mut sizes = Vec::new();
        loop {
            let request = session.ask(number, 9);
            is_right(number, &request);
            let size = bytes_of(&request);
            if sizes.last() == Some(&size) {
                break;
            }
            sizes.push(size);
        }
        prop_assert!(sizes.is_sorted_by(|one, next| one > next), "{sizes:?}");
        prop_assert!(sizes.len() < 24, "{sizes:?}");
        let least = 6_144 * BYTES_PER_TOKEN * FULL_PERCENT / 100;
        prop_assert!(*sizes.last().expect("one") <= least, "{sizes:?}");
    }
}

#[test]
fn in_five_hundred_turns_every_request_fits_and_few_do_not_begin_as_the_one_before() {
    for (window, at_most) in [(6_144, 700), (8_192, 300), (12_000, 180), (32_000, 70)] {
        let mut session = Session::new(Need::Window(window));
        let (mut requests, mut dice) = (0, 7u64);
        let mut roll = |sides: u64| {
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from((dice >> 33) % sides).expect("small")
        };
        for number in 1..=500 {
            let steps: Vec<_> = (0..roll(3))
                .map(|_| (roll(200), vec![(roll(200), roll(3_000)); 1 + roll(2)]))
                .collect();
            requests += steps.len() + 1;
            session.turn(number, 20 + roll(600), &steps, |session, request| {
                assert!(
                    bytes_of(request) <= session.most(),
                    "turn {number}, window {window}: {} > {}",
                    bytes_of(request),
                    session.most()
                );
                is_right(number, request);
            });
        }
        assert!(
            session.changes <= at_most,
            "{} of {requests}",
            session.changes
        );
    }
}
