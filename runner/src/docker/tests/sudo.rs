//! Commands that are root in their container, and what they try against what keeps them there.

use super::*;

fn with_sudo(name: &str) -> SandboxSpec {
    SandboxSpec {
        template: "root".to_owned(),
        may_sudo: true,
        ..spec(name)
    }
}

async fn container(scene: &Scene) -> (ContainerPool, Container) {
    let (pool, _) = scene.pool().await;
    let container = pool.order(scene.id("a"), ensure(with_sudo("a")));
    (pool, container.expect("a sandbox"))
}

/// Runs a script; all that it said, once it has ended with 0.
async fn says(container: &Container, script: &str) -> String {
    let (record, said) = run(container, script).await;
    assert_eq!(record.status, ExitStatus::Code(0), "{script}: {said}");
    assert!(record.tree_gone, "{script}: {record:?}");
    said
}

#[tokio::test]
async fn sudo_starts_a_command_as_root_with_six_capabilities_and_ends_as_it_does() {
    let scene = Scene::new();
    let (_pool, container) = container(&scene).await;
    let rights = "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status";
    assert_eq!(
        says(&container, &format!("{rights}; sudo {rights}")).await,
        "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\n\
         CapEff:\t00000000000000eb\nCapBnd:\t00000000000000eb\nNoNewPrivs:\t1\n"
    );
    for (script, expected) in [
        ("sudo id -u; sudo id -G; sudo sudo id -u", "0\n0\n0\n"),
        ("cd /tmp && sudo pwd; echo in | sudo cat", "/tmp\nin\n"),
        (
            "LD_X=1 MINE=1 LANG=C sudo A=2 sh -c 'echo $LD_X$MINE$LANG$A$HOME$SUDO_USER'",
            "C2/rootuser\n",
        ),
        (
            "sudo sh -c 'exit 7'; echo $?; sudo sh -c 'kill -9 $$'; echo $?",
            "7\n137\n",
        ),
        (
            "sudo touch /etc/made && sudo chown user /etc/made && echo x > /etc/made && cat /etc/made",
            "x\n",
        ),
        ("sudo mv /etc/made /opt/made && ls /opt", "made\n"),
    ] {
        let said = says(&container, script).await;
        assert!(said.starts_with(expected), "{script}: {said}");
    }
    let (record, said) = run(&container, "sudo no-such-program; sudo -i; exit 3").await;
    assert_eq!(record.status, ExitStatus::Code(3));
    assert!(
        said.contains("no-such-program: command not found"),
        "{said}"
    );
    assert!(said.contains("-i is not supported in a sandbox"), "{said}");
    // What root has made there goes with the container; what is in a volume stays, as root made it.
    says(
        &container,
        "sudo sh -c 'echo open > open; echo closed > closed; chmod 600 closed'",
    )
    .await;
    container.stop("a test").await;
    let left = says(
        &container,
        "ls /opt; cat open; cat closed 2>/dev/null || echo refused",
    )
    .await;
    assert_eq!(left, "open\nrefused\n");
    let sandbox = ServedSandbox::Container(container);
    for (path, may) in [("open", true), ("closed", false)] {
        let read = Request::Read(Read {
            path: path.to_owned(),
            first_line: 1,
            max_lines: 10,
            max_bytes: 1000,
        });
        let outcome = perform(&sandbox, read).await;
        assert_eq!(
            matches!(outcome, Outcome::Read(_)),
            may,
            "{path}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_root_command_ends_with_its_operation_and_hears_the_signals_of_its_client() {
    let scene = Scene::new();
    let (_pool, container) = container(&scene).await;
    let tree = "sudo sh -c 'trap \"\" TERM HUP; setsid sleep 999 & (sleep 998 &) ; echo up; wait'";
    let mut process = start(&container, &shell(tree)).await;
    until(&mut process, "up").await;
    process.control.cancel();
    let ended = record(&mut process).await;
    assert_eq!(ended.cause, ExitCause::Cancelled);
    assert!(ended.tree_gone);
    assert_eq!(says(&container, "pgrep -c sleep || true").await, "0\n");
    let heard = "mkfifo up; sudo sh -c 'trap \"exit 5\" INT; echo > up; while :; do sleep 0.01; done' & \
         read -r _ < up; kill -INT $!; wait $!; echo $?";
    assert_eq!(says(&container, heard).await, "5\n");
}

#[tokio::test]
async fn a_strict_template_has_no_sudo_and_one_with_it_starts_only_where_policy_allows_it() {
    let scene = Scene::new();
    let (pool, allowed) = container(&scene).await;
    says(&allowed, "sudo true").await;
    let strict = pool.order(scene.id("b"), ensure(spec("b")));
    let (_, said) = run(&strict.expect("a sandbox"), "sudo id; ls -A /.gantry").await;
    assert!(!said.contains("uid=0") && !said.contains("door"), "{said}");
    // One that runs is stopped, and does not start again.
    let forbidden = SandboxSpec {
        may_sudo: false,
        ..with_sudo("a")
    };
    let container = pool
        .order(scene.id("a"), ensure(forbidden))
        .expect("a sandbox");
    let refused = container.ready().await.expect_err("it is forbidden");
    assert!(refused.message.contains("policy forbids"), "{refused}");
    container.stop("a test").await;
    let engine = pool.around.engine().await.expect("an engine");
    let found = engine.find(scene.id("a")).await.expect("found");
    assert!(
        !matches!(
            found,
            super::super::engine::ContainerStatus::Container { running: true, .. }
        ),
        "{found:?}"
    );
}

#[test]
fn the_next_daemon_lets_root_go_on_only_where_its_template_still_gives_it() {
    let without = |mut options: PoolOptions| {
        options
            .docker
            .templates
            .retain(|template| template.name != "root");
        options
    };
    let strict = |options: PoolOptions| {
        let mut options = without(options);
        let other = template("root", SandboxPrivilege::Strict);
        options.docker.templates.push(other);
        options
    };
    let changes: [&dyn Fn(PoolOptions) -> PoolOptions; 2] = [&strict, &without];
    for change in changes {
        let scene = Scene::new();
        let runtime = Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let (_pool, container) = container(&scene).await;
            let mut process = start(&container, &shell("sudo sh -c 'echo up; sleep 1000'")).await;
            until(&mut process, "up").await;
        });
        runtime.shutdown_background();
        Runtime::new().expect("a runtime").block_on(async {
            let options = change(scene.options());
            let is_known = options
                .docker
                .templates
                .iter()
                .any(|one| one.name == "root");
            let (pool, left) = ContainerPool::open(options).await.expect("a pool");
            let engine = pool.around.engine().await.expect("an engine");
            let all = engine.all().await.expect("a list");
            assert_eq!(pool.sweep(&engine, all).await, []);
            let [mut process] = left
                .into_iter()
                .filter_map(|(_, left)| match left {
                    LeftOperation::Running(process) => Some(process),
                    _ => None,
                })
                .collect::<Vec<_>>()
                .try_into()
                .expect("one ran");
            assert_eq!(record(&mut process).await.cause, ExitCause::SandboxStopped);
            let [(_, container)] = &pool.sandboxes()[..] else {
                panic!("not one sandbox");
            };
            match is_known {
                true => assert_eq!(
                    says(container, "sudo id -u 2>/dev/null || id -u").await,
                    "1000\n"
                ),
                false => assert!(!runs(&engine, &scene).await),
            }
        });
    }
}

async fn runs(engine: &Engine, scene: &Scene) -> bool {
    let found = engine.find(scene.id("a")).await.expect("an answer");
    matches!(
        found,
        super::super::engine::ContainerStatus::Container { running: true, .. }
    )
}

#[tokio::test]
async fn policy_that_comes_to_forbid_root_stops_what_runs_and_what_is_about_to() {
    let scene = Scene::new();
    let (pool, container) = container(&scene).await;
    let engine = pool.around.engine().await.expect("an engine");
    let forbidden = SandboxSpec {
        may_sudo: false,
        ..with_sudo("a")
    };
    // Its start has read what policy said before.
    let forbid = async { drop(pool.order(scene.id("a"), ensure(forbidden.clone()))) };
    let (started, ()) = tokio::join!(container.ready(), forbid);
    let refused = started.expect_err("it is forbidden meanwhile");
    assert!(refused.message.contains("policy forbids"), "{refused}");
    assert!(!runs(&engine, &scene).await);
    // As soon as it is allowed again it starts.
    pool.order(scene.id("a"), ensure(with_sudo("a")));
    let mut process = start(&container, &shell("sudo sh -c 'echo up; sleep 1000'")).await;
    until(&mut process, "up").await;
    pool.order(scene.id("a"), ensure(forbidden));
    assert_eq!(record(&mut process).await.cause, ExitCause::SandboxStopped);
    let reason = async {
        loop {
            let news = pool.news().await.into_iter();
            let mut stopped = news.filter(|report| report.state == SandboxState::Stopped);
            if let Some(report) = stopped.find(|report| report.reason.contains("policy forbids")) {
                return report;
            }
        }
    };
    timeout(LONG, reason).await.expect("it is said");
}

#[tokio::test]
async fn what_root_gives_away_of_supervisors_programs_and_cgroups_nobody_can_change() {
    let scene = Scene::new();
    let (_pool, container) = container(&scene).await;
    let attack = r#"
import os, subprocess
def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
guards, pid = [], os.getpid()
while pid != 1:
    pid = parent(pid)
    if open(f"/proc/{pid}/comm").read().strip() == "gantry-supervis":
        guards.append(pid)
assert len(guards) >= 2 and 1 in guards, guards
def sudo(*words):
    subprocess.run(["sudo", *words], check=True)
def attempt(what, act):
    try:
        act()
    except OSError:
        return
    print("broken:", what)
def write(path, text):
    file = os.open(path, os.O_WRONLY)
    os.write(file, text)
for pid in guards:
    for name, text in (("oom_score_adj", b"1000"), ("autogroup", b"19"), ("coredump_filter", b"0")):
        path = f"/proc/{pid}/{name}"
        if not os.path.exists(path):
            continue
        held = os.open(path, os.O_PATH)
        # The kernel gives a path back to its process whenever it is looked up; what is held stays as it is.
        sudo("chown", "1000", path)
        attempt(f"{name} of {pid}", lambda: write(f"/proc/self/fd/{held}", text))
        attempt(f"{name} of {pid} by its path", lambda: write(path, text))
sudo("chown", "1000", "/.gantry", "/.gantry/bin")
attempt("programs are moved", lambda: os.rename("/.gantry/bin", "/.gantry/other"))
attempt("programs are put beside them", lambda: os.close(os.open("/.gantry/bin/other", os.O_WRONLY | os.O_CREAT)))
attempt("folders are made beside them", lambda: os.mkdir("/.gantry/other"))
subprocess.run(["sudo", "chmod", "777", "/sys/fs/cgroup"], stderr=subprocess.DEVNULL)
attempt("a file in /sys/fs/cgroup", lambda: os.close(os.open("/sys/fs/cgroup/memory.events", os.O_WRONLY | os.O_CREAT)))
attempt("a link in /sys/fs/cgroup", lambda: os.symlink("/tmp/x", "/sys/fs/cgroup/link"))
print("tried")
"#;
    let script = format!("cat > attack.py <<'END'\n{attack}\nEND\npython3 attack.py");
    assert_eq!(says(&container, &script).await, "tried\n");
    // What is a command's own it changes as ever, and the processes of other commands it signals.
    let own = "echo a > /tmp/a; mv /tmp/a ~/a; echo b > /dev/stdout; echo c > /dev/shm/c; cat ~/a /dev/shm/c; \
         echo d > /dev/null; exec 3<>/dev/ptmx; sudo touch /etc/e; sudo chown user /etc/e; echo e > /etc/e; cat /etc/e";
    assert_eq!(says(&container, own).await, "b\na\nc\ne\n");
    let mut process = start(&container, &shell("echo up; sleep 1000")).await;
    until(&mut process, "up").await;
    says(&container, "pkill -x sleep").await;
    assert_eq!(record(&mut process).await.cause, ExitCause::Exited);
}

#[tokio::test]
async fn root_reaches_neither_what_supervises_it_nor_its_records() {
    let scene = Scene::new();
    let (_pool, container) = container(&scene).await;
    // Each line is a thing that must fail, tried on the entry process, the supervisor of this command, and
    // what has started this one.
    let attack = r#"
import os, resource, signal, socket, stat, ctypes
libc = ctypes.CDLL(None, use_errno=True)
def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
above, pid = [], os.getpid()
while pid != 1:
    pid = parent(pid)
    above.append(pid)
names = {pid: open(f"/proc/{pid}/comm").read().strip() for pid in above}
guards = [pid for pid in above if names[pid] == "gantry-supervis"]
assert len(guards) >= 3 and 1 in guards, names
def attempt(what, act):
    try:
        act()
    except (OSError, ValueError):
        return
    print("broken:", what)
def write(path, text):
    with open(path, "w") as file:
        file.write(text)
def ptrace(pid):
    if libc.ptrace(16, pid, 0, 0) != 0:
        raise OSError
for pid in guards:
    for number in (0, signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
        attempt(f"signal {number} to {pid}", lambda: os.kill(pid, number))
    attempt(f"limits of {pid}", lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0)))
    attempt(f"trace {pid}", lambda: ptrace(pid))
    attempt(f"priority of {pid}", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
    attempt(f"processors of {pid}", lambda: os.sched_setaffinity(pid, os.sched_getaffinity(0)))
    attempt(f"scheduler of {pid}", lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)))
    for name in ("cwd", "root"):
        attempt(f"{name} of {pid}", lambda: os.listdir(f"/proc/{pid}/{name}"))
    for number in os.listdir(f"/proc/{pid}/fd"):
        attempt(f"descriptor {number} of {pid}", lambda: os.readlink(f"/proc/{pid}/fd/{number}"))
        attempt(f"what {number} of {pid} is", lambda: os.stat(f"/proc/{pid}/fd/{number}"))
    attempt(f"memory of {pid}", lambda: open(f"/proc/{pid}/mem", "rb").read(1))
    attempt(f"score of {pid}", lambda: write(f"/proc/{pid}/oom_score_adj", "1000"))
for path in ("/.gantry/door/door",):
    def connect():
        one = socket.socket(socket.AF_UNIX)
        one.settimeout(1)
        one.connect(path)
    attempt("the door", connect)
for path in ("/.gantry/bin/gantry-supervisor", "/.gantry/bin/gantry-files", "/usr/local/bin/sudo"):
    attempt(f"chmod {path}", lambda: os.chmod(path, 0o777))
    attempt(f"unlink {path}", lambda: os.unlink(path))
    attempt(f"move {path}", lambda: os.rename(path, "/tmp/x"))
for name in os.listdir("/proc"):
    path = f"/proc/{name}"
    # What the engine hides is the container's own null device.
    if not name.isdigit() and not os.path.islink(path) and not stat.S_ISCHR(os.stat(path).st_mode):
        attempt(f"chmod {path}", lambda: os.chmod(path, os.stat(path).st_mode & 0o7777))
        attempt(f"chown {path}", lambda: os.chown(path, 0, 0))
attempt("mknod", lambda: os.mknod("/tmp/sda", 0o60600, os.makedev(8, 0)))
attempt("chroot", lambda: os.chroot("/tmp"))
attempt("mount", lambda: None if libc.mount(b"proc", b"/mnt", b"proc", 0, None) == 0 else os.stat("/none"))
attempt("namespaces", lambda: None if libc.unshare(0x10000000) == 0 else os.stat("/none"))
attempt("priority of all of root", lambda: os.setpriority(os.PRIO_USER, 0, 19))
# Those are counted for all that are root, on the host as well.
def inotify():
    if libc.inotify_init1(0) < 0:
        raise OSError
attempt("inotify", inotify)
for limit, most in ((resource.RLIMIT_NOFILE, 65536), (resource.RLIMIT_SIGPENDING, 1024)):
    assert resource.getrlimit(limit)[1] <= most, limit
    attempt("a higher limit", lambda: resource.setrlimit(limit, (most, 2 * most)))
os.setpriority(os.PRIO_PROCESS, 0, 5)
os.sched_setaffinity(0, os.sched_getaffinity(0))
print("tried")
"#;
    let script = format!(
        "cat > attack.py <<'END'\n{attack}\nEND\nsudo python3 attack.py; sudo -u root sh -c 'kill -9 -1'; echo goes on"
    );
    let said = says(&container, &script).await;
    assert!(!said.contains("broken"), "{said}");
    assert!(
        said.contains("tried\n") && said.ends_with("goes on\n"),
        "{said}"
    );
    // No path leads to the folder of the operations, and nothing there was changed.
    let mounts = says(
        &container,
        "sudo cat /proc/1/mountinfo /proc/self/mountinfo",
    )
    .await;
    assert!(!mounts.contains("operations"), "{mounts}");
    // Not even a caller's link to where its supervisor is itself.
    let own = (3..16).map(|number| format!("/proc/self/fd/{number}"));
    for place in own.chain(["/proc/self/cwd".to_owned()]) {
        says(&container, &format!("rm -f up; ln -s {place} up")).await;
        let exec = Exec {
            directory: "up".to_owned(),
            ..shell("sudo touch planted")
        };
        let mut process = start(&container, &exec).await;
        let record = record(&mut process).await;
        let not_started = matches!(record.status, ExitStatus::NotStarted(_));
        assert!(not_started, "{place}: {record:?}");
    }
    let planted = fs::read_dir(container.operations()).expect("a folder");
    for entry in planted {
        let inside = fs::read_dir(entry.expect("an entry").path());
        let names = inside
            .into_iter()
            .flatten()
            .flatten()
            .map(|one| one.file_name());
        assert!(names.into_iter().all(|name| name != "planted"));
    }
}

#[tokio::test]
async fn what_root_puts_in_the_place_of_devices_is_not_used_and_another_start_is_clean() {
    let scene = Scene::new();
    let (pool, container) = container(&scene).await;
    for thing in [
        "ln -s /proc/self/cwd /dev/null",
        "mkfifo /dev/null",
        "touch /dev/null",
        "mkdir /dev/null",
    ] {
        // What waits already has its input.
        let plant = format!("sudo sh -c 'rm -rf /dev/null; {thing}'");
        run(&container, &plant).await;
        let mut refused = false;
        for _ in 0..8 {
            let running = container.ready().await.expect("it runs");
            match running.processes.take().await {
                Ok(_) => {}
                Err(reason) => {
                    refused = reason.to_string().contains("/dev/null") || refused;
                    break;
                }
            }
        }
        assert!(refused, "{thing}");
        container.stop("a test").await;
        assert_eq!(
            says(&container, "cat /dev/null; stat -c %F /dev/null").await,
            "character special file\n"
        );
    }
    // One that was started by hand begins with what root has left there, and is not used.
    let denied = "sudo mv /.gantry /elsewhere || sudo touch /left || sudo touch /sys/fs/cgroup/left || echo denied";
    let said = says(&container, denied).await;
    assert!(said.starts_with("denied\n"), "{said}");
    says(
        &container,
        "sudo touch /etc/left; sudo mkfifo /tmp/fifo; sudo chmod 777 /sys/fs/cgroup",
    )
    .await;
    says(
        &container,
        "ln -sf /tmp/fifo /sys/fs/cgroup/memory.events 2>/dev/null; true",
    )
    .await;
    says(&container, "sleep 0.1; true").await;
    let engine = pool.around.engine().await.expect("an engine");
    engine.stop(scene.id("a")).await.expect("stopped");
    let _ = engine.start(scene.id("a")).await;
    container.forget_running();
    assert_eq!(
        says(&container, "ls /etc/left 2>/dev/null || echo clean").await,
        "clean\n"
    );
}

#[tokio::test]
async fn where_commands_may_be_root_a_supervisor_serves_one() {
    let scene = Scene::new();
    let (_pool, container) = container(&scene).await;
    let mut supervisors = BTreeSet::new();
    for _ in 0..4 {
        supervisors.insert(says(&container, "echo $PPID").await);
    }
    assert_eq!(supervisors.len(), 4, "{supervisors:?}");
}
