//! Pagers by what stands on the screen of a terminal.

use std::num::NonZeroU16;

use super::*;

const SIZE: Size = Size {
    columns: 60,
    rows: 5,
};

/// Forty lines, or twice as many on half the columns.
fn pager() -> Pager {
    Pager::new("A title\x1b[2J", |columns| {
        let parts = if columns < 60 { 2 } else { 1 };
        (0..40 * parts)
            .map(|number| Line::raw(format!("line {}", number / parts)))
            .collect()
    })
}

fn rows(pager: &mut Pager, size: Size) -> Vec<String> {
    let number = |number| NonZeroU16::new(number).expect("a screen has cells");
    let mut parser = vt100::Parser::new(number(size.rows), number(size.columns), 0);
    parser.process(b"rubbish\r\nrubbish\r\nrubbish");
    parser.process(&pager.draw(size));
    parser
        .screen()
        .rows(0, size.columns)
        .map(|row| row.trim_end().to_owned())
        .collect()
}

fn press(pager: &mut Pager, keys: &str) {
    for letter in keys.chars() {
        let code = match letter {
            '\r' => KeyCode::Enter,
            letter => KeyCode::Char(letter),
        };
        assert_eq!(pager.key(code.into()), Paged::Moved, "{letter}");
    }
}

#[test]
fn a_page_of_lines_stands_above_the_status() {
    let mut pager = pager();
    let shown = rows(&mut pager, SIZE);
    assert_eq!(shown[..4], ["line 0", "line 1", "line 2", "line 3"]);
    assert!(
        shown[4].starts_with(" A title · 1–4 of 40 · 10% "),
        "{shown:?}"
    );
    for (keys, top) in [
        (" ", 3),
        ("b", 0),
        ("jjj", 3),
        ("G", 36),
        ("k", 35),
        ("jjjj", 36),
        ("g", 0),
    ] {
        press(&mut pager, keys);
        assert_eq!(rows(&mut pager, SIZE)[0], format!("line {top}"), "{keys}");
    }
    assert_eq!(pager.key(KeyCode::Char('x').into()), Paged::None);
}

#[test]
fn q_escape_and_the_key_that_opened_it_leave() {
    let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    for key in [
        KeyCode::Char('q').into(),
        KeyCode::Esc.into(),
        control('c'),
        control('o'),
    ] {
        assert_eq!(pager().key(key), Paged::Left);
    }
}

#[test]
fn a_search_goes_round_in_both_directions() {
    let mut pager = pager();
    rows(&mut pager, SIZE);
    press(&mut pager, "/LINE 2");
    assert_eq!(rows(&mut pager, SIZE)[4], "/LINE 2");
    press(&mut pager, "\r");
    for (keys, top) in [("", 2), ("n", 20), ("N", 2), ("N", 29), ("n", 2)] {
        press(&mut pager, keys);
        assert_eq!(rows(&mut pager, SIZE)[0], format!("line {top}"), "{keys}");
    }
    press(&mut pager, "/nowhere\r");
    assert!(rows(&mut pager, SIZE)[4].ends_with("not found: nowhere"));
}

#[test]
fn what_was_found_stands_out() {
    let line = Line::from(vec![Span::raw("one t"), Span::raw("wo two")]);
    let line = emphasized(&line, "TWO");
    let reversed = |span: &&Span<'_>| span.style.add_modifier.contains(Modifier::REVERSED);
    let found: Vec<_> = line
        .spans
        .iter()
        .filter(reversed)
        .map(|span| &*span.content)
        .collect();
    assert_eq!(
        (line.to_string().as_str(), found),
        ("one two two", vec!["two", "two"])
    );
}

#[test]
fn a_resize_keeps_the_place() {
    let mut pager = pager();
    rows(&mut pager, SIZE);
    press(&mut pager, "    ");
    assert_eq!(rows(&mut pager, SIZE)[0], "line 12");
    let narrow = Size {
        columns: 30,
        rows: 8,
    };
    assert_eq!(rows(&mut pager, narrow)[..2], ["line 12", "line 12"]);
    assert_eq!(
        rows(
            &mut pager,
            Size {
                columns: 1,
                rows: 1
            }
        )
        .len(),
        1
    );
    let mut at_end = Pager::new("end", |_| vec![Line::raw("a"); 9]).from_end();
    assert!(rows(&mut at_end, SIZE)[4].contains("6–9 of 9"));
    assert!(rows(&mut Pager::new("none", |_| Vec::new()), SIZE)[4].contains("0–0 of 0"));
}
