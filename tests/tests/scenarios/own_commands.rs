//! A line that begins with `!` in a conversation: a command of the person's own, where the session works.

use std::process::Stdio;

use tests::{
    gantry::{Gantry, Runner, Screen, eventually, processes_marked},
    model_server::{ModelServer, Reply},
    proxy::Proxy,
};
use tokio::io::AsyncWriteExt as _;

/// A conversation at its first prompt.
async fn conversation(gantry: &Gantry, arguments: &[&str]) -> Screen {
    let screen = gantry.screen(&[&["chat"], arguments].concat());
    screen.until_shown("/help").await;
    screen
}

async fn until_content(runner: &Runner, file: &str, content: &str) {
    let has = async || (runner.file(file)? == content).then_some(());
    eventually("the command came so far", has).await;
}

async fn until_gone(marker: &str) {
    let gone = async || processes_marked(marker).is_empty().then_some(());
    eventually("no process is left", gone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_runs_in_the_folder_and_workspace_of_the_session_and_the_history_keeps_it() {
    let gantry = Gantry::practice().await;
    let _active = gantry.runner("first").await;
    let second = gantry.runner("second").await;
    let api = second.home().join("api");
    std::fs::create_dir_all(api.join("src")).expect("a folder");
    let added = second
        .say(&["add-workspace", api.to_str().expect("text")])
        .await;
    assert!(added.status.success(), "{added:?}");
    let place = ["--runner", "second/api", "--dir", "src"];
    let known = async || {
        let runners = gantry.client().runners().await.ok()?;
        let mut all = runners.iter().flat_map(|runner| &runner.sandboxes);
        all.any(|one| one.name == "api").then_some(())
    };
    eventually("the runner names its workspaces", known).await;
    let screen = conversation(&gantry, &place).await;
    screen.type_in("!pwd; echo wrong >&2; cat; echo said >> log\r");
    let folder = api.join("src");
    screen
        .until_shown(&format!("{} wrong", folder.display()))
        .await;
    let said = async |times: usize| {
        let has = async || {
            let log = std::fs::read_to_string(folder.join("log")).ok()?;
            (log == "said\n".repeat(times)).then_some(())
        };
        eventually("it ran", has).await;
    };
    said(1).await;
    screen.type_in("\x1b[A\r");
    said(2).await;
    let sessions = gantry.client().sessions(1).await.expect("a list");
    let log = gantry.client().events(sessions[0].id, 0, 10).await;
    let events = log.expect("a log").events;
    assert_eq!(events.len(), 1, "the model hears of nothing: {events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_output_cannot_drive_the_terminal_is_bounded_and_only_a_bad_end_is_said() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let screen = conversation(&gantry, &[]).await;
    screen.type_in("!printf 'a\\033]0;owned\\007b\\n'; kill -TERM $$\r");
    screen.until_shown("killed by SIGTERM").await;
    assert!(screen.shown().contains("ab") && !screen.written().contains("\x1b]0;"));
    screen.type_in("!seq 1 2000; exit 3\r");
    screen
        .until_shown("… 4,893 more characters: gantry output op_")
        .await;
    screen.until_shown("\nexit 3\n").await;
    assert!(screen.shown().contains("1020\n1021\n") && !screen.shown().contains("\n1022"));
    screen.type_in("!\r");
    screen.until_shown("! runs the rest of the line").await;
    assert!(!screen.shown().contains("exit 0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_stops_it_with_what_it_started_and_the_conversation_goes_on() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let screen = conversation(&gantry, &[]).await;
    let marker = format!("MARKER=bang-{}", std::process::id());
    screen.type_in(&format!(
        "!{marker} sh -c 'echo begun | tr a-z A-Z; sleep 1000 & wait'\r"
    ));
    screen.until_shown("BEGUN").await;
    screen.type_in("\x03");
    screen.until_shown("stopped").await;
    until_gone(&marker).await;
    screen.type_in("!echo on and on | tr a-z A-Z\r");
    screen.until_shown("ON AND ON").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_it_while_the_server_is_away_is_told_that_it_may_still_run() {
    let gantry = Gantry::practice().await;
    let proxy = Proxy::before(gantry.url()).await;
    let runner = gantry.runner("laptop").await;
    let screen = Screen::start(&gantry.terminal_by_way_of(proxy.url(), &["chat"]));
    screen.until_shown("/help").await;
    screen.type_in("!touch began; until [ -e go ]; do sleep 0.02; done; echo it >> ended\r");
    until_content(&runner, "began", "").await;
    proxy.set(|weather| weather.refuses = true);
    proxy.cut();
    screen.until_shown("connection lost; trying again").await;
    screen.type_in("\x03");
    screen.until_shown("stopping").await;
    screen.type_in("\x03");
    screen
        .until_shown("it may still run: gantry kill op_")
        .await;
    std::fs::write(runner.workspace().join("go"), "").expect("it is written");
    until_content(&runner, "ended", "it\n").await;
    proxy.clear();
    screen.type_in("!echo again >> ended\r");
    until_content(&runner, "ended", "it\nagain\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn during_a_turn_it_runs_beside_it_and_the_prompt_waits_for_its_end() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    let build = r#"{"command":"echo half; until [ -e go ]; do sleep 0.02; done"}"#;
    model.script(vec![Reply::call("Shell", build), Reply::text("the answer")]);
    let screen = conversation(&gantry, &[]).await;
    screen.type_in("build\r");
    screen.until_shown("half").await;
    screen.type_in("!echo one; echo two; exit 3\r");
    screen.until_shown("one\ntwo\nexit 3").await;
    screen.type_in("!echo late; sleep 1000\r");
    screen
        .until_shown("! echo late; sleep 1000 runs beside the turn")
        .await;
    std::fs::write(runner.workspace().join("go"), "").expect("it is written");
    screen.until_shown("the answer").await;
    screen.until_shown("tokens in").await;
    screen.until_shown("○ ! echo late; sleep 1000 · ").await;
    assert!(!screen.shown().contains("late\n"), "it comes in one block");
    screen.type_in("\x03");
    screen.until_shown("late\nstopped").await;
    screen.type_in("!echo next > next\r");
    until_content(&runner, "next", "next\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_passes_on_lines_cannot_run_one() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let mut chat = gantry.terminal(&["chat"]);
    let chat = chat.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut chat = chat.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = chat.stdin.take().expect("a pipe");
    lines.write_all(b"!touch ran\n").await.expect("it reads");
    drop(lines);
    let ended = chat.wait_with_output().await.expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(
        said.contains("! runs a command only on a terminal"),
        "{said}"
    );
    assert_eq!(runner.file("ran"), None);
}
