use std::{os::unix::fs::PermissionsExt as _, process::Stdio};

use tests::gantry::{Gantry, Runner, binary, eventually};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

/// Says in a shell that stderr leads to systemd's journal, as systemd would.
const TO_THE_JOURNAL: &str = "export JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2)";

/// A server in a shell that says something first, in a new home; and the lines that it prints
/// until it listens.
async fn server(
    home: &tempfile::TempDir,
    first: &str,
    environment: &[(&str, &str)],
) -> (Child, String) {
    let mut server = Command::new("sh")
        .args([
            "-c",
            &format!("{first}; exec \"$0\" run --listen 127.0.0.1:0"),
        ])
        .arg(binary("gantry-server"))
        .env_clear()
        .env("GANTRY_HOME", home.path())
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("a shell");
    let stdout = server.stdout.take().expect("it is piped");
    let mut lines = BufReader::new(stdout).lines();
    let mut printed = String::new();
    while !printed.contains("listening on") {
        let line = lines.next_line().await.expect("it is text");
        printed += &line.expect("it listens");
        printed += "\n";
    }
    (server, printed)
}

#[tokio::test]
async fn a_server_takes_as_many_connections_as_the_system_lets_it() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let (server, _) = server(&home, "ulimit -Sn 64", &[]).await;
    let pid = server.id().expect("it runs");
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs");
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let mut numbers = files.expect("a limit").split_whitespace().skip(3);
    assert_eq!(numbers.next(), numbers.next(), "{limits}");
}

#[tokio::test]
async fn a_switch_in_the_environment_is_understood_as_people_write_it() {
    for (value, scheme) in [
        ("1", "https:"),
        ("true", "https:"),
        ("0", "http:"),
        ("", "http:"),
    ] {
        let home = tempfile::tempdir().expect("a temporary folder");
        let (_server, printed) = server(&home, ":", &[("GANTRY_TLS", value)]).await;
        assert!(
            printed.contains(&format!("listening on {scheme}")),
            "{value:?}: {printed}"
        );
    }
}

#[tokio::test]
async fn a_log_that_leads_to_systemds_journal_leaves_the_time_to_it() {
    let elsewhere = "export JOURNAL_STREAM=8:1234";
    for (said, begins) in [(TO_THE_JOURNAL, " INFO"), (elsewhere, "20")] {
        let home = tempfile::tempdir().expect("a temporary folder");
        let log = home.path().join("log");
        let first = format!("exec 2>'{}'; {said}", log.display());
        let _server = server(&home, &first, &[]).await;
        let line = eventually("it logs that it listens", || async {
            let log = std::fs::read_to_string(&log).expect("a log");
            let mut lines = log.lines();
            lines
                .find(|line| line.contains("listening"))
                .map(str::to_owned)
        });
        let line = line.await;
        assert!(line.starts_with(begins), "{said}: {line}");
    }
    let gantry = Gantry::practice().await;
    let token = gantry.join_token("laptop").await;
    let mut runner = Runner::enrol(gantry.url(), &token, "laptop").await;
    let words = format!("{TO_THE_JOURNAL}; exec \"$@\"");
    runner.launch_by(&["sh", "-c", &words, "sh"]);
    runner.start();
    runner.until_logged("runner connected").await;
    let log = runner.log();
    let mut lines = log.lines();
    assert!(lines.all(|line| line.starts_with(" INFO")), "{log}");
}

#[tokio::test]
async fn a_join_token_in_a_file_is_its_users_alone_and_comes_only_until_the_runner_is_enrolled() {
    let gantry = Gantry::practice().await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("token");
    let path = file.to_str().expect("text").to_owned();
    let ask = async || {
        let asked = ["join-token", "--name", "laptop", "--once", "--file", &path];
        let done = gantry.operator(&asked).output().await.expect("it starts");
        assert!(done.status.success(), "{done:?}");
        assert_eq!(done.stdout, b"");
    };
    ask().await;
    let first = std::fs::read_to_string(&file).expect("a token");
    ask().await;
    let token = std::fs::read_to_string(&file).expect("a token");
    assert_ne!(first, token, "one that ran out is replaced");
    let rights = std::fs::metadata(&file).expect("a file").permissions();
    assert_eq!(rights.mode() & 0o777, 0o600);

    let _runner = Runner::enrol(gantry.url(), token.trim(), "laptop").await;
    ask().await;
    assert!(!file.exists(), "the runner is enrolled");
}
