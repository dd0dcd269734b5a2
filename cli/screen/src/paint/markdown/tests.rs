use proptest::prelude::*;

use super::*;
use crate::paint::shown::{plain, shown};

mod looks;

const RICH: &str = include_str!("tests/rich.md");

fn painted(text: &str, columns: usize) -> String {
    plain(&markdown(text, columns))
}

#[test]
fn items_of_a_tight_list_stand_together_and_those_of_a_loose_one_apart() {
    assert_eq!(
        painted("- a\n- b\n  1. c\n  2. d\n- e", 40),
        "• a\n• b\n  1. c\n  2. d\n• e"
    );
    assert_eq!(painted("7. a\n\n8. b\n\n   c", 40), "7. a\n\n8. b\n\n   c");
    assert_eq!(
        painted("- a\n-\n- > b\n- ```\n  c\n  ```", 40),
        "• a\n•\n• │ b\n•   c"
    );
}

#[test]
fn tasks_have_boxes() {
    assert_eq!(
        painted("- [ ] a\n- [x] b\n\n1. [x] c", 40),
        "☐ a\n☑ b\n\n1. ☑ c"
    );
    assert_eq!(painted("- [ ] a\n\n- [x] b", 40), "☐ a\n\n☑ b");
}

#[test]
fn an_address_is_shown_where_the_text_differs() {
    assert_eq!(
        painted("[a](http://b.c/) <http://b.c> [b.c](http://b.c/)", 60),
        "a (http://b.c/) http://b.c b.c"
    );
    assert_eq!(
        painted("<x@y.z> [](http://b) ![c](d) ![](e.png)", 60),
        "x@y.z http://b [image: c] [image: e.png]"
    );
}

#[test]
fn references_and_footnotes_stay_text() {
    let text = "See [a] and [b][c].[^1]\n\n[a]: http://b.c\n\n[^1]: A note: x]:y";
    assert_eq!(painted(text, 60), text);
}

#[test]
fn a_table_without_room_is_a_list() {
    let table = "| name | purpose |\n|---|---|\n| alpha beta | first thing |\n| c | d<br>e |";
    let boxed = "┌────────┬────────┐\n│ name   │ purpos │\n│        │ e      │\n├────────┼────────┤\n│ alpha  │ first  │\n│ beta   │ thing  │\n├────────┼────────┤\n│ c      │ d      │\n│        │ e      │\n└────────┴────────┘";
    assert_eq!(painted(table, 19), boxed);
    let listed = "• name: alpha beta\n  purpose: first\n  thing\n• name: c\n  purpose: d e";
    assert_eq!(painted(table, 18), listed);
}

#[test]
fn columns_of_a_table_are_aligned() {
    let table = "a|b|c\n:-|:-:|-:\n1|2|3\nwide|wide|wide";
    let rows = painted(table, 40);
    assert!(rows.contains("│ 1    │  2   │    3 │"), "{rows}");
}

#[test]
fn code_keeps_its_blanks_and_is_folded() {
    assert_eq!(
        painted("```\n\n  a  b\n\n\tc\n\n```", 40),
        "    a  b\n\n      c"
    );
    assert_eq!(painted("```\nabcdefghij\n```", 8), "  abcdef\n  ghij");
    assert_eq!(painted("```\n```\n\na", 8), "```\n\na");
    assert_eq!(painted("~~~", 2), "``\n`");
}

#[test]
fn nothing_drives_the_terminal() {
    let text = "a\x1b[31mb &#27;[31m &#x202e;c&#10;d [e](<f&#27;>) `\x07`\n\n<p \x1b]0;x\x07>";
    let rows = painted(text, 80);
    assert!(
        rows.chars()
            .all(|letter| letter == '\n' || shared_types::clean::is_harmless(letter)),
        "{rows:?}"
    );
    assert!(rows.starts_with("ab "), "{rows}");
}

#[test]
fn deep_nesting_leaves_room_for_text() {
    let quotes = markdown(&format!("{} a", ">".repeat(5_000)), 20);
    assert_eq!(plain(&quotes), "│ │ │ │ │ │ │ │ a");
    assert_eq!(markdown(&">".repeat(100_000), 20).len(), 1);
    let items = markdown(&format!("{}a b c d e", "- ".repeat(50)), 9);
    assert!(
        plain(&items).ends_with("a b c\n    d e"),
        "{}",
        plain(&items)
    );
}

#[test]
fn right_to_left_text_stays_in_its_order() {
    assert_eq!(painted("שלום **עולם**", 40), "שלום עולם");
}

#[test]
fn the_last_block_is_open() {
    assert_eq!(open_block(""), 0);
    assert_eq!(open_block("one\ntwo"), 0);
    assert_eq!(open_block("one\n\ntwo\n"), 5);
    // Another letter may make it text of the paragraph.
    assert_eq!(open_block("one\n#"), 0);
    assert_eq!(open_block("one\n# \n"), 4);
    assert_eq!(open_block("one\n\n    code\n"), 5);
    assert_eq!(open_block("- a\n- b\n\n- c\n"), 0);
    assert_eq!(open_block("\x1b[1mone\r\n\r\ntwo\r\n\r\n"), 11);
}

/// Fails unless the rows before and behind the open block are those of the whole.
fn assert_settled(whole: &str, open: usize, columns: usize) {
    if open == 0 {
        return;
    }
    let apart = format!(
        "{}\n\n{}",
        shown(&markdown(&whole[..open], columns)),
        shown(&markdown(&whole[open..], columns))
    );
    assert_eq!(
        apart,
        shown(&markdown(whole, columns)),
        "open at {open} of {whole:?}"
    );
}

#[test]
fn settled_blocks_never_change_as_letters_arrive() {
    let mut last = 0;
    for (end, _) in RICH.char_indices().skip(1) {
        let open = open_block(&RICH[..end]);
        assert!(open >= last, "{open} < {last} at {end}");
        assert_settled(&RICH[..end], open, 60);
        if open > last {
            assert_settled(RICH, open, 60);
            last = open;
        }
    }
    assert!(last > RICH.len() / 2);
}

/// The rows of a text that arrives letter by letter, and the most lines that were open.
fn arriving(text: &str, columns: usize) -> (String, usize) {
    let mut rows = Vec::new();
    let mut pending = String::new();
    let mut longest = 0;
    let mut has_gap = false;
    for letter in text.chars() {
        pending.push(letter);
        if letter == '\n' {
            let open = open_part(&pending);
            if open.at > 0 {
                rows.extend(has_gap.then(Line::default));
                rows.extend(markdown(&pending[..open.at], columns));
                has_gap = open.has_gap;
                pending = format!("{}{}", open.before, &pending[open.at..]);
            }
            longest = longest.max(pending.lines().count());
        }
    }
    rows.extend(has_gap.then(Line::default));
    rows.extend(markdown(&pending, columns));
    (shown(&rows), longest)
}

#[test]
fn a_long_list_settles_at_its_items_and_its_numbers_go_on() {
    for gap in ["", "\n"] {
        let items = (3..=300).map(|item| format!("{item}. item\n   - inner\n{gap}"));
        let text = format!("# Head\n\n{}\nEnd.\n", items.collect::<String>());
        let (rows, longest) = arriving(&text, 40);
        assert_eq!(rows, shown(&markdown(&text, 40)));
        assert!(longest <= LONG_BLOCK + 1, "{longest}");
    }
}

#[test]
fn a_list_whose_numbers_are_not_counted_stays_open() {
    let text = "1. item\n".repeat(100);
    assert_eq!(
        open_part(&text),
        Open {
            at: 0,
            before: String::new(),
            has_gap: true
        }
    );
}

#[test]
fn long_code_settles_by_lines_and_keeps_its_colours() {
    let lines = "fn f() {\n\n    let a = \"b\";\n    /* one\n    two */\n}\n\n".repeat(50);
    let text = format!("Code:\n```rust\n{lines}```\nEnd.\n");
    let (rows, longest) = arriving(&text, 40);
    assert_eq!(rows, shown(&markdown(&text, 40)));
    assert!(longest <= LONG_BLOCK + 8, "{longest}");
}

/// Pieces of Markdown that meet in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "\n",
        "\n",
        "\n\n",
        "a",
        "word ",
        " ",
        "    ",
        "\t",
        "# ",
        "##",
        "---",
        "===",
        "- ",
        "* ",
        "+",
        "1. ",
        "2) ",
        "> ",
        "```",
        "```rust\n",
        "~~~",
        "`",
        "**",
        "_",
        "~~",
        "|",
        "|-|-|\n",
        "a|b\n",
        "[a]",
        "[a]: b",
        "(c)",
        "![",
        "<p>",
        "<!--",
        "-->",
        "<br>",
        "</p>",
        "<script>",
        "&#27;",
        "&amp;",
        "\\",
        "\r",
        "\r\n",
        "\x1b[1m",
        "\x1b]0;",
        "日本",
        "👩\u{200d}👧",
        "\u{301}",
        "[ ] ",
        "[x] ",
        "[^1]: ",
        ":-:|-\n",
        "\u{202e}",
        "\x01",
        "]:",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_painted_within_its_columns(text in pieces(), columns in 1_usize..50) {
        let rows = markdown(&text, columns);
        for row in &rows {
            let row = plain(std::slice::from_ref(row));
            prop_assert!(row.chars().all(shared_types::clean::is_harmless), "{:?}", row);
            let is_one = row.chars().filter(|letter| wrap::width(&letter.to_string()) > 0).count() <= 2;
            prop_assert!(wrap::width(&row) <= columns || is_one, "{:?} in {}", row, columns);
        }
        let is_blank = |row: Option<&Line<'static>>| row.is_some_and(|row| row.spans.is_empty());
        prop_assert!(!is_blank(rows.first()) && !is_blank(rows.last()), "{:?}", plain(&rows));
    }

    #[test]
    fn settled_blocks_never_change(before in pieces(), after in pieces()) {
        let whole = format!("{before}{after}");
        let open = open_block(&before);
        assert_settled(&before, open, 40);
        assert_settled(&whole, open, 40);
        prop_assert!(open_block(&whole) >= open);
        prop_assert!(open_part(&whole.repeat(9)).at <= whole.len() * 9);
        assert_settled(&whole, open_block(&whole), 40);
    }

    #[test]
    fn letters_of_any_language_are_painted(text in "\\PC{0,200}", columns in 1_usize..50) {
        let _ = markdown(&text, columns);
    }
}
