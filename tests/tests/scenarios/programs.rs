//! What holds for every program's verbs: they say their version, and a closed pipe is no crash.

use std::{
    fs::File,
    io::pipe,
    path::Path,
    process::{Output, Stdio},
};

use tests::gantry::{Gantry, Runner, binary, eventually};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};

const PROGRAMS: [&str; 5] = [
    "gantry",
    "gantry-server",
    "gantry-runner",
    "gantry-supervisor",
    "gantry-files",
];

/// The chart's script of a runner's container.
const CHART: &str = include_str!("../../../helm/gantry/templates/runner.yaml");

/// A pipe that its reader has closed, as `| head -0` leaves it.
fn closed() -> Stdio {
    let (_, writer) = pipe().expect("a pipe");
    writer.into()
}

/// A program in a home, with nothing of our environment but PATH.
fn program(name: &str, home: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(binary(name));
    command
        .args(words)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("GANTRY_HOME", home)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

fn said(output: &Output) -> (Option<i32>, String) {
    let text = [&*output.stdout, &*output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8(text).expect("it is text"),
    )
}

/// Runs it with a standard output that nobody reads. It must say nothing elsewhere of that.
async fn unread(mut command: Command, code: i32) {
    command.stdout(closed()).stderr(Stdio::piped());
    let started = command.spawn().expect("it starts");
    let ended = started.wait_with_output().await.expect("it ends");
    assert_eq!(said(&ended), (Some(code), String::new()), "{command:?}");
}

#[tokio::test]
async fn every_program_says_the_version_of_all_of_them() {
    let home = tempfile::tempdir().expect("a folder");
    let mut versions = Vec::new();
    for name in PROGRAMS {
        let version = program(name, home.path(), &["--version"]).output().await;
        let (code, text) = said(&version.expect("it starts"));
        assert_eq!(code, Some(0), "{name}: {text}");
        let version = text.strip_prefix(name).expect("its name comes first");
        versions.push(version.to_owned());
        unread(program(name, home.path(), &["--version"]), 0).await;
    }
    assert!(versions[0].ends_with(")\n"), "{versions:?}");
    versions.dedup();
    assert_eq!(versions.len(), 1, "{versions:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verb_whose_output_nobody_reads_ends_without_a_word_and_does_all_its_work() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let ran = gantry.cli(&["exec", "-r", "laptop", "--", "seq", "1", "99999"]);
    assert_eq!(said(&ran.await).0, Some(0));
    let listed = said(&gantry.cli(&["ps", "-a"]).await).1;
    let mut words = listed.split_whitespace();
    let operation = words.find(|word| word.starts_with("op_"));
    let operation = operation.expect("an operation");
    gantry.join_token("desktop").await;

    for words in [
        &["runners"][..],
        &["runners", "--json"],
        &["runners", "tokens", "--json"],
        &["ps", "-a"],
        &["config"],
        &["people"],
        &["keys"],
        &["audit"],
        &["status"],
        &["output", operation],
    ] {
        unread(gantry.terminal(words), 141).await;
    }
    unread(gantry.terminal(&["--help"]), 0).await;

    let backup = gantry.home().join("backup");
    let backup = backup.to_str().expect("it is text");
    for words in [
        &["--help"][..],
        &["check-config"],
        &["sign-in-code"],
        &["join-token"],
        &["migrate"],
        &["backup", backup],
        &["health"],
        &["reload"],
        &["rotate-link-key"],
    ] {
        unread(gantry.operator(words), 0).await;
    }
    assert!(Path::new(backup).exists(), "it was made all the same");

    let more = runner.home().join("more");
    std::fs::create_dir(&more).expect("a folder");
    for words in [
        &["--help"][..],
        &["status"],
        &["add-workspace", more.to_str().expect("it is text")],
        &["workspaces"],
        &["remove-workspace", "more"],
    ] {
        unread(program("gantry-runner", &runner.home(), words), 0).await;
    }
}

#[tokio::test]
async fn a_failure_that_nobody_reads_is_one_by_its_code_alone() {
    let home = tempfile::tempdir().expect("a folder");
    for (name, words, code) in [
        ("gantry", &["runners"][..], 1),
        ("gantry-server", &["health"], 1),
        ("gantry-server", &["no-verb"], 2),
        ("gantry-runner", &["workspaces"], 1),
        ("gantry-runner", &["status"], 1),
        ("gantry-supervisor", &[], 1),
        ("gantry-files", &[], 1),
    ] {
        let mut command = program(name, home.path(), words);
        command.stdout(closed()).stderr(closed());
        let ended = command.status().await.expect("it starts");
        assert_eq!(ended.code(), Some(code), "{name} {words:?}");
    }
}

#[tokio::test]
async fn output_that_cannot_be_written_is_a_failure_that_says_so() {
    let home = tempfile::tempdir().expect("a folder");
    for (name, words) in [
        ("gantry-server", &["check-config"][..]),
        ("gantry-runner", &["status"]),
        ("gantry-supervisor", &["--version"]),
        ("gantry-files", &["--version"]),
    ] {
        let full = File::options().write(true).open("/dev/full");
        let mut command = program(name, home.path(), words);
        command.stdout(full.expect("it is there"));
        command.stderr(Stdio::piped());
        let started = command.spawn().expect("it starts");
        let (code, text) = said(&started.wait_with_output().await.expect("it ends"));
        assert_eq!(code, Some(1), "{text}");
        let told = "standard output cannot be written: No space left on device";
        assert!(text.contains(told), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_charts_question_whether_a_runner_is_enrolled_gets_its_answer() {
    let asked = CHART.lines().find(|line| line.contains("runner status |"));
    let asked = asked.expect("it asks").trim();
    let folder = binary("gantry-runner");
    let folder = folder.parent().expect("a folder").display();
    let script = format!("PATH='{folder}':$PATH; {asked} echo no; else echo yes; fi");
    let answer = async |runner: &Runner| {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-euc", &script]);
        let shell = shell.env("GANTRY_HOME", runner.home());
        said(&shell.output().await.expect("a shell"))
    };
    let no = (Some(0), "no\n".to_owned());
    assert_eq!(answer(&Runner::stranger()).await, no);
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let yes = (Some(0), "yes\n".to_owned());
    assert_eq!(answer(&runner).await, yes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_and_a_runner_whose_logs_nobody_reads_go_on() {
    let gantry = Gantry::practice().await;
    let token = gantry.join_token("laptop").await;
    let runner = Runner::enrol(gantry.url(), &token, "laptop").await;
    let mut daemon = program("gantry-runner", &runner.home(), &["run"]);
    daemon.env("GANTRY_LOG", "debug");
    let mut daemon = daemon.stdout(closed()).stderr(closed()).spawn();
    let daemon = daemon.as_mut().expect("it starts");
    gantry.until_online("laptop", true).await;
    let ran = gantry.cli(&["exec", "-r", "laptop", "--", "echo", "hello"]);
    assert_eq!(said(&ran.await), (Some(0), "hello\n".to_owned()));
    assert_eq!(ended(daemon).await, Some(0));

    let home = tempfile::tempdir().expect("a folder");
    let words = ["run", "--listen", "127.0.0.1:0", "--log", "debug"];
    let mut server = program("gantry-server", home.path(), &words);
    let mut server = server.stdout(Stdio::piped()).stderr(closed()).spawn();
    let server = server.as_mut().expect("it starts");
    let mut lines = BufReader::new(server.stdout.take().expect("it is piped")).lines();
    let url = loop {
        let line = lines.next_line().await.expect("it is text");
        let line = line.expect("it listens");
        if let Some(url) = line.strip_prefix("listening on ") {
            break url.to_owned();
        }
    };
    drop(lines);
    eventually("it answers", || async {
        let answer = reqwest::get(format!("{url}/livez")).await.ok()?;
        answer.status().is_success().then_some(())
    })
    .await;
    assert_eq!(ended(server).await, Some(0));
}

/// Asks it to stop; its exit code.
async fn ended(process: &mut tokio::process::Child) -> Option<i32> {
    let pid = i32::try_from(process.id().expect("it runs")).expect("an id");
    let pid = rustix::process::Pid::from_raw(pid).expect("an id");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    process.wait().await.expect("it ends").code()
}
