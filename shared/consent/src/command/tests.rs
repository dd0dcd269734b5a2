use super::*;

/// The commands of a script that start a program, a hole as `$NAME` or `$(…)`; after `!` why it cannot be read.
fn commands(text: &str) -> Vec<String> {
    let script = read(text);
    let shown = |segment: &Segment| {
        let words = segment.words.iter().map(Word::shown);
        words.collect::<Vec<_>>().join(" ")
    };
    let mut all: Vec<_> = script.segments.iter().map(shown).collect();
    all.retain(|command| !command.is_empty());
    all.extend(script.unread.map(|unread| format!("!{}", unread.0)));
    all
}

#[test]
fn words_lose_their_quotes_and_keep_what_is_certain() {
    for (text, words) in [
        (r#"a 'b c' "d e" f\ g"#, "a|b c|d e|f g"),
        (r#"a "$HOME/x" $'\x41\n' "\$x""#, "a|$HOME/x|A\n|$x"),
        ("a {b,c}d '{e,f}' {g}", "a|bd|cd|{e,f}|{g}"),
        ("a {b,{c,d}} x{1..3}", "a|b|c|d|x$(…)"),
        ("a $(b) \"`c`\" $((1)) ${d:-e}", "a|$(…)|$(…)|$(…)|$(…)"),
        ("a '' \"\"", "a||"),
        ("a\\\nb c\\\n d", "ab|c|d"),
        ("a b#c #d", "a|b#c"),
    ] {
        let script = read(text);
        let last = script.segments.last().expect("a command");
        let shown: Vec<_> = last.words.iter().map(Word::shown).collect();
        assert_eq!(shown.join("|"), words, "{text}");
    }
}

#[test]
fn every_command_of_a_script_is_found_wherever_it_stands() {
    for (text, found) in [
        (
            "a; b && c || d | e & f",
            &["a", "b", "c", "d", "e", "f"][..],
        ),
        (
            "if a; then b; elif c; then d; else e; fi",
            &["a", "b", "c", "d", "e"],
        ),
        (
            "for x in $(a); do b; done; while c; do d; done",
            &["a", "b", "c", "d"],
        ),
        (
            "case $(a) in b|c) d;; (e) f;& *) g;; esac",
            &["a", "d", "f", "g"],
        ),
        (
            "f() { a; }; function g { b; }; (c; { d; })",
            &["a", "b", "c", "d"],
        ),
        ("a $(b `c`) <(d)", &["c", "b $(…)", "d", "a $(…) <(…)"]),
        (
            "x=$(a) y=(b $(c)) ((1 + $(d))) ",
            &["a", "c", "!its grammar is not plain shell"],
        ),
        ("a <<E | b\n$(c) d\nE\ne", &["a", "b", "c", "e"]),
        ("a <<'E'\n$(c)\nE\nb", &["a", "b"]),
        (
            "sudo -u x nice -n 1 a b",
            &["sudo -u x nice -n 1 a b", "nice -n 1 a b", "a b"],
        ),
        (
            "sh -c 'a; b' | bash",
            &[
                "sh -c a; b",
                "bash",
                "a",
                "b",
                "!a shell runs a text that only the run knows",
            ],
        ),
        ("a; b )", &["a", "b", "!its grammar is not plain shell"]),
    ] {
        assert_eq!(commands(text), found, "{text}");
    }
}

#[test]
fn input_and_files_belong_to_their_commands() {
    let script = read("a 2>&1 >b <c | { d; e <<<f; } >>g &>h");
    let files = |segment: &Segment| {
        let shown = segment
            .redirects
            .iter()
            .map(|r| format!("{}{}", if r.writes { '>' } else { '<' }, r.target.shown()));
        shown.collect::<Vec<_>>().join(" ")
    };
    let all: Vec<_> = script.segments.iter().map(files).collect();
    assert_eq!(all, [">b <c", "", "", ">g >h"]);
    assert!(matches!(script.segments[0].input, SegmentInput::File));
    assert!(matches!(&script.segments[1].input, SegmentInput::Pipe(from) if *from == (0..1)));
    assert!(matches!(script.segments[2].input, SegmentInput::Text(0)));
    assert_eq!(script.texts[0].literal(), Some("f"));
}

#[test]
fn each_bound_is_kept() {
    let unread = |text: &str| read(text).unread.map(|unread| unread.0);
    assert_eq!(unread(&"a".repeat(MAX_SCRIPT)), None);
    assert_eq!(
        unread(&"a".repeat(MAX_SCRIPT + 1)),
        Some("it is longer than 64 KiB")
    );
    let nested = |depth: usize| format!("{}a{}", "$(".repeat(depth), ")".repeat(depth));
    assert_eq!(unread(&nested(MAX_DEPTH / 2 - 1)), None);
    assert_eq!(unread(&nested(MAX_DEPTH)), Some("it is nested too deeply"));
    assert_eq!(unread(&"a;".repeat(MAX_SEGMENTS)), None);
    assert_eq!(
        unread(&"a;".repeat(MAX_SEGMENTS + 1)),
        Some("it has too many commands")
    );
    let wrapped = |layers: usize| format!("{}a", "sudo ".repeat(layers));
    assert_eq!(unread(&wrapped(MAX_LAYERS - 1)), None);
    assert_eq!(
        unread(&wrapped(MAX_LAYERS + 1)),
        Some("its commands are wrapped too often")
    );
}
