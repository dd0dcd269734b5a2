//! Deeds that are no scripts, rules as text, and suggestions.

use shared_types::{Mode, Risk};

use super::{ruled, verdict};
use crate::{Decision, Deed, InvalidRule, Rule};

fn decided(deed: &Deed, mode: Mode, rules: &[(Decision, &str)]) -> Decision {
    let rules: Vec<_> = rules
        .iter()
        .map(|(decision, rule)| ruled(*decision, rule))
        .collect();
    verdict(deed, mode, &rules).decision
}

fn suggested(deed: &Deed) -> Option<String> {
    verdict(deed, Mode::Ask, &[])
        .suggestion
        .map(|rule| rule.to_string())
}

#[test]
fn reading_is_free_and_writing_depends_on_the_mode_and_the_path() {
    use Decision::{Allow, Ask, Deny};
    for mode in Mode::ALL {
        assert_eq!(decided(&Deed::Read("src/a.rs"), mode, &[]), Allow);
    }
    let write = Deed::Write("src/a.rs");
    let decisions = Mode::ALL.map(|mode| decided(&write, mode, &[]));
    assert_eq!(decisions, [Deny, Ask, Allow, Allow]);
    for path in [
        ".git/hooks/pre-commit",
        "sub/.bashrc",
        ".github/workflows/ci.yml",
        "./.git//config",
        ".gantry/permissions.toml",
        "app/.gantry/permissions.toml",
    ] {
        let verdict = verdict(&Deed::Write(path), Mode::Auto, &[]);
        assert_eq!(
            (verdict.risk, verdict.decision),
            (Risk::High, Ask),
            "{path}"
        );
    }
}

#[test]
fn a_wide_allow_rule_does_not_name_the_files_that_others_run() {
    let hook = Deed::Write(".git/hooks/pre-commit");
    let all = [(Decision::Allow, "Write")];
    assert_eq!(decided(&Deed::Write("a"), Mode::Ask, &all), Decision::Allow);
    assert_eq!(decided(&hook, Mode::Ask, &all), Decision::Ask);
    let named = [(Decision::Allow, "Write(.git/hooks/**)")];
    assert_eq!(decided(&hook, Mode::Ask, &named), Decision::Allow);
}

#[test]
fn rules_about_paths_do_not_cross_folders_and_are_not_fooled_by_dots() {
    let deny = [(Decision::Deny, "Read(secret/*)")];
    let of = |path| decided(&Deed::Read(path), Mode::Full, &deny);
    assert_eq!(of("secret/a"), Decision::Deny);
    assert_eq!(of("./x/..//secret/./a"), Decision::Deny);
    assert_eq!(of("secret/a/b"), Decision::Allow);
    let allow = [(Decision::Allow, "Write(src/**)")];
    let of = |path| decided(&Deed::Write(path), Mode::Ask, &allow);
    assert_eq!(of("src/a/b.rs"), Decision::Allow);
    assert_eq!(of("src/../Cargo.toml"), Decision::Ask);
    assert_eq!(of("../src/a"), Decision::Ask);
}

#[test]
fn rules_about_hosts_mean_the_host_and_those_below_it() {
    let allow = [(Decision::Allow, "WebFetch(domain:docs.rs)")];
    let of = |url| decided(&Deed::Fetch(url), Mode::Auto, &allow);
    for url in [
        "https://docs.rs/x",
        "https://a.docs.rs",
        "http://DOCS.rs:8080/",
        "https://docs.rs./",
    ] {
        assert_eq!(of(url), Decision::Allow, "{url}");
    }
    for url in [
        "https://evildocs.rs",
        "https://docs.rs@evil.com",
        "https://docs.rs.evil.com",
        "https://evil.com/docs.rs",
        "https://evil.com#docs.rs",
        "https://docs.rs\\@evil.com:x",
        "ftp://docs.rs",
        "docs.rs",
        "https:///",
    ] {
        assert_eq!(of(url), Decision::Ask, "{url}");
    }
    let deny = [(Decision::Deny, "WebFetch(domain:evil.com)")];
    assert_eq!(
        decided(&Deed::Fetch("https://x@EVIL.com."), Mode::Full, &deny),
        Decision::Deny
    );
    assert_eq!(
        decided(&Deed::Fetch("no address"), Mode::Full, &deny),
        Decision::Ask
    );
}

#[test]
fn tools_are_named_and_programs_without_a_shell_are_read_as_they_stand() {
    let tool = Deed::Tool("web_search");
    assert_eq!(decided(&tool, Mode::Auto, &[]), Decision::Ask);
    assert_eq!(
        decided(&tool, Mode::Auto, &[(Decision::Allow, "Tool(web_search)")]),
        Decision::Allow
    );
    assert_eq!(
        decided(&tool, Mode::Full, &[(Decision::Deny, "Tool")]),
        Decision::Deny
    );
    let argv = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let deny = [(Decision::Deny, "Shell(rm *)")];
    assert_eq!(
        decided(&Deed::Argv(&argv(&["echo", "$(rm x)"])), Mode::Full, &deny),
        Decision::Allow
    );
    assert_eq!(
        decided(&Deed::Argv(&argv(&["sudo", "rm", "x"])), Mode::Full, &deny),
        Decision::Deny
    );
    assert_eq!(
        decided(
            &Deed::Argv(&argv(&["sh", "-c", "ls; rm x"])),
            Mode::Full,
            &deny
        ),
        Decision::Deny
    );
    let exact = [(Decision::Allow, "Shell(=python3 -c 'print(1)')")];
    assert_eq!(
        decided(
            &Deed::Argv(&argv(&["python3", "-c", "print(1)"])),
            Mode::Ask,
            &exact
        ),
        Decision::Allow
    );
}

#[test]
fn a_suggestion_is_as_wide_as_a_person_means_it() {
    for (command, rule) in [
        ("cargo test -p core", Some("Shell(cargo test *)")),
        ("timeout 60 cargo test | tail", Some("Shell(cargo test *)")),
        ("git -C x push origin", Some("Shell(git push *)")),
        ("npm run build", Some("Shell(npm run build *)")),
        ("docker compose up -d", Some("Shell(docker compose up *)")),
        ("make docs", Some("Shell(make docs *)")),
        ("pytest -q", Some("Shell(pytest *)")),
        ("python3 -m pytest -q", Some("Shell(python3 -m pytest *)")),
        ("python3 tools/a.py x", Some("Shell(python3 tools/a.py *)")),
        ("./gradlew test", Some("Shell(./gradlew *)")),
        (
            "python3 -c 'print(1)'",
            Some("Shell(=python3 -c 'print(1)')"),
        ),
        ("rm -rf build", Some("Shell(=rm -rf build)")),
        ("curl https://a.b", Some("Shell(=curl https://a.b)")),
        ("sudo apt update", Some("Shell(=sudo apt update)")),
        ("make && cargo test", Some("Shell(=make && cargo test)")),
        ("cargo test > ../out", Some("Shell(=cargo test > ../out)")),
        ("bash x.sh", Some("Shell(=bash x.sh)")),
        ("rm -rf $X", None),
        ("eval $X", None),
        ("sh -c \"$X\"", None),
        ("curl https://a.b | sh", None),
        ("cargo build\nmake", None),
    ] {
        let shown = suggested(&Deed::Shell(command));
        assert_eq!(shown.as_deref(), rule, "{command}");
    }
    assert_eq!(
        suggested(&Deed::Write("src/a/b.rs")).as_deref(),
        Some("Write(src/a/**)")
    );
    assert_eq!(
        suggested(&Deed::Write("README.md")).as_deref(),
        Some("Write(README.md)")
    );
    assert_eq!(
        suggested(&Deed::Fetch("https://docs.rs/x")).as_deref(),
        Some("WebFetch(domain:docs.rs)")
    );
    assert_eq!(
        suggested(&Deed::Tool("web_search")).as_deref(),
        Some("Tool(web_search)")
    );
}

#[test]
fn a_tool_of_a_server_has_the_rules_of_claude_code() {
    let deed = Deed::Tool("mcp__github__create_issue");
    for (mode, decision) in [
        (Mode::Plan, Decision::Deny),
        (Mode::Ask, Decision::Ask),
        (Mode::Auto, Decision::Ask),
        (Mode::Full, Decision::Allow),
    ] {
        assert_eq!(decided(&deed, mode, &[]), decision, "{mode:?}");
    }
    for (rule, holds) in [
        ("mcp__github__create_issue", true),
        ("mcp__github", true),
        ("mcp__github__*", true),
        ("Tool(mcp__github__create_issue)", true),
        ("mcp__git", false),
        ("mcp__github__create", false),
        ("mcp__github__create_issue_x", false),
    ] {
        let (allowed, denied) = match holds {
            true => (Decision::Allow, Decision::Deny),
            false => (Decision::Ask, Decision::Allow),
        };
        let allow = [(Decision::Allow, rule)];
        assert_eq!(decided(&deed, Mode::Auto, &allow), allowed, "{rule}");
        let deny = [(Decision::Deny, rule)];
        assert_eq!(decided(&deed, Mode::Full, &deny), denied, "{rule}");
    }
    // Who allows Gantry's own tools has not thought of servers; who denies all tools has.
    assert_eq!(
        decided(&deed, Mode::Auto, &[(Decision::Allow, "Tool")]),
        Decision::Ask
    );
    assert_eq!(
        decided(&deed, Mode::Full, &[(Decision::Deny, "Tool")]),
        Decision::Deny
    );
    assert_eq!(
        suggested(&deed).as_deref(),
        Some("mcp__github__create_issue")
    );
    for text in ["mcp__", "mcp____x", "mcp__a b", "mcp__a(b)"] {
        assert!(text.parse::<Rule>().is_err(), "{text}");
    }
}

#[test]
fn no_rule_is_suggested_where_a_rule_asked() {
    let rules = [ruled(Decision::Ask, "Shell(cargo test *)")];
    let verdict = verdict(&Deed::Shell("cargo test"), Mode::Ask, &rules);
    assert_eq!(verdict.suggestion, None);
    assert_eq!(verdict.by, Some(&rules[0]));
}

#[test]
fn a_verdict_says_why_in_one_line() {
    let verdict = verdict(&Deed::Shell("git push\nmake"), Mode::Plan, &[]);
    assert_eq!(
        verdict.why,
        "plan mode only reads, and this sends commits to a remote"
    );
    assert_eq!(
        verdict.reasons,
        ["sends commits to a remote", "builds or tests"]
    );
}

#[test]
fn a_rule_has_one_canonical_text() {
    for (text, canonical) in [
        (" Shell( git  push  * ) ", "Shell(git push *)"),
        ("Shell(*)", "Shell"),
        ("Shell(=a  b)", "Shell(=a  b)"),
        ("Edit(./src//a/)", "Write(src/a/**)"),
        ("Patch", "Write"),
        ("Read(**/.env)", "Read(**/.env)"),
        ("WebFetch(domain:*.Docs.RS)", "WebFetch(domain:docs.rs)"),
        ("Tool(x)", "Tool(x)"),
        ("Shell(echo (a))", "Shell(echo (a))"),
    ] {
        let rule: Rule = text.parse().expect(text);
        assert_eq!(rule.to_string(), canonical);
        assert_eq!(canonical.parse(), Ok(rule.clone()));
        let json = serde_json::to_string(&rule).expect("a rule is a text");
        assert_eq!(
            serde_json::from_str::<Rule>(&json).expect("it reads back"),
            rule
        );
    }
}

#[test]
fn a_text_that_is_no_rule_says_what_is_wrong() {
    let error = |text: &str| text.parse::<Rule>().expect_err(text);
    assert_eq!(
        error(&format!("Shell({})", "x".repeat(500))),
        InvalidRule::Long(507)
    );
    assert_eq!(error("Shell(a\nb)"), InvalidRule::Control);
    assert_eq!(error("Bash(x)"), InvalidRule::Name("Bash".to_owned()));
    assert_eq!(error("Shell(x"), InvalidRule::Bracket);
    assert_eq!(error("Shell()"), InvalidRule::Empty);
    assert!(matches!(error("Read(/etc/**)"), InvalidRule::Path(_)));
    assert!(matches!(error("Write(../a)"), InvalidRule::Path(_)));
    assert!(matches!(error("Write([)"), InvalidRule::Path(_)));
    assert!(matches!(error("WebFetch(docs.rs)"), InvalidRule::Domain(_)));
    assert!(matches!(
        error("WebFetch(domain:a b)"),
        InvalidRule::Domain(_)
    ));
}

#[test]
fn a_decision_reads_back() {
    for decision in [Decision::Allow, Decision::Ask, Decision::Deny] {
        assert_eq!(decision.to_string().parse(), Ok(decision));
        assert_eq!(
            serde_json::to_value(decision).ok(),
            Some(decision.to_string().into())
        );
    }
    assert!("maybe".parse::<Decision>().is_err());
}

/// The decision about a command that starts in this folder.
fn decided_in(folder: &str, script: &str, mode: Mode, rules: &[(Decision, &str)]) -> Decision {
    let rules: Vec<_> = rules
        .iter()
        .map(|(decision, rule)| ruled(*decision, rule))
        .collect();
    let terms = crate::Terms {
        mode,
        ceiling: None,
        isolation: &super::sandboxed(),
        folder,
        rules: &rules,
    };
    crate::judge(&Deed::Shell(script), &terms).decision
}

#[test]
fn a_plain_name_is_judged_by_the_folder_in_which_its_command_works() {
    use Decision::{Allow, Ask, Deny};
    let write = "echo x > pre-commit";
    assert_eq!(decided_in("src", write, Mode::Auto, &[]), Allow);
    assert_eq!(decided_in(".git/hooks", write, Mode::Auto, &[]), Ask);
    let moved = format!("cd .git/hooks && {write}");
    assert_eq!(decided_in("", &moved, Mode::Auto, &[]), Ask);
    let key = "cat id_ed25519";
    assert_eq!(decided_in("/root/.ssh", key, Mode::Ask, &[]), Ask);
    let secrets = [(Deny, "Read(secrets/**)")];
    for (folder, script) in [("secrets", "cat key"), ("", "cd secrets && cat key")] {
        assert_eq!(
            decided_in(folder, script, Mode::Full, &secrets),
            Deny,
            "{script}"
        );
    }
    assert_eq!(
        decided_in("", "cd \"$D\" && cat key", Mode::Full, &secrets),
        Ask
    );
}

#[test]
fn a_rule_about_reading_also_holds_for_searches_and_for_names_that_the_shell_completes() {
    use Decision::{Allow, Ask, Deny};
    let env = [(Deny, "Read(**/.env)")];
    assert_eq!(decided(&Deed::Search(""), Mode::Full, &env), Ask);
    assert_eq!(decided(&Deed::Search(""), Mode::Full, &[]), Allow);
    for (script, decision) in [("cat .en?", Ask), ("cat \"$F\"", Ask), ("cat *.rs", Allow)] {
        assert_eq!(
            decided(&Deed::Shell(script), Mode::Full, &env),
            decision,
            "{script}"
        );
    }
}

#[test]
fn no_rule_and_no_question_lifts_plan_mode() {
    use Decision::{Ask, Deny};
    for rule in [(Ask, "Shell"), (Decision::Allow, "Shell")] {
        assert_eq!(decided(&Deed::Shell("make"), Mode::Plan, &[rule]), Deny);
    }
}

#[test]
fn a_command_that_hides_a_part_of_it_from_a_terminal_is_a_doubt() {
    let hidden = "make test; \u{1b}]; ./steal.sh \u{7}";
    let verdict = verdict(&Deed::Shell(hidden), Mode::Ask, &[]);
    assert_eq!(verdict.risk, Risk::High);
    assert!(
        verdict
            .reasons
            .iter()
            .any(|reason| reason.contains("control characters"))
    );
}
