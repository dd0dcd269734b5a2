//! Ends that are asked for or come due, and trees that are killed whole.

use std::time::Duration;

use runner_supervisor::{
    Cause, Fate, KillChoice, KillMethod, ReportedEnd, SpoolBounds, SpoolStream, Streams,
    SupervisedOperation, SupervisorEvent, WhenFull,
};

use crate::scene::{LONG, Scene, event, finish, record, start, until_output, until_so};

const SOON: Duration = Duration::from_millis(200);

/// The pids of everybody who runs a command line with this word in it.
pub(crate) fn running(word: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("a list").flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(word) {
            found.push(pid);
        }
    }
    found
}

/// The methods with which this host can prove a death; `cgroup.kill` is one of them wherever root
/// may use a cgroup of version 2, and a host may have more.
fn proving(scene: &Scene) -> Vec<KillMethod> {
    let works = |method: &KillMethod| {
        let pool = scene.pool_with(0, KillChoice::Only(*method), None);
        *method != KillMethod::Sweep && pool.take().is_ok()
    };
    let methods: Vec<_> = KillMethod::ALL.into_iter().filter(works).collect();
    assert!(
        methods.contains(&KillMethod::CgroupKill),
        "this needs root and a cgroup of version 2; `make test` leaves it out where they are missing"
    );
    methods
}

fn start_with(scene: &Scene, method: KillMethod, script: &str) -> SupervisedOperation {
    let mut request = scene.shell(script);
    request.terms.kill_grace = SOON;
    let pool = scene.pool_with(0, KillChoice::Only(method), None);
    start(&pool, &request)
}

#[test]
fn a_cancelled_command_is_asked_first_and_may_say_goodbye() {
    let scene = Scene::new();
    let mut operation = scene.start(
        &scene.shell("trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.01; done"),
    );
    until_output(&mut operation, "ready");
    operation.cancel().expect("heard");
    // It may have ended by now, and then hears nothing more.
    let _ = operation.cancel();
    let ended = finish(&mut operation);
    assert_eq!(ended.record.cause, Cause::Cancelled);
    assert_eq!(ended.record.end, ReportedEnd::Code(4));
    assert_eq!(ended.text(), "ready\nbye\n");
    assert!(ended.record.tree_gone);
}

#[test]
fn who_is_born_while_a_command_is_asked_to_end_is_asked_as_well() {
    let scene = Scene::new();
    let script = "echo ready; for i in $(seq 1000); do sleep 1000 & done; sleep 1000";
    for method in [KillMethod::CgroupKill, KillMethod::Sweep] {
        let mut operation = start_with(&scene, method, script);
        until_output(&mut operation, "ready");
        operation.cancel().expect("heard");
        // Who had not been asked would live on for the time that all have, and none would be told in time.
        let record = record(&mut operation);
        assert_eq!(
            (record.end, record.tree_gone),
            (ReportedEnd::Signal(15), true)
        );
    }
}

#[test]
fn who_is_in_a_cgroup_below_the_commands_is_asked_as_well() {
    let scene = Scene::new();
    let script = "trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.01; done";
    let pool = scene.pool_with(0, KillChoice::Only(KillMethod::CgroupKill), None);
    let mut operation = start(&pool, &scene.shell(script));
    until_output(&mut operation, "ready");
    let Some(Fate::Started(started)) = operation.directory().fate().expect("a fate") else {
        panic!("it runs");
    };
    let (child, own) = (started.child.expect("a child"), started.identity.cgroup);
    let own = own.expect("a cgroup");
    let (below, inner) = (own.join("below"), own.join("below/inner"));
    std::fs::create_dir_all(&inner).expect("cgroups");
    std::fs::write(inner.join("cgroup.procs"), child.pid.to_string()).expect("it moves");
    operation.cancel().expect("heard");
    let ended = finish(&mut operation);
    assert_eq!(ended.record.end, ReportedEnd::Code(4));
    assert_eq!(ended.text(), "ready\nbye\n");
    for place in [inner, below, own] {
        until_so(|| std::fs::remove_dir(&place).is_ok() || !place.exists());
    }
}

#[test]
fn a_command_that_does_not_listen_is_killed() {
    let scene = Scene::new();
    let mut request = scene.shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
    request.terms.kill_grace = SOON;
    let mut operation = scene.start(&request);
    until_output(&mut operation, "ready");
    operation.cancel().expect("heard");
    let record = record(&mut operation);
    assert_eq!(record.end, ReportedEnd::Signal(9));
    assert_eq!(record.cause, Cause::Cancelled);
    assert!(record.tree_gone);
}

/// A shell script in a terminal that was stopped once it had said that it is ready.
fn cancelled_in_a_terminal(scene: &Scene, script: &str) -> SupervisedOperation {
    let mut request = scene.shell(script);
    request.terms.kill_grace = Duration::from_secs(600);
    request.terms.streams = Streams::Pty {
        rows: 40,
        columns: 120,
    };
    let mut operation = scene.start(&request);
    until_output(&mut operation, "ready");
    operation.cancel().expect("heard");
    operation
}

#[test]
fn a_shell_that_is_typed_into_ends_with_its_terminal() {
    let scene = Scene::new();
    let mut operation = cancelled_in_a_terminal(
        &scene,
        "trap '' TERM; trap 'echo bye; exit 3' HUP; echo ready; while :; do sleep 0.01; done",
    );
    let record = record(&mut operation);
    assert_eq!(
        (record.end, record.cause),
        (ReportedEnd::Code(3), Cause::Cancelled)
    );
}

#[test]
fn a_command_in_a_terminal_that_takes_its_time_to_end_has_it() {
    let scene = Scene::new();
    let mut operation = cancelled_in_a_terminal(
        &scene,
        "trap 'asked=1' TERM; echo ready; until [ $asked ]; do sleep 0.01; done; sleep 1.5; exit 3",
    );
    assert_eq!(record(&mut operation).end, ReportedEnd::Code(3));
}

#[test]
fn a_stopped_command_ends_as_well() {
    let scene = Scene::new();
    let mut operation = scene.start(&scene.shell("echo ready; kill -STOP $$; echo never"));
    until_output(&mut operation, "ready");
    operation.cancel().expect("heard");
    let record = record(&mut operation);
    assert_eq!(record.end, ReportedEnd::Signal(15));
}

#[test]
fn each_deadline_has_its_own_cause() {
    let scene = Scene::new();
    let script = scene.shell("while :; do echo tick; sleep 0.01; done");
    let mut timeout = script.clone();
    timeout.terms.run_for = Some(SOON);
    assert_eq!(scene.run(&timeout).record.cause, Cause::Timeout);
    let mut orphaned = script.clone();
    orphaned.terms.orphan_for = Some(SOON);
    assert_eq!(scene.run(&orphaned).record.cause, Cause::Orphaned);
    let mut idle = scene.shell("for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done; sleep 1000");
    idle.terms.idle_for = Some(SOON);
    let ended = scene.run(&idle);
    assert_eq!(ended.record.cause, Cause::Idle);
    assert!(ended.text().ends_with("6\n"), "{}", ended.text());
}

#[test]
fn a_command_that_waits_until_its_output_is_taken_is_not_silent() {
    let scene = Scene::new();
    let mut request = scene.shell("head -c 3000000 /dev/zero; touch written; sleep 1000");
    request.terms.idle_for = Some(SOON);
    request.terms.spool = SpoolBounds {
        bytes: 100_000,
        when_full: WhenFull::Wait,
    };
    let mut operation = scene.start(&request);
    let mut taken = 0;
    while let Some(event) = operation.event(3 * SOON).expect("readable") {
        match event {
            SupervisorEvent::Output { out, .. } => taken = out,
            SupervisorEvent::Started(_) => {}
            other => panic!("unexpected {other:?}"),
        }
    }
    assert!(!scene.work().join("written").exists());
    operation.commit(SpoolStream::Out, taken).expect("heard");
    let record = loop {
        match event(&mut operation) {
            // Fails once the command has ended, and then nothing waits for it any more.
            SupervisorEvent::Output { out, .. } => drop(operation.commit(SpoolStream::Out, out)),
            SupervisorEvent::Ended(_) => break record(&mut operation),
            _ => {}
        }
    };
    assert_eq!((record.cause, record.out.offset), (Cause::Idle, 3_000_000));
    assert!(scene.work().join("written").exists());
}

#[test]
fn a_command_that_is_cut_off_has_the_time_that_it_was_given() {
    let scene = Scene::new();
    let mut request = scene.shell("sleep 1000");
    request.terms.orphan_for = Some(SOON);
    request.terms.run_for = Some(3 * SOON);
    assert_eq!(scene.run(&request).record.cause, Cause::Timeout);
    let mut renewed = scene.start(&request);
    renewed.renew(SOON).expect("heard");
    assert_eq!(record(&mut renewed).cause, Cause::Timeout);
    request.terms.run_for = Some(LONG);
    let mut ended = scene.start(&request);
    ended.renew(Duration::ZERO).expect("heard");
    assert_eq!(record(&mut ended).cause, Cause::Orphaned);
}

#[test]
fn a_renewed_command_is_no_orphan() {
    let scene = Scene::new();
    let mut request = scene.shell("sleep 0.5; echo done");
    request.terms.orphan_for = Some(SOON);
    let mut operation = scene.start(&request);
    operation.renew(Duration::from_secs(60)).expect("heard");
    let ended = finish(&mut operation);
    assert_eq!(ended.record.cause, Cause::Exited);
    assert_eq!(ended.text(), "done\n");
}

#[test]
fn as_root_nobody_outlives_the_command_that_started_him() {
    let scene = Scene::new();
    for method in proving(&scene) {
        let word = format!("987.{}", method.as_str().len());
        let script = format!("setsid sh -c '(exec sleep {word}) & (exec sleep {word}) &'; echo $$");
        let mut operation = start_with(&scene, method, &script);
        let record = record(&mut operation);
        assert_eq!(record.end, ReportedEnd::Code(0));
        assert_eq!(record.cause, Cause::Exited);
        assert_eq!(record.kill, method);
        assert!(record.tree_gone, "{record:?}");
        assert_eq!(running(&word), Vec::<i32>::new(), "{method:?}");
    }
}

#[test]
fn as_root_a_storm_of_forks_and_sessions_is_killed_whole() {
    let scene = Scene::new();
    for method in proving(&scene) {
        // Each lineage leaves its session, its group and its parent all the time, and ignores
        // whatever asks it to end.
        let storm = scene.work().join(format!("storm-{}", method.as_str()));
        std::fs::write(
            &storm,
            "#!/bin/sh\ntrap '' TERM HUP INT\nsetsid -f \"$0\"\nexit\n",
        )
        .expect("a script");
        let word = storm.display().to_string();
        let script = format!(
            "trap '' TERM; for i in 1 2 3 4 5 6 7 8; do setsid -f sh {word}; done; \
             chmod +x {word}; for i in 1 2 3 4 5 6 7 8; do setsid -f {word}; done; \
             echo raging; while :; do sleep 1; done"
        );
        let mut operation = start_with(&scene, method, &script);
        until_output(&mut operation, "raging");
        assert!(!running(&word).is_empty(), "it rages");
        operation.cancel().expect("heard");
        let record = record(&mut operation);
        assert_eq!(record.cause, Cause::Cancelled);
        assert!(record.tree_gone, "{record:?}");
        assert_eq!(running(&word), Vec::<i32>::new(), "{method:?}");
    }
}

#[test]
fn without_a_cgroup_the_end_of_an_ordinary_command_is_known_to_be_whole() {
    for script in [
        "true",
        "sleep 1000 & echo bye",
        "setsid sleep 1000 & exit 3",
    ] {
        let scene = Scene::new();
        let record = record(&mut start_with(&scene, KillMethod::Sweep, script));
        assert_eq!(record.cause, Cause::Exited);
        assert!(record.tree_gone, "{script}: {record:?}");
    }
}

#[test]
fn a_sweep_kills_what_it_sees_until_the_supervisor_has_no_child() {
    let scene = Scene::new();
    let word = "987.654321";
    let script =
        format!("trap '' TERM; setsid sh -c '(exec sleep {word}) &'; echo ready; sleep 1000");
    let mut operation = start_with(&scene, KillMethod::Sweep, &script);
    until_output(&mut operation, "ready");
    operation.cancel().expect("heard");
    let record = record(&mut operation);
    assert_eq!(record.kill, KillMethod::Sweep);
    assert!(record.tree_gone);
    assert_eq!(running(word), Vec::<i32>::new());
}

/// A cgroup with little memory; removed when this is dropped.
struct LittleMemory(std::path::PathBuf);

impl LittleMemory {
    fn new() -> Self {
        let name = format!("gantry-test-{}", std::process::id());
        for (folder, limit) in [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ] {
            let path = std::path::Path::new(folder).join(&name);
            if std::fs::create_dir(&path).is_ok() {
                let cgroup = Self(path);
                if std::fs::write(cgroup.0.join(limit), "33554432").is_ok() {
                    return cgroup;
                }
            }
        }
        panic!("this needs root and a cgroup that bounds memory");
    }
}

impl Drop for LittleMemory {
    fn drop(&mut self) {
        // Its last process may still be leaving.
        for _ in 0..1_000 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_command_goes_before_its_supervisor_when_the_host_has_no_memory() {
    let of = |process: &str| -> i32 {
        let text = std::fs::read_to_string(format!("/proc/{process}/oom_score_adj"));
        text.expect("a score").trim().parse().expect("a number")
    };
    let scene = Scene::new();
    let mut request = scene.shell("sh -c 'cat /proc/self/oom_score_adj'; echo told; read end");
    request.terms.stdin = true;
    let mut operation = scene.start(&request);
    let told = until_output(&mut operation, "told");
    let command: i32 = told
        .lines()
        .next()
        .expect("a line")
        .parse()
        .expect("a number");
    let supervisor = operation.identity().expect("a supervisor").supervisor.pid;
    assert_eq!(command, (of("self") + 300).min(1000));
    assert!(of(&supervisor.to_string()) <= of("self"));
    operation.cancel().expect("it is heard");
    record(&mut operation);
}

#[test]
fn as_root_a_command_that_is_killed_for_want_of_memory_says_so() {
    let scene = Scene::new();
    let memory = LittleMemory::new();
    let enter = format!("echo $$ > {}/cgroup.procs", memory.0.display());
    // With a child that is killed a shell tells of it by its exit code.
    for (hog, end) in [
        ("exec tail /dev/zero", ReportedEnd::Signal(9)),
        ("tail /dev/zero; exit $?", ReportedEnd::Code(137)),
    ] {
        let ended = scene.run(&scene.shell(&format!("{enter}; {hog}")));
        assert_eq!(ended.record.end, end, "{ended:?}");
        assert_eq!(ended.record.cause, Cause::OutOfMemory);
    }
    let killed = scene.run(&scene.shell("kill -9 $$"));
    assert_eq!(killed.record.cause, Cause::Exited);
}
