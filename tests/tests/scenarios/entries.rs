//! Entries of the workspace, through the real router and the real runner: made, told, moved, removed.

use shared_sandbox::{
    EntryKind, FileFailure, MadeDirectory, MakeDirectory, Move, Moved, OperationEvent, Outcome,
    Remove, Removed, Request, Sandbox as _, Stat, Write,
};
use tests::door::{Door, operation};

async fn outcome(door: &Door, request: Request) -> Outcome {
    let started = door.sandbox.start(operation(request)).await;
    let mut running = started.expect("it is taken");
    loop {
        if let OperationEvent::Ended(outcome) = running.events.recv().await.expect("an end") {
            return outcome;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_made_filled_told_moved_and_removed_over_a_link() {
    let (door, proxy) = Door::behind_a_proxy().await;
    let text = |text: &str| text.to_owned();
    let made = |made| Outcome::MadeDirectory(MadeDirectory { made });
    let make = || Request::MakeDirectory(MakeDirectory { path: text("a/b") });
    assert_eq!(outcome(&door, make()).await, made(true));
    assert_eq!(outcome(&door, make()).await, made(false));
    let write = Request::Write(Write {
        path: text("a/b/file"),
        content: b"content".to_vec(),
    });
    let written = outcome(&door, write).await;
    assert!(matches!(written, Outcome::Written(_)), "{written:?}");
    proxy.cut();
    let rename = |replace| {
        Request::Move(Move {
            from: text("a/b"),
            to: text("c"),
            replace,
        })
    };
    let moved = Outcome::Moved(Moved {
        kind: EntryKind::Directory,
        replaced: false,
    });
    assert_eq!(outcome(&door, rename(false)).await, moved);
    let stat = Request::Stat(Stat {
        path: text("c/file"),
        follow: false,
    });
    let Outcome::Found(found) = outcome(&door, stat).await else {
        panic!("nothing is found");
    };
    assert_eq!((found.kind, found.bytes), (EntryKind::File, 7));
    assert_eq!(outcome(&door, make()).await, made(true));
    let exists = Outcome::Failed(FileFailure::Exists { path: text("c") });
    assert_eq!(outcome(&door, rename(false)).await, exists);
    let remove = |tree| {
        Request::Remove(Remove {
            path: text("c"),
            tree,
        })
    };
    let full = Outcome::Failed(FileFailure::NotEmpty { path: text("c") });
    assert_eq!(outcome(&door, remove(false)).await, full);
    let removed = Outcome::Removed(Removed {
        kind: EntryKind::Directory,
    });
    assert_eq!(outcome(&door, remove(true)).await, removed);
    assert!(!door.runner.workspace().join("c").exists());
}
