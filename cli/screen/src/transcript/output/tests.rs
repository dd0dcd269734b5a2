use proptest::prelude::*;

use super::*;

fn output(text: &str) -> Output {
    let mut output = Output::default();
    output.push(text);
    output
}

/// The text of the lines; those that are styled show their styles in tags.
fn shown(output: &Output) -> Vec<String> {
    output.lines().iter().map(shown_line).collect()
}

fn shown_line(line: &OutputLine) -> String {
    match line {
        OutputLine::Text(runs) => runs.iter().map(|run| shown_run(&run.0, run.1)).collect(),
        OutputLine::Skipped { lines } => format!("({lines} lines)"),
        OutputLine::Gap { bytes } => format!("({bytes} bytes)"),
    }
}

fn shown_run(text: &str, style: SgrStyle) -> String {
    let mut tag = String::new();
    for (is_set, letter) in [
        (style.bold, 'b'),
        (style.dim, 'd'),
        (style.italic, 'i'),
        (style.underlined, 'u'),
    ] {
        tag.extend(is_set.then_some(letter));
    }
    tag += &style
        .colour
        .map(|colour| colour.to_string())
        .unwrap_or_default();
    if tag.is_empty() {
        text.to_owned()
    } else {
        format!("<{tag}>{text}</>")
    }
}

#[test]
fn colours_and_weights_are_kept() {
    assert_eq!(
        shown(&output(
            "a\x1b[1;31mb\x1b[22mc\x1b[md \x1b[92;3;4me\x1b[24;39mf\n\x1b[2mg"
        )),
        ["a<b1>b</><1>c</>d <iu10>e</><i>f</>", "<di>g</>"]
    );
}

#[test]
fn finer_colours_become_the_nearest_of_16() {
    assert_eq!(
        shown(&output(
            "\x1b[38;5;208ma\x1b[38;2;0;250;3mb\x1b[38:2::1:1:1mc\x1b[38:5:12md"
        )),
        ["<3>a</><10>b</><0>c</><12>d</>"]
    );
    // A background is left out with its numbers.
    assert_eq!(
        shown(&output("\x1b[48;5;1;31ma\x1b[0;48;2;4;4;4mb")),
        ["<1>a</>b"]
    );
}

#[test]
fn other_sequences_and_control_characters_are_removed() {
    let text = "a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c\x1b[2J\x1b[Hd\x1b(Be\x07\0\x7ff\x1bPq#0~\x1b\\g\u{9b}5Ah\x1b[?25li\x1b[>1mj";
    assert_eq!(shown(&output(text)), ["abcdefghij"]);
    assert_eq!(shown(&output("a\u{202e}b\u{1b}")), ["a\u{fffd}b"]);
    assert_eq!(shown(&output("\x1b]0;open\nnext")), ["", "next"]);
}

#[test]
fn progress_is_kept_as_it_was_drawn_last() {
    assert_eq!(
        shown(&output("10 %\r50 %\r\r100 %\r\ndone")),
        ["100 %", "done"]
    );
    assert_eq!(
        shown(&output("working\r\x1b[Kdone\nworking\x1b[2K\rok")),
        ["done", "ok"]
    );
    assert_eq!(shown(&output("kept\x1b[K\r")), ["kept"]);
}

#[test]
fn a_backspace_takes_back_a_letter() {
    assert_eq!(
        shown(&output("-\x08\\\x08|\x1b[1mn\x08\x08\x08\x08no")),
        ["<b>no</>"]
    );
}

#[test]
fn tabs_end_at_stops() {
    assert_eq!(shown(&output("a\tb\t日\tc")), ["a       b       日      c"]);
}

#[test]
fn a_gap_ends_a_line_and_a_sequence() {
    let mut output = output("abc\x1b]0;tit");
    output.gap(5);
    output.gap(7);
    output.push("def\n");
    assert_eq!(shown(&output), ["abc", "(12 bytes)", "def"]);
    assert_eq!(output.line_count(), 2);
}

#[test]
fn the_first_and_the_last_lines_are_kept() {
    let mut output = Output::default();
    assert!(output.is_empty());
    for line in 0..100_000 {
        output.push(&format!("{line}\n"));
    }
    let lines = shown(&output);
    assert_eq!(lines.len(), FIRST_LINES + 1 + LAST_LINES);
    assert_eq!(
        lines[FIRST_LINES - 1..FIRST_LINES + 2],
        ["49", "(99750 lines)", "99800"]
    );
    assert_eq!(lines.last().map(String::as_str), Some("99999"));
    assert_eq!(output.line_count(), 100_000);
}

#[test]
fn a_gap_between_the_kept_lines_is_counted() {
    let mut output = output(&"\n".repeat(FIRST_LINES));
    output.gap(3);
    output.push(&"\n".repeat(LAST_LINES + 1));
    assert_eq!(
        shown(&output)[FIRST_LINES..FIRST_LINES + 2],
        ["(1 lines)", "(3 bytes)"]
    );
}

#[test]
fn a_line_without_end_is_bounded() {
    let mut output = Output::default();
    for _ in 0..20 {
        output.push(&"x".repeat(1 << 20));
    }
    let line = shown(&output).concat();
    assert_eq!(line.chars().count(), MAX_COLUMNS + 1);
    assert!(line.ends_with("x…"));
    output.push("\rshort");
    assert_eq!(shown(&output), ["short"]);
    // Marks take no column, and styles no letter.
    output.push(&"\u{301}".repeat(100_000));
    assert!(shown(&output).concat().len() <= MAX_LINE_BYTES + 10);
    output.push("\r");
    output.push(&"\x1b[1ma\x1b[0mb".repeat(100_000));
    let OutputLine::Text(runs) = &output.lines()[0] else {
        panic!("text")
    };
    assert_eq!(runs.len(), MAX_RUNS);
}

proptest! {
    #[test]
    fn where_the_text_is_cut_makes_no_difference(
        letters in prop::collection::vec(prop::sample::select(vec![
            "a", "日", "\r", "\n", "\r\n", "\t", "\x08", "\x1b", "[", "]", "1", ";", "31m", "\x1b[0m", "K", "\x07", "\\", "\x1b[38;5;208m",
        ]), 0..40),
    ) {
        let mut apart = Output::default();
        letters.iter().for_each(|letter| apart.push(letter));
        prop_assert_eq!(apart.lines(), output(&letters.concat()).lines());
    }

    #[test]
    fn no_control_character_is_left(text in any::<String>()) {
        for line in shown(&output(&text)) {
            prop_assert!(line.chars().all(shared_types::clean::is_harmless));
        }
    }
}
