use std::process::Stdio;

use tests::gantry::{Screen, binary, eventually};
use tokio::process::Command;

const PROGRAMS: [&str; 3] = ["gantry", "gantry-runner", "gantry-server"];

/// More columns than any line has.
const ENDLESS: &str = "10000";

/// The help of a verb: its command, as it would be typed.
fn help(program: &str, verb: &[String]) -> Command {
    let mut command = Command::new(binary(program));
    command
        .args(verb)
        .arg("--help")
        .env_clear()
        .env("NO_COLOR", "1");
    command
}

/// The help where no line has to be broken.
async fn unbroken(program: &str, verb: &[String]) -> String {
    let mut command = help(program, verb);
    command.env("COLUMNS", ENDLESS).stdin(Stdio::null());
    let said = command.output().await.expect("it starts");
    assert!(said.status.success(), "{program} {verb:?}");
    String::from_utf8(said.stdout).expect("text")
}

/// The verbs that a page of help lists.
fn verbs(page: &str) -> Vec<String> {
    let listed = page.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.split_whitespace().next());
    let names = names.filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

fn words(page: &str) -> Vec<&str> {
    page.split_whitespace().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_help_text_fits_a_terminal_of_80_columns_and_is_broken_between_words() {
    for program in PROGRAMS {
        let mut left = vec![Vec::new()];
        while let Some(verb) = left.pop() {
            let whole = unbroken(program, &verb).await;
            let screen = Screen::start(&help(program, &verb));
            let all = async || {
                let shown = screen.written();
                (words(&shown) == words(&whole)).then_some(shown)
            };
            let what = format!("{program} {verb:?} shows all its words, and no others");
            let shown = eventually(&what, all).await;
            for line in shown.lines() {
                assert!(line.chars().count() <= 80, "{program} {verb:?}: {line:?}");
            }
            for name in verbs(&whole) {
                left.push([verb.clone(), vec![name]].concat());
            }
        }
    }
}
