use std::process::Stdio;

use tests::{
    gantry::Gantry,
    model_server::{ModelServer, Reply},
};
use tokio::io::AsyncReadExt as _;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_shows_the_call_its_place_its_output_and_the_answer() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    std::fs::write(runner.workspace().join("hello.txt"), "hi\n").expect("it can be written");
    let output = gantry.cli(&["chat", "what is in this folder?"]).await;
    let said = text(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{said}{}",
        text(&output.stderr)
    );
    assert!(said.contains("practice model (no AI)"), "{said}");
    assert!(
        said.contains("List") && said.contains("laptop") && said.contains("isolation: none"),
        "{said}"
    );
    assert!(said.contains("hello.txt"), "{said}");
    assert!(
        !said.contains('\u{1b}'),
        "no colours where nobody looks: {said:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_lost_the_terminal_comes_back_to_what_is_under_way() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    talk.say("run echo long ago").await;
    talk.send("run echo begun; until [ -e go ]; do sleep 0.02; done; echo the end")
        .await;
    talk.until_output("begun").await;
    let mut terminal = gantry.terminal(&["chat", "--continue"]);
    let mut terminal = terminal.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut stdout = terminal.stdout.take().expect("it is piped");
    let mut said = String::new();
    while !said.contains("│ begun\n") {
        let mut piece = [0; 1024];
        let read = stdout.read(&mut piece).await.expect("it says more");
        assert!(read > 0, "{said}");
        said.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    std::fs::write(runner.workspace().join("go"), "").expect("it is written");
    stdout.read_to_string(&mut said).await.expect("text");
    let ended = terminal.wait().await.expect("it ends");
    assert_eq!(ended.code(), Some(0), "{said}");
    assert!(said.contains("› run echo begun"), "{said}");
    assert!(said.contains("│ the end"), "{said}");
    assert!(!said.contains("long ago"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_one_object_a_line_with_every_event() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let output = gantry.cli(&["chat", "run echo hi", "--json"]).await;
    let lines: Vec<serde_json::Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let kinds: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["event"]["type"].as_str())
        .collect();
    assert!(
        kinds.contains(&"call.ended") && kinds.last() == Some(&"turn.ended"),
        "{kinds:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn output_cannot_drive_the_terminal() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let _runner = gantry.runner("laptop").await;
    model.script(vec![
        Reply::call(
            "Shell",
            r#"{"command":"printf '\\033]0;owned\\007 \\033[2Jx'"}"#,
        ),
        Reply::text("\u{1b}[31mred"),
    ]);
    let output = gantry.cli(&["chat", "go"]).await;
    assert!(
        !output.stdout.contains(&0x1b) && !output.stdout.contains(&0x07),
        "{:?}",
        text(&output.stdout)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn runners_are_listed_and_chosen() {
    let gantry = Gantry::practice().await;
    let _first = gantry.runner("first").await;
    let _second = gantry.runner("second").await;
    let chosen = gantry.cli(&["runners", "use", "second"]).await;
    assert_eq!(chosen.status.code(), Some(0), "{}", text(&chosen.stderr));
    let listed = text(&gantry.cli(&["runners"]).await.stdout);
    assert!(
        listed.contains("first") && listed.contains("second") && listed.contains("none"),
        "{listed}"
    );
    let json = text(&gantry.cli(&["runners", "--json"]).await.stdout);
    let active: Vec<String> = json
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .filter(|runner| runner["active"] == true)
        .map(|runner| runner["name"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(active, ["second"]);
    let unknown = gantry.cli(&["runners", "use", "third"]).await;
    assert_eq!(unknown.status.code(), Some(1));
    assert!(
        text(&unknown.stderr).contains("third") || text(&unknown.stderr).contains("runner"),
        "{}",
        text(&unknown.stderr)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_listed_with_the_beginning_of_their_first_message() {
    let gantry = Gantry::practice().await;
    gantry.talk().await.say("a message to be remembered").await;
    let listed = text(&gantry.cli(&["sessions"]).await.stdout);
    assert!(
        listed.contains("a message to be remembered") && listed.contains("ses_"),
        "{listed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_or_a_sign_in_the_next_step_is_said() {
    let home = tempfile::tempdir().expect("a folder");
    let output = std::process::Command::new(tests::gantry::binary("gantry"))
        .args(["sessions"])
        .env_clear()
        .env("GANTRY_HOME", home.path())
        .output()
        .expect("it starts");
    assert_ne!(output.status.code(), Some(0));
    assert!(
        text(&output.stderr).contains("gantry login"),
        "{}",
        text(&output.stderr)
    );
}
