//! Nothing is left behind: no process, no descriptor, no cgroup.

use std::{
    fs,
    path::{Path, PathBuf},
};

use runner_supervisor::{Ground, KillChoice, Leaf, ReportedEnd};

use crate::scene::{LONG, Scene, event, record, start};

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("a list").count()
}

/// Processes that sit in a directory below this folder, as each supervisor does.
fn inside(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir("/proc")
        .expect("a list")
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok())
        .filter(|place| place.starts_with(folder))
        .collect()
}

#[test]
fn a_thousand_commands_leave_no_process_no_descriptor_and_no_cgroup() {
    let scene = Scene::new();
    let pool = scene.pool_with(4, KillChoice::Strongest, None);
    let before = open_descriptors();
    let mut cgroups: Vec<PathBuf> = Vec::new();
    for number in 0..1_000_i32 {
        let code = number % 256;
        let request = scene.shell(&format!("exit {code}"));
        let mut operation = start(&pool, &request);
        let record = record(&mut operation);
        assert_eq!(record.end, ReportedEnd::Code(code));
        assert!(record.tree_gone, "{record:?}");
        let identity = operation.identity().expect("a supervisor");
        cgroups.extend(identity.cgroup.clone());
        fs::remove_dir_all(operation.directory().path()).expect("removed");
    }
    drop(pool);
    // Whatever is left goes by itself: those that waited see that nobody asks.
    while !inside(scene.place()).is_empty() || cgroups.iter().any(|cgroup| cgroup.exists()) {
        std::thread::yield_now();
    }
    // The pool's own descriptors are gone as well.
    assert!(open_descriptors() <= before, "{}", open_descriptors());
}

#[test]
fn a_supervisor_serves_one_command_after_another_and_nothing_of_the_first_is_seen_by_the_next() {
    let scene = Scene::new();
    let pool = scene.pool_with(1, KillChoice::Strongest, None);
    let waiting = pool.take_ready(LONG).expect("a supervisor");
    let supervisor = waiting.identity().supervisor.clone();
    let script = "echo first; echo wrong >&2; head -c 3000000 /dev/zero; exit 9";
    let mut request = scene.shell(script);
    request.terms.orphan_for = Some(LONG);
    request.terms.spool.bytes = 2 * 1024 * 1024;
    let mut first = waiting.start(&request, None).expect("started");
    assert_eq!(record(&mut first).end, ReportedEnd::Code(9));
    let before = first.directory().path().to_owned();
    // Whoever was started meanwhile makes room for it.
    let other = pool.take_ready(LONG).expect("a supervisor");
    pool.keep(first.into_spent().expect("it can serve another one"));
    assert!(pool.reclaim(&before));
    let again = loop {
        let waiting = pool.take_ready(LONG).expect("a supervisor");
        if waiting.identity().supervisor == supervisor {
            break waiting;
        }
    };
    assert!(!before.exists(), "the name is given once");
    let mut second = again.start(&scene.shell("echo second; exit 8"), None);
    let ended = crate::scene::finish(second.as_mut().expect("started"));
    assert_eq!(ended.record.end, ReportedEnd::Code(8));
    assert_eq!((ended.text(), ended.err.as_slice()), ("second\n", &b""[..]));
    drop(other);
}

#[test]
fn a_command_that_is_not_forgotten_keeps_its_records_and_no_supervisor() {
    let scene = Scene::new();
    let pool = scene.pool_with(1, KillChoice::Strongest, None);
    let waiting = pool.take_ready(LONG).expect("a supervisor");
    let supervisor = waiting.identity().supervisor.clone();
    let mut operation = waiting
        .start(&scene.shell("echo kept"), None)
        .expect("started");
    let ended = crate::scene::finish(&mut operation);
    let directory = operation.directory().path().to_owned();
    pool.keep(operation.into_spent().expect("it can serve another one"));
    crate::scene::until_so(|| !supervisor.is_alive(&supervisor.boot_id));
    assert!(!pool.reclaim(&directory), "it is the caller's to remove");
    let kept = runner_supervisor::Directory::open(&directory).expect("a directory");
    assert_eq!(kept.exit().expect("readable"), Some(ended.record));
    assert_eq!(fs::read(directory.join("out")).expect("a spool"), b"kept\n");
}

#[test]
fn zombies_that_a_command_abandons_are_collected_while_it_runs() {
    let scene = Scene::new();
    let script =
        "for i in $(seq 50); do sh -c 'sleep 0.01 & exit'; done; sleep 0.2; echo ready; read end";
    let mut request = scene.shell(script);
    request.terms.stdin = true;
    let mut operation = scene.start(&request);
    crate::scene::until_output(&mut operation, "ready");
    let supervisor = operation.identity().expect("known").supervisor.pid;
    let children = fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children"));
    let children = children.expect("a list");
    assert_eq!(children.split_whitespace().count(), 1, "{children}");
    operation.input(0, b"", true).expect("heard");
    while !matches!(
        event(&mut operation),
        runner_supervisor::SupervisorEvent::Ended(_)
    ) {}
}

#[test]
fn a_command_inherits_nothing_but_its_three_descriptors() {
    let scene = Scene::new();
    let ended = scene.run(&scene.request(&["ls", "/proc/self/fd"]));
    // The fourth is the list that `ls` reads.
    assert_eq!(ended.text(), "0\n1\n2\n3\n");
}

#[test]
fn as_root_the_supervisor_sits_outside_what_it_kills() {
    let scene = Scene::new();
    let choice = KillChoice::Only(runner_supervisor::KillMethod::CgroupKill);
    let leaf = Leaf::create(&Ground::read(choice), "probe");
    let leaf = leaf.expect(
        "this needs root and a cgroup of version 2; `make test` leaves it out where they are missing",
    );
    leaf.remove().expect("it is empty");
    let mut request = scene.shell("cat /proc/self/cgroup; echo .; read end");
    request.terms.stdin = true;
    let mut operation = scene.start(&request);
    let inside = crate::scene::until_output(&mut operation, ".\n");
    let supervisor = operation.identity().expect("known").supervisor.pid;
    let outside = fs::read_to_string(format!("/proc/{supervisor}/cgroup")).expect("a cgroup");
    let v2 = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("0::"));
        line.expect("version 2").to_owned()
    };
    assert!(v2(&outside).ends_with("/gantry/supervisors"), "{outside}");
    let inside = v2(&inside);
    let (folder, name) = inside.rsplit_once('/').expect("a path");
    assert!(
        folder.ends_with("/gantry") && name.contains(&format!("-{supervisor}-")),
        "{inside}"
    );
    operation.input(0, b"", true).expect("heard");
    record(&mut operation);
}
