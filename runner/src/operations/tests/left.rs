//! What a daemon that was killed in an unlucky moment has left in its journal is gone on from.

use shared_link::{
    runner::{Accepted, Record, Takes},
    testing::OWNER,
};
use shared_sandbox::{Outcome, Written};
use shared_types::{Digest, OsEntropy};

use super::{
    remembered::{DAY, daemon_after},
    *,
};
use crate::journal::Journal;

/// What operation 1 writes, and what operation 2 writes after it.
const FIRST: &[u8] = b"first";
const SECOND: &[u8] = b"second";

/// A daemon that finds these lines in its journal, and this in the file `file`.
async fn after(entries: &[JournalEntry], content: Option<&[u8]>) -> Bench {
    let temporary = tempfile::tempdir().expect("a directory");
    let journal = temporary.path().join("journal");
    let opened = Journal::open(&journal, &SystemClock::new(), &OsEntropy);
    let mut journal: Journal<JournalEntry> = opened.expect("a journal").journal;
    let boot = JournalEntry::Boot(incarnation().boot);
    journal.append(&[boot]).expect("room");
    journal.append(entries).expect("room");
    drop(journal);
    if let Some(content) = content {
        std::fs::create_dir(temporary.path().join("workspace")).expect("a workspace");
        std::fs::write(temporary.path().join("workspace/file"), content).expect("a file");
    }
    let bench = daemon_after(2 * DAY, temporary.path(), &incarnation().boot).await;
    Bench {
        temporary: Some(temporary),
        ..bench
    }
}

fn accepted(number: u128, request: &Request) -> JournalEntry {
    let incoming = incoming(number, request.clone());
    JournalEntry::Table(Record::Accepted(Accepted {
        operation: incoming.id,
        sandbox: None,
        digest: incoming.digest,
        owner: OWNER,
        epoch: incoming.epoch,
        at: None,
        takes: Takes::of(request),
        trace: None,
    }))
}

fn written(before: Option<&[u8]>, after: &[u8]) -> Written {
    Written {
        bytes: after.len() as u64,
        before: before.map(|before| Digest::of(before).into()),
        after: Digest::of(after).into(),
    }
}

fn changing(number: u128, before: Option<&[u8]>, after: &[u8]) -> JournalEntry {
    // As a runner wrote it down that named no effects.
    let entry = serde_json::json!({
        "changing": {
            "operation": OperationId::from_u128(number),
            "change": {
                "path": "file",
                "unfinished": format!(".gantry-{number}"),
                "done": { "written": written(before, after) },
            },
        }
    });
    serde_json::from_value(entry).expect("a change")
}

fn released(number: u128) -> JournalEntry {
    JournalEntry::Table(Record::Released(OperationId::from_u128(number)))
}

/// It was forgotten, so long ago that it may be accepted again.
fn expired(number: u128) -> JournalEntry {
    let operation = OperationId::from_u128(number);
    let receipt = serde_json::json!({
        "receipt": {
            "operation": operation,
            "end": "already_exited",
            "at": Duration::ZERO,
        }
    });
    JournalEntry::Table(serde_json::from_value(receipt).expect("a receipt"))
}

/// What the write of operation 1 is told to have found.
async fn found_by(bench: &mut Bench) -> Option<Digest> {
    bench.ask(1, write("file", FIRST), 0).await;
    match bench.read_all().await.1 {
        v1::ended::Outcome::Written(written) => written
            .before
            .and_then(|before| Digest::from_slice(&before.value)),
        other => panic!("it is no change: {other:?}"),
    }
}

#[tokio::test]
async fn a_change_whose_file_was_changed_again_before_its_end_was_written_down_was_made() {
    // The second puts back what was there before the first, or something else.
    for (old, second) in [(None, SECOND), (Some(SECOND), SECOND)] {
        let end = JournalEntry::Table(Record::Ended {
            operation: OperationId::from_u128(2),
            outcome: Outcome::Written(written(Some(FIRST), second)),
            stopped: false,
        });
        let entries = [
            accepted(1, &write("file", FIRST)),
            accepted(2, &write("file", second)),
            changing(1, old, FIRST),
            changing(2, Some(FIRST), second),
            end,
        ];
        let mut bench = after(&entries, Some(second)).await;
        assert_eq!(found_by(&mut bench).await, old.map(Digest::of));
        let content = std::fs::read(bench.path("file")).expect("a file");
        assert_eq!(content, second, "the first was made again");
    }
}

#[tokio::test]
async fn a_change_that_was_released_and_accepted_again_is_not_taken_for_the_one_before() {
    let request = write("file", FIRST);
    let entries = [
        accepted(1, &request),
        changing(1, None, FIRST),
        released(1),
        accepted(1, &request),
    ];
    let mut bench = after(&entries, Some(SECOND)).await;
    assert_eq!(found_by(&mut bench).await, Some(Digest::of(SECOND)));
    let content = std::fs::read(bench.path("file")).expect("a file");
    assert_eq!(content, FIRST);
}

#[tokio::test]
async fn a_command_that_is_accepted_again_is_not_looked_for_where_it_was_before() {
    let request = shell("echo ran >> effects");
    let placed = JournalEntry::Placed {
        operation: OperationId::from_u128(1),
        directory: "cleared".to_owned(),
    };
    for over in [released(1), expired(1)] {
        let entries = [
            accepted(1, &request),
            placed.clone(),
            over,
            accepted(1, &request),
        ];
        let mut bench = after(&entries, None).await;
        bench.ask(1, request.clone(), 0).await;
        assert_eq!(code(&bench.read_all().await.1), Some(0));
        let effects = std::fs::read_to_string(bench.path("effects"));
        assert_eq!(effects.expect("the effect"), "ran\n");
    }
}

#[tokio::test]
async fn a_change_in_a_workspace_that_is_not_served_any_more_is_lost_and_never_made_anew() {
    let gone = SandboxId::from_u128(99);
    let request = write("file", FIRST);
    let in_gone = |entry: JournalEntry| match entry {
        JournalEntry::Table(Record::Accepted(accepted)) => {
            JournalEntry::Table(Record::Accepted(Accepted {
                sandbox: Some(gone),
                ..accepted
            }))
        }
        JournalEntry::Changing {
            operation, change, ..
        } => JournalEntry::Changing {
            operation,
            sandbox: Some(gone),
            change,
        },
        other => other,
    };
    let entries = [accepted(1, &request), changing(1, None, FIRST)].map(in_gone);
    let mut bench = after(&entries, Some(SECOND)).await;
    let mut again = incoming(1, request);
    again.sandbox = gone;
    bench.order(again).await;
    let (_, outcome) = bench.read_all().await;
    let v1::ended::Outcome::Refused(refusal) = outcome else {
        panic!("it is told as done: {outcome:?}");
    };
    assert_eq!(refusal.code(), v1::refusal::Code::Lost);
    let content = std::fs::read(bench.path("file")).expect("a file");
    assert_eq!(
        content, SECOND,
        "the same path of another workspace is untouched"
    );
}

#[tokio::test]
async fn what_another_workspace_found_at_the_same_path_tells_nothing_of_a_change() {
    let other = |entry: JournalEntry| match entry {
        JournalEntry::Changing {
            operation, change, ..
        } => JournalEntry::Changing {
            operation,
            sandbox: Some(SandboxId::from_u128(99)),
            change,
        },
        entry => entry,
    };
    let entries = [
        accepted(1, &write("file", FIRST)),
        changing(1, None, FIRST),
        other(changing(2, Some(FIRST), SECOND)),
    ];
    let mut bench = after(&entries, None).await;
    assert_eq!(found_by(&mut bench).await, None);
    let content = std::fs::read(bench.path("file")).expect("a file");
    assert_eq!(content, FIRST, "it was not made before, so it is made now");
}
