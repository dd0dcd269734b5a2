//! On bytes as the vendor sends them. The sockets below them are tested with the client.

use serde_json::json;
use shared_types::event::{Part, ToolCall, Usage};

use super::*;
use crate::{
    Voice,
    formats::{AnswerBuilder as _, MAX_ANSWER_BYTES, MAX_CALLS},
    sse,
};

/// An event as the vendor sends it.
fn event(data: Value) -> String {
    let name = data["type"].as_str().expect("each has a type");
    format!("event: {name}\ndata: {data}\n\n")
}

fn start(index: u32, block: Value) -> String {
    event(json!({ "type": "content_block_start", "index": index, "content_block": block }))
}

fn delta(index: u32, delta: Value) -> String {
    event(json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}

fn stop(index: u32) -> String {
    event(json!({ "type": "content_block_stop", "index": index }))
}

fn text(index: u32, text: &str) -> String {
    delta(index, json!({ "type": "text_delta", "text": text }))
}

fn json_of(index: u32, json: &str) -> String {
    delta(
        index,
        json!({ "type": "input_json_delta", "partial_json": json }),
    )
}

fn begin() -> String {
    event(json!({ "type": "message_start", "message": {
        "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": { "input_tokens": 12, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 2000, "output_tokens": 1 },
    } }))
}

fn end(reason: &str) -> String {
    event(
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": { "output_tokens": 89, "output_tokens_details": { "thinking_tokens": 40 } } }),
    )
}

fn over() -> String {
    event(json!({ "type": "message_stop" }))
}

fn block_of_text(index: u32, said: &str) -> String {
    let empty = json!({ "type": "text", "text": "" });
    start(index, empty) + &text(index, said) + &stop(index)
}

fn call(index: u32, id: &str, name: &str, arguments: &str) -> String {
    let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
    start(index, block) + &json_of(index, "") + &json_of(index, arguments) + &stop(index)
}

fn ended(reason: &str) -> String {
    end(reason) + &over()
}

/// The answer that has grown from these bytes, and what was said of it on the way.
fn grow(bytes: &str) -> Result<(MessagesBuilder, Vec<Piece>), ModelError> {
    let tools = ["Shell", "Read"].map(str::to_owned);
    let mut growing = MessagesBuilder::new(tools);
    let mut decoder = sse::Decoder::default();
    let mut events = decoder.push(bytes.as_bytes()).expect("small enough");
    events.extend(decoder.finish());
    let mut said = Vec::new();
    for event in events {
        let data = serde_json::from_str(&event.data).expect("it is JSON");
        said.extend(growing.absorb(data)?);
    }
    Ok((growing, said))
}

const CLOSED: AnswerEnd = AnswerEnd {
    announced: false,
    torn: false,
};

fn answer(bytes: &str) -> Result<Answer, ModelError> {
    let (growing, _) = grow(bytes)?;
    Ok(growing.conclude(CLOSED)?.0)
}

fn whole(bytes: &str) -> Answer {
    answer(bytes).unwrap_or_else(|error| panic!("{error}\n{bytes}"))
}

fn asked(id: &str, name: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        vendor_id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        opaque: Map::new(),
    })
}

fn words(text: &str) -> Part {
    Part::Text {
        text: text.to_owned(),
    }
}

fn thought(text: &str, signature: Option<&str>) -> Part {
    Part::Reasoning {
        text: text.to_owned(),
        signature: signature.map(str::to_owned),
    }
}

/// Everything that the vendor sends in one answer.
fn everything() -> String {
    let thinking = json!({ "type": "thinking", "thinking": "", "signature": "" });
    let say = |thinking: &str| delta(0, json!({ "type": "thinking_delta", "thinking": thinking }));
    let redacted = json!({ "type": "redacted_thinking", "data": "ZGF0YQ==" });
    let search =
        json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {} });
    let found = json!({ "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
        "content": [{ "type": "web_search_result", "url": "https://a.test", "encrypted_content": "E" }] });
    [
        begin(),
        event(json!({ "type": "ping" })),
        start(0, thinking),
        say("I should "),
        say("look."),
        delta(
            0,
            json!({ "type": "signature_delta", "signature": "c2ln+/==" }),
        ),
        stop(0),
        start(1, redacted),
        stop(1),
        start(2, search),
        json_of(2, "{\"query\":"),
        json_of(2, "\"x\"}"),
        stop(2),
        start(3, found),
        stop(3),
        start(4, json!({ "type": "text", "text": "", "citations": [] })),
        text(4, "Grü"),
        event(json!({ "type": "an_event_of_next_year", "x": 1 })),
        text(4, "ße, 🦀"),
        delta(
            4,
            json!({ "type": "citations_delta", "citation": { "url": "https://a.test" } }),
        ),
        stop(4),
        call(5, "toolu_1", "Shell", "{\"command\": \"ls\"}"),
        call(6, "toolu_2", "functions.read", "{\"path\": \"x\"}"),
        ended("tool_use"),
    ]
    .concat()
}

#[test]
fn every_kind_of_block_becomes_a_part_at_its_place() {
    let answer = whole(&everything());
    let opaque = |fields: Value| Part::Opaque {
        fields: fields.as_object().cloned().expect("an object"),
    };
    let expected = vec![
        thought("I should look.", Some("c2ln+/==")),
        opaque(json!({ "type": "redacted_thinking", "data": "ZGF0YQ==" })),
        opaque(
            json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": { "query": "x" } }),
        ),
        opaque(
            json!({ "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
            "content": [{ "type": "web_search_result", "url": "https://a.test", "encrypted_content": "E" }] }),
        ),
        words("Grüße, 🦀"),
        asked("toolu_1", "Shell", "{\"command\": \"ls\"}"),
        asked("toolu_2", "Read", "{\"path\": \"x\"}"),
    ];
    assert_eq!(answer.parts, Parts(expected));
    assert_eq!(answer.finish, Finish::Complete);
    assert_eq!(answer.model, "claude-opus-5-5");
}

#[test]
fn the_latest_count_of_each_kind_of_token_holds() {
    let usage = Usage {
        input: 2112,
        cached: 2000,
        cache_written: 100,
        output: 89,
        thoughts: 40,
    };
    assert_eq!(whole(&everything()).usage, usage);
    let counted_again = event(
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
        "usage": { "input_tokens": 30, "cache_read_input_tokens": null, "cache_creation_input_tokens": 0, "output_tokens": "7" } }),
    );
    let usage = Usage {
        input: 2130,
        output: 7,
        thoughts: 0,
        ..usage
    };
    assert_eq!(whole(&(begin() + &counted_again)).usage, usage);
    let uncounted = event(json!({ "type": "message_start", "message": { "usage": "free" } }));
    assert_eq!(
        whole(&(uncounted + &block_of_text(0, "x") + &over())).usage,
        Usage::default()
    );
}

#[test]
fn pieces_are_said_under_the_place_that_their_part_has_in_the_answer() {
    let (growing, said) = grow(&everything()).expect("it is well formed");
    let said: Vec<_> = said
        .iter()
        .map(|piece| (piece.part, piece.voice, piece.text.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            (0, Voice::Reasoning, "I should "),
            (0, Voice::Reasoning, "look."),
            (1, Voice::Text, "Grü"),
            (1, Voice::Text, "ße, 🦀"),
        ]
    );
    let (_, rest) = growing.conclude(CLOSED).expect("it is whole");
    assert_eq!(rest, []);
}

#[test]
fn thoughts_that_are_not_shown_are_a_part_and_an_empty_block_is_none() {
    let (growing, said) = grow(
        &[
            begin(),
            start(0, json!({ "type": "text", "text": "" })),
            stop(0),
            start(1, json!({ "type": "thinking", "thinking": "" })),
            delta(1, json!({ "type": "signature_delta", "signature": "S" })),
            stop(1),
            block_of_text(2, "hi"),
            ended("end_turn"),
        ]
        .concat(),
    )
    .expect("it is well formed");
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].part, 1, "the thoughts are part 0");
    let (answer, _) = growing.conclude(CLOSED).expect("it is whole");
    assert_eq!(
        answer.parts,
        Parts(vec![thought("", Some("S")), words("hi")])
    );
}

#[test]
fn blocks_that_grow_side_by_side_stand_in_the_order_of_their_first_content() {
    let bytes = [
        begin(),
        start(0, json!({ "type": "text", "text": "" })),
        start(1, json!({ "type": "thinking", "thinking": "" })),
        delta(1, json!({ "type": "thinking_delta", "thinking": "hm" })),
        text(0, "hi"),
        delta(1, json!({ "type": "thinking_delta", "thinking": ", so" })),
        ended("end_turn"),
    ]
    .concat();
    let (growing, said) = grow(&bytes).expect("it is well formed");
    let places: Vec<_> = said.iter().map(|piece| (piece.part, piece.voice)).collect();
    let (thoughts, text) = ((0, Voice::Reasoning), (1, Voice::Text));
    assert_eq!(places, [thoughts, text, thoughts]);
    let (answer, _) = growing.conclude(CLOSED).expect("it is whole");
    assert_eq!(
        answer.parts,
        Parts(vec![thought("hm, so", None), words("hi")])
    );
}

#[test]
fn the_reason_of_the_end_says_how_the_answer_ended() {
    let with = |reason: &str| answer(&(begin() + &block_of_text(0, "x") + &ended(reason)));
    for (reason, finish) in [
        ("end_turn", Finish::Complete),
        ("tool_use", Finish::Complete),
        ("stop_sequence", Finish::Complete),
        ("max_tokens", Finish::Length),
        ("pause_turn", Finish::Complete),
        ("a_reason_of_next_year", Finish::Complete),
    ] {
        assert_eq!(
            with(reason).expect("it is whole").finish,
            finish,
            "{reason}"
        );
    }
    let exceeded = with("model_context_window_exceeded");
    assert!(
        matches!(exceeded, Err(ModelError::Overflow(_))),
        "{exceeded:?}"
    );
    let (paused, _) = grow(&(begin() + &ended("pause_turn"))).expect("it is well formed");
    assert!(paused.is_paused());
    let (ended, _) = grow(&(begin() + &ended("end_turn"))).expect("it is well formed");
    assert!(!ended.is_paused());
}

#[test]
fn an_answer_that_was_withheld_is_refused_in_the_vendors_words() {
    let withheld = |details: Value| {
        let end = event(
            json!({ "type": "message_delta", "delta": { "stop_reason": "refusal", "stop_details": details } }),
        );
        answer(&(begin() + &block_of_text(0, "half") + &end)).expect_err("it was withheld")
    };
    let explained = withheld(
        json!({ "type": "refusal", "category": "cyber", "explanation": "It is about\u{1b}[31m malware." }),
    );
    assert_eq!(
        explained,
        ModelError::Refused(
            "the model's provider withheld the answer (It is about malware): say it in other words"
                .to_owned()
        )
    );
    let named = withheld(json!({ "category": "cyber", "explanation": null }));
    assert!(named.message().contains("(cyber)"), "{named}");
    assert!(withheld(Value::Null).message().contains("(content filter)"));
}

#[test]
fn nothing_follows_the_end_of_the_stream_and_its_usage_may_follow_the_reason() {
    let stage = |bytes: &str| grow(bytes).expect("it is well formed").0.stage();
    let said = begin() + &block_of_text(0, "x");
    assert_eq!(stage(&said), AnswerStage::Open);
    assert_eq!(
        stage(&(said.clone() + &end("end_turn"))),
        AnswerStage::Ended
    );
    assert_eq!(stage(&(said.clone() + &end("novel"))), AnswerStage::Open);
    assert_eq!(
        stage(&(said.clone() + &ended("end_turn"))),
        AnswerStage::Over
    );
    let late = said + &ended("end_turn") + &block_of_text(1, "y");
    assert_eq!(whole(&late).text(), "x");
}

#[test]
fn an_empty_answer_is_one_only_where_its_end_has_a_reason() {
    assert_eq!(
        whole(&(begin() + &ended("end_turn"))).parts,
        Parts::default()
    );
    for bytes in [
        over(),
        begin() + &over(),
        begin() + &ended("novel"),
        begin(),
    ] {
        assert!(
            matches!(answer(&bytes), Err(ModelError::Broken(_))),
            "{bytes}"
        );
    }
}

#[test]
fn without_a_reason_the_mark_of_the_end_suffices_for_what_is_whole() {
    let said = begin() + &block_of_text(0, "x");
    assert_eq!(whole(&(said.clone() + &over())).text(), "x");
    let cut = call(1, "a", "Shell", "{\"comm");
    for bytes in [
        said.clone() + &cut + &over(),
        said.clone() + &cut + &ended("novel"),
    ] {
        assert!(
            matches!(answer(&bytes), Err(ModelError::Broken(_))),
            "{bytes}"
        );
    }
    let named = answer(&(said + &end("\u{1b}[31mnovel"))).expect_err("it broke off");
    assert!(named.message().contains("(novel)"), "{named}");
}

#[test]
fn what_is_cut_at_the_length_limit_is_kept_except_what_the_vendor_would_refuse() {
    let search = json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} });
    let call = json!({ "type": "tool_use", "id": "a", "name": "Shell", "input": {} });
    let answer = whole(
        &[
            begin(),
            start(0, json!({ "type": "thinking", "thinking": "" })),
            delta(0, json!({ "type": "thinking_delta", "thinking": "hm" })),
            start(1, search),
            json_of(1, "{\"que"),
            start(2, call),
            json_of(2, "{\"comm"),
            ended("max_tokens"),
        ]
        .concat(),
    );
    assert_eq!(answer.finish, Finish::Length);
    let expected = vec![thought("hm", None), asked("a", "Shell", "{\"comm")];
    assert_eq!(answer.parts, Parts(expected));
}

#[test]
fn calls_are_told_apart_by_their_blocks_whatever_their_ids_and_names() {
    let answer = whole(
        &[
            begin(),
            call(0, "same", "Shell", "{\"a\":1}"),
            call(1, "same", "Shell", "{\"a\":1}"),
            call(2, "", "no_such_tool", ""),
            // Some servers give each block the index 0, and the whole input at once.
            start(0, json!({ "type": "tool_use", "id": "d", "name": "Read", "input": { "path": "x" }, "caller": { "type": "direct" } })),
            stop(0),
            call(0, "e", "Shell", "{\"b\":2}"),
            start(0, json!({ "type": "tool_use", "id": "f", "name": "Shell" })),
            ended("tool_use"),
        ]
        .concat(),
    );
    let mut last = ToolCall {
        vendor_id: "d".to_owned(),
        name: "Read".to_owned(),
        arguments: "{\"path\":\"x\"}".to_owned(),
        opaque: Map::new(),
    };
    last.opaque
        .insert("caller".to_owned(), json!({ "type": "direct" }));
    let same = || asked("same", "Shell", "{\"a\":1}");
    let expected = vec![
        same(),
        same(),
        asked("call00002", "no_such_tool", "{}"),
        Part::ToolCall(last),
        asked("e", "Shell", "{\"b\":2}"),
        asked("f", "Shell", "{}"),
    ];
    assert_eq!(answer.parts, Parts(expected));
}

#[test]
fn a_piece_that_can_mean_only_one_block_is_taken() {
    let thinking = json!({ "type": "thinking_delta", "thinking": "hm" });
    let mut without_index: Value =
        json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": "!" } });
    without_index["index"] = Value::Null;
    let bytes = [
        delta(0, thinking),
        text(1, "hi"),
        event(without_index),
        stop(7),
        ended("end_turn"),
    ]
    .concat();
    assert_eq!(
        whole(&bytes).parts,
        Parts(vec![thought("hm", None), words("hi!")])
    );
}

#[test]
fn a_piece_that_fits_no_block_is_an_error() {
    let call = json!({ "type": "tool_use", "id": "a", "name": "Shell", "input": {} });
    for bytes in [
        json_of(0, "{}"),
        block_of_text(0, "hi") + &text(0, "more"),
        block_of_text(0, "hi") + &json_of(0, "{}"),
        start(0, json!({ "type": "text", "text": "" })) + &json_of(0, "{}"),
        start(0, call.clone()) + &text(0, "hi"),
        start(0, json!({})),
        start(0, json!("text")),
        delta(0, json!([])),
        event(json!({ "type": "message", "content": "hi" })),
        "data: {}\n\n".to_owned(),
        "data: []\n\n".to_owned(),
    ] {
        let error = answer(&(begin() + &bytes + &ended("end_turn"))).expect_err("it is malformed");
        assert!(matches!(error, ModelError::Broken(_)), "{bytes}: {error}");
        assert!(error.message().contains("anthropic-messages"), "{error}");
    }
    let nameless =
        begin() + &start(0, json!({ "type": "tool_use", "id": "a" })) + &ended("tool_use");
    let error = answer(&nameless).expect_err("it names no tool");
    assert!(error.message().contains("without naming it"), "{error}");
}

#[test]
fn an_unknown_block_grows_by_its_deltas() {
    let bytes = [
        begin(),
        start(0, json!({ "type": "compaction", "content": "so ", "n": 1 })),
        delta(
            0,
            json!({ "type": "compaction_delta", "content": "far", "n": 2 }),
        ),
        stop(0),
        block_of_text(1, "x"),
        ended("end_turn"),
    ]
    .concat();
    let fields = json!({ "type": "compaction", "content": "so far", "n": 2 });
    let fields = fields.as_object().cloned().expect("an object");
    assert_eq!(whole(&bytes).parts.0[0], Part::Opaque { fields });
}

#[test]
fn what_outgrows_its_bounds_is_refused() {
    let megabyte = "x".repeat(1024 * 1024);
    let shell = json!({ "type": "tool_use", "id": "a", "name": "Shell", "input": {} });
    let search = json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} });
    let thinking = json!({ "type": "thinking", "thinking": "" });
    for bytes in [
        start(0, shell) + &json_of(0, &megabyte).repeat(10),
        start(0, search) + &json_of(0, &megabyte).repeat(10),
        text(0, &megabyte).repeat(10),
        start(0, thinking)
            + &delta(0, json!({ "type": "thinking_delta", "thinking": megabyte })).repeat(10),
        start(0, json!({ "type": "novel", "data": megabyte })).repeat(10),
        start(0, json!({ "type": "novel" }))
            + &delta(0, json!({ "type": "novel_delta", "data": megabyte })).repeat(10),
        start(0, json!({ "type": "text" })).repeat(MAX_ANSWER_BYTES / 100),
    ] {
        let error = answer(&(begin() + &bytes + &ended("end_turn"))).expect_err("it is too large");
        assert!(
            matches!(error, ModelError::Refused(_)),
            "{}: {error}",
            &bytes[..80]
        );
    }
    let calls: String = (0..=MAX_CALLS)
        .map(|index| call(index as u32, "", "Shell", "{}"))
        .collect();
    let error = answer(&(begin() + &calls + &ended("tool_use"))).expect_err("there are too many");
    assert!(matches!(error, ModelError::Broken(_)), "{error}");
}

#[test]
fn half_a_character_at_the_end_is_marked() {
    let (growing, _) =
        grow(&(begin() + &block_of_text(0, "hi") + &ended("end_turn"))).expect("it is well formed");
    let torn = AnswerEnd {
        announced: true,
        torn: true,
    };
    let (answer, rest) = growing.conclude(torn).expect("it is whole");
    assert_eq!(answer.text(), "hi\u{fffd}");
    let rest: Vec<_> = rest
        .iter()
        .map(|piece| (piece.part, piece.text.as_str()))
        .collect();
    assert_eq!(rest, [(0, "\u{fffd}")]);
}

#[test]
fn a_whole_message_is_an_answer_too() {
    let message = json!({
        "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-haiku-5-5",
        "content": [
            { "type": "thinking", "thinking": "hm", "signature": "S" },
            { "type": "text", "text": "I look." },
            { "type": "tool_use", "id": "a", "name": "Shell", "input": { "command": "ls" } },
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": { "input_tokens": 1, "output_tokens": 2 },
    });
    let (growing, said) = grow(&event(message)).expect("it is well formed");
    assert_eq!(growing.stage(), AnswerStage::Over);
    assert_eq!(
        said.iter().map(|piece| piece.part).collect::<Vec<_>>(),
        [0, 1]
    );
    let (answer, _) = growing.conclude(CLOSED).expect("it is whole");
    let expected = vec![
        thought("hm", Some("S")),
        words("I look."),
        asked("a", "Shell", "{\"command\":\"ls\"}"),
    ];
    assert_eq!(answer.parts, Parts(expected));
    assert_eq!((answer.usage.input, answer.usage.output), (1, 2));
    let cut = event(json!({ "type": "message", "content": [], "stop_reason": null }));
    assert!(matches!(self::answer(&cut), Err(ModelError::Broken(_))));
}
