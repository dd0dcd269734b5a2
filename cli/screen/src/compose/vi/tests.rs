use super::*;

/// The text with `|` at the cursor, after these keys in normal mode; `<` is Esc.
fn after(text: &str, keys: &str) -> String {
    let mut draft = Draft::default();
    let cursor = text.find('|').unwrap();
    draft.buffer.reset(text.replacen('|', "", 1), cursor);
    let mut vi = Vi {
        is_normal: true,
        ..Vi::default()
    };
    for key in keys.chars() {
        if key == '<' {
            vi.escape(&mut draft);
        } else if vi.is_normal() {
            vi.key(key, &mut draft);
        } else {
            draft.insert(&key.to_string());
        }
    }
    let mut text = draft.buffer.text().to_owned();
    text.insert(draft.buffer.cursor(), '|');
    text
}

#[test]
fn motions_go_by_letters_words_lines_and_finds() {
    for (text, keys, result) in [
        ("|one two.x", "w", "one |two.x"),
        ("|one two.x", "ww", "one two|.x"),
        ("|one two.x y", "2W", "one two.x |y"),
        ("one two|.x", "2b", "|one two.x"),
        ("|one two", "e", "on|e two"),
        ("|one two", "2e", "one tw|o"),
        ("  o|ne", "0", "|  one"),
        ("  on|e", "^", "  |one"),
        ("|one\ntwo", "$", "on|e\ntwo"),
        ("|a\nb\nc", "G", "a\nb\n|c"),
        ("a\nb\n|c", "2G", "a\n|b\nc"),
        ("a\nb\n|c", "gg", "|a\nb\nc"),
        ("|a.b.c", "f.;", "a.b|.c"),
        ("|abcd", "td", "ab|cd"),
        ("a.b.|c", "F.", "a.b|.c"),
        ("a.bb|c", "T.", "a.|bbc"),
        ("|abc", "lllhl", "ab|c"),
        ("|世界", "l", "世|界"),
    ] {
        assert_eq!(after(text, keys), result, "{keys} on {text}");
    }
}

#[test]
fn operators_take_the_text_of_a_motion() {
    for (text, keys, result) in [
        ("|one two", "dw", "|two"),
        ("one |two\nx", "dw", "one| \nx"),
        ("|a b c d", "2dw", "|c d"),
        ("|a b c d", "d3w", "|d"),
        ("|one two", "cwsix<", "si|x two"),
        ("one| two", "d$", "on|e"),
        ("o|ne two", "D", "|o"),
        ("o|ne", "Cx<", "o|x"),
        ("a\n|b\nc", "dd", "a\n|c"),
        ("a\n|b", "dd", "|a"),
        ("a\n|b\nc", "ccx<", "a\n|x\nc"),
        ("|a\nb\nc", "dj", "|c"),
        ("|abc", "2x", "|c"),
        ("ab|c", "X", "a|c"),
        ("|a(b)c", "dt)", "|)c"),
        ("|a(b)c", "df)", "|c"),
        ("abc|d", "dgg", "|"),
    ] {
        assert_eq!(after(text, keys), result, "{keys} on {text}");
    }
}

#[test]
fn text_is_put_back_repeated_replaced_and_undone() {
    for (text, keys, result) in [
        ("|a\nb", "yyp", "a\n|a\nb"),
        ("|a\nb", "ddp", "b\n|a"),
        ("|ab", "xp", "b|a"),
        ("|ab", "yl3p", "aaa|ab"),
        ("|ab cd", "dwu", "|ab cd"),
        ("|abc", "2rx", "x|xc"),
        ("|abc", "9rx", "|abc"),
        ("|aBc", "3~", "Ab|C"),
        ("|a", "ob<", "a\n|b"),
        ("|a", "Ob<", "|b\na"),
        ("  |a", "Ix<", "  |xa"),
        ("|ab", "Ac<", "ab|c"),
        ("|ab", "ac<", "a|cb"),
    ] {
        assert_eq!(after(text, keys), result, "{keys} on {text}");
    }
}

#[test]
fn escape_drops_a_begun_command_and_is_then_unused() {
    let mut draft = Draft::default();
    let mut vi = Vi::default();
    assert_eq!(vi.escape(&mut draft), Effect::Moved);
    vi.key('d', &mut draft);
    assert_eq!(vi.escape(&mut draft), Effect::Moved);
    assert_eq!(vi.escape(&mut draft), Effect::Unused);
}
