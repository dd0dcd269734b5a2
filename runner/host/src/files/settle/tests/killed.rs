//! A process that changes files is killed at any moment, and what it left is settled by another.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::*;

/// The test below that is the process to be killed.
const MAKER: &str = "files::settle::tests::killed::maker";

/// How often one is killed.
const KILLS: u64 = 40;

/// Every content of the file, one for each change; large enough to be cut short by a death.
fn content(number: u64) -> Vec<u8> {
    format!("{number:8}\n").repeat(20_000).into_bytes()
}

#[tokio::test]
#[ignore = "changes the folder that it is started in until it is killed; the test below starts it"]
async fn maker() {
    let root = std::env::current_dir().expect("a folder");
    let host = crate::testing::open(&root);
    for number in 1.. {
        let write = Write {
            path: "file".to_owned(),
            content: content(number),
        };
        let mut performing = host.perform(Request::Write(write), crate::testing::LONG);
        let announced = announced(&mut performing).await;
        let line = serde_json::to_string(&announced.change).expect("JSON");
        let mut out = std::io::stdout();
        writeln!(out, "{line}")
            .and_then(|()| out.flush())
            .expect("a reader");
        announced.go_ahead();
        assert!(matches!(end(performing).await.outcome, Outcome::Written(_)));
    }
}

fn start_maker(scene: &Scene) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", MAKER, "--ignored", "--nocapture"])
        .current_dir(scene.host.root())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process")
}

#[tokio::test]
async fn a_killed_maker_has_changed_the_file_once_or_not_at_all() {
    let (mut applied, mut not_applied) = (0, 0);
    for kill in 0..KILLS {
        let scene = Scene::new();
        let mut maker = start_maker(&scene);
        let lines = BufReader::new(maker.stdout.take().expect("a pipe")).lines();
        let mut changes = lines.filter_map(|line| serde_json::from_str(&line.ok()?).ok());
        let after_changes = (kill % 4) as usize;
        let first: Change = changes.nth(after_changes).expect("an announcement");
        // At another moment of the change each time; the outcome counts, not the time.
        tokio::time::sleep(Duration::from_micros(kill * 50)).await;
        maker.kill().expect("it runs");
        maker.wait().expect("it ends");
        // It may have come further before the signal.
        let change = changes.last().unwrap_or(first);
        let found = scene
            .content("file")
            .map(|content| Digest::of(&content).into());
        let found = There::content(found);
        let effect = &change.effects[0];
        match scene.settle(&change).await {
            SettledChange::Applied(outcome) => {
                applied += 1;
                assert_eq!(found, effect.after);
                assert_eq!(outcome, change.done);
            }
            SettledChange::NotApplied => {
                not_applied += 1;
                assert_eq!(found, effect.before);
            }
            SettledChange::Unclear => panic!("{change:?} cannot be told from what is there"),
        }
        let left = scene.names();
        assert!(left.iter().all(|name| name == "file"), "{left:?}");
    }
    println!("{KILLS} kills: {applied} applied, {not_applied} not applied");
}
