//! Containers of a real engine. `tests/run` starts one for as long as the tests take, builds the image of the
//! template `base` there, and says where it listens.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bollard::{
    API_DEFAULT_VERSION, Docker,
    models::{ContainerConfig, HealthStatusEnum},
    query_parameters::{CommitContainerOptionsBuilder, RemoveImageOptionsBuilder},
};
use runner_host::HostEvent;
use runner_supervisor::{SpoolBounds, Sync, WhenFull};
use shared_sandbox::{
    Command, Exec, ExitCause, ExitRecord, ExitStatus, Outcome, OutputStream, Read, Request, Write,
};
use shared_types::{OperationId, OsEntropy, SandboxLimits, SandboxNetwork, SystemClock};
use tempfile::TempDir;
use tokio::{runtime::Runtime, time::timeout};

mod sudo;

use super::*;
use crate::{
    processes::{
        PassingControls, Process, ProcessEnd, ProcessEvent, ProcessTerms, Spool, SpoolRead,
    },
    sandboxes::ServedSandbox,
    testing::supervisor,
};

/// What nothing here takes, unless it hangs.
const LONG: Duration = Duration::from_secs(60);

/// The home of a daemon with a pool, and an engine that is there.
struct Scene {
    folder: TempDir,
    runner: RunnerId,
}

impl Scene {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            runner: RunnerId::generate(&SystemClock::new(), &OsEntropy),
        }
    }

    /// What a daemon begins with.
    async fn pool(&self) -> (ContainerPool, Vec<(PathBuf, LeftOperation)>) {
        let opened = ContainerPool::open(self.options());
        opened.await.expect("a pool")
    }

    /// How it is started.
    fn options(&self) -> PoolOptions {
        PoolOptions {
            runner: self.runner,
            docker: DockerOptions {
                socket: socket(),
                templates: vec![
                    template("base", SandboxPrivilege::Strict),
                    template("root", SandboxPrivilege::Sudo),
                ],
                warm: 1,
            },
            root: self.folder.path().join("sandboxes"),
            supervisor: supervisor(),
            clock: Arc::new(SystemClock::new()),
            entropy: Arc::new(OsEntropy),
        }
    }

    fn id(&self, name: &str) -> SandboxId {
        SandboxId::derive(self.runner, name)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let runner = self.runner;
        let removed = std::thread::spawn(move || {
            Runtime::new().expect("a runtime").block_on(async {
                let engine = Engine::connect(&socket(), runner).await.expect("an engine");
                for (container, sandbox) in engine.all().await.expect("a list") {
                    engine.remove_orphan(&container).await.expect("removed");
                    for volume in ["workspace", "home"] {
                        let id = sandbox.expect("a sandbox");
                        engine.remove_volume(id, volume).await.expect("removed");
                    }
                }
            });
        });
        let removed = removed.join();
        assert!(
            removed.is_ok() || std::thread::panicking(),
            "nothing is left"
        );
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no main that could pass it down"
)]
fn socket() -> String {
    std::env::var("GANTRY_TEST_DOCKER").expect("tests/run says where an engine listens")
}

fn template(name: &str, privilege: SandboxPrivilege) -> Template {
    Template {
        name: name.to_owned(),
        image: "gantry/base:1".to_owned(),
        privilege,
    }
}

fn spec(name: &str) -> SandboxSpec {
    SandboxSpec {
        name: name.to_owned(),
        template: "base".to_owned(),
        limits: SandboxLimits::default(),
        network: SandboxNetwork::None,
        may_sudo: false,
    }
}

fn ensure(spec: SandboxSpec) -> SandboxOrder {
    SandboxOrder::Ensure { spec, start: false }
}

fn shell(script: &str) -> Exec {
    Exec::new(Command::Shell(script.to_owned()))
}

async fn start(container: &Container, exec: &Exec) -> Process {
    let running = container.ready().await.expect("it runs");
    let plan = running.inhabited.plan(exec).expect("a plan");
    let waiting = running.processes.take().await.expect("a supervisor");
    let terms = ProcessTerms {
        run_for: LONG,
        orphan_for: LONG,
        kill_grace: Duration::from_secs(1),
        spool: SpoolBounds {
            bytes: 64 * 1024 * 1024,
            when_full: WhenFull::Gap { tail: 1024 * 1024 },
        },
        sync: Sync::Nothing,
        claim: None,
    };
    let id = OperationId::from_u128(7);
    running
        .processes
        .start(waiting, id, plan, terms, PassingControls::new())
}

async fn record(process: &mut Process) -> ExitRecord {
    loop {
        let event = timeout(LONG, process.events.recv()).await.expect("in time");
        match event.expect("an event") {
            ProcessEvent::Ended(ProcessEnd::Outcome(Outcome::Exited(record))) => return record,
            ProcessEvent::Ended(other) => panic!("another end: {other:?}"),
            _ => {}
        }
    }
}

fn output(spool: &mut Spool) -> String {
    let mut text = Vec::new();
    for stream in [OutputStream::Stdout, OutputStream::Stderr] {
        let mut at = 0;
        while let SpoolRead::Bytes(bytes) = spool.read(stream, at, 65536).expect("readable") {
            at += bytes.len() as u64;
            text.extend(bytes);
        }
    }
    String::from_utf8(text).expect("text")
}

async fn run(container: &Container, script: &str) -> (ExitRecord, String) {
    let mut process = start(container, &shell(script)).await;
    let record = record(&mut process).await;
    let said = output(&mut process.spool);
    process.spool.forget();
    (record, said)
}

#[tokio::test]
async fn a_command_runs_as_an_ordinary_user_without_any_privilege() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let container = pool
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    let (record, said) = run(
        &container,
        "id -u; id -G; pwd; echo $HOME; grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; \
         touch /workspace/mine && echo kept; touch /x; echo err >/dev/stderr; exit 5",
    )
    .await;
    assert_eq!(record.status, ExitStatus::Code(5), "{said}");
    for line in [
        "1000\n1000\n/workspace\n/home/user\n",
        "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\n",
        "kept\n",
        "Read-only file system",
        "err\n",
    ] {
        assert!(said.contains(line), "{line:?} is missing in {said}");
    }
}

#[tokio::test]
async fn supervisors_of_a_container_serve_one_command_after_another() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let container = pool
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    let mut supervisors = BTreeSet::new();
    for _ in 0..8 {
        // What is left behind ends with its command, and does not keep the supervisor from another one.
        let script = "sleep 1000 >&- 2>&- & echo $PPID";
        let (record, said) = run(&container, script).await;
        assert_eq!(
            (record.status, record.tree_gone),
            (ExitStatus::Code(0), true)
        );
        supervisors.insert(said);
    }
    assert!(supervisors.len() < 8, "{supervisors:?}");
    let (_, said) = run(&container, "pgrep -c sleep").await;
    assert_eq!(said, "0\n");
}

#[tokio::test]
async fn a_container_that_is_stopped_leaves_no_directory_of_its_supervisors() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let container = pool
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    for _ in 0..3 {
        run(&container, "true").await;
    }
    container.stop("a test").await;
    let directories = || {
        let entries = fs::read_dir(container.operations()).expect("a folder");
        entries
            .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir()))
            .count()
    };
    let all_are_gone = async {
        while directories() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, all_are_gone).await.expect("nothing is left");
}

#[tokio::test]
async fn files_stay_when_the_container_is_stopped_and_when_it_is_removed_by_hand() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let container = pool
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    run(
        &container,
        "echo here > /workspace/file; echo there > ~/file",
    )
    .await;
    container.stop("a test").await;
    let (_, said) = run(&container, "cat /workspace/file ~/file").await;
    assert_eq!(said, "here\nthere\n");
    let engine = Engine::connect(&socket(), scene.runner)
        .await
        .expect("an engine");
    pool.news().await;
    engine.remove(scene.id("a")).await.expect("removed");
    let again = run(&container, "cat /workspace/file ~/file");
    let ((_, said), reports) = tokio::join!(again, pool.news());
    assert_eq!(said, "here\nthere\n");
    let begun = reports
        .iter()
        .find(|report| report.state == SandboxState::Starting);
    let why = &begun.expect("a report").reason;
    assert!(why.contains("removed by hand"), "{why}");
    // Not where it is removed with its files.
    pool.order(scene.id("a"), SandboxOrder::Remove);
    let anew = pool
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    let (_, said) = run(&anew, "ls -A /workspace").await;
    assert_eq!(said, "");
}

#[tokio::test]
async fn what_runs_in_a_container_that_is_removed_ends_because_of_that_with_its_output() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let container = pool
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    let mut process = start(&container, &shell("echo one; sleep 1000")).await;
    until(&mut process, "one").await;
    let engine = Engine::connect(&socket(), scene.runner)
        .await
        .expect("an engine");
    engine.remove(scene.id("a")).await.expect("removed");
    let record = record(&mut process).await;
    assert_eq!(record.cause, ExitCause::SandboxStopped);
    assert_eq!(record.status, ExitStatus::Unknown);
    assert!(record.tree_gone);
    assert_eq!(output(&mut process.spool), "one\n");
    container.check(Ok(false)).await;
    let reports = pool.news().await;
    let last = reports
        .iter()
        .find(|report| report.sandbox == scene.id("a"));
    let last = last.expect("a report");
    assert_eq!(last.state, SandboxState::Stopped);
    assert!(last.reason.contains("removed by hand"), "{}", last.reason);
}

#[test]
fn the_next_daemon_goes_on_with_what_runs_in_a_container() {
    let scene = Scene::new();
    let runtime = Runtime::new().expect("a runtime");
    let script = "echo one; until test -e go; do sleep 0.01; done; echo two; exit 5";
    runtime.block_on(async {
        let (pool, _) = scene.pool().await;
        let container = pool
            .order(scene.id("a"), ensure(spec("a")))
            .expect("a sandbox");
        let mut process = start(&container, &shell(script)).await;
        until(&mut process, "one").await;
    });
    // What a daemon that is killed leaves: its tasks are gone without a word.
    runtime.shutdown_background();
    Runtime::new().expect("a runtime").block_on(async {
        let (pool, left) = scene.pool().await;
        let running = left.into_iter().filter_map(|(_, left)| match left {
            LeftOperation::Running(process) => Some(process),
            _ => None,
        });
        let [mut process] = <[Process; 1]>::try_from(running.collect::<Vec<_>>()).expect("one");
        let [(id, container)] = &pool.sandboxes()[..] else {
            panic!("not one sandbox");
        };
        assert_eq!(*id, scene.id("a"));
        run(container, "touch go").await;
        let record = record(&mut process).await;
        assert_eq!(record.status, ExitStatus::Code(5));
        assert_eq!(output(&mut process.spool), "one\ntwo\n");
    });
}

#[test]
fn what_ran_when_daemon_and_container_died_is_known_to_have_ended() {
    let scene = Scene::new();
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (pool, _) = scene.pool().await;
        let container = pool
            .order(scene.id("a"), ensure(spec("a")))
            .expect("a sandbox");
        let mut process = start(&container, &shell("echo one; sleep 1000")).await;
        until(&mut process, "one").await;
    });
    runtime.shutdown_background();
    Runtime::new().expect("a runtime").block_on(async {
        let engine = Engine::connect(&socket(), scene.runner)
            .await
            .expect("an engine");
        engine.stop(scene.id("a")).await.expect("stopped");
        engine.start(scene.id("a")).await.expect("started");
        let (_pool, left) = scene.pool().await;
        let ended = left.into_iter().find_map(|(_, left)| match left {
            LeftOperation::Ended { outcome, files, .. } => Some((outcome, files)),
            _ => None,
        });
        let (outcome, mut files) = ended.expect("it has ended");
        let Outcome::Exited(record) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(record.cause, ExitCause::SandboxStopped);
        assert_eq!(output(&mut files), "one\n");
    });
}

#[tokio::test]
async fn a_whole_tree_is_ended_and_the_neighbour_goes_on() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let container = pool
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    let mut neighbour = start(&container, &shell("echo up; sleep 1000")).await;
    until(&mut neighbour, "up").await;
    let tree = "(setsid sh -c 'trap \"\" TERM; sleep 999 & wait' &) ; sleep 998 & echo up; wait";
    let mut process = start(&container, &shell(tree)).await;
    until(&mut process, "up").await;
    process.control.cancel();
    let ended = record(&mut process).await;
    assert_eq!(ended.cause, ExitCause::Cancelled);
    assert!(ended.tree_gone);
    let (_, left) = run(&container, "ps -eo args | grep -E '^sleep' | sort").await;
    assert_eq!(left, "sleep 1000\n");
}

#[tokio::test]
async fn a_hungry_command_is_killed_and_told_so_and_the_neighbour_goes_on() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let little = SandboxLimits {
        memory_bytes: 96 << 20,
        ..SandboxLimits::default()
    };
    let hungry = SandboxSpec {
        limits: little,
        ..spec("a")
    };
    let container = pool
        .order(scene.id("a"), ensure(hungry))
        .expect("a sandbox");
    let mut neighbour = start(&container, &shell("echo up; sleep 1000")).await;
    until(&mut neighbour, "up").await;
    let (record, said) = run(&container, "python3 -c 'x = \"a\" * (400 << 20)'").await;
    assert_eq!(record.cause, ExitCause::OutOfMemory, "{record:?} {said}");
    let (record, said) = run(&container, "pgrep -f 'sleep 1000' | wc -l").await;
    assert_eq!(
        (record.status, said.trim() != "0"),
        (ExitStatus::Code(0), true),
        "{said}"
    );
}

#[tokio::test]
async fn a_fork_bomb_meets_its_limit_ends_when_told_to_and_leaves_a_sandbox_that_works() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let container = pool
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    let bomb = "f() { f | f & }; f; while :; do sleep 1; done";
    let mut process = start(&container, &shell(bomb)).await;
    until(&mut process, "Resource temporarily unavailable").await;
    process.control.cancel();
    let ended = record(&mut process).await;
    assert_eq!(ended.cause, ExitCause::Cancelled);
    assert!(ended.tree_gone);
    let (record, said) = run(&container, "echo works").await;
    assert_eq!(
        (record.status, said.as_str()),
        (ExitStatus::Code(0), "works\n")
    );
}

#[test]
fn a_new_sandbox_is_a_container_that_waited_and_the_next_daemon_finds_its_files() {
    let scene = Scene::new();
    let runtime = Runtime::new().expect("a runtime");
    let waiting = runtime.block_on(takes_what_waited(&scene));
    runtime.shutdown_background();
    Runtime::new().expect("a runtime").block_on(async {
        let (pool, _) = scene.pool().await;
        let engine = pool.around.engine().await.expect("an engine");
        until_removed(&pool).await;
        let all = engine.all().await.expect("a list");
        assert_eq!(pool.sweep(&engine, all).await, []);
        let left = engine.all().await.expect("a list");
        assert_eq!(left, waiting, "the spare one is gone");
        let container = pool
            .order(scene.id("a"), ensure(spec("a")))
            .expect("a sandbox");
        let (_, said) = run(&container, "cat file").await;
        assert_eq!(said, "here\nmore\n");
    });
}

async fn until_removed(pool: &ContainerPool) {
    let removals: Vec<_> = lock(&pool.removals).drain().collect();
    for (_, removal) in removals {
        removal.done.await.expect("it does not panic");
    }
}

#[test]
fn a_copied_home_that_says_of_a_persons_container_that_it_is_spare_costs_no_file() {
    let scene = Scene::new();
    let runtime = Runtime::new().expect("a runtime");
    let spare = runtime.block_on(async {
        let (pool, _) = scene.pool().await;
        let template = pool.around.docker.templates[0].clone();
        pool.warm_up(&template).await;
        let spare = lock(&pool.spares)[0].clone();
        let note = spare.folder().join("sandbox.json");
        let copied = fs::read(&note).expect("a note");
        let container = pool
            .order(scene.id("a"), ensure(spec("a")))
            .expect("a sandbox");
        run(&container, "echo mine > file").await;
        fs::write(note, copied).expect("it is written");
        spare.body()
    });
    runtime.shutdown_background();
    Runtime::new().expect("a runtime").block_on(async {
        let (pool, _) = scene.pool().await;
        until_removed(&pool).await;
        let engine = pool.around.engine().await.expect("an engine");
        assert_eq!(engine.all().await.expect("a list"), []);
        let again = spec("b");
        let body = Container::new(spare, again, Arc::clone(&pool.around), None);
        let (_, said) = run(&body, "cat file").await;
        assert_eq!(said, "mine\n");
    });
}

#[test]
fn a_spare_container_is_removed_whose_programs_are_gone() {
    let scene = Scene::new();
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (pool, _) = scene.pool().await;
        pool.warm_up(&pool.around.docker.templates[0]).await;
    });
    runtime.shutdown_background();
    Runtime::new().expect("a runtime").block_on(async {
        let other = tempfile::tempdir().expect("a folder");
        let newer = other.path().join("gantry-supervisor");
        for program in ["gantry-supervisor", "gantry-files"] {
            let mut bytes = fs::read(supervisor().with_file_name(program)).expect("a program");
            bytes.push(0);
            fs::write(other.path().join(program), bytes).expect("it is written");
        }
        let updated = ContainerPool::open(PoolOptions {
            supervisor: newer,
            ..scene.options()
        });
        let (pool, _) = updated.await.expect("a pool");
        let removed = timeout(LONG, until_removed(&pool)).await;
        removed.expect("it is not tried for ever");
        let engine = pool.around.engine().await.expect("an engine");
        assert_eq!(engine.all().await.expect("a list"), []);
    });
}

#[tokio::test]
async fn no_check_of_an_images_health_runs_and_no_volume_of_its_own_stays() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let container = pool
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    run(&container, "true").await;
    let docker = Docker::connect_with_unix(&socket(), 60, API_DEFAULT_VERSION).expect("an engine");
    let image = format!("gantry/test:{}", scene.runner);
    let (repository, tag) = image.split_once(':').expect("a tag");
    let changed = CommitContainerOptionsBuilder::new()
        .container(&format!("gantry-{}", scene.id("a")))
        .repo(repository)
        .tag(tag)
        .changes("VOLUME /data\nHEALTHCHECK --interval=1s CMD touch /data/checked");
    let made = docker.commit_container(changed.build(), ContainerConfig::default());
    made.await.expect("an image");
    let mut options = scene.options();
    for privilege in [SandboxPrivilege::Strict, SandboxPrivilege::Sudo] {
        options.docker.templates.push(Template {
            image: image.clone(),
            ..template(privilege.name(), privilege)
        });
    }
    let (pool, _) = ContainerPool::open(options).await.expect("a pool");
    let engine = pool.around.engine().await.expect("an engine");
    for name in ["strict", "sudo"] {
        let of_image = SandboxSpec {
            template: name.to_owned(),
            may_sudo: true,
            ..spec(name)
        };
        let container = pool.order(scene.id(name), ensure(of_image));
        let container = container.expect("a sandbox");
        run(&container, "echo mine > /workspace/file").await;
        let named = format!("gantry-{}", scene.id(name));
        let found = docker.inspect_container(&named, None).await;
        let found = found.expect("it is there");
        let health = found.state.expect("a state").health;
        let status = health.and_then(|health| health.status);
        assert!(
            matches!(status, None | Some(HealthStatusEnum::NONE)),
            "{status:?}"
        );
        let mounts = found.mounts.expect("mounts").into_iter();
        let mut own = mounts.filter(|mount| mount.destination.as_deref() == Some("/data"));
        let own = own.next().expect("a volume").name.expect("a name");
        docker.inspect_volume(&own).await.expect("it is there");
        engine.remove(scene.id(name)).await.expect("removed");
        assert!(docker.inspect_volume(&own).await.is_err(), "it is gone");
        let (_, said) = run(&container, "cat /workspace/file").await;
        assert_eq!(said, "mine\n");
        engine.remove(scene.id(name)).await.expect("removed");
    }
    let options = RemoveImageOptionsBuilder::new().force(true).build();
    let removed = docker.remove_image(&image, Some(options), None).await;
    removed.expect("removed");
}

/// A sandbox takes the container that waits, and another one waits then; returns the first.
async fn takes_what_waited(scene: &Scene) -> Vec<(String, Option<SandboxId>)> {
    let (pool, _) = scene.pool().await;
    let template = pool.around.docker.templates[0].clone();
    pool.warm_up(&template).await;
    let engine = pool.around.engine().await.expect("an engine");
    let waiting = engine.all().await.expect("a list");
    assert_eq!(waiting.len(), 1);
    let limited = SandboxSpec {
        limits: SandboxLimits {
            processes: 50,
            ..SandboxLimits::default()
        },
        ..spec("limited")
    };
    let other = pool.order(scene.id("limited"), ensure(limited));
    assert!(
        !other.expect("a sandbox").seems_to_run(),
        "the one that waits has other limits"
    );
    let container = pool
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    assert!(container.seems_to_run(), "at once");
    run(&container, "echo here > file").await;
    assert_eq!(engine.all().await.expect("a list"), waiting);
    container.stop("a test").await;
    run(&container, "echo more >> file").await;
    assert_eq!(engine.all().await.expect("a list"), waiting, "the same one");

    pool.warm_up(&template).await;
    waiting
}

#[tokio::test]
async fn one_that_fell_idle_is_stopped_unless_a_command_came_before() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let idle_at_once = SandboxSpec {
        limits: SandboxLimits {
            idle_for_ms: 0,
            ..SandboxLimits::default()
        },
        ..spec("a")
    };
    let container = pool.order(scene.id("a"), ensure(idle_at_once));
    let container = container.expect("a sandbox");
    let mut process = start(&container, &shell("echo runs; exec sleep 1000")).await;
    until(&mut process, "runs").await;

    assert!(container.falls_idle());
    let _again = container.ready().await.expect("it runs");
    container.rest().await;
    assert!(container.seems_to_run());
    run(&container, "true").await;
    let event = process.events.try_recv();
    assert!(!matches!(event, Ok(ProcessEvent::Ended(_))), "it goes on");

    assert!(container.falls_idle());
    container.rest().await;
    let end = record(&mut process).await;
    assert_eq!(
        end.status,
        ExitStatus::Unknown,
        "it ended with the container"
    );
}

#[tokio::test]
async fn one_that_is_stopped_while_it_starts_is_not_taken_to_run() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let container = pool
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    let starting = tokio::spawn({
        let container = container.clone();
        async move { container.ready().await.map(drop) }
    });
    let is_about_to = |report: &SandboxReport| report.state == SandboxState::Starting;
    while !pool.news().await.iter().any(is_about_to) {}
    container.stop("it was stopped on request").await;
    starting.await.expect("no panic").expect("it starts first");
    assert!(!container.seems_to_run());
    container.check(Ok(false)).await;
    let reports = pool.news().await;
    let last = reports.first().expect("a report");
    assert_eq!(
        (last.state, last.reason.as_str()),
        (SandboxState::Stopped, "it was stopped on request")
    );
}

#[test]
fn a_command_goes_on_under_the_next_daemon_although_its_container_has_no_room_for_a_process() {
    let scene = Scene::new();
    let runtime = Runtime::new().expect("a runtime");
    // Its last step needs no process.
    let script = "mkfifo never; (while :; do sleep 1000 & done); read line < never";
    runtime.block_on(async {
        let (pool, _) = scene.pool().await;
        let container = pool
            .order(scene.id("a"), ensure(spec("a")))
            .expect("a sandbox");
        let mut process = start(&container, &shell(script)).await;
        until(&mut process, "Resource temporarily unavailable").await;
    });
    runtime.shutdown_background();
    Runtime::new().expect("a runtime").block_on(async {
        let (_pool, left) = scene.pool().await;
        let mut running = left.into_iter().filter_map(|(_, left)| match left {
            LeftOperation::Running(process) => Some(process),
            LeftOperation::Fenced(_) => None,
            other => panic!("{other:?}"),
        });
        let mut process = running.next().expect("it runs");
        process.control.cancel();
        assert_eq!(record(&mut process).await.cause, ExitCause::Cancelled);
    });
}

#[tokio::test]
async fn of_a_container_that_no_note_tells_of_the_files_stay() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let container = pool
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    run(&container, "echo here > file").await;
    let older = Scene {
        folder: tempfile::tempdir().expect("a folder"),
        runner: scene.runner,
    };
    let (restored, _) = older.pool().await;
    let engine = restored.around.engine().await.expect("an engine");
    let all = engine.all().await.expect("a list");
    assert_eq!(restored.sweep(&engine, all).await, []);
    assert_eq!(engine.all().await.expect("a list"), []);
    let again = restored
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    let (_, said) = run(&again, "cat file").await;
    assert_eq!(said, "here\n");
}

#[tokio::test]
async fn a_template_or_an_image_that_is_not_there_is_named() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let other = SandboxSpec {
        template: "other".to_owned(),
        ..spec("a")
    };
    let container = pool.order(scene.id("a"), ensure(other)).expect("a sandbox");
    let refused = container.ready().await.expect_err("no template");
    assert!(
        refused
            .message
            .contains("no template \"other\", only: base"),
        "{refused}"
    );
}

/// Waits until the output so far has this in it.
async fn until(process: &mut Process, mark: &str) {
    while !output(&mut process.spool).contains(mark) {
        let event = timeout(LONG, process.events.recv()).await.expect("in time");
        let event = event.expect("an event");
        assert!(!matches!(event, ProcessEvent::Ended(_)), "{event:?}");
    }
}

#[tokio::test]
async fn what_is_kept_apart_is_proved_by_trying_to_break_it() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let engine = Engine::connect(&socket(), scene.runner)
        .await
        .expect("an engine");
    assert_eq!(pool.facts().await.isolation, "none");
    assert!(pool.try_isolation(&engine, &mut HashSet::new()).await);
    assert_eq!(
        pool.facts().await.isolation,
        "file_writes+file_reads+credential+sockets+network+processes+resources+kill_tree"
    );
    assert_eq!(engine.all().await.expect("a list"), []);
}

#[tokio::test]
async fn files_are_served_inside_as_the_user_and_lead_nowhere_else() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let container = pool
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    let sandbox = ServedSandbox::Container(container.clone());
    let write = |path: &str| {
        Request::Write(Write {
            path: path.to_owned(),
            content: b"hello".to_vec(),
        })
    };
    // The container is made by the first request for a file as well.
    let written = perform(&sandbox, write("deep/file")).await;
    assert!(matches!(written, Outcome::Written(_)), "{written:?}");
    let (_, said) = run(
        &container,
        "stat -c '%u %s' deep/file; ln -s /etc link; ln -s / deep/up",
    )
    .await;
    assert_eq!(said, "1000 5\n");
    for path in [
        "/etc/passwd",
        "link/passwd",
        "deep/up/etc/passwd",
        "../etc/passwd",
    ] {
        let read = Request::Read(Read {
            path: path.to_owned(),
            first_line: 1,
            max_lines: 10,
            max_bytes: 1000,
        });
        let outcome = perform(&sandbox, read).await;
        assert!(matches!(outcome, Outcome::Failed(_)), "{path}: {outcome:?}");
    }
    // After a restart of the container another helper serves them.
    container.stop("a test").await;
    let written = perform(&sandbox, write("deep/file")).await;
    assert!(matches!(written, Outcome::Written(_)), "{written:?}");
}

async fn perform(sandbox: &ServedSandbox, request: Request) -> Outcome {
    let mut performing = sandbox.perform(request, LONG);
    loop {
        let event = timeout(LONG, performing.events.recv())
            .await
            .expect("in time");
        match event.expect("an event") {
            HostEvent::Changing(announced) => announced.go_ahead(),
            HostEvent::Ended(outcome, _) => return outcome,
            HostEvent::Opened(_) | HostEvent::InputTaken(_) => {}
        }
    }
}

/// What the pool tells next of its only sandbox.
async fn told(pool: &ContainerPool) -> (SandboxState, String) {
    let reports = timeout(LONG, pool.news()).await.expect("in time");
    let last = reports.into_iter().next().expect("a report");
    (last.state, last.reason)
}

#[test]
fn why_a_sandbox_stopped_is_told_by_the_next_daemon_too() {
    let scene = Scene::new();
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (pool, _) = scene.pool().await;
        let container = pool
            .order(scene.id("a"), ensure(spec("a")))
            .expect("a sandbox");
        container.ready().await.expect("it runs");
        container.stop("its memory was used up").await;
    });
    drop(runtime);
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (pool, _) = scene.pool().await;
        let why = (SandboxState::Stopped, "its memory was used up".to_owned());
        assert_eq!(told(&pool).await, why);
        let (_, container) = pool.sandboxes().remove(0);
        container.ready().await.expect("it runs");
        assert_eq!(told(&pool).await, (SandboxState::Running, String::new()));
    });
}

#[tokio::test]
async fn a_paused_sandbox_says_what_to_do_and_goes_on_as_it_was_once_it_is_not() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let container = pool
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    run(&container, "echo kept >/tmp/kept").await;
    let docker = Docker::connect_with_unix(&socket(), 60, API_DEFAULT_VERSION).expect("an engine");
    let name = engine::name(container.body());
    docker.pause_container(&name).await.expect("it is paused");
    pool.look().await;
    let (state, reason) = told(&pool).await;
    assert_eq!(state, SandboxState::Stopped, "{reason}");
    assert!(
        reason.contains(&format!("docker unpause {name}")),
        "{reason}"
    );
    let refused = timeout(LONG, container.ready()).await.expect("at once");
    let refused = refused.expect_err("it is paused");
    assert!(refused.message.contains("docker unpause"), "{refused:?}");
    docker.unpause_container(&name).await.expect("it goes on");
    pool.look().await;
    assert!(container.seems_to_run());
    let (_, said) = run(&container, "cat /tmp/kept").await;
    assert_eq!(said, "kept\n");
}

#[tokio::test]
async fn what_runs_while_the_engine_is_away_says_that_it_is() {
    let scene = Scene::new();
    let (pool, _) = scene.pool().await;
    let container = pool
        .order(scene.id("a"), ensure(spec("a")))
        .expect("a sandbox");
    container.ready().await.expect("it runs");
    told(&pool).await;
    let away = EngineError::Away;
    container.check(Err(&away)).await;
    assert_eq!(told(&pool).await, (SandboxState::Running, away.to_string()));
    container.check(Ok(false)).await;
    assert_eq!(told(&pool).await, (SandboxState::Running, String::new()));
}
