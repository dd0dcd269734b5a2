//! Supervisors that are there and do nothing: whoever was promised something hears an end all the
//! same, and nobody is left.
//!
//! With the clock paused, what is waited for in vain is over at once; that is done once nobody but
//! the daemon has anything left to do.

use std::{fs, path::Path};

use rustix::process::{Pid, Signal};
use tokio::time::{pause, resume};

use super::scene::*;

/// Stops the supervisor of this directory, and waits until it is.
pub(super) fn stop(scene: &Scene, name: &str) -> ProcessIdentity {
    let identity = identity(scene, name);
    signal(identity.supervisor.pid, Signal::STOP);
    while state(identity.supervisor.pid) != Some('T') {
        std::thread::yield_now();
    }
    identity
}

fn signal(pid: i32, signal: Signal) {
    let pid = Pid::from_raw(pid).expect("a pid");
    rustix::process::kill_process(pid, signal).expect("it is there");
}

/// With less time to end than a test waits for an event.
pub(super) fn soon_killed() -> ProcessTerms {
    ProcessTerms {
        kill_grace: LONG / 2,
        ..terms()
    }
}

/// Nothing is left of a supervisor but its directory.
pub(super) fn assert_gone(identity: &ProcessIdentity) {
    assert!(!runs(identity.supervisor.pid), "{identity:?}");
    let cgroup = identity.cgroup.as_deref();
    assert!(!cgroup.is_some_and(Path::exists), "{identity:?}");
}

/// A command that ends for no polite word, whose supervisor is stopped.
pub(super) struct Stubborn {
    pub(super) process: Process,
    said: String,
    /// One of its processes, in a session of its own.
    survivor: i32,
    supervisor: ProcessIdentity,
}

impl Stubborn {
    pub(super) async fn start(scene: &Scene, processes: &Processes, terms: ProcessTerms) -> Self {
        let script =
            "trap '' TERM; setsid sh -c 'echo $$; exec sleep 1000' & sleep 1000; sleep 1000";
        let mut process = scene.start_with(processes, shell(script), terms).await;
        let said = until(&mut process, "\n").await;
        let survivor = said.trim().parse().expect("a pid");
        let supervisor = stop(scene, process.spool.name());
        Self {
            process,
            said,
            survivor,
            supervisor,
        }
    }

    /// It was ended by force for this reason, whole and with what it had said.
    pub(super) fn assert_ended(&self, record: &ExitRecord, cause: ExitCause) {
        assert_eq!(record.status, ExitStatus::Unknown);
        assert_eq!(record.cause, cause);
        assert_eq!(record.stdout, whole(self.said.as_bytes()));
        assert!(record.tree_gone || self.supervisor.kill == KillMethod::Sweep);
        assert!(!runs(self.survivor));
        assert_gone(&self.supervisor);
    }
}

#[tokio::test]
async fn a_supervisor_that_is_stopped_while_it_waits_never_runs_what_it_is_handed() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let waiting = processes.take().await.expect("a supervisor");
    let name = waiting.name().to_owned();
    let stopped = stop(&scene, &name);
    let plan = scene.host.plan(&shell("touch effect")).expect("a plan");
    let mut process = processes.start(waiting, id(1), plan, terms(), PassingControls::new());
    pause();
    assert_eq!(end(&mut process).await, ProcessEnd::Fenced);
    resume();
    assert_gone(&stopped);
    process.spool.forget();
    until_gone(&scene, &name).await;
    assert!(!scene.workspace().join("effect").exists());
    let mut next = scene.start(&processes, shell("exit 4")).await;
    assert_eq!(record(&mut next).await.status, ExitStatus::Code(4));
}

#[tokio::test]
async fn a_cancel_is_not_kept_waiting_by_a_supervisor_that_did_not_start() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let waiting = processes.take().await.expect("a supervisor");
    let stopped = stop(&scene, waiting.name());
    let plan = scene.host.plan(&shell("touch effect")).expect("a plan");
    let mut process = processes.start(waiting, id(1), plan, terms(), PassingControls::new());
    process.control.cancel();
    pause();
    assert_eq!(end(&mut process).await, ProcessEnd::Fenced);
    assert_gone(&stopped);
    assert!(!scene.workspace().join("effect").exists());
}

#[tokio::test]
async fn a_command_whose_supervisor_is_stopped_for_a_while_ends_as_if_it_had_not_been() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let script = "echo one; until test -e go; do sleep 0.01; done; echo two; exit 5";
    let mut process = scene.start(&processes, shell(script)).await;
    until(&mut process, "one").await;
    let stopped = stop(&scene, process.spool.name());
    fs::write(scene.workspace().join("go"), "").expect("a file");
    // Longer than anything that the daemon waits for.
    pause();
    tokio::time::sleep(10 * LONG).await;
    resume();
    signal(stopped.supervisor.pid, Signal::CONT);
    let record = record(&mut process).await;
    assert_eq!(record.status, ExitStatus::Code(5));
    assert_eq!(record.stdout, whole(b"one\ntwo\n"));
}

#[tokio::test]
async fn a_cancel_ends_a_command_whose_supervisor_is_stopped() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut stubborn = Stubborn::start(&scene, &processes, soon_killed()).await;
    stubborn.process.control.cancel();
    pause();
    let record = record(&mut stubborn.process).await;
    stubborn.assert_ended(&record, ExitCause::Cancelled);
}

#[tokio::test]
async fn a_cancel_that_a_stopped_supervisor_does_not_read_is_heard_all_the_same() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut process = scene
        .start_with(&processes, shell("echo ready; sleep 1000"), soon_killed())
        .await;
    until(&mut process, "ready").await;
    let stopped = stop(&scene, process.spool.name());
    // More than the socket holds.
    for number in 1..=20_000 {
        let size = shared_sandbox::TerminalSize {
            rows: 24,
            columns: 80,
        };
        let control = shared_sandbox::Control::Resize(size);
        process.control.control(number, control);
    }
    tokio::time::sleep(SOON).await;
    process.control.cancel();
    pause();
    assert_eq!(record(&mut process).await.cause, ExitCause::Cancelled);
    assert_gone(&stopped);
}

#[tokio::test]
async fn a_command_is_asked_to_end_before_it_is_killed_although_its_supervisor_is_stopped() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let script = "trap ': > asked; exit' TERM; echo ready; while :; do sleep 0.01; done";
    let mut process = scene
        .start_with(&processes, shell(script), soon_killed())
        .await;
    until(&mut process, "ready").await;
    let stopped = stop(&scene, process.spool.name());
    process.control.cancel();
    while !scene.workspace().join("asked").exists() {
        tokio::time::sleep(SOON).await;
    }
    pause();
    assert_eq!(record(&mut process).await.cause, ExitCause::Cancelled);
    assert_gone(&stopped);
}

#[tokio::test]
async fn a_runner_that_stops_ends_commands_whose_supervisors_are_stopped() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut process = scene
        .start_with(&processes, shell("echo ready; sleep 1000"), soon_killed())
        .await;
    until(&mut process, "ready").await;
    let stopped = stop(&scene, process.spool.name());
    process.control.orphan();
    pause();
    assert_eq!(record(&mut process).await.cause, ExitCause::Orphaned);
    assert_gone(&stopped);
}

#[tokio::test]
async fn a_supervisor_that_is_killed_before_its_command_is_forgotten_leaves_nothing() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut process = scene.start(&processes, shell("exit 3")).await;
    assert_eq!(record(&mut process).await.status, ExitStatus::Code(3));
    let name = process.spool.name().to_owned();
    let killed = identity(&scene, &name);
    kill(killed.supervisor.pid);
    while runs(killed.supervisor.pid) {
        std::thread::yield_now();
    }
    process.spool.forget();
    until_gone(&scene, &name).await;
    assert_gone(&killed);
}

#[tokio::test]
async fn a_supervisor_that_is_stopped_before_its_command_is_forgotten_leaves_nothing() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut process = scene.start(&processes, shell("exit 3")).await;
    assert_eq!(record(&mut process).await.status, ExitStatus::Code(3));
    let name = process.spool.name().to_owned();
    let stopped = stop(&scene, &name);
    process.spool.forget();
    until_gone(&scene, &name).await;
    assert_gone(&stopped);
}

#[tokio::test]
async fn a_supervisor_that_is_stopped_and_not_wanted_after_all_leaves_nothing() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let waiting = processes.take().await.expect("a supervisor");
    let name = waiting.name().to_owned();
    let stopped = stop(&scene, &name);
    drop(waiting);
    until_gone(&scene, &name).await;
    assert_gone(&stopped);
}

#[test]
fn the_next_daemon_ends_supervisors_that_were_stopped_while_they_waited() {
    let scene = Scene::new();
    let (name, stopped) = for_a_while(async {
        let processes = scene.open().await;
        let waiting = processes.take().await.expect("a supervisor");
        let name = waiting.name().to_owned();
        let stopped = stop(&scene, &name);
        // As where this daemon is killed.
        std::mem::forget(waiting);
        (name, stopped)
    });
    for_a_while(async {
        let (_processes, left) = scene.open_again().await;
        let of_it = left.into_iter().find(|(other, _)| *other == name);
        assert!(
            matches!(of_it, Some((_, LeftOperation::Fenced(_)))),
            "{of_it:?}"
        );
        assert_gone(&stopped);
    });
}

#[test]
fn daemons_that_come_and_go_find_what_runs_although_its_supervisor_is_stopped() {
    let scene = Scene::new();
    let (name, stopped) = for_a_while(async {
        let processes = scene.open().await;
        let script = "echo one; until test -e go; do sleep 0.01; done; exit 5";
        let mut process = scene.start(&processes, shell(script)).await;
        until(&mut process, "one").await;
        let name = process.spool.name().to_owned();
        let stopped = stop(&scene, &name);
        (name, stopped)
    });
    // More of them than wait at its door.
    for _ in 0..6 {
        for_a_while(async { running(&scene, &name).await });
    }
    fs::write(scene.workspace().join("go"), "").expect("a file");
    for_a_while(async {
        let mut process = running(&scene, &name).await;
        signal(stopped.supervisor.pid, Signal::CONT);
        assert_eq!(record(&mut process).await.status, ExitStatus::Code(5));
    });
}

#[test]
fn the_next_daemon_can_cancel_what_runs_although_its_supervisor_is_stopped() {
    let scene = Scene::new();
    let (name, stopped) = for_a_while(async {
        let processes = scene.open().await;
        let script = shell("echo ready; sleep 1000");
        let mut process = scene.start_with(&processes, script, soon_killed()).await;
        until(&mut process, "ready").await;
        let name = process.spool.name().to_owned();
        let stopped = stop(&scene, &name);
        (name, stopped)
    });
    for_a_while(async {
        let mut process = running(&scene, &name).await;
        process.control.cancel();
        pause();
        assert_eq!(record(&mut process).await.cause, ExitCause::Cancelled);
        assert_gone(&stopped);
    });
}

/// The life of a daemon.
pub(super) fn for_a_while<T>(life: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let lived = runtime.block_on(life);
    runtime.shutdown_background();
    lived
}

/// What the next daemon finds of a command that runs.
pub(super) async fn running(scene: &Scene, name: &str) -> Process {
    let (_processes, left) = scene.open_again().await;
    match left.into_iter().find(|(other, _)| other == name) {
        Some((_, LeftOperation::Running(process))) => process,
        other => panic!("it does not run: {other:?}"),
    }
}
