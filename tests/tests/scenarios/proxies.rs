//! The examples for nginx and Caddy, in front of a server as a deployment has them.

use std::{process::Stdio, time::Duration};

use server_api::Limits;
use server_router::links::LinkOptions;
use shared_client::PING_EVERY;
use tests::{
    front::{CADDY, Front, Kind, NGINX},
    gantry::{Gantry, PATIENCE, Runner, Setup},
};
use tokio::{io::AsyncWriteExt as _, process::Command, time::timeout};

/// More than a web server takes of a body unless it is told to.
const INPUT_BYTES: usize = 3 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn through_nginx_people_sign_in_runners_link_and_commands_run() {
    all_passes(Kind::Nginx).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn through_caddy_people_sign_in_runners_link_and_commands_run() {
    all_passes(Kind::Caddy).await;
}

async fn all_passes(kind: Kind) {
    let gantry = Gantry::with(Setup {
        settings: "[server]\nbehind_proxy = true\nclient_address_header = \"x-forwarded-for\"\n"
            .to_owned(),
        ..Setup::default()
    })
    .await;
    let front = Front::before(gantry.url(), kind).await;
    let trust = front.trust();
    let (variable, certificate) = trust.split_once('=').expect("a variable");

    let home = tempfile::tempdir().expect("a temporary folder");
    let code = gantry.sign_in_code().await;
    let mut login = gantry.terminal_by_way_of(front.url(), &["login", "--server", front.url()]);
    login
        .env_remove("GANTRY_TOKEN")
        .env("GANTRY_HOME", home.path())
        .env(variable, certificate);
    let said = passing(login, code.as_bytes()).await;
    assert!(
        said.contains(&format!("signed in to {}", front.url())),
        "{said}"
    );

    for transport in ["grpc", "websocket"] {
        let token = gantry.join_token(transport).await;
        let mut runner = Runner::enrol_by(&["env", &trust], front.url(), &token, transport).await;
        runner.options(&["--transport", transport]);
        runner.start();
        gantry.until_online(transport, true).await;
        runner
            .until_logged(&format!("transport=\"{transport}\""))
            .await;

        let run = |words: &[&str]| {
            let mut terminal = gantry.terminal_by_way_of(front.url(), words);
            terminal.env(variable, certificate);
            terminal
        };
        let counts = run(&[
            "exec",
            "-r",
            transport,
            "-i",
            "--",
            "sh",
            "-c",
            "wc -c; echo end",
        ]);
        let said = passing(counts, &vec![b'x'; INPUT_BYTES]).await;
        assert_eq!(said, format!("{INPUT_BYTES}\nend\n"));
        let said = passing(
            run(&["chat", "--runner", transport, "run echo $((6 * 7))"]),
            b"",
        )
        .await;
        assert!(said.contains("42\n"), "{said}");
    }
}

/// Runs a program to its end, with this as its input; it must succeed without a lost connection.
async fn passing(mut command: Command, input: &[u8]) -> String {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    let write = async move {
        // It may end before it has read all; then it fails.
        let _ = stdin.write_all(input).await;
    };
    let both = async { tokio::join!(child.wait_with_output(), write).0 };
    let ended = timeout(PATIENCE, both).await.expect("it does not hang");
    let ended = ended.expect("it ends");
    let complaints = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{complaints}");
    assert!(!complaints.contains("connection lost"), "{complaints}");
    String::from_utf8_lossy(&ended.stdout).into_owned()
}

#[test]
fn the_examples_wait_longer_than_any_stream_is_silent() {
    let signs_of_life = [
        PING_EVERY,
        Limits::default().keep_alive_every,
        LinkOptions::default().heartbeat_every,
    ];
    let hour = Duration::from_secs(3600);
    assert!(
        signs_of_life.iter().all(|every| *every * 60 <= hour),
        "{signs_of_life:?}"
    );
    for name in [
        "client_body_timeout",
        "send_timeout",
        "grpc_read_timeout",
        "grpc_send_timeout",
        "proxy_read_timeout",
        "proxy_send_timeout",
    ] {
        let line = NGINX.lines().find(|line| line.trim().starts_with(name));
        assert!(
            line.is_some_and(|line| line.ends_with(" 1h;")),
            "{name}: {line:?}"
        );
    }
    assert!(
        !CADDY.contains("timeout"),
        "Caddy has none unless it is told to"
    );
}
