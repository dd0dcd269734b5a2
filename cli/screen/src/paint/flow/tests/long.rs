use super::{printed, shown};
use crate::{
    paint::{Flow, markdown::LONG_BLOCK, shown::plain},
    transcript::{
        Transcript,
        tests::script::{Fed, Script, feed, said, shell, turn},
    },
};

fn code(lines: usize) -> String {
    let lines: String = (0..lines)
        .map(|line| format!("let line_{line} = \"a b\";\n"))
        .collect();
    format!("Look:\n\n```rust\n{lines}```\n\nDone.")
}

#[test]
fn a_long_block_of_code_is_printed_as_it_comes_and_only_once() {
    let mut script = Script::default();
    script.user("go").answer("", &code(500), &[]).done();
    let fed = script.fed_live(&[50]);
    let (mut transcript, mut flow, mut all) = (Transcript::new(), Flow::new(), Vec::new());
    let mut most_live = 0;
    for fed in &fed {
        feed(&mut transcript, fed);
        let step = flow.advance(&transcript, 80);
        most_live = most_live.max(step.live.len());
        all.extend(step.printed);
    }
    assert_eq!(plain(&all), printed(&script.fed(), 80));
    assert!(most_live <= LONG_BLOCK * 2, "{most_live}");
}

#[test]
fn a_long_block_whose_width_changes_loses_and_repeats_nothing() {
    let text = code(300);
    let mut fed = Script::default().user("go").fed();
    fed.extend((0..text.len()).step_by(40).map(|from| {
        let piece = &text[from..(from + 40).min(text.len())];
        Fed::Live(said(turn(1), 1, 1, 0, from as u64, piece, false))
    }));
    let (mut transcript, mut flow, mut all) = (Transcript::new(), Flow::new(), Vec::new());
    for (number, fed) in fed.iter().enumerate() {
        feed(&mut transcript, fed);
        all.extend(flow.advance(&transcript, [40, 80][number / 50 % 2]).printed);
    }
    all.extend(flow.advance(&transcript, 80).live);
    let all = plain(&all);
    let places: Vec<_> = (0..300)
        .map(|line| all.matches(&format!("line_{line} ")).count())
        .collect();
    assert_eq!(places, [1; 300]);
}

#[test]
fn the_output_of_a_command_that_runs_is_its_last_lines() {
    let mut script = Script::default();
    let output: String = (1..=20).map(|line| format!("line {line}\n")).collect();
    script
        .user("go")
        .answer("", "", &[("Shell", shell("make"))])
        .placed(0)
        .ended(
            0,
            shared_types::event::CallOutcome::Completed,
            &format!("{output}[exit code 0]"),
        );
    let mut fed = script.fed_live(&[1000]);
    fed.pop();
    insta::assert_snapshot!(plain(&shown(&fed, 60).live), @r"

    ○ Shell make
      on laptop · isolation: none
      … 14 more lines (Ctrl-O)
      line 15
      line 16
      line 17
      line 18
      line 19
      line 20
    ");
    assert_eq!(printed(&fed, 60), "› go");
}

#[test]
fn a_card_that_did_not_change_is_not_painted_again() {
    let mut script = Script::default();
    script
        .user("go")
        .answer("", "", &[("Shell", shell("make"))]);
    let transcript = crate::transcript::tests::script::transcript(&script.fed());
    let mut flow = Flow::new();
    flow.advance(&transcript, 60);
    let before = flow
        .cache
        .values()
        .map(|cached| cached.lines.as_ptr())
        .collect::<Vec<_>>();
    flow.advance(&transcript, 60);
    let after = flow
        .cache
        .values()
        .map(|cached| cached.lines.as_ptr())
        .collect::<Vec<_>>();
    assert_eq!(before, after);
    flow.advance(&transcript, 61);
    assert_ne!(
        before,
        flow.cache
            .values()
            .map(|cached| cached.lines.as_ptr())
            .collect::<Vec<_>>()
    );
}
