//! A journal that is full, or cannot hold what is to be written down.

use runner_host::{Change, Effect, HeldTurn, HostEvent, There};
use shared_sandbox::{FileFailure, MadeDirectory, Outcome, Skipped, Unpacked};
use shared_types::OsEntropy;

use super::*;
use crate::{
    journal::{Journal, MAX_LINE_BYTES},
    testing::PLACE,
};

/// Fills the journal of the daemon in this folder with what lives no more, to its very end.
fn fill(folder: &Path) {
    let opened = Journal::open(&folder.join("journal"), &SystemClock::new(), &OsEntropy);
    let mut journal: Journal<JournalEntry> = opened.expect("a journal").journal;
    for length in [MAX_LINE_BYTES / 2, 1024, 0] {
        let filler = [JournalEntry::Boot("-".repeat(length))];
        while journal.append_end(&filler).is_ok() {}
    }
}

/// The service of a daemon in this folder that has accepted operation 1, which writes a file.
async fn under_way(folder: &Path) -> (OperationsService, OperationId) {
    let found = found(folder, &incarnation().boot, Arc::new(SystemClock::new())).await;
    let (_, mut service) = OperationsHandle::open(found).await.expect("a table");
    let link = service.table.open_link().link;
    let order = Order::Operation(Box::new(incoming(1, write("file", b"new"))));
    service.order(link, order).expect("it is written down");
    let id = OperationId::from_u128(1);
    assert!(service.table.is_open(id));
    (service, id)
}

/// The code with which the operation was refused, as the next daemon reads it.
async fn refused(folder: &Path) -> Option<v1::refusal::Code> {
    let mut bench = Bench::in_folder(folder, &incarnation().boot, None).await;
    bench.ask(1, write("file", b"new"), 0).await;
    match bench.read_all().await.1 {
        v1::ended::Outcome::Refused(refusal) => Some(refusal.code()),
        _ => None,
    }
}

fn unpacked(characters: usize) -> Outcome {
    Outcome::Unpacked(Unpacked {
        entries: 0,
        skipped: vec![Skipped {
            path: "\u{1}".repeat(characters),
            failure: FileFailure::DiskFull,
        }],
    })
}

#[tokio::test]
async fn an_end_that_is_too_long_for_the_journal_is_told_as_lost_and_the_daemon_goes_on() {
    let folder = tempfile::tempdir().expect("a directory");
    let (mut service, id) = under_way(folder.path()).await;
    let ended = HostEvent::Ended(unpacked(MAX_LINE_BYTES / 5), HeldTurn::default());
    let written = service.happened(id, Happened::Host(ended));
    written.expect("the daemon goes on");
    assert!(!service.table.is_open(id));
    drop(service);
    assert_eq!(refused(folder.path()).await, Some(v1::refusal::Code::Lost));
}

#[tokio::test]
async fn a_change_finds_no_room_in_the_reserve_and_an_end_does() {
    let folder = tempfile::tempdir().expect("a directory");
    let (mut service, id) = under_way(folder.path()).await;
    for length in [MAX_LINE_BYTES / 2, 1024, 0] {
        let filler = [JournalEntry::Boot("-".repeat(length))];
        while service.journaled.journal.append(&filler).is_ok() {}
    }
    let done = Outcome::MadeDirectory(MadeDirectory { made: true });
    let change = Change {
        effects: vec![Effect {
            path: "directory".to_owned(),
            before: There::Nothing,
            after: There::Directory,
        }],
        unfinished: None,
        done: done.clone(),
    };
    let refused = service.journaled.change(id, Some(PLACE), change);
    assert!(
        matches!(refused, Err(JournalError::TooLarge)),
        "{refused:?}"
    );
    service.end(id, done).expect("the reserve");
}

#[tokio::test]
async fn a_daemon_begins_with_a_full_journal_by_making_it_shorter() {
    let folder = tempfile::tempdir().expect("a directory");
    drop(under_way(folder.path()).await);
    fill(folder.path());
    let mut bench = Bench::in_folder(folder.path(), "another boot", None).await;
    let journal = std::fs::metadata(folder.path().join("journal/journal"));
    assert!(journal.expect("a journal").len() < MAX_LINE_BYTES as u64);
    let mut asked = incoming(2, shell("echo here"));
    asked.incarnation = Some(bench.incarnation.clone());
    bench.order(asked).await;
    assert_eq!(bench.read_all().await.0, "here\n");
}
