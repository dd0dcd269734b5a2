use shared_types::{
    Risk,
    event::{PlannedCall, PlannedPath, Question},
};

use super::asked;
use crate::{
    paint::shown::{plain, shown},
    transcript::{
        item::Kind,
        tests::script::{Script, shell, transcript},
    },
};

fn planned(tool: &str, text: &str) -> PlannedCall {
    PlannedCall {
        tool: tool.into(),
        text: text.into(),
        cut: false,
        directory: "crates/parser".into(),
        environment: vec!["TOKEN".into()],
        paths: Vec::new(),
        runner: None,
        runner_name: "laptop".into(),
        isolation: "none".into(),
        risk: Risk::High,
        reasons: vec!["it deletes files".into(), "it has a pipe".into()],
        why: "mode ask".into(),
        rule: Some("Shell(rm *)".into()),
        editable: true,
    }
}

#[test]
fn a_command_is_asked_about_with_its_place_and_its_risk() {
    let call = planned("Shell", "rm -rf target |\n  tee log");
    let rows = asked(&Question::Call(Box::new(call)), None, 60);
    insta::assert_snapshot!(shown(&rows), @r"
    <yellow>? </>May <bold>Shell</> run?
      <dim>on laptop in crates/parser · isolation: none</>

      rm -rf target |
        tee log
      <dim>with TOKEN</>

      <red>risk high: it deletes files; it has a pipe</><dim> · mode ask</>
    ");
}

#[test]
fn all_of_a_long_command_is_shown() {
    let text: String = (0..300).map(|line| format!("echo {line}\n")).collect();
    let rows = asked(&Question::Call(Box::new(planned("Shell", &text))), None, 60);
    let rows = plain(&rows);
    assert!((0..300).all(|line| rows.contains(&format!("echo {line}\n"))));
}

#[test]
fn a_question_that_was_cut_shows_all_of_its_call() {
    let mut script = Script::default();
    script
        .user("go")
        .answer("", "", &[("Shell", shell("echo begin\necho end"))]);
    let transcript = transcript(&script.fed());
    let calls = transcript.items().find_map(|item| match &item.kind {
        Kind::Call(call) => Some(&**call),
        _ => None,
    });
    let mut call = planned("Shell", "echo begin");
    call.cut = true;
    let of = Question::Call(Box::new(call));
    assert!(plain(&asked(&of, None, 60)).contains("… more of it was left out"));
    let whole = plain(&asked(&of, calls, 60));
    assert!(
        whole.contains("echo end") && !whole.contains("left out"),
        "{whole}"
    );
}

#[test]
fn an_edit_is_asked_about_with_all_of_its_diff() {
    let mut call = planned(
        "Edit",
        "every occurrence:\n-old\n-same\n--- note\n+new\n+same\n+-- note\n",
    );
    call.paths = vec![PlannedPath {
        path: "src/a.rs".into(),
        digest: None,
    }];
    (call.rule, call.environment) = (None, Vec::new());
    let rows = asked(&Question::Call(Box::new(call)), None, 60);
    insta::assert_snapshot!(plain(&rows), @r"
    ? May Edit change src/a.rs?
      on laptop in crates/parser · isolation: none

      every occurrence:
      1 - old
      1 + new
      2   same
      3   -- note

      risk high: it deletes files; it has a pipe · mode ask
    ");
}

#[test]
fn a_list_that_is_written_is_not_taken_for_an_edit() {
    let mut call = planned("Write", "- one\n- two\n");
    call.paths = vec![PlannedPath {
        path: "list.md".into(),
        digest: None,
    }];
    let rows = plain(&asked(&Question::Call(Box::new(call)), None, 60));
    assert!(
        rows.contains("- one\n") && rows.contains("- two\n"),
        "{rows}"
    );
    assert!(rows.contains("  1 - one"), "{rows}");
}

#[test]
fn a_free_question_has_numbered_choices() {
    let free = Question::Free {
        text: "Which colour?".into(),
        choices: vec![
            "red".into(),
            "a blue that is like the sea in the morning of a long day".into(),
        ],
    };
    insta::assert_snapshot!(plain(&asked(&free, None, 40)), @r"
    ? Which colour?
      1 red
      2 a blue that is like the sea in the
        morning of a long day
    ");
}
