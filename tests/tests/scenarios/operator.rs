use std::process::Stdio;

use tests::gantry::binary;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

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
