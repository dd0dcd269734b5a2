use std::borrow::Cow;

use serde_json::Value;

use super::*;

fn ended() -> SessionEvent {
    let event = Event::TurnEnded {
        turn: TurnId::from_u128(5),
        outcome: TurnOutcome::Completed,
        reason: None,
    };
    SessionEvent {
        seq: 3,
        at: Timestamp::from_micros(0),
        body: EventBody::Known(event),
    }
}

/// The stored form of an event's body.
fn without_place(mut json: Value) -> Value {
    let fields = json.as_object_mut().expect("an event is an object");
    fields.retain(|name, _| !matches!(name.as_str(), "seq" | "at"));
    json
}

#[test]
fn an_event_is_one_flat_object_with_kind_and_version() {
    let json = serde_json::to_value(ended()).expect("an event is JSON");
    assert_eq!(
        json,
        serde_json::json!({
            "seq": 3, "at": "1970-01-01T00:00:00.000000Z", "type": "turn.ended", "v": 1,
            "turn": "trn_00000000000000000000000005", "outcome": "completed",
        })
    );
    let body = without_place(json.clone()).to_string().parse();
    assert_eq!(body.ok(), Some(ended().body));
    assert_eq!(
        serde_json::from_value::<SessionEvent>(json).expect("it reads back"),
        ended()
    );
}

/// An event of version 1, and the present form of its body.
fn brought_up(kind: &str, fields: Value) -> Value {
    let mut json = serde_json::json!({
        "type": kind, "v": 1, "turn": "trn_00000000000000000000000005",
    });
    let all = json.as_object_mut().expect("an object");
    all.extend(fields.as_object().expect("an object").clone());
    let body: EventBody = json.to_string().parse().expect("it reads");
    let again: EventBody = serde_json::from_value(json).expect("it reads");
    assert_eq!(body, again, "both ways to read it agree");
    assert!(matches!(body, EventBody::Known(_)), "{body:?}");
    serde_json::to_value(body).expect("JSON")
}

#[test]
fn messages_answers_and_results_of_an_earlier_release_are_read_as_parts_in_order() {
    let text = |text: &str| serde_json::json!({ "type": "text", "text": text });
    let user = "usr_00000000000000000000000001";
    let input = brought_up(
        "input.accepted",
        serde_json::json!({ "by": user, "text": "hello" }),
    );
    assert_eq!(
        (&input["v"], &input["parts"]),
        (&3.into(), &vec![text("hello")].into())
    );
    let answer = brought_up(
        "answer.recorded",
        serde_json::json!({
            "step": 1, "model": "m", "text": "hi", "reasoning": "hm",
            "calls": [{ "vendor_id": "c", "name": "List", "arguments": "{}", "opaque": { "x": 1 } }],
            "opaque": { "before_text": "<think>", "fields": { "y": 2 } },
            "finish": "complete", "usage": { "input": 1, "cached": 0, "output": 1 },
        }),
    );
    let parts = serde_json::json!([
        { "type": "reasoning", "text": "hm" },
        { "type": "opaque", "fields": { "before_text": "<think>" } },
        text("hi"),
        { "type": "tool_call", "vendor_id": "c", "name": "List", "arguments": "{}", "opaque": { "x": 1 } },
        { "type": "opaque", "fields": { "fields": { "y": 2 } } },
    ]);
    assert_eq!((&answer["parts"], answer.get("text")), (&parts, None));
    let ended = brought_up(
        "call.ended",
        serde_json::json!({
            "step": 1, "ordinal": 0, "outcome": "completed", "text": "",
            "budget_ms": 1, "duration_ms": 1, "overran": false,
        }),
    );
    assert_eq!(ended["parts"], Value::Array(Vec::new()));
}

#[test]
fn the_words_of_a_message_are_its_texts_with_its_images_described() {
    let image = Part::Image {
        digest: crate::Digest::of(b"x"),
        media_type: "image/png".to_owned(),
        bytes: 1,
    };
    let said = |text: &str| Part::Text {
        text: text.to_owned(),
    };
    let parts = Parts(vec![said("see"), image, said("this")]);
    assert_eq!(
        parts.words(),
        "see\n\n[an image: image/png, 1 bytes]\n\nthis"
    );
    assert!(matches!(Parts::text("one").words(), Cow::Borrowed("one")));
    assert_eq!(Parts::text(""), Parts::default());
}

#[test]
fn a_claim_of_an_earlier_release_is_read_and_one_of_this_release_says_its_version() {
    let json = serde_json::json!({
        "seq": 3, "at": "1970-01-01T00:00:00.000000Z", "type": "turn.claimed", "v": 1,
        "turn": "trn_00000000000000000000000005", "epoch": 1,
        "replica": "rep_00000000000000000000000001", "choice": { "by": "none" },
    });
    let event: SessionEvent = serde_json::from_value(json).expect("it reads");
    let Some(Event::TurnClaimed { settings, .. }) = event.known() else {
        panic!("it is known: {event:?}");
    };
    assert_eq!(*settings, None);
    assert_eq!(event.known().map(Event::version), Some(3));
}

#[test]
fn what_a_reader_cannot_read_is_kept_whole() {
    let changes = [
        ("type", Value::from("turn.teleported"), None),
        ("v", Value::from(2), Some("turn.ended")),
        ("v", Value::Null, Some("turn.ended")),
        ("outcome", Value::from("splendid"), Some("turn.ended")),
    ];
    for (field, value, unreadable) in changes {
        let mut json = serde_json::to_value(ended()).expect("an event is JSON");
        json[field] = value;
        let event: SessionEvent = serde_json::from_value(json.clone()).expect("it is kept");
        assert_eq!((event.known(), event.unreadable()), (None, unreadable));
        assert_eq!(
            serde_json::to_value(&event).expect("it is JSON again"),
            json
        );
        let stored = without_place(json);
        assert_eq!(
            stored.to_string().parse::<EventBody>().ok(),
            Some(event.body)
        );
    }
}

#[test]
fn every_kind_has_a_version_of_its_own() {
    let versions = Event::KINDS.map(|(kind, _)| Event::version_of(kind));
    assert!(versions.iter().all(Option::is_some));
    assert_eq!(Event::version_of("turn.teleported"), None);
    let EventBody::Known(event) = ended().body else {
        panic!("it is known");
    };
    assert_eq!(event.version(), 1);
}
