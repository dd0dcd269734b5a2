//! Supervisors that are stopped (SIGSTOP) at every point: each operation has its end, and no
//! process, directory or cgroup is left.

use std::{fs, path::Path};

use runner_supervisor::{
    Cause, Directory, Fault, FaultAction, FaultPoint, KillChoice, ProcessId, ProcessIdentity,
    Recovered, ReportedEnd, SupervisedOperation, end_by_force, remove, settle,
};
use rustix::process::{Signal, kill_process};

use crate::scene::{Scene, finish, record, start, until_output, until_so};

pub(crate) fn signal(process: &ProcessId, signal: Signal) {
    kill_process(process.as_pid().expect("a pid"), signal).expect("it is there");
}

/// Waits until it is stopped; `false` where it has ended without.
pub(crate) fn until_stopped(process: &ProcessId) -> bool {
    while process.is_alive(&process.boot_id) {
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid)).unwrap_or_default();
        let state = stat.rsplit(')').next();
        if state.is_some_and(|state| state.starts_with(" T")) {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

fn assert_gone(identity: &ProcessIdentity) {
    let supervisor = &identity.supervisor;
    assert!(!supervisor.is_alive(&supervisor.boot_id), "{identity:?}");
    let cgroup = identity.cgroup.as_deref();
    assert!(!cgroup.is_some_and(Path::exists), "{identity:?}");
}

fn open(operation: &SupervisedOperation) -> Directory {
    Directory::open(operation.directory().path()).expect("a directory")
}

/// The points between a request and the end of its command.
fn points() -> impl Iterator<Item = FaultPoint> {
    let all = FaultPoint::ALL.iter().copied();
    all.skip_while(|point| *point != FaultPoint::Waiting)
        .take_while(|point| *point != FaultPoint::ExitTold)
}

#[test]
fn wherever_a_supervisor_is_stopped_its_operation_ends_and_nothing_is_left() {
    for point in points() {
        let scene = Scene::new();
        let action = FaultAction::StopSupervisor;
        let pool = scene.pool_with(0, KillChoice::Strongest, Some(Fault { point, action }));
        let script = "echo effect >> effects; echo told; sleep 0.3; exit 3";
        let operation = start(&pool, &scene.shell(script));
        let identity = operation.identity().expect("known").clone();
        assert!(until_stopped(&identity.supervisor), "{point:?}");
        let effects = || fs::read_to_string(scene.work().join("effects")).unwrap_or_default();
        match settle(open(&operation)).expect("settled") {
            Recovered::Fenced(_) => assert_eq!(effects(), "", "{point:?}"),
            Recovered::Ended(_, record) => {
                assert_eq!(record.end, ReportedEnd::Code(3), "{point:?}")
            }
            Recovered::Running(running) => {
                let forced = end_by_force(open(&running), Cause::Cancelled);
                let Recovered::Ended(_, record) = forced.expect("settled") else {
                    panic!("{point:?}: it has started and has no end");
                };
                assert_eq!(record.end, ReportedEnd::Unknown, "{point:?}");
                assert_eq!(record.cause, Cause::Cancelled, "{point:?}");
            }
        }
        assert_gone(&identity);
        assert!(["", "effect\n"].contains(&effects().as_str()), "{point:?}");
        remove(open(&operation)).expect("removed");
        assert_eq!(scene.root().read_dir().expect("a folder").count(), 0);
    }
}

#[test]
fn wherever_a_supervisor_is_stopped_its_command_goes_on_with_it_if_it_had_started() {
    for point in points() {
        let scene = Scene::new();
        let action = FaultAction::StopSupervisor;
        let pool = scene.pool_with(0, KillChoice::Strongest, Some(Fault { point, action }));
        let script = "echo effect >> effects; echo told; sleep 0.3; exit 3";
        let operation = start(&pool, &scene.shell(script));
        let identity = operation.identity().expect("known").clone();
        assert!(until_stopped(&identity.supervisor), "{point:?}");
        if let Recovered::Running(mut running) = settle(open(&operation)).expect("settled") {
            signal(&identity.supervisor, Signal::CONT);
            let ended = finish(&mut running);
            assert_eq!(ended.record.end, ReportedEnd::Code(3), "{point:?}");
            assert_eq!(ended.text(), "told\n", "{point:?}");
            let effects = fs::read_to_string(scene.work().join("effects"));
            assert_eq!(effects.expect("the effect"), "effect\n", "{point:?}");
        }
    }
}

#[test]
fn a_supervisor_that_is_well_tells_its_own_end_although_it_is_ended_by_force() {
    let scene = Scene::new();
    let mut operation = scene.start(&scene.shell("echo ready; sleep 1000"));
    until_output(&mut operation, "ready");
    let forced = end_by_force(open(&operation), Cause::Cancelled).expect("settled");
    let Recovered::Ended(_, forced) = forced else {
        panic!("it has no end: {forced:?}");
    };
    assert_eq!(forced.end, ReportedEnd::Signal(9));
    assert_eq!(record(&mut operation), forced);
}

#[test]
fn a_stopped_supervisor_that_is_to_serve_again_is_killed_and_another_one_serves() {
    let scene = Scene::new();
    let pool = scene.pool_with(0, KillChoice::Strongest, None);
    let mut kept = Vec::new();
    for _ in 0..3 {
        let waiting = pool.start().expect("a supervisor");
        let started = waiting.start(&scene.shell("exit 5"), None);
        let mut operation = started.expect("started");
        assert_eq!(record(&mut operation).end, ReportedEnd::Code(5));
        let identity = operation.identity().expect("known").clone();
        signal(&identity.supervisor, Signal::STOP);
        assert!(until_stopped(&identity.supervisor));
        let path = operation.directory().path().to_owned();
        pool.keep(operation.into_spent().expect("it can serve another one"));
        assert!(pool.reclaim(&path));
        kept.push((identity, path));
    }
    let mut next = start(&pool, &scene.shell("exit 6"));
    assert_eq!(record(&mut next).end, ReportedEnd::Code(6));
    let served_by = &next.identity().expect("known").supervisor;
    for (identity, path) in kept {
        assert_ne!(*served_by, identity.supervisor);
        until_so(|| !path.exists());
        assert_gone(&identity);
    }
}

#[test]
fn a_supervisor_that_is_stopped_before_it_says_that_it_is_ready_is_not_left() {
    let scene = Scene::new();
    let fault = Fault {
        point: FaultPoint::Prepared,
        action: FaultAction::StopSupervisor,
    };
    let pool = scene.pool_with(0, KillChoice::Strongest, Some(fault));
    let none = pool.take();
    none.expect_err("each of them stops before it can be used");
    assert_eq!(scene.root().read_dir().expect("a folder").count(), 0);
    assert_eq!(supervisors_below(&scene), Vec::<i32>::new());
}

/// Those whose directory is, or was, below this folder.
fn supervisors_below(scene: &Scene) -> Vec<i32> {
    let root = scene.root().canonicalize().expect("a folder");
    let all = fs::read_dir("/proc").expect("a list").flatten();
    let below = all.filter(|entry| {
        let place = fs::read_link(entry.path().join("cwd"));
        place.is_ok_and(|place| place.starts_with(&root) && place != root)
    });
    below
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}
