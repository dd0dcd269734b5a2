use super::*;
use crate::compose::buffer::Buffer;
use proptest::prelude::*;

fn rows(text: &str, columns: usize) -> Vec<&str> {
    let pastes = Pastes::default();
    let source = Source {
        text,
        pastes: &pastes,
    };
    let mut layout = Layout::default();
    layout.update(source, columns, None);
    (0..layout.row_count())
        .map(|row| &text[layout.range(text, row)])
        .collect()
}

#[test]
fn rows_break_between_words_and_anywhere_between_wide_letters() {
    assert_eq!(rows("the quick brown", 9), ["the quick ", "brown"]);
    assert_eq!(rows("abcdefgh", 3), ["abc", "def", "gh"]);
    assert_eq!(rows("世界世界 ab", 5), ["世界", "世界 ", "ab"]);
    assert_eq!(rows("a\n\nb\n", 5), ["a", "", "b", ""]);
    assert_eq!(rows("👩‍👩‍👧👩‍👩‍👧", 3), ["👩‍👩‍👧", "👩‍👩‍👧"]);
    assert_eq!(rows("", 5), [""]);
    let words = "word ".repeat(30);
    assert!(
        rows(&words, 60)
            .iter()
            .all(|row| row.trim_end().len() <= 60)
    );
}

#[test]
fn a_place_is_found_by_its_row_and_column() {
    let text = "ab 世界\nxyz";
    let pastes = Pastes::default();
    let source = Source {
        text,
        pastes: &pastes,
    };
    let mut layout = Layout::default();
    layout.update(source, 20, None);
    assert_eq!(layout.place(source, text.find('界').unwrap()), (0, 5));
    assert_eq!(layout.at(source, 0, 6), text.find('界').unwrap());
    assert_eq!(layout.at(source, 1, 9), text.len());
    layout.update(source, 5, None);
    assert_eq!(
        layout.at(source, 0, 9),
        text.find('世').unwrap(),
        "the row goes on behind it"
    );
}

#[test]
fn a_change_in_a_long_text_lays_a_few_rows() {
    let pastes = Pastes::default();
    let mut buffer = Buffer::default();
    let paragraph = format!("{}\n", "some words 世界 ".repeat(60));
    buffer.reset(paragraph.repeat(256), 0);
    let mut layout = Layout::default();
    let mut laid = Vec::new();
    for at in [0, 100_000, usize::MAX] {
        for with in ["x", "\n"] {
            buffer.go(at);
            let at = buffer.cursor();
            buffer.replace(at..at, with);
            let source = Source {
                text: buffer.text(),
                pastes: &pastes,
            };
            laid.push(layout.update(source, 60, buffer.take_changed()));
        }
    }
    assert!(laid[0] > 4_000, "the first time lays all: {laid:?}");
    assert!(laid[1..].iter().all(|&rows| rows < 30), "{laid:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_change_gives_the_same_rows_as_laying_everything(
        text in "[a-c \n世\u{301}🇩👩\u{200d}!]{0,60}",
        edits in prop::collection::vec((0usize..80, 0usize..6, "[a-c \n世\u{301}🇩\u{200d}!]{0,8}"), 1..8),
        columns in 2usize..9,
    ) {
        let pastes = Pastes::default();
        let mut buffer = Buffer::default();
        buffer.reset(text, 0);
        let mut layout = Layout::default();
        for (at, length, with) in edits {
            buffer.go(at);
            let start = buffer.cursor();
            buffer.go(start + length);
            let end = buffer.cursor();
            buffer.replace(start..end, &with);
            let source = Source { text: buffer.text(), pastes: &pastes };
            layout.update(source, columns, buffer.take_changed());
            let mut whole = Layout::default();
            whole.update(source, columns, None);
            prop_assert_eq!(&layout.starts, &whole.starts);
        }
    }
}
