//! A runner whose answers carry numbers that no host can mean: the turn that asked goes on, and so
//! does the session.

use proto::v1::{
    self, Refusal, exit_record, file_failure, listed_entry, refusal, runner_frame::Kind,
};
use serde_json::json;
use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    gantry::Gantry,
    model_server::{ModelServer, Reply},
    peer::{Peer, PeerLink},
};

type Outcome = v1::ended::Outcome;

/// What the model asks for, and how its runner says that this ended.
type Ask = (&'static str, serde_json::Value, fn(u64) -> Outcome);

#[tokio::test(flavor = "multi_thread")]
async fn a_result_with_impossible_numbers_ends_its_call_and_neither_the_turn_nor_the_session() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let peer = Peer::enrol(&gantry, "peer").await;
    let (mut link, _) = peer.link().await;
    let used = gantry.client().use_runner("peer").await;
    used.expect("it is chosen");
    let mut talk = gantry.talk().await;
    for number in [0, 1 << 63, u64::MAX] {
        let asks = asks();
        model.script(
            asks.iter()
                .map(|(tool, arguments, _)| Reply::call(*tool, arguments))
                .chain([Reply::text("done")])
                .collect(),
        );
        let turn = talk.send("go").await;
        for (_, _, outcome) in &asks {
            answer(&mut link, outcome(number)).await;
        }
        let told = talk.ended(turn).await;
        assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
        assert_eq!(told.calls().len(), asks.len());
        if number > 0 {
            for (outcome, text) in told.calls() {
                assert!(
                    matches!(outcome, CallOutcome::Refused | CallOutcome::Unknown)
                        && text.contains(&format!("the runner's answer says {number} for")),
                    "{outcome:?}: {text}"
                );
            }
        }
    }
}

/// One of every kind of result with numbers in it.
fn asks() -> [Ask; 9] {
    let path = || json!({ "path": "a" });
    [
        ("Shell", json!({ "command": "a" }), |n| exited(n, 0)),
        ("Shell", json!({ "command": "b" }), |n| exited(0, n)),
        ("Read", path(), |n| {
            Outcome::Read(v1::ReadContent {
                content: b"a\nb".to_vec(),
                first_line: n,
                lines: n,
                file_bytes: n,
                more: false,
                digest: None,
            })
        }),
        ("Read", json!({ "path": "b" }), |n| {
            Outcome::Failed(v1::FileFailure {
                kind: file_failure::Kind::TooLarge.into(),
                path: "b".to_owned(),
                number: n,
                limit: n,
                ..v1::FileFailure::default()
            })
        }),
        ("Write", json!({ "path": "a", "content": "" }), |n| {
            Outcome::Written(v1::Written {
                bytes: n,
                before: None,
                after: Some(v1::FileDigest {
                    algorithm: v1::file_digest::Algorithm::Sha256.into(),
                    value: vec![7; 32],
                }),
            })
        }),
        (
            "Edit",
            json!({ "path": "a", "old": "a", "new": "b" }),
            |n| {
                Outcome::Edited(v1::Edited {
                    line: n,
                    replaced: n,
                    before: vec![6; 32],
                    after: vec![7; 32],
                })
            },
        ),
        ("List", path(), |n| {
            Outcome::Listed(v1::Listed {
                entries: vec![v1::ListedEntry {
                    name: "a".to_owned(),
                    kind: listed_entry::Kind::File.into(),
                    bytes: n,
                    ..v1::ListedEntry::default()
                }],
                more: false,
            })
        }),
        ("Grep", json!({ "pattern": "a" }), |n| {
            Outcome::Grepped(v1::Grepped {
                matches: vec![v1::GrepMatch {
                    path: "a".to_owned(),
                    line: n,
                    text: "a".to_owned(),
                }],
                more: false,
                unread_rules: 0,
                skipped: Vec::new(),
                more_skipped: n,
            })
        }),
        ("Glob", json!({ "pattern": "a" }), |n| {
            Outcome::Refused(Refusal {
                code: refusal::Code::Invalid.into(),
                message: format!("the runner's answer says {n} for nothing"),
                retry_after_ms: n,
            })
        }),
    ]
}

/// An exit after so much output and so much time.
fn exited(bytes: u64, time: u64) -> Outcome {
    let end = Some(v1::StreamEnd {
        offset: bytes,
        checksum: None,
    });
    Outcome::Exited(v1::ExitRecord {
        status: Some(exit_record::Status::Code(0)),
        cause: exit_record::Cause::Exited.into(),
        stdout: end,
        stderr: end,
        wall_ms: time,
        cpu_us: time,
        max_rss_bytes: time,
        ..v1::ExitRecord::default()
    })
}

/// Accepts the next operation and says that it ended like this.
async fn answer(link: &mut PeerLink, outcome: Outcome) {
    let operation = link.operation().await.operation;
    let accepted = Kind::Accepted(v1::Accepted {
        operation: operation.clone(),
        journal_sequence: 0,
    });
    assert!(link.send(accepted).await, "the link takes it");
    let outcome = Some(outcome);
    let ended = Kind::Ended(v1::Ended { operation, outcome });
    assert!(link.send(ended).await, "the link takes it");
}
