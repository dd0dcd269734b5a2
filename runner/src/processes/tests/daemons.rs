//! Daemons come and go; their commands do not notice.

use std::fs;

use tokio::runtime::Runtime;

use super::scene::*;

/// What a daemon that is killed leaves: its tasks are gone without a word.
fn abandoned(scene: &Scene, script: &str, mark: &str) -> String {
    let runtime = Runtime::new().expect("a runtime");
    let name = runtime.block_on(async {
        let processes = scene.open().await;
        let mut process = scene.start(&processes, shell(script)).await;
        until(&mut process, mark).await;
        process.spool.name().to_owned()
    });
    runtime.shutdown_background();
    name
}

fn of(name: &str, left: Vec<(String, LeftOperation)>) -> LeftOperation {
    let found = left.into_iter().find(|(other, _)| other == name);
    found.expect("it is found").1
}

/// An error with all that led to it, as `main` tells it.
fn said(error: ProcessesError) -> String {
    format!("{:#}", anyhow::Error::from(error))
}

#[test]
fn the_next_daemon_finds_what_runs_with_all_its_output_and_its_end() {
    let scene = Scene::new();
    let script = "echo one; until test -e go; do sleep 0.01; done; echo two; exit 5";
    let name = abandoned(&scene, script, "one");
    Runtime::new().expect("a runtime").block_on(async {
        let (_processes, left) = scene.open_again().await;
        let LeftOperation::Running(mut process) = of(&name, left) else {
            panic!("it does not run");
        };
        assert_eq!(process.spool.name(), name);
        assert_eq!(until(&mut process, "one").await, "one\n");
        fs::write(scene.workspace().join("go"), "").expect("a file");
        let record = record(&mut process).await;
        assert_eq!(record.status, ExitStatus::Code(5));
        assert_eq!(record.stdout, whole(b"one\ntwo\n"));
        assert_eq!(read(&mut process.spool, OutputStream::Stdout), "one\ntwo\n");
    });
}

#[test]
fn the_next_daemon_can_cancel_what_runs() {
    let scene = Scene::new();
    let name = abandoned(&scene, "echo one; sleep 1000", "one");
    Runtime::new().expect("a runtime").block_on(async {
        let (_processes, left) = scene.open_again().await;
        let LeftOperation::Running(mut process) = of(&name, left) else {
            panic!("it does not run");
        };
        process.control.cancel();
        assert_eq!(record(&mut process).await.cause, ExitCause::Cancelled);
    });
}

#[test]
fn the_next_daemon_takes_up_what_runs_on_a_small_disk_that_is_full() {
    let scene = Scene::small("8m");
    let name = abandoned(&scene, "echo one; sleep 1000", "one");
    scene.fill();
    Runtime::new().expect("a runtime").block_on(async {
        let (processes, left) = scene.open_again().await;
        let refused = processes.take().await.expect_err("there is no room");
        assert_eq!(refused, NotStarted::DiskFull);
        let LeftOperation::Running(mut process) = of(&name, left) else {
            panic!("it does not run");
        };
        process.control.cancel();
        assert_eq!(record(&mut process).await.cause, ExitCause::Cancelled);
        assert_eq!(read(&mut process.spool, OutputStream::Stdout), "one\n");
    });
}

#[test]
fn the_next_daemon_learns_how_it_ended_meanwhile() {
    let scene = Scene::new();
    let name = abandoned(
        &scene,
        "echo one; until test -e go; do sleep 0.01; done",
        "one",
    );
    fs::write(scene.workspace().join("go"), "").expect("a file");
    while !scene.root().join(&name).join("exit").exists() {
        std::thread::yield_now();
    }
    Runtime::new().expect("a runtime").block_on(async {
        let (_processes, left) = scene.open_again().await;
        let LeftOperation::Ended {
            outcome, mut files, ..
        } = of(&name, left)
        else {
            panic!("it has not ended");
        };
        assert_eq!(exited(&outcome).status, ExitStatus::Code(0));
        assert_eq!(read(&mut files, OutputStream::Stdout), "one\n");
        files.forget();
        while scene.root().join(&name).exists() {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn the_next_daemon_fences_what_was_taken_and_never_started() {
    let scene = Scene::new();
    let runtime = Runtime::new().expect("a runtime");
    let name = runtime.block_on(async {
        let processes = scene.open().await;
        let waiting = processes.take().await.expect("a supervisor");
        waiting.name().to_owned()
    });
    runtime.shutdown_background();
    Runtime::new().expect("a runtime").block_on(async {
        let (processes, left) = scene.open_again().await;
        assert!(matches!(of(&name, left), LeftOperation::Fenced(_)));
        let mut process = scene.start(&processes, shell("exit 4")).await;
        assert_ne!(process.spool.name(), name);
        assert_eq!(record(&mut process).await.status, ExitStatus::Code(4));
    });
}

#[test]
fn records_that_cannot_be_read_are_told_and_left_alone() {
    let scene = Scene::new();
    let name = abandoned(&scene, "echo one; sleep 1000", "one");
    let directory = scene.root().join(&name);
    let supervisor = supervisor_in(&scene, &name);
    let fate = fs::read(directory.join("fate")).expect("a fate");
    fs::write(directory.join("fate"), "not a record\n").expect("written");
    Runtime::new().expect("a runtime").block_on(async {
        let (_processes, left) = scene.open_again().await;
        assert!(matches!(of(&name, left), LeftOperation::Unreadable(_)));
    });
    fs::write(directory.join("fate"), fate).expect("written");
    kill(supervisor);
    while runs(supervisor) {
        std::thread::yield_now();
    }
    Runtime::new().expect("a runtime").block_on(async {
        let (_processes, left) = scene.open_again().await;
        assert!(matches!(of(&name, left), LeftOperation::Ended { .. }));
    });
}

#[tokio::test]
async fn a_supervisor_that_is_missing_or_another_program_is_told_at_the_start() {
    let scene = Scene::new();
    let missing = ProcessOptions {
        supervisor: "/no/such/gantry-supervisor".into(),
        ..scene.options()
    };
    let error = scene.open_with(missing).await.expect_err("it is missing");
    assert!(said(error).contains("--supervisor"));
    let other = ProcessOptions {
        supervisor: "/bin/true".into(),
        ..scene.options()
    };
    let error = scene.open_with(other).await.expect_err("it says nothing");
    assert!(said(error).contains("install the one"));
    assert_eq!(fs::read_dir(scene.root()).expect("a folder").count(), 0);
}
