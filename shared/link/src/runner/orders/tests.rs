use prost::Message;
use proto::v1::{self, runner_frame::Kind, server_frame};
use shared_sandbox::{
    EntryKind, ExitCause, ExitRecord, ExitStatus, FileFailure, GrepMatch, Grepped, Listed,
    ListedEntry, Outcome, StreamEnd, examples,
};
use shared_types::limits::MAX_FRAME_BYTES;

use super::*;
use crate::{
    testing::{OWNER, incoming, operation_frame, shell},
    wire::ended,
};

/// What `incoming` looks like on the wire, with a change.
fn wire(change: impl FnOnce(&mut v1::Operation)) -> Option<server_frame::Kind> {
    let server_frame::Kind::Operation(mut operation) = operation_frame(&incoming(1, shell("true")))
    else {
        panic!("not an operation");
    };
    change(&mut operation);
    Some(server_frame::Kind::Operation(operation))
}

fn refusal(received: ReceivedFrame) -> (String, v1::refusal::Code) {
    let ReceivedFrame::Answer(v1::RunnerFrame {
        kind:
            Some(Kind::Ended(v1::Ended {
                operation,
                outcome: Some(v1::ended::Outcome::Refused(refusal)),
            })),
    }) = received
    else {
        panic!("no refusal: {received:?}");
    };
    (operation, refusal.code())
}

#[test]
fn an_operation_arrives_as_it_was_meant() {
    let expected = incoming(1, shell("true"));
    let ReceivedFrame::Order(Order::Operation(arrived)) = received(wire(|_| {})) else {
        panic!("no operation");
    };
    assert_eq!(*arrived, expected);
}

#[test]
fn every_kind_of_request_keeps_its_digest_over_the_wire() {
    for expected in examples::requests() {
        let frame = wire(|operation| {
            operation.digest = expected.digest().as_bytes().to_vec();
            operation.request = Some(crate::wire::request(&expected));
        });
        let ReceivedFrame::Order(Order::Operation(arrived)) = received(frame) else {
            panic!("{expected:?} did not arrive");
        };
        assert_eq!(arrived.request, Some(expected));
    }
}

#[test]
fn what_cannot_be_understood_is_refused_with_the_id_that_it_came_with() {
    use v1::refusal::Code;
    type Change = fn(&mut v1::Operation);
    let cases: [(Change, Code); 7] = [
        (|o| o.operation = "ses_1".into(), Code::Invalid),
        (|o| o.digest = vec![1], Code::Invalid),
        (|o| o.digest = vec![1; 32], Code::Invalid),
        (|o| o.sandbox.clear(), Code::Invalid),
        (|o| o.owner = "nobody".into(), Code::Invalid),
        (
            |o| o.request = Some(v1::operation::Request::Exec(v1::Exec::default())),
            Code::Invalid,
        ),
        (|o| o.request = None, Code::Unsupported),
    ];
    for (number, (change, expected)) in cases.into_iter().enumerate() {
        let frame = wire(change);
        let Some(server_frame::Kind::Operation(sent)) = frame.clone() else {
            panic!("not an operation");
        };
        let (operation, code) = refusal(received(frame));
        assert_eq!(
            (operation, code),
            (sent.operation, expected),
            "case {number}"
        );
    }
    let long = received(wire(|o| o.operation = "ü".repeat(100_000)));
    assert!(refusal(long).0.len() <= 65);
}

#[test]
fn a_request_without_a_body_and_without_time_to_start_means_to_attach() {
    let frame = wire(|operation| {
        operation.request = None;
        operation.start_within_ms = 0;
    });
    let ReceivedFrame::Order(Order::Operation(arrived)) = received(frame) else {
        panic!("no operation");
    };
    assert_eq!(arrived.request, None);
}

#[test]
fn signs_of_life_and_frames_of_a_later_version_ask_for_nothing() {
    let heartbeat = server_frame::Kind::Heartbeat(v1::Heartbeat::default());
    for kind in [Some(heartbeat), None] {
        assert_eq!(received(kind), ReceivedFrame::Nothing);
    }
}

#[test]
fn a_cancel_that_names_no_operation_or_no_owner_is_answered_with_a_refusal() {
    let operation = OperationId::from_u128(1).to_string();
    for (operation, owner) in [
        ("x".to_owned(), OWNER.to_string()),
        (operation, String::new()),
    ] {
        let cancel = server_frame::Kind::Cancel(v1::Cancel {
            operation: operation.clone(),
            owner,
            ..v1::Cancel::default()
        });
        let ReceivedFrame::Answer(v1::RunnerFrame {
            kind: Some(Kind::CancelAnswer(answer)),
        }) = received(Some(cancel))
        else {
            panic!("it is carried out");
        };
        assert_eq!(answer.operation, operation);
        let refusal = answer.refusal.expect("a refusal");
        assert_eq!(refusal.code(), v1::refusal::Code::Invalid);
    }
}

#[test]
fn an_exit_is_told_with_its_cause_and_the_ends_of_its_streams() {
    let frame = ended(
        OperationId::from_u128(1),
        Outcome::Exited(ExitRecord {
            status: ExitStatus::Signal(9),
            cause: ExitCause::Timeout,
            stdout: StreamEnd {
                offset: 5,
                checksum: Some(6),
            },
            stderr: StreamEnd::default(),
            wall_ms: 7,
            cpu_us: 0,
            max_rss_bytes: 0,
            tree_gone: true,
        }),
    );
    let Some(Kind::Ended(v1::Ended {
        outcome: Some(v1::ended::Outcome::Exited(record)),
        ..
    })) = frame.kind
    else {
        panic!("no exit");
    };
    assert_eq!(record.status, Some(v1::exit_record::Status::Signal(9)));
    assert_eq!(record.cause(), v1::exit_record::Cause::Timeout);
    assert_eq!(
        record.stdout.map(|end| (end.offset, end.checksum)),
        Some((5, Some(6)))
    );
    assert!(record.tree_gone);
}

#[test]
fn lists_that_do_not_fit_into_a_frame_are_cut_and_say_so() {
    let listed = Outcome::Listed(Listed {
        entries: vec![
            ListedEntry {
                name: "n".repeat(255),
                kind: EntryKind::File,
                bytes: u64::MAX,
                mode: u32::MAX,
                leads_to: None,
                is_replaced: false,
                is_unreadable: false,
            };
            20_000
        ],
        more: false,
    });
    let grepped = Outcome::Grepped(Grepped {
        matches: vec![
            GrepMatch {
                path: "p".repeat(4096),
                line: u64::MAX,
                text: "t".repeat(500),
            };
            2_000
        ],
        more: false,
        unread_rules: 0,
        skipped: Vec::new(),
        more_skipped: 0,
    });
    let tiny = Outcome::Listed(Listed {
        entries: vec![
            ListedEntry {
                name: "n".into(),
                kind: EntryKind::Directory,
                bytes: u64::MAX,
                mode: u32::MAX,
                leads_to: None,
                is_replaced: false,
                is_unreadable: false,
            };
            200_000
        ],
        more: false,
    });
    for outcome in [listed, grepped, tiny] {
        let frame = ended(OperationId::from_u128(1), outcome);
        assert!(frame.encoded_len() <= MAX_FRAME_BYTES);
        let Some(Kind::Ended(v1::Ended { outcome, .. })) = frame.kind else {
            panic!("no end");
        };
        let (told, more) = match outcome {
            Some(v1::ended::Outcome::Listed(l)) => (l.entries.len(), l.more),
            Some(v1::ended::Outcome::Grepped(g)) => (g.matches.len(), g.more),
            other => panic!("unexpected {other:?}"),
        };
        assert!(more && told > 100, "{told}");
    }
}

#[test]
fn a_failure_keeps_its_numbers() {
    let failure = FileFailure::TooLarge {
        path: "big".into(),
        bytes: 10,
        limit: 5,
    };
    let frame = ended(OperationId::from_u128(1), Outcome::Failed(failure));
    let Some(Kind::Ended(v1::Ended {
        outcome: Some(v1::ended::Outcome::Failed(failure)),
        ..
    })) = frame.kind
    else {
        panic!("no failure");
    };
    assert_eq!(failure.kind(), v1::file_failure::Kind::TooLarge);
    assert_eq!((failure.number, failure.limit), (10, 5));
    assert_eq!(failure.path, "big");
}
