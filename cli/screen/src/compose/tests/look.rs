use super::*;

#[test]
fn rows_have_a_mark_and_the_cursor_its_place() {
    let mut composer = composer();
    composer.set_placeholder("Ask for something".to_owned());
    assert_eq!(rows(&composer, 12, 5), ["› Ask for …"]);
    composer.set_text("one two three\n世界");
    assert_eq!(rows(&composer, 12, 5), ["› one two ", "  three", "  世界"]);
    let drawn = composer.draw(12, 5);
    assert_eq!((drawn.row, drawn.column), (2, 6));
}

#[test]
fn a_long_text_is_scrolled_to_the_cursor() {
    let mut composer = composer();
    composer.set_text("a\nb\nc\nd\ne");
    assert_eq!(rows(&composer, 20, 3), ["↑ c", "  d", "  e"]);
    press(&mut composer, &["Up", "Up", "Up", "Up"]);
    assert_eq!(rows(&composer, 20, 3), ["› a", "  b", "↓ c"]);
    assert_eq!(composer.draw(20, 3).row, 0);
}

#[test]
fn a_command_line_has_a_mark_of_its_own_and_a_note() {
    let mut composer = composer();
    type_in(&mut composer, "!ls");
    assert!(composer.is_command());
    assert_eq!(
        rows(&composer, 60, 5),
        ["! ls", "  runs on your runner; the model is not told"]
    );
    assert_eq!(composer.draw(60, 5).column, 4);
    assert_eq!(rows(&composer, 60, 1), ["! ls"]);
    assert_eq!(
        press(&mut composer, &["Enter"]),
        Action::Submit("!ls".to_owned())
    );
}

#[test]
fn hidden_characters_are_seen() {
    let mut composer = composer();
    composer.set_text("a\u{202e}b\u{200b}c");
    assert_eq!(rows(&composer, 20, 5), ["› a\u{fffd}b\u{fffd}c"]);
}

#[test]
fn spaces_that_hang_over_the_edge_do_not_widen_a_row() {
    let mut composer = composer();
    composer.set_text(&format!("ab{}", " ".repeat(50)));
    let drawn = composer.draw(10, 5);
    assert!(drawn.lines.iter().all(|line| line.width() <= 10));
    assert_eq!((drawn.row, drawn.column), (0, 9));
}
