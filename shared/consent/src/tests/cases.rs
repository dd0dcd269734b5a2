//! The tables in `cases/`: lines of RISK DECISION COMMAND under the settings above them.

use shared_types::{Isolation, Mode};

use super::{ruled, sandboxed};
use crate::{Deed, Ruled, Terms, judge};

/// The settings of a group. A heading resets them to those at the file's beginning.
#[derive(Clone)]
struct Settings {
    mode: Mode,
    ceiling: Option<Mode>,
    isolation: Isolation,
    rules: Vec<Ruled<()>>,
}

impl Settings {
    fn new() -> Self {
        Self {
            mode: Mode::Auto,
            ceiling: None,
            isolation: sandboxed(),
            rules: Vec::new(),
        }
    }

    fn set(&mut self, line: &str) {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        let mode = || value.parse().expect("a mode");
        match name {
            "mode" => self.mode = mode(),
            "ceiling" => self.ceiling = Some(mode()),
            "bare" => self.isolation = Isolation::none(),
            decision => self
                .rules
                .push(ruled(decision.parse().expect("a decision"), value)),
        }
    }
}

/// The lines of a table whose verdict differs, and the number of its lines.
fn differences(table: &str) -> (Vec<String>, usize) {
    let mut first = Settings::new();
    let mut settings = first.clone();
    let mut headed = false;
    let (mut wrong, mut count) = (Vec::new(), 0);
    for line in table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
    {
        if line.starts_with("== ") {
            headed = true;
            settings = first.clone();
        } else if let Some(setting) = line.strip_prefix("-- ") {
            if headed {
                settings.set(setting)
            } else {
                first.set(setting)
            }
        } else {
            count += 1;
            let (expected, command) = split(line);
            let command = command.replace('⏎', "\n").replace('␀', "\0");
            let terms = Terms {
                mode: settings.mode,
                ceiling: settings.ceiling,
                isolation: &settings.isolation,
                folder: "",
                rules: &settings.rules,
            };
            let verdict = judge(&Deed::Shell(&command), &terms);
            let found = format!("{} {}", verdict.risk, verdict.decision);
            if found != expected {
                wrong.push(format!(
                    "{line}\n    is {found}: {} {:?}",
                    verdict.why, verdict.reasons
                ));
            }
        }
    }
    (wrong, count)
}

/// The expectation and the command of a line.
fn split(line: &str) -> (&str, &str) {
    let mut spaces = line.match_indices(' ').map(|(at, _)| at);
    let second = spaces
        .nth(1)
        .expect("a line has a risk, a decision and a command");
    (&line[..second], &line[second + 1..])
}

fn check(table: &str, least: usize) {
    let (wrong, count) = differences(table);
    assert!(
        wrong.is_empty(),
        "{} of {count} lines differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count >= least, "the table has {count} lines");
}

#[test]
fn ordinary_work_is_not_asked_about() {
    check(include_str!("cases/ordinary.txt"), 150);
}

#[test]
fn dangerous_commands_are_asked_about() {
    check(include_str!("cases/dangerous.txt"), 100);
}

#[test]
fn a_denied_command_does_not_get_through_in_another_shape() {
    check(include_str!("cases/bypass.txt"), 150);
}

#[test]
fn rules_modes_and_ceilings_meet_as_promised() {
    check(include_str!("cases/rules.txt"), 60);
}
