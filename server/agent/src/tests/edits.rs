//! Edits: a file is read first, and the edit names the content that the session has seen.

use std::collections::HashMap;

use shared_sandbox::{Edited, Outcome, ReadContent, Request, scripted::Script};
use shared_types::{
    Digest, Event, FileDigest,
    event::{CallOutcome, FileSeen, TurnOutcome},
};

use crate::{
    LogError,
    testing::{Fault, Reply, World, content, ends, written},
};

const READ: (&str, &str) = ("Read", r#"{"path":"./src/a"}"#);
const EDIT: (&str, &str) = ("Edit", r#"{"path":"src/a","old":"one","new":"two"}"#);
const WRITE: (&str, &str) = ("Write", r#"{"path":"src/a","content":"hi"}"#);

fn digest(text: &str) -> FileDigest {
    Digest::of(text.as_bytes()).into()
}

/// The file is read, by a runner that tells its digest.
fn read(text: &str) -> Script {
    let Outcome::Read(read) = content(text) else {
        panic!("it is a read");
    };
    ends(Outcome::Read(ReadContent {
        digest: Some(digest(text)),
        ..read
    }))
}

fn edited(before: &str, after: &str) -> Script {
    ends(Outcome::Edited(Edited {
        line: 1,
        replaced: 1,
        before: Digest::of(before.as_bytes()),
        after: Digest::of(after.as_bytes()),
    }))
}

/// The digest that each edit expected, in their order.
fn expected(world: &World) -> Vec<Option<FileDigest>> {
    let started = world.sandbox.scripted.started();
    let edits = started
        .into_iter()
        .filter_map(|started| match started.request {
            Request::Edit(edit) => Some(edit.expected),
            _ => None,
        });
    edits.collect()
}

#[tokio::test]
async fn an_edit_of_a_file_that_was_not_read_is_not_run_and_says_what_to_do() {
    let world = World::new([Reply::calls("", [EDIT]), Reply::says("done")], []);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let (outcome, text) = world.only_call();
    assert_eq!(outcome, CallOutcome::Refused);
    assert_eq!(
        text,
        "not run: read src/a first, with Read, so that the edit fits what stands there"
    );
    assert!(world.sandbox.scripted.started().is_empty());
}

#[tokio::test]
async fn each_edit_of_an_answer_expects_what_the_call_before_it_saw() {
    let world = World::new(
        [Reply::calls("", [READ, EDIT, EDIT]), Reply::says("done")],
        [read("1"), edited("1", "2"), edited("2", "3")],
    );
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(expected(&world), [Some(digest("1")), Some(digest("2"))]);
    let files: Vec<_> = world
        .ended_calls()
        .into_iter()
        .map(|event| match event {
            Event::CallEnded { file, .. } => file.expect("it saw one"),
            other => panic!("{other:?}"),
        })
        .collect();
    let seen = |text, changed| FileSeen {
        path: "src/a".to_owned(),
        digest: Some(digest(text)),
        changed,
    };
    assert_eq!(files, [seen("1", false), seen("2", true), seen("3", true)]);
}

#[tokio::test]
async fn paths_are_those_from_the_root_also_in_a_session_that_works_below_it() {
    let read_above = ("Read", r#"{"path":"../app/src/a"}"#);
    let world = World::new(
        [Reply::calls("", [read_above, EDIT]), Reply::says("done")],
        [read("1"), edited("1", "2")],
    );
    world.log.append(Event::SessionCreated {
        title: String::new(),
        model: String::new(),
        directory: "app".to_owned(),
    });
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(expected(&world), [Some(digest("1"))]);
    let paths = world.ended_calls().into_iter().map(|event| match event {
        Event::CallEnded { file, .. } => file.map(|file| file.path),
        other => panic!("{other:?}"),
    });
    let path = || Some("app/src/a".to_owned());
    assert_eq!(paths.collect::<Vec<_>>(), [path(), path()]);
}

#[tokio::test]
async fn a_runner_of_an_earlier_release_is_sent_no_digest() {
    let world = World::new(
        [
            Reply::calls("", [READ, EDIT, WRITE, EDIT]),
            Reply::says("done"),
        ],
        [
            ends(content("1")),
            edited("1", "2"),
            ends(written()),
            edited("hi", "3"),
        ],
    );
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(expected(&world), [None, None]);
}

#[tokio::test]
async fn what_was_written_counts_as_seen_and_what_failed_to_be_read_does_not() {
    let failed = ends(Outcome::Failed(shared_sandbox::FileFailure::NotFound {
        path: "src/a".to_owned(),
    }));
    let other = ("Read", r#"{"path":"b"}"#);
    let world = World::new(
        [
            Reply::calls("", [READ, EDIT, other, WRITE, EDIT]),
            Reply::says("done"),
        ],
        [failed, read("b"), ends(written()), edited("hi", "3")],
    );
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(expected(&world), [Some(digest("hi"))]);
    let outcomes = world.ended_calls().into_iter().map(|event| match event {
        Event::CallEnded { outcome, .. } => outcome,
        other => panic!("{other:?}"),
    });
    assert_eq!(
        outcomes.collect::<Vec<_>>(),
        [
            CallOutcome::Failed,
            CallOutcome::Refused,
            CallOutcome::Completed,
            CallOutcome::Completed,
            CallOutcome::Completed,
        ]
    );
}

#[tokio::test]
async fn an_edit_that_is_run_again_after_a_crash_is_the_same_request() {
    let world = World::new(
        [
            Reply::calls("", [READ, EDIT, READ, EDIT]),
            Reply::says("done"),
        ],
        [
            read("1"),
            Script::Hang(Vec::new()),
            read("2"),
            edited("2", "3"),
        ],
    );
    let operation = world.dies_after_starting(2).await;
    world.was_placed_at(1, 1, operation);
    world
        .sandbox
        .scripted
        .goes_on_as(operation, edited("1", "2"));
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let started = world.sandbox.scripted.started();
    let of_edit: Vec<_> = started.iter().filter(|one| one.id == operation).collect();
    let [first, again] = of_edit[..] else {
        panic!("it was started twice: {of_edit:?}");
    };
    assert_eq!(first.request.digest(), again.request.digest());
    assert_eq!(
        expected(&world),
        [Some(digest("1")), Some(digest("1")), Some(digest("2"))]
    );
}

#[tokio::test]
async fn an_edit_that_an_earlier_release_placed_is_gone_on_with_although_the_log_has_no_read() {
    let world = World::new(
        [Reply::calls("", [READ, EDIT]), Reply::says("done")],
        [read("1"), Script::Hang(Vec::new())],
    );
    let operation = world.dies_after_starting(2).await;
    let events = world.log.events();
    let before = World::new(
        [Reply::calls("", [READ, EDIT]), Reply::says("done")],
        [edited("1", "2")],
    );
    for mut event in events.into_iter().skip(1) {
        if let Event::CallEnded { file, .. } = &mut event {
            *file = None;
        }
        before.log.append(event);
    }
    before.was_placed_at(1, 1, operation);
    assert_eq!(before.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(before.sandbox.scripted.asked(), [operation]);
    assert_eq!(expected(&before), [None]);
}

#[tokio::test]
async fn a_turn_with_edits_that_is_killed_at_any_record_sends_each_call_with_one_request() {
    let world = || {
        World::new(
            [
                Reply::calls("", [READ, EDIT, READ, EDIT]),
                Reply::calls("", [EDIT, WRITE, EDIT]),
                Reply::says("done"),
            ],
            [
                read("1"),
                edited("1", "2"),
                read("2"),
                edited("2", "3"),
                edited("3", "4"),
                ends(written()),
                edited("hi", "5"),
            ],
        )
    };
    let whole = world();
    assert_eq!(whole.run().await, Ok(TurnOutcome::Completed));
    let writes = whole.log.events().len() - 2;
    for at in 1..=writes {
        for stored in [false, true] {
            let world = world();
            let error = LogError::Unavailable("the disk is full".to_owned());
            world.log.break_at(Fault { at, stored, error });
            assert!(world.run().await.is_err());
            world.log.mend();
            assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
            assert_eq!(world.log.events(), whole.log.events());
            let mut requests = HashMap::new();
            for started in world.sandbox.scripted.started() {
                let first = requests
                    .entry(started.id)
                    .or_insert(started.request.digest());
                assert_eq!(*first, started.request.digest(), "write {at}, {stored}");
            }
            assert_eq!(requests.len(), 7);
        }
    }
}
