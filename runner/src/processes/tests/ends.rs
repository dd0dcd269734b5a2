//! How commands end, each end of its own type.

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::process::Signal;
use shared_types::limits::MAX_COMMAND_BYTES;

use super::scene::*;

#[tokio::test]
async fn output_is_told_and_then_the_end() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let script = "echo one; echo two >&2; exit 3";
    let mut process = scene.start(&processes, shell(script)).await;
    let record = record(&mut process).await;
    assert_eq!(record.status, ExitStatus::Code(3));
    assert_eq!(record.cause, ExitCause::Exited);
    assert!(record.tree_gone && record.max_rss_bytes > 0);
    assert_eq!(record.stdout, whole(b"one\n"));
    assert_eq!(record.stderr, whole(b"two\n"));
    assert_eq!(read(&mut process.spool, OutputStream::Stdout), "one\n");
    assert_eq!(read(&mut process.spool, OutputStream::Stderr), "two\n");
    assert_eq!(process.events.recv().await, None);
}

#[tokio::test]
async fn merged_output_is_one_stream_in_order() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut exec = shell("echo one; echo two >&2; echo three");
    exec.merged = true;
    let mut process = scene.start(&processes, exec).await;
    assert_eq!(record(&mut process).await.stderr, whole(b""));
    let all = read(&mut process.spool, OutputStream::Stdout);
    assert_eq!(all, "one\ntwo\nthree\n");
}

#[tokio::test]
async fn who_leaves_its_session_twice_is_gone_after_a_cancel() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let script = "setsid sh -c 'sh -c \"echo \\$\\$; exec sleep 1000\" &'; sleep 1000";
    let mut process = scene.start(&processes, shell(script)).await;
    let text = until(&mut process, "\n").await;
    let survivor: i32 = text.trim().parse().expect("a pid");
    assert!(runs(survivor));
    process.control.cancel();
    process.control.cancel();
    let record = record(&mut process).await;
    assert_eq!(record.cause, ExitCause::Cancelled);
    assert_eq!(record.status, ExitStatus::Signal(Signal::TERM.as_raw()));
    assert!(!runs(survivor));
    assert!(record.tree_gone);
}

#[tokio::test]
async fn a_command_that_ran_for_its_time_is_stopped() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let terms = ProcessTerms {
        run_for: SOON,
        ..terms()
    };
    let mut process = scene
        .start_with(&processes, argv(&["sleep", "1000"]), terms)
        .await;
    assert_eq!(record(&mut process).await.cause, ExitCause::Timeout);
}

#[tokio::test]
async fn a_runner_that_stops_orphans_its_commands() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut process = scene
        .start(&processes, shell("echo ready; sleep 1000"))
        .await;
    until(&mut process, "ready").await;
    process.control.renew(LONG);
    process.control.orphan();
    process.control.renew(LONG);
    assert_eq!(record(&mut process).await.cause, ExitCause::Orphaned);
}

#[tokio::test]
async fn a_command_that_is_cut_off_has_its_own_time_and_then_ends_with_it() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let terms = ProcessTerms {
        orphan_for: SOON,
        run_for: 3 * SOON,
        ..terms()
    };
    let mut process = scene
        .start_with(&processes, shell("sleep 1000"), terms)
        .await;
    assert_eq!(record(&mut process).await.cause, ExitCause::Timeout);
}

#[tokio::test]
async fn a_command_sees_the_given_environment_the_given_path_and_no_input() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let bin = scene.workspace().join("bin");
    fs::create_dir(&bin).expect("a folder");
    fs::write(
        bin.join("tool"),
        "#!/bin/sh\nread line; echo $0 $1 $?; export\n",
    )
    .expect("a file");
    fs::set_permissions(bin.join("tool"), fs::Permissions::from_mode(0o755)).expect("a mode");
    let mut exec = argv(&["tool", "x"]);
    exec.directory = "bin".to_owned();
    let path = bin.display().to_string();
    exec.environment.insert("PATH".to_owned(), path.clone());
    exec.environment.insert("ONE".to_owned(), "more".to_owned());
    let mut process = scene.start(&processes, exec).await;
    assert_eq!(record(&mut process).await.status, ExitStatus::Code(0));
    let text = read(&mut process.spool, OutputStream::Stdout);
    let mut lines: Vec<_> = text.lines().collect();
    // The shell adds a variable of its own.
    lines.retain(|line| !line.contains("OLDPWD"));
    let place = bin.canonicalize().expect("a real path");
    let told = [
        format!("{path}/tool x 1"),
        "export ONE='more'".to_owned(),
        format!("export PATH='{path}'"),
        format!("export PWD='{}'", place.display()),
    ];
    assert_eq!(lines, told);
}

#[tokio::test]
async fn a_command_that_never_pauses_can_be_cancelled_while_nobody_listens() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut process = scene.start(&processes, argv(&["yes"])).await;
    assert!(matches!(event(&mut process).await, ProcessEvent::Output(_)));
    process.control.cancel();
    assert_eq!(record(&mut process).await.cause, ExitCause::Cancelled);
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let scene = Scene::new();
    let processes = scene.open().await;
    for (name, content) in [
        ("plain", "echo"),
        ("lost", "#!/no/such\n"),
        ("odd", "\u{1}\u{2}"),
    ] {
        fs::write(scene.workspace().join(name), content).expect("a file");
        let mode = if name == "plain" { 0o644 } else { 0o755 };
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(scene.workspace().join(name), mode).expect("a mode");
    }
    let long = "x".repeat(MAX_COMMAND_BYTES);
    let mut words = vec!["true"];
    words.extend(std::iter::repeat_n(long.as_str(), 20));
    let reasons: [(&[&str], NotStarted); 6] = [
        (&["no-such"], NotStarted::MissingProgram("no-such".into())),
        (
            &["./no-such"],
            NotStarted::MissingProgram("./no-such".into()),
        ),
        (&["./plain"], NotStarted::Denied("./plain".into())),
        (&["./lost"], NotStarted::MissingInterpreter("./lost".into())),
        (&["./odd"], NotStarted::NotAProgram("./odd".into())),
        (&words, NotStarted::TooLarge),
    ];
    for (words, reason) in reasons {
        let mut process = scene.start(&processes, argv(words)).await;
        let record = record(&mut process).await;
        assert_eq!(record.status, ExitStatus::NotStarted(reason));
        assert!(record.tree_gone);
    }
}

#[tokio::test]
async fn a_killed_supervisor_is_told_with_the_output_so_far_and_leaves_nobody() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let script = "sh -c 'echo $$; exec sleep 1000' & sleep 1000 & wait";
    let mut process = scene.start(&processes, shell(script)).await;
    let text = until(&mut process, "\n").await;
    let survivor: i32 = text.trim().parse().expect("a pid");
    kill(supervisor_in(&scene, process.spool.name()));
    let record = record(&mut process).await;
    assert_eq!(record.status, ExitStatus::Unknown);
    assert_eq!(record.cause, ExitCause::SupervisorLost);
    assert_eq!(record.stdout, whole(text.as_bytes()));
    assert_eq!(read(&mut process.spool, OutputStream::Stdout), text);
    assert!(!runs(survivor));
}

#[tokio::test]
async fn a_supervisor_that_is_killed_before_it_starts_anything_is_fenced() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let waiting = processes.take().await.expect("a supervisor");
    kill(supervisor_in(&scene, waiting.name()));
    let plan = scene.host.plan(&shell("touch effect")).expect("a plan");
    let mut process = processes.start(waiting, id(1), plan, terms(), PassingControls::new());
    assert_eq!(end(&mut process).await, ProcessEnd::Fenced);
    assert!(!scene.workspace().join("effect").exists());
}

#[tokio::test]
async fn terms_that_make_no_sense_are_refused() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut terms = terms();
    terms.spool.bytes = 1;
    let mut process = scene.start_with(&processes, shell("true"), terms).await;
    match end(&mut process).await {
        ProcessEnd::Outcome(Outcome::Refused(refusal)) => {
            assert!(
                refusal.message.contains("make the spool larger"),
                "{refusal}"
            );
        }
        other => panic!("expected a refusal, not {other:?}"),
    }
}
