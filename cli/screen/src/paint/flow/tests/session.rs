use serde_json::json;
use shared_types::event::{
    Answer, CallOutcome, PlannedCall, Question, TodoItem, TodoState, TurnOutcome,
};

use super::{super::pages, printed};
use crate::{
    paint::shown::plain,
    transcript::tests::script::{Script, shell, transcript},
};

fn todo(items: &[(&str, TodoState)]) -> Vec<TodoItem> {
    let items = items.iter().map(|(text, state)| TodoItem {
        text: (*text).to_owned(),
        state: *state,
    });
    items.collect()
}

pub(super) fn planned(text: &str) -> PlannedCall {
    PlannedCall {
        tool: "Shell".into(),
        text: text.into(),
        cut: false,
        directory: "crates/parser".into(),
        environment: Vec::new(),
        paths: Vec::new(),
        runner: None,
        runner_name: "laptop".into(),
        isolation: "none".into(),
        risk: shared_types::Risk::High,
        reasons: vec!["it deletes files".into()],
        why: "mode ask".into(),
        rule: Some("Shell(rm *)".into()),
        editable: true,
    }
}

fn lines(from: usize, to: usize) -> String {
    (from..=to)
        .map(|line| format!("{line}\tlet line_{line} = {line};\n"))
        .collect()
}

/// A session of about 40 calls of all kinds, in which a test writes so many lines.
pub(super) fn session(written: usize) -> Script {
    let mut script = Script::default();
    script.user("Find out why the parser drops the last token,\nand fix it.");
    script.answer(
        "The user wants me to look at the parser.\nI begin with the files.",
        "I look at the parser first.",
        &[
            ("Read", json!({"path": "src/parser.rs"})),
            ("Grep", json!({"pattern": "fn next_token", "path": "src"})),
            ("Glob", json!({"pattern": "**/*.rs"})),
            ("List", json!({"path": "tests"})),
        ],
    );
    script.placed(0).placed(1).placed(2).placed(3);
    script.ended(0, CallOutcome::Completed, &lines(1, 120));
    script.ended(
        1,
        CallOutcome::Completed,
        "src/a.rs:1:fn next_token\nsrc/b.rs:2:fn next_token",
    );
    script.ended(2, CallOutcome::Completed, "src/a.rs\nsrc/b.rs\n");
    script.ended(3, CallOutcome::Completed, "ok.txt  4 bytes\nmore/");
    for file in 1..=12 {
        let path = json!({"path": format!("src/part_{file}.rs"), "first_line": 200});
        script.call("Read", path, &lines(200, 240));
    }
    script.answer(
        "Only one thing is left to look at.",
        "",
        &[("Read", json!({"path": "src/lost.rs"}))],
    );
    script.placed(0);
    script.ended(
        0,
        CallOutcome::Failed,
        "failed: src/lost.rs: there is no such file",
    );
    script.call("todo_write", json!({"list": "x"}), "kept");
    script.todo(todo(&[
        ("find the fault", TodoState::Doing),
        ("fix it", TodoState::Open),
        ("test it", TodoState::Open),
    ]));
    let test =
        "cargo test --package parser --all-features -- --nocapture tokens::the_last_token_is_kept";
    script.answer("", "", &[("Shell", shell(test))]).placed(0);
    let output: String = (1..=written)
        .map(|line| format!("test number_{line} ... ok\n"))
        .collect();
    script.took(
        0,
        CallOutcome::Completed,
        &format!("{output}[exit code 101, after 75 s]"),
        75_300,
    );
    script.call(
        "Edit",
        json!({"path": "src/parser.rs", "old": "    let end = tokens.len() - 1;\n    take(end)\n", "new": "    let end = tokens.len();\n    take(end)\n"}),
        "edited src/parser.rs at line 41",
    );
    script.call(
        "Write",
        json!({"path": "tests/last.rs", "content": "use parser::tokens;\n\n#[test]\nfn the_last_token_is_kept() {\n    assert_eq!(tokens(\"a b\").len(), 2);\n}\n"}),
        "made tests/last.rs with 103 bytes",
    );
    script.todo(todo(&[
        ("find the fault", TodoState::Done),
        ("fix it", TodoState::Doing),
        ("test it", TodoState::Open),
    ]));
    let several = "set -e\nfor file in *.rs; do\n  rustfmt \"$file\"\ndone";
    script.call("Shell", shell(several), "a\nb\n[exit code 0]");
    script.answer(
        "",
        "Now I remove the old file.",
        &[(
            "Shell",
            json!({"command": "rm old.rs", "directory": "crates/parser"}),
        )],
    );
    script.asked(0, Question::Call(Box::new(planned("rm old.rs"))));
    let allowed = Answer::Allowed {
        command: None,
        rule: Some("Shell(rm *)".into()),
        mode: None,
    };
    script.approved(0, allowed).placed_on(0, "build-server");
    script.ended(0, CallOutcome::Completed, "[no output]\n[exit code 0]");
    script.answer("", "", &[("Shell", shell("git push"))]);
    script.asked(0, Question::Call(Box::new(planned("git push"))));
    let denied = Answer::Denied {
        words: Some("not yet".into()),
    };
    script.approved(0, denied);
    script.ended(
        0,
        CallOutcome::Refused,
        "not run: a person did not allow it: not yet",
    );
    script
        .answer("", "", &[("Shell", shell("make serve"))])
        .placed(0)
        .background(0, 1);
    script.call(
        "task_read",
        json!({"task": 1}),
        "listening\n[task 1 still runs, for 2 s; read on with task_read {}]",
    );
    script.call(
        "web_search",
        json!({"query": "rust off by one"}),
        "1. A page\nhttps://a.test\n\n2. Another\n",
    );
    script.call("recall", json!({"of": "r3"}), "old text");
    script
        .answer("", "", &[("Shell", shell("sleep 999"))])
        .placed(0);
    script.took(
        0,
        CallOutcome::TimedOut,
        "[stopped at its time limit; ended by signal 9]",
        120_000,
    );
    script.answer(
        "",
        "",
        &[
            ("Grep", json!({"pattern": "todo"})),
            ("Read", json!({"path": "README.md"})),
        ],
    );
    script.placed(0).placed(1);
    script.ended(0, CallOutcome::Completed, "[no line matches]");
    script.ended(1, CallOutcome::Completed, "1\t# Parser\n");
    script.answer(
        "",
        "The parser dropped the last token, because `len() - 1` was used as an **end**.\n\n- fixed in `src/parser.rs`\n- tested in `tests/last.rs`\n\n```rust\nlet end = tokens.len();\n```\n\nAll tests pass now.",
        &[],
    );
    script.done();
    script.settled_task("exit code 0, after 3 min");
    script.user("Thanks. Commit it.");
    script
        .answer(
            "Simple.",
            "",
            &[(
                "Shell",
                shell("git commit -am 'parser: keep the last token'"),
            )],
        )
        .placed(0);
    script.turn_ended(
        TurnOutcome::Failed,
        Some("the model server refused the request: no credit is left"),
    );
    script
}

#[test]
fn a_session_of_forty_calls_reads_well_at_every_width() {
    let script = session(1210);
    for columns in [60, 80, 120] {
        insta::assert_snapshot!(
            format!("session_{columns}"),
            printed(&script.fed(), columns)
        );
    }
}

#[test]
fn the_pager_shows_all_of_it_unfolded() {
    let rows = plain(&pages(transcript(&session(40).fed()).items(), 80));
    for whole in [
        "  I begin with the files.",
        "  120 let line_120 = 120;",
        "  test number_20 ... ok",
        "● Read src/part_12.rs from line 200 · 41 lines",
    ] {
        assert!(rows.contains(whole), "{whole}\n{rows}");
    }
}
