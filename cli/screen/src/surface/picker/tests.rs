//! Pickers by their keys and by what stands on their lines.

use super::*;

fn choices() -> Vec<Choice> {
    let choice = |label: &str, detail: &str, is_enabled| Choice {
        label: label.to_owned(),
        detail: detail.to_owned(),
        mark: (label == "opus").then_some('✓'),
        is_enabled,
    };
    vec![
        choice("haiku", "small and fast", false),
        choice("opus", "large", true),
        choice("sonnet", "between haiku and opus", true),
        choice("gpt-5", "", true),
    ]
}

fn press(picker: &mut Picker, code: KeyCode) -> Picked {
    picker.key(code.into())
}

fn type_in(picker: &mut Picker, text: &str) {
    for letter in text.chars() {
        assert_eq!(press(picker, KeyCode::Char(letter)), Picked::Moved);
    }
}

fn texts(bottom: &Bottom) -> Vec<String> {
    let lines = bottom.lines.iter();
    lines
        .map(|line| line.to_string().trim_end().to_owned())
        .collect()
}

#[test]
fn the_list_shows_marks_details_and_the_highlighted_choice() {
    let mut picker = Picker::new("Model", choices());
    let bottom = picker.draw(40, 10);
    assert_eq!(
        texts(&bottom)[..6],
        [
            "Model  4 of 4",
            "›",
            "    haiku   small and fast",
            "❯ ✓ opus    large",
            "    sonnet  between haiku and opus",
            "    gpt-5",
        ]
    );
    assert_eq!(bottom.cursor, Some(Position { row: 1, column: 2 }));
    // A screen that is narrow and low.
    for (columns, rows) in [(1, 1), (8, 3), (12, 5)] {
        let bottom = picker.draw(columns, rows);
        assert!(bottom.lines.len() <= usize::from(rows).max(FRAME_ROWS));
    }
}

#[test]
fn typing_finds_words_in_any_order_and_names_first() {
    let mut picker = Picker::new("Model", choices());
    type_in(&mut picker, "OP");
    assert_eq!(texts(&picker.draw(40, 10))[0], "Model  2 of 4");
    assert_eq!(picker.highlighted(), Some(1));
    type_in(&mut picker, " between");
    assert_eq!(picker.highlighted(), Some(2));
    let control_u = KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL);
    assert_eq!(picker.key(control_u), Picked::Moved);
    type_in(&mut picker, "snt");
    assert_eq!(press(&mut picker, KeyCode::Enter), Picked::Chosen(2));
    type_in(&mut picker, "?");
    assert_eq!(press(&mut picker, KeyCode::Enter), Picked::None);
    assert_eq!(texts(&picker.draw(40, 10))[2], "  nothing found");
    assert_eq!(press(&mut picker, KeyCode::Backspace), Picked::Moved);
    assert_eq!(picker.query(), "snt");
}

#[test]
fn keys_move_choose_and_leave() {
    let mut picker = Picker::new("Model", choices());
    assert_eq!(press(&mut picker, KeyCode::Home), Picked::Moved);
    // A choice that is shown only.
    assert_eq!(press(&mut picker, KeyCode::Enter), Picked::None);
    assert_eq!(press(&mut picker, KeyCode::Up), Picked::Moved);
    assert_eq!(press(&mut picker, KeyCode::Enter), Picked::Chosen(3));
    assert_eq!(press(&mut picker, KeyCode::Down), Picked::Moved);
    assert_eq!(picker.highlighted(), Some(0));
    assert_eq!(press(&mut picker, KeyCode::PageUp), Picked::None);
    assert_eq!(press(&mut picker, KeyCode::End), Picked::Moved);
    assert_eq!(press(&mut picker, KeyCode::Esc), Picked::Cancelled);
}

#[test]
fn a_long_list_scrolls_with_the_highlighted_choice() {
    let choice = |number| Choice {
        label: format!("c{number}"),
        is_enabled: true,
        ..Choice::default()
    };
    let mut picker = Picker::new("Many", (0..50).map(choice).collect());
    let shown = |picker: &mut Picker| texts(&picker.draw(20, 8))[2..7].join(",");
    assert_eq!(shown(&mut picker), "❯   c0,    c1,    c2,    c3,    c4");
    press(&mut picker, KeyCode::PageDown);
    assert_eq!(shown(&mut picker), "    c1,    c2,    c3,    c4,❯   c5");
    press(&mut picker, KeyCode::End);
    assert_eq!(
        shown(&mut picker),
        "    c45,    c46,    c47,    c48,❯   c49"
    );
    press(&mut picker, KeyCode::Up);
    assert_eq!(
        shown(&mut picker),
        "    c45,    c46,    c47,❯   c48,    c49"
    );
}

#[test]
fn a_preview_stands_below_or_beside_its_own_choice_only() {
    let mut picker = Picker::new("Model", choices());
    picker.set_preview(1, vec![Line::raw("preview"), Line::raw("more")]);
    let below = texts(&picker.draw(40, 12));
    assert_eq!(below[6..8], ["preview", "more"]);
    let beside = texts(&picker.draw(120, 12));
    assert!(beside[2].contains("small and fast") && beside[2].ends_with("preview"));
    press(&mut picker, KeyCode::Down);
    assert!(!texts(&picker.draw(40, 12)).contains(&"preview".to_owned()));
}
