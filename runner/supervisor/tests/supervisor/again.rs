//! One supervisor, several commands: what one of them has done is not met by the next.

use runner_supervisor::{
    Cause, Gap, GapLog, KillChoice, KillMethod, ReportedEnd, SpoolPiece, SpoolReader, SpoolStream,
    SupervisedOperation, SupervisorPool,
};
use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process},
};

use crate::scene::{LONG, Scene, finish, record, start, until_output};

/// The command is forgotten, and its supervisor is to serve the next one.
fn forget(pool: &SupervisorPool, operation: SupervisedOperation) {
    let directory = operation.directory().path().to_owned();
    pool.keep(operation.into_spent().expect("it can serve another one"));
    assert!(pool.reclaim(&directory));
}

fn supervisor(operation: &SupervisedOperation) -> i32 {
    operation.identity().expect("known").supervisor.pid
}

#[test]
fn after_a_command_whose_tree_was_killed_the_next_one_lives_and_can_fork() {
    for method in KillMethod::ALL {
        let scene = Scene::new();
        let pool = scene.pool_with(0, KillChoice::Only(method), None);
        let waiting = pool.take().expect("the host has both ways");
        let script = "for i in 1 2 3 4 5 6 7 8; do sleep 1000 >&- 2>&- & done; exit 5";
        let first = waiting.start(&scene.shell(script), None);
        let mut operation = first.expect("started");
        let served_by = supervisor(&operation);
        for _ in 0..10 {
            assert_eq!(
                record(&mut operation).end,
                ReportedEnd::Code(5),
                "{method:?}"
            );
            assert_eq!(supervisor(&operation), served_by, "{method:?}");
            forget(&pool, operation);
            operation = start(&pool, &scene.shell(script));
        }
        assert_eq!(
            record(&mut operation).end,
            ReportedEnd::Code(5),
            "{method:?}"
        );
    }
}

/// Begins a process that leaves the command's cgroup for the root of all, which root may, and whose
/// number it writes down. The supervisor is its parent once the shell is gone.
const LEAVE: &str = "(mount=$(awk '$3 == \"cgroup2\" { print $2; exit }' /proc/mounts); \
    setsid sh -c 'echo $$ > '$mount'/cgroup.procs; echo $$ > left; exec sleep 1000' \
    >&- 2>&- &); until test -s left; do :; done";

fn who_left(scene: &Scene) -> Pid {
    let left = std::fs::read_to_string(scene.work().join("left")).expect("its pid");
    Pid::from_raw(left.trim().parse().expect("a number")).expect("a pid")
}

#[test]
fn a_process_that_left_the_cgroup_of_its_command_ends_with_it() {
    let scene = Scene::new();
    for method in [KillMethod::CgroupKill, KillMethod::Sweep] {
        let pool = scene.pool_with(0, KillChoice::Only(method), None);
        let mut first = start(&pool, &scene.shell(LEAVE));
        let ended = record(&mut first);
        assert_eq!((ended.end, ended.tree_gone), (ReportedEnd::Code(0), true));
        let left = kill_process(who_left(&scene), Signal::CONT);
        assert_eq!(left, Err(Errno::SRCH), "{method:?}");
        std::fs::remove_file(scene.work().join("left")).expect("it is there");
    }
}

#[test]
fn a_stopped_command_takes_with_it_who_left_its_cgroup_and_its_supervisor_serves_again() {
    for method in [KillMethod::CgroupKill, KillMethod::Sweep] {
        let scene = Scene::new();
        let pool = scene.pool_with(0, KillChoice::Only(method), None);
        let mut first = start(
            &pool,
            &scene.shell(&format!("{LEAVE}; echo ready; sleep 1000")),
        );
        let served_by = supervisor(&first);
        until_output(&mut first, "ready");
        first.cancel().expect("it hears");
        let ended = record(&mut first);
        assert_eq!((ended.cause, ended.tree_gone), (Cause::Cancelled, true));
        let left = kill_process(who_left(&scene), Signal::CONT);
        assert_eq!(left, Err(Errno::SRCH), "{method:?}");
        forget(&pool, first);
        let waiting = pool.take().expect("a supervisor");
        assert_eq!(waiting.identity().supervisor.pid, served_by, "{method:?}");
        let mut second = waiting
            .start(&scene.shell("exit 6"), None)
            .expect("started");
        assert_eq!(record(&mut second).end, ReportedEnd::Code(6));
    }
}

#[test]
fn the_gaps_of_a_command_are_not_the_next_ones() {
    let scene = Scene::new();
    let pool = scene.pool_with(0, KillChoice::Strongest, None);
    let mut request = scene.shell("head -c 9000000 /dev/zero");
    request.terms.spool.bytes = 2 * 1024 * 1024;
    let mut first = start(&pool, &request);
    let out = finish(&mut first).out.len();
    assert!(out < 9_000_000, "{out}");
    forget(&pool, first);
    let mut second = start(&pool, &scene.shell("echo second"));
    assert_eq!(finish(&mut second).text(), "second\n");
    let log = GapLog::open(second.directory()).expect("a log");
    assert_eq!(
        log.gaps(SpoolStream::Out).expect("readable"),
        Vec::<Gap>::new()
    );
    let reader = SpoolReader::open(second.directory(), SpoolStream::Out).expect("a spool");
    let found = reader.read(0, &mut [0; 99]).expect("readable");
    assert_eq!(found, SpoolPiece::Bytes("second\n".len()));
}

#[test]
fn a_supervisor_that_dies_while_it_waits_again_leaves_nothing() {
    let scene = Scene::new();
    let pool = scene.pool_with(1, KillChoice::Strongest, None);
    let waiting = pool.take_ready(LONG).expect("a supervisor");
    let identity = waiting.identity().clone();
    let mut first = waiting
        .start(&scene.shell("exit 5"), None)
        .expect("started");
    assert_eq!(record(&mut first).end, ReportedEnd::Code(5));
    let directory = first.directory().path().to_owned();
    // Another one waits meanwhile, so that this one is not asked at once.
    while scene.root().read_dir().expect("a folder").count() < 2 {
        std::thread::yield_now();
    }
    forget(&pool, first);
    let pid = identity.supervisor.as_pid().expect("a pid");
    kill_process(pid, Signal::KILL).expect("it is there");
    while directory.exists()
        || identity
            .cgroup
            .as_ref()
            .is_some_and(|cgroup| cgroup.exists())
    {
        std::thread::yield_now();
    }
}

#[test]
fn a_supervisor_that_is_not_wanted_after_all_leaves_nothing() {
    let scene = Scene::new();
    let pool = scene.pool_with(1, KillChoice::Strongest, None);
    for _ in 0..5 {
        let waiting = pool.take_ready(LONG).expect("a supervisor");
        let identity = waiting.identity().clone();
        let directory = waiting.directory().path().to_owned();
        pool.discard(waiting);
        // Its socket closes a moment before it is gone.
        while directory.exists() || identity.supervisor.is_alive(&identity.supervisor.boot_id) {
            std::thread::yield_now();
        }
        assert!(identity.cgroup.is_none_or(|cgroup| !cgroup.exists()));
    }
}
