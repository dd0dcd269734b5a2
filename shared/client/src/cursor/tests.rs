use proptest::prelude::*;
use shared_types::{
    Timestamp, UserId,
    event::{CallOutcome, EventBody, Finish, Parts, TurnOutcome, Usage},
};

use super::*;

const SESSION: SessionId = SessionId::from_u128(1);

fn turn(number: u64) -> TurnId {
    TurnId::from_u128(number.into())
}

fn event(seq: u64, event: Event) -> ServerMessage {
    ServerMessage::Event {
        session: SESSION,
        event: Box::new(SessionEvent {
            seq,
            at: Timestamp::from_micros(0),
            body: EventBody::Known(event),
        }),
    }
}

fn answer(turn: TurnId, step: u32, text: &str) -> Event {
    Event::AnswerRecorded {
        turn,
        step,
        model: "practice".into(),
        origin: None,
        parts: Parts::text(text),
        finish: Finish::Complete,
        usage: Usage::default(),
        estimated: 0,
        model_ms: 0,
        limit: None,
    }
}

fn live(live: Live) -> ServerMessage {
    ServerMessage::Live {
        session: SESSION,
        live,
    }
}

fn text(step: u32, attempt: u32, offset: usize, text: &str) -> ServerMessage {
    part(0, step, attempt, offset, text)
}

fn part(part: u32, step: u32, attempt: u32, offset: usize, text: &str) -> ServerMessage {
    live(Live::Text {
        turn: turn(1),
        step,
        attempt,
        part,
        offset: offset as u64,
        text: text.into(),
    })
}

fn output(offset: usize, text: &str) -> ServerMessage {
    live(Live::Output {
        turn: turn(1),
        step: 1,
        ordinal: 0,
        operation: OperationId::from_u128(7),
        stream: "stdout".into(),
        offset: offset as u64,
        text: text.into(),
        bytes: text.len() as u64,
    })
}

fn gap(from: u64, to: u64) -> ServerMessage {
    live(Live::Gap {
        turn: turn(1),
        step: 1,
        ordinal: 0,
        operation: OperationId::from_u128(7),
        stream: "stdout".into(),
        from,
        to,
    })
}

fn caught_up(seq: u64) -> ServerMessage {
    ServerMessage::CaughtUp {
        session: SESSION,
        seq,
    }
}

fn following(after: u64) -> Cursor {
    let mut cursor = Cursor::new(SESSION, after);
    cursor.connected();
    cursor
        .accept(caught_up(after), &mut Vec::new())
        .expect("nothing is missing");
    cursor
}

/// What was heard, as a consumer would see it.
#[derive(Default)]
struct Heard {
    seqs: Vec<u64>,
    attempt: u32,
    text: String,
    output: String,
}

impl Heard {
    fn items(&mut self, items: Vec<Followed>) {
        for item in items {
            match item {
                Followed::Event(event) => self.seqs.push(event.seq),
                Followed::Live(Live::Text {
                    attempt,
                    offset,
                    text,
                    ..
                }) => {
                    if attempt > self.attempt {
                        self.attempt = attempt;
                        self.text.clear();
                    }
                    assert_eq!(
                        offset,
                        self.text.len() as u64,
                        "text goes on where it ended"
                    );
                    assert_eq!(attempt, self.attempt, "an attempt never goes back");
                    self.text.push_str(&text);
                }
                Followed::Live(Live::Output { offset, text, .. }) => {
                    assert_eq!(offset, self.output.len() as u64, "nothing is repeated");
                    self.output.push_str(&text);
                }
                _ => {}
            }
        }
    }
}

/// `text` cut into pieces that cover it, some of them more than once, in any order.
fn pieces(whole: &'static str) -> impl Strategy<Value = Vec<(usize, String)>> {
    let places: Vec<usize> = (0..=whole.len())
        .filter(|place| whole.is_char_boundary(*place))
        .collect();
    let any = (
        proptest::sample::select(places.clone()),
        proptest::sample::select(places.clone()),
    );
    (
        proptest::collection::vec(any, 0..10),
        proptest::sample::subsequence(places.clone(), 0..places.len()),
    )
        .prop_map(move |(repeated, mut cuts)| {
            cuts.insert(0, 0);
            cuts.push(whole.len());
            let cover = cuts.windows(2).map(|pair| (pair[0], pair[1]));
            cover
                .chain(repeated.into_iter().map(|(a, b)| (a.min(b), a.max(b))))
                .map(|(from, to)| (from, whole[from..to].to_owned()))
                .collect::<Vec<_>>()
        })
        .prop_shuffle()
}

const FIRST: &str = "Ich wünsche mir ";
const SECOND: &str = "Das Verzeichnis enthält drei Dateien: α, β, γ.";

proptest! {
    #[test]
    fn each_event_comes_once_and_in_order_over_any_number_of_connections(
        total in 1u64..40,
        connections in proptest::collection::vec((0u64..40, 0u64..10, 0u64..40), 0..10),
    ) {
        let mut cursor = Cursor::new(SESSION, 0);
        let mut heard = Heard::default();
        let created = |seq| event(seq, Event::SessionCreated { title: String::new(), model: String::new(), directory: String::new() });
        for (sent, back, skip) in connections.into_iter().chain([(total, 0, 0)]) {
            cursor.connected();
            let mut items = Vec::new();
            // An ill-mannered server repeats events and leaves some out.
            let first = cursor.after().saturating_sub(back) + 1;
            let mut held = true;
            for seq in first..=total.min(first + sent + back) {
                if seq == skip {
                    continue;
                }
                if cursor.accept(created(seq), &mut items).is_err() {
                    held = false;
                    break;
                }
            }
            if held && cursor.accept(caught_up(total), &mut items).is_ok() {
                prop_assert_eq!(cursor.after(), total);
            }
            heard.items(items);
        }
        prop_assert_eq!(heard.seqs, (1..=total).collect::<Vec<_>>());
    }

    #[test]
    fn text_comes_once_whatever_is_repeated_reordered_or_started_anew(
        abandoned in pieces(FIRST),
        whole in pieces(SECOND),
        stragglers in proptest::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut cursor = following(0);
        let mut heard = Heard::default();
        let abandoned: Vec<_> = abandoned.into_iter().map(|(at, piece)| text(1, 1, at, &piece)).collect();
        let mut messages: Vec<_> = whole.into_iter().map(|(at, piece)| text(1, 2, at, &piece)).collect();
        // Pieces of the first attempt come before, and stray in among those of the second.
        for straggler in stragglers {
            let place = straggler.index(messages.len() + 1);
            messages.insert(place, abandoned[straggler.index(abandoned.len())].clone());
        }
        for message in abandoned.into_iter().chain(messages) {
            let mut items = Vec::new();
            cursor.accept(message, &mut items).expect("live pieces break nothing");
            heard.items(items);
        }
        prop_assert_eq!(heard.text, SECOND);
    }

    #[test]
    fn a_lost_piece_holds_the_rest_back_until_the_answer_is_recorded(
        mut whole in pieces(SECOND),
        lost in any::<prop::sample::Index>(),
        reconnects in any::<bool>(),
    ) {
        whole.remove(lost.index(whole.len()));
        let mut cursor = following(0);
        let mut heard = Heard::default();
        let mut items = Vec::new();
        for (at, piece) in &whole {
            cursor.accept(text(1, 1, *at, piece), &mut items).expect("live pieces break nothing");
        }
        if reconnects {
            cursor.connected();
        }
        cursor.accept(event(1, answer(turn(1), 1, SECOND)), &mut items).expect("it is the next event");
        for (at, piece) in &whole {
            cursor.accept(text(1, 1, *at, piece), &mut items).expect("live pieces break nothing");
        }
        if reconnects {
            cursor.accept(caught_up(1), &mut items).expect("nothing is missing");
        }
        heard.items(items);
        prop_assert!(SECOND.starts_with(&heard.text), "{:?}", heard.text);
    }

    #[test]
    fn output_comes_once_over_any_number_of_connections(
        connections in proptest::collection::vec((pieces(SECOND), 0usize..20), 1..5),
    ) {
        let mut cursor = following(0);
        let mut heard = Heard::default();
        let mut items = Vec::new();
        for (mut connection, sent) in connections {
            cursor.connected();
            // A connection keeps order; only what is sent again after it is lost repeats.
            connection.sort();
            for (at, piece) in connection.into_iter().take(sent) {
                cursor.accept(output(at, &piece), &mut items).expect("live pieces break nothing");
            }
            cursor.accept(caught_up(0), &mut items).expect("nothing is missing");
        }
        heard.items(items);
        prop_assert!(SECOND.starts_with(&heard.output));
    }
}

#[test]
fn a_gap_is_told_once_as_far_as_it_is_new() {
    let mut cursor = following(0);
    let mut items = Vec::new();
    for message in [output(0, "ab"), gap(1, 5), gap(2, 5), output(3, "defg")] {
        let taken = cursor.accept(message, &mut items);
        taken.expect("live pieces break nothing");
    }
    let told: Vec<_> = items
        .into_iter()
        .map(|item| match item {
            Followed::Live(Live::Output { offset, text, .. }) => (offset, text),
            Followed::Live(Live::Gap { from, to, .. }) => (from, format!("gap to {to}")),
            other => panic!("{other:?} is neither output nor a gap"),
        })
        .collect();
    let expected = [(0, "ab"), (2, "gap to 5"), (5, "fg")];
    assert_eq!(told, expected.map(|(at, text)| (at, text.to_owned())));
}

#[test]
fn what_is_under_way_waits_until_the_log_has_caught_up() {
    let mut cursor = Cursor::new(SESSION, 0);
    cursor.connected();
    let mut items = Vec::new();
    let mut take = |message| {
        cursor
            .accept(message, &mut items)
            .expect("nothing is missing");
        std::mem::take(&mut items)
    };
    assert_eq!(take(text(2, 1, 0, "second")), []);
    assert_eq!(take(event(1, answer(turn(1), 1, "first"))).len(), 1);
    assert!(matches!(
        take(caught_up(1))[..],
        [
            Followed::CaughtUp { seq: 1 },
            Followed::Live(Live::Text { step: 2, .. })
        ]
    ));
}

#[test]
fn stragglers_of_an_ended_call_or_turn_are_dropped() {
    let mut cursor = following(0);
    let mut items = Vec::new();
    let ended = Event::CallEnded {
        turn: turn(1),
        step: 1,
        ordinal: 0,
        outcome: CallOutcome::Completed,
        parts: Parts::text(String::new()),
        unplaced: false,
        task: None,
        awaits: None,
        budget_ms: 1,
        duration_ms: 1,
        overran: false,
        file: None,
        whole: None,
        findings: Vec::new(),
        tools: Vec::new(),
    };
    let over = Event::TurnEnded {
        turn: turn(1),
        outcome: TurnOutcome::Completed,
        reason: None,
    };
    let notice = || {
        live(Live::Notice {
            turn: turn(1),
            text: "waiting".into(),
        })
    };
    for (message, is_new) in [
        (output(0, "one"), true),
        (notice(), true),
        (event(1, ended), true),
        (output(3, "two"), false),
        (text(2, 1, 0, "so"), true),
        (event(2, over), true),
        (text(2, 1, 2, " on"), false),
        (notice(), false),
    ] {
        items.clear();
        cursor
            .accept(message.clone(), &mut items)
            .expect("nothing is missing");
        assert_eq!(!items.is_empty(), is_new, "{message:?}");
    }
}

#[test]
fn a_gap_in_the_log_breaks_the_connection_and_moves_nothing() {
    let mut cursor = following(3);
    let mut items = Vec::new();
    let input = Event::CancelRequested {
        turn: turn(1),
        by: UserId::from_u128(1),
        why: None,
    };
    let broken = cursor.accept(event(5, input), &mut items);
    assert_eq!(broken, Err(BrokenOrder::Gap { have: 3, next: 5 }));
    assert_eq!(
        cursor.accept(caught_up(9), &mut items),
        Err(BrokenOrder::Gap { have: 3, next: 9 })
    );
    assert_eq!((cursor.after(), items), (3, Vec::new()));
}

#[test]
fn messages_of_another_session_are_not_ours() {
    let mut cursor = following(0);
    let mut items = Vec::new();
    let other = ServerMessage::CaughtUp {
        session: SessionId::from_u128(2),
        seq: 9,
    };
    cursor.accept(other, &mut items).expect("it is passed over");
    assert_eq!(items, []);
}

#[test]
fn each_part_has_offsets_of_its_own_and_another_attempt_begins_all_of_them_again() {
    let mut cursor = following(0);
    let mut items = Vec::new();
    for message in [
        part(0, 1, 1, 0, "one"),
        part(2, 1, 1, 0, "two"),
        part(0, 1, 1, 0, "one"),
        part(2, 1, 2, 0, "new"),
        part(0, 1, 1, 3, " late"),
        part(0, 1, 2, 0, "first"),
    ] {
        cursor
            .accept(message, &mut items)
            .expect("nothing is missing");
    }
    let texts = items.iter().filter_map(|item| match item {
        Followed::Live(Live::Text {
            part,
            attempt,
            text,
            ..
        }) => Some((*part, *attempt, text.as_str())),
        _ => None,
    });
    assert_eq!(
        texts.collect::<Vec<_>>(),
        [(0, 1, "one"), (2, 1, "two"), (2, 2, "new"), (0, 2, "first")]
    );
}

#[test]
fn thoughts_and_text_have_offsets_of_their_own_and_end_with_the_recorded_answer() {
    let reasoning = |offset, text: &str| {
        live(Live::Reasoning {
            turn: turn(1),
            step: 1,
            attempt: 1,
            part: 0,
            offset,
            text: text.into(),
        })
    };
    let mut cursor = following(0);
    let mut items = Vec::new();
    for message in [
        reasoning(0, "hm"),
        text(1, 1, 0, "hi"),
        reasoning(0, "hm"),
        reasoning(1, "m, so"),
        event(1, answer(turn(1), 1, "hi")),
        reasoning(5, "late"),
    ] {
        cursor
            .accept(message, &mut items)
            .expect("nothing is missing");
    }
    let thoughts: String = items
        .iter()
        .filter_map(|item| match item {
            Followed::Live(Live::Reasoning { text, .. }) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(thoughts, "hm, so");
}

#[test]
fn what_an_attempt_said_is_taken_back_once_and_no_more_of_it_comes() {
    let void = || {
        live(Live::TakenBack {
            turn: turn(1),
            step: 1,
            attempt: 1,
        })
    };
    let mut cursor = following(0);
    let mut items = Vec::new();
    for message in [
        text(1, 1, 0, "hal"),
        void(),
        void(),
        text(1, 1, 3, "f"),
        text(1, 2, 0, "whole"),
        event(1, answer(turn(1), 1, "whole")),
        void(),
    ] {
        cursor
            .accept(message, &mut items)
            .expect("nothing is missing");
    }
    let shown: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
            Followed::Live(Live::Text { text, .. }) => Some(text.as_str()),
            Followed::Live(Live::TakenBack { .. }) => Some("(void)"),
            _ => None,
        })
        .collect();
    assert_eq!(shown, ["hal", "(void)", "whole"]);
}

#[test]
fn where_nothing_was_heard_nothing_is_taken_back() {
    let mut cursor = following(0);
    let mut items = Vec::new();
    let void = Live::TakenBack {
        turn: turn(1),
        step: 1,
        attempt: 1,
    };
    let taken = cursor.accept(live(void), &mut items);
    taken.expect("nothing is missing");
    assert!(!items.iter().any(|item| matches!(item, Followed::Live(_))));
}
