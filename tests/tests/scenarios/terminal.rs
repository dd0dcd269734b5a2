use std::process::Stdio;

use shared_api::RoleName;
use shared_types::Event;
use tests::{
    gantry::{Gantry, Runner, Screen, Setup, eventually},
    model_server::{ModelServer, Reply},
    proxy::Proxy,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

async fn until_there(runner: &Runner, file: &str) {
    let there = || async { runner.file(file).map(|_| ()) };
    eventually("the command came so far", there).await;
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
    assert!(!said.contains("│ long ago"), "{said}");
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
    gantry.talk().await.say(&"many words ".repeat(20)).await;
    let listed = text(&gantry.cli(&["sessions"]).await.stdout);
    assert!(
        listed.contains("many words many words many words many words many words many…\n"),
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

#[tokio::test(flavor = "multi_thread")]
async fn an_offline_runner_is_told_once_and_the_exit_code_says_that_nothing_was_done() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let mut runner = gantry.runner("laptop").await;
    runner.stop().await;
    gantry.until_online("laptop", false).await;
    // A model that would try whatever it has, call after call.
    let tries = |n| Reply::call("Shell", format!(r#"{{"command":"touch ran; : {n}"}}"#));
    model.script((0..9).map(tries).collect());
    let output = gantry.cli(&["chat", "go"]).await;
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let told = said
        .matches("the active runner \"laptop\" is offline")
        .count();
    assert_eq!(told, 1, "{said}");
    assert_eq!(runner.file("ran"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_stays_away_while_a_command_runs_ends_the_turn_and_the_exit_code_says_so() {
    let gantry = Gantry::with(Setup {
        settings: "[runners]\nwaited_for_s = 1\n".to_owned(),
        ..Setup::default()
    })
    .await;
    let proxy = Proxy::before(gantry.url()).await;
    let runner = gantry.runner_by_way_of(proxy.url(), "laptop").await;
    let command = "run echo half; touch began; until [ -e go ]; do sleep 0.02; done; touch ended";
    let arguments = ["chat", command];
    let chat = gantry.cli(&arguments);
    let cut = async {
        until_there(&runner, "began").await;
        proxy.set(|weather| weather.refuses = true);
        proxy.cut();
    };
    let (output, ()) = tokio::join!(chat, cut);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let told = "✗ failed: the runner went offline before it told how a call ended";
    assert!(said.contains(told), "{said}");
    // The command outlived the turn, and its end is told with the next one.
    std::fs::write(runner.workspace().join("go"), "").expect("it is written");
    until_there(&runner, "ended").await;
    proxy.clear();
    gantry.until_online("laptop", true).await;
    let output = gantry.cli(&["chat", "-c", "run ls"]).await;
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("ended"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_piped_in_is_sent_with_the_message() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    model.script(vec![Reply::text("seen")]);
    let mut chat = gantry.terminal(&["chat", "review", "this"]);
    let mut chat = chat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut stdin = chat
        .as_mut()
        .expect("it starts")
        .stdin
        .take()
        .expect("a pipe");
    stdin.write_all(b"+a new line\n").await.expect("it reads");
    drop(stdin);
    let output = chat
        .expect("it starts")
        .wait_with_output()
        .await
        .expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let session = &gantry.client().sessions(1).await.expect("a list")[0];
    let log = gantry
        .client()
        .events(session.id, 0, 10)
        .await
        .expect("a log");
    let sent = log.events.iter().find_map(|event| match event.known() {
        Some(Event::InputAccepted { parts, .. }) => Some(parts.words()),
        _ => None,
    });
    assert_eq!(sent.as_deref(), Some("review this\n\n+a new line\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_shown_whole() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let command = format!("echo {} the-end", "word ".repeat(60));
    let output = gantry.cli(&["chat", &format!("run {command}")]).await;
    let said = text(&output.stdout);
    let card = said.lines().find(|line| line.starts_with("● Shell"));
    assert!(card.is_some_and(|card| card.ends_with("the-end")), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_goes_on_sees_the_title_and_the_last_exchange() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    talk.say("run echo the first").await;
    talk.say("run echo the second").await;
    let said = text(&gantry.cli(&["chat", "-c"]).await.stdout);
    assert!(
        said.contains("run echo the first · just now · ses_"),
        "{said}"
    );
    assert!(said.contains("› run echo the second\n● 1 call\n"), "{said}");
    assert!(!said.contains("› run echo the first"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_command_a_conversation_begins() {
    let gantry = Gantry::practice().await;
    let output = gantry.cli(&[]).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("practice model"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_operations_keys_and_runners_are_named_by_the_beginning_of_an_id() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let mut first = gantry.talk().await;
    let told = first.say("run echo the output").await;
    let operation = told.operations()[0].to_string();
    gantry.talk().await.say("list").await;
    let sessions = gantry.client().sessions(2).await.expect("a list");
    let [last, first] = [0, 1].map(|place| sessions[place].id.to_string());
    let same = first
        .bytes()
        .zip(last.bytes())
        .take_while(|(one, other)| one == other);
    let unique = &first[..=same.count()];
    let shown = text(&gantry.cli(&["show", unique]).await.stdout);
    assert!(shown.contains("the output"), "{shown}");
    let shown = text(&gantry.cli(&["show", "last"]).await.stdout);
    assert!(shown.contains("› list"), "{shown}");
    let several = gantry.cli(&["show", "ses_0"]).await;
    assert_eq!(several.status.code(), Some(1));
    let several = text(&several.stderr);
    assert!(
        several.contains(&first) && several.contains(&last),
        "{several}"
    );

    let output = gantry.cli(&["output", &operation[..12]]).await;
    assert_eq!(text(&output.stdout), "the output\n");
    let runner = gantry.client().runners().await.expect("a list")[0]
        .id
        .to_string();
    let used = text(&gantry.cli(&["runners", "use", &runner]).await.stdout);
    assert!(used.contains("laptop is your active runner now"), "{used}");
    let key = gantry.client().create_key("nightly").await.expect("a key");
    let key = key.entry.id.to_string();
    let removed = gantry.cli(&["keys", "remove", &key[..key.len() - 1]]).await;
    assert_eq!(text(&removed.stdout), format!("removed {key} (nightly)\n"));
    for name in ["weekly", "twice", "twice"] {
        gantry.client().create_key(name).await.expect("a key");
    }
    let removed = gantry.cli(&["keys", "remove", "weekly"]).await;
    let said = text(&removed.stdout);
    assert!(said.ends_with(" (weekly)\n"), "{said}");
    let several = gantry.cli(&["keys", "remove", "twice"]).await;
    let said = text(&several.stderr);
    assert!(said.contains("twice names several keys"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_active_runner_is_named_and_its_namesake_is_not_mistaken_for_it() {
    let gantry = Gantry::practice().await;
    let _first = gantry.runner("laptop").await;
    let asked = gantry.cli(&["runners", "remove", "laptop"]).await;
    let said = text(&asked.stderr);
    assert!(said.contains("add --yes to remove runner laptop"), "{said}");
    let removed = gantry.cli(&["runners", "remove", "--yes", "laptop"]).await;
    assert!(text(&removed.stderr).contains("was the active runner"));
    let _second = gantry.runner("laptop").await;
    let status = text(&gantry.cli(&["status"]).await.stdout);
    assert!(
        status.contains("laptop (removed); the laptop that is enrolled now is another one"),
        "{status}"
    );
    let listed = gantry.cli(&["runners", "list"]).await;
    assert!(
        !text(&listed.stdout).contains('*'),
        "{}",
        text(&listed.stdout)
    );
    assert!(text(&listed.stderr).contains("active: laptop (removed)"));
    let json = text(&gantry.cli(&["status", "--json"]).await.stdout);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["active_runner_removed"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_active_runner_that_is_not_shared_any_more_does_not_count_as_removed() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let bobs = gantry.person("bob", RoleName::Member).await;
    let bob = async |words: &[&str]| {
        let mut command = gantry.terminal(words);
        let said = command.env("GANTRY_TOKEN", &bobs).output().await;
        text(&said.expect("it starts").stderr)
    };
    for (verb, with) in [("share", "--with=bob"), ("unshare", "--with=bob")] {
        let done = gantry.cli(&["runners", verb, "laptop", with]).await;
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        bob(&["runners", "use", "laptop"]).await;
    }
    let said = bob(&["runners"]).await;
    assert!(
        said.contains("laptop (not shared with you any more)"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_or_a_code_that_is_not_valid_is_answered_with_what_helps() {
    let gantry = Gantry::practice().await;
    let mut status = gantry.terminal(&["status"]);
    let said = status
        .env("GANTRY_TOKEN", "gantry_key_nonsense")
        .output()
        .await;
    let said = text(&said.expect("it starts").stderr);
    assert!(said.contains("GANTRY_TOKEN holds a key"), "{said}");
    assert!(!said.contains("gantry login"), "{said}");
    let mut login = gantry.terminal(&["login"]);
    login.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut login = login.spawn().expect("it starts");
    let mut stdin = login.stdin.take().expect("a pipe");
    stdin.write_all(b"mistyped\n").await.expect("it reads");
    drop(stdin);
    let said = login.wait_with_output().await.expect("it ends");
    let said = text(&said.stderr);
    assert!(
        said.contains("code") && !said.contains("run: gantry login"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taken_name_is_refused_at_once_and_a_fixed_one_is_not_lost_in_silence() {
    let gantry = Gantry::practice().await;
    let _laptop = gantry.runner("laptop").await;
    let taken = gantry.cli(&["runners", "add", "laptop"]).await;
    assert_eq!(taken.status.code(), Some(1));
    assert!(text(&taken.stderr).contains("a runner called laptop exists"));
    let added = gantry
        .cli(&["runners", "add", "desk", "--json", "--valid-for", "1h"])
        .await;
    let added: serde_json::Value = serde_json::from_slice(&added.stdout).expect("JSON");
    let token = added["token"].as_str().expect("a token");
    let machine = Runner::stranger();
    let refused = machine.try_enrol(gantry.url(), token, "shelf").await;
    assert_eq!(refused.status.code(), Some(1));
    let words = text(&refused.stderr);
    assert!(
        words.contains("fixes the runner's name: desk, not shelf"),
        "{words}"
    );
    let enrolled = machine.try_enrol(gantry.url(), token, "desk").await;
    assert!(enrolled.status.success(), "{}", text(&enrolled.stderr));
}

/// A command that says so with a file of this name, and then waits for another one.
fn waits(began: &str, until: &str) -> String {
    format!("run touch {began}; until [ -e {until} ]; do sleep 0.02; done\r")
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_queued_during_a_turn_are_sent_after_it_in_their_order() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let screen = gantry.screen(&["chat"]);
    screen.until_shown("/help").await;
    screen.type_in(&waits("began", "go"));
    until_there(&runner, "began").await;
    for number in 1..=3 {
        screen.type_in(&format!("/queue run echo {number} >>order\r"));
    }
    std::fs::write(runner.workspace().join("go"), "").expect("it is written");
    let all = || async { (runner.file("order")? == "1\n2\n3\n").then_some(()) };
    eventually("all three ran in their order", all).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_stops_a_turn_and_forgets_the_lines_that_wait_for_its_end() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let screen = gantry.screen(&["chat"]);
    screen.until_shown("/help").await;
    screen.type_in(&waits("first", "never"));
    until_there(&runner, "first").await;
    screen.type_in("/new\rrun touch second\r");
    screen.until_shown("↳ run touch second").await;
    screen.type_in("\x03");
    screen.until_shown("not sent: run touch second").await;
    screen.until_shown("■ cancelled").await;
    screen.type_in("run touch third\r");
    until_there(&runner, "third").await;
    assert_eq!(runner.file("second"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_while_the_server_is_away_is_not_told_that_a_turn_is_being_stopped() {
    let gantry = Gantry::practice().await;
    let proxy = Proxy::before(gantry.url()).await;
    let runner = gantry.runner("laptop").await;
    let mut screen = Screen::start(&gantry.terminal_by_way_of(proxy.url(), &["chat"]));
    screen.until_shown("/help").await;
    screen.type_in(&waits("began", "go"));
    until_there(&runner, "began").await;
    proxy.set(|weather| weather.refuses = true);
    proxy.cut();
    screen.type_in("\x03");
    screen.until_shown("stopping").await;
    screen.type_in("\x03");
    screen
        .until_shown("it may still run: gantry cancel ses_")
        .await;
    assert_eq!(screen.ended().await, Some(130));
}
