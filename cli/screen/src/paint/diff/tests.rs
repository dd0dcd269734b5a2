use proptest::prelude::*;

use super::*;
use crate::paint::shown::{plain, shown};

fn numbered(lines: usize) -> String {
    (1..=lines).map(|line| format!("line {line}\n")).collect()
}

#[test]
fn an_edit_shows_numbers_context_and_the_words_that_changed() {
    let before = numbered(30);
    let after = before
        .replace("line 9\n", "line nine\nline 9b\n")
        .replace("line 20\n", "line twenty\n")
        .replace("line 28\n", "");
    insta::assert_snapshot!(shown(&replaced(&before, &after, "a.txt", 60, 100)), @r##"
    <dim> 6 </>  line 6
    <dim> 7 </>  line 7
    <dim> 8 </>  line 8
    <dim> 9 </><red>- </><red>line 9</>
    <dim> 9 </><green>+ </><green>line nine</>
    <dim>10 </><green>+ </><green>line 9b</>
    <dim>11 </>  line 10
    <dim>12 </>  line 11
    <dim>13 </>  line 12
    <dim>⋮</>
    <dim>18 </>  line 17
    <dim>19 </>  line 18
    <dim>20 </>  line 19
    <dim>20 </><red>- </><red>line </><reversed red>20</>
    <dim>21 </><green>+ </><green>line </><reversed green>twenty</>
    <dim>22 </>  line 21
    <dim>23 </>  line 22
    <dim>24 </>  line 23
    <dim>⋮</>
    <dim>26 </>  line 25
    <dim>27 </>  line 26
    <dim>28 </>  line 27
    <dim>28 </><red>- </><red>line 28</>
    <dim>29 </>  line 29
    <dim>30 </>  line 30
    "##);
}

#[test]
fn words_do_not_stand_out_where_most_of_a_line_changed() {
    assert_eq!(
        shown(&replaced(
            "let total = a + b;\nx y\n",
            "let total = a - b;\nz\n",
            "",
            60,
            100
        )),
        "<dim>1 </><red>- </><red>let total = a </><reversed red>+</><red> b;</>\n<dim>2 </><red>- </><red>x y</>\n\
         <dim>1 </><green>+ </><green>let total = a </><reversed green>-</><green> b;</>\n<dim>2 </><green>+ </><green>z</>"
    );
}

#[test]
fn long_lines_are_folded_behind_the_margin() {
    assert_eq!(
        plain(&replaced("", "\tabcdefghijklmnop", "", 16, 100)),
        "1 +     abcdefgh\n    ijklmnop"
    );
    assert_eq!(plain(&replaced("", "abcdef", "", 5, 100)), "+ abc\n  def");
    assert_eq!(plain(&replaced("", "abc", "", 1, 100)), "a\nb\nc");
}

#[test]
fn the_rows_are_bounded_and_the_rest_is_counted() {
    let rows = plain(&replaced("", &numbered(100), "", 40, 3));
    assert_eq!(rows, "1 + line 1\n2 + line 2\n3 + line 3\n… 97 more lines");
    assert_eq!(
        plain(&replaced("", "abcdefghijklmnop\nb", "", 12, 1)),
        "+ abcdefghij\n… 2 more li…"
    );
    assert_eq!(
        plain(&replaced("", &numbered(3), "", 40, 3))
            .lines()
            .count(),
        3
    );
    assert_eq!(plain(&replaced("", "a", "", 40, 0)), "… 1 more line");
}

#[test]
fn ends_of_lines_are_no_change_of_text() {
    assert_eq!(
        plain(&replaced("a\r\nb\r\n", "a\nb", "", 60, 9)),
        "Only line ends or invisible characters changed."
    );
    assert_eq!(plain(&replaced("a", "a", "", 60, 9)), "No change.");
    assert_eq!(
        plain(&replaced("a\r\nb\r\n", "a\r\nc\r\n", "", 60, 9)),
        "1   a\n2 - b\n2 + c"
    );
    assert_eq!(
        plain(&replaced("\ta", "    a", "", 60, 9)),
        "1 -     a\n1 +     a"
    );
}

#[test]
fn a_text_that_is_too_long_is_not_compared() {
    let long = "x".repeat(MAX_COMPARED + 1);
    assert_eq!(
        plain(&replaced(&long, "", "", 80, 9)),
        "Too long to compare: 1048577 bytes before, 0 after."
    );
}

#[test]
fn a_patch_shows_the_numbers_of_its_hunks() {
    let patch = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -9,3 +9,3 @@ fn f()\n a\n--- b\n+++ b\n d\n@@ -20 +20,0 @@\n-c\n\\ No newline at end of file\n";
    insta::assert_snapshot!(shown(&patched(patch, 60, 100)), @r##"
    <dim>diff --git a/x b/x</>
    <dim>index 1..2 100644</>
    <bold>--- a/x</>
    <bold>+++ b/x</>
    <cyan>@@ -9,3 +9,3 @@ fn f()</>
    <dim> 9 </>  a
    <dim>10 </><red>- </><red>-- b</>
    <dim>10 </><green>+ </><green>++ b</>
    <dim>11 </>  d
    <cyan>@@ -20 +20,0 @@</>
    <dim>20 </><red>- </><red>c</>
    <dim>\ No newline at end of file</>
    "##);
}

#[test]
fn text_that_is_no_patch_stays_readable() {
    assert_eq!(
        plain(&patched("*** Update File: a\n@@\n-b\n+c\n d\nelse", 60, 9)),
        "*** Update File: a\n@@\n- b\n+ c\n  d\nelse"
    );
    assert_eq!(plain(&patched("", 60, 9)), "");
}

#[test]
fn a_new_file_is_previewed_in_colour() {
    assert_eq!(
        shown(&written("fn f() {}\n\tx\n// c\n", "a.rs", 40, 2)),
        "<dim>1 </><magenta>fn</> <blue>f</>() {}\n<dim>2 </>    x\n<dim>… 1 more line</>"
    );
    assert_eq!(plain(&written("a\nb", "", 40, 2)), "1 a\n2 b");
    assert_eq!(
        plain(&written("abcdefghijklmnopqr\nb", "", 14, 1)),
        "1 abcdefghijkl\n… 2 more lines"
    );
    assert_eq!(plain(&written("", "", 40, 2)), "");
    let long = "x".repeat(3 << 20);
    assert_eq!(written(&long, "a.rs", 40, 2).len(), 3);
}

proptest! {
    #[test]
    fn rows_are_harmless_and_fit(
        before in "[a-c \t\n\r\x1b日+@-]{0,60}",
        after in "[a-c \t\n日-]{0,60}",
        columns in 1_usize..30,
        most in 0_usize..10,
    ) {
        let edit = replaced(&before, &after, "a.rs", columns, most);
        let patch = patched(&before, columns, most);
        let file = written(&before, "a.c", columns, most);
        prop_assert!(patch.len() <= most + 1 && file.len() <= most + 1);
        for rows in [edit, patch, file] {
            for row in &rows {
                let row = plain(std::slice::from_ref(row));
                prop_assert!(row.chars().all(shared_types::clean::is_harmless), "{:?}", row);
                prop_assert!(wrap::width(&row) <= columns.max(2), "{:?} in {}", row, columns);
            }
        }
    }
}
