use serde_json::json;
use shared_types::event::{CallOutcome, TurnOutcome};

use super::{Fold, item};
use crate::{
    paint::shown::{plain, shown},
    transcript::{
        item::Kind,
        tests::script::{Script, shell, transcript},
    },
};

/// The first call of a session, painted.
fn card(script: &Script, columns: usize, fold: Fold) -> Vec<ratatui_core::text::Line<'static>> {
    let transcript = transcript(&script.fed());
    let call = transcript
        .items()
        .find(|item| matches!(item.kind, Kind::Call(_)));
    item(call.expect("a call"), columns, fold)
}

fn ended(outcome: CallOutcome, text: &str) -> String {
    let mut script = Script::default();
    script
        .user("go")
        .answer("", "", &[("Shell", shell("make"))]);
    script.ended(0, outcome, text);
    shown(&card(&script, 60, Fold::Folded))
}

#[test]
fn the_mark_of_a_call_has_the_colour_of_its_state() {
    let mut script = Script::default();
    script
        .user("go")
        .answer("", "", &[("Shell", shell("make"))]);
    let runs = shown(&card(&script, 60, Fold::Live));
    assert_eq!(runs, "<dim>○ </><bold>Shell</> make");
    let well = ended(CallOutcome::Completed, "[no output]\n[exit code 0]");
    assert_eq!(well, "<green>● </><bold>Shell</> make");
    let bad = ended(CallOutcome::Completed, "[no output]\n[exit code 3]");
    assert_eq!(bad, "<red>● </><bold>Shell</> make\n  <red>exit 3</>");
    let refused = ended(CallOutcome::Refused, "not run: no");
    assert_eq!(
        refused,
        "<red>● </><bold>Shell</> make\n  <red>✗ not run: no</>"
    );
}

#[test]
fn a_long_message_is_folded_and_whole_on_the_page_of_everything() {
    let message: String = (0..100).map(|line| format!("line {line}\n")).collect();
    let mut script = Script::default();
    script.user(&message);
    let transcript = transcript(&script.fed());
    let user = transcript
        .items()
        .find(|item| matches!(item.kind, Kind::User(_)))
        .expect("a message");
    let folded = plain(&item(user, 60, Fold::Folded));
    assert_eq!(folded.lines().count(), 25, "{folded}");
    assert!(folded.ends_with("… 76 more lines (Ctrl-O)"), "{folded}");
    assert_eq!(plain(&item(user, 60, Fold::Whole)).lines().count(), 100);
}

#[test]
fn a_command_is_never_cut() {
    let command: String = (0..100).map(|line| format!("echo {line}\n")).collect();
    let mut script = Script::default();
    script
        .user("go")
        .answer("", "", &[("Shell", shell(&command))]);
    script.ended(0, CallOutcome::Completed, "[exit code 0]");
    let rows = plain(&card(&script, 60, Fold::Folded));
    assert!(
        (0..100).all(|line| rows.lines().any(|row| row == format!("  echo {line}"))),
        "{rows}"
    );
}

#[test]
fn a_card_that_is_unfolded_shows_all_that_is_kept() {
    let output: String = (1..=100).map(|line| format!("line {line}\n")).collect();
    let mut script = Script::default();
    script
        .user("go")
        .answer("", "", &[("Shell", shell("make"))]);
    script.ended(0, CallOutcome::Completed, &format!("{output}[exit code 0]"));
    let folded = card(&script, 60, Fold::Folded);
    assert_eq!(folded.len(), 1 + 2 + 1 + 6);
    assert_eq!(card(&script, 60, Fold::Whole).len(), 1 + 100);
}

#[test]
fn a_read_that_failed_says_why_and_a_search_counts_its_matches() {
    let mut script = Script::default();
    script.user("go").answer(
        "",
        "",
        &[(
            "Grep",
            json!({"pattern": "x", "path": "src", "files": "*.rs"}),
        )],
    );
    script.ended(
        0,
        CallOutcome::Completed,
        "a:1:x\nb:2:x\n[there are more; narrow the pattern or the files]",
    );
    let rows = plain(&card(&script, 60, Fold::Folded));
    assert_eq!(rows, "● Grep \"x\" in src/*.rs · 2 matches, and more");
}

#[test]
fn a_turn_that_failed_says_why() {
    let mut script = Script::default();
    script
        .user("go")
        .turn_ended(TurnOutcome::Failed, Some("no credit"));
    let transcript = transcript(&script.fed());
    let end = transcript.items().last().expect("the end");
    assert_eq!(
        shown(&item(end, 60, Fold::Folded)),
        "<red>✗ failed: no credit</>"
    );
}

#[test]
fn a_narrow_terminal_is_painted_for_as_well() {
    let mut script = Script::default();
    script
        .user("go")
        .answer("hm", "words", &[("Shell", shell("make all"))]);
    for columns in 0..12 {
        for of in transcript(&script.fed()).items() {
            for fold in [Fold::Folded, Fold::Whole, Fold::Live] {
                item(of, columns, fold);
            }
        }
    }
}
