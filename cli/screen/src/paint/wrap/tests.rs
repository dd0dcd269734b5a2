use proptest::prelude::*;

use super::*;
use crate::paint::shown::{plain, shown};

fn wrapped(text: &str, columns: usize, indent: usize) -> String {
    plain(&wrap(&Line::raw(text.to_owned()), columns, indent))
}

#[test]
fn a_line_breaks_between_words_and_its_rows_are_indented() {
    assert_eq!(
        wrapped("the quick brown fox", 10, 0),
        "the quick\nbrown fox"
    );
    assert_eq!(
        wrapped("• the quick brown fox", 10, 2),
        "• the\n  quick\n  brown\n  fox"
    );
    assert_eq!(wrapped("", 10, 2), "");
}

#[test]
fn blanks_are_kept_at_the_beginning_and_dropped_at_a_break() {
    assert_eq!(wrapped("   a  b     c", 7, 0), "   a  b\nc");
    assert_eq!(wrapped("\ta\tb", 20, 0), "    a   b");
    assert_eq!(wrapped("          a", 6, 0), "    a");
}

#[test]
fn a_word_longer_than_a_row_is_cut() {
    assert_eq!(
        wrapped("a /usr/share/dictionaries", 8, 0),
        "a /usr/s\nhare/dic\ntionarie\ns"
    );
    assert_eq!(
        wrapped("abcdef /usr/share", 8, 2),
        "abcdef\n  /usr/s\n  hare"
    );
    assert_eq!(wrapped("abc", 1, 5), "a\nb\nc");
    assert_eq!(wrapped("abc", 0, 0), "a\nb\nc");
}

#[test]
fn wide_clusters_break_anywhere_but_before_closing_punctuation() {
    assert_eq!(wrapped("日本語テキスト", 6, 0), "日本語\nテキス\nト");
    assert_eq!(wrapped("日本語。テキ", 6, 0), "日本\n語。テ\nキ");
    assert_eq!(wrapped("a日本", 1, 0), "a\n日\n本");
    assert_eq!(wrapped("日本", 3, 2), "日\n 本");
}

#[test]
fn an_emoji_of_several_characters_stays_whole() {
    let family = "👨\u{200d}👩\u{200d}👧";
    assert_eq!(width(family), 2);
    assert_eq!(
        wrapped(&format!("{family}{family}"), 3, 0),
        format!("{family}\n{family}")
    );
    assert_eq!(wrapped("e\u{301}e\u{301}", 1, 0), "e\u{301}\ne\u{301}");
}

#[test]
fn styles_are_kept_over_breaks() {
    let line = Line::from(vec![
        Span::raw("one "),
        Span::styled("two three", palette::BOLD),
        Span::raw(" four"),
    ]);
    assert_eq!(
        shown(&wrap(&line, 8, 1)),
        "one <bold>two</>\n <bold>three</>\n four"
    );
}

#[test]
fn code_is_folded_at_the_last_column() {
    let line = Line::raw("let a  =  b;");
    assert_eq!(plain(&fold(&line, 6)), "let a \n =  b;");
}

#[test]
fn a_cut_text_ends_with_an_ellipsis() {
    assert_eq!(cut("abcdef", 6), "abcdef");
    assert_eq!(cut("abcdef", 4), "abc…");
    assert_eq!(cut("日本語", 4), "日…");
    assert_eq!(cut("日本語", 5), "日本…");
    assert_eq!(cut("abc", 1), "…");
    assert_eq!(cut("abc", 0), "");
    assert_eq!(cut("", 0), "");
}

fn letters(text: &str) -> String {
    text.chars()
        .filter(|letter| !matches!(letter, ' ' | '\t' | '\n'))
        .collect()
}

proptest! {
    #[test]
    fn no_row_is_too_wide_and_no_letter_is_lost(
        text in "[ a-f\t\u{3000}日本。（😀\u{301}\u{200d}👩é]{0,60}",
        columns in 1_usize..20,
        indent in 0_usize..8,
    ) {
        let rows = wrap(&Line::raw(text.clone()), columns, indent);
        for row in &rows {
            let row = plain(std::slice::from_ref(row));
            let is_one = row.graphemes(true).filter(|cluster| cluster.width() > 0).count() == 1;
            prop_assert!(width(&row) <= columns || is_one, "{:?} in {}", row, columns);
        }
        prop_assert_eq!(letters(&plain(&rows)), letters(&text));
    }

    #[test]
    fn folding_loses_nothing(text in "[ a-f日😀\u{301}]{0,60}", columns in 1_usize..20) {
        let rows = fold(&Line::raw(text.clone()), columns);
        let painted = plain(&rows).replace('\n', "");
        prop_assert_eq!(painted.trim_start_matches(' '), text.trim_start_matches(' '));
    }

    #[test]
    fn a_cut_text_is_never_too_wide(text in "\\PC{0,20}", columns in 0_usize..20) {
        prop_assert!(width(&cut(&text, columns)) <= columns);
    }
}
