//! Daemon and supervisor killed at every point: what holds afterwards.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use runner_supervisor::{
    Cause, Directory, ExitRecord, Fate, Fault, FaultAction, FaultPoint, KillChoice, LeafNames,
    OperationEnd, ProcessId, Recovered, ReportedEnd, SpoolEnd, SpoolStream, SupervisorEvent,
    recover, remove_abandoned,
};

use crate::scene::{LONG, Scene, event, read, request, start, until_so};

/// How the stand-in of a daemon learns where it is to work, and with which fault.
const PLACE: &str = "STAND_IN_PLACE";
const FAULT: &str = "STAND_IN_FAULT";

/// One effect, then output, then some more of both after the daemon has heard of it.
const SCRIPT: &str = "echo effect >> effects; seq 1 2000; sleep 0.05; seq 2001 4000; exit 3";

fn expected_output() -> Vec<u8> {
    (1..=4000)
        .map(|i| format!("{i}\n"))
        .collect::<String>()
        .into()
}

/// What is on disk of an operation once everything that can be said is said.
#[derive(Debug)]
enum Fared {
    Fenced,
    Ended(ExitRecord, Vec<u8>),
}

/// A daemon in a process of its own, so that it can be killed: it takes one supervisor, runs the
/// command, and goes away when it is over.
#[test]
#[ignore = "a process that other tests start"]
#[expect(clippy::disallowed_methods, reason = "this is its `main`")]
fn stand_in() {
    let place: PathBuf = std::env::var_os(PLACE).expect("a place").into();
    let fault = std::env::var(FAULT).ok();
    let fault = fault.map(|text| text.parse::<Fault>().expect("a fault"));
    let scene = Scene::at(&place);
    let pool = scene.pool_with(0, KillChoice::Strongest, fault);
    let mut operation = start(&pool, &request(&scene.work(), &["sh", "-c", SCRIPT]));
    while !matches!(event(&mut operation), SupervisorEvent::Ended(_)) {}
}

/// Another one, which forgets its command and has the supervisor wait for a second one.
#[test]
#[ignore = "a process that other tests start"]
#[expect(clippy::disallowed_methods, reason = "this is its `main`")]
fn forgetful_stand_in() {
    let place: PathBuf = std::env::var_os(PLACE).expect("a place").into();
    let fault = std::env::var(FAULT).ok();
    let fault = fault.map(|text| text.parse::<Fault>().expect("a fault"));
    let scene = Scene::at(&place);
    let pool = scene.pool_with(1, KillChoice::Strongest, fault);
    let waiting = pool.take_ready(LONG).expect("a supervisor");
    let request = request(&scene.work(), &["sh", "-c", SCRIPT]);
    let mut operation = waiting.start(&request, None).expect("started");
    while !matches!(event(&mut operation), SupervisorEvent::Ended(_)) {}
    // Whoever was started meanwhile makes room for it.
    let other = pool.take_ready(LONG).expect("a supervisor");
    let path = operation.directory().path().to_owned();
    pool.keep(operation.into_spent().expect("it can serve another one"));
    assert!(pool.reclaim(&path));
    // The same supervisor, or one in its place.
    let again = pool.take_ready(LONG).expect("a supervisor");
    drop((other, again));
}

/// Runs the stand-in to its end, of whatever kind.
fn run_stand_in(scene: &Scene, fault: Option<Fault>) {
    run_one("faults::stand_in", scene, fault);
}

fn run_one(stand_in: &str, scene: &Scene, fault: Option<Fault>) {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", stand_in, "--ignored", "--quiet"])
        .env(PLACE, scene.place())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    if let Some(fault) = fault {
        command.env(FAULT, fault.to_string());
    }
    command.status().expect("a process");
}

/// Recovers, follows what still runs, and recovers again: the second time nothing changes.
fn settled(scene: &Scene) -> BTreeMap<PathBuf, Fared> {
    let mut all = BTreeMap::new();
    for (path, recovered) in recover(&scene.root()).expect("a list") {
        let fared = match recovered.expect("settled") {
            Recovered::Fenced(_) => Fared::Fenced,
            Recovered::Ended(directory, record) => ended(directory, record),
            Recovered::Running(mut operation) => loop {
                match event(&mut operation) {
                    SupervisorEvent::Ended(OperationEnd::Fenced) => break Fared::Fenced,
                    SupervisorEvent::Ended(OperationEnd::Exited(record)) => {
                        let out = read(&mut operation, SpoolStream::Out);
                        break Fared::Ended(record, out);
                    }
                    _ => {}
                }
            },
        };
        check(&path, &fared);
        all.insert(path, fared);
    }
    for (path, again) in recover(&scene.root()).expect("a list") {
        match (again.expect("settled"), &all[&path]) {
            (Recovered::Fenced(_), Fared::Fenced) => {}
            (Recovered::Ended(_, again), Fared::Ended(before, _)) => assert_eq!(again, *before),
            (again, before) => panic!("{before:?} became {again:?}"),
        }
    }
    // One whose daemon is killed ends by itself, and removes its place.
    until_so(|| {
        remove_abandoned(&scene.root()).expect("a folder");
        places(scene).is_empty()
    });
    all
}

/// The cgroups for operations of this scene.
fn places(scene: &Scene) -> Vec<PathBuf> {
    let nobody = ProcessId {
        pid: 0,
        start_ticks: 0,
        boot_id: String::new(),
    };
    let names = LeafNames::below(&scene.root()).expect("names");
    let name = names.of(&nobody);
    let prefix = name.strip_suffix("0-0").expect("what all have");
    let mut all = Vec::new();
    for mount in ["", "unified"] {
        let folder = Path::new("/sys/fs/cgroup").join(mount).join("gantry");
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        all.extend(ours.map(|entry| entry.path()));
    }
    all
}

fn ended(directory: Directory, record: ExitRecord) -> Fared {
    let out = fs::read(directory.path().join("out")).expect("a spool");
    Fared::Ended(record, out)
}

/// Exactly one fate and one end, and they fit.
fn check(path: &Path, fared: &Fared) {
    let directory = Directory::open(path).expect("a directory");
    let fate = directory.fate().expect("readable").expect("a fate");
    let exit = directory.exit().expect("readable");
    let identity = directory.identity().expect("readable");
    if let Some(cgroup) = identity.and_then(|identity| identity.cgroup) {
        // A supervisor that lives removes it after it has told the end.
        while cgroup.exists() {
            std::thread::yield_now();
        }
    }
    match (fate, fared) {
        (Fate::Fenced { .. }, Fared::Fenced) => assert_eq!(exit, None),
        (Fate::Started(start), Fared::Ended(record, out)) => {
            assert_eq!(exit.as_ref(), Some(record));
            assert_eq!(record.operation, Some(start.operation));
            assert!(expected_output().starts_with(out), "an exact prefix");
            let end = SpoolEnd {
                offset: out.len() as u64,
                checksum: Some(crc32fast::hash(out)),
            };
            assert_eq!(record.out, end);
            let child = start.child.expect("a process");
            assert!(!child.is_alive(&child.boot_id), "its tree is dead");
            assert!(record.tree_gone, "{record:?}");
        }
        (fate, fared) => panic!("{fate:?} and {fared:?}"),
    }
}

fn effects(scene: &Scene) -> usize {
    let text = fs::read_to_string(scene.work().join("effects")).unwrap_or_default();
    text.lines().count()
}

fn order(point: FaultPoint) -> usize {
    let mut all = FaultPoint::ALL.iter();
    all.position(|other| *other == point).expect("a point")
}

#[test]
fn a_daemon_without_a_fault_sees_the_end() {
    let scene = Scene::new();
    run_stand_in(&scene, None);
    let all = settled(&scene);
    assert_eq!(effects(&scene), 1);
    assert!(matches!(
        all.values().next(),
        Some(Fared::Ended(record, out))
            if record.end == ReportedEnd::Code(3) && *out == expected_output()
    ));
}

/// The points of the life of one command.
fn points_of_one_command() -> impl Iterator<Item = &'static FaultPoint> {
    FaultPoint::ALL
        .iter()
        .take_while(|point| **point != FaultPoint::AskedAgain)
}

#[test]
fn whoever_is_killed_between_two_commands_leaves_nothing_that_runs_or_looks_like_the_first() {
    for point in FaultPoint::ALL.iter().skip(points_of_one_command().count()) {
        for action in [FaultAction::KillDaemon, FaultAction::KillSupervisor] {
            let scene = Scene::new();
            let fault = Fault {
                point: *point,
                action,
            };
            run_one("faults::forgetful_stand_in", &scene, Some(fault));
            for (path, recovered) in recover(&scene.root()).expect("a list") {
                match recovered.expect("settled") {
                    Recovered::Fenced(_) => {}
                    Recovered::Ended(_, record) => assert_eq!(record.end, ReportedEnd::Code(3)),
                    Recovered::Running(_) => panic!("{point:?}: {path:?} runs"),
                }
            }
            assert_eq!(effects(&scene), 1, "{point:?}");
        }
    }
}

#[test]
fn a_daemon_killed_at_any_point_changes_nothing_that_has_begun() {
    for point in points_of_one_command() {
        let scene = Scene::new();
        let action = FaultAction::KillDaemon;
        let fault = Fault {
            point: *point,
            action,
        };
        run_stand_in(&scene, Some(fault));
        let all = settled(&scene);
        let [fared] = all.values().collect::<Vec<_>>()[..] else {
            panic!("{point:?}: {all:?}");
        };
        match fared {
            Fared::Fenced => {
                assert_eq!(effects(&scene), 0, "{point:?}");
                assert!(order(*point) < order(FaultPoint::FateLinked), "{point:?}");
            }
            Fared::Ended(record, out) => {
                assert_eq!(effects(&scene), 1, "{point:?}");
                assert_eq!(record.end, ReportedEnd::Code(3), "{point:?}");
                assert_eq!(record.cause, Cause::Exited, "{point:?}");
                assert!(*out == expected_output(), "{point:?}");
            }
        }
    }
}

#[test]
fn a_supervisor_killed_at_any_point_is_fenced_or_lost_with_its_tree_dead() {
    for point in points_of_one_command() {
        let scene = Scene::new();
        let action = FaultAction::KillSupervisor;
        let fault = Fault {
            point: *point,
            action,
        };
        run_stand_in(&scene, Some(fault));
        let all = settled(&scene);
        if order(*point) < order(FaultPoint::Waiting) {
            assert_eq!((all.len(), effects(&scene)), (0, 0), "{point:?}");
            continue;
        }
        let [fared] = all.values().collect::<Vec<_>>()[..] else {
            panic!("{point:?}: {all:?}");
        };
        assert!(effects(&scene) <= 1, "{point:?}");
        match fared {
            Fared::Fenced => {
                assert_eq!(effects(&scene), 0, "{point:?}");
                assert!(order(*point) < order(FaultPoint::FateLinked), "{point:?}");
            }
            Fared::Ended(record, _) if order(*point) < order(FaultPoint::ExitLinked) => {
                assert_eq!(record.end, ReportedEnd::Unknown, "{point:?}");
                assert_eq!(record.cause, Cause::SupervisorLost, "{point:?}");
                if order(*point) < order(FaultPoint::GateOpened) {
                    assert_eq!(effects(&scene), 0, "{point:?}");
                }
            }
            Fared::Ended(record, out) => {
                assert_eq!(record.end, ReportedEnd::Code(3), "{point:?}");
                assert!(*out == expected_output(), "{point:?}");
                assert_eq!(effects(&scene), 1, "{point:?}");
            }
        }
    }
}

#[test]
fn a_daemon_that_lives_hears_that_its_supervisor_is_lost() {
    let scene = Scene::new();
    let request = scene.shell("echo ready; setsid -f sleep 876.5; sleep 1000");
    let mut operation = scene.start(&request);
    crate::scene::until_output(&mut operation, "ready");
    let supervisor = operation.identity().expect("known").supervisor.as_pid();
    rustix::process::kill_process(supervisor.expect("a pid"), rustix::process::Signal::KILL)
        .expect("killed");
    let record = crate::scene::record(&mut operation);
    assert_eq!(record.end, ReportedEnd::Unknown);
    assert_eq!(record.cause, Cause::SupervisorLost);
    assert_eq!(record.out.checksum, Some(crc32fast::hash(b"ready\n")));
    assert!(record.tree_gone, "{record:?}");
    assert_eq!(
        operation.directory().exit().expect("a record"),
        Some(record)
    );
    assert!(operation.event(LONG).is_ok());
}

#[test]
fn without_a_cgroup_a_lost_command_is_killed_and_nothing_is_claimed() {
    let scene = Scene::new();
    let choice = KillChoice::Only(runner_supervisor::KillMethod::Sweep);
    let pool = scene.pool_with(0, choice, None);
    let mut operation = start(&pool, &scene.shell("echo $$; sleep 1000"));
    let text = crate::scene::until_output(&mut operation, "\n");
    let supervisor = operation.identity().expect("known").supervisor.as_pid();
    rustix::process::kill_process(supervisor.expect("a pid"), rustix::process::Signal::KILL)
        .expect("killed");
    let record = crate::scene::record(&mut operation);
    assert_eq!(record.cause, Cause::SupervisorLost);
    assert!(!record.tree_gone);
    let status = fs::read_to_string(format!("/proc/{}/status", text.trim()));
    assert!(
        status.is_err() || status.is_ok_and(|status| status.contains("zombie")),
        "it is dead"
    );
}
