//! Commands whose time is over and whose supervisors do nothing about it.
//!
//! As with the other stopped supervisors the clock is paused once nobody but the daemon has anything
//! left to do.

use std::{sync::Arc, time::Duration};

use shared_types::{Timestamp, clock::ManualClock};
use tokio::time::{Instant, pause};

use super::{
    scene::*,
    stopped::{Stubborn, assert_gone, for_a_while, running, soon_killed, stop},
};

/// With no more time than this.
fn for_no_longer_than(run_for: Duration) -> ProcessTerms {
    ProcessTerms {
        run_for,
        orphan_for: run_for,
        ..soon_killed()
    }
}

#[tokio::test]
async fn a_command_whose_supervisor_is_stopped_runs_no_longer_than_it_may() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let terms = for_no_longer_than(2 * LONG);
    let mut stubborn = Stubborn::start(&scene, &processes, terms).await;
    pause();
    let before = Instant::now();
    let record = ended_in_the_end(&mut stubborn.process).await;
    assert!(before.elapsed() > LONG, "{:?}", before.elapsed());
    stubborn.assert_ended(&record, ExitCause::Timeout);
}

#[tokio::test]
async fn a_supervisor_that_ends_its_command_in_time_is_left_to_it() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let terms = for_no_longer_than(SOON);
    let mut process = scene
        .start_with(&processes, shell("exec sleep 1000"), terms)
        .await;
    let record = record(&mut process).await;
    assert_eq!(record.cause, ExitCause::Timeout);
    assert_eq!(record.status, ExitStatus::Signal(15));
}

#[tokio::test]
async fn a_command_that_is_cut_off_ends_although_its_supervisor_is_stopped() {
    let mut scene = Scene::new();
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(0)));
    scene.clock = clock.clone();
    let processes = scene.open().await;
    let script = shell("echo ready; sleep 1000");
    let terms = ProcessTerms {
        run_for: 1000 * LONG,
        orphan_for: 1000 * LONG,
        ..soon_killed()
    };
    let mut process = scene.start_with(&processes, script, terms).await;
    until(&mut process, "ready").await;
    let stopped = stop(&scene, process.spool.name());
    clock.suspend(900 * LONG);
    process.control.renew(2000 * LONG);
    // A paused clock goes on once nobody has anything to do: by then it has heard that.
    pause();
    tokio::time::sleep(SOON).await;
    // As where the host is suspended: little of it is time in which the command could run.
    clock.suspend(1900 * LONG);
    tokio::time::sleep(10 * LONG).await;
    assert!(runs(stopped.supervisor.pid), "it was renewed");
    clock.suspend(200 * LONG);
    assert_eq!(
        ended_in_the_end(&mut process).await.cause,
        ExitCause::Orphaned
    );
    assert_gone(&stopped);
}

#[test]
fn the_next_daemon_goes_on_counting_the_time_of_a_command_whose_supervisor_is_stopped() {
    let scene = Scene::new();
    let (name, stopped) = for_a_while(async {
        let processes = scene.open().await;
        let script = shell("echo ready; sleep 1000");
        let terms = for_no_longer_than(2 * LONG);
        let mut process = scene.start_with(&processes, script, terms).await;
        until(&mut process, "ready").await;
        let name = process.spool.name().to_owned();
        let stopped = stop(&scene, &name);
        (name, stopped)
    });
    for_a_while(async {
        let mut process = running(&scene, &name).await;
        pause();
        let before = Instant::now();
        let record = ended_in_the_end(&mut process).await;
        assert_eq!(record.cause, ExitCause::Timeout);
        assert!(before.elapsed() < 4 * LONG, "{:?}", before.elapsed());
        assert_gone(&stopped);
    });
}

/// The record of the end, however long it takes by the paused clock.
async fn ended_in_the_end(process: &mut Process) -> ExitRecord {
    loop {
        let event = process.events.recv().await.expect("an event");
        if let ProcessEvent::Ended(end) = event {
            return exited(&outcome(end)).clone();
        }
    }
}
