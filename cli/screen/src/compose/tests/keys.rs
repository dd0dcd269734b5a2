use super::*;

/// The state after keys of Emacs in a text with `|` at the cursor.
fn after(text: &str, names: &[&str]) -> String {
    let mut composer = composer();
    let cursor = text.find('|').unwrap();
    composer.set_text(&text.replacen('|', "", 1));
    composer.draft.buffer.go(cursor);
    press(&mut composer, names);
    state(&composer)
}

#[test]
fn the_keys_of_emacs_edit_the_text() {
    for (text, names, result) in [
        ("a\nb c|d", &["C-a"][..], "a\n|b cd"),
        ("a|b\nc", &["C-e"], "ab|\nc"),
        ("a|b", &["C-b"], "|ab"),
        ("👩‍👩‍👧|b", &["Left", "Right", "Right"], "👩‍👩‍👧b|"),
        ("one two|", &["A-b", "A-b"], "|one two"),
        ("|one, two", &["A-f", "A-f"], "one, two|"),
        ("|one two", &["A-d"], "| two"),
        ("one two.|", &["A-Backspace"], "one |"),
        ("one two|", &["C-Left"], "one |two"),
        ("a b-c |d", &["C-w"], "a |d"),
        ("ab|cd\ne", &["C-k"], "ab|\ne"),
        ("ab|\ne", &["C-k"], "ab|e"),
        ("ab|cd", &["C-u"], "|cd"),
        ("ab|cd ef", &["C-k", "C-u", "C-y"], "abcd ef|"),
        ("ab|cd", &["C-d"], "ab|d"),
        ("ab|cd", &["C-h"], "a|cd"),
        ("ab|cd", &["Delete", "Backspace"], "a|d"),
        ("ab|cd", &["C-t"], "acb|d"),
        ("abcd|", &["C-t"], "abdc|"),
        ("|ab", &["C-t"], "|ab"),
        ("ab\nc|d", &["C-Home"], "|ab\ncd"),
        ("ab|", &["Backspace", "C-7", "C-7"], "ab|"),
        ("ab|", &["Home", "End"], "ab|"),
    ] {
        assert_eq!(after(text, names), result, "{names:?} on {text}");
    }
}

#[test]
fn enter_submits_and_other_keys_begin_a_line() {
    let mut composer = composer();
    type_in(&mut composer, "a");
    for name in ["A-Enter", "S-Enter", "C-j"] {
        assert_eq!(press(&mut composer, &[name]), Action::Changed);
    }
    type_in(&mut composer, "b\\");
    assert_eq!(press(&mut composer, &["Enter"]), Action::Changed);
    assert_eq!(
        press(&mut composer, &["Enter"]),
        Action::Submit("a\n\n\nb\n".to_owned())
    );
    assert!(composer.is_empty());
    type_in(&mut composer, "  ");
    assert_eq!(press(&mut composer, &["Enter"]), Action::Ignored);
}

#[test]
fn keys_that_the_box_does_not_use_are_for_the_loop() {
    let mut composer = composer();
    for name in [
        "Esc", "C-c", "C-d", "BackTab", "C-o", "PageUp", "Tab", "Enter", "Up", "Down", "C-l", "C-z",
    ] {
        assert_eq!(press(&mut composer, &[name]), Action::Ignored, "{name}");
    }
    let mut release = key("a");
    release.kind = KeyEventKind::Release;
    assert_eq!(composer.key(release), Action::Ignored);
    assert_eq!(press(&mut composer, &["C-g"]), Action::Editor);
    assert_eq!(press(&mut composer, &["C-x", "C-e"]), Action::Editor);
    type_in(&mut composer, "x");
    assert_eq!(press(&mut composer, &["Tab"]), Action::Ignored);
    composer.set_working(true);
    assert_eq!(
        press(&mut composer, &["Tab"]),
        Action::Queue("x".to_owned())
    );
    assert_eq!(press(&mut composer, &["Tab"]), Action::Ignored);
}

#[test]
fn up_and_down_move_by_rows_and_keep_the_column() {
    let mut composer = composer();
    composer.set_text("long enough words\nab\nlong again");
    composer.draw(13, 10);
    press(&mut composer, &["Up"]);
    assert_eq!(state(&composer), "long enough words\nab|\nlong again");
    press(&mut composer, &["Up", "Up"]);
    assert_eq!(state(&composer), "long enough| words\nab\nlong again");
    press(&mut composer, &["C-n", "C-n", "C-n"]);
    assert_eq!(state(&composer), "long enough words\nab\nlong again|");
}

#[test]
fn arrow_keys_go_through_the_history_and_back_to_the_draft() {
    let mut composer = composer();
    for text in ["first", "second"] {
        type_in(&mut composer, text);
        press(&mut composer, &["Enter"]);
    }
    type_in(&mut composer, "draft");
    press(&mut composer, &["Left", "Up"]);
    assert_eq!(state(&composer), "second|");
    type_in(&mut composer, "!");
    press(&mut composer, &["Up", "Up"]);
    assert_eq!(state(&composer), "first|");
    press(&mut composer, &["Down"]);
    assert_eq!(
        state(&composer),
        "second!|",
        "a changed message is kept on the way"
    );
    press(&mut composer, &["Down"]);
    assert_eq!(state(&composer), "draf|t");
    assert_eq!(press(&mut composer, &["Down"]), Action::Ignored);
}

#[test]
fn a_search_finds_older_messages_and_gives_the_draft_back() {
    let mut composer = composer();
    for text in ["Fix the tests", "fix the docs", "other"] {
        composer.set_text(text);
        press(&mut composer, &["Enter"]);
    }
    type_in(&mut composer, "draft");
    press(&mut composer, &["C-r", "f", "i", "x"]);
    assert_eq!(state(&composer), "fix| the docs");
    assert_eq!(rows(&composer, 40, 5)[1], "  search history: fix");
    press(&mut composer, &["C-r"]);
    assert_eq!(composer.text(), "Fix the tests");
    press(&mut composer, &["C-r"]);
    assert!(rows(&composer, 60, 5)[1].contains("no message has it"));
    press(&mut composer, &["C-s"]);
    assert_eq!(composer.text(), "fix the docs");
    press(&mut composer, &["Esc"]);
    assert_eq!(state(&composer), "draft|");
    press(&mut composer, &["C-r", "F", "Enter"]);
    assert_eq!(composer.text(), "Fix the tests");
    assert!(matches!(
        press(&mut composer, &["Enter"]),
        Action::Submit(_)
    ));
}

#[test]
fn a_large_paste_is_a_label_that_is_deleted_as_one_and_submitted_whole() {
    let mut composer = composer();
    let lines = "line\r\n".repeat(312);
    type_in(&mut composer, "see ");
    assert_eq!(composer.paste(&lines), Action::Changed);
    composer.paste(&"x".repeat(3_000));
    assert_eq!(
        rows(&composer, 80, 5),
        ["› see [pasted 312 lines][pasted 3000 letters #2]"]
    );
    press(&mut composer, &["Backspace"]);
    assert_eq!(rows(&composer, 80, 5), ["› see [pasted 312 lines]"]);
    press(&mut composer, &["C-w", "C-y", "C-y", "C-7"]);
    let whole = format!("see {}", "line\n".repeat(312));
    assert_eq!(composer.text(), whole);
    press(&mut composer, &["C-w"]);
    composer.take();
    press(&mut composer, &["C-y"]);
    assert_eq!(
        composer.text(),
        "line\n".repeat(312),
        "cut text keeps its pastes"
    );
}

#[test]
fn text_beyond_the_bound_is_refused_and_the_draft_stays() {
    let mut composer = composer();
    composer.paste(&"x".repeat(MAX_DRAFT));
    let Action::Refused(reason) = composer.paste(&"y".repeat(20_000_000)) else {
        panic!("20 MB were taken");
    };
    assert_eq!(
        reason,
        "The text of 19 MiB does not fit: a message has at most 256 KiB. Save the text as a file and name it with @."
    );
    assert!(matches!(type_in(&mut composer, "z"), Action::Refused(_)));
    assert!(matches!(composer.paste("z"), Action::Refused(_)));
    assert!(matches!(
        composer.set_text(&"z".repeat(MAX_DRAFT + 1)),
        Action::Refused(_)
    ));
    assert_eq!(composer.take(), "x".repeat(MAX_DRAFT));
}

#[test]
fn control_characters_are_not_taken_but_hidden_ones_are_submitted() {
    let mut composer = composer();
    assert_eq!(composer.paste("a\x1b\u{9b}\0\rb\n"), Action::Changed);
    type_in(&mut composer, "\u{1}\u{202e}\u{fdd0}c");
    assert_eq!(
        press(&mut composer, &["Enter"]),
        Action::Submit("a\nb\n\u{202e}c".to_owned())
    );
}

#[test]
fn vi_has_a_normal_mode_in_which_escape_is_for_the_loop() {
    let mut composer = vi();
    type_in(&mut composer, "one two");
    assert_eq!(press(&mut composer, &["Esc"]), Action::Changed);
    assert_eq!(state(&composer), "one tw|o");
    assert!(rows(&composer, 20, 3)[0].starts_with("N "));
    assert_eq!(press(&mut composer, &["Esc"]), Action::Ignored);
    press(&mut composer, &["b", "c", "w", "x"]);
    assert_eq!(state(&composer), "one x|");
    press(&mut composer, &["Esc"]);
    assert_eq!(
        press(&mut composer, &["Enter"]),
        Action::Submit("one x".to_owned())
    );
    press(&mut composer, &["Esc", "k"]);
    assert_eq!(state(&composer), "one |x");
}

#[test]
fn normal_mode_keeps_the_cursor_on_a_letter_and_opens_no_list() {
    let mut composer = vi();
    composer.set_commands(vec![CommandHelp {
        name: "run".to_owned(),
        ..CommandHelp::default()
    }]);
    type_in(&mut composer, "/run");
    assert!(composer.completer.list().is_some());
    assert_eq!(press(&mut composer, &["Esc"]), Action::Changed);
    assert_eq!(state(&composer), "/ru|n");
    press(&mut composer, &["x", "End"]);
    assert_eq!(state(&composer), "/r|u");
    assert!(composer.completer.list().is_none());
    for letter in ["j", "k", "z", "Q"] {
        assert_eq!(press(&mut composer, &[letter]), Action::Changed, "{letter}");
    }
}
