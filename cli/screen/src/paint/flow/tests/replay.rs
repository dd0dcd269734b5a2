use proptest::prelude::*;
use shared_api::Live;

use super::{printed, session::session, shown};
use crate::{
    paint::{Flow, shown::plain},
    transcript::Transcript,
    transcript::tests::script::{Fed, Script, feed, said, turn},
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_live_session_prints_the_same_as_its_log(
        cuts in proptest::collection::vec(1_usize..40, 1..40),
        columns in 20_usize..130,
    ) {
        let script = session(30);
        let log = script.fed();
        let live = script.fed_live(&cuts);
        prop_assert_eq!(printed(&live, columns), printed(&log, columns));
    }

    #[test]
    fn the_number_of_steps_makes_no_difference(steps in proptest::collection::vec(1_usize..30, 1..20)) {
        let fed = session(30).fed_live(&[7, 3, 11]);
        let (mut transcript, mut flow, mut lines) = (Transcript::new(), Flow::new(), Vec::new());
        let mut steps = steps.into_iter().cycle();
        let mut rest = fed.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(steps.next().unwrap_or(1).min(rest.len()));
            now.iter().for_each(|fed| feed(&mut transcript, fed));
            lines.extend(flow.advance(&transcript, 80).printed);
            rest = later;
        }
        prop_assert_eq!(plain(&lines), printed(&fed, 80));
    }
}

#[test]
fn a_printed_text_that_is_taken_back_is_said_to_be_void() {
    let mut fed = Script::default().user("go").fed();
    let text = "A first paragraph.\n\nA second one that\ngoes on";
    fed.push(Fed::Live(said(turn(1), 1, 1, 0, 0, text, false)));
    fed.push(Fed::Live(Live::TakenBack {
        turn: turn(1),
        step: 1,
        attempt: 1,
    }));
    fed.push(Fed::Live(said(turn(1), 1, 2, 0, 0, "Anew.\n\nAnd", false)));
    let shown = shown(&fed, 60);
    insta::assert_snapshot!(plain(&shown.printed), @r"
    › go

    A first paragraph.

    · what the model said last is void: it broke off
    ");
    insta::assert_snapshot!(plain(&shown.live), @r"

    Anew.

    And
    ");
}

#[test]
fn a_thought_that_was_printed_whole_is_said_to_be_void_once() {
    let mut fed = Script::default().user("go").fed();
    fed.push(Fed::Live(said(turn(1), 1, 1, 0, 0, "hm", true)));
    fed.push(Fed::Live(said(turn(1), 1, 1, 1, 0, "So", false)));
    for attempt in [1, 1] {
        fed.push(Fed::Live(Live::TakenBack {
            turn: turn(1),
            step: 1,
            attempt,
        }));
    }
    let said = printed(&fed, 60);
    assert_eq!(said.matches("is void").count(), 1, "{said}");
}

#[test]
fn a_text_that_was_not_printed_is_taken_back_without_a_trace() {
    let mut fed = Script::default().user("go").fed();
    let before = printed(&fed, 60);
    fed.push(Fed::Live(said(turn(1), 1, 1, 0, 0, "Only a begin", false)));
    fed.push(Fed::Live(Live::TakenBack {
        turn: turn(1),
        step: 1,
        attempt: 1,
    }));
    let shown = shown(&fed, 60);
    assert_eq!(plain(&shown.printed), before);
    assert_eq!(plain(&shown.live), "");
}

#[test]
fn another_width_changes_later_lines_alone() {
    let mut script = Script::default();
    let words = "several words that need some room ".repeat(4);
    script
        .user("go")
        .answer("", &format!("{words}\n\n{words}\n\n{words}"), &[])
        .done();
    let fed = script.fed_live(&[9]);
    let (mut transcript, mut flow, mut all) = (Transcript::new(), Flow::new(), Vec::new());
    for (number, fed) in fed.iter().enumerate() {
        feed(&mut transcript, fed);
        let columns = if number % 2 == 0 { 30 } else { 70 };
        all.extend(flow.advance(&transcript, columns).printed);
    }
    let said = plain(&all).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(said, format!("› go {}", words.repeat(3).trim_end()));
}
