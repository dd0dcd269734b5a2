use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::ExitStatusExt},
    time::Duration,
};

use shared_sandbox::{ExitCause, ExitStatus, NotStarted, Outcome, OutputStream, StreamEnd};
use shared_types::{
    RefusalCode,
    limits::{MAX_COMMAND_BYTES, OUTPUT_CHUNK_BYTES},
};

use crate::{
    HostEvent,
    performing::EVENTS_WAITING,
    testing::{LONG, Scene, argv, end, runs, shell, state, until},
};

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

fn pids(text: &str) -> Vec<u32> {
    text.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

fn counted(bytes: &[u8]) -> StreamEnd {
    StreamEnd {
        offset: bytes.len() as u64,
        checksum: Some(crc32fast::hash(bytes)),
    }
}

fn not_started(outcome: &Outcome) -> NotStarted {
    match outcome {
        Outcome::Exited(record) => match &record.status {
            ExitStatus::NotStarted(reason) => reason.clone(),
            other => panic!("expected that it did not start, not {other:?}"),
        },
        other => panic!("expected an exit record, not {other:?}"),
    }
}

#[tokio::test]
async fn a_command_ends_with_its_code_and_all_of_its_output() {
    let ended = Scene::new().sh("echo out; echo err >&2; exit 3").await;
    assert_eq!(
        (ended.stdout.as_slice(), ended.stderr.as_slice()),
        (&b"out\n"[..], &b"err\n"[..])
    );
    let record = ended.record();
    assert_eq!(record.status, ExitStatus::Code(3));
    assert_eq!(record.cause, ExitCause::Exited);
    assert_eq!(
        (record.stdout, record.stderr),
        (counted(b"out\n"), counted(b"err\n"))
    );
    assert!(record.tree_gone);
}

#[tokio::test]
async fn a_command_that_a_signal_ends_says_which() {
    let ended = Scene::new().sh("kill -KILL $$").await;
    assert_eq!(ended.record().status, ExitStatus::Signal(SIGKILL));
    assert_eq!(ended.cause(), ExitCause::Exited);
}

#[tokio::test]
async fn argv_is_not_interpreted() {
    let ended = Scene::new()
        .run(argv(&["printf", "%s|", "$HOME", "a b", "*", ""]))
        .await;
    assert_eq!(ended.text(), "$HOME|a b|*||");
}

#[tokio::test]
async fn merged_streams_keep_their_exact_order() {
    let mut exec = shell("for i in $(seq 500); do echo o$i; echo e$i >&2; done");
    exec.merged = true;
    let ended = Scene::new().run(exec).await;
    let expected: String = (1..=500).map(|i| format!("o{i}\ne{i}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&ended.stdout), expected);
    assert!(ended.stderr.is_empty());
    assert_eq!(ended.record().stderr, StreamEnd::default());
    assert!(ended.record().tree_gone);
}

#[tokio::test]
async fn output_that_is_not_text_arrives_byte_for_byte() {
    let scene = Scene::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    scene.put("bytes", &bytes);
    let ended = scene.run(argv(&["cat", "bytes"])).await;
    assert_eq!(ended.stdout, bytes);
    assert_eq!(ended.record().stdout, counted(&bytes));
}

#[tokio::test]
async fn much_output_is_complete_and_waits_in_bounded_memory() {
    const LENGTH: u64 = 16 * 1024 * 1024;
    let scene = Scene::new();
    let mut performing = scene.start(shell("yes 0123456789abcde | head -c 16777216"));
    let (mut offset, mut checksum) = (0, crc32fast::Hasher::new());
    let record = loop {
        assert!(performing.events.len() <= EVENTS_WAITING);
        match performing.events.recv().await.expect("an end") {
            HostEvent::Output { stream, data } => {
                assert_eq!(stream, OutputStream::Stdout, "{data:?}");
                assert!(data.len() <= OUTPUT_CHUNK_BYTES);
                offset += data.len() as u64;
                checksum.update(&data);
            }
            HostEvent::Ended(Outcome::Exited(record)) => break record,
            other => panic!("unexpected {other:?}"),
        }
    };
    assert_eq!(offset, LENGTH);
    assert_eq!(
        record.stdout,
        StreamEnd {
            offset,
            checksum: Some(checksum.finalize())
        }
    );
    assert_eq!(record.status, ExitStatus::Code(0));
}

#[tokio::test]
async fn a_reader_that_waits_makes_the_process_wait_and_loses_nothing() {
    let scene = Scene::new();
    let performing = scene.start(shell("head -c 8388608 /dev/zero; touch written"));
    while performing.events.len() < EVENTS_WAITING {
        tokio::task::yield_now().await;
    }
    // 1 MiB waits here and the pipe holds little more, so the writer cannot have come to its end.
    assert!(!scene.path("written").exists());
    let ended = end(performing).await;
    assert_eq!(ended.stdout.len(), 8_388_608);
    assert!(scene.path("written").exists());
}

#[tokio::test]
async fn a_process_goes_on_when_its_reader_leaves() {
    let scene = Scene::new();
    let performing = scene.start(shell("head -c 8388608 /dev/zero; touch written"));
    drop(performing);
    while !scene.path("written").exists() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_process_can_be_stopped_when_its_reader_has_left() {
    let scene = Scene::new();
    let mut performing = scene.start(shell("echo $$; exec sleep 1000"));
    let pid = pids(&until(&mut performing, "\n").await)[0];
    let stop = performing.stop.clone();
    drop(performing);
    assert!(runs(pid));
    stop.cancel();
    while runs(pid) {
        tokio::task::yield_now().await;
    }
    stop.cancel();
}

#[tokio::test]
async fn a_command_sees_the_given_environment_and_nothing_of_the_runner() {
    let scene = Scene::new();
    fs::create_dir(scene.path("sub")).expect("a folder");
    let mut exec = argv(&["env"]);
    exec.directory = "sub".to_owned();
    exec.environment.insert("ONE".to_owned(), "more".to_owned());
    let ended = scene.run(exec).await;
    let mut lines: Vec<_> = ended.text().lines().collect();
    lines.sort_unstable();
    let place = scene.path("sub").canonicalize().expect("a real path");
    assert_eq!(
        lines,
        [
            "ONE=more",
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            &format!("PWD={}", place.display()),
        ]
    );
}

#[tokio::test]
async fn a_path_of_the_request_is_where_programs_are_looked_up() {
    let scene = Scene::new();
    scene.put("bin/tool", "#!/bin/sh\necho \"$0 $1\"\n");
    let tool = scene.path("bin/tool");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).expect("executable");
    let mut exec = argv(&["tool", "x"]);
    exec.environment
        .insert("PATH".to_owned(), scene.path("bin").display().to_string());
    assert_eq!(
        scene.run(exec).await.text(),
        format!("{} x", tool.display())
    );
    let mut exec = argv(&["../bin/tool", "y"]);
    exec.directory = "bin".to_owned();
    assert_eq!(scene.run(exec).await.text(), "../bin/tool y");
}

#[tokio::test]
async fn a_shell_is_found_where_there_is_no_bash() {
    let scene = Scene::new();
    let mut exec = shell("echo $0");
    exec.environment
        .insert("PATH".to_owned(), "/nowhere".to_owned());
    assert_eq!(scene.run(exec).await.text(), "sh");
    assert_eq!(scene.sh("echo ${BASH_VERSION:+bash}").await.text(), "bash");
}

#[tokio::test]
async fn a_command_reads_nothing_and_leads_its_group() {
    let ended = Scene::new()
        .sh("cat; ps -o pgid= -p $$ | tr -d ' '; echo $$")
        .await;
    let ids = pids(ended.text());
    assert_eq!(ids[0], ids[1]);
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let scene = Scene::new();
    scene.put("plain", "echo no");
    scene.put("lost", "#!/no/such/interpreter\n");
    scene.put("odd", "\u{1}\u{2}\u{3}");
    for name in ["lost", "odd"] {
        fs::set_permissions(scene.path(name), fs::Permissions::from_mode(0o755)).expect("mode");
    }
    let mut nowhere = argv(&["true"]);
    nowhere.directory = "missing".to_owned();
    let mut outside = argv(&["true"]);
    outside.directory = "../".to_owned();
    let long = "x".repeat(MAX_COMMAND_BYTES);
    let mut words = vec!["true"];
    words.extend(std::iter::repeat_n(long.as_str(), 40));
    for (exec, reason) in [
        (
            argv(&["no-such-program"]),
            NotStarted::MissingProgram("no-such-program".into()),
        ),
        (
            argv(&["./missing"]),
            NotStarted::MissingProgram("./missing".into()),
        ),
        (argv(&["./plain"]), NotStarted::Denied("./plain".into())),
        (
            argv(&["./lost"]),
            NotStarted::MissingInterpreter("./lost".into()),
        ),
        (argv(&["./odd"]), NotStarted::NotAProgram("./odd".into())),
        (nowhere, NotStarted::MissingDirectory("missing".into())),
        (outside, NotStarted::OutsideWorkspace("../".into())),
        (argv(&words), NotStarted::TooLarge),
    ] {
        let ended = scene.run(exec).await;
        assert_eq!(not_started(&ended.outcome), reason);
        assert!(ended.record().tree_gone && ended.stdout.is_empty());
    }
}

#[tokio::test]
async fn a_command_that_could_never_run_is_refused() {
    let scene = Scene::new();
    let mut dangerous = shell("true");
    dangerous
        .environment
        .insert("LD_PRELOAD".to_owned(), "x.so".to_owned());
    for (exec, reason) in [
        (
            shell(&"x".repeat(1_000_000)),
            "write it to a file and run that",
        ),
        (
            argv(&["echo", &"x".repeat(MAX_COMMAND_BYTES + 1)]),
            "write it to a file and run that",
        ),
        (argv(&[]), "empty"),
        (argv(&[""]), "empty"),
        (shell("echo \0"), "NUL"),
        (dangerous, "LD_PRELOAD"),
    ] {
        match scene.run(exec).await.outcome {
            Outcome::Refused(refusal) => {
                assert_eq!(refusal.code, RefusalCode::Invalid);
                assert!(refusal.message.contains(reason), "{}", refusal.message);
            }
            other => panic!("expected a refusal, not {other:?}"),
        }
    }
    let longest = format!("#{}", "x".repeat(MAX_COMMAND_BYTES - 1));
    assert_eq!(
        scene.sh(&longest).await.record().status,
        ExitStatus::Code(0)
    );
}

#[tokio::test]
async fn a_cancelled_pipeline_leaves_no_process_behind() {
    let scene = Scene::new();
    let script = "sh -c 'echo $$ >&2; exec sleep 1000' 2>&1 >/dev/null | (sleep 1000 & cat; wait) & \
                  sleep 1000 & echo $! $$; wait";
    let mut performing = scene.start(shell(script));
    let mut text = String::new();
    while pids(&text).len() < 3 {
        text += &until(&mut performing, "\n").await;
    }
    assert!(pids(&text).iter().all(|pid| runs(*pid)));
    performing.stop.cancel();
    let ended = end(performing).await;
    assert_eq!(ended.cause(), ExitCause::Cancelled);
    assert_eq!(ended.record().status, ExitStatus::Signal(SIGTERM));
    assert!(ended.record().tree_gone);
    assert!(!pids(&text).iter().any(|pid| runs(*pid)));
}

#[tokio::test]
async fn a_child_that_ignores_the_polite_signal_is_killed_after_the_grace() {
    let scene = Scene::with_grace(Duration::from_millis(100));
    let script =
        "trap '' TERM; (while :; do sleep 1000; done) & echo $! $$; while :; do sleep 1000; done";
    let mut performing = scene.start(shell(script));
    let pids = pids(&until(&mut performing, "\n").await);
    performing.stop.cancel();
    performing.stop.orphan();
    let ended = end(performing).await;
    assert_eq!(ended.cause(), ExitCause::Cancelled);
    assert_eq!(ended.record().status, ExitStatus::Signal(SIGKILL));
    assert!(ended.record().tree_gone);
    assert!(!pids.into_iter().any(runs));
}

#[tokio::test]
async fn a_child_has_the_grace_to_tidy_up_though_its_leader_is_gone() {
    let scene = Scene::new();
    let script = "sh -c 'trap \"sleep 0.3; touch tidied; exit\" TERM; echo ready; while :; do sleep 0.05; done' & \
                  wait";
    let mut performing = scene.start(shell(script));
    until(&mut performing, "ready").await;
    performing.stop.orphan();
    let ended = end(performing).await;
    assert_eq!(ended.cause(), ExitCause::Orphaned);
    assert!(scene.path("tidied").exists());
}

#[tokio::test]
async fn a_stopped_process_hears_the_polite_signal() {
    let scene = Scene::with_grace(LONG);
    let script = "sleep 1000 & kill -STOP $!; echo $! $$; kill -STOP $$";
    let mut performing = scene.start(shell(script));
    let pids = pids(&until(&mut performing, "\n").await);
    while !pids.iter().all(|pid| state(*pid) == Some('T')) {
        tokio::task::yield_now().await;
    }
    performing.stop.cancel();
    let ended = end(performing).await;
    assert_eq!(ended.record().status, ExitStatus::Signal(SIGTERM));
    assert!(ended.record().tree_gone);
    assert!(!pids.into_iter().any(runs));
}

#[tokio::test]
async fn a_process_that_stops_itself_again_is_killed() {
    let scene = Scene::with_grace(Duration::from_millis(50));
    let script = "trap 'kill -STOP $$' TERM; echo $$; while :; do sleep 0.01; done";
    let mut performing = scene.start(shell(script));
    let pid = pids(&until(&mut performing, "\n").await)[0];
    performing.stop.cancel();
    let ended = end(performing).await;
    assert_eq!(ended.record().status, ExitStatus::Signal(SIGKILL));
    assert!(ended.record().tree_gone && !runs(pid));
}

#[tokio::test]
async fn a_command_that_runs_too_long_is_ended_as_a_timeout() {
    let scene = Scene::new();
    let request = shared_sandbox::Request::Exec(shell("echo begun; sleep 1000"));
    let ended = end(scene.host.perform(request, Duration::from_millis(200))).await;
    assert_eq!(ended.cause(), ExitCause::Timeout);
    assert_eq!(ended.record().status, ExitStatus::Signal(SIGTERM));
    assert_eq!(ended.text(), "begun");
    assert!(ended.record().wall_ms >= 200);
}

#[tokio::test]
async fn a_command_that_was_stopped_before_it_started_never_runs() {
    let scene = Scene::new();
    let performing = scene.start(shell("touch ran"));
    performing.stop.cancel();
    let ended = end(performing).await;
    assert_eq!(ended.cause(), ExitCause::Cancelled);
    not_started(&ended.outcome);
    assert!(!scene.path("ran").exists());
}

#[tokio::test]
async fn a_grandchild_that_holds_the_output_is_ended_with_its_exec() {
    let ended = Scene::new().sh("sleep 1000 & echo $!").await;
    assert_eq!(ended.record().status, ExitStatus::Code(0));
    assert_eq!(ended.cause(), ExitCause::Exited);
    assert!(ended.record().tree_gone);
    assert!(!runs(pids(ended.text())[0]));
}

#[tokio::test]
async fn a_grandchild_that_never_falls_silent_is_ended_with_its_exec() {
    let ended = Scene::new().sh("yes & echo $! >&2").await;
    assert_eq!(ended.record().status, ExitStatus::Code(0));
    assert_eq!(ended.record().stdout, counted(&ended.stdout));
    assert!(ended.record().tree_gone);
    assert!(!runs(pids(&String::from_utf8_lossy(&ended.stderr))[0]));
}

#[tokio::test]
async fn a_silent_grandchild_is_ended_with_its_exec() {
    let ended = Scene::new()
        .sh("sleep 1000 >/dev/null 2>&1 & echo $!")
        .await;
    assert!(ended.record().tree_gone);
    assert!(!runs(pids(ended.text())[0]));
}

#[tokio::test]
async fn what_a_background_child_says_soon_after_the_end_is_heard() {
    let ended = Scene::new()
        .sh("(sleep 0.05; echo late) & echo early")
        .await;
    assert_eq!(ended.text(), "early\nlate");
}

#[tokio::test]
async fn a_descendant_that_left_the_group_with_the_output_is_admitted() {
    let ended = Scene::new()
        .sh("setsid sleep 1000 & sleep 0.1; echo done")
        .await;
    let record = ended.record();
    assert_eq!(record.status, ExitStatus::Code(0));
    assert!(
        !record.tree_gone,
        "somebody outside the group still holds the output"
    );
    for entry in fs::read_dir("/proc").expect("proc").flatten() {
        let ours =
            fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.ends_with("ws (deleted)"));
        let sleeps =
            fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == b"sleep\x001000\0");
        if ours && sleeps {
            let pid = entry.file_name().into_string().expect("digits");
            let killed = std::process::Command::new("kill")
                .arg(pid)
                .status()
                .expect("kill runs");
            assert!(killed.success() && killed.signal().is_none());
        }
    }
}

#[tokio::test]
async fn no_zombie_of_ours_is_left() {
    let scene = Scene::new();
    let mut leaders = Vec::new();
    for _ in 0..20 {
        leaders.extend(pids(scene.sh("echo $$").await.text()));
    }
    assert_eq!(leaders.len(), 20);
    assert!(
        leaders
            .iter()
            .all(|pid| !fs::exists(format!("/proc/{pid}")).expect("proc is readable"))
    );
}

#[tokio::test]
async fn many_commands_run_at_once() {
    let scene = Scene::new();
    let running: Vec<_> = (0..64)
        .map(|i| scene.start(shell(&format!("echo {i}; exit {}", i % 7))))
        .collect();
    for (i, performing) in running.into_iter().enumerate() {
        let ended = end(performing).await;
        assert_eq!(ended.text(), i.to_string());
        assert_eq!(
            ended.record().status,
            ExitStatus::Code(i32::try_from(i % 7).expect("small"))
        );
    }
}

#[test]
fn a_runtime_that_ends_takes_its_processes_with_it() {
    let scene = Scene::new();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let pid = runtime.block_on(async {
        let mut performing = scene.start(shell("trap '' TERM; echo $$; sleep 1000"));
        pids(&until(&mut performing, "\n").await)[0]
    });
    assert!(runs(pid));
    drop(runtime);
    while runs(pid) {
        std::thread::yield_now();
    }
}
