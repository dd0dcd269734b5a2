//! The rules of a project's file.

use shared_types::{Isolation, Mode};

use super::{ruled, verdict};
use crate::{Decision, Deed, InvalidProjectRules, ProjectRules, Ruled, Terms, judge};

const FILE: &str = r#"
allow = ["Shell(cargo test *)", "Write(src/**)"]
ask = ["Read"]
deny = ["Shell(git push *)", "Read(**/.env)"]
"#;

fn rules(text: &str, folder: &str) -> Vec<Ruled<()>> {
    let rules = ProjectRules::read(text, folder).expect("it has the form");
    let rules = rules.counting(true);
    rules
        .map(|(decision, rule)| ruled(decision, &rule.to_string()))
        .collect()
}

#[test]
fn paths_begin_in_the_folder_of_the_project_and_stay_in_it() {
    let texts = |folder| {
        let rules = rules(FILE, folder).into_iter();
        rules
            .map(|ruled| format!("{} {}", ruled.decision, ruled.rule))
            .collect::<Vec<_>>()
    };
    let commands = ["deny Shell(git push *)", "allow Shell(cargo test *)"];
    let files = ["deny Read(**/.env)", "ask Read", "allow Write(src/**)"];
    let expected = [commands[0], files[0], files[1], commands[1], files[2]];
    assert_eq!(texts(""), expected);
    let files = [
        "deny Read(a/b/**/.env)",
        "ask Read(a/b/**)",
        "allow Write(a/b/src/**)",
    ];
    let expected = [commands[0], files[0], files[1], commands[1], files[2]];
    assert_eq!(texts("a/b"), expected);

    let terms = |rules, deed: Deed| {
        judge(
            &deed,
            &Terms {
                mode: Mode::Ask,
                ceiling: None,
                isolation: &Isolation::none(),
                folder: "",
                rules,
            },
        )
        .decision
    };
    let odd = rules(FILE, "a [1]/{b}*");
    for (path, decision) in [
        ("a [1]/{b}*/src/x.rs", Decision::Allow),
        ("a 1/bc/src/x.rs", Decision::Ask),
        ("src/x.rs", Decision::Ask),
        ("a [1]/{b}*/src/../x.rs", Decision::Ask),
    ] {
        assert_eq!(terms(&odd, Deed::Write(path)), decision, "{path}");
    }
}

#[test]
fn a_file_that_is_not_as_it_was_trusted_allows_nothing_and_denies_on() {
    let rules = ProjectRules::read(FILE, "").expect("it has the form");
    let left: Vec<_> = rules.counting(false).collect();
    assert_eq!(left.len(), 3);
    assert!(
        left.iter()
            .all(|(decision, _)| *decision != Decision::Allow)
    );
}

#[test]
fn a_project_lifts_neither_plan_mode_nor_the_files_that_others_trust() {
    let allow = rules("allow = [\"Write\"]", "a");
    let decided = |path, mode| verdict(&Deed::Write(path), mode, &allow).decision;
    for mode in [Mode::Ask, Mode::Auto] {
        assert_eq!(decided("a/x", mode), Decision::Allow);
        assert_eq!(
            decided("a/.gantry/permissions.toml", mode),
            Decision::Ask,
            "{mode}"
        );
    }
    assert_eq!(decided("a/x", Mode::Plan), Decision::Deny);
}

#[test]
fn a_text_that_is_no_such_file_says_what_is_wrong_and_gives_no_rule() {
    let error = |text: &str, folder: &str| ProjectRules::read(text, folder).expect_err(text);
    for (text, words) in [
        ("allow = [", ""),
        ("permit = []", "unknown field"),
        ("allow = [\"Bash(x)\"]", "no rule is called"),
        ("allow = [1]", "invalid type"),
    ] {
        let error = error(text, "").to_string();
        assert!(error.contains(words), "{error}");
    }
    let many = format!("deny = [{}]", "\"Shell(x)\",".repeat(201));
    assert_eq!(error(&many, ""), InvalidProjectRules::Many(201));
    for folder in [r"a\b".to_owned(), "x".repeat(600)] {
        assert!(matches!(
            error("allow = [\"Write(a)\"]", &folder),
            InvalidProjectRules::Place { .. }
        ));
    }
}
