//! A question of an agent to a person: all that is to happen, where, its risk and why it is asked.

use shared_types::event::{PlannedCall, Question};

use super::clean::{clean, clean_line};
use crate::style::Style;

/// Longest command that the card of a call shows whole, in bytes.
const MAX_CARD: usize = 60;

/// Longest line beside the text, in characters.
const MAX_LINE: usize = 300;

/// The question below the card of its call, which has shown a short command already.
pub(super) fn below_card(question: &Question, style: Style) -> String {
    match question {
        Question::Call(call)
            if call.editable
                && call.text.len() <= MAX_CARD
                && !call.text.contains(char::is_control) =>
        {
            format!("  {}\n{}", style.dim(&place(call)), risk(call, style))
        }
        other => shown(other, style),
    }
}

/// The question, as text of several lines.
pub(crate) fn shown(question: &Question, style: Style) -> String {
    match question {
        Question::Call(call) => call_shown(call, style),
        Question::Free { text, choices } => {
            let mut shown = format!("{}\n", style.bold(&clean(text.trim_end())));
            for (number, choice) in (1..).zip(choices) {
                shown.push_str(&format!("  {number}. {}\n", clean_line(choice, MAX_LINE)));
            }
            shown
        }
        Question::Plan { text } => format!(
            "{}\n{}\n",
            style.bold("the plan:"),
            indented(&visible(text.trim_end()))
        ),
    }
}

fn place(call: &PlannedCall) -> String {
    match call.runner_name.as_str() {
        "" => "on the server".to_owned(),
        name => {
            let folder = match call.directory.as_str() {
                "" => String::new(),
                folder => format!(" in {}", clean_line(folder, MAX_LINE)),
            };
            format!(
                "on {}{folder} · isolation: {}",
                clean_line(name, MAX_LINE),
                call.isolation
            )
        }
    }
}

/// The line about the risk, and why a person is asked.
fn risk(call: &PlannedCall, style: Style) -> String {
    let reasons = match call.reasons.is_empty() {
        true => String::new(),
        false => format!(": {}", call.reasons.join("; ")),
    };
    let risk = format!("risk {}{reasons} · {}", call.risk, call.why);
    format!("  {}\n", style.dim(&clean_line(&risk, MAX_LINE)))
}

fn call_shown(call: &PlannedCall, style: Style) -> String {
    let paths: Vec<_> = call
        .paths
        .iter()
        .map(|path| clean_line(&path.path, MAX_LINE))
        .collect();
    let head = match paths.is_empty() {
        true => call.tool.clone(),
        false => format!("{} {}", call.tool, paths.join(", ")),
    };
    let mut shown = format!("{} {}\n", style.bold(&head), style.dim(&place(call)));
    shown.push_str(&indented(&visible(call.text.trim_end())));
    shown.push('\n');
    if call.cut {
        shown.push_str("  … more of it was left out\n");
    }
    if !call.environment.is_empty() {
        let names = clean_line(&call.environment.join(", "), MAX_LINE);
        shown.push_str(&format!("  with {names}\n"));
    }
    shown.push_str(&risk(call, style));
    shown
}

/// The text with each control character as a letter of its own: what a person approves is all there.
fn visible(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        '\n' | '\t' => letter,
        '\u{7f}' => '␡',
        control @ '\0'..'\u{20}' => {
            char::from_u32(0x2400 + u32::from(control)).unwrap_or('\u{fffd}')
        }
        other => other,
    });
    clean(&letters.collect::<String>())
}

fn indented(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}
