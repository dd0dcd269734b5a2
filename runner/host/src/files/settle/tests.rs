//! Changes are made once, or not at all, whenever their maker dies.

mod killed;
mod steps;

use std::fs;

use shared_sandbox::{Edit, Outcome, Request, Write};
use shared_types::{Digest, Refusal, RefusalCode};

use crate::{
    Announced, Change, Effect, HostEvent, Performing, SettledChange, There,
    testing::{Scene, end},
};

const OLD: &[u8] = b"one two three";
const NEW: &[u8] = b"one 2 three";

fn write(path: &str) -> Request {
    Request::Write(Write {
        path: path.to_owned(),
        content: NEW.to_vec(),
    })
}

fn edit() -> Request {
    Request::Edit(Edit {
        path: "file".to_owned(),
        old: "two".to_owned(),
        new: "2".to_owned(),
        every: false,
        expected: None,
    })
}

/// The change that the request announces first of all.
async fn announced(performing: &mut Performing) -> Announced {
    match performing.events.recv().await {
        Some(HostEvent::Changing(announced)) => announced,
        other => panic!("expected an announcement, not {other:?}"),
    }
}

/// What the change calls its new content before it is in place.
fn unfinished(change: &Change) -> &str {
    change.unfinished.as_deref().expect("a name")
}

impl Scene {
    async fn announce(&self, request: Request) -> (Performing, Announced) {
        let mut performing = self.host.perform(request, crate::testing::LONG);
        let announced = announced(&mut performing).await;
        (performing, announced)
    }

    /// What a maker that died before it began leaves: its announcement.
    async fn announced_only(&self, request: Request) -> Change {
        let (performing, announced) = self.announce(request).await;
        let change = announced.change.clone();
        drop(announced);
        end(performing).await;
        change
    }

    async fn settle(&self, change: &Change) -> SettledChange {
        self.host.settle(change.clone(), Vec::new()).await
    }

    fn content(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.path(path)).ok()
    }

    /// The names in the workspace, for what is left over.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.host.root()).expect("a workspace");
        let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("a name");
        entries
            .map(|entry| name(entry.expect("an entry")))
            .collect()
    }
}

#[tokio::test]
async fn a_change_is_announced_whole_before_anything_of_it_is_on_the_disk() {
    let scene = Scene::new();
    scene.put("file", OLD);
    for request in [write("file"), edit()] {
        let (performing, announced) = scene.announce(request).await;
        let change = announced.change.clone();
        let effect = Effect {
            path: "file".to_owned(),
            before: There::Content(Digest::of(OLD).into()),
            after: There::Content(Digest::of(NEW).into()),
        };
        assert_eq!(change.effects, [effect]);
        assert_eq!(scene.names(), ["file"]);
        assert_eq!(scene.content("file").as_deref(), Some(OLD));
        let stored = serde_json::to_string(&change).expect("JSON");
        assert_eq!(
            serde_json::from_str::<Change>(&stored).expect("JSON"),
            change
        );
        announced.go_ahead();
        assert_eq!(end(performing).await.outcome, change.done);
        assert_eq!(scene.names(), ["file"]);
        assert_eq!(scene.content("file").as_deref(), Some(NEW));
        scene.put("file", OLD);
    }
}

#[tokio::test]
async fn a_new_file_in_a_new_folder_makes_nothing_before_it_may() {
    let scene = Scene::new();
    let (performing, announced) = scene.announce(write("a/b/file")).await;
    assert_eq!(announced.change.effects[0].before, There::Nothing);
    assert!(scene.names().is_empty());
    announced.go_ahead();
    assert!(matches!(end(performing).await.outcome, Outcome::Written(_)));
    assert_eq!(scene.content("a/b/file").as_deref(), Some(NEW));
}

#[tokio::test]
async fn a_change_that_nobody_writes_down_is_not_made() {
    let scene = Scene::new();
    scene.put("file", OLD);
    for request in [write("file"), write("a/file"), edit()] {
        let (performing, announced) = scene.announce(request).await;
        drop(announced);
        match end(performing).await.outcome {
            Outcome::Refused(refusal) => assert_eq!(refusal.code, RefusalCode::Fenced),
            other => panic!("expected a refusal, not {other:?}"),
        }
        assert_eq!(scene.names(), ["file"]);
        assert_eq!(scene.content("file").as_deref(), Some(OLD));
    }
    drop(scene.host.perform(edit(), crate::testing::LONG));
    // One change at a time, so the one before is over.
    scene.announced_only(edit()).await;
    assert_eq!(scene.content("file").as_deref(), Some(OLD));
}

#[tokio::test]
async fn a_change_that_cannot_be_written_down_ends_as_whoever_tried_says() {
    let scene = Scene::new();
    scene.put("file", OLD);
    let (performing, announced) = scene.announce(edit()).await;
    let full = Refusal::new(RefusalCode::ResourceExhausted, "the journal is full");
    announced.refuse(full.clone());
    assert_eq!(end(performing).await.outcome, Outcome::Refused(full));
    assert_eq!(scene.content("file").as_deref(), Some(OLD));
}

#[tokio::test]
async fn a_change_that_is_stopped_while_it_waits_is_not_made() {
    let scene = Scene::new();
    scene.put("file", OLD);
    let (performing, announced) = scene.announce(edit()).await;
    performing.stop.cancel();
    let outcome = end(performing).await.outcome;
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    announced.go_ahead();
    assert_eq!(scene.content("file").as_deref(), Some(OLD));
}

#[tokio::test]
async fn a_death_before_the_rename_leaves_the_old_content() {
    for request in [write("file"), edit()] {
        for left in [None, Some(0), Some(NEW.len() / 2), Some(NEW.len())] {
            let scene = Scene::new();
            scene.put("file", OLD);
            let change = scene.announced_only(request.clone()).await;
            if let Some(bytes) = left {
                scene.put(unfinished(&change), &NEW[..bytes]);
            }
            assert_eq!(scene.settle(&change).await, SettledChange::NotApplied);
            assert_eq!(scene.content("file").as_deref(), Some(OLD));
            assert_eq!(scene.names(), ["file"]);
        }
    }
}

#[tokio::test]
async fn a_death_before_a_new_file_is_there_leaves_none() {
    let scene = Scene::new();
    let change = scene.announced_only(write("a/b/file")).await;
    assert_eq!(scene.settle(&change).await, SettledChange::NotApplied);
    scene.put(&format!("a/b/{}", unfinished(&change)), NEW);
    assert_eq!(scene.settle(&change).await, SettledChange::NotApplied);
    assert_eq!(
        fs::read_dir(scene.path("a/b")).expect("a folder").count(),
        0
    );
}

#[tokio::test]
async fn a_death_after_the_rename_is_told_as_the_outcome_that_it_had() {
    for (request, path) in [
        (write("file"), "file"),
        (edit(), "file"),
        (write("a/new"), "a/new"),
    ] {
        let scene = Scene::new();
        scene.put("file", OLD);
        let change = scene.announced_only(request).await;
        scene.put(path, NEW);
        let settled = scene.settle(&change).await;
        assert_eq!(settled, SettledChange::Applied(change.done.clone()));
        assert_eq!(scene.content(path).as_deref(), Some(NEW));
    }
}

#[tokio::test]
async fn a_change_of_nothing_is_settled_as_made() {
    let scene = Scene::new();
    scene.put("file", NEW);
    let change = scene.announced_only(write("file")).await;
    assert_eq!(change.effects[0].before, change.effects[0].after);
    let settled = scene.settle(&change).await;
    assert_eq!(settled, SettledChange::Applied(change.done.clone()));
}

#[tokio::test]
async fn what_somebody_else_changed_since_is_not_guessed() {
    let scene = Scene::new();
    scene.put("file", OLD);
    let change = scene.announced_only(edit()).await;
    scene.put("file", "something else");
    assert_eq!(scene.settle(&change).await, SettledChange::Unclear);
    // What is still called unfinished was never renamed.
    scene.put(unfinished(&change), NEW);
    assert_eq!(scene.settle(&change).await, SettledChange::NotApplied);
    assert_eq!(scene.names(), ["file"]);
    fs::remove_file(scene.path("file")).expect("a file");
    assert_eq!(scene.settle(&change).await, SettledChange::Unclear);
    fs::create_dir(scene.path("file")).expect("a folder");
    assert_eq!(scene.settle(&change).await, SettledChange::Unclear);
}

#[tokio::test]
async fn settling_removes_nothing_but_what_a_change_has_named() {
    let scene = Scene::new();
    scene.put("file", OLD);
    scene.put("folder/.gantry-1-2", "");
    scene.put(".gantry-1-2", "of another change");
    fs::write(scene.outside().join("victim"), "").expect("a file");
    let mut change = scene.announced_only(edit()).await;
    for name in [
        "file",
        "../victim",
        ".gantry-",
        ".gantry-/../file",
        "folder/.gantry-1-2",
    ] {
        change.unfinished = Some(name.to_owned());
        assert_eq!(scene.settle(&change).await, SettledChange::NotApplied);
    }
    assert!(scene.outside().join("victim").exists());
    assert!(scene.path("folder/.gantry-1-2").exists());
    let mut names = scene.names();
    names.sort();
    assert_eq!(names, [".gantry-1-2", "file", "folder"]);
}

#[tokio::test]
async fn a_name_that_is_taken_is_somebody_elses_and_stays() {
    let scene = Scene::new();
    scene.put("file", OLD);
    let (performing, announced) = scene.announce(edit()).await;
    let unfinished = unfinished(&announced.change).to_owned();
    scene.put(&unfinished, "of somebody else");
    announced.go_ahead();
    let outcome = end(performing).await.outcome;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    assert_eq!(scene.text(&unfinished), "of somebody else");
    assert_eq!(scene.content("file").as_deref(), Some(OLD));
}
