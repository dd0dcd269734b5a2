//! Edits that do not fit, by what the caller is told, and by what lands after that.

use super::*;

/// The words on an edit of a file with this content that does not land. The file stays as it is.
async fn told(content: &str, old: &str) -> String {
    let scene = Scene::new();
    scene.put("file", content);
    let failure = scene.failure(edit(old, "new", false)).await;
    assert_eq!(scene.text("file"), content);
    failure.to_string()
}

#[tokio::test]
async fn spaces_for_tabs_in_a_file_with_crlf_are_named_and_the_mended_edit_keeps_the_line_ends_and_the_mode()
 {
    let scene = Scene::new();
    let content = "\u{feff}if x {\r\n\tone();\r\n\ttwo();\r\n}\r\n";
    scene.put("file", content);
    fs::set_permissions(scene.path("file"), fs::Permissions::from_mode(0o754)).expect("it is ours");
    let wrong = edit("    one();\n    two();\n", "    both();\n", false);
    let told = scene.failure(wrong).await.to_string();
    assert_eq!(
        told,
        "the text to be replaced is not in \"file\"; the nearest place is at line 2: line 2 is indented with a \
         tab where your text has 4 spaces; line 3 is indented with a tab where your text has 4 spaces; these \
         lines stand there, each behind its number and a tab:\n2\t\tone();\n3\t\ttwo();"
    );
    let right = edit("\tone();\n\ttwo();\n", "\tboth();\n\n", false);
    let outcome = scene.outcome(right).await;
    assert!(matches!(outcome, Outcome::Edited(_)), "{outcome:?}");
    assert_eq!(
        scene.text("file"),
        "\u{feff}if x {\r\n\tboth();\r\n\r\n}\r\n"
    );
    let mode = fs::metadata(scene.path("file"))
        .expect("it is there")
        .permissions();
    assert_eq!(mode.mode() & 0o7777, 0o754);
}

#[tokio::test]
async fn each_kind_of_difference_is_named_with_its_line() {
    for (content, old, words) in [
        (
            "a\nsay 'hi'\n",
            "say \u{2019}hi'",
            "your text has the curly quote \u{2019} (U+2019) where line 2 has '",
        ),
        (
            "x = \u{201c}y\u{201d}\n",
            "x = \"y\"",
            "your text has \" where line 1 has the curly quote \u{201c} (U+201C)",
        ),
        (
            "one\u{a0}two\n",
            "one two",
            "line 1 has a no-break space (U+00A0) where your text has a space",
        ),
        (
            "one  \ntwo\n",
            "one\ntwo",
            "line 1 has 2 spaces at its end where your text has no white space",
        ),
        (
            "one\ntwo\n",
            "one\ntwo  \n",
            "line 2 has no white space at its end where your text has 2 spaces",
        ),
        (
            "let Name = 1;\n",
            "let name = 1;",
            "the case differs: line 1 has \"Name\" where your text has \"name\"",
        ),
        (
            "a\nb\n",
            "a\r\nb\r\n",
            "line 1 has no white space at its end where your text has a carriage return",
        ),
        (
            "one\n",
            "\u{feff}one\n",
            "your text has the unseen mark U+FEFF (BOM), which line 1 lacks",
        ),
        (
            "one t\u{200b}wo\n",
            "one two",
            "line 1 has the unseen character U+200B, which your text lacks",
        ),
        (
            "a\n\nb\nc\n",
            "a\nb\nc\n",
            "line 2 does not end where it ends in your text",
        ),
        (
            "x\nfirst line\n",
            "1\tx\n2\tfirst line\n",
            "your text has line numbers, which are not part of the file",
        ),
        (
            "fn a() {}\nfn apple() { 1 }\nfn c() {}\n",
            "fn apple() { 2 }\nfn c() {}\n",
            "line 2 has \"1\" where your text has \"2\"",
        ),
        (
            "one\nlet total = count(all);\n",
            "let total = count(some);",
            "line 2 has \"all\" where your text has \"some\"",
        ),
    ] {
        let told = told(content, old).await;
        assert!(told.contains(words), "{content:?} {old:?}: {told}");
    }
}

#[tokio::test]
async fn a_text_that_is_like_nothing_in_the_file_is_told_so() {
    for (content, old) in [("one\ntwo\n", "struct Xyz;"), ("", "a"), ("one\n", " \n")] {
        let told = told(content, old).await;
        assert!(
            told.ends_with("; nothing like it stands in the file; read it again"),
            "{content:?} {old:?}: {told}"
        );
    }
}

#[tokio::test]
async fn of_a_long_place_the_lines_around_the_first_difference_are_shown() {
    let lines: Vec<_> = (1..=100).map(|n| format!("line of number {n}")).collect();
    let (content, mut old) = (lines.join("\n"), lines.clone());
    old[49] = "line of the number 50".to_owned();
    let told = told(&content, &old.join("\n")).await;
    assert!(
        told.contains("at line 48: line 50 has \"number\" where your text has \"the number\""),
        "{told}"
    );
    let shown: Vec<_> = told.lines().skip(1).collect();
    assert_eq!(shown.len(), Nearest::MAX_LINES, "{told}");
    assert_eq!(shown[2], "50\tline of number 50");
}

#[tokio::test]
async fn what_is_shown_of_the_nearest_place_is_bounded() {
    let content = "x".repeat(5000) + " y\n" + &"}\n".repeat(400_000);
    let old = "x".repeat(5000) + "  y\n" + &"}\n".repeat(100_000) + "z";
    let told = told(&content, &old).await;
    assert!(told.len() < 2 * Nearest::MAX_BYTES, "{}", told.len());
    assert!(told.contains("line 1 has a space where your text has 2 spaces"));
}

#[tokio::test]
async fn a_text_that_stands_in_many_places_is_told_with_their_lines() {
    let told = told(&"same\nother\n".repeat(7), "same").await;
    assert_eq!(
        told,
        "the text to be replaced stands 7 times in \"file\", at lines 1, 3, 5, 7, 9 and further ones; add lines \
         around it until it is unique, or set replace_all to replace every occurrence"
    );
}

#[tokio::test]
async fn an_edit_of_what_was_read_lands_and_one_of_what_was_changed_since_then_does_not() {
    let scene = Scene::new();
    scene.put("file", "one\ntwo\n");
    let seen = scene.read(read("file", 2, 1, 100)).await.digest;
    assert_eq!(seen, Some(Digest::of(b"one\ntwo\n").into()));
    let expecting = |expected| Edit {
        expected,
        ..edit("two", "2", false)
    };
    scene.put("file", "zero\none\ntwo\n");
    let failure = scene.failure(expecting(seen)).await;
    assert_eq!(
        failure.to_string(),
        "\"file\" was changed since it was read: read it again"
    );
    assert_eq!(scene.text("file"), "zero\none\ntwo\n");
    let seen = scene.read(whole("file")).await.digest;
    let blake3 = shared_types::DigestAlgorithm::Blake3.of(b"zero\none\n2\n");
    let outcome = scene.outcome(expecting(seen)).await;
    assert!(matches!(outcome, Outcome::Edited(_)), "{outcome:?}");
    let again = Edit {
        expected: Some(blake3),
        ..edit("2", "3", false)
    };
    let outcome = scene.outcome(again).await;
    assert!(matches!(outcome, Outcome::Edited(_)), "{outcome:?}");
}

#[tokio::test]
async fn a_file_that_is_too_large_to_be_edited_is_read_without_a_digest() {
    let scene = Scene::new();
    scene.put("file", vec![b'\n'; MAX_INLINE_FILE_BYTES]);
    assert!(scene.read(read("file", 1, 1, 9)).await.digest.is_some());
    scene.put("file", vec![b'\n'; MAX_INLINE_FILE_BYTES + 1]);
    let found = scene
        .read(read("file", MAX_INLINE_FILE_BYTES as u64, 9, 9))
        .await;
    assert_eq!((found.digest, found.lines, found.more), (None, 2, false));
}
