//! What holds for every text: the judgement ends, and no shape of a command is a way around a rule.

use proptest::prelude::*;
use shared_types::{Mode, Risk};

use super::{ruled, verdict};
use crate::{Decision, Deed, Ruled};

/// Words and signs of which scripts consist.
const TOKENS: [&str; 60] = [
    "rm", "git", "push", "ls", "echo", "sh", "-c", "-rf", "/", "eval", "sudo", "env", "X=1", "if",
    "then", "fi", "while", "do", "done", "for", "in", "case", "esac", "{", "}", "(", ")", "((",
    "))", "[[", "]]", "$(", "`", "${x", "$x", "'", "\"", "\\", ";", ";;", "&", "&&", "|", "||",
    ">", ">>", "<", "<<EOF", "EOF", "<<<", "<(", "\n", " ", " ", "#", "*", "!", "function", "f()",
    "$'",
];

fn scripts() -> impl Strategy<Value = String> {
    let shell =
        prop::collection::vec(prop::sample::select(&TOKENS[..]), 0..40).prop_flat_map(|tokens| {
            prop::sample::select(vec!["", " "]).prop_map(move |gap| tokens.join(gap))
        });
    prop_oneof![3 => shell, 1 => any::<String>(), 1 => "[ -~\n]{0,60}"]
}

fn rules() -> impl Strategy<Value = Vec<Ruled<()>>> {
    let texts = [
        "Shell",
        "Shell(rm *)",
        "Shell(git push *)",
        "Shell(git *)",
        "Shell(ls)",
        "Shell(=ls)",
        "Read(**/.env)",
        "Write(src/**)",
        "WebFetch(domain:a.b)",
        "Tool(x)",
        "Shell(e* *)",
    ];
    let decisions = [Decision::Allow, Decision::Ask, Decision::Deny];
    let rule = (
        prop::sample::select(texts.to_vec()),
        prop::sample::select(decisions.to_vec()),
    )
        .prop_map(|(text, decision)| ruled(decision, text));
    prop::collection::vec(rule, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn every_text_gets_a_verdict(script in scripts(), rules in rules()) {
        for mode in Mode::ALL {
            let verdict = verdict(&Deed::Shell(&script), mode, &rules);
            prop_assert_eq!(verdict.reasons.is_empty(), verdict.risk == Risk::Low);
            prop_assert!(!verdict.why.contains('\n'));
        }
        let argv: Vec<_> = script.split(' ').map(str::to_owned).collect();
        verdict(&Deed::Argv(&argv), Mode::Full, &rules);
        verdict(&Deed::Write(&script), Mode::Auto, &rules);
        verdict(&Deed::Fetch(&script), Mode::Auto, &rules);
    }

    #[test]
    fn a_further_deny_rule_never_makes_a_verdict_freer(script in scripts(), mut rules in rules(), more in rules()) {
        for mode in Mode::ALL {
            let before = verdict(&Deed::Shell(&script), mode, &rules).decision;
            let count = rules.len();
            rules.extend(more.iter().filter(|ruled| ruled.decision == Decision::Deny).cloned());
            let after = verdict(&Deed::Shell(&script), mode, &rules).decision;
            rules.truncate(count);
            prop_assert!(after >= before, "{before} became {after}");
        }
    }

    #[test]
    fn a_freer_mode_never_decides_more_strictly(script in scripts(), rules in rules()) {
        let decisions = Mode::ALL.map(|mode| verdict(&Deed::Shell(&script), mode, &rules).decision);
        prop_assert!(decisions.is_sorted_by(|strict, free| strict >= free), "{decisions:?}");
    }

    #[test]
    fn a_suggestion_allows_exactly_what_was_asked(script in scripts()) {
        let asked = verdict(&Deed::Shell(&script), Mode::Ask, &[]);
        if let Some(rule) = asked.suggestion {
            let rules = [Ruled { rule, decision: Decision::Allow, by: () }];
            prop_assert_eq!(verdict(&Deed::Shell(&script), Mode::Ask, &rules).decision, Decision::Allow);
        }
    }

    #[test]
    fn a_denied_command_stays_denied_in_wrappers(layers in prop::collection::vec(wrappers(), 1..4)) {
        let rules = [ruled(Decision::Deny, "Shell(rm *)")];
        let script = format!("{} rm -rf /", layers.join(" "));
        let verdict = verdict(&Deed::Shell(&script), Mode::Full, &rules);
        prop_assert_eq!(verdict.decision, Decision::Deny, "{}", script);
    }

    #[test]
    fn a_denied_command_is_found_anywhere_in_a_list(before in lists(), after in lists()) {
        let rules = [ruled(Decision::Deny, "Shell(rm *)")];
        let script = format!("{before} rm -rf / ; {after}");
        let verdict = verdict(&Deed::Shell(&script), Mode::Full, &rules);
        prop_assert_eq!(verdict.decision, Decision::Deny, "{}", script);
    }
}

/// A line of the table of wrappers as a beginning of a command, with some of its options.
fn wrappers() -> impl Strategy<Value = String> {
    let table = include_str!("../command/wrappers.txt").lines();
    let lines: Vec<_> = table
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .collect();
    (
        prop::sample::select(lines),
        any::<prop::sample::Index>(),
        any::<bool>(),
    )
        .prop_map(|(line, index, optional)| {
            let columns: Vec<_> = line.split('|').map(str::trim).collect();
            let options: Vec<_> = columns[1].split_whitespace().collect();
            let mut words = vec![columns[0].to_owned()];
            if optional && !options.is_empty() {
                words.push(format!("{} 1", options[index.index(options.len())]));
            }
            let skipped = columns[2].parse().expect("the last column is a number");
            words.extend(std::iter::repeat_n("x".to_owned(), skipped));
            words.join(" ")
        })
}

/// Commands that end before another one.
fn lists() -> impl Strategy<Value = String> {
    let pieces = [
        "ls;",
        "ls &&",
        "X=1;",
        "(ls);",
        "echo 'a;b' |",
        "ls # rm\n",
        "{ ls; };",
        "cat <<E\n$x\nE\n",
        "if ls; then ls; fi;",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..4)
        .prop_map(|pieces| format!("; {}", pieces.join(" ")).replacen("; ", "", 1))
        .prop_map(|list| {
            if list.is_empty() {
                ":;".to_owned()
            } else {
                list
            }
        })
}

#[test]
fn hostile_texts_end_and_are_not_allowed_where_a_rule_denies() {
    let rules = [ruled(Decision::Deny, "Shell(rm *)")];
    let size = 60 * 1024;
    let deep = |open: &str, close: &str, times: usize| {
        format!("{}rm x{}", open.repeat(times), close.repeat(times))
    };
    for script in [
        deep("(:;", ")", 10_000),
        deep("( ", " )", 20_000),
        deep("$(", ")", 20_000),
        deep("\"$(", ")\"", 10_000),
        deep("{ ", "; }", 10_000),
        deep("if ", "; then :; fi", 4_000),
        deep("${x:-", "}", 9_000),
        deep("$((", "))", 9_000),
        deep("sh -c '", "'", 5_000),
        deep("`", "`", 20_000),
        deep("sudo ", "", 12_000),
        "eval ".repeat(size / 5) + "rm x",
        "find".to_owned() + &" -exec".repeat(size / 6) + " rm x",
        "git submodule".to_owned() + &" foreach".repeat(size / 8) + " rm x",
        "curl".to_owned() + &" a".repeat(size / 4) + &";x b".repeat(size / 8) + ";rm x",
        "{a,b}".repeat(size / 5) + " rm x; rm x",
        "{".repeat(size) + "; rm x",
        "x ".repeat(size / 2) + "; rm x",
        "$x ".repeat(size / 3) + "; rm x",
        "$((".repeat(size / 3) + "; rm x",
        "x <<E;".repeat(size / 6) + "\nrm x",
        "a|".repeat(size / 2) + "rm x",
        "x\n".repeat(70 * 1024),
    ] {
        let verdict = verdict(&Deed::Shell(&script), Mode::Full, &rules);
        assert_ne!(verdict.decision, Decision::Allow, "{}…", &script[..20]);
    }
}

/// Prints the time that a judgement takes: `cargo test --release -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement, not a check"]
#[expect(clippy::disallowed_methods, reason = "it measures real time")]
fn time_of_a_judgement() {
    let table = include_str!("cases/ordinary.txt");
    let commands: Vec<_> = table
        .lines()
        .filter_map(|line| line.split_once(" allow "))
        .collect();
    let rules = [
        ruled(Decision::Deny, "Shell(rm *)"),
        ruled(Decision::Allow, "Shell(cargo test *)"),
    ];
    let started = std::time::Instant::now();
    for (_, command) in commands.iter().cycle().take(1000) {
        verdict(&Deed::Shell(command), Mode::Auto, &rules);
    }
    println!(
        "{} µs for each command",
        started.elapsed().as_micros() / 1000
    );
}
