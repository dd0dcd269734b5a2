//! What people see on a terminal of 80 columns: tables, and who they are told to ask.

use std::process::Stdio;

use shared_api::RoleName;
use tests::gantry::{Gantry, Runner, Screen, eventually};

const LONG: &str = "a-machine-with-a-name-that-is-as-long-as-names-may-be-in-the-end";

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// What a command says on a terminal, without colours, once it has ended well.
async fn shown(gantry: &Gantry, words: &[&str]) -> Vec<String> {
    let mut command = gantry.terminal(words);
    command.env("NO_COLOR", "1");
    let mut screen = Screen::start(&command);
    assert_eq!(
        screen.whole().await,
        Some(0),
        "{words:?}: {:?}",
        screen.shown()
    );
    let shown = screen.written();
    shown
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_fits_80_columns_with_a_line_a_row_and_is_whole_as_json() {
    let gantry = Gantry::practice().await;
    let name = &LONG[..63];
    let _long = gantry.runner(name).await;
    let _short = gantry.runner("laptop").await;
    let person = "a-colleague-with-a-longer-name";
    gantry.person(person, RoleName::Member).await;
    for words in [
        ["runners", "share", name, "--with", person],
        [
            "keys",
            "add",
            name,
            "--from",
            "2001:db8:1234:5678:9abc:def0:1234:0/112",
        ],
        [
            "runners",
            "add",
            "other",
            "--label",
            "team=the-one-with-long-words",
        ],
    ] {
        let done = gantry.cli(&words).await;
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    }
    let message = format!("run echo {LONG} {LONG}");
    gantry.talk().await.say(&message).await;
    let ran = gantry.cli(&["exec", "-r", name, "echo", LONG, LONG]).await;
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    for words in [
        &["runners"][..],
        &["runners", "tokens"],
        &["keys"],
        &["people"],
        &["sessions"],
        &["ps", "-a"],
    ] {
        let said = shown(&gantry, words).await;
        for line in &said {
            assert!(line.chars().count() <= 80, "{words:?}: {line:?}");
        }
        let json = gantry.cli(&[words, &["--json"]].concat()).await;
        let json = text(&json.stdout);
        let table = said.iter().filter(|line| !is_note(line));
        assert_eq!(
            table.count(),
            json.lines().count() + 1,
            "{words:?}: {said:#?}"
        );
    }
    let runners = shown(&gantry, &["runners"]).await;
    assert_eq!(
        runners.len(),
        4,
        "a heading, a line a row, and what the star means: {runners:#?}"
    );
    assert!(
        runners[3].starts_with("* your active runner"),
        "{runners:#?}"
    );
}

/// Whether a line says something beside the table.
fn is_note(line: &str) -> bool {
    line.starts_with("* ") && !line.starts_with("*  ")
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_removed_or_new_is_told_to_ask_who_invites() {
    let gantry = Gantry::practice().await;
    let bobs = gantry.person("bob", RoleName::Member).await;
    let bob = async |words: &[&str], token: Option<&str>| {
        let mut command = gantry.terminal(words);
        match token {
            Some(token) => command.env("GANTRY_TOKEN", token),
            None => command.env_remove("GANTRY_TOKEN"),
        };
        let said = command.stdin(Stdio::null()).output().await;
        let said = said.expect("it starts");
        text(&said.stdout) + &text(&said.stderr)
    };
    let said = bob(&["runners"], Some(&bobs)).await;
    assert!(said.contains("ask its owner to share one"), "{said}");
    let said = bob(&["status"], Some(&bobs)).await;
    assert!(said.contains("ask its owner to share one"), "{said}");
    let said = bob(&["exec", "true"], Some(&bobs)).await;
    assert!(said.contains("ask its owner to share one"), "{said}");
    let removed = gantry.cli(&["people", "remove", "bob", "--yes"]).await;
    assert_eq!(removed.status.code(), Some(0), "{}", text(&removed.stderr));
    for (words, token) in [
        (&["status"][..], Some(bobs.as_str())),
        (&["login", "--server", gantry.url()], None),
    ] {
        let said = bob(words, token).await;
        assert!(said.contains("ask the person who invites you"), "{said}");
        assert!(!said.contains("prints when it starts"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn status_says_when_the_last_session_works_elsewhere() {
    let gantry = Gantry::practice().await;
    let _first = gantry.runner("first").await;
    let _second = gantry.runner("second").await;
    let said = text(
        &gantry
            .cli(&["chat", "hello", "--runner", "second"])
            .await
            .stdout,
    );
    assert!(!said.is_empty());
    let status = text(&gantry.cli(&["status"]).await.stderr);
    assert!(status.contains("is pinned to runner second"), "{status}");
    gantry.cli(&["runners", "use", "second"]).await;
    let status = text(&gantry.cli(&["status"]).await.stderr);
    assert_eq!(status, "", "it works on the active one");
}

#[tokio::test(flavor = "multi_thread")]
async fn last_and_continue_mean_the_same_session_whatever_is_archived() {
    let gantry = Gantry::practice().await;
    gantry.talk().await.say("the elder").await;
    gantry.talk().await.say("the younger").await;
    let done = gantry.cli(&["sessions", "archive", "last"]).await;
    assert!(text(&done.stdout).contains("the younger"));
    for words in [
        &["chat", "-c"][..],
        &["chat", "--session", "last"],
        &["show", "last"],
    ] {
        let said = text(&gantry.cli(words).await.stdout);
        assert!(
            said.contains("the elder") && !said.contains("the younger"),
            "{said}"
        );
    }
    gantry.cli(&["sessions", "archive", "last"]).await;
    for words in [&["chat", "-c"][..], &["show", "last"]] {
        let said = text(&gantry.cli(words).await.stderr);
        assert!(said.contains("gantry sessions --archived"), "{said}");
    }
}

async fn until_there(runner: &Runner, file: &str) {
    let there = async || runner.file(file);
    eventually("the command came so far", there).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_during_a_turn_stands_in_the_box_at_once_and_waits_there() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let screen = gantry.screen(&["chat"]);
    screen.until_shown("/help").await;
    screen.type_in("run touch began; until [ -e go ]; do sleep 0.02; done\r");
    until_there(&runner, "began").await;
    screen.until_shown("running Shell · 1").await;
    screen.type_in("run echo xyzzy | tr a-z A-Z");
    assert!(!screen.echoes(), "the terminal must not write by itself");
    screen.until_shown("› run echo xyzzy | tr a-z A-Z").await;
    std::fs::write(runner.workspace().join("go"), "").expect("it is written");
    let is_over = async || (!screen.shown().contains("running Shell")).then_some(());
    eventually("the turn is over", is_over).await;
    screen.type_in("\r");
    screen.until_shown("XYZZY").await;
}
