//! Trees where there is no cgroup: only the supervisor, as subreaper, can find them.

use std::{os::unix::process::CommandExt as _, process::Command, time::Duration};

use runner_supervisor::{
    Cause, CommandRequest, Directory, KillChoice, KillMethod, Recovered, end_by_force,
};
use rustix::process::Signal;

use crate::{
    kills::running,
    scene::{Scene, record, start, until_output},
    stopped::{signal, until_stopped},
};

/// A user who may write to no cgroup.
const NOBODY: u32 = 65534;

/// Lineages whose every process ignores what asks it to end, makes another one, and is gone: all the
/// time another parent, session and group. Each process beats once. Without `rage` they end.
const STORM: &str = r#"
    use POSIX;
    $SIG{$_} = "IGNORE" for "TERM", "HUP", "INT", "CHLD";
    open(my $beats, ">>", "beats");
    for (1 .. $ARGV[0]) {
        next if fork;
        while (-e "rage") {
            syswrite($beats, ".");
            exit if fork;
            POSIX::setsid();
        }
        exit;
    }
    $| = 1;
    print "raging\n";
    sleep 1 while -e "rage";
"#;

#[test]
fn without_root_and_cgroups_storms_of_forks_and_sessions_are_killed_whole() {
    if rustix::process::geteuid().is_root() {
        return as_nobody(
            "sweeps::without_root_and_cgroups_storms_of_forks_and_sessions_are_killed_whole",
        );
    }
    for round in 0..rounds() {
        let scene = Scene::new();
        let mut request = storm(&scene, [1, 8, 50][round as usize % 3]);
        request.terms.kill_grace = Duration::from_millis(20);
        let mut operation = scene.start(&request);
        until_output(&mut operation, "raging");
        operation.cancel().expect("heard");
        let record = record(&mut operation);
        let left = left_of(&scene);
        drop(scene);
        assert_eq!(record.cause, Cause::Cancelled);
        assert_eq!(record.kill, KillMethod::Sweep);
        assert!(record.tree_gone, "{record:?}");
        assert_eq!(left, Ok(()), "round {round}");
    }
}

#[test]
fn without_a_cgroup_a_storm_under_a_stopped_supervisor_is_killed_whole_by_its_daemon() {
    let scene = Scene::new();
    let pool = scene.pool_with(0, KillChoice::Only(KillMethod::Sweep), None);
    let mut operation = start(&pool, &storm(&scene, 8));
    until_output(&mut operation, "raging");
    let identity = operation.identity().expect("known").clone();
    signal(&identity.supervisor, Signal::STOP);
    assert!(until_stopped(&identity.supervisor));
    let directory = Directory::open(operation.directory().path()).expect("a directory");
    let forced = end_by_force(directory, Cause::Timeout).expect("settled");
    let left = left_of(&scene);
    drop(scene);
    let Recovered::Ended(_, record) = forced else {
        panic!("it has no end: {forced:?}");
    };
    assert_eq!((record.cause, record.tree_gone), (Cause::Timeout, false));
    assert_eq!(left, Ok(()));
}

/// A storm of so many lineages; it has its folder in its command line.
fn storm(scene: &Scene, lineages: u32) -> CommandRequest {
    std::fs::write(scene.work().join("rage"), "").expect("a file");
    let folder = scene.work().display().to_string();
    scene.request(&["perl", "-e", STORM, &lineages.to_string(), &folder])
}

/// Whether nobody of the storm is left; whoever is has to end before anybody hears of it.
fn left_of(scene: &Scene) -> Result<(), String> {
    let seen = || (beats(scene), running(&scene.work().display().to_string()));
    let before = seen();
    std::thread::sleep(Duration::from_millis(50));
    let after = seen();
    match before.0 > 0 && before == after && after.1.is_empty() {
        true => Ok(()),
        false => Err(format!("{before:?}, {after:?}")),
    }
}

/// How many storms there are: as many as are asked for, or a few.
#[expect(clippy::disallowed_methods, reason = "this is the test's `main`")]
fn rounds() -> u32 {
    let asked = std::env::var("GANTRY_STORMS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(9)
}

fn beats(scene: &Scene) -> u64 {
    std::fs::metadata(scene.work().join("beats")).map_or(0, |beats| beats.len())
}

/// Runs this test, by its name, as somebody who is not root.
fn as_nobody(name: &str) {
    let program = std::env::current_exe().expect("this program");
    let status = Command::new(program)
        .args(["--exact", name, "--nocapture"])
        .uid(NOBODY)
        .gid(NOBODY)
        .status();
    assert!(status.is_ok_and(|status| status.success()));
}
