//! Parts of the conversation that the model gets back with recall.

use shared_sandbox::{
    ExitCause, ExitStatus, OperationEvent, OutputStream, ReadContent, scripted::Script,
};
use shared_types::{
    Event, TurnId, UserId,
    event::{Parts, TurnOutcome},
};

use crate::{
    Carried, Claim,
    testing::{Reply, World, content, ends, exit, output},
};

const SHELL: (&str, &str) = ("Shell", r#"{"command":"make"}"#);

/// Lines that are told apart by their number.
fn numbered_lines(count: usize) -> String {
    (0..count).map(|n| format!("line {n:06}\n")).collect()
}

fn writes(text: &str) -> Script {
    let ended = exit(text.len(), ExitStatus::Code(0), ExitCause::Exited);
    let pieces = text.as_bytes().chunks(50_000).scan(0, |at, piece| {
        let offset = *at;
        *at += piece.len() as u64;
        Some(OperationEvent::Output {
            stream: OutputStream::Stdout,
            offset,
            data: piece.to_vec().into(),
        })
    });
    Script::Events(pieces.chain([OperationEvent::Ended(ended)]).collect())
}

/// The turn in which the model recalls.
const LATER: TurnId = TurnId::from_u128(8);

/// The texts of the calls' results: of the first one in a turn of its own, of the others in a later one.
async fn told(
    first: (&str, &str),
    script: Script,
    others: impl IntoIterator<Item = &str>,
) -> Vec<String> {
    let recalls = others
        .into_iter()
        .map(|ask| Reply::calls("", [("recall", ask)]));
    let calls = [Reply::calls("", [first]), Reply::says("done")].into_iter();
    let world = World::new(calls.chain(recalls).chain([Reply::says("done")]), [script]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    world.was_placed(world.started(1).await[0]);
    world.log.append(Event::InputAccepted {
        turn: LATER,
        by: UserId::from_u128(1),
        client_id: None,
        parts: Parts::text("what was it?"),
        compacts: None,
        terms: crate::testing::full(),
    });
    let claim = Claim {
        turn: LATER,
        ..world.claim()
    };
    let (engine, ports) = (world.engine(), world.ports());
    let carried = engine.run_turn(&ports, claim, world.cancel.clone()).await;
    assert_eq!(carried, Ok(Carried::Ended(TurnOutcome::Completed)));
    let ended = world
        .ended_calls()
        .into_iter()
        .filter_map(|event| match event {
            Event::CallEnded { parts, .. } => Some(parts.words().into_owned()),
            _ => None,
        });
    ended.collect()
}

#[tokio::test(start_paused = true)]
async fn a_long_output_is_shown_as_an_excerpt_and_its_middle_comes_back_byte_for_byte() {
    let text = numbered_lines(160_000);
    let told = told(
        SHELL,
        writes(&text),
        [
            r#"{"of":"r1","offset":960000,"limit":120}"#,
            r#"{"of":"r1","pattern":"line 0(77|88)777$"}"#,
            r#"{"of":"r1","offset":1919988}"#,
            r#"{"of":"r2"}"#,
        ],
    )
    .await;
    assert!(told[0].len() <= 7 * 1024, "{}", told[0].len());
    assert!(told[0].starts_with("line 000000\n"), "{}", told[0]);
    assert!(
        told[0].contains("line 159999\n[exit code 0]\n"),
        "{}",
        told[0]
    );
    assert!(told[0].ends_with(
        "[an excerpt of r1; recall {\"of\":\"r1\"} shows more, from an offset or by a pattern]"
    ));
    let middle = format!(
        "[r1, Shell, from offset 960000]\n{}[read on with offset 960120]",
        &text[960_000..960_120]
    );
    assert_eq!(told[1], middle);
    let lines = "[r1, Shell, from offset 0]\n933324: line 077777\n1065324: line 088777\n";
    assert_eq!(told[2], lines);
    let end = "[r1, Shell, from offset 1919988]\nline 159999\n[this is its end]";
    assert_eq!(told[3], end);
    // What was recalled is a result like others, and is not cut again.
    assert!(told[4].contains(&middle), "{}", told[4]);
}

#[tokio::test(start_paused = true)]
async fn a_short_result_and_a_message_come_from_the_log_and_a_search_finds_all() {
    let told = told(
        ("Read", r#"{"path":"a.txt"}"#),
        ends(content("needle one\nhay\n")),
        [
            r#"{"of":"m1"}"#,
            r#"{"pattern":"needle|ello"}"#,
            r#"{"of":"r1","offset":100}"#,
            r#"{"of":"r9"}"#,
            r#"{"of":"m3"}"#,
            r#"{"of":"x2"}"#,
            r#"{}"#,
            r#"{"pattern":"("}"#,
        ],
    )
    .await;
    assert!(
        told[1].starts_with("[m1, message, from offset 0]\n"),
        "{}",
        told[1]
    );
    assert!(told[2].contains("r1: 1\tneedle one\n"), "{}", told[2]);
    assert!(told[3].ends_with("[it has only 19 bytes]"), "{}", told[3]);
    assert_eq!(
        told[4],
        "not run: there is no such result; the last one is r5"
    );
    assert_eq!(
        told[5],
        "not run: there is no such message; the last one is m2"
    );
    assert!(
        told[6].contains("is no name of a result or a message"),
        "{}",
        told[6]
    );
    assert!(
        told[7].contains("say which result or message is wanted"),
        "{}",
        told[7]
    );
    assert!(
        told[8].contains("the pattern cannot be used"),
        "{}",
        told[8]
    );
}

#[tokio::test(start_paused = true)]
async fn a_file_is_read_on_where_it_is_and_what_a_stream_lost_is_said() {
    let long = ends(shared_sandbox::Outcome::Read(ReadContent {
        content: numbered_lines(4_000).into_bytes(),
        first_line: 1,
        lines: 4_000,
        file_bytes: 48_000,
        digest: None,
        more: false,
    }));
    let shown = told(("Read", r#"{"path":"a.txt"}"#), long, []).await;
    assert!(
        shown[0].ends_with("]") && shown[0].contains("read on with first_line"),
        "{}",
        shown[0]
    );
    assert!(!shown[0].contains("recall"), "{}", shown[0]);

    let lost = Script::Events(vec![
        output("head\n"),
        OperationEvent::Gap {
            stream: OutputStream::Stdout,
            from: 5,
            to: 50_005,
        },
        OperationEvent::Output {
            stream: OutputStream::Stdout,
            offset: 50_005,
            data: "tail\n".into(),
        },
        OperationEvent::Ended(exit(50_010, ExitStatus::Code(0), ExitCause::Exited)),
    ]);
    let told = told(SHELL, lost, [r#"{"of":"r1"}"#]).await;
    let whole = "[r1, Shell, from offset 0]\nhead\n\n[… 50000 bytes that are not kept …]\ntail\n[this is its end]";
    assert_eq!(told[1], whole);
}
