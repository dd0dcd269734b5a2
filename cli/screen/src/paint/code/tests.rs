use proptest::prelude::*;

use super::*;
use crate::paint::shown::{plain, shown};

fn coloured(code: &str, language: &str) -> String {
    shown(&highlight(code, language))
}

#[test]
fn rust_is_coloured() {
    let code = "/* a\nb */ fn f<'a>(x: &'a str) -> u8 { // why\n    let t = r#\"a \"b\" c\"#; g!('\\'', 0x1f, 1.5, \"\\\"\")\n}";
    assert_eq!(
        coloured(code, "rs"),
        "<dim italic>/* a</>\n<dim italic>b */</> <magenta>fn</> f<'a>(x: &'a str) -> u8 { <dim italic>// why</>\n    \
         <magenta>let</> t = <green>r#\"a \"b\" c\"#</>; <blue>g</>!(<green>'\\''</>, <yellow>0x1f</>, <yellow>1.5</>, <green>\"\\\"\"</>)\n}"
    );
}

#[test]
fn python_is_coloured() {
    assert_eq!(
        coloured(
            "def f(x):  # don't\n    \"\"\"One\n    two.\"\"\"\n    return f'{x}' if x else None",
            "python"
        ),
        "<magenta>def</> <blue>f</>(x):  <dim italic># don't</>\n    <green>\"\"\"One</>\n<green>    two.\"\"\"</>\n    \
         <magenta>return</> f<green>'{x}'</> <magenta>if</> x <magenta>else</> <yellow>None</>"
    );
}

#[test]
fn a_shell_script_is_coloured() {
    assert_eq!(
        coloured("if [ $# -gt 0 ]; then # yes\n  echo \"a\nb\" 'c\\'", "bash"),
        "<magenta>if</> [ $# -gt <yellow>0</> ]; <magenta>then</> <dim italic># yes</>\n  <magenta>echo</> <green>\"a</>\n<green>b\"</> <green>'c\\'</>"
    );
}

#[test]
fn keys_of_data_are_coloured() {
    assert_eq!(
        coloured("{\"a\": [\"b\", true, -1]}", "json"),
        "{<cyan>\"a\"</>: [<green>\"b\"</>, <yellow>true</>, -<yellow>1</>]}"
    );
    assert_eq!(
        coloured("a-b:\n  - c: https://d.e # f\n  - don't", "yaml"),
        "<cyan>a-b</>:\n  - <cyan>c</>: https://d.e <dim italic># f</>\n  - don't"
    );
    assert_eq!(
        coloured("[a.b]\nc = 'd'", "toml"),
        "<magenta>[a.b]</>\n<cyan>c</> = <green>'d'</>"
    );
}

#[test]
fn other_languages_have_their_signs() {
    assert_eq!(
        coloured("SELECT 'it''s' -- a", "sql"),
        "<magenta>SELECT</> <green>'it''s'</> <dim italic>-- a</>"
    );
    assert_eq!(
        coloured("#include <a.h>\nint x = 1'000;", "cpp"),
        "<magenta>#include</> <a.h>\n<magenta>int</> x = <yellow>1</>'<yellow>000</>;"
    );
    assert_eq!(
        coloured("<a b=\"c\">d &lt; e</a><!-- f -->", "html"),
        "<magenta><a</> <cyan>b</>=<green>\"c\"</><magenta>></>d &lt; e<magenta></a></><dim italic>\u{3c}!-- f --></>"
    );
    assert_eq!(
        coloured("--- a\n+++ b\n@@ -1 +1 @@\n-c\n+d\n e", "diff"),
        "<bold>--- a</>\n<bold>+++ b</>\n<cyan>@@ -1 +1 @@</>\n<red>-c</>\n<green>+d</>\n e"
    );
    assert_eq!(
        coloured("const a = `b\n${c}`;", "ts"),
        "<magenta>const</> a = <green>`b</>\n<green>${c}`</>;"
    );
}

#[test]
fn a_language_is_known_by_file_names_and_short_names() {
    let known = [
        ("src/main.rs", "rust"),
        ("A.PY", "python"),
        ("Dockerfile.debian", "dockerfile"),
        ("/x/Makefile", "makefile"),
        ("C:\\a\\b.tsx", "typescript"),
        ("js", "javascript"),
        (".bashrc", "shell"),
        ("README.md", "markdown"),
        ("notes", ""),
        ("", ""),
        ("a.", ""),
    ];
    for (path, language) in known {
        assert_eq!(language_of(path), language, "{path}");
    }
}

#[test]
fn unknown_code_is_plain_and_keeps_its_lines() {
    assert_eq!(coloured("a\n\n\tb\n", "klingon"), "a\n\n    b");
    assert_eq!(highlight("", "rust").len(), 0);
    assert_eq!(highlight("\n", "rust").len(), 1);
}

#[test]
fn long_code_takes_linear_time() {
    for language in [
        "rust", "python", "html", "yaml", "shell", "c", "lua", "markdown",
    ] {
        for piece in [
            "'\\", "\"", "/*", "<a ", "a  ", "#", "r#", "'a", "$", "--[[", "\"\"\"",
        ] {
            let code = piece.repeat(40_000 / piece.len());
            assert_eq!(highlight(&code, language).len(), 1);
        }
    }
}

proptest! {
    #[test]
    fn no_letter_is_lost(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "a", "fn ", "\"", "'", "'''", "\\", "\n", "/*", "*/", "//", "#", "<", ">", "<!--", "-->", "r#\"", "1.", "é", "日", "[", "=", ": ", "`", "--", "{-", "(",
        ]), 0..30),
        language in prop::sample::select(LANGUAGES.iter().map(|language| language.name).collect::<Vec<_>>()),
    ) {
        let code = pieces.concat();
        let lines = highlight(&code, language);
        prop_assert_eq!(plain(&lines), code.strip_suffix('\n').unwrap_or(&code));
    }
}
