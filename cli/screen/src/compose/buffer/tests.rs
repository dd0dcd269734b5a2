use super::*;

fn buffer(text: &str) -> Buffer {
    let mut buffer = Buffer::default();
    buffer.reset(text.to_owned(), text.len());
    buffer
}

fn type_in(buffer: &mut Buffer, text: &str) {
    for letter in text.chars() {
        let at = buffer.cursor();
        buffer.replace(at..at, letter.encode_utf8(&mut [0; 4]));
    }
}

#[test]
fn the_cursor_never_stands_inside_a_cluster() {
    let mut buffer = buffer("👩‍👩‍👧e\u{301}");
    let before_e = buffer.previous(buffer.cursor());
    assert_eq!(before_e, "👩‍👩‍👧".len());
    assert_eq!(buffer.previous(before_e), 0);
    buffer.go(5);
    assert_eq!(buffer.cursor(), before_e);
    buffer.reset("\u{301}".to_owned(), 0);
    buffer.replace(0..0, "e");
    assert_eq!(buffer.cursor(), buffer.text().len());
}

#[test]
fn undo_takes_words_back_one_by_one() {
    let mut buffer = buffer("");
    type_in(&mut buffer, "two words");
    assert!(buffer.undo());
    assert_eq!(buffer.text(), "two ");
    assert!(buffer.undo());
    assert_eq!((buffer.text(), buffer.cursor()), ("", 0));
    assert!(!buffer.undo());
}

#[test]
fn undo_brings_removed_text_back() {
    let mut buffer = buffer("one two");
    for _ in 0..3 {
        let at = buffer.cursor();
        buffer.replace(buffer.previous(at)..at, "");
    }
    buffer.replace(0..4, "1");
    assert_eq!(buffer.text(), "1");
    assert!(buffer.undo() && buffer.undo());
    assert_eq!((buffer.text(), buffer.cursor()), ("one two", 7));
}

#[test]
fn several_changes_are_reported_as_one_part() {
    let mut buffer = buffer("0123456789");
    buffer.take_changed();
    buffer.replace(2..3, "ab");
    buffer.replace(6..7, "");
    assert_eq!(buffer.take_changed(), Some(Changed { head: 2, tail: 4 }));
    assert_eq!(buffer.take_changed(), None);
}
