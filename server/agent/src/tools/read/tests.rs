use super::*;

fn part(content: &[u8]) -> ReadContent {
    ReadContent {
        content: content.to_vec(),
        first_line: 1,
        lines: content.split_inclusive(|byte| *byte == b'\n').count() as u64,
        file_bytes: content.len() as u64,
        more: false,
        digest: None,
    }
}

#[test]
fn lines_carry_their_numbers() {
    let read = ReadContent {
        first_line: 9,
        ..part(b"a\n\nb")
    };
    assert_eq!(numbered(&read, 1024), "9\ta\n10\t\n11\tb\n");
}

#[test]
fn a_file_that_goes_on_says_where_to_read_on() {
    let read = ReadContent {
        more: true,
        file_bytes: 999,
        ..part(b"a\nb\n")
    };
    assert!(
        numbered(&read, 1024)
            .ends_with("2\tb\n[the file has 999 bytes; read on with first_line 3]")
    );
}

#[test]
fn lines_that_do_not_fit_are_left_for_the_next_read() {
    let text = numbered(&part("0123456789\n".repeat(500).as_bytes()), 1024);
    assert!(text.len() <= 1024);
    let (lines, note) = text.rsplit_once('\n').expect("there is a note");
    let last: u64 = lines
        .lines()
        .last()
        .and_then(|line| line.split('\t').next())
        .and_then(|number| number.parse().ok())
        .expect("a number");
    assert_eq!(
        note,
        format!(
            "[the file has 5500 bytes; read on with first_line {}]",
            last + 1
        )
    );
}

#[test]
fn a_line_longer_than_any_result_is_cut_and_passed_by() {
    let text = numbered(
        &part(format!("{}\nnext\n", "ä".repeat(4000)).as_bytes()),
        1024,
    );
    assert!(text.len() <= 1024);
    assert!(text.contains("[line 1 has at least 8000 bytes and is cut"));
    assert!(text.ends_with("read on with first_line 2]"));
}

#[test]
fn an_empty_file_and_a_line_beyond_the_end_are_told_apart() {
    assert_eq!(numbered(&part(b""), 1024), "[the file is empty]");
    let beyond = ReadContent {
        first_line: 7,
        file_bytes: 3,
        ..part(b"")
    };
    assert_eq!(numbered(&beyond, 1024), "[the file ends before line 7]");
}

#[test]
fn text_that_is_not_utf_8_is_said_to_be() {
    let text = numbered(&part(b"caf\xe9\n"), 1024);
    assert!(text.starts_with("1\tcaf\u{FFFD}\n") && text.contains("not all UTF-8"));
}

#[test]
fn lines_are_numbered_up_to_the_largest_number() {
    for (first_line, lines) in [(u64::MAX, 1), (1, u64::MAX), (1 << 63, 1 << 63)] {
        let read = ReadContent {
            first_line,
            lines,
            ..part(b"a\nb\n")
        };
        assert!(numbered(&read, 1024).starts_with(&format!("{first_line}\ta\n")));
    }
}
